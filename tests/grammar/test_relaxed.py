"""What a grammar cannot hold is reported by its keyword and its place, and what it can hold is not."""

from __future__ import annotations

from contextlib import suppress
from typing import Any

import pytest

pytest.importorskip("xgrammar", reason="the grammar needs xgrammar, which comes with vLLM")

from lfm2_fixed.grammar import work
from lfm2_fixed.grammar.branches import joined_constants
from lfm2_fixed.grammar.notation import EBNF, GBNF, Notation
from lfm2_fixed.grammar.rules import Rules
from lfm2_fixed.grammar.values import Values
from lfm2_fixed.grammar.work import AUTOMATA_STEPS, REQUEST_STEPS, WRITING_STEPS, TooLarge, Work

BOTH = [EBNF, GBNF]


def reported(schema: Any, notation: Notation, *, automata: int = 0, written: int = 0) -> list[tuple[str, str]]:
    """The places and keywords, for an argument ``x``, where so much was taken for other things."""
    work.forget()
    found: list[tuple[str, str]] = []
    tool = {"type": "object", "properties": {"x": schema}}
    budget = Work(REQUEST_STEPS)
    values = Values(Rules((), notation), budget, tool, lambda place, word: found.append((place, word)))
    budget.begin_tool()
    budget.charge(written)
    with suppress(TooLarge):
        budget.spend(automata)
    assert values.arguments()
    return found


@pytest.mark.parametrize("notation", BOTH, ids=lambda one: one.name)
@pytest.mark.parametrize(
    ("schema", "place", "word"),
    [
        ({"type": "array", "uniqueItems": True}, "x", "uniqueItems"),
        ({"type": "array", "items": {"not": {"type": "string"}}}, "x[]", "not"),
        ({"type": "object", "properties": {"y": {"not": {"const": 1}}}}, "x.y", "not"),
        ({"contains": {"const": 1}}, "x", "contains"),
        ({"dependentRequired": {"a": ["b"]}}, "x", "dependentRequired"),
        ({"type": "string", "minLength": 65}, "x", "minLength above 64"),
        ({"type": "string", "pattern": "(?=a)"}, "x", "pattern"),
        ({"type": "string", "pattern": "(a{1,2000}b){1,2000}"}, "x", "pattern (its counts)"),
        ({"type": "number", "multipleOf": 0.3}, "x", "multipleOf"),
        ({"type": "integer", "multipleOf": 100003}, "x", "multipleOf"),
        ({"type": "integer", "minimum": 10**400}, "x", "minimum/maximum beyond 1e300"),
        ({"type": "object", "patternProperties": {"(?=x)": True}}, "x", "patternProperties"),
        ({"type": "object", "propertyNames": {"not": {"const": "a"}}}, "x", "propertyNames"),
        ({"type": "object", "minProperties": 50, "maxProperties": 100}, "x", "minProperties/maxProperties"),
        ({"type": "object", "minProperties": 50, "maxProperties": 1000}, "x", "minProperties/maxProperties"),
        ({"oneOf": [{"type": "integer"}, {"type": "number"}]}, "x", "oneOf (more than one branch may hold)"),
    ],
    ids=str,
)
def test_what_is_not_held_is_reported(schema: Any, place: str, word: str, notation: Notation) -> None:
    assert reported(schema, notation) == [(place, word)]


@pytest.mark.parametrize("notation", BOTH, ids=lambda one: one.name)
def test_counts_that_a_repetition_cannot_have(notation: Notation) -> None:
    most = notation.most_repeated
    assert reported({"type": "array", "minItems": most, "maxItems": most}, notation) == []
    assert reported({"type": "array", "minItems": most + 1}, notation) == [("x", f"minItems above {most}")]


def test_a_count_that_only_llama_cpp_cannot_have() -> None:
    assert reported({"type": "array", "maxItems": 3000}, EBNF) == []
    assert reported({"type": "array", "maxItems": 3000}, GBNF) == [("x", "maxItems above 2000")]


@pytest.mark.parametrize("notation", BOTH, ids=lambda one: one.name)
@pytest.mark.parametrize(
    "schema",
    [
        {"type": "array", "uniqueItems": True, "maxItems": 1},
        {"type": "array", "uniqueItems": False},
        {"type": "string", "minLength": 64},
        {"type": "object", "minProperties": 5},
        {"type": "object", "maxProperties": 12},
        {"type": "object", "maxProperties": 1000},
        {"oneOf": [{"type": "integer"}, {"type": "string"}]},
        {"enum": ["a"], "not": {"enum": ["b"]}},
        {"type": "array", "unevaluatedItems": True},
    ],
    ids=str,
)
def test_what_is_held_is_not(schema: Any, notation: Notation) -> None:
    assert reported(schema, notation) == []


def test_constants_of_a_union_are_one_list() -> None:
    """Hundreds of them would be more branches than are written."""
    branches = [
        {"const": 1, "title": "one"},
        {"type": "object"},
        {"enum": [2, "b"]},
        {"const": "a", "type": "string"},
        {"const": "x", "type": "integer"},
        True,
        {"const": 3, "enum": [3]},
        {"const": 4, "minimum": 5},
    ]
    assert joined_constants(branches) == [{"enum": [1, 2, "b", "a"]}, branches[1], True, *branches[6:]]
    assert joined_constants([True]) == [True]


@pytest.mark.parametrize("word", ["title", "description", "default", "examples", "deprecated", "$comment", "readOnly"])
def test_what_only_tells_of_a_constant_does_not_matter(word: str) -> None:
    assert joined_constants([{"const": 1, word: "told"}, {"const": 2}]) == [{"enum": [1, 2]}]


def test_what_is_written_does_not_depend_on_what_automata_take() -> None:
    limited, pattern = {"type": "integer", "minimum": 3}, {"type": "string", "pattern": "a+b"}
    assert reported(limited, EBNF, automata=AUTOMATA_STEPS + 1) == []
    assert reported(pattern, EBNF, automata=AUTOMATA_STEPS + 1) == [("x", "pattern")]
    assert reported(pattern, EBNF, automata=AUTOMATA_STEPS - 1) == []
    for schema in (limited, pattern):
        [(place, what)] = reported(schema, EBNF, written=WRITING_STEPS)
        assert place == "" and what.startswith("more than the types")
    assert reported({"type": "integer"}, EBNF, written=WRITING_STEPS) == []
