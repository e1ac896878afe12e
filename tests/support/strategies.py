"""Texts for the laws: turns of every kind, marker-rich soup, quotes that may or may not close.

The writers are plain functions of a seed (fast: thousands of texts a second); hypothesis draws the seed, and the soup
character by character.
"""

from __future__ import annotations

import json
import random
from collections.abc import Callable
from typing import Any, Union

from hypothesis import strategies as st

from lfm2_fixed.core.dialects import DIALECTS
from tests.support import DATA
from tests.support.python_writer import PythonWriter, make_tools, typed
from tests.support.turn_writer import MALFORMED_VALUES, damage, make_turn
from tests.support.words import ATOMS, LLAMA_ATOMS, PYTHON_END, PYTHON_START, E, S


def token_texts() -> list[tuple[str, list[str]]]:
    """The recorded tokenisations: id and pieces."""
    lines = (DATA / "token_pieces.jsonl").read_text(encoding="utf-8").split("\n")
    return [(turn["id"], turn["pieces"]) for turn in map(json.loads, filter(None, lines))]


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

Input = tuple[str, str, Union[dict[str, Any], None]]
"""A dialect, a text, and declared tools or none."""

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


def marked(dialect: str, text: str) -> str:
    """A text that was written with LFM2's markers, with the dialect's own."""
    row = DIALECTS[dialect]
    return text.replace(S, row.start).replace(E, row.ends[0])


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
