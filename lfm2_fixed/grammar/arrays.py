"""Arrays: ``items``, ``prefixItems``, ``minItems``, ``maxItems``."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from .here import Here
from .rules import SEPARATOR
from .schema import Schema, prefix_of, rest_of

_COUNTED = 64
"""Items that are counted one by one; more of them by a repetition with a count."""
_NO_LIMIT = 65_536
"""A limit from here on is none: so many items do not fit into an answer.  (A notation may count fewer.)"""


@dataclass
class Items:
    """What a schema's keywords say about an array."""

    parts: list[Mapping[str, Any]] = field(default_factory=list)
    """The schemas that describe items, each with its prefix and its rest."""
    low: int = 0
    high: int | None = None
    unique: bool = False


def items(array: Items, part: Mapping[str, Any], here: Here) -> None:
    """``items``, ``prefixItems`` and ``additionalItems``, which belong together."""
    if not array.parts or array.parts[-1] is not part:  # its keywords are read one after the other
        array.parts.append(part)


def min_items(array: Items, part: Mapping[str, Any], here: Here) -> None:
    """``minItems``."""
    array.low = max(array.low, int(part["minItems"]))


def max_items(array: Items, part: Mapping[str, Any], here: Here) -> None:
    """``maxItems``."""
    high = int(part["maxItems"])
    array.high = high if array.high is None else min(array.high, high)


def unique_items(array: Items, part: Mapping[str, Any], here: Here) -> None:
    """``uniqueItems``: no grammar remembers what was written."""
    array.unique |= part["uniqueItems"] is True


def write(array: Items, here: Here) -> str | None:
    """The expression for an array; None if none is left."""
    rules = here.rules
    prefixes = [prefix_of(part) for part in array.parts]
    low, high = array.low, array.high
    if high is not None and high < low:
        return None
    if high is not None and high >= _NO_LIMIT:
        high = None
    most = rules.notation.most_repeated
    if high is not None and high > most:
        here.relax(f"maxItems above {most}")
        high = None
    if low > most:
        here.relax(f"minItems above {most}")
        low = most
    if array.unique and (high is None or high > 1):
        here.relax("uniqueItems")

    def item(at: int) -> str | None:
        schemas: list[Schema] = []
        for part, prefix in zip(array.parts, prefixes):
            if at < len(prefix):
                schemas.append(prefix[at])
            elif (rest := rest_of(part)) is not None:
                schemas.append(rest)
        return here.value(schemas, here.items())

    longest = max(map(len, prefixes), default=0)
    counted = max(1, longest, min(low, _COUNTED), min(high or 0, _COUNTED))
    if high is not None:
        counted = min(counted, high)
    # Backwards: ``after`` is what may follow ``at`` items.
    after: str | None = '"]"' if counted >= low else None
    last = item(counted)  # of those without a schema of their own
    if high is None or high > counted:
        if last is not None and high is None and counted >= low:
            after, new = rules.reserve(("items", last))
            if new:
                rules.define(after, ['"]"', f"{SEPARATOR} {last} {after}"])
        elif last is not None:
            bounds = f"{max(low - counted, 0)},{'' if high is None else high - counted}"
            after = f'{rules.one_of(f"{SEPARATOR} {last}")}{{{bounds}}} "]"'
    for at in range(counted - 1, -1, -1):
        element = item(at) if at < longest else last
        alternatives = ['"]"'] if at >= low else []
        if element is not None and after is not None:
            alternatives.append(f"{SEPARATOR if at else ''} {element} {after}")
        after = rules.one_of(*alternatives) if alternatives else None
    return after and f'"[" {after}'
