"""Literals of given values: ``enum`` and ``const``, and the types that have few values."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

from .quotes import constant_string
from .rules import SEPARATOR, Rules, literal

BOOLEAN = '("True" | "False" | "true" | "false")'
NULL = '("None" | "null")'


def constant(rules: Rules, value: Any) -> str | None:
    """The expression for the literals of one JSON value; None if there are none."""
    if value is None:
        return NULL
    if value is True or value is False:
        return f'("{value}" | "{str(value).lower()}")'
    if isinstance(value, str):
        return constant_string(rules, value)
    if isinstance(value, int):
        return literal(str(value)) if abs(value) < 10**300 else None
    if isinstance(value, float):
        if not math.isfinite(value):
            return None
        whole = f" | {literal(str(int(value)))}" if value.is_integer() and abs(value) < 10**16 else ""
        return f"({literal(repr(value))}{whole})"
    if isinstance(value, Mapping):
        members = [(constant_string(rules, str(key)), constant(rules, member)) for key, member in value.items()]
        pieces = [f'{key} ":" " "? {member}' for key, member in members if key and member]
    else:
        pieces = [item for item in (constant(rules, item) for item in value) if item]
    if len(pieces) < len(value):
        return None
    opening, closing = "{}" if isinstance(value, Mapping) else "[]"
    if not pieces:
        return literal(opening + closing)
    inner = rules.sequence([pieces[0], *(f"{SEPARATOR} {piece}" for piece in pieces[1:])])
    return rules.one_of(f'"{opening}" {inner} "{closing}"')
