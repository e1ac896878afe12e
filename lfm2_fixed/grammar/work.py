"""A bound on the work that one request's grammar may take, in steps.

Automata can grow beyond any measure (a pattern with two counted repetitions, a union of unions), and the server's
event loop waits for them.  So everything that builds one counts its steps: about one for each edge that is looked
at, which is some 0.5 to 1 µs of CPU on a machine of 2024.  When a keyword would need more than it may take, it is
left out of the grammar and reported; everything else in the schema still holds.

Steps, not time: the same schema gives the same grammar on every machine, and a test can count.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable
from threading import Lock
from typing import Any, TypeVar

T = TypeVar("T")

KEYWORD_STEPS = 30_000
"""What one keyword may take: 15 to 30 ms.  Patterns of real schemas take below 3,000."""
REQUEST_STEPS = 80_000
"""What all keywords of one request may take together: 40 to 110 ms, which leaves as much for writing the rules."""
VALUES = 2500
"""Values that are written for one request, whatever they say: each takes about 80 µs.  The largest collections of tools
of real servers have some 1,000; what comes behind these has its type alone."""
BRANCHES = 2500
"""Branches of unions that are looked at for one request; each is written apart, which takes 25 µs.  The largest
configuration files have some 800.  Behind these, unions are left out; what one value may take is bounded by itself."""
_MEMBERS = 5
"""So many members whose values have been written before take the time of a value: objects of hundreds of members, each
an object of the same members, have more members than values."""
STATES = 2000
"""States, of strings whose length is counted by them, that are written for one request; equal strings once.  Each is
some four rules, 40 µs each.  Behind these, lengths are left out."""
_OWN_STEPS = 200_000
"""What an automaton of our own may take; the largest, of IPv6 addresses, takes 65,000."""
_REMEMBERED = 2048
"""Results kept for the whole process; the oldest goes first."""

_memory: dict[Hashable, tuple[Any, int]] = {}
_lock = Lock()
"""Servers build grammars in threads; the oldest result is looked for while another one may be added."""


class NotRegular(ValueError):
    """A pattern that is no regular language, or none that is read here."""


class TooLarge(ValueError):
    """An automaton that would have too many states, or take too much work."""


class Work:
    """Steps that are left, and how many were taken."""

    def __init__(self, steps: int = REQUEST_STEPS) -> None:
        self.left = steps
        self.taken = 0
        self.values = 0
        """Values that were written."""
        self.members = 0
        """Members of objects that were begun: counted before the values in them, which may be objects, too."""
        self.branches = 0
        """Branches of unions that were looked at."""
        self._charged: set[Hashable] = set()
        self._states: dict[Hashable, int] = {}

    @property
    def written(self) -> int:
        """All that was written, in values: see ``VALUES``."""
        return self.values + self.members // _MEMBERS

    def admits(self, automaton: Hashable, states: int) -> bool:
        """Whether an automaton of so many states may be written, which counts the first time."""
        if automaton not in self._states:
            if sum(self._states.values()) + states > STATES:
                return False
            self._states[automaton] = states
        return True

    def spend(self, steps: int) -> None:
        """Take ``steps``.

        Raises:
            TooLarge: there are no more.
        """
        self.taken += steps
        self.left -= steps
        if self.left < 0:
            raise TooLarge("too much work")

    def charge(self, steps: int) -> None:
        """Take ``steps`` for what is written in any case; those that ask later may get nothing."""
        self.taken += steps
        self.left -= steps

    def once(self, key: Hashable, make: Callable[[Work], T]) -> T:
        """What ``make`` returns or raises, remembered under ``key`` for the whole process.

        It gets ``KEYWORD_STEPS`` of its own, whatever is left of these; so a result does not depend on what came
        before.
        What it took is charged here once, also if the result was remembered: what a request may take does not
        depend on the requests before it.
        """
        if self.left <= 0:
            raise TooLarge("too much work")
        known = _memory.get(key)  # one look: another thread may drop it
        if known is not None:
            result, taken = known
        else:
            inner = Work(KEYWORD_STEPS)
            try:
                result = make(inner)
            except (NotRegular, TooLarge) as error:
                result = error.with_traceback(None)
            taken = inner.taken
            _remember(key, result, taken)
        if key not in self._charged:
            self._charged.add(key)
            self.charge(min(taken, KEYWORD_STEPS))
        if isinstance(result, Exception):
            raise result
        return result  # type: ignore[no-any-return]


def own(key: Hashable, make: Callable[[Work], T]) -> T:
    """What ``make`` returns, remembered: for automata of our own (formats, names), which are known not to be large.

    They are never refused and charged to nobody; each is built once in the process.
    """
    known = _memory.get(key)
    if known is not None:
        return known[0]  # type: ignore[no-any-return]
    result = make(Work(_OWN_STEPS))
    _remember(key, result, 0)
    return result


def _remember(key: Hashable, result: Any, taken: int) -> None:
    with _lock:
        while len(_memory) >= _REMEMBERED:
            _memory.pop(next(iter(_memory)))
        _memory[key] = (result, taken)


def forget() -> None:
    """Drop all remembered results (for measurements and tests)."""
    _memory.clear()
