"""Texts for ``scripts/fuzz --long``: exhaustive bodies, mutants, splices, and the kinds that readers get wrong."""

from __future__ import annotations

import json
import random
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import Any

S, E = "<|tool_call_start|>", "<|tool_call_end|>"
PS, PE = "<|python_start|>", "<|python_end|>"


def _tool(name: str, **parameters: str) -> dict[str, Any]:
    properties = {parameter: {"type": kind} for parameter, kind in parameters.items()}
    return {"type": "function", "function": {"name": name, "parameters": {"type": "object", "properties": properties}}}


TOOLS = [
    _tool("f", a="string", b="array", c="integer"),
    _tool("g", x="object", y="string"),
    _tool("run", cmd="string"),
    _tool("write_file", path="string", content="string"),
    _tool("now"),
]


@dataclass(frozen=True)
class Case:
    """A text, its dialect, and whether the request declares ``TOOLS``."""

    text: str
    dialect: str = "lfm2"
    declared: bool = False

    def with_text(self, text: str) -> Case:
        """The same with another text."""
        return replace(self, text=text)

    @property
    def lone_object(self) -> bool:
        """Whether a call may have one positional object, which is no Python call's meaning (contract 5)."""
        return re.search(r"\(\s*\{", self.text) is not None


# ---- exhaustive bodies --------------------------------------------------------------------------

# Fourteen symbols decide where a string ends; a newline and a comment sign stand for what a look-ahead may pass.
SYMBOLS = ("'", '"', "\\", "\n", " ", ",", ")", "]", "}", ":", "b=", "x", "#", "{")
CONTEXTS = (
    (S + "[f(a='{}')]" + E, "lfm2"),
    (S + "[f(a='{}", "lfm2"),
    (S + "[f(a=\"u\", b={}), g(y='v')]" + E, "lfm2"),
    (S + "[f(a={{'k': '{}'}}), g()]" + E, "lfm2"),
    (S + "[f(b=[\"x\", '{}\"]), g(y='v')]" + E, "lfm2"),
    (S + "[f(a='{}')]" + S + "[g(y='It's late')]" + E, "lfm2"),
    (S + '[{{"name": "f", "arguments": {{"a": "{}"}}}}]' + E, "lfm2"),
    ("[f(a='{}'), g(y=\"v\")]", "llama4"),
)


def exhaustive(length: int, share: int, shares: int) -> Iterator[Case]:
    """Every body of up to ``length`` symbols in every context, in an order that any part of is a fair sample.

    With ``shares`` processes, each takes its share of them.
    """
    base = len(SYMBOLS)
    bodies = sum(base**size for size in range(length + 1))
    total = bodies * len(CONTEXTS) * 2
    step = 1_000_003  # a prime that divides no total here: a walk over all numbers that jumps about
    for number in range(share, total, shares):
        index = number * step % total
        index, declared = divmod(index, 2)
        index, context = divmod(index, len(CONTEXTS))
        size = 0
        while index >= base**size:
            index -= base**size
            size += 1
        body = ""
        for _ in range(size):
            index, symbol = divmod(index, base)
            body += SYMBOLS[symbol]
        frame, dialect = CONTEXTS[context]
        text = frame.replace("{{", "\0").replace("}}", "\1").replace("{}", body)
        yield Case(text.replace("\0", "{").replace("\1", "}"), dialect, bool(declared))


# ---- whole turns --------------------------------------------------------------------------------

CODE = (
    "def f(x):\n    return x['a']\n", "print(\"it's\")\n", "a = ['b', \"c\"]\nd = {'e': 'f'}\n",
    "if x == 'y':\n\tpass", 'printf("%d\\n", x);\n', "echo 'done' && ls \"$HOME\"", "sed -n '1,9p' f",
    "re.split(r'\\t|\\b', s)\n", "C:\\Users\\new", "paths = [\n    path('a'),\n    path('b'),\n]\n",
    '"""Doc."""\ndef g(): ...\n', "SELECT 'a', 'b' FROM t", "x = 'a', y='b'", "f(a='b'), g(c='d')\n",
    "\\frac{a}{b} \\text{it's}", "find . -name '*' -type f", "{'k': 'v', \"n\": [1, 2]}", "don't", "a", "", "'", '"',
    "\\", "x\\", "lambda s: s['k'](1)  # it's\n", "# don't\ny = \"z\"\n", "\ud83d\ude00 \\ud83d\\ude00",
    "<a href='b'>",
)  # fmt: skip
BEHIND = (
    "", "", "", "", " 'y'", " \"z\"", "\n'y'", " # ok\n", " # it's\n", " # ok\n'y'", "[:5]", "[1:2, :]", ".upper()",
    " + 'b'", ' + "b"', " % x", " - 'x'", " if y else 'z'", " in x", " == 'x'", "'", "''", '"', ",", ", ,", " x",
    " b='c'", ")", "]", "}", " 'b\n", ' "b\n', " for i in y if i == 'q'", "\\", "\\\n", " f'{x}'", " rb'x'",
)  # fmt: skip
VALUES = (
    "1", "-2.5", "True", "null", "1e999", "foo()", "blue", "...", "-x", "NaN", "", "[]", "{}", "()", "(1,)", "{1, 2}",
    "0x1f", "07", "1_000", "x[0]", "not x", "lambda: 0", "b'x'", "f'{x}'", "f'x'", "'a' 'b'", "r'x\\\ny' 'z'", "*x",
    "1j", "--5", "(yield 'x')",
)  # fmt: skip
NAMES = ("f", "g", "run", "write_file", "now", "h", "a.b", "max-n", "get")
PARAMETERS = ("a", "b", "c", "x", "y", "cmd", "path", "content", "q", "from")


class Turns:
    """Random turns of the kinds that readers get wrong."""

    def __init__(self, rng: random.Random, dialect: str) -> None:
        self.rng = rng
        self.llama = dialect == "llama4"

    def pick(self, choices: Any) -> Any:
        return self.rng.choice(choices)

    def literal(self, text: str | None = None) -> str:
        """A string: raw in quotes, or by an escaping writer, with something behind it now and then."""
        rng = self.rng
        text = self.pick(CODE) if text is None else text
        if rng.random() < 0.3:
            text += self.pick(CODE)
        style = rng.randrange(10)
        if style < 3:
            made = "'" + text + "'"
        elif style < 6:
            made = '"' + text + '"'
        elif style == 6:
            made = repr(text)
        elif style == 7:
            made = json.dumps(text, ensure_ascii=rng.random() < 0.5)
        elif style == 8:
            quote = self.pick(('"""', "'''"))
            made = quote + text + quote
        else:
            made = self.pick(("r", "f", "u", "b", "Rb", "fr", "F")) + "'" + text + "'"
        return made + (self.pick(BEHIND) if rng.random() < 0.3 else "")

    def value(self, depth: int = 0) -> str:
        rng = self.rng
        kind = rng.random()
        if kind < 0.5 or depth > 2:
            return self.literal()
        if kind < 0.7:
            return str(self.pick(VALUES))
        count = rng.randrange(4)
        if kind < 0.85:
            return (
                "["
                + self.comma().join(self.value(depth + 1) for _ in range(count))
                + self.pick(("]", "]", "]", ",]", ""))
            )
        return (
            "{" + self.comma().join(f"{self.key()}: {self.value(depth + 1)}" for _ in range(count)) + self.pick("}}}}]")
        )

    def key(self) -> str:
        """A dict's key, which may not end on its line, or not at all."""
        return str(
            self.pick(
                ("'k'", '"k"', "'a b'", '"\ny', "'k\n'", "k", "1", "'it's'", "'k", '"k', "'' 'k'", "None", "'\\n'")
            )
        )

    def comma(self) -> str:
        return str(self.pick((", ", ", ", ", ", ",", ",\n", ", # it's\n", " ")))

    def call(self) -> str:
        rng = self.rng
        name = self.pick(NAMES)
        kind = rng.random()
        if kind < 0.08:
            return f"{name}({self.json_object()})"
        if kind < 0.16:
            return self.json_call()
        arguments = []
        for parameter in rng.sample(PARAMETERS, rng.randrange(4)):
            sign = self.pick(("=", "=", "=", "=", "=", " = ", "==", ":", ""))
            arguments.append((parameter + sign if rng.random() < 0.9 else "") + self.value())
        if rng.random() < 0.05:
            arguments.append("**" + self.json_object())
        return (
            f"{name}({self.comma().join(arguments)}{self.pick(('', '', '', ','))}{self.pick((')', ')', ')', ')', ''))}"
        )

    def json_object(self) -> str:
        items = {
            self.pick(PARAMETERS): self.pick((1, None, [1], {"k": "v"}, *CODE)) for _ in range(self.rng.randrange(3))
        }
        return json.dumps(items) if self.rng.random() < 0.7 else str(items)

    def json_call(self) -> str:
        """The JSON form, in all its shapes and with keys in any order."""
        rng = self.rng
        arguments = self.json_object()
        if rng.random() < 0.2:
            arguments = json.dumps(arguments)
        items = [
            f'"name": "{self.pick(NAMES)}"',
            f'"{self.pick(("arguments", "parameters", "args", "input", "x"))}": {arguments}',
        ]
        if rng.random() < 0.2:
            items.append(self.pick(('"type": "function"', '"id": 1', '"id": {"a": 1}', '"name": "f"')))
        rng.shuffle(items)
        text = "{" + ", ".join(items) + "}"
        return f'{{"type": "function", "function": {text}}}' if rng.random() < 0.15 else text

    def block(self) -> str:
        rng = self.rng
        calls = [self.call() for _ in range(rng.choice((1, 1, 2, 2, 3)))]
        text = self.pick((", ", ", ", ",", ",\n", "; ", "\n", " ", "), ")).join(calls)
        return f"[{text}]" if rng.random() < 0.8 else text

    def turn(self) -> str:
        """Prose and blocks, with markers that are missing, doubled or quoted."""
        rng = self.rng
        if rng.random() < 0.05:
            return self.markers()
        start, end = (PS, PE) if self.llama else (S, E)
        parts = []
        if self.llama and rng.random() < 0.7:
            parts.append(
                self.pick(("", "", "\n", "Ok. "))
                + self.block()
                + self.pick(("", "<|eom|>", "<|eot|>", "\nDone.", "; "))
            )
        for _ in range(rng.choice((1, 1, 2, 3)) if not parts else rng.randrange(2)):
            parts.append(
                start + self.pick(("", "", "", "\n", " ")) + self.block() + self.pick((end, end, "", "", "\n" + end))
            )
            if rng.random() < 0.2:
                parts.append(self.pick((" then ", "\nDone.", "'", '"', "`", end, start, "[", "<|im_end|>", "<|tool")))
            if rng.random() < 0.1:
                parts.append(parts[0].replace(start, "").replace(end, "") + self.pick((end, "")))
        return "".join(parts)

    def markers(self) -> str:
        """Markers without a block."""
        start, end = (PS, PE) if self.llama else (S, E)
        atoms = (
            start,
            end,
            "`",
            "'",
            "[",
            "]",
            "[1, 2]",
            "[not a call]",
            "\n",
            " ",
            "f",
            "f(",
            "Done.",
            "{",
            '{"',
            "[]",
            "<|",
            "f(a=1)",
        )
        return "".join(self.pick(atoms) for _ in range(self.rng.randrange(1, 8)))


MARKS = (
    "'",
    '"',
    "\\",
    "\n",
    ",",
    ")",
    "]",
    "(",
    "[",
    "{",
    "}",
    ":",
    "=",
    "#",
    " ",
    ";",
    "'''",
    "''",
    "x",
    "b=",
    "g(",
    "), g(",
    "')",
    S,
    E,
)


def slip(text: str, rng: random.Random) -> str:
    """One slip: a character dropped, doubled, exchanged, added, or turned with the one before it."""
    at = rng.randrange(len(text) + 1)
    kind = rng.randrange(5)
    if kind == 0:
        return text[:at] + text[at + 1 :]
    if kind == 1:
        return text[:at] + text[max(0, at - 1) : at] + text[at:]
    if kind == 2:
        return text[:at] + rng.choice(MARKS) + text[at + 1 :]
    if kind == 3:
        return text[:at] + rng.choice(MARKS) + text[at:]
    return text[: max(0, at - 1)] + text[at : at + 1] + text[max(0, at - 1) : at] + text[at + 1 :]


def valid(rng: random.Random, dialect: str) -> str:
    """A turn without a fault: calls by an escaping writer."""
    calls = []
    for _ in range(rng.choice((1, 2, 2, 3))):
        arguments: dict[str, Any] = {
            parameter: rng.choice(
                (rng.choice(CODE), rng.choice(CODE), 1, [rng.choice(CODE), 2], {"k": rng.choice(CODE)}, True)
            )
            for parameter in rng.sample(PARAMETERS[:8], rng.randrange(4))
        }
        write: Callable[[Any], str] = rng.choice((repr, json.dumps))
        calls.append(
            f"{rng.choice(NAMES[:6])}({', '.join(f'{name}={write(value)}' for name, value in arguments.items())})"
        )
    block = "[" + ", ".join(calls) + "]"
    if dialect == "llama4":
        return rng.choice(("", PS)) + block + rng.choice(("", PE, "<|eom|>"))
    return rng.choice(("", "", "Ok.\n")) + S + block + E + rng.choice(("", "", "\nDone."))


def kinds(seed: int, length: int, share: int, shares: int) -> dict[str, Iterator[Case]]:
    """Texts by kind; all but the exhaustive ones never end."""

    def forever(name: str, write: Callable[[random.Random, str], str]) -> Iterator[Case]:
        rng = random.Random(f"{name} {seed}")
        while True:
            dialect = rng.choice(("lfm2", "lfm2", "llama4"))
            yield Case(write(rng, dialect), dialect, rng.random() < 0.6)

    def mutant(rng: random.Random, dialect: str) -> str:
        text = valid(rng, dialect)
        for _ in range(rng.choice((1, 1, 2, 3))):
            text = slip(text, rng)
        return text

    def splice(rng: random.Random, dialect: str) -> str:
        write = rng.choice((valid, turn))
        first, second = write(rng, dialect), rng.choice((valid, turn))(rng, dialect)
        return first[: rng.randrange(len(first) + 1)] + second[rng.randrange(len(second) + 1) :]

    def turn(rng: random.Random, dialect: str) -> str:
        return Turns(rng, dialect).turn()

    def slipped(rng: random.Random, dialect: str) -> str:
        return slip(turn(rng, dialect), rng)

    return {
        "exhaustive": exhaustive(length, share, shares),
        "turns": forever("turns", turn),
        "slips": forever("slips", slipped),
        "mutants": forever("mutants", mutant),
        "splices": forever("splices", splice),
    }
