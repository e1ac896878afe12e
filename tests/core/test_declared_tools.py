"""Declared tools in every shape a request may have, and the special tokens that content leaves out."""

from __future__ import annotations

import random
from types import SimpleNamespace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lfm2_fixed import PythonicStream, parse
from lfm2_fixed.core.dialects import DIALECTS
from tests.support.examples import SOME
from tests.support.harness import every, random_cut, stream, whole
from tests.support.words import E, S

PARAMETERS = {"type": "object", "properties": {"city": {"type": "string"}, "unit": {"type": "string"}}}


def plain(value: Any) -> Any:
    """The same data as attributes, as request models hold it."""
    if isinstance(value, dict) and "properties" not in value and "type" in value and value is not PARAMETERS:
        return SimpleNamespace(**{key: plain(item) if key == "function" else item for key, item in value.items()})
    if isinstance(value, dict) and "name" in value:
        return SimpleNamespace(**value)
    return value


CHAT = {"type": "function", "function": {"name": "w", "description": "", "parameters": PARAMETERS}}
RESPONSES = {"type": "function", "name": "w", "parameters": PARAMETERS, "strict": True}
SHAPES = {
    "mapping": {"w": ["city", "unit"]},
    "mapping of tuples": {"w": ("city", "unit")},
    "chat": [CHAT],
    "responses": [RESPONSES],
    "chat object": [plain(CHAT)],
    "responses object": [plain(RESPONSES)],
    "among others": [{"type": "web_search"}, {"type": "function", "function": {"name": "v"}}, CHAT],
}


@pytest.mark.parametrize("tools", SHAPES.values(), ids=SHAPES)
def test_shapes(tools: Any) -> None:
    """Positional arguments take the declared names, whatever shape the declaration has."""
    text = f"{S}[w('Paris', 'c')]{E}"
    assert whole(text, "lfm2", tools) == ([("w", '{"city": "Paris", "unit": "c"}')], "")
    assert stream(every(text, 1), "lfm2", tools).calls == [("w", '{"city": "Paris", "unit": "c"}')]
    assert whole("So: [w('Paris')]", "llama4", tools) == ([("w", '{"city": "Paris"}')], "So:")


@pytest.mark.parametrize(
    "tools",
    [
        [],
        {},
        [{"type": "function", "function": {"name": "w"}}],
        [{"type": "function", "function": {"name": "w", "parameters": None}}],
        [{"type": "function", "function": {"name": "w", "parameters": {}}}],
        [{"type": "function", "function": {"name": "w", "parameters": {"properties": None}}}],
        [{"type": "function"}, {"type": "other", "name": "w"}, {"function": {"name": "w"}}],
        [SimpleNamespace(type="function", function=SimpleNamespace(name="w", parameters=None))],
    ],
    ids=repr,
)
def test_without_parameters(tools: Any) -> None:
    """No declared parameters: positional arguments have no names, and nothing raises."""
    assert whole(f"{S}[w('Paris'), w(a=1)]{E}", "lfm2", tools) == ([("w", '{"a": 1}')], "w('Paris')")


TOKENS = ["<|im_end|>", "<|pad|>", "</s>", "<pad>", "<|im_start|>", "<a>", "<a b>", "<é>"]


@SOME
@given(
    st.lists(st.sampled_from(TOKENS), max_size=3, unique=True),
    st.lists(
        st.sampled_from([*TOKENS, "<", "<|", "|>", "a", " ", "\n", "[", "a>", "im_", "end|>", "</s", ">"]), max_size=12
    ),
    st.sampled_from(sorted(DIALECTS)),
    st.integers(0, 2**32),
)
def test_special_tokens_never_reach_the_content(tokens: list[str], parts: list[str], dialect: str, seed: int) -> None:
    """However the text is cut, the tokens named are taken out of content, left to right, and nothing else is."""
    text = "".join(parts)
    expected, at = "", 0
    while at < len(text):
        token = next((token for token in tokens if text.startswith(token, at)), "")
        expected += "" if token else text[at]
        at += len(token) or 1
    for pieces in ([text], every(text, 1), random_cut(text, random.Random(seed))):
        turn = stream(pieces, dialect, special_tokens=tokens)
        assert turn.completed == ([], expected), pieces
    assert whole(text, dialect, special_tokens=tokens) == ([], expected)


def test_special_tokens_in_arguments_stay() -> None:
    """A string that holds a token's text keeps it."""
    text = f"a<|im_end|>{S}[w(c='<|im_end|>')]{E}<|im_end|>"
    assert whole(text) == ([("w", '{"c": "<|im_end|>"}')], "a")
    assert whole(text, special_tokens=()) == ([("w", '{"c": "<|im_end|>"}')], "a<|im_end|>\n<|im_end|>")


def test_unknown_dialect() -> None:
    """A wrong dialect is said at once."""
    with pytest.raises(ValueError, match="lfm2"):
        PythonicStream("qwen")  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="lfm2"):
        parse("", "qwen")  # type: ignore[arg-type]


LONE = {"write": {"path": "string", "content": "string"}}


def test_a_lone_object_streams_where_its_first_key_is_a_parameter() -> None:
    """It is certain then: its strings go out as they come, as they do behind ``**``."""
    pieces = [f"{S}[write({{'path': 'a', 'content': '", "some ", "text", "'})]", E]
    seen = []
    turn = stream(pieces, "lfm2", LONE, watch=lambda turn, events, piece: seen.append(turn.started[-1].arguments))
    assert seen[:3] == [
        '{"path": "a"',
        '{"path": "a", "content": "some ',
        '{"path": "a", "content": "some text',
    ]
    assert turn.calls == [("write", '{"path": "a", "content": "some text"}')]


def test_another_lone_object_waits_for_the_end_of_its_call() -> None:
    """Until then it might be the first argument."""
    pieces = [f"{S}[write({{'file': 'a', ", "'x': 1}", ")", "]", E]
    seen = []
    stream(pieces, "lfm2", LONE, watch=lambda turn, events, piece: seen.append([c.arguments for c in turn.started]))
    assert seen == [[], [], ['{"file": "a", "x": 1'], ['{"file": "a", "x": 1}']] + [['{"file": "a", "x": 1}']] * 2
