"""What the choice of a tool, the markers and the shapes of tools make of a grammar."""

from __future__ import annotations

import json
import types
from typing import Any

import pytest

pytest.importorskip("xgrammar", reason="the grammar needs xgrammar, which comes with vLLM")

from xgrammar.structural_tag import StructuralTag

from lfm2_fixed.grammar import functions, structural_tag
from tests.support import tags
from tests.support.tags import accepts, block, compiled, tag_for, tool

TWO = [tool({"type": "object", "properties": {"a": {"type": "integer"}}}, "f"), tool(None, "g")]


def test_choices() -> None:
    required = compiled(tag_for(TWO))
    assert accepts(required, block("f(a=1), g(), f()"))
    assert accepts(required, "\n\n" + block("g()"))
    for text in (block(""), block("h()"), block("g()") + "x", "x" + block("g()"), "", block("g()") + block("g()")):
        assert not accepts(required, text), text
    single = compiled(tag_for(TWO, parallel=False))
    assert accepts(single, block("g()"))
    assert not accepts(single, block("g(), g()"))
    for choice in (
        {"type": "function", "function": {"name": "f"}},
        {"type": "function", "name": "f"},
        types.SimpleNamespace(type="function", function=types.SimpleNamespace(name="f")),
    ):
        named = compiled(tag_for(TWO, choice))
        assert accepts(named, block("f()"))
        assert not accepts(named, block("g()"))
        assert not accepts(named, block("f(), f()"))
    assert not accepts(compiled(tag_for(TWO[:1], "forced")), block("f(), f()"))
    allowed = {"type": "allowed_tools", "mode": "required", "tools": [{"type": "function", "name": "g"}]}
    assert not accepts(compiled(tag_for(TWO, allowed)), block("f()"))
    assert accepts(compiled(tag_for(TWO, allowed)), block("g()"))


def test_no_tag() -> None:
    assert tag_for(TWO, "none") is None
    assert tag_for([], "auto") is None
    assert structural_tag(None) is None
    assert tag_for([{"type": "web_search"}], "auto") is None
    for choice in ("required", {"type": "function", "function": {"name": "h"}}, "sometimes"):
        with pytest.raises(ValueError):
            tag_for([] if choice == "required" else TWO, choice)
    with pytest.raises(ValueError):
        tag_for(TWO, dialect="lfm3")


@pytest.mark.parametrize("token_ids", [tags.IDS, None], ids=["tokens", "text"])
def test_auto(token_ids: Any) -> None:
    strict = [tool({"type": "object", "properties": {"a": {"type": "integer"}}}, "f", strict=True), tool(None, "g")]
    grammar = compiled(structural_tag(strict, "auto", token_ids=token_ids))
    for text in ("", "just text", f"first {block('f(a=1)')} then {block('g(x=[1], y=None)')}", "a < b, [f(x)]"):
        assert accepts(grammar, text), text
    for text in (block("f(a='x')"), block("h()"), f"text {block('f(b=1)')}", block("")):
        assert not accepts(grammar, text), text
    single = compiled(structural_tag(strict, "auto", token_ids=token_ids, parallel=False))
    assert accepts(single, "text " + block("f(a=1)"))
    assert not accepts(single, block("f(a=1), g()"))
    assert not accepts(single, block("f(a=1)") + block("g()"))


def test_text_markers_where_there_are_no_ids() -> None:
    grammar = compiled(structural_tag(TWO, "required", token_ids=None))
    matcher_text = block("f(a=1), g()")
    assert accepts(grammar, matcher_text)
    assert not accepts(grammar, block("f(a=1"))


def test_reasoning_first() -> None:
    grammar = compiled(tag_for(TWO, reasoning=True))
    assert accepts(grammar, "I will call g.</think>\n\n" + block("g()"))
    assert not accepts(grammar, "I will call g.</think>no")


def test_shapes_of_tools() -> None:
    parameters = {"type": "object", "properties": {}}
    flat = {"type": "function", "name": "a", "parameters": parameters, "strict": True}
    chat = {"type": "function", "function": {"name": "b", "parameters": parameters}}
    thing = types.SimpleNamespace(
        type="function", function=types.SimpleNamespace(name="c", parameters=None, strict=False)
    )
    space = {"type": "namespace", "name": "ns", "tools": [{"type": "function", "name": "d"}, {"type": "mcp"}]}
    custom = {"type": "custom", "name": "e"}
    found = functions([flat, chat, thing, space, custom, {"type": "web_search"}])
    assert [function.name for function in found] == ["a", "b", "c", "ns__d", "e"]
    assert [function.strict for function in found] == [True, False, False, False, False]
    assert accepts(compiled(tag_for([custom])), block('e(input="x")'))


def test_a_name_without_a_form_in_a_list(caplog: pytest.LogCaptureFixture) -> None:
    tools = [tool(None, "no name"), tool(None, "get-it/now:x.y")]
    assert accepts(compiled(tag_for(tools)), block("get-it/now:x.y()"))
    assert "no name" in caplog.text
    with pytest.raises(ValueError):
        tag_for(tools[:1])


def test_tags_can_be_changed_without_harm() -> None:
    first = tag_for(TWO)
    first["format"]["elements"].clear()
    assert accepts(compiled(tag_for(TWO)), block("g()"))
    plain = json.loads(json.dumps(tag_for(TWO)))
    assert accepts(compiled(plain), block("g()"))


def test_a_server_may_stop_the_list_itself() -> None:
    """What vLLM does for parallel_tool_calls=false: it looks for the list's format in the tag."""
    tag = StructuralTag.model_validate(tag_for(TWO))
    found = []

    def visit(node: Any) -> None:
        if type(node).__name__ == "TagsWithSeparatorFormat":
            node.stop_after_first = True
            found.append(node)
        for field in getattr(type(node), "model_fields", ()):
            value = getattr(node, field)
            for inner in value if isinstance(value, list) else [value]:
                if hasattr(type(inner), "model_fields"):
                    visit(inner)

    visit(tag.format)
    assert len(found) == 1
    grammar = compiled(tag)
    assert accepts(grammar, block("f(a=1)"))
    assert not accepts(grammar, block("f(a=1), g()"))
