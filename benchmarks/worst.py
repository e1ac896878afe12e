"""A search for the text that costs most, in steps a character, without a clock.

    python -m benchmarks.worst [--seconds 60] [--seed 0]

Hill climbing from random starts over fragments that have to do with markers, quotes, brackets and
names: a text is a head, a few fragments again and again, and a tail, in some cutting.  Two things
are looked for: many steps a character, and growth (more steps a character in a longer text).
What it finds belongs into ``tests/support/hostile.py``.
"""

from __future__ import annotations

import argparse
import random
import sys
import time
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from rich.console import Console
from rich.progress import Progress

if TYPE_CHECKING:
    from tests.support.steps import Case

S, E = "<|tool_call_start|>", "<|tool_call_end|>"
HEADS = {
    "lfm2": [
        "", S, S + "[", S + "[f(", S + "[f(a='", S + "[f(a=", S + "[f(a=['", S + "[f(a={'k': '", S + "[f(a='x\n",
        S + "[f(a=('", S + "[f(a=foo(", S + "[f(a=foo(), b='", S + '[{"name": "f", "arguments": {"a": "', S + "[f(a=f'",
        S + "[f(a={", S + "[f(a='''", S + "[f()]" + E, S + "f(a='", S + "[f(a=" + "[" * 100,
        S + '[{"arguments": {"a": "',
        S + "[f(a=" + "[{'k': " * 50 + "'", S + "[f(a=r'", S + "[f(**{'",
    ],
    "llama4": ["", "[", "[f(", "[f(a='", "text [", "<|python_start|>[f(a='", "<|python_start|>",
        "[f(a=", " [f(a='x')]\n"],
}  # fmt: skip
FRAGMENTS = [
    "'", '"', "''", "'''", "' ", "',", "', ", "', b", "', b=", "')", "') ", "'),", "'), ", "'), g", "'), g(", "')]",
    "')] ", "']", "'}", "':", "': '", "', '", "'#", "'#\n", "' + ", "'.x", "' if ", "' % (", "'[", "\\", "\\'", "\\\\",
    "\\x4", "\\u12", "\\ud83d", "\\N{A", "\\7", "{", "}", "[", "]", "(", ")", ",", ", ", "1", "1,", "-", "1e",
    "0x", "a",
    "a=", "a=1,", "f(", "f(),", "f(a='", "f(a='x'),", "#", "#\n", "\n", " ", "\\\n", "<|", "<", "<|tool_call_", S, E,
    S + "[", S + "[f(", "]" + E, "None", "True,", "**", "**{", ".", "f'", "f'{", "{{", "b'", "r'", '"""',
    "{'k': ", "{1, ",
    "(1, ", ";", "é", "😀", "\ud83d", '{"name": "f"},', '{"name": "f", "arguments": {', " and ", " not ",
    " is ", " for ",
    " in ", " else ", "x", "lorem", "set()", "[[", "((", "))", "]]", "<|python_end|>", "<|eom|>", "=", "==",
    "/", ":", "*",
]  # fmt: skip
TAILS = ["", "')]" + E, "]" + E, E, "'", "')]", ")", "x"]
TOOLS: list[Any] = [None, {"f": ["a", "b"], "g": []}]


@dataclass(frozen=True)
class Candidate:
    """A text of any length, and the length of its deltas (0: one delta)."""

    dialect: str
    head: str
    fragments: tuple[str, ...]
    tail: str
    tools: Any
    step: int

    def case(self) -> Case:
        """As the tests name it."""
        return _case(self.head, "".join(self.fragments), self.tail, self.dialect, self.tools)


def _case(*fields: Any) -> Case:
    from tests.support.steps import Case

    return Case(*fields)


def start(rng: random.Random, dialect: str, step: int) -> Candidate:
    """A random candidate."""
    fragments = tuple(rng.choice(FRAGMENTS) for _ in range(rng.randint(1, 4)))
    return Candidate(dialect, rng.choice(HEADS[dialect]), fragments, rng.choice(TAILS), rng.choice(TOOLS), step)


def mutate(rng: random.Random, one: Candidate) -> Candidate:
    """A neighbour."""
    fragments = list(one.fragments)
    place = rng.randrange(len(fragments))
    kind = rng.randrange(7)
    if kind == 0 and len(fragments) < 7:
        fragments.insert(place, rng.choice(FRAGMENTS))
    elif kind == 1 and len(fragments) > 1:
        del fragments[place]
    elif kind == 2:
        fragments[place] *= rng.randint(2, 4)
    elif kind == 3:
        return replace(one, head=rng.choice(HEADS[one.dialect]))
    elif kind == 4:
        return replace(one, tail=rng.choice(TAILS), tools=rng.choice(TOOLS))
    else:
        fragments[place] = rng.choice(FRAGMENTS)
    return replace(one, fragments=tuple(fragments))


def score(one: Candidate, size: int, limit: float) -> tuple[float, float]:
    """Steps a character in the longer part of the text, and how many times those in the shorter part.

    Texts over ``limit`` characters a unit are not worth it.
    """
    from tests.support.steps import count_steps, cut, growth

    case = one.case()
    if not case.unit or len(case.unit) > limit:
        return 0.0, 0.0
    first, second = growth(lambda text: count_steps(cut(text, one.step), case.dialect, case.tools), case, size)
    # A text with two regimes (a limit was passed) has little slope at first: no growth to speak of.
    return second, second / first if first > 1 else 0.0


def climb(
    rng: random.Random, dialect: str, step: int, by_growth: bool, patience: int
) -> tuple[float, float, Candidate]:
    """The best that one start leads to: steps a character, growth, and the candidate."""
    size = 300 if step == 0 else 100
    best = start(rng, dialect, step)
    steps, grown = score(best, size, 40)
    failures = 0
    while failures < patience:
        other = mutate(rng, best)
        found = score(other, size, 40)
        if (found[1], found[0]) > (grown, steps) if by_growth else found > (steps, grown):
            best, (steps, grown), failures = other, found, 0
        else:
            failures += 1
    return steps, grown, best


def main(argv: list[str] | None = None) -> int:
    """Search, and print the worst."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.worst", description=__doc__.splitlines()[0])
    parser.add_argument("--seconds", type=float, default=60, help="how long to search (default 60)")
    parser.add_argument("--seed", type=int, default=0, help="other starts (default 0)")
    parser.add_argument("--patience", type=int, default=40, help="failed attempts before a new start (default 40)")
    options = parser.parse_args(argv)
    rng = random.Random(options.seed)
    console = Console()
    worst: dict[tuple[str, int], tuple[float, float, Candidate]] = {}
    grown: dict[str, tuple[float, float, Candidate]] = {}
    begin = time.monotonic()
    tried = 0
    with Progress(console=Console(stderr=True)) as progress:
        task = progress.add_task("searching", total=options.seconds)
        while time.monotonic() - begin < options.seconds:
            dialect = rng.choice(["lfm2", "lfm2", "llama4"])
            step = rng.choice([0, 1, 4])
            by_growth = rng.random() < 0.4
            steps, growth, found = climb(rng, dialect, step, by_growth, options.patience)
            tried += 1
            if steps > worst.get((dialect, step), (0.0, 0.0, found))[0]:
                worst[dialect, step] = steps, growth, found
            if growth > grown.get(dialect, (0.0, 0.0, found))[1]:
                grown[dialect] = steps, growth, found
            progress.update(task, completed=time.monotonic() - begin, description=f"{tried} starts")
    console.print(f"{tried} starts, seed {options.seed}")
    for (dialect, step), (steps, growth, found) in sorted(worst.items(), key=lambda item: item[0]):
        console.print(f"most steps, {dialect}, deltas of {step or 'all'}: {steps:.1f} a character, growth {growth:.3f}")
        console.print(f"    {found.case()!r}", markup=False)
    for dialect, (steps, growth, found) in sorted(grown.items()):
        console.print(f"most growth, {dialect}: {growth:.3f}, {steps:.1f} a character, deltas of {found.step or 'all'}")
        console.print(f"    {found.case()!r}", markup=False)
    return 0


if __name__ == "__main__":
    sys.exit(main())
