"""JSON read strictly: what RFC 8259 leaves open or Python's reader lets through is a fault, not a guess.

Where the line is drawn:

- ``NaN``, ``Infinity`` and numbers no double can hold (``1e999``) are *non-finite*.  Integers are exact at
  any size up to ``MAX_DIGITS``; a longer number is refused, since readers differ on it (CPython's raises).
- A member name given twice, at any depth, is a *duplicate key*, compared after decoding: ``"a"`` and
  ``"\\u0061"`` are the same.
- A lone surrogate, escaped or raw, is no Unicode text, and nesting deeper than ``MAX_DEPTH`` is beyond what
  readers agree on: both are *syntax* faults here.
"""

from __future__ import annotations

import json
import math
import re
from dataclasses import dataclass
from typing import Any, Literal

MAX_DEPTH = 200
"""Levels of arrays and objects; one more is refused."""

MAX_DIGITS = 4000
"""Characters of one number; one more is refused."""

_TOKENS = re.compile(r'"[^"\\]*(?:\\.[^"\\]*)*"?|[\[{]|[\]}]', re.DOTALL)
_SURROGATE = re.compile("[\ud800-\udfff]")


@dataclass(frozen=True)
class Fault:
    """One thing wrong with a JSON text.

    ``pointer``: where, as an RFC 6901 JSON pointer; ``offset``: where in the text, in characters, if known.
    ``message``: says what is wrong without quoting any value.
    """

    kind: Literal["syntax", "duplicate key", "non-finite"]
    pointer: str
    message: str
    offset: int | None = None


@dataclass(frozen=True)
class Reading:
    """What a text says.  ``value`` means something only if there are no ``faults``."""

    value: Any
    faults: tuple[Fault, ...]


class _Refused:
    """Stands for a number that cannot be taken."""

    def __init__(self, kind: Literal["syntax", "non-finite"], message: str) -> None:
        self.kind: Literal["syntax", "non-finite"] = kind
        self.message = message


class _Members(list[tuple[str, Any]]):
    """An object as its members in order, repeated ones included."""


def pointer(*path: object) -> str:
    """An RFC 6901 JSON pointer to what is found by these keys and indexes."""
    return "".join("/" + str(part).replace("~", "~0").replace("/", "~1") for part in path)


def read(text: object) -> Reading:
    """Read one JSON text.  Never raises; all faults are told, as far as the text can be read."""
    if not isinstance(text, str):
        return _syntax(f"not a text but {_kind(text)}", None)
    if not text.strip(" \t\r\n"):
        return _syntax("empty", 0)
    too_deep = _beyond_depth(text)
    if too_deep is not None:
        return _syntax(f"nested deeper than {MAX_DEPTH} levels", too_deep)
    try:
        tree = json.loads(
            text,
            object_pairs_hook=_Members,
            parse_constant=lambda name: _Refused("non-finite", f"{name} is not JSON"),
            parse_int=_integer,
            parse_float=_real,
        )
    except json.JSONDecodeError as error:
        return _syntax(f"{_plainly(error, text)}, at character {error.pos}", error.pos)
    except RecursionError:
        return _syntax("nested too deep for the stack that is left", None)
    return _checked(tree)


def _syntax(message: str, offset: int | None) -> Reading:
    return Reading(None, (Fault("syntax", "", message, offset),))


def _plainly(error: json.JSONDecodeError, text: str) -> str:
    if error.pos >= len(text) or error.msg.startswith("Unterminated string"):
        return "the text ends before the JSON does"
    if error.msg == "Extra data":
        return "something follows after the JSON's end"
    return (error.msg[:1].lower() + error.msg[1:]).removesuffix(" at")


def _kind(value: object) -> str:
    return "nothing" if value is None else f"a {type(value).__name__}"


def _beyond_depth(text: str) -> int | None:
    """Where it gets too deep; found before Python's reader, which recurses, is let loose on it."""
    if text.count("[") + text.count("{") <= MAX_DEPTH:
        return None
    depth = 0
    for token in _TOKENS.finditer(text):
        first = text[token.start()]
        if first in "[{":
            depth += 1
            if depth > MAX_DEPTH:
                return token.start()
        elif first != '"':
            depth -= 1
    return None


def _integer(digits: str) -> Any:
    return int(digits) if len(digits) <= MAX_DIGITS else _too_long()


def _real(digits: str) -> Any:
    if len(digits) > MAX_DIGITS:
        return _too_long()
    number = float(digits)
    return number if math.isfinite(number) else _Refused("non-finite", "a number too large for a double")


def _too_long() -> _Refused:
    return _Refused("syntax", f"a number longer than {MAX_DIGITS} characters")


def _checked(tree: Any) -> Reading:
    """Turn members into dicts, and find what the reader let through; with a stack of its own, in order."""
    faults: list[Fault] = []
    root: list[Any] = [None]
    # One entry: what was read, where it goes (a container and its key), its path as a pointer.
    todo: list[tuple[Any, Any, Any, str]] = [(tree, root, 0, "")]
    while todo:
        node, home, key, where = todo.pop()
        below: list[tuple[Any, Any, Any, str]] = []
        if isinstance(node, _Members):
            value: Any = {}
            for name, member in node:
                at = where + pointer(name)
                if name in value:
                    faults.append(Fault("duplicate key", at, "this key is given more than once"))
                if not name.isascii() and _SURROGATE.search(name):
                    faults.append(Fault("syntax", where, "a key holds a lone surrogate"))
                value[name] = None  # keeps the order
                below.append((member, value, name, at))
        elif isinstance(node, list):
            value = [None] * len(node)
            below = [(item, value, index, f"{where}/{index}") for index, item in enumerate(node)]
        elif isinstance(node, _Refused):
            value = None
            faults.append(Fault(node.kind, where, node.message))
        else:
            value = node
            if isinstance(node, str) and not node.isascii() and _SURROGATE.search(node):
                faults.append(Fault("syntax", where, "a string holds a lone surrogate"))
        home[key] = value
        todo.extend(reversed(below))
    return Reading(root[0], tuple(faults))
