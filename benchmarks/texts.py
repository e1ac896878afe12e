"""Model turns of any length and of several shapes, and ways to cut them into deltas."""

from __future__ import annotations

import ast
import json
import re
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from itertools import cycle

START, END = "<|tool_call_start|>", "<|tool_call_end|>"
_SENTINEL = re.compile(r"(<\|[a-z_]+\|>)")
_WORDS = "the weather in Paris is sunny and a light wind blows from the sea toward the old town "


@dataclass(frozen=True)
class Shape:
    """A kind of turn.  ``make(size)`` gives one of about ``size`` characters."""

    name: str
    title: str
    make: Callable[[int], str]
    dialect: str = "lfm2"

    def calls(self, size: int) -> list[tuple[str, str]]:
        """Names and arguments (as JSON text) of the calls in ``make(size)``, as CPython reads them."""
        text = self.make(size).strip()
        if self.dialect == "lfm2":
            if START not in text:
                return []
            text = text.removeprefix(START).removesuffix(END)
        calls = []
        for node in ast.parse(text, mode="eval").body.elts:  # type: ignore[attr-defined]
            arguments = {keyword.arg: ast.literal_eval(keyword.value) for keyword in node.keywords}
            calls.append((node.func.id, json.dumps(arguments, ensure_ascii=False)))
        return calls


def _repeat(unit: str, size: int) -> str:
    """``unit`` again and again, at least once."""
    return unit * max(1, size // len(unit))


def _string(size: int) -> str:
    return f'{START}[write(text="{_repeat(_WORDS, size - 60)}")]{END}'


def _code(size: int) -> str:
    line = 'def greet(name):\\n\\treturn f\\"it\'s {name}\\"  # \\u00e9\\n'
    return f'{START}[write(text="{_repeat(line, size - 60)}")]{END}'


def _small_calls(size: int) -> str:
    calls = (f'get_weather(city="Paris {number}", days={number % 9}, metric=True)' for number in range(size))
    taken: list[str] = []
    length = 0
    for call in calls:
        taken.append(call)
        length += len(call) + 2
        if length >= size - 50:
            break
    return f"{START}[{', '.join(taken)}]{END}"


def _deep(size: int) -> str:
    unit = '{"k": [' * 20 + '"leaf", True, 1.5' + "]}" * 20 + ", "
    return f"{START}[write(text=[{_repeat(unit, size - 60)}])]{END}"


def _numbers(size: int) -> str:
    return f"{START}[write(text=[{_repeat('12, -7.25, 1048576, 3e-9, ', size - 60)}])]{END}"


def _prose(size: int) -> str:
    return _repeat(_WORDS, size)


def _bare_list(size: int) -> str:
    return f'[write(text="{_repeat(_WORDS, size - 20)}")]'


SHAPES = {
    shape.name: shape
    for shape in (
        Shape("string", "one long string", _string),
        Shape("code", "code in a string, escapes", _code),
        Shape("calls", "many small calls", _small_calls),
        Shape("deep", "deep JSON", _deep),
        Shape("numbers", "a list of numbers", _numbers),
        Shape("prose", "prose, no call", _prose),
        Shape("llama4", "Llama 4, one long string", _bare_list, "llama4"),
    )
}

TOOLS = [
    {
        "type": "function",
        "function": {
            "name": name,
            "parameters": {"type": "object", "properties": {parameter: {} for parameter in parameters}},
        },
    }
    for name, parameters in (("write", ["text"]), ("get_weather", ["city", "days", "metric"]))
]

_TOKEN_LENGTHS = (3, 5, 4, 2, 6, 4)  # characters; 4 on average


def _tokens(text: str) -> Iterator[str]:
    lengths = cycle(_TOKEN_LENGTHS)
    at = 0
    while at < len(text):
        length = next(lengths)
        yield text[at : at + length]
        at += length


def _around_sentinels(cut: Callable[[str], Iterable[str]]) -> Callable[[str], list[str]]:
    """Cut the text between sentinels; these are single tokens to an engine, so each is one delta."""

    def pieces(text: str) -> list[str]:
        found: list[str] = []
        for number, part in enumerate(_SENTINEL.split(text)):
            found.extend([part] if number % 2 else cut(part))
        return found

    return pieces


CUTTINGS: dict[str, Callable[[str], list[str]]] = {
    "token": _around_sentinels(_tokens),
    "char": _around_sentinels(list),
    "whole": lambda text: [text],
}
"""Cuttings by name: deltas of about four characters, of one, and the whole text."""
