"""Law L7: the work is linear in the text, and what is kept is bounded by the open block.

No clock: ``steps`` says what is counted, and checks that it was.  First the known hostile texts, then patterns by
chance, with the same bounds.  ``python -m benchmarks.worst`` searches for worse.
"""

from __future__ import annotations

import gc
import re
import sys
import tracemalloc
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import lfm2_fixed
from lfm2_fixed import PythonicStream
from lfm2_fixed.core.dialects import DIALECTS, Dialect
from lfm2_fixed.core.tokens import CLOSERS, MAX_DEPTH
from tests.support import steps
from tests.support.examples import QUICK
from tests.support.hostile import ARGUMENT, BARE, BODIES, CASES, HOSTILE, TAILS, TOOLS, VALUE
from tests.support.python_writer import make_tools
from tests.support.steps import Case, count_bytes, count_steps, cut, growth, steps_of_each, uncounted_patterns
from tests.support.strategies import from_seed, marked
from tests.support.words import ATOMS, LLAMA_ATOMS, E, S

PACKAGE = Path(lfm2_fixed.__file__).parent
STEP_BOUND = 300
"""Steps for a character, at most: the worst known (`','` in a dict, in deltas of two characters) takes 266, since the
look-ahead from its first quote goes to the end, and then each later quote is judged by itself."""


pytestmark = pytest.mark.usefixtures("no_log")

KNOWN_WORK = [(ARGUMENT, "x"), (VALUE, "1"), (VALUE, " "), (S + "[", "a"), (VALUE + '"', "\\n")]


def test_the_counters_count() -> None:
    """A counter that went blind would pass everything: of known work, it must see at least so much."""
    assert uncounted_patterns() == []
    module = next(iter(steps._modules.values()))
    vars(module)["planted"] = {"key": [re.compile("x").match]}
    assert uncounted_patterns() == [f"{module.__name__}['planted']['key']"]
    del vars(module)["planted"]
    size = 64_000
    for head, unit in KNOWN_WORK:
        text = head + unit * (size // len(unit))
        assert count_steps([text]) > size // 32, head  # a character is a sixteenth of a step at least; half of that
        assert count_steps(cut(text[: size // 16], 1)) > size // 16, head
        assert count_bytes([text]) > size, head  # what is held back, or said
        assert min(steps_of_each(["x", "y"], after=head)) > 0


def assert_linear(case: Case, step: int, size: int, bound: int = STEP_BOUND) -> None:
    """Steps a character stay the same as the text grows, and are few, in deltas of ``step`` characters (0: in one).

    Linear work has the same slope twice.  A quadratic part of 4 % at the first size exceeds the bound.
    """
    first, second = growth(lambda text: count_steps(cut(text, step), case.dialect, case.tools), case, size)
    assert second <= 1.15 * max(first, 0) + 1, (case, step, first, second)
    assert second <= bound, (case, step, second)


# Quickly: known texts in deltas of four alone. Between them and the drawn patterns, what is quadratic shows as well.
@pytest.mark.parametrize(
    "step, size", [(4, 340)] if QUICK else [(0, 1026), (4, 340), (1, 64)], ids=lambda value: f"{value}"
)
@pytest.mark.parametrize("case", CASES.values(), ids=CASES.keys())
def test_steps(case: Case, step: int, size: int) -> None:
    """The known texts."""
    assert_linear(case, step, size)


def test_steps_of_patterns_in_an_open_string() -> None:
    """The quote rule over every pattern: never closing, where the text is read again at its end, and closing."""
    for unit in HOSTILE:
        assert_linear(Case(ARGUMENT, unit, E), step=2, size=96)
        for tail in (E, "')]" + E):
            assert_linear(Case(ARGUMENT, unit, tail), step=0, size=200)


def texts(dialect: Dialect) -> st.SearchStrategy[Case]:
    """Any pattern, again and again, after any beginning."""
    bodies = ["", *(dialect.start + body for body in BODIES)]
    patterns, atoms = HOSTILE, ATOMS
    if dialect.bare_lists:
        bodies, patterns, atoms = [*bodies, *BODIES, "text ["], [*HOSTILE, *BARE], LLAMA_ATOMS
    return st.builds(
        Case,
        head=st.sampled_from(bodies),
        unit=st.one_of(
            st.sampled_from(patterns), st.lists(st.sampled_from(atoms), min_size=1, max_size=4).map("".join)
        ),
        tail=st.tuples(st.sampled_from(TAILS), st.sampled_from(["", dialect.ends[0]])).map("".join),
        dialect=st.just(dialect.name),
        tools=from_seed(make_tools),
        least=st.just(0),
    )


@pytest.mark.parametrize("dialect", DIALECTS.values(), ids=DIALECTS.keys())
@settings(max_examples=max(20, settings().max_examples // 30))
@given(st.data())
def test_steps_of_any_pattern(dialect: Dialect, data: st.DataObject) -> None:
    """Law L7 for whatever is drawn.  ``scripts/fuzz`` draws for hours."""
    case = data.draw(texts(dialect))
    # What nests deeper than the limit is malformed and read otherwise: where the larger sizes do, the smallest must.
    deep = case._replace(least=(MAX_DEPTH + 5) * len(case.unit) if set(case.unit) & set(CLOSERS) else 0)
    assert_linear(deep, 0, 340)
    assert_linear(deep, 2, 128)


@pytest.mark.parametrize(
    "dialect, begun, text", [("llama4", " [na", " [na" * 50), ("lfm2", S, S + "na")], ids=["bare", "block"]
)
def test_thousands_of_tools_cost_what_a_few_do(dialect: str, begun: str, text: str) -> None:
    """Whether a name may be a declared one is looked up, not compared with every name."""
    # The tools are read once a turn, where the first call may begin: that is in both.
    few, many = (
        count_steps([text], dialect, tools) - count_steps([begun], dialect, tools)
        for tools in ({f"name_{number}": [] for number in range(count)} for count in (10, 10_000))
    )
    assert few > 0 and many < 3 * few, (few, many)


WHOLE_BOUNDS = {
    "escaped-quotes": 5,
    "calls": 12,
    "calls-json": 5,
    "calls-lines": 13,
    "calls-positional": 16,
    "numbers": 1,
    "deep-dicts": 17,
}
"""Steps for a character, at most, where a text of many parts comes in one piece: a third of what the readers take
without what they take at once."""


@pytest.mark.parametrize("name", WHOLE_BOUNDS)
def test_plain_texts_are_cheap_as_a_whole(name: str) -> None:
    """What comes in one piece is read by few matches, not part by part."""
    case = CASES[name]
    first, second = growth(lambda text: count_steps([text], case.dialect, case.tools), case, 1026)
    assert max(first, second) <= WHOLE_BOUNDS[name], (first, second)


COPIED_SIZE = 768 if QUICK else 1536
"""Characters of the smallest text.  What copies all that came before with each delta of sixteen takes 192 bytes a
character at the larger two sizes, if this is 768, and 96 at the smaller two, of which the bound makes 157."""


def assert_copies_nothing(case: Case, step: int) -> None:
    """What a delta allocates does not grow with what came before: nothing is copied again and again.

    What other threads allocate meanwhile (the runner's, that talks to its workers) is counted, too: a number over the
    bound is taken again, since what copies does so every time.
    """
    for _ in range(3):
        first, second = growth(lambda text: count_bytes(cut(text, step), case.dialect, case.tools), case, COPIED_SIZE)
        if second <= 1.3 * max(first, 0) + 32:
            return
    raise AssertionError((case, first, second))


@pytest.mark.parametrize("step", [16] if QUICK else [0, 16])
@pytest.mark.parametrize("case", CASES.values(), ids=CASES.keys())
def test_bytes(case: Case, step: int) -> None:
    """The known texts."""
    assert_copies_nothing(case, step)


@pytest.mark.parametrize(
    "head", [ARGUMENT, S + "[f(x=foo('", S + "[f(x=('", "", S + "[f(x=f'", S + "[w(a=1)]" + E + "["]
)
def test_bytes_of_patterns(head: str) -> None:
    """Small deltas in whatever may stay open for long."""
    for unit in ("x", "it's ", "', b", "'), ", "\\n", "'x' ", "<|", "é", "\n", "), g(y=1", '"'):
        assert_copies_nothing(Case(head, unit), step=16)


@pytest.mark.parametrize("head, tools", [(ARGUMENT, None), ("", None), (VALUE + "[", None), (S + "[", TOOLS)])
def test_a_delta_costs_the_same_after_a_long_text(head: str, tools: object) -> None:
    """The very same steps after 4 KB and after 256 KB of a string, of prose, of a list, of calls."""
    unit = {ARGUMENT: "text ", "": "text ", VALUE + "[": "'x', 12, ", S + "[": "f(a='x', b=12), "}[head]
    deltas = cut(unit * 20, 4)
    early, late = (
        steps_of_each(deltas, tools=tools, after=head + unit * (size // len(unit))) for size in (4096, 1 << 18)
    )
    assert early == late


def test_streams_are_small() -> None:
    """A thousand open streams, each in the middle of a string, are a thousand small objects."""
    tracemalloc.start()
    try:
        before = tracemalloc.get_traced_memory()[0]
        streams = [PythonicStream() for _ in range(1000)]
        for stream in streams:
            stream.feed(ARGUMENT + "some text")
        gc.collect()
        used = tracemalloc.get_traced_memory()[0] - before
    finally:
        tracemalloc.stop()
    # Before 3.11 each reader that waits keeps a frame object of its own, a thousand bytes in all.
    assert used < 1000 * (8_000 if sys.version_info >= (3, 11) else 9_500), used


@settings(max_examples=max(20, settings().max_examples // 100))
@given(st.text('abc ,.:=()[]{}"1', min_size=20, max_size=20))
def test_a_drawn_delta_costs_late_what_it_costs_early(unit: str) -> None:
    """In a long argument, whatever its text."""
    early, late = (steps_of_each([unit] * 5, after=ARGUMENT + unit * count) for count in (5, 400))
    assert early == late


@pytest.mark.parametrize("dialect", DIALECTS.values(), ids=DIALECTS.keys())
@pytest.mark.parametrize("answer", ["prose", "blocks", "calls-malformed"])
def test_nothing_grows_with_the_answer(answer: str, dialect: Dialect) -> None:
    """What a stream keeps after 200 KB (quickly: 60) outside an open block is what it keeps after 10 KB."""
    unit = {
        "prose": "A word. ",
        "blocks": S + "[f(a='" + "x" * 500 + "')]" + E + " and ",
        "calls-malformed": S + "[f(a=foo()), g(b=[1, 2])]" + E + " then ",
    }[answer]
    unit = marked(dialect.name, unit)
    kept = []
    for size in (10_000, 60_000 if QUICK else 200_000):
        tracemalloc.start()
        try:
            stream = PythonicStream(dialect.name)
            for _ in range(size // len(unit)):
                stream.feed(unit)
            gc.collect()
            # What the package allocated: other threads of the test runner allocate, too.
            taken = tracemalloc.take_snapshot().filter_traces([tracemalloc.Filter(True, f"{PACKAGE}/*")])
            kept.append(sum(trace.size for trace in taken.traces))
        finally:
            tracemalloc.stop()
        del stream
    assert kept[1] <= kept[0] + 2_000, kept


@pytest.mark.parametrize("delta", ["x", "word ", "a longer delta, of forty characters or so "])
def test_an_open_string_is_kept_once(delta: str) -> None:
    """An open call keeps its source, to give it back if it must, and nothing else of its length."""
    count = 50_000 // len(delta)
    tracemalloc.start()
    try:
        before = tracemalloc.get_traced_memory()[0]
        stream = PythonicStream()
        stream.feed(ARGUMENT)
        for _ in range(count):
            stream.feed(str(bytearray(delta, "ascii"), "ascii"))  # a new string every time, as from an engine
        used = tracemalloc.get_traced_memory()[0] - before
    finally:
        tracemalloc.stop()
    assert used < count * (64 + len(delta) + 16) + 20_000, used / count
