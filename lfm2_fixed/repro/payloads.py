"""Model turns that parsers get wrong, with what each of them says.

Every one is valid output of a model; the calls and the content beside it are what CPython's ``ast``
and the model's chat template say it means.
"""

from __future__ import annotations

import json

from .families import FAMILIES
from .turns import PLOT, Call, Payload, quoted

_START, _END = "<|tool_call_start|>", "<|tool_call_end|>"


def _lfm2(id: str, block: str, about: str, *calls: Call, content: str = "") -> Payload:
    """A turn that is one block."""
    return Payload(id, f"{_START}{block}{_END}", calls, about, content)


def _turn(id: str, text: str, about: str, *calls: Call, content: str = "") -> Payload:
    """A whole turn, with S and E for the markers."""
    return Payload(id, text.replace("S[", _START + "[").replace("]E", "]" + _END), calls, about, content)


_JSON_FILE = json.dumps({"alpha": 1, "beta": "two", "gamma": "three four five", "list": [1, {"x": None}]}, indent=2)


PAYLOADS: tuple[Payload, ...] = (
    # What the stock parser of vLLM 0.26 loses or invents: quotes, braces, backslashes in strings.
    _lfm2(
        "seed/plain",
        '[write(path="a.txt", content="hello world")]',
        "nothing special",
        ("write", {"path": "a.txt", "content": "hello world"}),
    ),
    _lfm2(
        "seed/braces",
        '[write(path="a.txt", content="{alpha: 1}")]',
        "braces in a string",
        ("write", {"path": "a.txt", "content": "{alpha: 1}"}),
    ),
    _lfm2(
        "seed/escaped-quotes",
        r'[write(path="a.txt", content="say \"hi\" now")]',
        "escaped quotes",
        ("write", {"path": "a.txt", "content": 'say "hi" now'}),
    ),
    _lfm2(
        "seed/braces-and-escaped-quotes",
        r'[write(path="a.json", content="{\"a\": 1}")]',
        "JSON in a string",
        ("write", {"path": "a.json", "content": '{"a": 1}'}),
    ),
    _lfm2(
        "seed/json-document",
        f'[write(path="a.json", content={quoted(_JSON_FILE)})]',
        "a JSON file",
        ("write", {"path": "a.json", "content": _JSON_FILE}),
    ),
    _lfm2(
        "seed/single-quotes",
        "[bash(command=\"echo 'hello world'\")]",
        "quotes of the other kind",
        ("bash", {"command": "echo 'hello world'"}),
    ),
    _lfm2(
        "seed/awk",
        "[bash(command=\"awk '{print $1}' data.csv\")]",
        "quotes and braces",
        ("bash", {"command": "awk '{print $1}' data.csv"}),
    ),
    _lfm2(
        "seed/python-code",
        f'[write(path="plot.py", content={quoted(PLOT)})]',
        "a Python file",
        ("write", {"path": "plot.py", "content": PLOT}),
    ),
    _lfm2(
        "seed/two-calls",
        r"""[write(path="g.json", content="{\"k\": \"v\"}"), bash(command="echo 'done'")]""",
        "two calls",
        ("write", {"path": "g.json", "content": '{"k": "v"}'}),
        ("bash", {"command": "echo 'done'"}),
    ),
    # Strings.
    _lfm2(
        "str/brackets",
        '[write(path="]", content=")]}[({"), bash(command="}")]',
        "brackets in strings",
        ("write", {"path": "]", "content": ")]}[({"}),
        ("bash", {"command": "}"}),
    ),
    _lfm2(
        "str/backslash-at-end",
        r'[write(path="C:\\dir\\", content="x")]',
        "a backslash before the quote",
        ("write", {"path": "C:\\dir\\", "content": "x"}),
    ),
    _lfm2(
        "str/triple-quotes",
        '[write(path="a.py", content="""def f():\n    return "x"\n""")]',
        "triple quotes",
        ("write", {"path": "a.py", "content": 'def f():\n    return "x"\n'}),
    ),
    _lfm2(
        "str/adjacent",
        '[bash(command="make " "test")]',
        "adjacent literals",
        ("bash", {"command": "make test"}),
    ),
    _lfm2(
        "str/octal",
        r'[bash(command="echo \033[31mred")]',
        "an octal escape",
        ("bash", {"command": "echo \x1b[31mred"}),
    ),
    _lfm2(
        "str/raw-newline-and-tab",
        '[write(path="Makefile", content="all:\n\tmake")]',
        "a newline and a tab as themselves",
        ("write", {"path": "Makefile", "content": "all:\n\tmake"}),
    ),
    _lfm2(
        "str/apostrophe",
        "[search(query='It's late', limit=2)]",
        "an apostrophe that is not escaped",
        ("search", {"query": "It's late", "limit": 2}),
    ),
    _lfm2(
        "str/nested-quotes",
        "[bash(command='sed -n '1,9p' f.py', timeout=5)]",
        "quotes that are not escaped",
        ("bash", {"command": "sed -n '1,9p' f.py", "timeout": 5}),
    ),
    _lfm2(
        "str/comment",
        '[search(query="x", # that\'s it\n limit=1)]',
        "a comment with a quote",
        ("search", {"query": "x", "limit": 1}),
    ),
    # Numbers and containers.
    _lfm2(
        "num/coordinates",
        '[bash(command="N=1 make"), move(lat=48.8566, lon=2.3522)]',
        "floats after a string with =",
        ("bash", {"command": "N=1 make"}),
        ("move", {"lat": 48.8566, "lon": 2.3522}),
    ),
    _lfm2(
        "num/half",
        '[search(query="x=y"), move(lat=10.5)]',
        "a float after a string with =",
        ("search", {"query": "x=y"}),
        ("move", {"lat": 10.5}),
    ),
    _lfm2(
        "num/signs",
        "[move(lat=-5, lon=+7)]",
        "signs",
        ("move", {"lat": -5, "lon": 7}),
    ),
    _lfm2(
        "num/leading-zeros",
        '[get_weather(city="Paris", days=07)]',
        "leading zeros",
        ("get_weather", {"city": "Paris", "days": 7}),
    ),
    _lfm2(
        "num/infinite",
        '[move(lat=1e999), get_weather(city="Paris")]',
        "a number that JSON has not: given back as text, its sibling kept",
        ("get_weather", {"city": "Paris"}),
        content="move(lat=1e999)",
    ),
    _lfm2(
        "box/tuple-and-set",
        '[update(record={"k": ("a", "b")}, tags={"c"})]',
        "a tuple and a set",
        ("update", {"record": {"k": ["a", "b"]}, "tags": ["c"]}),
    ),
    # Names and arguments.
    _lfm2(
        "name/hyphen",
        '[search(query="x", max-results=5)]',
        "an argument's name with a hyphen",
        ("search", {"query": "x", "max-results": 5}),
    ),
    _lfm2(
        "name/keyword",
        '[search(query="x", from="y")]',
        "an argument named like a Python keyword",
        ("search", {"query": "x", "from": "y"}),
    ),
    _lfm2(
        "name/double-star",
        '[search(query="x", **{"max-results": 5})]',
        "arguments in a mapping",
        ("search", {"query": "x", "max-results": 5}),
    ),
    _lfm2(
        "name/positional",
        '[get_weather("Paris", days=3)]',
        "a positional argument of a declared tool",
        ("get_weather", {"city": "Paris", "days": 3}),
    ),
    # What stands where.
    _lfm2(
        "call/bad-sibling",
        '[get_weather(city="Paris"), bash(command=run()), get_weather(city="Rome")]',
        "one call that is no data: given back as text, its siblings kept",
        ("get_weather", {"city": "Paris"}),
        ("get_weather", {"city": "Rome"}),
        content="bash(command=run())",
    ),
    _lfm2(
        "call/json",
        '[{"name": "get_weather", "arguments": {"city": "Paris"}}]',
        "calls as JSON",
        ("get_weather", {"city": "Paris"}),
    ),
    _lfm2(
        "call/bare",
        'get_weather(city="Paris")',
        "a call without the list",
        ("get_weather", {"city": "Paris"}),
    ),
    _turn(
        "turn/second-block",
        'S[write(path="a", content="x")]ES[bash(command="ls")]E',
        "two blocks",
        ("write", {"path": "a", "content": "x"}),
        ("bash", {"command": "ls"}),
    ),
    _turn(
        "turn/text-between",
        'First S[bash(command="ls")]E then S[bash(command="pwd")]E',
        "text between two blocks",
        ("bash", {"command": "ls"}),
        ("bash", {"command": "pwd"}),
        content="First\nthen",
    ),
    _turn(
        "turn/bracket-after",
        'S[bash(command="ls")]E\n[Note] ok',
        "text that starts with a bracket",
        ("bash", {"command": "ls"}),
        content="[Note] ok",
    ),
    _turn(
        "turn/marker-in-prose",
        f'The marker "{_START}" opens a call.',
        "a marker that opens no block",
        content=f'The marker "{_START}" opens a call.',
    ),
    # What models write where their chat template escapes nothing.
    _lfm2(
        "raw/code",
        "[write(path='a.c', content='int main() {\n  printf(\"hi\\n\");\n}\n')]",
        "code as it is: newlines, and a backslash of its own",
        ("write", {"path": "a.c", "content": 'int main() {\n  printf("hi\\n");\n}\n'}),
    ),
    _lfm2(
        "raw/windows-path",
        r'[bash(command="type C:\Users\test\file.txt")]',
        "a path with its backslashes",
        ("bash", {"command": r"type C:\Users\test\file.txt"}),
    ),
    _lfm2(
        "call/lone-object",
        '[get_weather({"city": "Paris", "days": 2})]',
        "the arguments as one object",
        ("get_weather", {"city": "Paris", "days": 2}),
    ),
    Payload(
        "turn/empty-pair",
        f"{_START}{_END}Nothing to do.",
        (),
        "markers with nothing between them",
        "Nothing to do.",
    ),
    *FAMILIES,
)
"""The payloads of ``lfm2-fixed repro`` and of the demo."""
