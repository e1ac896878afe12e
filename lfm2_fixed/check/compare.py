"""How two lists of calls differ, told by the first place where they do."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from ..wire.strict_json import pointer, read
from ..wire.turn import Call

AROUND = 60
"""Characters that are shown on either side of a difference: together one line of a terminal or two."""


@dataclass(frozen=True)
class Difference:
    """The first difference between two lists of calls; ``at``: in the text of the call's arguments."""

    call: int
    message: str
    expected: str
    got: str
    pointer: str = ""
    at: int = 0


def difference(expected: Sequence[Call], got: Sequence[Call], *, same_wire: bool = False) -> Difference | None:
    """How ``got`` differs: in count, names or values.

    Spacing and the order of keys are no difference; 3 and 3.0 are one.  ``same_wire``: both are answers of one server,
    which give namespaces alike; what a model wrote or a client kept may have it in the name, or not at all.
    """
    for index, (one, other) in enumerate(zip(expected, got)):
        if not _same_name(one, other, same_wire):
            return Difference(index, "another name", _named(one), _named(other))
        if one.arguments == other.arguments:
            continue
        at = _first_difference(one.arguments, other.arguments)
        left, right = read(one.arguments), read(other.arguments)
        if left.faults or right.faults:
            expected_text, got_text = around(one.arguments, at), around(other.arguments, at)
            return Difference(index, "other arguments", expected_text, got_text, "", at)
        where = _unequal(left.value, right.value)
        if where is not None:
            path, wanted, found = where
            return Difference(index, "another value", wanted, found, path, at)
    if len(expected) != len(got):
        index = min(len(expected), len(got))
        message = f"{counted(len(got))} in place of {len(expected)}"
        return Difference(index, message, _call(expected, index), _call(got, index))
    return None


def _same_name(one: Call, other: Call, same_wire: bool) -> bool:
    if one.name != other.name:
        return not same_wire and _named(one) == _named(other)
    return one.namespace == other.namespace or not (same_wire or (one.namespace and other.namespace))


def _named(call: Call) -> str:
    """The call's name as models are shown it."""
    return f"{call.namespace}__{call.name}" if call.namespace else call.name


def counted(calls: int) -> str:
    """A number of calls in words."""
    return "1 call" if calls == 1 else f"{calls} calls"


def around(text: str, at: int) -> str:
    """The text around a place, shortened on both sides."""
    begin = max(0, at - AROUND)
    end = begin + 2 * AROUND
    return ("…" if begin else "") + text[begin:end] + ("…" if end < len(text) else "")


def _call(calls: Sequence[Call], index: int) -> str:
    return f"{calls[index].name} {around(calls[index].arguments, 0)}" if index < len(calls) else "no such call"


def _unequal(left: Any, right: Any) -> tuple[str, str, str] | None:
    """Where two JSON values differ first: a pointer, and both values there."""
    todo = [("", left, right)]
    while todo:
        where, one, other = todo.pop()
        if isinstance(one, dict) and isinstance(other, dict):
            for key in {**one, **other}:
                if key not in one or key not in other:
                    return where + pointer(key), _json(one, key), _json(other, key)
            todo += [(where + pointer(key), one[key], other[key]) for key in reversed(one)]
        elif isinstance(one, list) and isinstance(other, list) and len(one) == len(other):
            todo += [(f"{where}/{i}", one[i], other[i]) for i in range(len(one) - 1, -1, -1)]
        elif type(one) is not type(other) or one != other:
            left_text, right_text = json.dumps(one, ensure_ascii=False), json.dumps(other, ensure_ascii=False)
            at = _first_difference(left_text, right_text)
            return where, around(left_text, at), around(right_text, at)
    return None


def _json(mapping: dict[str, Any], key: str) -> str:
    return around(json.dumps(mapping[key], ensure_ascii=False), 0) if key in mapping else "nothing"


def _first_difference(one: str, other: str) -> int:
    pairs: Iterable[tuple[str, str]] = zip(one, other)
    return next((i for i, (a, b) in enumerate(pairs) if a != b), min(len(one), len(other)))
