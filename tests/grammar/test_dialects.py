"""Constrained calls of the families that do not write a list between tokens."""

from __future__ import annotations

import re
from typing import Any

import pytest

pytest.importorskip("xgrammar", reason="the grammar needs xgrammar, which comes with vLLM")

from lfm2_fixed.core.dialects import DIALECTS
from lfm2_fixed.grammar import structural_tag
from tests.support import tags
from tests.support.tags import accepts, calls_of, compiled, tag_for, tool

TWO = [tool({"type": "object", "properties": {"a": {"type": "integer"}}, "required": ["a"]}), tool(None, "g")]


@pytest.mark.parametrize("dialect", [row.name for row in DIALECTS.values() if row.bare_lists])
def test_bare_lists(dialect: str) -> None:
    required = compiled(tag_for(TWO, dialect=dialect))
    assert accepts(required, "[f(a=1), g()]")
    assert accepts(required, "\n[g()]")
    assert not accepts(required, "[]")
    assert not accepts(required, "[g()] and")
    assert not accepts(compiled(tag_for(TWO, dialect=dialect, parallel=False)), "[g(), g()]")
    strict = [tool({"type": "object", "properties": {"a": {"type": "integer"}}}, "f", strict=True), TWO[1]]
    auto = compiled(tag_for(strict, "auto", dialect=dialect))
    for text in ("", "see [1] and [docs](x)", "So: [f(a=1), g(b=2)] done", "[h(a='x')]"):
        assert accepts(auto, text), text
    for text in ("[f(a='x')]", "So: [f(b=1)]", "[f(a=1) x]"):
        assert not accepts(auto, text), text
    single = compiled(tag_for(strict, "auto", dialect=dialect, parallel=False))
    assert accepts(single, "So: [f(a=1)]")
    assert not accepts(single, "So: [f(a=1), g()]")
    assert not accepts(single, "[f(a=1)] [g()]")


@pytest.mark.parametrize("token_ids", [tags.IDS, None], ids=["a vocabulary with the markers", "text"])
def test_a_call_a_line_between_markers_of_text(token_ids: Any) -> None:
    """OLMo 3: nothing around the calls, a newline between them, and markers that are ordinary text."""

    def tag(tools: Any, choice: Any = "required", **options: Any) -> Any:
        return compiled(structural_tag(tools, choice, dialect="olmo3", token_ids=token_ids, **options))

    def lines(*calls: str) -> str:
        return "<function_calls>" + "\n".join(calls) + "</function_calls>"

    required = tag(TWO)
    beside = ["\n".join(("<function_calls>", "f(a=1)", "g()", "</function_calls>")), lines("g()", "")]
    for text in (lines("g()"), lines("f(a=1)", "g()", "g()"), "\n" + lines("g()"), *beside):
        assert spelled(required, text), text
    for text in (lines(), lines("g(), g()"), lines("[g()]"), lines("h()"), "g()", lines("g()") + " and", "Hello."):
        assert not spelled(required, text), text
    named = tag(TWO, {"type": "function", "function": {"name": "g"}})
    assert spelled(named, lines("g()"))
    assert not spelled(named, lines("f(a=1)")) and not spelled(named, lines("g()", "g()"))
    assert not spelled(tag(TWO, parallel=False), lines("g()", "g()"))
    assert spelled(tag(TWO, parallel=False), lines("", "g()", ""))
    strict = [tool({"type": "object", "properties": {"a": {"type": "integer"}}}, "f", strict=True), TWO[1]]
    auto = tag(strict, "auto")
    for text in ("", "a < b, [f(a='x')]", "So: " + lines("f(a=1)", "g()") + " done"):
        assert spelled(auto, text), text
    for text in (lines("f(a='x')"), "So: " + lines("f(b=1)"), lines()):
        assert not spelled(auto, text), text
    single = tag(strict, "auto", parallel=False)
    assert spelled(single, "So: " + lines("f(a=1)")) and not spelled(single, lines("f(a=1)", "g()"))


def spelled(grammar: Any, text: str) -> bool:
    """Whether ``text`` is a whole answer, however its markers are cut into tokens."""
    by_character = accepts(grammar, text)
    matcher = tags.matcher(grammar)
    whole = [piece for piece in re.split("(</?function_calls>)", text) if piece]
    tokens = [[tags.IDS[one]] if one in tags.IDS else tags.tokens_of(one) for one in whole]
    by_marker = all(map(matcher.accept_token, sum(tokens, []))) and matcher.accept_token(tags.IDS[tags.STOP])
    assert by_marker == by_character
    return by_character


@pytest.mark.parametrize(
    "schema, quote",
    [
        ({"type": "string"}, '"'),
        ({"type": "string"}, "'"),
        ({"type": "string", "maxLength": 30}, '"'),
        ({"type": "string", "maxLength": 300}, '"'),
        ({"type": "string", "pattern": "^[<>/a-z _]*$"}, '"'),
        ({"type": "string", "pattern": "^[<>/a-z _]*$"}, "'"),
    ],
)
def test_no_string_holds_an_end_marker_of_text(schema: Any, quote: str) -> None:
    """It would end the block; other tags are written as they are."""
    listed = {"enum": ["<b></function_calls>"]}
    tools = [tool({"properties": {"s": schema}}), tool({"properties": {"s": listed}}, "e")]
    grammar = compiled(tag_for(tools, dialect="olmo3"))

    def written(string: str, name: str = "f") -> str:
        return f"<function_calls>{name}(s={quote}{string}{quote})</function_calls>"

    for string in ("</div></form></fnc", "<", "</", "</f", "</<b", "<function_calls>"):
        text = written(string)
        assert accepts(grammar, text), text
        assert calls_of(text, tools, "olmo3") == [("f", {"s": string})]
    for string in ("</function_calls>", "<</function_calls>", "a</function_calls> b", "</fu"):
        assert not accepts(grammar, written(string)), string
        assert accepts(grammar, text := written(string.replace("</fu", "</f\\u0075"))), text
        assert calls_of(text, tools, "olmo3") == [("f", {"s": string})]
    assert not accepts(grammar, written("<b></function_calls>", "e"))
    assert accepts(grammar, text := written("<b></f\\u0075nction_calls>", "e"))
    assert calls_of(text, tools, "olmo3") == [("e", {"s": "<b></function_calls>"})]
