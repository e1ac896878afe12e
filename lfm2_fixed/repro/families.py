"""Payloads in the forms of the families other than LFM2."""

from __future__ import annotations

from ..core.dialects import DIALECTS
from .turns import PLOT, Call, Payload, quoted


def _llama4(id: str, text: str, about: str, *calls: Call, content: str = "") -> Payload:
    return Payload(id, text, calls, about, content, "llama4")


def _pythonic(id: str, text: str, about: str, *calls: Call, content: str = "") -> Payload:
    return Payload(id, text, calls, about, content, "pythonic")


def _olmo3(id: str, lines: str, about: str, *calls: Call, content: str = "", before: str = "") -> Payload:
    """A turn that is one block of calls, a line each, and the text ``before`` it."""
    start, (end, *_) = DIALECTS["olmo3"].start, DIALECTS["olmo3"].ends
    return Payload(id, f"{before}{start}{lines}{end}", calls, about, content, "olmo3")


FAMILIES: tuple[Payload, ...] = (
    # Llama 4.
    _llama4(
        "l4/plain",
        r'[get_weather(city="San (F)"), write(path="a", content="{\"k\": \"]\"}")]',
        "quotes and brackets",
        ("get_weather", {"city": "San (F)"}),
        ("write", {"path": "a", "content": '{"k": "]"}'}),
    ),
    _llama4(
        "l4/leading-newline",
        '\n[get_weather(city="Paris")]',
        "a newline first",
        ("get_weather", {"city": "Paris"}),
    ),
    _llama4(
        "l4/text-first",
        'Let me check.\n\n[get_weather(city="Paris")]',
        "text first",
        ("get_weather", {"city": "Paris"}),
        content="Let me check.",
    ),
    _llama4(
        "l4/citation",
        "[1] According to the [docs](https://x), yes.",
        "prose that starts with a bracket",
        content="[1] According to the [docs](https://x), yes.",
    ),
    _llama4(
        "l4/raw-newline",
        '[write(path="a", content="x\ny")]',
        "a newline as itself",
        ("write", {"path": "a", "content": "x\ny"}),
    ),
    _llama4(
        "l4/keyword",
        '[search(query="x", from="y")]',
        "an argument named like a Python keyword",
        ("search", {"query": "x", "from": "y"}),
    ),
    _llama4(
        "l4/text-after",
        '[get_weather(city="Paris")]\nDone.',
        "text after the calls",
        ("get_weather", {"city": "Paris"}),
        content="Done.",
    ),
    _llama4(
        "l4/json-answer",
        '{"type": "function", "name": "get_weather", "parameters": {"city": "Paris"}}',
        "the JSON form that the chat template asks for",
        ("get_weather", {"city": "Paris"}),
    ),
    # Llama 3.2, ToolACE and others that write bare lists.
    _pythonic(
        "py/two-calls",
        "[get_weather(city='San Francisco', unit='celsius'), get_weather()]",
        "two calls, one without arguments",
        ("get_weather", {"city": "San Francisco", "unit": "celsius"}),
        ("get_weather", {}),
    ),
    _pythonic(
        "py/more-types",
        "[update(record={'city': 'San Francisco', 'role': None, 'passed': True, 'age': 37}, tags=['John', 'Johnny'])]",
        "values of all types",
        (
            "update",
            {
                "record": {"city": "San Francisco", "role": None, "passed": True, "age": 37},
                "tags": ["John", "Johnny"],
            },
        ),
    ),
    _pythonic(
        "py/escaped-quotes",
        r"[write(path='Martha\'s Vineyard', content='\"cool units\"')]",
        "escaped quotes of both kinds",
        ("write", {"path": "Martha's Vineyard", "content": '"cool units"'}),
    ),
    _pythonic(
        "py/json-in-a-string",
        r'[write(path="a.json", content="{\"a\": 1}")]',
        "a list of LFM2's behind a server that strips its markers",
        ("write", {"path": "a.json", "content": '{"a": 1}'}),
    ),
    _pythonic(
        "py/bad-sibling",
        "[bash(command=b'z'), get_weather(city='San Francisco')]",
        "one call that is no data: given back as text, its sibling kept",
        ("get_weather", {"city": "San Francisco"}),
        content="bash(command=b'z')",
    ),
    _pythonic(
        "py/unescaped-quote",
        "[get_weather(city='Paris'), search(query='It's late')]",
        "an apostrophe that is not escaped",
        ("get_weather", {"city": "Paris"}),
        ("search", {"query": "It's late"}),
    ),
    _pythonic(
        "py/text-first",
        "I will look it up.\n\n[get_weather(city='Paris')]",
        "text first",
        ("get_weather", {"city": "Paris"}),
        content="I will look it up.",
    ),
    _pythonic(
        "py/tag",
        "<|python_tag|>[get_weather(city='Paris')]<|eom_id|>",
        "between the family's markers",
        ("get_weather", {"city": "Paris"}),
    ),
    # OLMo 3.
    _olmo3(
        "o3/two-calls",
        "get_weather(city='San Francisco', unit='celsius')\nget_weather()",
        "a call a line, one without arguments",
        ("get_weather", {"city": "San Francisco", "unit": "celsius"}),
        ("get_weather", {}),
    ),
    _olmo3(
        "o3/json-literals",
        "update(record={'city': 'San Francisco', 'role': null, 'passed': true}, tags=[])",
        "null and true",
        ("update", {"record": {"city": "San Francisco", "role": None, "passed": True}, "tags": []}),
    ),
    _olmo3(
        "o3/escaped-quotes",
        r"write(path='Martha\'s Vineyard', content='\"cool units\"')",
        "escaped quotes of both kinds",
        ("write", {"path": "Martha's Vineyard", "content": '"cool units"'}),
    ),
    _olmo3(
        "o3/python-code",
        f'write(path="plot.py", content={quoted(PLOT)})\nbash(command="python plot.py")',
        "a Python file",
        ("write", {"path": "plot.py", "content": PLOT}),
        ("bash", {"command": "python plot.py"}),
    ),
    _olmo3(
        "o3/lines-in-a-string",
        'write(path="a.py", content="""def f():\n    return 1\n""")',
        "newlines in a string, where they separate no calls",
        ("write", {"path": "a.py", "content": "def f():\n    return 1\n"}),
    ),
    _olmo3(
        "o3/bad-sibling",
        "bash(command=b'z')\nget_weather(city='San Francisco')",
        "one call that is no data: given back as text, its sibling kept",
        ("get_weather", {"city": "San Francisco"}),
        content="bash(command=b'z')",
    ),
    _olmo3(
        "o3/text-first",
        "get_weather(city='Paris')",
        "text first",
        ("get_weather", {"city": "Paris"}),
        content="I will look it up.",
        before="I will look it up.\n",
    ),
)
"""Those of Llama 4, of the bare lists of Llama 3.2 and ToolACE, and of OLMo 3."""
