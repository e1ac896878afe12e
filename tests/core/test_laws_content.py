"""Laws L5 and L8: text comes back as text, and one bad call stays one."""

from __future__ import annotations

import random

import pytest
from hypothesis import given

from lfm2_fixed.core.dialects import DIALECTS
from tests.support.harness import random_cut, stream, whole
from tests.support.oracle import read
from tests.support.python_writer import PythonWriter
from tests.support.smallest import check
from tests.support.strategies import Input, any_input, dialects, marked, seeds
from tests.support.turn_writer import MALFORMED_VALUES
from tests.support.words import NAMES, PARAMETERS, WORDS, E, S


@pytest.mark.parametrize("dialect", DIALECTS)
def test_l5_text_is_content_exactly(dialect: str) -> None:
    """Without a marker there is nothing but content."""
    rng = random.Random(5)
    for _ in range(1500):
        text = "".join(rng.choice(WORDS) for _ in range(rng.randrange(8)))
        if any(marker in text for marker in DIALECTS[dialect].markers):
            continue
        assert whole(text, dialect) == ([], text)
        assert stream(random_cut(text, rng), dialect).completed == ([], text)


class Siblings:
    """A block of good and malformed calls, with what must come of each."""

    def __init__(self, rng: random.Random) -> None:
        self.rng = rng
        self.writer = PythonWriter(rng, blanks=False)
        self.calls: list[tuple[str, str]] = []
        self.segments: list[str] = []

    def block(self) -> str:
        """The block's text between the markers."""
        parts = []
        for _ in range(self.rng.choice((1, 2, 3, 4))):
            if self.rng.random() < 0.5:
                parts.append(self.good())
            else:
                parts.append(self.bad())
        if self.rng.random() < 0.7:
            return "[" + self.rng.choice((", ", ",", ",\n")).join(parts) + "]"
        return self.rng.choice(("; ", "\n", ";")).join(parts)

    def good(self) -> str:
        """A call that Python reads."""
        while True:
            text = self.writer.call()
            read_back = read(f"[{text}]")
            if read_back is not None and E not in text and S not in text:
                self.calls += read_back
                return text

    def bad(self) -> str:
        """A call with one value that has no JSON form, anywhere among its arguments."""
        rng = self.rng
        arguments = []
        for parameter in rng.sample(PARAMETERS, rng.randrange(3)):
            value = self.writer.value(3)
            while "\n" in value or read(f"[f(x={value})]") is None or S in value or E in value:
                value = self.writer.value(3)
            arguments.append(f"{parameter}={value}")
        arguments.insert(rng.randrange(len(arguments) + 1), f"bad={rng.choice(MALFORMED_VALUES)}")
        text = f"{rng.choice(NAMES)}({', '.join(arguments)})"
        self.segments.append(text)
        return text


@given(dialects, seeds)
def test_l8_one_bad_call_stays_one(dialect: str, seed: int) -> None:
    """Siblings of a malformed call survive, and the call itself is given back as it was written."""
    rng = random.Random(seed)
    siblings = Siblings(rng)
    text = marked(dialect, "".join(S + siblings.block() + E for _ in range(rng.choice((1, 1, 2)))))
    expected = (siblings.calls, "\n".join(siblings.segments))
    assert whole(text, dialect) == expected, text
    turn = stream(random_cut(text, rng), dialect)
    assert turn.completed == expected, text
    assert all(call.state in ("complete", "malformed") for call in turn.started)


@given(dialects, seeds)
def test_l5_turns_of_known_parts(dialect: str, seed: int) -> None:
    """A turn of prose and blocks: every part comes back as what it is."""
    rng = random.Random(seed)
    siblings = Siblings(rng)
    text = ""
    for i in range(rng.choice((1, 2, 3))):
        prose = "".join(rng.choice(WORDS) for _ in range(rng.randrange(3)))
        prose = "".join(char for char in prose if char.isprintable() and not char.isspace()).replace(E, "")
        if prose.endswith("<") or S in prose:
            prose += "."
        if prose:
            text += rng.choice(("", "\n", " ", "\n\n")) * bool(i) + prose + rng.choice(("", "\n", " "))
            siblings.segments.append(prose)
        text += S + rng.choice(("", "\n", " ")) + siblings.block() + rng.choice(("", "\n", " ")) + E
    calls, content = siblings.calls, "\n".join(siblings.segments)
    text = marked(dialect, text)
    assert whole(text, dialect) == (calls, content), text
    assert stream(random_cut(text, rng), dialect).completed == (calls, content), text


@given(any_input())
def test_l5_nothing_invented(given_input: Input) -> None:
    """Content is made of the text's own characters, in their order; only the joining newlines are new."""
    dialect, text, tools = given_input

    def law(text: str) -> None:
        _, content = whole(text, dialect, tools)
        source = iter(text)
        assert all(char in source for char in content if not char.isspace())

    check(text, law, (dialect, tools))
