"""Whether a given value satisfies a schema: what ``enum`` and ``const`` list is filtered by all that stands beside.

A small validator of our own rather than a library's: it is always there, its patterns are automata (no pattern of a
schema can stop it), and what it cannot decide (a foreign reference, a pattern that is not regular) counts as
satisfied, since a value that is listed is meant.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from decimal import Decimal
from fractions import Fraction
from typing import Any

from . import patterns
from .formats import FORMATS
from .schema import Schema, among, equal, is_number, is_of_type, prefix_of, resolve, rest_of
from .work import NotRegular, TooLarge, Work

_DEPTH = 60
"""Schemas within schemas that are followed; below, a value counts as satisfying."""


def satisfies(value: Any, schema: Schema, root: Schema, work: Work, depth: int = 0) -> bool:
    """Whether ``value`` satisfies ``schema``; True where that cannot be said."""
    if isinstance(schema, bool):
        return schema
    if depth > _DEPTH:
        return True
    work.spend(len(schema))

    def holds(value: Any, schema: Schema) -> bool:
        return satisfies(value, schema, root, work, depth + 1)

    if "$ref" in schema:
        target = resolve(root, schema["$ref"])
        if target is not None and not holds(value, target):
            return False
    if "enum" in schema and not among(value, schema["enum"]):
        return False
    if "const" in schema and not equal(value, schema["const"]):
        return False
    types = schema.get("type")
    if types is not None and not is_of_type(value, [types] if isinstance(types, str) else types):
        return False
    if not all(holds(value, inner) for inner in schema.get("allOf", ())):
        return False
    if "anyOf" in schema and not any(holds(value, inner) for inner in schema["anyOf"]):
        return False
    if "oneOf" in schema and sum(holds(value, inner) for inner in schema["oneOf"]) != 1:
        return False
    if "not" in schema and depth < _DEPTH and holds(value, schema["not"]):
        return False
    if "if" in schema and not holds(value, schema.get("then" if holds(value, schema["if"]) else "else", True)):
        return False
    if isinstance(value, str):
        return _string(value, schema, work)
    if is_number(value):
        return _number(value, schema)
    if isinstance(value, Mapping):
        return _object(value, schema, holds, work)
    return _array(value, schema, holds) if isinstance(value, (list, tuple)) else True


def _string(value: str, schema: Mapping[str, Any], work: Work) -> bool:
    if not schema.get("minLength", 0) <= len(value) <= schema.get("maxLength", len(value)):
        return False
    try:
        if "pattern" in schema and not patterns.search(work, schema["pattern"]).accepts(value):
            return False
        known = FORMATS.get(schema.get("format", ""))
        return known is None or patterns.match(known).accepts(value)
    except (NotRegular, TooLarge):
        return True


def _number(value: Any, schema: Mapping[str, Any]) -> bool:
    low, high = schema.get("exclusiveMinimum"), schema.get("exclusiveMaximum")
    if "minimum" in schema and (value < schema["minimum"] or (low is True and value == schema["minimum"])):
        return False
    if "maximum" in schema and (value > schema["maximum"] or (high is True and value == schema["maximum"])):
        return False
    if is_number(low) and value <= low:
        return False
    if is_number(high) and value >= high:
        return False
    return "multipleOf" not in schema or _is_multiple(value, schema["multipleOf"])


def _is_multiple(value: Any, step: Any) -> bool:
    return (Fraction(Decimal(repr(value))) / Fraction(Decimal(repr(step)))).denominator == 1


def _array(value: Sequence[Any], schema: Mapping[str, Any], holds: Any) -> bool:
    if not schema.get("minItems", 0) <= len(value) <= schema.get("maxItems", len(value)):
        return False
    prefix, rest = prefix_of(schema), rest_of(schema)
    if not all(holds(item, inner) for item, inner in zip(value, prefix)):
        return False
    if rest is not None and not all(holds(item, rest) for item in value[len(prefix) :]):
        return False
    if schema.get("uniqueItems") is True and any(among(item, value[:at]) for at, item in enumerate(value)):
        return False
    if "contains" in schema:
        found = sum(holds(item, schema["contains"]) for item in value)
        return bool(schema.get("minContains", 1) <= found <= schema.get("maxContains", found))
    return True


def _object(value: Mapping[str, Any], schema: Mapping[str, Any], holds: Any, work: Work) -> bool:
    if not schema.get("minProperties", 0) <= len(value) <= schema.get("maxProperties", len(value)):
        return False
    if any(key not in value for key in schema.get("required", ())):
        return False
    if "propertyNames" in schema and not all(holds(key, schema["propertyNames"]) for key in value):
        return False
    for keyword in ("dependentRequired", "dependentSchemas", "dependencies"):
        needed = schema.get(keyword)
        for key, what in needed.items() if isinstance(needed, Mapping) else ():
            if key not in value:
                continue
            if isinstance(what, list):
                if any(other not in value for other in what):
                    return False
            elif isinstance(what, (bool, Mapping)) and not holds(value, what):
                return False
    properties, by_pattern = schema.get("properties", {}), schema.get("patternProperties", {})
    for key, member in value.items():
        schemas = [properties[key]] if key in properties else []
        unknown = False
        for pattern, inner in by_pattern.items():
            try:
                if patterns.search(work, pattern).accepts(key):
                    schemas.append(inner)
            except (NotRegular, TooLarge):
                unknown = True
        if not schemas and not unknown:
            schemas = [schema.get("additionalProperties", True)]
        if not all(holds(member, inner) for inner in schemas):
            return False
    return True
