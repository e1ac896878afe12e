"""A whole answer as one grammar, as llama.cpp reads it: text, thoughts and calls, one or more."""

from __future__ import annotations

from typing import Any

import pytest

pytest.importorskip("xgrammar", reason="the helpers need xgrammar, which comes with vLLM")

from lfm2_fixed.core.dialects import DIALECTS
from lfm2_fixed.grammar.answer import gbnf
from tests.support import llama_rig
from tests.support.tags import tool

if reason := llama_rig.missing():
    pytest.skip(reason, allow_module_level=True)

from tests.support.llama_grammar import Text

A = {"type": "object", "properties": {"a": {"type": "integer"}}}
TOOLS = [tool(A, "f"), tool(A, "g")]
STRICT = [tool(A, "f", strict=True), tool(A, "g", strict=True)]


def grammar(choice: Any = "required", **more: Any) -> Text:
    text = gbnf(STRICT if choice == "auto" else TOOLS, choice, **more)
    assert text is not None
    return Text(text)


def block(dialect: str, *calls: str) -> str:
    row = DIALECTS[dialect]
    listed = row.opener + row.separator.join(calls) + row.closer
    return f"{row.start}{listed}{row.ends[0]}" if row.needs_markers else listed


@pytest.mark.parametrize("dialect", DIALECTS)
@pytest.mark.parametrize("choice", ["required", "auto"])
def test_one_call_or_more(dialect: str, choice: str) -> None:
    one, two = block(dialect, "f(a=1)"), block(dialect, "f(a=1)", "g(a=2)")
    many, single = (grammar(choice, dialect=dialect, parallel=parallel) for parallel in (True, False))
    assert many.accepts(one) and many.accepts(two) and single.accepts(one)
    assert not single.accepts(two)
    assert not single.accepts(one + one)
    assert many.accepts(one + one) == (choice == "auto")
    for wrong in (block(dialect, "f(a='x')"), block(dialect, "f(b=1)")):
        assert not many.accepts(wrong) and not single.accepts(wrong)


@pytest.mark.parametrize("dialect", DIALECTS)
def test_text_where_nothing_is_forced(dialect: str) -> None:
    free = grammar("auto", dialect=dialect)
    for text in ("", "Hi.", "a < b, [1] <|", f"So: {block(dialect, 'f(a=1)')}"):
        assert free.accepts(text), text
    assert not grammar(dialect=dialect).accepts("Hi.")


def test_a_named_function() -> None:
    named = grammar({"type": "function", "function": {"name": "g"}})
    assert named.accepts(block("lfm2", "g(a=1)")) and not named.accepts(block("lfm2", "f(a=1)"))


def test_a_thought_before_forced_calls() -> None:
    call = block("lfm2", "f(a=1)")
    accepted = {
        thought: [text for text in (call, f"hm</think>{call}", f"<think>hm</think>{call}") if made.accepts(text)]
        for thought in ("none", "possible", "open")
        for made in [grammar(thought=thought)]
    }
    assert accepted == {
        "none": [call],
        "possible": [call, f"<think>hm</think>{call}"],
        "open": [f"hm</think>{call}", f"<think>hm</think>{call}"],
    }
    for text in ("<think>hm", f"<think>{call}</think>{call}", "<think>hm</think>"):
        assert not grammar(thought="possible").accepts(text)


def test_arguments_of_a_tool_that_is_not_held() -> None:
    """Any literals by any names, and those declared that are none otherwise; what is no name is not written."""
    free = gbnf([tool({"properties": {"a b": {}, "x-y": {}, "3d": {}}}, "f")], "auto")
    assert free is not None
    made = Text(free)
    for name in ("a", "other", "x-y", "3d"):
        assert made.accepts(block("lfm2", f"f({name}='x')")), name
    for name in ("a b", ""):
        assert not made.accepts(block("lfm2", f"f({name}='x')")), name
