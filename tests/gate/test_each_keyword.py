"""Each keyword by itself: one value that it allows, one that it refuses, and what is said of that."""

from __future__ import annotations

from typing import Any

import jsonschema
import pytest

from lfm2_fixed.gate import Call, CallsRefused, Code, Tools, Turn, keywords, patterns
from lfm2_fixed.gate.budget import OverBudget
from lfm2_fixed.gate.validate import Issue, as_call


def tools(schema: Any) -> Tools:
    parameters = {"type": "object", "properties": {"v": schema}}
    return Tools([{"type": "function", "function": {"name": "f", "parameters": parameters}}])


@pytest.mark.parametrize(
    "schema, allowed, refused, said",
    [
        ({"minLength": 3}, "abc", "ab", "shorter than 3 characters"),
        ({"maxLength": 3}, "abc", "abcd", "longer than 3 characters"),
        ({"minimum": 3}, 3, 2, "3"),
        ({"maximum": 3}, 3, 4, "3"),
        ({"exclusiveMinimum": 3}, 4, 3, "3"),
        ({"exclusiveMaximum": 3}, 2, 3, "3"),
        ({"minItems": 2}, [1, 2], [1], "fewer than 2 items"),
        ({"maxItems": 2}, [1, 2], [1, 2, 3], "more than 2 items"),
        ({"minProperties": 1}, {"a": 1}, {}, "fewer than 1 properties"),
        ({"maxProperties": 1}, {"a": 1}, {"a": 1, "b": 2}, "more than 1 properties"),
        ({"multipleOf": 3}, 6, 7, "not a multiple of 3"),
        ({"uniqueItems": True}, [1, 2], [1, 1], "the items are not unique"),
        ({"pattern": "^a"}, "ab", "ba", "does not match the pattern"),
        ({"contains": {"const": 1}, "maxContains": 1}, [1, 2], [1, 1], "breaks maxContains 1"),
        ({"contains": {"const": 1}, "minContains": 2}, [1, 1], [1, 2], "breaks minContains 2"),
    ],
    ids=str,
)
def test_a_keyword_alone(schema: dict[str, Any], allowed: Any, refused: Any, said: str) -> None:
    declared = tools(schema)
    assert declared.violations("f", {"v": allowed}) == []
    [violation] = declared.violations("f", {"v": refused})
    assert said in violation.message
    other = [] if isinstance(allowed, (str, int)) else "text"
    assert declared.violations("f", {"v": other}) == [], "of another type, the keyword says nothing"


def test_every_counted_keyword_is_a_keyword() -> None:
    """One by another name would be the library's again: right, but not counted."""
    assert set(keywords._keywords()) <= set(jsonschema.Draft202012Validator.VALIDATORS)


def test_codes_are_their_names() -> None:
    assert [code.value for code in Code] == [code.name for code in Code]


def test_nothing_is_allowed() -> None:
    [violation] = tools(False).violations("f", {"v": 1})
    assert violation.message == "nothing is allowed here"


def test_a_function_that_is_not_declared() -> None:
    with pytest.raises(KeyError, match="g"):
        tools({}).violations("g", {})


def test_an_issue_names_its_place() -> None:
    assert str(Issue(Code.TYPE_MISMATCH, 2, "/v", "why")) == "TYPE_MISMATCH in call 2 at /v: why"
    assert str(Issue(Code.INCOMPLETE, None, "", "why")) == "INCOMPLETE in the turn: why"


@pytest.mark.parametrize(
    "value, refused", [({"a": 1, "b": 2}, False), ({"a": 2, "b": 2}, True), ({"a": 2, "c": 2}, False)]
)
def test_what_a_condition_looked_at_counts_as_evaluated(value: dict[str, int], refused: bool) -> None:
    schema = {
        "if": {"properties": {"a": {"const": 1}}, "required": ["a"]},
        "then": {"properties": {"b": True}},
        "else": {"properties": {"a": True, "c": True}},
        "unevaluatedProperties": False,
    }
    assert bool(tools(schema).violations("f", {"v": value})) is refused


LOOKED_AT = {
    "2020-12": [
        {"$ref": "#/$defs/base"},
        {"$dynamicRef": "#base"},
        {"allOf": [{"$ref": "#/$defs/base"}]},
        {"anyOf": [{"$ref": "#/$defs/base"}, False]},
        {"oneOf": [{"$ref": "#/$defs/base"}, False]},
        {"dependentSchemas": {"a": {"$ref": "#/$defs/base"}}},
        {"if": {"$ref": "#/$defs/base"}},
        {"patternProperties": {"^a": True}},
    ],
    "2019-09": [{"$ref": "#/$defs/base"}, {"oneOf": [{"$ref": "#/$defs/base"}, False]}],
}


@pytest.mark.parametrize(
    "draft, part", [(draft, part) for draft, parts in LOOKED_AT.items() for part in parts], ids=str
)
def test_what_is_applied_in_place_counts_as_evaluated(draft: str, part: dict[str, Any]) -> None:
    schema = {
        "$schema": f"https://json-schema.org/draft/{draft}/schema",
        "$defs": {"base": {"$dynamicAnchor": "base", "properties": {"a": True}}},
        "type": "object",
        **part,
        "unevaluatedProperties": False,
    }
    declared = Tools([{"type": "function", "function": {"name": "f", "parameters": schema}}])
    assert declared.violations("f", {"a": 1}) == []
    [violation] = declared.violations("f", {"a": 1, "b": 1})
    assert "b" in violation.message


@pytest.mark.parametrize(
    "part, allowed, refused",
    [
        ({"prefixItems": [True]}, [1], [1, 2]),
        ({"prefixItems": [True], "items": {"type": "string"}}, [1, "a"], None),
        ({"contains": {"const": 1}}, [1, 1], [1, 2]),
        ({"oneOf": [{"prefixItems": [True, True]}, False]}, [1, 2], [1, 2, 3]),
    ],
    ids=str,
)
def test_which_items_count_as_evaluated(part: dict[str, Any], allowed: list[Any], refused: list[Any] | None) -> None:
    declared = tools({**part, "unevaluatedItems": False})
    assert declared.violations("f", {"v": allowed}) == []
    assert refused is None or len(declared.violations("f", {"v": refused})) == 1


def test_a_call_of_a_client_has_its_id() -> None:
    assert as_call({"id": "c1", "function": {"name": "f", "arguments": "{}"}}) == Call("f", "{}", "c1", "function")
    assert as_call({"id": "c1", "custom": {"name": "f", "input": "x"}}) == Call("f", "x", "c1", "custom")


def test_a_refused_free_text_stays_as_it_is() -> None:
    call = Call("f", "no JSON", "c1", "custom")
    said, _ = CallsRefused([], Turn((call,), "", "tool_calls", "chat", (), "")).messages()
    assert said["tool_calls"][0]["custom"] == {"name": "f", "input": "no JSON"}


def test_free_text_has_no_schema() -> None:
    assert Tools([{"type": "custom", "custom": {"name": "f"}}]).violations("f", {"v": 1}) == []


def test_that_a_pattern_has_no_automaton_is_found_out_once(monkeypatch: pytest.MonkeyPatch) -> None:
    tried = []

    def automaton(*arguments: object) -> None:
        tried.append(arguments)
        raise patterns._NoAutomaton

    monkeypatch.setattr(patterns, "_Automaton", automaton)
    pattern = patterns.Pattern(r"(a+)+\1$")
    for _ in range(2):
        with pytest.raises(OverBudget):
            pattern.found_in("a" * 50)
    assert len(tried) == 1
