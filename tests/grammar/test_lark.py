"""Grammars in Lark, where llguidance's lexer could make a difference, and its special tokens do."""

from __future__ import annotations

import json
from typing import Any

import pytest

pytest.importorskip("llguidance", reason="llguidance comes with vLLM")

from lfm2_fixed.grammar import lark
from lfm2_fixed.grammar.lexemes import circles
from tests.support.guidance_grammar import Text
from tests.support.tags import END, START, accepts, block, calls_of, compiled, tool

INTEGER = {"type": "object", "properties": {"a": {"type": "integer"}}, "required": ["a"]}
STRICT = [tool(INTEGER, strict=True), tool(None, "g")]


def grammar(schema: Any, **options: Any) -> Text:
    return compiled(lark([tool({"properties": {"s": schema}, "required": ["s"]})], "required", **options))


@pytest.mark.parametrize(
    "schema, values",
    [
        ({"anyOf": [{"const": "12x"}, {"type": "string", "pattern": "^[0-9]+$"}]}, ["12x", "1", "123"]),
        ({"anyOf": [{"const": "a<b"}, {"type": "string", "pattern": "^a*$"}]}, ["a<b", "aaa"]),
        ({"enum": ["a", "ab", "abc", "b\"'\n", 1, 12, 1.5, None, [1], [1, "a"]]}, ["abc", 'b"\'\n', 12, [1, "a"]]),
        ({"anyOf": [{"type": "array", "items": {"type": "integer"}}, {"const": [1, "x"]}]}, [[1, 2], [1, "x"], []]),
        ({"type": "object", "properties": {"n": {}, "na": {}}, "additionalProperties": True}, [{"na": 1, "nam": 2}]),
        ({"type": ["number", "null"], "minimum": -1}, [-1, 12, 0.25, 1e30, None]),
    ],
)
def test_what_begins_alike_does_not_hide_what_follows(schema: Any, values: list[Any]) -> None:
    """A lexer takes the longest match, and would forget the others."""
    found = grammar(schema)
    for value in values:
        for text in (repr(value), json.dumps(value)):
            assert accepts(found, block(f"f(s={text})")), text
    assert not accepts(found, block("f(s='12y')")) and not accepts(found, block('f(s="a<c)'))


def test_long_answers() -> None:
    """llguidance gives up where 2,000 items of a rule are open."""
    many = 2500
    assert accepts(grammar({"type": "string"}), block(f"f(s={'a<b' * many!r})"))
    assert accepts(grammar({"type": "string", "pattern": "^([a-z]+<)*$"}), block(f"f(s={'ab<' * many!r})"))
    assert accepts(grammar({"type": "array", "items": {"type": "integer"}}), block(f"f(s={[1] * many!r})"))
    assert accepts(grammar({"type": "object"}), block(f"f(s={dict.fromkeys(map(str, range(many)), [])!r})"))
    assert accepts(compiled(lark(STRICT, "auto")), "text, " * many + block("f(a=1)") + "<b>" * many)
    assert accepts(compiled(lark(STRICT, "required")), block(", ".join(["g()"] * many)))


def test_text_with_calls() -> None:
    """Markers are special tokens; text that looks like one is text."""
    found = compiled(lark(STRICT, "auto"))
    one = block("f(a=1)")
    for text in ("", "see [1]\n<think>f(a='x')</think>", f"So: {one}", f"{one}{one} and {block('f(a=1), g(b=[2])')}\n"):
        assert accepts(found, text), text
    for text in (block("f(a='x')"), f"So: {block('f()')}", START, f"{START}[g()]", END, f"{one}{END}"):
        assert not accepts(found, text), text
    single = compiled(lark(STRICT, "auto", parallel=False))
    assert accepts(single, f"So: {one}") and accepts(single, "no")
    assert not accepts(single, one * 2) and not accepts(single, block("f(a=1), g()"))


def test_a_thought_before_a_forced_call() -> None:
    one = block("f(a=1)")
    possible = compiled(lark(STRICT, "required", thought="possible"))
    for text in (one, "\n\n" + one, f"<think>I [f(a='x')] <b></think>\n\n{one}", f"<think></think>{one}"):
        assert accepts(possible, text), text
    for text in ("<think>", f"<think>{one}", f"hm {one}", f"<think></think>hm{one}", f"<think></think>{block('h()')}"):
        assert not accepts(possible, text), text
    opened = compiled(lark(STRICT, "required", thought="open"))
    assert accepts(opened, f"so</think>{one}") and not accepts(opened, one)
    assert not accepts(compiled(lark(STRICT, "required")), f"<think></think>{one}")


@pytest.mark.parametrize(
    "dialect, call", [("llama4", "[f(a=1), g()]"), ("olmo3", "<function_calls>f(a=1)\ng()</function_calls>")]
)
def test_families_whose_markers_are_text(dialect: str, call: str) -> None:
    found = compiled(lark(STRICT, "required", dialect=dialect, thought="possible"))
    assert accepts(found, call) and accepts(found, f"<think>so</think>\n{call}")
    assert not accepts(found, call.replace("a=1", "b=1")) and not accepts(found, f"so {call}")
    assert calls_of(call, STRICT, dialect) == [("f", {"a": 1}), ("g", {})]
    text = compiled(lark(STRICT, "auto", dialect=dialect))
    for words in ("", "a < b and [f] or </f", f"So: {call} done", "[<" * 3000):
        assert accepts(text, words), words
    assert not accepts(text, f"So: {call.replace('a=1', 'b=1')}")


def test_circles() -> None:
    assert circles({"a": ["b", "c"], "b": ["a"], "c": ["d"], "d": ["d", "e"], "e": []}) == [
        ["e"],
        ["d"],
        ["c"],
        ["b", "a"],
    ]
