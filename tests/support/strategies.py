"""Texts for the laws: call lists by several printers, marker-rich soup, damaged outputs, whole turns.

The grammar writers are plain functions of a seed (fast: thousands of texts a second); hypothesis draws
the seed, and the soup character by character.  A failing text is made small by :func:`smallest`.
"""

from __future__ import annotations

import json
import random
import unicodedata
from collections.abc import Callable, Sequence
from typing import Any

from hypothesis import strategies as st

from lfm2_fixed.core.dialects import DIALECTS
from tests.support import DATA

S, E = "<|tool_call_start|>", "<|tool_call_end|>"
PYTHON_START, PYTHON_END = "<|python_start|>", "<|python_end|>"

NAMES = ["f", "g", "w", "get_weather", "_x", "r", "u", "fr", "b", "a.b", "x1", "Set", "print", "search.web_v2"]
ODD_NAMES = ["max-results", "import", "mcp/get", "1st", "a:b", "None", "wetter_für", "ﬁnd", "a.b-c", "class", "true"]
PARAMETERS = ["a", "b", "x", "path", "content", "n", "q", "r", "f", "lat", "_k", "u"]
ODD_PARAMETERS = ["from", "max-n", "in", "größe", "1st", "lambda", "True", "a.b"]

WORDS = [
    "a", "x", "hello world", "It's late", 'say "hi"', "", " ", "\n", "\t", "{alpha: 1}", "[1, 2]", "f(x=1)",
    "), g(y=2)]", ")]", "])", "\\", "\\d+", "C:\\dir\\", "\\n", "\\x41", "'", '"', "''", "'''", '""', '"""',
    "#", "# no comment", ",", ":", "=", "a=1, b=2", "==", "**", "<", "<|", "<|tool_call", "<|tool_call_end",
    "<|im_", "|>", "é", "世界", "😀", "e\u0301", "\u2028", "\x00", "\x07", "\x1b[31m", "\x7f", "\u00a0", "\ufeff",
    "{", "}", "{{", "sed -n '1,9p' f", "awk '{print $1}' d.csv", "import os\nprint('x')\n",
    '{"k": "v", "l": [1, null]}', "don't", "%s", "http://x/y?z=1&w=2", "x" * 60, "0", "1e5", "None",
]  # fmt: skip

ATOMS = [
    "'", '"', "'''", '"""', "\\", "\\'", '\\"', "\\\\", "\\n", "\\x4", "\\u12", "\\ud83d", "\\ude00", "\\N{",
    "\\N{BULLET}", "\\\n", "[", "]", "(", ")", "{", "}", ",", ", ", ":", ";", "=", "==", "**", "*", "+", "-",
    " ", "\n", "\t", "#", "# x\n", "f", "f(", "f(x=", "g(", "w(a='", "a", "a=", "x=", "b=1", "name", "name(",
    ".", "1", "0", "07", "1e5", "1.", "0x", "_", "e", "j", "True", "null", "None", "r", "rb", "u", "f'", "b'",
    S, E, S + "[", "]" + E, S + "[f(", "<|tool_call_", "<|", "<", "|>", "<|im_end|>", '{"name": "',
    '"arguments": ', '{"', "é", "😀", "\ud83d", "\ude00", "\x00", "it's", "), g(y=", ")]", "')]", "'),",
    "', b=", "\r\n", "foo()", "[]", "()",
]  # fmt: skip
LLAMA_ATOMS = [
    *ATOMS,
    PYTHON_START,
    PYTHON_END,
    PYTHON_START + "[",
    "<|eom|>",
    "<|eot|>",
    "<|python_",
    "[f(",
    "[w(a=",
    "\n[w(",
]


def token_texts() -> list[tuple[str, list[str]]]:
    """The recorded tokenisations: id and pieces."""
    lines = (DATA / "token_pieces.jsonl").read_text(encoding="utf-8").split("\n")
    return [(turn["id"], turn["pieces"]) for turn in map(json.loads, filter(None, lines))]


# ------------------------------------------------------------------ valid Python


class PythonWriter:
    """Writes call lists that CPython reads, in many styles."""

    def __init__(self, rng: random.Random, *, blanks: bool = True, odd: bool = False) -> None:
        self.rng = rng
        self.blanks = blanks and rng.random() < 0.5
        self.odd = odd
        self.plain_strings = rng.random() < 0.15

    # -- tokens

    def gap(self) -> str:
        """Blanks between two tokens."""
        rng = self.rng
        if not self.blanks or rng.random() < 0.6:
            return ""
        return rng.choice(
            [" ", "  ", "\n", "\t", " \\\n", "# it's\n", '# "\n', "# )]\n", "\n# x, y=1\n ", " \f", "\\\n"]
        )

    def comma(self) -> str:
        """A comma with blanks around."""
        return self.gap() + "," + (self.gap() or self.rng.choice([" ", " ", ""]))

    def word(self) -> str:
        """A string's value."""
        rng = self.rng
        value = "".join(rng.choice(WORDS) for _ in range(rng.choice((1, 1, 1, 2, 3, 5))))
        if rng.random() < 0.1:
            value += "".join(
                chr(rng.choice((rng.randrange(1, 128), rng.randrange(0xD800), rng.randrange(0xE000, 0x110000))))
                for _ in range(3)
            )
        return value.replace("\r", "").replace(E, "")

    def string(self) -> str:
        """A string in source form: one literal or several adjacent ones."""
        if self.plain_strings:
            return repr(self.word())
        count = self.rng.choice((1, 1, 1, 1, 1, 2, 3))
        between = self.rng.choice(("", " ", " ", "\n")) if not self.blanks else None
        parts = [self.literal(self.word()) for _ in range(count)]
        text = parts[0]
        for part in parts[1:]:
            gap = self.gap() if between is None else between
            if not gap and part[0] not in "'\"":
                gap = " "  # `''r''` is fine, but a quote followed by the same quote may make a triple one
            if not gap and part[0] == text[-1]:
                gap = " "
            text += gap + part
        return text

    def literal(self, value: str) -> str:
        """One literal for ``value`` (or nearly: the oracle reads the text, not the value)."""
        rng = self.rng
        style = rng.random()
        if style < 0.25:
            return repr(value)
        if style < 0.4:
            return json.dumps(value, ensure_ascii=rng.random() < 0.3 and value.isascii())
        quote = rng.choice(("'", '"', "'''", '"""'))
        prefix = rng.choice(("", "", "", "u", "U", "r", "R", "f", "F", "rf", "fR", "Fr"))
        raw, fstring = "r" in prefix.lower(), "f" in prefix.lower()
        if fstring:
            value = value.replace("{", "{{").replace("}", "}}")
        if raw:
            # What a raw literal cannot hold is left out.
            value = value.replace("\x00", "").replace(quote[0], "")
            if len(quote) == 1:
                value = value.replace("\n", "")
            if (len(value) - len(value.rstrip("\\"))) % 2:
                value += "."
            if rng.random() < 0.2:  # both characters stay, and neither ends the literal
                value += "\\" + rng.choice(("\n", quote[0], "\\", "\ny"))
            return prefix + quote + value + quote
        text = "".join(self.character(char, quote, fstring) for char in value)
        if not fstring and rng.random() < 0.2:
            text += rng.choice(("\\\n", "\\d", "\\/", "\\ ", "\\8", "\\0", "\\1011", "\\e", "\\$"))
        return prefix + quote + text + quote

    def character(self, char: str, quote: str, fstring: bool) -> str:
        """One character inside a literal, as itself or as one of its escapes."""
        rng, code = self.rng, ord(char)
        must = char in ("\\", quote[0], "\x00") or (char == "\n" and len(quote) == 1)
        if fstring and char in "{}":
            return char
        if not must and rng.random() < 0.9:
            return char
        forms = [f"\\U{code:08x}"]
        if code < 0x10000:
            forms.append(f"\\u{code:04X}")
        if code < 0x100:
            forms += [f"\\x{code:02x}", f"\\{code:03o}"]
        if char in "\a\b\f\n\r\t\v":
            forms += ["\\" + "abfnrtv"["\a\b\f\n\r\t\v".index(char)]] * 4
        if char in "\\'\"":
            forms += ["\\" + char] * 6
        name = unicodedata.name(char, "")
        if name:
            forms.append(f"\\N{{{rng.choice((name, name.lower()))}}}")
        return rng.choice(forms)

    def number(self) -> str:
        """A number in one of Python's forms."""
        rng = self.rng
        digits = str(rng.choice((0, 1, 7, 9, 10, 255, rng.randrange(10**6), rng.randrange(10**25))))
        kind = rng.randrange(12)
        if kind < 4:
            text = digits
        elif kind == 4:
            text = f"{int(digits):_}"
        elif kind == 5:
            text = rng.choice((hex, oct, bin))(int(digits))
            text = rng.choice((text, text.upper(), text[:2] + "_" + text[2:]))
        elif kind == 6:
            text = rng.choice(("00", "0_0", "0", "0000"))
        elif kind == 7:
            text = digits + "." + rng.choice(("", "0", "5", "25", "000001", "1_0"))
        elif kind == 8:
            text = "." + digits
        elif kind == 9:
            text = digits[:4] + rng.choice(("e5", "E+3", "e-7", "e1_0", ".5e2", ".e0", "e16", "e-400", "e22"))
        elif kind == 10:
            text = repr(rng.choice((rng.random(), rng.uniform(-1e20, 1e20), rng.random() * 1e-10)))
        else:
            text = "0" * rng.randrange(3) + digits + rng.choice((".5", "e1"))
        if text[0] not in "-+" and rng.random() < 0.25:
            text = rng.choice("-+") + rng.choice(("", "", " ")) + text
        return text

    def key(self) -> str:
        """A dict key."""
        if self.rng.random() < 0.8:
            return self.string()
        return self.rng.choice((self.number, lambda: self.rng.choice(("True", "None", "false", "(1)", "('k')"))))()

    def value(self, depth: int = 0) -> str:
        """A literal."""
        rng = self.rng
        kind = rng.random()
        if kind < 0.42:
            return self.string()
        if kind < 0.58:
            return self.number()
        if kind < 0.68:
            return rng.choice(("True", "False", "None", "true", "false", "null"))
        if depth > 3:
            return rng.choice(("[]", "()", "{}", "[ ]", "{\n}"))
        if kind < 0.72:
            return "(" + self.gap() + self.value(depth + 1) + self.gap() + ")"
        opener, closer = rng.choice(("[]", "[]", "()", "{}", "{}", "{}"))
        count = rng.choice((0, 1, 1, 2, 3))
        if opener == "{" and count and rng.random() < 0.75:
            items = [
                self.key() + self.gap() + ":" + (self.gap() or rng.choice((" ", ""))) + self.value(depth + 1)
                for _ in range(count)
            ]
        elif opener == "{" and count:
            items = [rng.choice((self.string, self.number))() for _ in range(count)]
        else:
            items = [self.value(depth + 1) for _ in range(count)]
        text = self.comma().join(items)
        if items and (rng.random() < 0.2 or (opener == "(" and count == 1)):
            text += self.gap() + ","
        return opener + self.gap() + text + self.gap() + closer

    # -- calls

    def call(self, tools: dict[str, list[str]] | None = None) -> str:
        """A call whose arguments are literals."""
        rng = self.rng
        name = rng.choice(ODD_NAMES if self.odd and rng.random() < 0.4 else NAMES)
        parameters = list(PARAMETERS) + (ODD_PARAMETERS if self.odd else [])
        rng.shuffle(parameters)
        chosen = parameters[: rng.choice((0, 1, 1, 2, 2, 3, 4))]
        arguments: list[str] = []
        if tools and tools.get(name) and rng.random() < 0.5:
            given = rng.randrange(len(tools[name]) + 1)
            arguments += [self.value() for _ in range(given)]
            chosen = [parameter for parameter in chosen if parameter not in tools[name][:given]]
        for parameter in chosen:
            arguments.append(parameter + self.gap() + "=" + self.gap() + self.value())
        if rng.random() < 0.08:
            items = ", ".join(f"{self.literal(f'key{i}')}: {self.value(2)}" for i in range(rng.randrange(3)))
            arguments.append("**" + self.gap() + "{" + items + "}")
        text = self.comma().join(arguments)
        if arguments and rng.random() < 0.15:
            text += self.gap() + ","
        return f"{name}({self.gap()}{text}{self.gap()})"

    def calls(self, tools: dict[str, list[str]] | None = None, most: int = 4) -> str:
        """A list of calls with its brackets."""
        count = self.rng.choice([n for n in (1, 1, 1, 2, 2, 3, 4) if n <= most])
        text = self.comma().join(self.call(tools) for _ in range(count))
        if self.rng.random() < 0.1:
            text += self.gap() + ","
        return f"[{text}{self.gap()}]"


def make_tools(rng: random.Random) -> dict[str, list[str]] | None:
    """Declared tools: none, or some of the names with some parameters."""
    if rng.random() < 0.4:
        return None
    names = rng.sample(NAMES, rng.randrange(1, 7))
    return {name: rng.sample(PARAMETERS, rng.randrange(5)) for name in names}


def typed(rng: random.Random) -> dict[str, Any] | None:
    """Declared tools, half of the time with the types of their parameters: they decide about a lone object."""
    tools = make_tools(rng)
    if tools is None or rng.random() < 0.5:
        return tools
    kinds = ("string", "string", "object", "array", "integer", {})
    return {name: {parameter: rng.choice(kinds) for parameter in parameters} for name, parameters in tools.items()}


# ------------------------------------------------------------------ what models write, and worse


def template_string(rng: random.Random) -> str:
    """A string as a template writes it: single quotes, nothing escaped."""
    return "'" + "".join(rng.choice(WORDS) for _ in range(rng.randrange(1, 4))) + "'"


MALFORMED_VALUES = [
    "foo()", "foo(1, b=[2, 3])", "1 + 2", "x[0]", 'b"x"', "1j", "--5", "-True", 'f"{x}"', "1e999", "x", "x.y",
    "NaN", "-Infinity", "lambda: 0", "1 if x else 2", "[x for x in y]", "{**{}}", "(y := 1)", "1__0", "12abc",
    "...", "not x", "{'k': 1, 'k': 2}", "[1, foo()]", "{'a': [1, x]}", "'a' + 'b'", "'a'.upper()", "'%s' % x",
    "2024-01-15", "10:30", "[1,,2]", "", "*[1]", "0x", "(1 2)", "{[1]: 2}",
]  # fmt: skip


def json_object(rng: random.Random) -> str:
    """Arguments as an object, by two writers."""
    values = (rng.choice(WORDS), 1, None, [rng.choice(WORDS), 2], {"k": rng.choice(WORDS)})
    items = {rng.choice(PARAMETERS): rng.choice(values) for _ in range(rng.randrange(3))}
    return json.dumps(items, ensure_ascii=rng.random() < 0.3) if rng.random() < 0.7 else str(items)


def json_call(rng: random.Random, name: str) -> str:
    """The JSON form, in the shapes that models write: keys in any order, aliases, OpenAI's own, and what is none."""
    arguments = json_object(rng)
    if rng.random() < 0.15:
        arguments = json.dumps(rng.choice((arguments, "a=1", "")))
    key = rng.choice(("arguments", "arguments", "parameters", "args", "params", "kwargs", "input", "x"))
    items = [f'"{rng.choice(("name", "name", "name", "id"))}": "{name}"', f'"{key}": {arguments}']
    if rng.random() < 0.2:
        items.append(rng.choice(('"type": "function"', '"id": 1', '"id": {"a": 1}', '"name": "f"', '"args": {}')))
    rng.shuffle(items)
    text = "{" + ", ".join(items) + "}"
    return f'{{"type": "function", "function": {text}}}' if rng.random() < 0.15 else text


def loose_call(rng: random.Random, writer: PythonWriter) -> str:
    """A call as models write them: some templates do not escape, some values have no JSON form."""
    kind = rng.random()
    if kind < 0.4:
        return writer.call()
    name = rng.choice(NAMES + ODD_NAMES)
    if kind < 0.5:
        return json_call(rng, name)
    if kind < 0.55:
        return f"{name}({json_object(rng)})"
    arguments = []
    for parameter in rng.sample(PARAMETERS, rng.randrange(4)):
        pick = rng.random()
        if pick < 0.45:
            value = template_string(rng)
        elif pick < 0.55:
            value = "[" + ", ".join(template_string(rng) for _ in range(3)) + "]"
        elif pick < 0.65:
            value = "{" + ", ".join(f"'{rng.choice(WORDS)}': {template_string(rng)}" for _ in range(2)) + "}"
        elif pick < 0.75:
            value = rng.choice(MALFORMED_VALUES)
        elif pick < 0.8:
            value = rng.choice(("07", "0777", "1_", "- 5", "00.5", "1e400"))
        else:
            value = writer.value()
        arguments.append(f"{parameter}={value}" if rng.random() < 0.95 else value)
    return f"{name}({', '.join(arguments)})"


PLAIN_NUMBERS = [
    "1", "-2", "0", "10", "3.5", "-7.25", "2.50", "1e3", "3e-9", "0.0001", "0.00001", "007", "-0", "-0.0", "1_0",
    "123456789012345.5", "12345678901234567.5", "0x1f", "1e999",
]  # fmt: skip
PLAIN_TEXTS = ["", "abc", "it", "x y", "é", "a, b", "k: 1", "(1)", "]", "\\n", "\\\\", "\\'", '\\"', "\\v", "\\x41"]


def plain_value(rng: random.Random, depth: int = 0) -> str:
    """A value as most calls have it: what is taken at once, and what is only nearly that."""
    kind = rng.random()
    if kind < 0.25:
        return rng.choice(PLAIN_NUMBERS)
    if kind < 0.5:
        quote = rng.choice("'\"")
        return quote + rng.choice([*PLAIN_TEXTS, "'" if quote == '"' else '"']) + quote
    if kind < 0.6:
        return rng.choice(("True", "False", "None", "true", "null"))
    comma = rng.choice((", ", ", ", ", ", ",", " ,", ",  "))
    count = 0 if depth > 3 else rng.choice((0, 1, 2, 3))
    values = [plain_value(rng, depth + 1) for _ in range(count)]
    if kind < 0.8:
        return f"[{comma.join(values)}{rng.choice(('', '', '', comma))}]"
    colon = rng.choice((": ", ": ", ":", " : "))
    keys = [rng.choice(("'a'", '"a"', "'b'", '"c"', "'d'", '"e"', "'\\n'", "1")) for _ in values]
    return "{" + comma.join(key + colon + value for key, value in zip(keys, values)) + "}"


def plain_call(rng: random.Random) -> str:
    """A call with plain values; names may come twice, or be missing."""
    if rng.random() < 0.1:
        arguments = "{" + f'"{rng.choice(PARAMETERS)}": {plain_value(rng)}' + "}"
        return f'{{"name": "{rng.choice(NAMES)}", "{rng.choice(("arguments", "parameters"))}": {arguments}}}'
    comma = rng.choice((", ", ", ", ",", " , "))
    names = [rng.choice(PARAMETERS) + "=" if rng.random() < 0.9 else "" for _ in range(rng.choice((0, 1, 2, 2, 3)))]
    return f"{rng.choice(NAMES)}({comma.join(name + plain_value(rng) for name in names)})"


def make_block(rng: random.Random) -> str:
    """What stands between the markers."""
    if rng.random() < 0.3:
        calls = rng.choice((", ", ",", "; ", "\n")).join(plain_call(rng) for _ in range(rng.choice((1, 1, 2, 3))))
        return f"[{calls}]" if rng.random() < 0.8 else calls
    writer = PythonWriter(rng, odd=rng.random() < 0.3)
    calls = [loose_call(rng, writer) for _ in range(rng.choice((1, 1, 2, 3)))]
    if rng.random() < 0.75:
        text = "[" + rng.choice((", ", ",", ",\n", "\n", ", ")).join(calls) + "]"
        if rng.random() < 0.1:
            text += rng.choice((", ", "; ", "\n")) + "[" + loose_call(rng, writer) + "]"
        return text
    return rng.choice((", ", "; ", "\n", "")).join(calls)


def make_turn(rng: random.Random, dialect: str) -> str:
    """A whole turn: prose, blocks, echoes, stray markers."""
    start, end = (S, E) if dialect == "lfm2" else (PYTHON_START, PYTHON_END)
    parts: list[str] = []
    if dialect == "llama4" and rng.random() < 0.1:
        answers = [json_call(rng, rng.choice(NAMES)) for _ in range(rng.choice((1, 1, 2)))]
        text = rng.choice((", ", "; ", "\n", " ")).join(answers)
        parts.append(rng.choice(("", "", "\n", "So: ")) + (f"[{text}]" if rng.random() < 0.3 else text))
    elif dialect == "llama4" and rng.random() < 0.6:
        writer = PythonWriter(rng)
        parts.append(
            rng.choice(("", "", "\n", " ", "Let me check.\n", "So: "))
            + writer.calls()
            + rng.choice(("", "", "\n", "<|eom|>", "<|eot|>", " ok", "\nDone."))
        )
    for _ in range(rng.choice((0, 1, 1, 1, 2, 3)) if parts or dialect == "llama4" else rng.choice((1, 1, 1, 2, 3))):
        if rng.random() < 0.4:
            parts.append(
                rng.choice(("", "\n", " ")) + "".join(rng.choice(WORDS) for _ in range(2)) + rng.choice(("", "\n", " "))
            )
        block = make_block(rng)
        parts.append(
            start + rng.choice(("", "", "", "\n", " ")) + block + rng.choice((end, end, end, end, "", "\n" + end))
        )
        if rng.random() < 0.15:
            parts.append(rng.choice(("", "\n")) + block + rng.choice((end, end, "")))
        if rng.random() < 0.1:
            parts.append(rng.choice((end, start, start + " ", "<|im_end|>", start[:9], "<")))
    if rng.random() < 0.3:
        parts.append(
            rng.choice(("\n", "")) + rng.choice(("Done.", "[Note] ok", "<b>", " ", "<|im_end|>", "\n\nIs that all?\n"))
        )
    return "".join(parts)


def damage(rng: random.Random, text: str, other: Callable[[], str], dialect: str) -> str:
    """``text`` cut, spliced, doubled, or with characters deleted, inserted, changed or swapped."""
    atoms = ATOMS if dialect == "lfm2" else LLAMA_ATOMS
    for _ in range(rng.choice((1, 1, 1, 2, 3, 6))):
        at = rng.randrange(len(text) + 1)
        to = min(len(text), at + rng.choice((1, 1, 1, 2, 5, 20)))
        kind = rng.randrange(9)
        if kind == 0:
            text = text[:at]
        elif kind == 1:
            text = text[:at] + text[to:]
        elif kind == 2:
            text = text[:at] + rng.choice(atoms) + text[at:]
        elif kind == 3:
            text = text[:at] + rng.choice(atoms) + text[to:]
        elif kind == 4:
            text = text[:at] + text[at:to][::-1] + text[to:]
        elif kind == 5:
            text = text[:at] + text[at:to] * 2 + text[to:]
        elif kind == 6:
            second = other()
            text = text[:at] + second[rng.randrange(len(second) + 1) :]
        elif kind == 7:
            text = text[at:]
        else:
            quotes = [i for i, char in enumerate(text) if char in "'\"\\,()[]{}="]
            if quotes:
                at = rng.choice(quotes)
                text = text[:at] + rng.choice(("", "'", '"', "\\", ",", ")", "]", "(", "[")) + text[at + 1 :]
    return text


# ------------------------------------------------------------------ where a string ends

# What decides whether a quote closes stands behind it: a comment, another literal, an expression, a slip.
CODE = [
    "it's", "a", "", "x\ny", "def f(x):\n    return x['a']\n", 'print("it\'s")\n', "a = ['b', \"c\"]\n",
    "d = {'e': 'f'}", 'printf("%d\\n");\n', "sed -n '1,9p' f", "re.split(r'\\t|\\b', s)\n", "C:\\Users\\new",
    "[\n    path('a'),\n]\n", '"""Doc."""\ndef g(): ...', "SELECT 'a', 'b' FROM t", "x = 'a', y='b'",
    "f(a='b'), g(c='d')", "the boys'", "'", '"', "\\", "# don't\n", "\\ud83d\\ude00", "find . -name '*' -type f",
    "k': 'v", "), g(y='z')",
]  # fmt: skip
BEHIND = [
    " 'y'", ' "z"', "\n'y'", " # ok\n", " # it's\n", " # ok\n'y'", " # \"ok\n 'y'", "[:5]", "[1:2, :]", ".upper()",
    " + 'b'", ' + "z"', " + 'b\n'", " % x", " - 'x'", " if y else 'z'", " == 'x'", "'", "''", '"', ",", " x",
    " b='c'", ")", "]", "}", " 'b\n", ' "b\n', "b\n", " 'b' # \n", " for i in y if i == 'q'", "\\", "\\\n",
    " f'{x}'", " rb'x'", " r'x\\\ny'",
]  # fmt: skip
# What a look-ahead passes in the other quotes or, where there are none, in these, whether or not it then fails.
PASSED = [" 'b\n", " 'b'", " # ok\n", " # ok\n", " + 'z'", " + 'b\n'", ' + "z"', ' + "z"', ' "z"', " x"]
SWAPPED = str.maketrans("'\"", "\"'")
KEYS = [
    "'k'", '"k"', "'a b'", '"\ny', '"\ny: z"', "'k\n'", "k", "1", "'it's'", "'k", '"k', "'' 'k'", "None", "'k' 'l\n'",
]  # fmt: skip


class QuoteWriter:
    """Writes turns dense with quotes that may or may not close, for the rule that decides it."""

    def __init__(self, rng: random.Random, dialect: str) -> None:
        self.rng = rng
        self.start, self.end = (S, E) if dialect == "lfm2" else (PYTHON_START, PYTHON_END)
        # In most turns nearly all strings are short and in the same quotes.  What a look-ahead that fails has passed
        # by then reaches far, and what is read there afterwards shows whether it matters.
        self.quotes = rng.choice((("'",), ('"',), ("'", "'", '"', '"', "'''", "r'", 'f"')))
        self.words = ["a", "x y", "", "a\n", "1, 2"]
        self.behind = PASSED
        if len(self.quotes) > 1:
            self.words = CODE
            self.behind = rng.sample(BEHIND, 4) if rng.random() < 0.5 else BEHIND
        elif self.quotes[0] == "'":
            self.behind = [text.translate(SWAPPED) for text in PASSED]

    def value(self, depth: int = 0) -> str:
        """A string with something behind it, or a container of such strings."""
        rng = self.rng
        kind = rng.random()
        if kind < 0.7 or depth > 1:
            quote = rng.choice(self.quotes)
            late = rng.choice(("", "", "", quote[-1] + rng.choice(self.words), quote[-1] + rng.choice(self.behind)))
            text = quote + rng.choice(self.words) + late + quote.lstrip("rf")
            return text + (rng.choice(self.behind) if rng.random() < 0.6 else "")
        if kind < 0.78:
            return rng.choice(MALFORMED_VALUES)
        count = rng.randrange(1, 4)
        values = [self.value(depth + 1) for _ in range(count)]
        if kind < 0.88:
            return "[" + self.comma().join(values) + rng.choice(("]", "]", "]", ",]", ""))
        items = (rng.choice(KEYS) + rng.choice((": ", ": ", ":", "")) + value for value in values)
        return "{" + self.comma().join(items) + rng.choice(("}", "}", "}", ",}", ""))

    def comma(self) -> str:
        """A comma, mostly."""
        return self.rng.choice((", ", ", ", ", ", ",", ",\n", ", # it's\n", " "))

    def call(self) -> str:
        """A call; its name, its signs and its parenthesis may be wrong."""
        rng = self.rng
        sign = rng.choice(("=", "=", "=", "=", "=", " = ", "==", ""))
        values = [self.value() for _ in range(rng.choice((1, 1, 2, 2, 3)))]
        if rng.random() < 0.2:
            values = self.look_ahead_that_fails()
        arguments = [rng.choice("abxy") + sign + value for value in values]
        return f"{rng.choice('fgw')}({self.comma().join(arguments)}{rng.choice((')', ')', ')', ')', ''))}"

    def look_ahead_that_fails(self) -> list[str]:
        """A quote behind which a look-ahead meets a string that may not end, and a string that needs one, too.

        What was passed behind the first must not show in what becomes of the second.  Or a dict in which that
        string stands for a key.
        """
        rng = self.rng
        first = '"' + rng.choice(("a", "x", "")) + '"' + rng.choice(PASSED) + '"'
        second = '"' + rng.choice(("a", "x", "")) + '"' + rng.choice(PASSED)
        values = [first, second]
        if rng.random() < 0.4:
            # Quotes that are not the literal's first are judged by other rules, which must pass keys, too.
            first = '"a"' + rng.choice(("b", " b", "")) + '"'
            values = ["{'k': " + first + ", " + rng.choice(KEYS).translate(SWAPPED) + ": " + second + "}"]
        return values if rng.random() < 0.5 else [value.translate(SWAPPED) for value in values]

    def turn(self) -> str:
        """One to three blocks, often without an end between them, now and then with one slip."""
        rng = self.rng
        text = ""
        for _ in range(rng.choice((1, 1, 2, 3))):
            calls = self.comma().join(self.call() for _ in range(rng.choice((1, 1, 2))))
            text += self.start + (f"[{calls}]" if rng.random() < 0.8 else calls)
            text += rng.choice((self.end, self.end, "", "", "\n"))
        return damage(rng, text, lambda: text, "lfm2") if rng.random() < 0.2 else text


# ------------------------------------------------------------------ hypothesis strategies

seeds = st.integers(0, 2**48)
dialects = st.sampled_from(["lfm2", *DIALECTS])


def kin(dialect: str) -> str:
    """The dialect, of the two that the writers here know, whose rules it shares."""
    return "llama4" if DIALECTS[dialect].bare_lists else "lfm2"


def translated(dialect: str, text: str) -> str:
    """A text of its kin with its own markers."""
    row, known = DIALECTS[dialect], DIALECTS[kin(dialect)]
    ends = [row.ends[min(number, len(row.ends) - 1)] for number in range(len(known.ends))]
    for theirs, own in zip(known.markers, (row.start, *ends)):
        text = text.replace(theirs, own)
    return text


def from_seed(write: Callable[[random.Random], Any]) -> st.SearchStrategy[Any]:
    """A strategy of ``write``'s results."""
    return seeds.map(lambda seed: write(random.Random(seed)))


def soup(dialect: str) -> st.SearchStrategy[str]:
    """Marker-rich soup: atoms of the grammar in any order, inside an open block more often than not."""
    atoms = ATOMS if dialect == "lfm2" else LLAMA_ATOMS
    heads = (
        ["", S + "[f(x=", S + "[f(x='", S + "[", S, S + '[{"name": "f", "arguments": {"a": ']
        if dialect == "lfm2"
        else ["", "[f(x=", "[f(x='", "[", PYTHON_START, "[f("]
    )
    body = st.lists(st.sampled_from(atoms), max_size=25).map("".join)
    return st.tuples(st.sampled_from(heads), body).map("".join)


def small_soup(dialect: str) -> st.SearchStrategy[str]:
    """Soup over a handful of characters: the quote rule's own alphabet, dense."""
    head = S + "[f(a='" if dialect == "lfm2" else "[f(a='"
    tail = st.sampled_from(["", "')]", "]", E if dialect == "lfm2" else "<|eom|>"])
    return st.tuples(st.just(head), st.text(alphabet="'\"\\,()[]{}=:;#\n xg1<", max_size=20), tail).map("".join)


def texts(dialect: str) -> st.SearchStrategy[str]:
    """Texts of every kind for laws that hold for all texts."""

    def damaged(rng: random.Random) -> str:
        return damage(rng, make_turn(rng, dialect), lambda: make_turn(rng, dialect), dialect)

    arbitrary = st.text(alphabet=st.characters(), max_size=30)  # surrogates included
    return st.one_of(
        from_seed(lambda rng: make_turn(rng, dialect)),
        from_seed(damaged),
        from_seed(damaged),
        from_seed(lambda rng: QuoteWriter(rng, dialect).turn()),
        from_seed(lambda rng: QuoteWriter(rng, dialect).turn()),
        soup(dialect),
        small_soup(dialect),
        arbitrary.map(lambda text: (S + "[f(x='" if dialect == "lfm2" else "[f(x='") + text),
        arbitrary,
    )


@st.composite
def any_input(draw: st.DrawFn) -> tuple[str, str, dict[str, Any] | None]:
    """A dialect, a text of any kind and tools or none."""
    dialect = draw(dialects)
    return dialect, translated(dialect, draw(texts(kin(dialect)))), typed(random.Random(draw(seeds)))


@st.composite
def quote_turns(draw: st.DrawFn) -> tuple[str, str, dict[str, Any] | None]:
    """A dialect, a turn of strings that may or may not close, and tools or none."""
    rng = random.Random(draw(seeds))
    dialect = draw(dialects)
    return dialect, translated(dialect, QuoteWriter(rng, kin(dialect)).turn()), typed(rng)


@st.composite
def python_lists(draw: st.DrawFn) -> tuple[str, str, dict[str, list[str]] | None]:
    """A dialect, a call list in Python's syntax, and tools or none."""
    rng = random.Random(draw(seeds))
    tools = make_tools(rng)
    return draw(dialects), PythonWriter(rng).calls(tools), tools


# ------------------------------------------------------------------ small failing texts


def smallest(text: str, fails: Callable[[str], bool], tries: int = 400) -> str:
    """A short text that still fails, found by deleting ever smaller pieces."""
    size = max(1, len(text) // 2)
    while size and tries > 0:
        start, shrunk = 0, False
        while start < len(text) and tries > 0:
            shorter = text[:start] + text[start + size :]
            tries -= 1
            if fails(shorter):
                text, shrunk = shorter, True
            else:
                start += size
        if not shrunk or size > 1:
            size = size // 2 if not shrunk or size > 1 else size
        if size == 1 and not shrunk:
            break
    return text


def check(text: str, law: Callable[[str], None], context: Sequence[Any] = ()) -> None:
    """Run ``law`` on ``text``; on failure report the smallest text that breaks it too."""
    try:
        law(text)
        return
    except Exception as error:
        kind = type(error)

    def fails(candidate: str) -> bool:
        try:
            law(candidate)
        except kind:
            return True
        except Exception:
            return False
        return False

    small = smallest(text, fails)
    try:
        law(small)
    except Exception as error:
        raise AssertionError(f"law broken by {small!r} {context!r}: {error!r}") from error
    law(text)
