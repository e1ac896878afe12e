"""The keywords of JSON Schema that are read, a row each.

To add one: a function that reads it from a schema (``part``) into what is known about values of its type (a
``Text``, ``Number``, ``Items`` or ``Members``), and a row that names it.  What the row says about the keyword's own
value is checked before anything is read.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from enum import Enum
from typing import Any, NamedTuple, Union

from . import arrays, objects, ranges, schema, strings
from .here import Here
from .schema import MAX_DEPTH, Schema, SchemaError, resolve, says_nothing, shown
from .work import TooLarge


class Nested(Enum):
    """Schemas within a keyword's value."""

    ONE = "a schema"
    SOME = "an array of schemas"
    MAP = "an object of schemas"
    ITEMS = "a schema, or an array of schemas as in older drafts"
    MIXED = "an object of schemas and arrays of names"


class Keyword(NamedTuple):
    """One row."""

    of: str | None
    """The type of values about which it says something.  Where no type is stated, it is taken to be this one.  None:
    values of any type."""
    form: Nested | Callable[[Any], str | None]
    """What its value has to be: schemas, or a check that says what is wrong with it."""
    read: Callable[[Any, Mapping[str, Any], Here], None] | None = None
    """Reads it; None: it is read where values of all types are (``values``), or not enforced (``enforced``)."""
    enforced: bool = True
    """Whether a grammar can express it.  Otherwise it is reported where it stands."""


KEYWORDS: dict[str, Keyword] = {
    "$ref": Keyword(None, schema.text),
    "type": Keyword(None, schema.types),
    "enum": Keyword(None, schema.array),
    "allOf": Keyword(None, Nested.SOME),
    "anyOf": Keyword(None, Nested.SOME),
    "oneOf": Keyword(None, Nested.SOME),
    "$defs": Keyword(None, Nested.MAP),
    "definitions": Keyword(None, Nested.MAP),
    "pattern": Keyword("string", schema.text, strings.pattern),
    "format": Keyword("string", schema.text, strings.format_),
    "minLength": Keyword("string", schema.count, strings.min_length),
    "maxLength": Keyword("string", schema.count, strings.max_length),
    "minimum": Keyword("number", schema.number, ranges.minimum),
    "maximum": Keyword("number", schema.number, ranges.maximum),
    "exclusiveMinimum": Keyword("number", schema.limit, ranges.exclusive_minimum),
    "exclusiveMaximum": Keyword("number", schema.limit, ranges.exclusive_maximum),
    "multipleOf": Keyword("number", schema.positive, ranges.multiple_of),
    "items": Keyword("array", Nested.ITEMS, arrays.items),
    "prefixItems": Keyword("array", Nested.SOME, arrays.items),
    "additionalItems": Keyword("array", Nested.ONE, arrays.items),
    "minItems": Keyword("array", schema.count, arrays.min_items),
    "maxItems": Keyword("array", schema.count, arrays.max_items),
    "uniqueItems": Keyword("array", lambda value: None, arrays.unique_items),
    "properties": Keyword("object", Nested.MAP, objects.members),
    "patternProperties": Keyword("object", Nested.MAP, objects.members),
    "additionalProperties": Keyword("object", Nested.ONE, objects.members),
    "propertyNames": Keyword("object", Nested.ONE, objects.property_names),
    "required": Keyword("object", schema.names, objects.required),
    "minProperties": Keyword("object", schema.count, objects.min_properties),
    "maxProperties": Keyword("object", schema.count, objects.max_properties),
    "not": Keyword(None, Nested.ONE, enforced=False),
    "if": Keyword(None, Nested.ONE, enforced=False),
    "then": Keyword(None, Nested.ONE),
    "else": Keyword(None, Nested.ONE),
    "contains": Keyword(None, Nested.ONE, enforced=False),
    "dependentSchemas": Keyword(None, Nested.MAP, enforced=False),
    "dependentRequired": Keyword(None, lambda value: None, enforced=False),
    "dependencies": Keyword(None, Nested.MIXED, enforced=False),
    "unevaluatedItems": Keyword(None, Nested.ONE, enforced=False),
    "unevaluatedProperties": Keyword(None, Nested.ONE, enforced=False),
    "$dynamicRef": Keyword(None, lambda value: None, enforced=False),
    "$recursiveRef": Keyword(None, lambda value: None, enforced=False),
}

_NO_TYPE = {"format"}
"""Keywords from which no type follows: they are often written beside nothing else, for values of several types."""

Known = Union[strings.Text, ranges.Number, arrays.Items, objects.Members]
_KNOWN: dict[str, Callable[[], Known]] = {
    "string": strings.Text, "number": ranges.Number, "array": arrays.Items, "object": objects.Members,
}  # fmt: skip


def known(kind: str, parts: Sequence[Mapping[str, Any]], here: Here) -> Any:
    """What ``parts`` together say about values of one type: a ``Text``, ``Number``, ``Items`` or ``Members``."""
    found = _KNOWN[kind]()
    for part in parts:
        for word in part:
            row = KEYWORDS.get(word)
            if row is not None and row.of == kind and row.read is not None:
                row.read(found, part, here)
    return found


def implied(parts: Sequence[Mapping[str, Any]]) -> frozenset[str] | None:
    """The types that follow from the keywords of schemas that state none; None: they say nothing."""
    rows = [
        KEYWORDS[word]
        for part in parts
        for word, value in part.items()
        # A library for Go writes {"additionalProperties": true} for values of any type; empty lists say no more.
        if word in KEYWORDS and word not in _NO_TYPE and value is not True and value not in ({}, [])
    ]
    return frozenset(row.of for row in rows if row.of is not None) or None


def not_enforced(parts: Sequence[Mapping[str, Any]]) -> list[str]:
    """The keywords of ``parts`` that no grammar expresses, and that limit something."""
    return [
        word
        for part in parts
        for word, value in part.items()
        if word in KEYWORDS and not KEYWORDS[word].enforced and _limits(word, value, part)
    ]


def _limits(word: str, value: Any, part: Mapping[str, Any]) -> bool:
    """Whether a keyword that is not enforced limits anything.  (``branches`` has seen what no value satisfies.)"""
    if word == "not":
        return value is not False
    if word == "if":
        return value is not False and not says_nothing(value) and ("then" in part or "else" in part)
    if word in ("dependentSchemas", "dependentRequired", "dependencies"):
        return bool(value != {})
    return word == "contains" or value is not True


def check(found: Any, root: Schema, place: str, depth: int = 0) -> None:
    """Check the keywords that are read against JSON Schema's own rules.

    Raises:
        SchemaError: the first violation.
        TooLarge: schemas are nested too deeply to be read.
    """
    if isinstance(found, bool):
        return
    if not isinstance(found, Mapping):
        raise SchemaError(f"invalid JSON schema at {place}: a schema is an object or a boolean, not {shown(found)}")
    if depth > MAX_DEPTH:
        raise TooLarge(f"nested too deeply at {place}")
    for word, value in found.items():
        row = KEYWORDS.get(word)
        if row is None:
            continue
        if not isinstance(row.form, Nested):
            wrong = row.form(value)
            if wrong is not None:
                raise SchemaError(f"invalid JSON schema at {place}: {word} {wrong}")
            continue
        for at, inner in _inner(row.form, value, f"{place}.{word}"):
            check(inner, root, at, depth + 1)
    if "$ref" in found:
        try:
            resolve(root, found["$ref"])
        except SchemaError as error:
            raise SchemaError(f"invalid JSON schema at {place}: {error}") from None


def _inner(form: Nested, value: Any, place: str) -> list[tuple[str, Any]]:
    """The schemas in a keyword's value, each with its place."""
    if form is Nested.ONE or (form is Nested.ITEMS and not isinstance(value, list)):
        return [(place, value)]
    if form in (Nested.SOME, Nested.ITEMS):
        if not isinstance(value, list) or (form is Nested.SOME and not value):
            raise SchemaError(f"invalid JSON schema at {place}: it is no array of schemas")
        return [(f"{place}[{at}]", inner) for at, inner in enumerate(value)]
    if not isinstance(value, Mapping):
        raise SchemaError(f"invalid JSON schema at {place}: it is no object")
    return [
        (f"{place}.{key}", inner) for key, inner in value.items() if form is Nested.MAP or not isinstance(inner, list)
    ]
