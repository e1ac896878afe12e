"""Law L7: no input raises, the work is linear in the text, and memory is bounded by the open block.

No clock: the work is counted in executed bytecode instructions, in characters that regular
expressions are handed, and in bytes allocated.
"""

from __future__ import annotations

import gc
import logging
import random
import re
import sys
import tracemalloc
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType
from typing import Any

import pytest
from harness import every, read_object, stream, whole
from hypothesis import given, settings
from hypothesis import strategies as st
from strategies import ATOMS, LLAMA_ATOMS, PYTHON_START, E, S, from_seed, make_tools

import lfm2_fixed
from lfm2_fixed import PythonicStream, parse

DEEP, DIGITS = 200, 4000


@pytest.fixture(autouse=True)
def _no_log() -> Iterator[None]:
    """Kept log records are no memory of the machine's, and formatting them no work of its own."""
    logger = logging.getLogger("lfm2_fixed")
    logger.disabled = True
    yield
    logger.disabled = False


# ------------------------------------------------------------------ limits


@pytest.mark.parametrize("opener, closer", ["[]", "()", "{}"] + [("{'k': ", "}"), ("[(", ")]"), ("[1, ", "]")])
def test_depth(opener: str, closer: str) -> None:
    """Deep nesting is read below the limit, and malformed, not fatal, above it."""
    for levels, fine in ((DEEP - 10, True), (DEEP + 10, False), (5000, False)):
        count = levels // (2 if opener == "[(" else 1)
        inner = "1, 2" if opener in "({" else "1"  # `((1))` is a number, not nested arrays
        value = opener * count + inner + closer * count
        text = f"{S}[u(a=1), w(x={value}), v(b=2)]{E}"
        calls, content = whole(text)
        names = [name for name, _ in calls]
        if fine:
            assert names == ["u", "w", "v"] and content == ""
            read_object(calls[1][1])
        else:
            assert names == ["u", "v"] and content == f"w(x={value})"
        if levels < 1000:
            assert stream(every(text, 1)).completed == (calls, content)


def test_depth_of_parentheses() -> None:
    """Parentheses around a value nest too."""
    text = f"{S}[w(x={'(' * 5000}1{')' * 5000}), v(b=2)]{E}"
    assert whole(text)[0] == [("v", '{"b": 2}')]
    assert whole(text.replace("(" * 5000, "(" * 150).replace(")" * 5000, ")" * 150))[0][0] == ("w", '{"x": 1}')


@pytest.mark.parametrize("depth", [500, 20000])
def test_deep_and_cut(depth: int) -> None:
    """Cut or closed wrongly at any depth: nothing raises."""
    for text in (
        S + "[w(x=" + "[" * depth,
        S + "[w(x=" + "[" * depth + "]" * (depth - 3) + E,
        S + "[" * depth,
        S + "[w(" + "f(" * depth,
    ):
        assert stream(every(text, 997)).completed == whole(text)


@pytest.mark.parametrize("sign", ["", "-", "+"])
def test_long_numbers(sign: str) -> None:
    """4,000 digits are a number, more are malformed; nothing raises, whatever the base."""
    for count, fine in ((DIGITS - 1, True), (DIGITS, True), (DIGITS + 1, False), (50_000, False)):
        text = f"{S}[w(x={sign}{'7' * count}), v(b=2)]{E}"
        calls, content = whole(text)
        if fine:
            assert calls[0] == ("w", f'{{"x": {sign.strip("+")}{"7" * count}}}') and content == ""
        else:
            assert calls == [("v", '{"b": 2}')] and content == f"w(x={sign}{'7' * count})"
        assert stream(every(text, 501)).completed == (calls, content)


@pytest.mark.parametrize(
    "form",
    ["0x{}", "0o{}", "0b{}", "0{}", "1_{}", "1.{}", "1e{}", ".{}", "{}e1", "{}.5", "1e-{}", "{{{}: 1}}", "[{}]", "{}j"],
)
@pytest.mark.parametrize("count", [3000, 4001, 20_000])
def test_long_numbers_of_every_form(form: str, count: int) -> None:
    """Long numbers in every form: one result in every cutting, valid JSON, siblings survive."""
    text = f"{S}[w(x={form.format('1' * count)}), v(b=2)]{E}"
    calls, content = whole(text)
    assert calls[-1] == ("v", '{"b": 2}')
    assert len(calls) == 2 or content == text[len(S) + 1 : text.index(", v(")]
    for _, arguments in calls:
        read_object(arguments)
    assert stream(every(text, 333)).completed == (calls, content)


@given(st.text(max_size=60), st.text(max_size=60))
def test_never_raises_on_names(name: str, parameter: str) -> None:
    """Declared names may be any text."""
    stream([f"{S}[{name}({parameter}=1)]{E}"], "lfm2", {name: [parameter]})
    parse(f"[{name}({parameter}=1)]", "llama4", {name: [parameter]})


def test_memory_is_bounded_by_the_open_block() -> None:
    """Content and finished blocks leave nothing behind."""
    block = (
        S
        + "[w(content='"
        + "x" * 2000
        + "', n=[1, 2, {'k': 'v'}]), bad(x=foo()), g()]"
        + E
        + "\nSome text between. " * 20
    )
    for dialect, unit in (("lfm2", block), ("llama4", block.replace(S, PYTHON_START).replace(E, "<|python_end|>"))):
        machine = PythonicStream(dialect, None)

        def feed(times: int, machine: PythonicStream = machine, unit: str = unit) -> int:
            for _ in range(times):
                for piece in every(unit, 50):
                    machine.feed(piece)
            gc.collect()
            return tracemalloc.get_traced_memory()[0]

        tracemalloc.start()
        try:
            first = feed(5)
            later = feed(60)
        finally:
            tracemalloc.stop()
        assert later - first < 3 * len(unit), dialect


def test_memory_of_a_long_string() -> None:
    """An open call keeps its own source once or twice, not a copy for every delta."""
    machine = PythonicStream("lfm2", None)
    machine.feed(S + "[w(content='")
    tracemalloc.start()
    try:
        for _ in range(2000):
            machine.feed("0123456789" * 5)
        used = tracemalloc.get_traced_memory()[0]
    finally:
        tracemalloc.stop()
    assert used < 10 * 100_000


# ------------------------------------------------------------------ linear


class CountedPattern:
    """A compiled pattern that counts the characters it looked at."""

    def __init__(self, pattern: re.Pattern[str], meter: Meter) -> None:
        self._pattern, self._meter = pattern, meter

    def __getattr__(self, name: str) -> Any:
        return _counted(getattr(self._pattern, name), self._meter)


def _counted(method: Any, meter: Meter) -> Any:
    if not callable(method):
        return method
    name = method.__name__

    def call(*arguments: Any) -> Any:
        string, *bounds = arguments[1:] if name in ("sub", "subn") else arguments
        result = method(*arguments)
        start = bounds[0] if bounds and isinstance(bounds[0], int) else 0
        if result is None and name in ("match", "fullmatch"):
            meter.work += 1
        elif isinstance(result, re.Match):
            meter.work += 1 + (result.end() - start) // 16
        else:
            meter.work += 1 + max(0, len(string) - start) // 16
        return result

    return call


class Meter:
    """Counts bytecode instructions, scanned characters and allocated bytes of the package's work."""

    def __init__(self) -> None:
        self.work = 0
        self.bytes = 0

    def _trace(self, frame: FrameType, event: str, argument: Any) -> Any:
        frame.f_trace_opcodes = True
        frame.f_trace_lines = False
        if event == "opcode":
            self.work += 1
        return self._trace

    @contextmanager
    def patterns(self) -> Iterator[None]:
        """Count what the package's regular expressions read."""
        undo: list[tuple[Any, str, Any]] = []
        package = lfm2_fixed.__name__ + "."
        for module in [value for key, value in list(sys.modules.items()) if key.startswith(package)]:
            for name, value in list(vars(module).items()):
                if isinstance(value, re.Pattern):
                    undo.append((module, name, value))
                    setattr(module, name, CountedPattern(value, self))
                elif isinstance(getattr(value, "__self__", None), re.Pattern):
                    undo.append((module, name, value))
                    setattr(module, name, _counted(value, self))
        try:
            yield
        finally:
            for module, name, value in undo:
                setattr(module, name, value)

    def run(self, pieces: list[str], dialect: str, tools: Any) -> None:
        """Feed and finish under the meter."""
        machine = PythonicStream(dialect, tools)
        old = sys.gettrace()
        with self.patterns():
            sys.settrace(self._trace)
            try:
                for piece in pieces:
                    machine.feed(piece)
                machine.finish()
            finally:
                sys.settrace(old)

    def allocate(self, pieces: list[str], dialect: str, tools: Any) -> None:
        """Sum, over the deltas, of what each one allocated beyond what it found."""
        machine = PythonicStream(dialect, tools)
        tracemalloc.start()
        try:
            for piece in [*pieces, None]:
                before = tracemalloc.get_traced_memory()[0]
                tracemalloc.reset_peak()
                if piece is None:
                    machine.finish()
                else:
                    machine.feed(piece)
                self.bytes += max(0, tracemalloc.get_traced_memory()[1] - before)
        finally:
            tracemalloc.stop()


def assert_linear(head: str, unit: str, tail: str, dialect: str = "lfm2", tools: Any = None, size: int = 250) -> None:
    """Twice the text costs about twice the work, whole and in small deltas.

    Whole units, a multiple of twelve of them: what they mean may go with their number (of quotes, say).
    """
    units = -(-size // (12 * len(unit))) * 12
    for step in (0, 2):
        work: list[int] = []
        for scale in (1, 2, 4):
            text = head + unit * (units * scale) + tail
            meter = Meter()
            meter.run([text] if not step else every(text, step), dialect, tools)
            work.append(meter.work)
        assert work[2] - work[1] < 2.6 * (work[1] - work[0]) + 1500, (head, unit, tail, step, work)


def assert_no_copies(head: str, unit: str, dialect: str = "lfm2") -> None:
    """The bytes a delta allocates do not grow with what came before."""
    totals = []
    for size in (8_000, 16_000, 32_000):
        meter = Meter()
        meter.allocate(every(head + unit * (size // len(unit)), 40), dialect, None)
        totals.append(meter.bytes)
    assert totals[2] - totals[1] < 2.8 * (totals[1] - totals[0]) + 40_000, (head, unit, totals)


HOSTILE = [
    "'", '"', "' ", "',", "', ", "', b", "', b=", "')", "') ", "'),", "'), ", "'), g", "'), g(", "')]", "')] ",
    "'],", "']", "'}", "':", "': ", "','", "''", "'' ", "'x'#", "'x'#\n", "'x' ", "'x' + ", "'a', ", "\\",
    "\\'", "\\\\", "\\x4", "\\u12", "\\ud83d", "\\N{", "\\N{A", "{", "}", "[", "]", "(", ")", ",", ", ", "1",
    "1,", "1, ", "0_", "1e", "a", "a=", "a=1,", "f(", "f(),", "f(x=1),", "f(x='", "f(x='a'),", "#", "#\n",
    "\n", " ", "\\\n", "<|", "<", "<|tool_call_", S, S + "[", S + "[f(", "]" + S, "None,", "-", "--", "**",
    "**{", "x.", "f'", "f'{", "b'", "r'", "'''", '"""', "'''a", "{'a': ", "{'a': '", "'a': 'b', ", "{1, ",
    "(1, ", "('", "(('", "['", "{('a'", ";", ";f()", "é", "世", "😀", "\x00", "\ud83d", '{"name": "f"},',
    '{"name": "f", "arguments": {"a": "', "%", "' % x", "' + '", "'.upper()", "' if ",
]  # fmt: skip
HEADS = [
    S + "[f(x='",
    S + "[f(x=",
    S + "[",
    S + "[f(",
    S + "f(x=['",
    S + "[f(x={'a': '",
    S + "[f(x='a\n",
    S + "[f(x=('",
    S + "[f(x=foo(), y='",
    S + '[{"name": "f", "arguments": {"a": "',
    S + "[f(x=f'",
    S + "[f(x={",
    "",
]
TAILS = ["", "')]" + E, "]" + E, E, "'", "')]", "'})]" + E]


@pytest.mark.parametrize("unit", HOSTILE, ids=[ascii(unit) for unit in HOSTILE])
def test_linear_in_an_open_string(unit: str) -> None:
    """The quote rule over every hostile pattern, never closing and closing."""
    assert_linear(S + "[f(x='", unit, "')]" + E, size=200)
    assert_linear(S + "[f(x='", unit, E, size=200)


@settings(max_examples=max(30, settings().max_examples // 100))
@given(
    st.sampled_from(HEADS),
    st.one_of(st.sampled_from(HOSTILE), st.lists(st.sampled_from(ATOMS), min_size=1, max_size=4).map("".join)),
    st.sampled_from(TAILS),
    from_seed(make_tools),
)
def test_linear(head: str, unit: str, tail: str, tools: Any) -> None:
    """Any repeated pattern after any beginning."""
    assert_linear(head, unit, tail, tools=tools)


LLAMA_UNITS = ["[f(x", " [f(", "[f()", "\n[w(1", "[ ", "[f(a=1)]\n"]


@settings(max_examples=max(15, settings().max_examples // 100))
@given(
    st.sampled_from(["", "[", "[f(x='", "[f(", "[f(x=", "text [", PYTHON_START + "[f(x='", PYTHON_START]),
    st.one_of(
        st.sampled_from(HOSTILE + LLAMA_UNITS),
        st.lists(st.sampled_from(LLAMA_ATOMS), min_size=1, max_size=4).map("".join),
    ),
    from_seed(make_tools),
)
def test_linear_llama4(head: str, unit: str, tools: Any) -> None:
    """The same for Llama 4, whose bare lists are looked for in all text."""
    assert_linear(head, unit, "", "llama4", tools)


@pytest.mark.parametrize("block", ["[w(a=1)]", "[w(a='" + "x" * 200 + "')]", "[" + "w(a=1), " * 40 + "]"])
def test_linear_echo(block: str) -> None:
    """An echo that nearly matches, again and again."""
    assert_linear("", S + block + E + block[:-1] + " ", "")
    assert_linear("", S + block + E + block + " x", "")
    assert_linear(S + block + E, block[:-1], "")


@pytest.mark.parametrize("unit", ["x", "it's ", "', b", "'), ", "\\n", "'x' ", "<|", "é", "\n", "), g(y=1", '"'])
@pytest.mark.parametrize(
    "head", [S + "[f(x='", S + "[f(x=foo('", S + "[f(x=('", "", S + "[f(x=f'", S + "[w(a=1)]" + E + "["]
)
def test_no_copies(head: str, unit: str) -> None:
    """Small deltas do not copy the open block again and again."""
    assert_no_copies(head, unit)


@given(st.integers(0, 2**32))
@settings(max_examples=max(20, settings().max_examples // 100))
def test_the_cost_of_a_delta_depends_on_the_delta(seed: int) -> None:
    """A plain delta late in a long argument costs what it costs early."""
    rng = random.Random(seed)
    unit = "".join(rng.choice('abc ,.:=()[]{}"1') for _ in range(20))
    costs = []
    for before in (5, 400):
        machine = PythonicStream("lfm2", None)
        machine.feed(S + "[f(x='")
        for _ in range(before):
            machine.feed(unit)
        meter = Meter()
        sys.settrace(meter._trace)
        try:
            for _ in range(5):
                machine.feed(unit)
        finally:
            sys.settrace(None)
        costs.append(meter.work)
    assert costs[1] <= costs[0] + 200
