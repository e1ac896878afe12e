"""How much work a check may cost: steps are counted while it is done, and beyond the budget it stops.

A schema comes from the client and arguments come from the model, so both may be made to be dear: a pattern that
backtracks, a tower of references that doubles at each floor.  What counts is work, not seconds: the same
schema and arguments are refused on every machine, or on none.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

BASE = 20_000
"""Steps that every check may take: ordinary arguments take a few dozen.  One step is 0.5 to 4 µs."""

PER_CHARACTER = 20
"""Further steps for each character of the arguments' JSON text: dense arguments, such as a list of one-digit numbers
under a schema of a few keywords, take about 2 for each character, an ambiguous pattern about 10."""

MOST = 250_000
"""No check takes more steps than this, however long its text is: about a second at most."""

TOOLS = 1_000_000
"""Steps that reading the schemas of one set of tools may take, once: an ordinary tool takes about 1,600."""


class OverBudget(Exception):
    """A check would take more steps than it may."""


class _Account(threading.local):
    """What is left, for each thread by itself: the proxy checks several replies at once."""

    left: int = 0
    open: bool = False


_ACCOUNT = _Account()


def steps_for(characters: int) -> int:
    """The budget for a JSON text of this length."""
    return min(BASE + PER_CHARACTER * characters, MOST)


@contextmanager
def budget(steps: int) -> Iterator[None]:
    """Within it ``spend`` counts, and raises OverBudget when more than these steps are taken."""
    before = _ACCOUNT.left, _ACCOUNT.open
    _ACCOUNT.left, _ACCOUNT.open = steps, True
    try:
        yield
    finally:
        _ACCOUNT.left, _ACCOUNT.open = before


def spend(steps: int = 1) -> None:
    """Take steps from the budget that is open; without one nothing is counted."""
    if _ACCOUNT.open:
        _ACCOUNT.left -= steps
        if _ACCOUNT.left < 0:
            raise OverBudget


def left() -> int:
    """The steps that are left of the open budget."""
    return max(_ACCOUNT.left, 0) if _ACCOUNT.open else MOST


def size(value: Any) -> int:
    """Steps that it takes to walk over a JSON value, or to write it down."""
    total = 0
    todo = [value]
    while todo:
        item = todo.pop()
        total += 1
        if isinstance(item, str):
            total += len(item) // 64  # compared and copied by the machine word, not by the character
        elif isinstance(item, dict):
            todo.extend(item)
            todo.extend(item.values())
        elif isinstance(item, list):
            todo.extend(item)
    return total
