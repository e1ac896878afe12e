"""Whether a listed value stays: our small validator says what ``jsonschema`` says, keyword by keyword."""

from __future__ import annotations

from typing import Any

import jsonschema
import pytest

from lfm2_fixed.grammar.instances import satisfies
from lfm2_fixed.grammar.work import Work

VALUES = [
    None, True, 0, 1, 1.0, 2, 3.5, "", "a", "ab", "abcd",
    [], [1], [1, 1], [1, True], [1, "a", 2], [2, 2, 1],
    {}, {"a": 1}, {"a": "x"}, {"b": 1}, {"a": 1, "b": 2}, {"a": 1, "b": 2, "cd": 3},
]  # fmt: skip
SCHEMAS: list[Any] = [
    {"minItems": 1, "maxItems": 2},
    {"uniqueItems": True},
    {"prefixItems": [{"type": "integer"}], "items": {"type": "string"}},
    {"contains": {"const": 1}},
    {"contains": {"const": 1}, "minContains": 2},
    {"contains": {"const": 1}, "maxContains": 1},
    {"minProperties": 1, "maxProperties": 2},
    {"required": ["a", "b"]},
    {"propertyNames": {"maxLength": 1}},
    {"dependentRequired": {"a": ["b"]}},
    {"dependentSchemas": {"b": {"required": ["a"]}, "cd": False}},
    {"properties": {"a": {"type": "integer"}}, "additionalProperties": False},
    {"properties": {"a": {"type": "integer"}}, "patternProperties": {"^[a-b]$": {"maximum": 1}}},
    {"minLength": 1, "maxLength": 2},
    {"pattern": "^a"},
    {"minimum": 1, "maximum": 2},
    {"exclusiveMinimum": 1, "exclusiveMaximum": 3.5},
    {"multipleOf": 1.5},
    {"allOf": [{"type": ["integer", "array"]}, {"minimum": 1}]},
    {"anyOf": [{"type": "string"}, {"type": "object", "required": ["a"]}, {"type": "number", "minimum": 2}]},
    {"oneOf": [{"type": "number"}, {"type": "integer"}, {"type": "string"}]},
    {"not": {"type": "object"}},
    {"if": {"type": "string"}, "then": {"minLength": 2}, "else": {"not": {"const": 1}}},
    {"enum": [1, "a", [1], {"a": 1}]},
    {"$ref": "#/$defs/x", "$defs": {"x": {"type": ["object", "null"]}}},
]


@pytest.mark.parametrize("schema", SCHEMAS, ids=str)
def test_a_value_is_judged_as_by_the_library(schema: Any) -> None:
    validator = jsonschema.Draft202012Validator(schema)
    judged = [validator.is_valid(value) for value in VALUES]
    assert True in judged and False in judged
    assert [satisfies(value, schema, schema, Work()) for value in VALUES] == judged
