"""What a schema's errors say in the gate's words: a code, a place and a sentence without the model's values."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

from ..wire.strict_json import pointer
from .keywords import undeclared

if TYPE_CHECKING:
    from jsonschema.exceptions import ValidationError
    from jsonschema.protocols import Validator

SchemaCode = Literal["MISSING_REQUIRED", "TYPE_MISMATCH", "SCHEMA_VIOLATION", "OVER_BUDGET"]

MOST = 100
"""Violations that are told of one call: a model can mend a few, and nobody reads thousands."""


@dataclass(frozen=True)
class Violation:
    """One place where arguments break their schema.  ``value`` is what is there, for who asks to see it."""

    code: SchemaCode
    pointer: str
    message: str
    value: Any = None


def violations(validator: Validator, arguments: Any) -> list[Violation]:
    """Everything that is wrong with the arguments, up to ``MOST``."""
    found: dict[tuple[str, str, str], Violation] = {}
    for error in validator.iter_errors(arguments):
        for violation in _told(error):
            found.setdefault((violation.code, violation.pointer, violation.message), violation)
            if len(found) >= MOST:
                return list(found.values())
    return list(found.values())


def _told(error: ValidationError) -> Iterator[Violation]:
    where = pointer(*error.absolute_path)
    keyword = error.validator
    limit: Any = error.validator_value
    value: Any = error.instance
    if keyword == "type":
        yield Violation("TYPE_MISMATCH", where, f"expected {_types(limit)}, found {type_name(value)}", value)
    elif keyword == "required":
        for name in limit:
            if name not in value:
                yield Violation("MISSING_REQUIRED", where + pointer(name), "required, but not given")
    elif keyword in ("anyOf", "oneOf") and error.context:
        yield from _of_branches(error, where)
    elif keyword == "additionalProperties" and limit is False:
        for name in undeclared(value, error.schema):
            message = "the schema has no such property, and allows no others"
            yield Violation("SCHEMA_VIOLATION", where + pointer(name), message, value[name])
    else:
        yield Violation("SCHEMA_VIOLATION", where, _broken(str(keyword), limit), value)


def _of_branches(error: ValidationError, where: str) -> Iterator[Violation]:
    """A union: told by the one branch whose type fits, if there is exactly one."""
    branches: dict[Any, list[ValidationError]] = {}
    for inner in error.context or ():
        branches.setdefault(inner.schema_path[0], []).append(inner)
    fitting = [
        errors
        for errors in branches.values()
        if not any(inner.validator == "type" and not inner.relative_path for inner in errors)
    ]
    if not fitting:
        expected = [inner.validator_value for errors in branches.values() for inner in errors[:1]]
        names = list(dict.fromkeys(_types(limit) for limit in expected))
        message = f"expected {' or '.join(names)}, found {type_name(error.instance)}"
        yield Violation("TYPE_MISMATCH", where, message, error.instance)
    elif len(fitting) == 1:
        for inner in fitting[0]:
            yield from _told(inner)
    else:
        message = f"fits none of the {len(branches)} schemas of {error.validator}"
        yield Violation("SCHEMA_VIOLATION", where, message, error.instance)


def _types(limit: Any) -> str:
    return " or ".join(map(str, limit)) if isinstance(limit, list) else str(limit)


def type_name(value: Any) -> str:
    """The JSON type of a value, with an article-free name; integers told from other numbers."""
    kinds = {bool: "boolean", int: "integer", float: "number", str: "string", list: "array", dict: "object"}
    return "null" if value is None else kinds.get(type(value), type(value).__name__)


_SENTENCES = {
    "enum": "not one of the allowed values {}",
    "const": "not the only allowed value {}",
    "minimum": "less than the minimum {}",
    "maximum": "more than the maximum {}",
    "exclusiveMinimum": "not more than {}",
    "exclusiveMaximum": "not less than {}",
    "multipleOf": "not a multiple of {}",
    "minLength": "shorter than {} characters",
    "maxLength": "longer than {} characters",
    "pattern": "does not match the pattern {}",
    "minItems": "fewer than {} items",
    "maxItems": "more than {} items",
    "minProperties": "fewer than {} properties",
    "maxProperties": "more than {} properties",
    "uniqueItems": "the items are not unique",
    "None": "nothing is allowed here",
}


def _broken(keyword: str, limit: Any) -> str:
    """What the schema wants, in words; the schema is the caller's own, so its limits may be shown."""
    shown = json.dumps(limit, ensure_ascii=False, default=str)
    shown = shown if len(shown) <= 200 else shown[:200] + "…"
    return _SENTENCES.get(keyword, f"breaks {keyword} {{}}").replace("{}", shown)
