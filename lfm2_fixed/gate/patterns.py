"""``pattern`` and ``patternProperties`` in bounded time, with the meaning that Python's ``re`` gives them.

``re`` backtracks: ``(a+)+$`` takes twice as long for each further character.  So a pattern is looked at when the
schema is compiled.  Most have no repetition inside a repetition; for them the steps that ``re`` can take at
most are a small power of the text's length, and where that is little, ``re`` does the work.  Everything else
is run as an automaton that is in all its states at once (Thompson's construction): one step for each
state and character, counted against the budget.

The automaton has no notion of its own of what a character class or an anchor means: each single-character part of
the pattern is compiled by ``re`` itself, with the flags that hold there.
"""

from __future__ import annotations

import re
import sys
import warnings
from collections.abc import Callable, Iterable
from functools import lru_cache
from typing import Any

from .budget import OverBudget, spend

if sys.version_info >= (3, 11):
    from re import _compiler, _constants, _parser  # type: ignore[attr-defined]
else:  # the same modules under their old names
    import sre_compile as _compiler
    import sre_constants as _constants
    import sre_parse as _parser

CHEAP = 100_000
"""Steps that ``re`` may take at most for one text before the automaton is used: about a millisecond."""

MOST_STATES = 2_000
"""States of the largest automaton.  ``(a{99}){99}`` would be ten thousand; such patterns are refused instead."""

RE_STEPS = 50
"""Steps of ``re`` that cost as much as one of the budget's: it runs in C."""


class _NoAutomaton(Exception):
    """The pattern is no regular language (a back reference, an atomic group), or its automaton is too large."""


class Pattern:
    """A compiled pattern.  Raises ``re.error`` for a text that is none."""

    def __init__(self, source: str) -> None:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of patterns that later versions will read otherwise
            self._compiled = re.compile(source)
            tree = _parser.parse(source)
        self._repeats, self._nested = _repetition(tree)
        self._anchored = _anchored(tree)
        self._tree = tree
        self._automaton: _Automaton | None = None
        self._impossible = False

    def found_in(self, text: str) -> bool:
        """Whether the pattern matches anywhere in the text.  Raises OverBudget."""
        worst = self._worst(len(text))
        if worst <= CHEAP:
            spend(1 + worst // RE_STEPS)
            return self._compiled.search(text) is not None
        if self._automaton is None and not self._impossible:
            try:
                self._automaton = _Automaton(self._tree, self._compiled.flags)
            except _NoAutomaton:
                self._impossible = True
        if self._automaton is None:
            raise OverBudget
        return self._automaton.found_in(text)

    def _worst(self, length: int) -> int:
        """The most steps that ``re`` can take; ``CHEAP + 1`` stands for all beyond it."""
        if self._nested and length > 12:  # up to 2 ** 12 ways; no matter which, for so short a text
            return CHEAP + 1
        ways = min(self._repeats, 8) + (0 if self._anchored else 1)
        worst: int = (length + 1) ** max(ways, 1) * (4096 if self._nested else 1)
        return min(worst, CHEAP + 1)


@lru_cache(maxsize=512)
def compiled(source: str) -> Pattern:
    """The pattern, compiled once.  Raises ``re.error``."""
    return Pattern(source)


def found(source: str, text: str) -> bool:
    """``re.search``, in bounded time.  Raises OverBudget."""
    return compiled(source).found_in(text)


_REPEATS = tuple(getattr(_constants, name) for name in ("MAX_REPEAT", "MIN_REPEAT"))
_ATOMIC = tuple(getattr(_constants, name, None) for name in ("POSSESSIVE_REPEAT", "ATOMIC_GROUP"))
_SINGLE = tuple(getattr(_constants, name) for name in ("LITERAL", "NOT_LITERAL", "ANY", "IN", "CATEGORY"))


def _repetition(tree: Any) -> tuple[int, bool]:
    """How many repetitions of variable length a pattern has, and whether a choice stands inside a repetition.

    The first is the power of the text's length that backtracking can take, the second makes it exponential.
    """
    count, nested = 0, False
    for op, value in tree:
        inner: list[Any] = []
        repeated = False
        if op in _REPEATS or op is _ATOMIC[0]:
            low, high, body = value
            inner = [body]
            repeated = int(high) > 1
            count += int(high) != int(low)
        elif op is _constants.BRANCH:
            inner = value[1]
            count += len(inner) > 1
        elif op is _constants.SUBPATTERN:
            inner = [value[-1]]
        elif op in (_constants.ASSERT, _constants.ASSERT_NOT):
            inner = [value[1]]
        elif op is _constants.GROUPREF_EXISTS:
            inner = [part for part in value[1:] if part is not None]
        elif op is _ATOMIC[1]:
            inner = [value]
        for part in inner:
            below, deep = _repetition(part)
            count += below
            nested = nested or deep or (repeated and below > 0)
    return count, nested


def _anchored(tree: Any) -> bool:
    """Whether a match can begin at the start of the text alone."""
    for op, value in tree:
        return bool(
            (op is _constants.AT and value in (_constants.AT_BEGINNING, _constants.AT_BEGINNING_STRING))
            and not tree.state.flags & re.MULTILINE
        )
    return False


class _Automaton:
    """A pattern as a list of instructions, run in all their threads at once.

    An instruction is one of: ``("char", test, next)``, ``("at", test, next)``, ``("split", [next …])``,
    ``("look", program, ahead, width, wanted, next)``, ``("match",)``.
    """

    def __init__(self, tree: Any, flags: int) -> None:
        self._code: list[tuple[Any, ...]] = []
        self._tests: dict[tuple[int, str], bool] = {}
        end = self._emit(("match",))
        self._start = self._sequence(tree, flags, end)

    def found_in(self, text: str) -> bool:
        return self._run(self._start, text, 0, anywhere=True)

    # --- construction, from the end of the pattern to its beginning

    def _emit(self, instruction: tuple[Any, ...]) -> int:
        if len(self._code) >= MOST_STATES:
            raise _NoAutomaton
        self._code.append(instruction)
        return len(self._code) - 1

    def _sequence(self, parts: Iterable[Any], flags: int, after: int) -> int:
        for op, value in reversed(list(parts)):
            after = self._part(op, value, flags, after)
        return after

    def _part(self, op: Any, value: Any, flags: int, after: int) -> int:
        if op in _SINGLE:
            test = _alone(op, value, flags)
            return self._emit(("char", lambda c: test.match(c) is not None, after))
        if op is _constants.AT:
            at = _alone(op, value, flags)
            return self._emit(("at", lambda text, place: at.match(text, place) is not None, after))
        if op is _constants.SUBPATTERN:
            _, added, removed, body = value
            return self._sequence(body, (flags | added) & ~removed, after)
        if op is _constants.BRANCH:
            return self._emit(("split", [self._sequence(branch, flags, after) for branch in value[1]]))
        if op in _REPEATS:
            low, high, body = value
            return self._repeat(low, high, body, flags, after)
        if op in (_constants.ASSERT, _constants.ASSERT_NOT):
            direction, body = value
            width = 0
            if direction < 0:  # fixed, or ``re`` would not have compiled it
                width = int(body.getwidth()[0])
            begin = self._sequence(body, flags, self._emit(("match",)))
            return self._emit(("look", begin, direction > 0, width, op is _constants.ASSERT, after))
        raise _NoAutomaton

    def _repeat(self, low: int, high: int, body: Any, flags: int, after: int) -> int:
        low, limit = int(low), int(high)
        if high == _constants.MAXREPEAT:
            loop = self._emit(("split", []))
            self._code[loop][1].extend([self._sequence(body, flags, loop), after])
            after = loop
            optional = 0
        else:
            optional = limit - low
        for _ in range(optional):
            after_body = self._sequence(body, flags, after)
            after = self._emit(("split", [after_body, after]))
        for _ in range(low):
            after = self._sequence(body, flags, after)
        return after

    # --- running

    def _run(self, start: int, text: str, place: int, *, anywhere: bool = False, until: int | None = None) -> bool:
        """Whether a match begins at ``place`` (or later), and, for what looks behind, ends at ``until``."""
        threads: list[int] = []
        while True:
            if anywhere or not threads:
                threads.append(start)
            waiting, matched = self._close(threads, text, place)
            if matched and (until is None or place == until):
                return True
            if place >= len(text) or place == until:
                return False
            character = text[place]
            threads = [self._code[state][2] for state in waiting if self._test(state, character)]
            if not threads and not anywhere:
                return False
            place += 1

    def _close(self, todo: list[int], text: str, place: int) -> tuple[list[int], bool]:
        """The states that wait for a character here, of all that can be reached without one; and whether the
        end is reached."""
        waiting = []
        seen = set()
        matched = False
        while todo:
            state = todo.pop()
            if state in seen:
                continue
            seen.add(state)
            kind, *rest = self._code[state]
            if kind == "char":
                waiting.append(state)
            elif kind == "match":
                matched = True
            elif kind == "split":
                todo.extend(rest[0])
            elif kind == "at":
                if rest[0](text, place):
                    todo.append(rest[1])
            elif kind == "look" and self._look(rest, text, place):
                todo.append(rest[-1])
        spend(len(seen))
        return waiting, matched

    def _look(self, parts: list[Any], text: str, place: int) -> bool:
        begin, ahead, width, wanted, _ = parts
        if ahead:
            return self._run(begin, text, place) is wanted
        behind = place - width
        return (behind >= 0 and self._run(begin, text, behind, until=place)) is wanted

    def _test(self, state: int, character: str) -> bool:
        key = (state, character)
        known = self._tests.get(key)
        if known is None:
            if len(self._tests) > 10_000:  # a text of many different characters: no more memory for speed
                self._tests.clear()
            known = self._tests[key] = self._code[state][1](character)
        return known


def _alone(op: Any, value: Any, flags: int) -> re.Pattern[str]:
    """A pattern of this one part."""
    state = _parser.State()
    state.flags = flags
    make: Callable[..., re.Pattern[str]] = _compiler.compile
    return make(_parser.SubPattern(state, [(op, value)]), flags)
