"""The corpus of slips: plain turns of two calls with one mark of punctuation dropped, doubled, added or swapped.

Nobody can know what was meant, so nothing is expected of the call that has the slip but that it is not completed
with something that nobody wrote.  The other call is untouched and is expected to arrive.  A slip between the calls
touches neither.
"""

from __future__ import annotations

import random
from collections.abc import Iterator
from typing import Any

from .example import END, START, TOOLS, Call, Example, dump
from .python import read_by_python

MARKS = "'\"()[]{},:=.;"

_STRINGS = (
    "Paris", "a.txt", "hello world", "ls -la", "New York, NY", "src/main.py", "x", "", "TODO", "echo hi; pwd",
    "f(x) = 1", "note: done", "[1, 2]", "50%", "https://x.io/?a=1&b=2", "größe", "a (b)", "key=value", "2024-01-15",
)  # fmt: skip


def _value(kind: str, rng: random.Random) -> Any:
    if kind == "string":
        return rng.choice(_STRINGS)
    if kind == "integer":
        return rng.choice((0, 1, 7, 30, -5, 1200))
    if kind == "number":
        return rng.choice((1.5, -2, 0.25, 48.85, 100))
    if kind == "boolean":
        return rng.random() < 0.5
    if kind == "array":
        return [rng.choice(_STRINGS) for _ in range(rng.randrange(3))]
    return {
        key: rng.choice((rng.choice(_STRINGS), 1, [1, "a"])) for key in rng.sample(("k", "name", "n"), rng.randrange(3))
    }


def _source(value: Any, quote: str) -> str:
    if isinstance(value, str):
        return quote + value + quote
    if isinstance(value, list):
        return "[" + ", ".join(_source(element, quote) for element in value) + "]"
    if isinstance(value, dict):
        return "{" + ", ".join(f"{_source(key, quote)}: {_source(one, quote)}" for key, one in value.items()) + "}"
    return str(value)


def _call(rng: random.Random) -> tuple[str, Call]:
    name = rng.choice(list(TOOLS))
    parameters = rng.sample(list(TOOLS[name]), rng.randrange(1, len(TOOLS[name]) + 1))
    arguments = {parameter: _value(TOOLS[name][parameter], rng) for parameter in parameters}
    quote = rng.choice("'\"")
    return f"{name}({', '.join(f'{key}={_source(value, quote)}' for key, value in arguments.items())})", (
        name,
        dump(arguments),
    )


def _structural(text: str) -> list[int]:
    """Offsets of the marks that are punctuation: quotes, and what stands outside strings and numbers."""
    found, quote = [], ""
    for offset, char in enumerate(text):
        if quote:
            if char == quote:
                found.append(offset)
                quote = ""
        elif char in "'\"":
            found.append(offset)
            quote = char
        elif char in "()[]{},:=":
            found.append(offset)
    return found


def _slip(text: str, at: int, rng: random.Random) -> tuple[str, str]:
    """One slip at ``at``, and what it is called."""
    mark, kind = text[at], rng.choice(("dropped", "doubled", "swapped", "added", "turned"))
    if kind == "dropped":
        return text[:at] + text[at + 1 :], kind
    if kind == "doubled":
        return text[:at] + mark + text[at:], kind
    if kind == "swapped":
        return text[:at] + rng.choice([other for other in MARKS if other != mark]) + text[at + 1 :], kind
    if kind == "added":
        return text[: at + 1] + rng.choice(MARKS) + text[at + 1 :], kind
    return text[: max(0, at - 1)] + text[at : at + 1] + text[max(0, at - 1) : at] + text[at + 1 :], kind


def examples(count: int, seed: int, declared: bool | None) -> Iterator[Example]:
    """``count`` turns, each with one slip.  The tools are declared unless ``declared`` is False."""
    rng = random.Random(f"slips {seed}")
    made = 0
    while made < count:
        (first, one), (second, two) = _call(rng), _call(rng)
        text = f"[{first}, {second}]"
        if one == two:
            continue
        at = rng.choice(_structural(text))
        slipped, kind = _slip(text, at, rng)
        if slipped == text:
            continue
        end, start = 1 + len(first), 1 + len(first) + 2
        if 1 <= at < end:
            target, siblings = one, (two,)
        elif start <= at < start + len(second):
            target, siblings = two, (one,)
        else:
            target, siblings = None, (one, two)
        mark = {"'": "quote", '"': "quote"}.get(text[at], text[at])
        made += 1
        yield Example(
            text=START + slipped + END,
            row=f"{kind}|{mark}",
            target=target,
            siblings=siblings,
            declared=declared is not False,
            python=tuple(set(read_by_python(slipped) or ()) - {one, two}),
        )
