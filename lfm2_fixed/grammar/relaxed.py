"""What a grammar does not hold though a schema says it: said in the log, each place once in the process."""

from __future__ import annotations

import logging

_log = logging.getLogger("lfm2_fixed.grammar")

_said: set[tuple[str, str, str]] = set()
_MOST = 10_000
"""Places that are remembered; there are no more lines either."""


def relaxed(function: str, place: str, keyword: str) -> None:
    """Say that ``keyword`` is not enforced at ``place`` (empty: everywhere) in the arguments of ``function``."""
    what = (function, place, keyword)
    if what in _said or len(_said) >= _MOST:
        return
    _said.add(what)
    where = f"argument {place!r} of tool {function!r}" if place else f"tool {function!r}"
    _log.warning("%s: not enforced in constrained calls: %s", where, keyword)


def forget() -> None:
    """Say everything again (for measurements and tests)."""
    _said.clear()
