"""What a check may cost.  Steps are counted, never seconds; and what is counted is what the work really is."""

from __future__ import annotations

import json
import random
import re
import threading
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lfm2_fixed.gate import Call, CallsRefused, Code, Gate, Tools, ToolsError, Turn, compiled_tools, schemas, validate
from lfm2_fixed.gate import budget as budgets
from lfm2_fixed.gate.budget import BASE, MOST, OverBudget, budget, left, steps_for
from lfm2_fixed.gate.patterns import Pattern, found
from tests.support.answers import TOOLS
from tests.support.steps import lines_run


def tool(parameters: Any, name: str = "f") -> dict[str, Any]:
    return {"type": "function", "function": {"name": name, "parameters": parameters}}


def codes(parameters: Any, arguments: Any) -> list[str]:
    return [str(issue.code) for issue in validate([Call("f", json.dumps(arguments))], [tool(parameters)])]


def tower(floors: int, keyword: str = "allOf") -> dict[str, Any]:
    """A schema of a few hundred bytes that is applied 2 ** floors times."""
    defs: dict[str, Any] = {
        f"a{n}": {keyword: [{"$ref": f"#/$defs/a{n + 1}"}, {"$ref": f"#/$defs/a{n + 1}"}]} for n in range(floors)
    }
    return {"type": "object", "properties": {"v": {"$ref": "#/$defs/a0"}}, "$defs": {**defs, f"a{floors}": {}}}


def under(schema: Any) -> dict[str, Any]:
    return {"type": "object", "properties": {"v": schema}}


NESTED = {"type": "array", "items": {"$ref": "#/$defs/n"}, "uniqueItems": True}
DEAR: dict[str, tuple[Any, Any]] = {
    "a tower of references": (tower(30), {"v": 1}),
    "a tower of alternatives": (tower(30, "oneOf"), {"v": 1}),
    "a tower under unevaluatedProperties": (
        {**tower(30), "properties": {"v": {"$ref": "#/$defs/a0", "unevaluatedProperties": False}}},
        {"v": {"x": 1}},
    ),
    "another draft's class": (
        {**tower(30), "properties": {"v": {"$schema": "http://json-schema.org/draft-07/schema#",
                                           "allOf": [{"$ref": "#/$defs/a0"}]}}},
        {"v": 1},
    ),
    "a back reference": (under({"pattern": r"(a*)*\1$"}), {"v": "a" * 5000 + "b"}),
    "a pattern with too many states": (under({"pattern": r"((a{0,99}){0,99}){0,99}b"}), {"v": "a" * 5000}),
    "many items under many alternatives": (
        under({"items": {"anyOf": [{"const": n} for n in range(100)] + [{}]}}),
        {"v": [3000] * 1000},
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", DEAR)
def test_what_is_too_dear_is_refused_by_a_code_of_its_own(name: str) -> None:
    parameters, arguments = DEAR[name]
    assert codes(parameters, arguments) == ["OVER_BUDGET"]


@pytest.mark.parametrize("name", DEAR)
def test_what_is_counted_is_the_work(name: str) -> None:
    """No budget is overrun: the lines that run stay in proportion to the steps that were allowed."""
    parameters, arguments = DEAR[name]
    declared = Tools([tool(parameters)])
    steps = 1_000

    def check() -> None:
        with pytest.raises(OverBudget), budget(steps):
            found = declared._declared["", "f"].validator
            assert found is not None
            list(found.iter_errors(arguments))

    assert lines_run(check) < 40_000 + 150 * steps


@pytest.mark.parametrize(
    ("parameters", "arguments"),
    [
        (under({"uniqueItems": True}), {"v": [{"a": [n]} for n in range(3000)]}),
        (under({"uniqueItems": True}), {"v": [n * (2**61 - 1) for n in range(3000)]}),  # one hash for all
        (under({"uniqueItems": True}), {"v": [[n, True, "x"] for n in range(3000)]}),  # cannot be sorted
        (under({"pattern": "^(a+)+$"}), {"v": "a" * 3000}),
        (under({"pattern": r"^(\w+\s?)*$"}), {"v": "ab " * 1000}),
        (under({"patternProperties": {"(x+x+)+y": False}}), {"v": {"x" * 500: 1}}),
        (under({"additionalProperties": False, "patternProperties": {"^(x|xx)*$": {}}}), {"v": {"x" * 500: 1}}),
        (under({"unevaluatedItems": False, "prefixItems": [{}] * 2000}), {"v": [0] * 2000}),
        (under({"type": "array", "items": {"type": "integer", "minimum": 0, "maximum": 9}}), {"v": [7] * 5000}),
        (under({"enum": ["x" * 50 + str(n) for n in range(2000)]}), {"v": "x" * 50 + "1999"}),
    ],
    ids=lambda value: str(value)[:50],
)
def test_ordinary_arguments_stay_within_the_budget(parameters: Any, arguments: Any) -> None:
    assert codes(parameters, arguments) == []


def test_a_value_that_is_not_unique_is_found_as_json_schema_says() -> None:
    unique = under({"uniqueItems": True})
    for items in (
        [1, 1.0],
        [{"a": 1, "b": 2}, {"b": 2.0, "a": 1}],
        ["x", "x"],
        [None, None],
        [[True], [True]],
        [0, -0.0],
    ):
        assert codes(unique, {"v": items}) == ["SCHEMA_VIOLATION"], items
    for items in ([1, True], [0, False], ["1", 1], [[], {}], [None, False], [1, 1.5], []):
        assert codes(unique, {"v": items}) == [], items


def test_the_budget_is_stated_and_grows_with_the_text_up_to_a_bound() -> None:
    assert steps_for(0) == BASE and steps_for(100) > steps_for(10) and steps_for(10**9) == MOST
    with budget(10):
        assert left() == 10
        with pytest.raises(OverBudget):
            budgets.spend(11)
    assert left() == MOST  # none is open


def test_a_thousand_errors_are_told_as_a_hundred() -> None:
    assert len(codes(under({"items": {"type": "string"}}), {"v": [1] * 1000})) == 100


def test_errors_do_not_quote_the_value_at_every_level() -> None:
    """A message that quotes the value, for each of many errors, is as much work as all of them together."""
    schema = under({"allOf": [{"anyOf": [{"type": "integer"}, {"type": "null"}]}] * 50})
    issues = validate([Call("f", json.dumps({"v": "x" * 1_000_000}))], [tool(schema)])
    assert [issue.code for issue in issues] == [Code.TYPE_MISMATCH]
    declared = Tools([tool(schema)])
    validator = declared._declared["", "f"].validator
    assert validator is not None
    assert all(len(error.message) < 100 for error in validator.iter_errors({"v": "x" * 1_000_000}))


def test_the_model_is_told_to_make_it_simpler() -> None:
    call = Call("f", json.dumps({"v": 1}), "a")
    with pytest.raises(CallsRefused) as caught:
        Gate([tool(tower(30))]).check(Turn((call,), finish_reason="tool_calls"))
    assert "OVER_BUDGET" in str(caught.value) and "simpler" in caught.value.tool_results()[0]["content"]


# --- the schemas themselves ---------------------------------------------------------------------


@pytest.mark.parametrize(
    "tools",
    [
        [tool(under({"enum": [[n, {"x": n}] for n in range(100)]}), f"f{k}") for k in range(1_000)],
        [tool({"type": "object", "properties": {f"p{n}": {"anyOf": [{"type": "string"}] * 5} for n in range(1_000)}})],
    ],
    ids=["many tools", "a huge tool"],
)
def test_tools_that_are_too_dear_to_read_are_refused(tools: list[Any], monkeypatch: pytest.MonkeyPatch) -> None:
    assert schemas.TOOLS == 1_000_000
    monkeypatch.setattr(schemas, "TOOLS", 20_000)
    with pytest.raises(ToolsError, match="too large"):
        Tools(tools)


def test_fifty_ordinary_tools_are_far_from_the_bound() -> None:
    properties = {f"p{n}": {"type": "string", "description": "d", "enum": ["a", "b"]} for n in range(10)}
    tools = [tool({"type": "object", "properties": properties, "required": ["p1"]}, f"f{n}") for n in range(50)]
    assert len(Tools(tools).names) == 50


def test_schemas_nested_a_thousand_deep_are_refused() -> None:
    schema: Any = {}
    for _ in range(1_000):
        schema = {"properties": {"a": schema}}
    with pytest.raises(ToolsError):
        Tools([tool(schema)])
    with pytest.raises(ToolsError):
        compiled_tools([tool(schema)])


# --- compiled once ------------------------------------------------------------------------------


@pytest.fixture
def compilations(monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    """Every schema that is compiled while the test runs."""
    seen: list[Any] = []
    real = schemas.compile_schema

    def counting(schema: Any) -> Any:
        seen.append(schema)
        return real(schema)

    monkeypatch.setattr(schemas, "compile_schema", counting)
    schemas._kept.clear()
    return seen


def test_a_set_of_tools_is_compiled_once(compilations: list[Any]) -> None:
    for _ in range(3):
        validate([Call("ping", "{}")], json.loads(json.dumps(TOOLS)))
        Gate(TOOLS)
    assert len(compilations) == len(TOOLS)
    assert compiled_tools(TOOLS) is compiled_tools(json.loads(json.dumps(TOOLS)))
    assert compiled_tools([*TOOLS[:2]]) is not compiled_tools(TOOLS)
    assert len(compilations) == len(TOOLS) + 2


def test_what_is_kept_is_bounded_and_cannot_be_changed(compilations: list[Any]) -> None:
    for n in range(100):
        compiled_tools([tool(under({"const": n}))])
    assert len(schemas._kept) == schemas.KEPT
    compiled_tools([tool(under({"const": "x" * schemas.KEPT_CHARACTERS}))])
    assert len(schemas._kept) == schemas.KEPT
    mine: Any = under({"type": "string"})
    declared = compiled_tools([tool(mine)])
    mine["properties"]["v"]["type"] = "integer"
    assert [v.code for v in declared.violations("f", {"v": 1})] == ["TYPE_MISMATCH"]


def test_threads_have_budgets_of_their_own() -> None:
    declared = compiled_tools([tool(tower(30)), tool(under({"uniqueItems": True}), "g")])
    results: list[tuple[str, list[str]]] = []

    def check(name: str) -> None:
        for _ in range(3):
            issues = validate([Call(name, json.dumps({"v": [1, 2]}))], declared)
            results.append((name, [str(issue.code) for issue in issues]))

    threads = [threading.Thread(target=check, args=(name,)) for name in "fgfg"]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(set(map(str, results))) == ["('f', ['OVER_BUDGET'])", "('g', [])"] and len(results) == 12


# --- patterns -----------------------------------------------------------------------------------

PATTERNS = [
    r"(a+)+$", r"^(a|aa)*$", r"(?i)^(?:[A-C]+x?)+$", r"^(\w+\s?)+$", r"(a(?=b)|b(?<=ab))*c", r"\b(a+b)+\b",
    r"(?:a{2,3}){2,3}b", r"(?!ab)(a|b)+c$", r"^(?s:.+)+\Z", r"(?m)^(ab?)+$", r"((a|b)?){5}c", r"[^a]+(b|c*)*",
    r"()*a", r"(?:a*)*b", r"(?:a*?)+?c", r"(?:)*", r"^[a-z ]*$", r"^\S+@\S+\.\w+$", r"(?<!a)b+", r"(?i:A)b|\Bc",
]  # fmt: skip


@pytest.mark.parametrize("source", PATTERNS)
def test_the_automaton_means_what_re_means(source: str, monkeypatch: pytest.MonkeyPatch) -> None:
    from lfm2_fixed.gate import patterns

    monkeypatch.setattr(patterns, "CHEAP", -1)  # never by re itself
    pattern = Pattern(source)
    letters = random.Random(source)
    for _ in range(400):
        text = "".join(letters.choice("abcAx \n.@é") for _ in range(letters.randint(0, 9)))
        assert pattern.found_in(text) == bool(re.search(source, text)), text
    assert pattern._automaton is not None


PARTS = st.recursive(
    st.sampled_from(["a", "b", ".", "[ab]", "[^a]", r"\w", r"\b", "^", "$", "(?=a)", "(?<!b)"]),
    lambda inner: st.one_of(
        st.lists(inner, min_size=1, max_size=3).map("".join),
        st.lists(inner, min_size=2, max_size=3).map(lambda parts: f"(?:{'|'.join(parts)})"),
        st.tuples(inner, st.sampled_from(["*", "+", "?", "{2}", "{1,3}", "*?"])).map(lambda p: f"(?:{p[0]}){p[1]}"),
    ),
    max_leaves=6,
)


@settings(max_examples=max(150, settings.default.max_examples // 5))
@given(PARTS, st.lists(st.text("abc\n", max_size=7), max_size=6))
def test_any_automaton_means_what_re_means(source: str, texts: list[str]) -> None:
    from lfm2_fixed.gate.patterns import _Automaton

    pattern = Pattern(source)
    automaton = _Automaton(pattern._tree, pattern._compiled.flags)
    for text in texts:
        assert automaton.found_in(text) == bool(re.search(source, text)), (source, text)


@pytest.mark.parametrize("source", [r"(a+)+$", r"^(a|aa)*$", r"^(\w+\s?)+$", r"(.*)(.*)(.*)x", r"(?:a*)*b"])
def test_steps_grow_with_the_text_alone(source: str) -> None:
    def steps(length: int) -> int:
        with budget(10**9):
            assert not found(source, "a" * length + "!")
            return 10**9 - left()

    short, long = steps(1000), steps(4000)
    assert short > 1000 and long < 5 * short


def test_the_work_of_a_pattern_is_what_is_counted() -> None:
    pattern = Pattern(r"^(\w+\s?)+$")
    pattern.found_in("a" * 100 + "!")

    steps = 0

    def work() -> None:
        nonlocal steps
        with budget(10**9):
            pattern.found_in("ab " * 700 + "!")
            steps = 10**9 - left()

    assert lines_run(work) < 40 * steps and steps > 2_000


@pytest.mark.parametrize("source", [r"(a+)+$", r"((a+)+)$", r"^(a|aa)*$", r"^(?:a?){30}b", r"^(a*b?)*$"])
def test_a_choice_in_a_repetition_is_never_read_by_re(source: str) -> None:
    """Thirty characters are enough for a billion ways."""
    from lfm2_fixed.gate.patterns import CHEAP

    assert Pattern(source)._worst(30) > CHEAP
    assert Pattern("^[a-z ]*$")._worst(30) <= CHEAP


def test_what_re_reads_at_no_risk() -> None:
    """A group that comes once at most repeats nothing; only an anchor at the start saves a power of the length."""
    from lfm2_fixed.gate.patterns import CHEAP

    assert Pattern(r"^(?:a*)?b")._worst(30) <= CHEAP
    assert Pattern(r"^a*b*c*")._worst(40) <= CHEAP < Pattern("\0a*b*c*")._worst(40)


def test_a_short_text_may_be_read_by_re_whatever_the_pattern_is() -> None:
    assert found(r"^(a+)\1$", "aaaa") and not found(r"^(a+)\1$", "aaa")
