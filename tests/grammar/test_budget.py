"""What building a grammar may take, counted in steps; what does not fit is left out, alone, and reported."""

from __future__ import annotations

import json
import logging
from typing import Any

import pytest

pytest.importorskip("xgrammar", reason="the grammar needs xgrammar, which comes with vLLM")

from lfm2_fixed.grammar import gbnf, patterns, regex, relaxed, work
from lfm2_fixed.grammar.rules import Rules
from lfm2_fixed.grammar.values import Values
from lfm2_fixed.grammar.work import (
    AUTOMATA_STEPS,
    KEYWORD_STEPS,
    MEMBER_STEPS,
    REQUEST_STEPS,
    STATES,
    WRITING_STEPS,
    TooLarge,
    Work,
)
from tests.support.steps import lines_run
from tests.support.tags import accepts, block, compiled, tag_for, tool

MOST = AUTOMATA_STEPS + KEYWORD_STEPS + WRITING_STEPS
"""What a tool may take; the last value that is begun, and the types of those behind it, come on top."""
OVER = 20_000
REST = "more than the types of what is left, which takes too much work"


def build(properties: dict[str, Any], *, automata: bool = False) -> tuple[int, int, set[tuple[str, str]]]:
    """Steps taken (for automata alone), characters of the grammar, and what was relaxed."""
    work.forget()
    relaxed: set[tuple[str, str]] = set()
    rules, budget = Rules(), Work(REQUEST_STEPS)
    budget.begin_tool()
    schema = {"type": "object", "properties": properties}
    values = Values(rules, budget, schema, lambda place, word: relaxed.add((place, word)))
    text = rules.text(str(values.arguments()))
    assert budget.taken >= budget.written > 0, "nothing was counted"
    return budget.taken - (budget.written if automata else 0), len(text), relaxed


CODES = [f"{a}{b}{c}" for a in "ABCDE" for b in "EFGH" for c in "XYZ"]


@pytest.mark.parametrize(
    ("schema", "steps"),
    [
        # A class with a count is no automaton, whatever the count.
        ({"type": "string", "pattern": "^.{1,500}$"}, 200),
        ({"type": "string", "pattern": r"^[\s\S]{0,1000}$"}, 200),
        ({"type": "string", "pattern": "^[a-z ]{1,255}$"}, 200),
        ({"type": "string", "pattern": "^[a-z0-9-]+$", "minLength": 3, "maxLength": 63}, 400),
        ({"type": "string", "pattern": f"({'|'.join(CODES)})"}, 12_000),
        ({"type": "string", "pattern": "^[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?$"}, 15_000),
        ({"type": "string", "format": "email"}, 8_000),
        ({"type": "integer", "minimum": 1, "maximum": 100}, 400),
        ({"type": "number", "minimum": -90.123456, "maximum": 90.654321}, 2_000),
    ],
)
def test_what_real_schemas_ask_for_is_cheap(schema: Any, steps: int) -> None:
    taken, _, relaxed = build({"x": schema}, automata=True)
    assert taken <= steps
    assert not relaxed


HOSTILE = {
    "exponential": {"type": "string", "pattern": "(a|b)*a(a|b){14}"},
    "nested counts": {"type": "string", "pattern": "^((a{1,100}b?){1,100}){1,100}$"},
    "two counts": {"type": "string", "pattern": "^[a-z]{1,250}/[a-z0-9]{1,250}$"},
    "product": {"type": "string", "allOf": [{"pattern": f"({chr(97 + n)}x|y)+{chr(97 + n)}"} for n in range(12)]},
    "union of products": {"anyOf": [{"type": "string", "pattern": f"^(a{n}|b)*c{{1,{n}}}"} for n in range(60)]},
    "unions beside each other": {
        "allOf": [
            {"anyOf": [{"type": "object", "properties": {f"k{n}{m}": {"type": "integer"}}} for m in range(30)]}
            for n in range(3)
        ]
    },
    "long names beside others": {
        "type": "object",
        "properties": {f"a_very_long_property_name_{n}": {"type": "string"} for n in range(80)},
        "additionalProperties": True,
        "patternProperties": {f"^{chr(97 + n)}.*{n}$": {"type": "integer"} for n in range(12)},
    },
}


@pytest.mark.parametrize("name", HOSTILE)
def test_no_schema_takes_more_than_its_budget(name: str) -> None:
    taken, size, relaxed = build({"x": HOSTILE[name], "y": {"type": "integer", "maximum": 3}})
    assert taken <= MOST + OVER
    assert size < 500_000
    assert {place.partition(".")[0] for place, _ in relaxed} <= {"x"}
    # The second time everything is remembered, failures as well, and costs the request the same.
    assert name not in ("exponential", "nested counts", "product") or relaxed


def test_many_keywords_share_one_budget() -> None:
    properties = {f"p{n}": {"type": "string", "pattern": f"^[a-z]{{1,40}}-{n}.{{0,30}}$"} for n in range(300)}
    taken, _, relaxed = build(properties)
    assert taken <= MOST + OVER
    assert 0 < len(relaxed) < 300
    ranges = {f"p{n}": {"type": "number", "minimum": n * 1.37, "maximum": 1000 + n * 3.1} for n in range(2000)}
    taken, _, relaxed = build(ranges)
    assert taken <= MOST + OVER + 2000 * MEMBER_STEPS
    assert {word for _, word in relaxed} == {REST}


def test_many_unions_share_one_budget() -> None:
    def union(n: int) -> dict[str, Any]:
        return {"anyOf": [{"type": "object", "properties": {f"k{n}_{m}": {"type": "null"}}} for m in range(20)]}

    few = {f"p{n}": union(n) for n in range(6)}
    assert not build(few)[2]
    taken, size, relaxed = build({f"p{n}": union(n) for n in range(250)})
    assert taken <= MOST + OVER
    assert {word for _, word in relaxed} == {REST}
    assert size < build({f"p{n}": union(n) for n in range(500)})[1] < 1.5 * size
    product = {"allOf": [union(1), union(2), union(3)]}
    assert {place for place, _ in build({"x": product, **few})[2]} == {"x"}, "one value does not take from the others"


def test_many_values_keep_their_types() -> None:
    properties = {f"p{n}": {"type": "string", "maxLength": n + 60} for n in range(1000)}
    taken, size, relaxed = build(properties)
    assert taken <= MOST + OVER + 1000 * MEMBER_STEPS
    assert size < 200_000
    assert {word for _, word in relaxed} == {REST}
    assert not build({f"p{n}": {"type": "string", "maxLength": n + 60} for n in range(100)})[2]


def test_each_tool_has_a_budget_and_the_request_has_one(caplog: pytest.LogCaptureFixture) -> None:
    def one(n: int) -> dict[str, Any]:
        fields = {f"p{m}": {"type": "integer", "minimum": n * 1000 + m} for m in range(400)}
        return tool({"type": "object", "properties": fields, "required": ["p0"]}, f"budget_{n}")

    def relaxed_tools() -> set[str]:
        found = {word for word in caplog.text.replace("'", " ").split() if word.startswith("budget_")}
        caplog.clear()
        relaxed.forget()
        return found

    grammar = compiled(tag_for([one(0), tool({"type": "object", "properties": {"x": {"maximum": 3}}}, "small")]))
    assert relaxed_tools() == {"budget_0"}
    assert accepts(grammar, block("budget_0(p0=5, p399=5)")), "the limit is left out"
    assert not accepts(grammar, block("budget_0(p0=5, p399='a')")), "the type is not"
    assert accepts(grammar, block("small(x=3)")) and not accepts(grammar, block("small(x=4)"))
    small = [
        tool({"type": "object", "properties": {f"p{n}": {"type": "integer", "minimum": n}}}, f"budget_{n}")
        for n in range(300)
    ]
    tag_for(small)
    assert relaxed_tools() == set(), "as many tools as anyone has"
    tag_for([one(n) for n in range(12)])
    assert len(relaxed_tools()) == 12


def test_lengths_share_the_states_of_a_request(caplog: pytest.LogCaptureFixture) -> None:
    """They are quickly counted, but their rules take a hundred times as long to write."""
    fields = [{"type": "string", "pattern": f"^[^{chr(97 + n)}]*$", "maxLength": 240} for n in range(20)]
    tools = [tool({"properties": {f"s{n}": field}}, f"f{n}") for n, field in enumerate(fields)]
    assert json.dumps(gbnf(tools, "required")).count(" ::= ") < 10 * STATES
    assert "'s15'" in caplog.text and "'s5'" not in caplog.text
    caplog.clear()
    relaxed.forget()
    same = [tool({"properties": {f"s{n}": fields[5] for n in range(100)}}, f"f{n}") for n in range(20)]
    gbnf(same, "required")
    assert not caplog.text, "equal ones are written once"


def test_objects_of_the_same_members_within_each_other() -> None:
    """Configurations are written so: a hundred members, each an object that may have all of them again."""
    again = {f"m{n}": {"title": str(n), "type": "object", "$ref": "#"} for n in range(300)}
    taken, _, relaxed = build(again)
    assert taken <= MOST + OVER, "a hundred levels of 300 would be 500,000"
    assert {word for _, word in relaxed} == {REST}


def test_members_of_many_parts_are_linear() -> None:
    """``allOf`` with as many parts as there are members: none is looked for in all of them."""

    def lines(count: int) -> int:
        parts = [{"type": "object", "properties": {f"k{n}": {"type": "string"}}} for n in range(count)]
        return lines_run(lambda: build({"a": {"allOf": parts}}))

    assert 1000 < lines(100) < 2.5 * lines(50)


def test_what_is_nested_too_deeply_is_free() -> None:
    schema: dict[str, Any] = {"type": "object"}
    inner = schema
    for _ in range(150):
        inner["properties"] = {"n": {"type": "object"}}
        inner = inner["properties"]["n"]
    grammar = compiled(tag_for([tool(schema, "deep")]))
    assert accepts(grammar, block("deep(n={})"))
    assert accepts(grammar, block("deep(x=1)"))


def test_steps_are_linear() -> None:
    """Twice the parameters, at most a little more than twice the work."""
    for make in (
        lambda n: {"type": "string"},
        lambda n: {"type": "string", "maxLength": 100 + n},
        lambda n: {"type": "integer", "minimum": n},
        lambda n: {"enum": [f"v{n}", f"w{n}"]},
    ):
        small, small_size, _ = build({f"p{n}": make(n) for n in range(100)})
        large, large_size, _ = build({f"p{n}": make(n) for n in range(200)})
        assert large < 2.3 * small
        assert large_size < 2.3 * small_size


def test_results_and_failures_are_remembered() -> None:
    work.forget()
    calls: list[str] = []

    def fails(inner: Work) -> int:
        calls.append("fails")
        inner.spend(KEYWORD_STEPS + 1)
        return 1

    def works(inner: Work) -> int:
        calls.append("works")
        inner.spend(10)
        return 2

    for _ in range(2):
        budget = Work(10**6)
        with pytest.raises(TooLarge):
            budget.once("a", fails)
        assert budget.once("b", works) == 2
        assert budget.once("b", works) == 2
        assert budget.taken == KEYWORD_STEPS + 10
    assert calls == ["fails", "works"]


def test_a_spent_budget_does_no_more_work() -> None:
    budget = Work(5)
    budget.charge(5)
    with pytest.raises(TooLarge):
        budget.once("c", lambda inner: pytest.fail("it was made all the same"))


def test_counts_that_are_too_large_are_loosened_and_the_pattern_stays() -> None:
    budget = Work(10**6)
    pattern = "^[a-z]{1,250}/[a-z0-9]{2,250}$"
    with pytest.raises(TooLarge):
        patterns.search(budget, pattern)
    loose = patterns.search_loosely(budget, pattern)
    assert loose.accepts("a/b1")
    assert loose.accepts("a" * 300 + "/12")
    assert not loose.accepts("a/b")
    assert not loose.accepts("A/bb")
    assert regex.run(regex.read("^[a-z]{1,250}$")) == regex.Run(((97, 122),), 1, 250)


def test_relaxed_is_logged(caplog: pytest.LogCaptureFixture) -> None:
    properties = {"x": HOSTILE["exponential"], "y": {"type": "integer", "maximum": 3}}
    with caplog.at_level(logging.WARNING, "lfm2_fixed.grammar"):
        grammar = compiled(tag_for([tool({"type": "object", "properties": properties}, "budget")]))
    assert ["pattern" in record.getMessage() for record in caplog.records] == [True]
    assert accepts(grammar, block('budget(x="anything", y=3)'))
    assert not accepts(grammar, block("budget(x=1, y=3)"))
    assert not accepts(grammar, block("budget(y=4)"))


def test_size_is_linear_in_the_parameters() -> None:
    def size(count: int) -> int:
        properties = {f"p{n}": {"type": "integer"} for n in range(count)}
        return len(json.dumps(tag_for([tool({"type": "object", "properties": properties})])))

    assert size(200) < 2.5 * size(100)
