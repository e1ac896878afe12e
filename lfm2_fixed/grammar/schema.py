"""Reading a JSON Schema: references, validity, types.  What the keywords mean is in ``keywords``."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Any, Union

Schema = Union[bool, Mapping[str, Any]]

MAX_DEPTH = 100
"""Schemas within schemas; deeper ones are not read, so that none overflows the stack."""

ANNOTATIONS = frozenset(["title", "description", "default", "examples", "deprecated", "$comment", "readOnly"])
"""Keywords that limit nothing."""

TYPES = frozenset({"object", "array", "string", "number", "integer", "boolean", "null"})


class SchemaError(ValueError):
    """A tool's ``parameters`` that are no JSON Schema of an object.  The message says where and why."""


def says_nothing(schema: Schema) -> bool:
    """Whether it is certain that every value satisfies ``schema``."""
    return schema is True or (isinstance(schema, Mapping) and schema.keys() <= ANNOTATIONS)


# --- types ----------------------------------------------------------------------------------------


def types_of(parts: Sequence[Mapping[str, Any]]) -> frozenset[str] | None:
    """The types that all ``parts`` allow; None: none of them says."""
    types: frozenset[str] | None = None
    for part in parts:
        if "type" not in part:
            continue
        here = frozenset([part["type"]] if isinstance(part["type"], str) else part["type"])
        if types is None:
            types = here
        else:
            one_whole = ("number" in types and "integer" in here) or ("integer" in types and "number" in here)
            types = (types & here) | ({"integer"} if one_whole else set())
    return types


def type_of(value: Any) -> str:
    """The type of a JSON value; a number that is written with a point is no integer here."""
    if value is None:
        return "null"
    if isinstance(value, bool):
        return "boolean"
    if isinstance(value, int):
        return "integer"
    if isinstance(value, float):
        return "number"
    if isinstance(value, str):
        return "string"
    return "object" if isinstance(value, Mapping) else "array"


def is_of_type(value: Any, types: Collection[str]) -> bool:
    """Whether the value is of one of the types: a number without a fraction is an integer."""
    kind = type_of(value)
    whole = isinstance(value, float) and value.is_integer()
    return kind in types or (kind == "integer" and "number" in types) or (whole and "integer" in types)


def equal(a: Any, b: Any) -> bool:
    """Whether two JSON values are the same: 1 and 1.0 are, 1 and true are not."""
    kinds = type_of(a), type_of(b)
    if set(kinds) <= {"integer", "number"}:
        return bool(a == b)
    if kinds[0] != kinds[1]:
        return False
    if kinds[0] == "object":
        return a.keys() == b.keys() and all(equal(a[key], b[key]) for key in a)
    if kinds[0] == "array":
        return len(a) == len(b) and all(map(equal, a, b))
    return bool(a == b)


def canonical(value: Any) -> str:
    """A text that is the same for equal values, and for no others."""

    def plain(value: Any) -> Any:
        if isinstance(value, float) and value.is_integer():
            return int(value)
        if isinstance(value, Mapping):
            return {key: plain(member) for key, member in value.items()}
        return [plain(item) for item in value] if isinstance(value, (list, tuple)) else value

    return json.dumps(plain(value), sort_keys=True)


def among(value: Any, others: Iterable[Any]) -> bool:
    """Whether ``value`` is one of ``others``."""
    return any(equal(value, other) for other in others)


def prefix_of(part: Mapping[str, Any]) -> Sequence[Schema]:
    """The schemas of the first items, one each: ``prefixItems``, or a list under ``items`` as in older drafts."""
    prefix = part.get("prefixItems", part["items"] if isinstance(part.get("items"), list) else ())
    return list(prefix)


def rest_of(part: Mapping[str, Any]) -> Schema | None:
    """The schema of the items after the prefix; None: not said."""
    rest = part.get("additionalItems") if isinstance(part.get("items"), list) else part.get("items")
    return rest if isinstance(rest, (bool, Mapping)) else None


# --- references -----------------------------------------------------------------------------------


def resolve(root: Schema, reference: str) -> Schema | None:
    """The schema that a local ``$ref`` points to; None if it is not local.

    Raises:
        SchemaError: a local reference to nothing.
    """
    if not reference.startswith("#"):
        return None
    if reference != "#" and not reference.startswith("#/"):
        return None  # an anchor
    found: Any = root
    for step in reference[2:].split("/") if len(reference) > 1 else ():
        step = re.sub("%([0-9a-fA-F]{2})", lambda code: chr(int(code[1], 16)), step)
        step = step.replace("~1", "/").replace("~0", "~")
        if isinstance(found, Mapping) and step in found:
            found = found[step]
        elif isinstance(found, list) and step.isascii() and step.isdigit() and int(step[:9]) < len(found):
            found = found[int(step[:9])]
        else:
            raise SchemaError(f"$ref {reference!r} points to nothing")
    if not isinstance(found, (bool, Mapping)):
        raise SchemaError(f"$ref {reference!r} does not point to a schema")
    return found


# --- validity -------------------------------------------------------------------------------------


def is_number(value: Any) -> bool:
    """Whether ``value`` is a finite JSON number (an integer may be of any length)."""
    return (isinstance(value, int) and not isinstance(value, bool)) or (
        isinstance(value, float) and math.isfinite(value)
    )


def count(value: Any) -> str | None:
    """What is wrong with the value of a counting keyword."""
    return None if is_number(value) and value >= 0 and value == int(value) else "is no count"


def number(value: Any) -> str | None:
    """What is wrong with the value of a numeric keyword."""
    return None if is_number(value) else "is no number"


def limit(value: Any) -> str | None:
    """The same for ``exclusiveMinimum`` and its like: a boolean in draft 4."""
    return None if isinstance(value, bool) or is_number(value) else "is no number"


def positive(value: Any) -> str | None:
    """The same for ``multipleOf``."""
    return number(value) or (None if value > 0 else "is not above 0")


def text(value: Any) -> str | None:
    """The same for a string."""
    return None if isinstance(value, str) else "is no string"


def array(value: Any) -> str | None:
    """The same for an array."""
    return None if isinstance(value, list) else "is no array"


def names(value: Any) -> str | None:
    """The same for an array of strings.  (Draft 3 had a boolean ``required``; later drafts do not.)"""
    return None if isinstance(value, list) and all(isinstance(key, str) for key in value) else "is no array of strings"


def types(value: Any) -> str | None:
    """The same for ``type``."""
    kinds = value if isinstance(value, list) else [value]
    if not kinds:
        return "is empty"
    wrong = [kind for kind in kinds if not isinstance(kind, str) or kind not in TYPES]
    return f"is unknown: {shown(wrong[0])}" if wrong else None


def shown(value: Any) -> str:
    """The beginning of a value's JSON text, for messages."""
    written = json.dumps(value, default=str)
    return written if len(written) <= 40 else written[:37] + "..."
