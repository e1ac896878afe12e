"""A bound on the work that one request's grammar may take, in steps.

Automata can grow beyond any measure (a pattern with two counted repetitions, a union of unions), and so can what is
written; the server's other requests wait for them.  So everything that builds an automaton counts its steps: about one
for each edge that is looked at, which is some 1 to 1.3 µs of CPU on a machine of 2024; and writing a rule is charged
what it takes, in the same unit.  When a keyword would need more than it may take, it is left out of the grammar and
reported; everything else in the schema still holds.

Steps, not time: the same schema gives the same grammar on every machine, and a test can count.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable
from threading import Lock
from typing import Any, TypeVar

T = TypeVar("T")

KEYWORD_STEPS = 14_000
"""What one keyword may take: 10 to 18 ms.  Patterns of real tools take below 3,000; labels of host names, with their 63
characters, 13,400."""
AUTOMATA_STEPS = 14_500
"""What all keywords of one tool may take before the next one is left out: with it 35 ms at most.  More than one may
take, for a pattern that is too large is tried again without its counts."""
WRITING_STEPS = 14_500
"""What writing one tool's rules may take: 15 ms.  Then values have their types alone.  Apart from what the keywords may
take, so that a hostile pattern leaves everything else as it is.  Reading a schema comes on top, 10 ms for 200 KB.  The
dearest tools of real servers take 2,400, both together; a union of 300 objects takes 14,200."""
TOOL_STEPS = 18_000
"""What one tool may have taken for both before further keywords are left out."""
REQUEST_STEPS = 160_000
"""What all tools of one request may take together: 200 ms.  All 187 tools of three real servers take 35,000."""
VALUE_STEPS = 25
"""What writing a value takes in any case."""
MEMBER_STEPS = 8
"""What writing a member of an object takes beside its value."""
NUMBER_RULE_STEPS = 11
"""What writing a rule of a number takes; limits may need dozens."""
STRING_RULE_STEPS = 28
"""What writing a rule of a string takes; each length has four, and these are the keyword's."""
LISTED_STEPS = 4
"""What writing a value of an ``enum`` takes."""
BRANCH_STEPS = 10
"""What finding a way through unions takes."""
STATES = 2000
"""States, of strings whose length is counted by them, that are written for one request; equal strings once.  Each is
some four rules.  Behind these, lengths are left out."""
_OWN_STEPS = 200_000
"""What an automaton of our own may take; the largest, of IPv6 addresses, takes 65,000."""
_REMEMBERED = 2048
"""Results kept for the whole process; the oldest goes first."""

_memory: dict[Hashable, tuple[Any, int]] = {}
_own: dict[Hashable, Any] = {}
_lock = Lock()
"""Servers build grammars in threads; the oldest result is looked for while another one may be added."""


class NotRegular(ValueError):
    """A pattern that is no regular language, or none that is read here."""


class TooLarge(ValueError):
    """An automaton that would have too many states, or take too much work."""


class Work:
    """Steps that are left, and how many were taken."""

    def __init__(self, steps: int = REQUEST_STEPS) -> None:
        self.taken = 0
        self.written = 0
        """What of it was taken for writing."""
        self._left = steps
        self._automata = self._writing = self._tool = steps
        self._charged: set[Hashable] = set()
        self._states: dict[Hashable, int] = {}

    def begin_tool(self) -> None:
        """What follows belongs to one tool."""
        self._automata, self._writing, self._tool = AUTOMATA_STEPS, WRITING_STEPS, TOOL_STEPS

    @property
    def spent(self) -> bool:
        """Whether no more is to be written than has to be, in this tool or in the request."""
        return self._left <= 0 or self._writing <= 0

    def admits(self, automaton: Hashable, states: int) -> bool:
        """Whether an automaton of so many states may be written, which counts the first time."""
        if automaton not in self._states:
            if sum(self._states.values()) + states > STATES:
                return False
            self._states[automaton] = states
        return True

    def spend(self, steps: int) -> None:
        """Take ``steps`` for an automaton.

        Raises:
            TooLarge: there are no more.
        """
        self._take(steps)
        if min(self._left, self._automata, self._tool) < 0:
            raise TooLarge("too much work")

    def charge(self, steps: int) -> None:
        """Take ``steps`` for what is written in any case; those that ask later may get nothing."""
        self.written += steps
        self._writing -= steps
        self._all(steps)

    def charge_keyword(self, steps: int) -> None:
        """The same for what a keyword has written: states of a string, of which a request has ``STATES`` at most; one
        long string leaves something to the other keywords."""
        steps = min(steps, KEYWORD_STEPS // 2)
        self.written += steps
        self._take(steps)

    def _take(self, steps: int) -> None:
        """For an automaton."""
        self._automata -= steps
        self._all(steps)

    def _all(self, steps: int) -> None:
        self.taken += steps
        self._left -= steps
        self._tool -= steps

    def once(self, key: Hashable, make: Callable[[Work], T], quick: int = 1) -> T:
        """What ``make`` returns or raises, remembered under ``key`` for the whole process.

        It gets ``KEYWORD_STEPS`` of its own, whatever is left of these; so a result does not depend on what came
        before.  ``quick``: so many of its steps take as long as one does elsewhere.
        What it took is charged here once, also if the result was remembered: what a request may take does not
        depend on the requests before it.
        """
        if min(self._left, self._automata, self._tool) <= 0:
            raise TooLarge("too much work")
        known = _memory.get(key)  # one look: another thread may drop it
        if known is not None:
            result, taken = known
        else:
            inner = Work(quick * KEYWORD_STEPS)
            try:
                result = make(inner)
            except (NotRegular, TooLarge) as error:
                result = error.with_traceback(None)
            taken = inner.taken // quick
            _remember(key, result, taken)
        if key not in self._charged:
            self._charged.add(key)
            self._take(min(taken, KEYWORD_STEPS))
        if isinstance(result, Exception):
            raise result
        return result  # type: ignore[no-any-return]


def own(key: Hashable, make: Callable[[Work], T]) -> T:
    """What ``make`` returns, remembered: for automata of our own (formats, names), which are known not to be large.

    They are never refused and charged to nobody; each is built once in the process.
    """
    if key not in _own:
        _own[key] = make(Work(_OWN_STEPS))
    return _own[key]  # type: ignore[no-any-return]


def _remember(key: Hashable, result: Any, taken: int) -> None:
    with _lock:
        while len(_memory) >= _REMEMBERED:
            _memory.pop(next(iter(_memory)))
        _memory[key] = (result, taken)


def forget() -> None:
    """Drop all remembered results but those of :func:`own` (for measurements and tests)."""
    _memory.clear()
