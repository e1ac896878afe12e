"""Counted keywords mean what the library's mean: it is the oracle, for any schema of any draft."""

from __future__ import annotations

from typing import Any

import jsonschema
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lfm2_fixed.gate.keywords import BadSchema, compile_schema

KEYS = st.sampled_from(["a", "b", "ab"])
VALUES = st.recursive(
    st.none() | st.booleans() | st.integers(-2, 3) | st.sampled_from([0.0, 1.0, 1.5, "", "a", "ab", "ba"]),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(KEYS, inner, max_size=3),
    max_leaves=6,
)
TYPES = st.sampled_from(["null", "boolean", "integer", "number", "string", "array", "object"])
SMALL = st.integers(0, 3)
PATTERN = st.sampled_from(["a", "^a", "b$", "^(a|b)*$", "(a+)+b"])
DRAFTS = {
    "2020-12": jsonschema.Draft202012Validator,
    "2019-09": jsonschema.Draft201909Validator,
    "7": jsonschema.Draft7Validator,
    "4": jsonschema.Draft4Validator,
}


def schemas(draft: str) -> st.SearchStrategy[Any]:
    boolean = st.booleans() if draft != "4" else st.nothing()
    references = ["#/definitions/x"] if draft in ("7", "4") else ["#/$defs/x", "#/$defs/y"]
    leaf = st.one_of(
        boolean,
        st.just({}),
        st.fixed_dictionaries({"type": TYPES | st.lists(TYPES, min_size=1, max_size=2, unique=True)}),
        st.fixed_dictionaries({"enum": st.lists(VALUES, min_size=1, max_size=3, unique_by=repr)}),
        st.fixed_dictionaries({"minimum": SMALL, "maximum": SMALL}),
        st.fixed_dictionaries({"minLength": SMALL, "pattern": PATTERN}),
        st.fixed_dictionaries({"uniqueItems": st.booleans(), "maxItems": SMALL}),
        st.fixed_dictionaries({"required": st.lists(KEYS, min_size=1, unique=True), "maxProperties": SMALL}),
        st.fixed_dictionaries({"$ref": st.sampled_from(references)}),
        *([st.fixed_dictionaries({"const": VALUES})] if draft != "4" else []),
        *([st.fixed_dictionaries({"exclusiveMinimum": SMALL})] if draft != "4" else []),
    )

    def more(inner: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
        several = st.lists(inner, min_size=1, max_size=3)
        members = st.dictionaries(KEYS, inner, max_size=2)
        keywords: dict[str, st.SearchStrategy[Any]] = {
            "allOf": several, "anyOf": several, "oneOf": several, "not": inner, "properties": members,
            "additionalProperties": inner, "patternProperties": st.dictionaries(PATTERN, inner, max_size=2),
            "items": inner,
        }  # fmt: skip
        if draft != "4":
            keywords |= {"contains": inner, "propertyNames": inner}
        if draft in ("7", "4"):
            keywords |= {"items": inner | several, "additionalItems": inner, "dependencies": members}
        if draft == "7":
            keywords |= {"if": inner, "then": inner, "else": inner}
        if draft in ("2020-12", "2019-09"):
            keywords |= {
                "if": inner, "then": inner, "else": inner, "dependentSchemas": members, "unevaluatedProperties": inner,
                "dependentRequired": st.dictionaries(KEYS, st.lists(KEYS, max_size=2, unique=True), max_size=2),
                "minContains": SMALL, "maxContains": SMALL,
            }  # fmt: skip
        if draft == "2020-12":
            keywords |= {"prefixItems": several, "unevaluatedItems": inner}
        return st.fixed_dictionaries({}, optional=keywords).map(lambda schema: schema)

    return st.recursive(leaf, more, max_leaves=5)


@pytest.mark.parametrize("draft", DRAFTS)
@settings(max_examples=max(40, settings.default.max_examples // 50))
@given(data=st.data())
def test_counted_keywords_say_what_the_library_says(draft: str, data: st.DataObject) -> None:
    whole = schemas(draft)
    schema = data.draw(whole)
    if isinstance(schema, bool):
        return
    kept = "definitions" if draft in ("7", "4") else "$defs"
    schema = {
        **schema,
        kept: {"x": data.draw(whole), "y": {"type": "object"}},
        "$schema": DRAFTS[draft].META_SCHEMA["$schema"],
    }
    try:
        mine = compile_schema(schema)
    except BadSchema:
        with pytest.raises(jsonschema.SchemaError):
            DRAFTS[draft].check_schema(schema)
        return
    DRAFTS[draft].check_schema(schema)
    theirs = DRAFTS[draft](schema)
    for value in data.draw(st.lists(VALUES, min_size=1, max_size=6)):
        try:
            expected = theirs.is_valid(value)
        except RecursionError:  # a reference to itself
            with pytest.raises(RecursionError):
                mine.is_valid(value)
            continue
        assert mine.is_valid(value) == expected, (schema, value)
