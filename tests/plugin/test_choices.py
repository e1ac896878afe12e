"""``tool_choice``, ``n``, ``parallel_tool_calls`` and what a turn without calls looks like."""

from __future__ import annotations

import json
from types import SimpleNamespace
from typing import Any

import pytest

from tests.support import served
from tests.support.served import E, S

TEXT = f'Let me look.\n{S}[get_weather(city="Paris"), get_weather(city="Rome")]{E}Done.'
CALLS = [("get_weather", '{"city": "Paris"}'), ("get_weather", '{"city": "Rome"}')]
PLAIN = 'Let me look.\n[get_weather(city="Paris"), get_weather(city="Rome")]Done.'
APIS = pytest.mark.parametrize("api", [served.chat, served.responses])
REASONING = pytest.mark.parametrize("reasoning", [None, "qwen3"])
SIZES = (1, 2, 3, 7, 19, 1000)


def cut(text: str, size: int) -> list[str]:
    return [text[start : start + size] for start in range(0, len(text), size)]


def both_ways(text: str, request: Any, dialect: str = "lfm2", reasoning: str | None = None) -> served.Turn:
    """The turn, which must be the same streamed and not."""
    want = served.whole(text, request, dialect, reasoning)
    before = ["<think>", "</think>"] if reasoning else []
    text = text.removeprefix("<think></think>")
    for size in SIZES:
        turn = served.streamed([*before, *cut(text, size)], request, dialect, reasoning)
        assert (turn.content, turn.calls) == (want.content, want.calls), size
    return want


@APIS
@REASONING
def test_none(api: Any, reasoning: str | None) -> None:
    """No call, the text, no sentinel; streamed chunks do not even name ``tool_calls``."""
    request = served.adjusted(api(tool_choice="none"), reasoning=reasoning)
    before = "<think></think>" if reasoning else ""
    turn = both_ways(before + TEXT, request, reasoning=reasoning)
    assert (turn.content, turn.calls) == (PLAIN, [])
    for size in SIZES:
        streamed = served.streamed([*([before] if before else []), *cut(TEXT, size)], request, reasoning=reasoning)
        assert all("tool_calls" not in chunk for chunk in streamed.chunks)


@pytest.mark.parametrize("text", ["<|tool_call_", "a <", "<|tool_call_end|><|tool_call_st", ""])
def test_none_with_a_cut_sentinel(text: str) -> None:
    """What only looked like a sentinel is text."""
    request = served.chat(tool_choice="none")
    assert both_ways(text, request).content == text.replace(E, "")


def test_no_tools() -> None:
    """An ordinary chat: every character stays, also of what looks like a call or a special token."""
    for dialect, text in (
        ("llama4", '[get_weather(city="Paris")] is how a call looks, or ```[f(x=1)]```\n'),
        ("lfm2", 'A template writes <|im_start|>user, then [get_weather(city="Paris")]  '),
    ):
        request = served.chat(tools=None)
        assert request.tool_choice == "none"
        assert both_ways(text, request, dialect).content == text


def test_none_for_llama4() -> None:
    request = served.chat(tool_choice="none")
    turn = both_ways("<|python_start|>[f(x=1)]<|python_end|>ok<|eom|>", request, "llama4")
    assert (turn.content, turn.calls) == ("[f(x=1)]ok", [])


@APIS
@REASONING
@pytest.mark.parametrize("choice", ["auto", "required", "named"])
def test_native_calls_whatever_the_choice(api: Any, choice: str, reasoning: str | None) -> None:
    """``required`` and a named function are answered from the model's own format, never from forced JSON."""
    named: dict[str, Any] = {"type": "function", "name": "get_weather"}
    if api is served.chat:
        named = {"type": "function", "function": {"name": "get_weather"}}
    request = served.adjusted(api(tool_choice=named if choice == "named" else choice), reasoning=reasoning)
    forced = getattr(request, "structured_outputs", None)
    assert forced is None or (forced.json is None and forced.structural_tag is not None)
    assert getattr(getattr(request, "text", None), "format", None) is None
    before = "<think></think>" if reasoning else ""
    turn = both_ways(before + TEXT, request, reasoning=reasoning)
    assert turn.calls == CALLS
    assert turn.content == "Let me look.\nDone."


def test_several_calls_and_content_in_one_delta() -> None:
    turn = served.streamed([TEXT], served.adjusted(served.chat()))
    [chunk] = turn.chunks
    assert [call["index"] for call in chunk["tool_calls"]] == [0, 1]
    assert chunk["content"] == "Let me look.\nDone."
    assert len(set(turn.ids)) == 2


def test_the_wire_byte_for_byte() -> None:
    """The first delta of a call, and a later one; anything unset is absent, not null."""
    parser = served.parser(request=(request := served.adjusted(served.chat())))
    wire = [
        message.model_dump_json(exclude_unset=True)
        for piece in (S + "[", "get_weather(city='", "Par", "is", "')", "]", E)
        if (message := parser.parse_delta(piece, [1], request, prompt_token_ids=[0], finished=False))
    ]
    first = json.loads(wire[0])["tool_calls"][0]
    assert wire == [
        f'{{"tool_calls":[{{"id":"{first["id"]}","type":"function","index":0,'
        '"function":{"name":"get_weather","arguments":"{\\"city\\": \\"Par"}}]}',
        '{"tool_calls":[{"index":0,"function":{"arguments":"is"}}]}',
        '{"tool_calls":[{"index":0,"function":{"arguments":"\\"}"}}]}',
    ]


def test_built_deltas_equal_validated_ones() -> None:
    """The deltas are filled directly; they must be what vLLM's own constructors would have made."""
    from vllm.tool_parsers.abstract_tool_parser import DeltaMessage
    from vllm.tool_parsers.utils import DeltaFunctionCall, DeltaToolCall

    from lfm2_fixed.plugin import messages

    first = DeltaToolCall(id="i", type="function", index=3, function=DeltaFunctionCall(name="f", arguments='{"a": 1'))
    later = DeltaToolCall(index=3, function=DeltaFunctionCall(arguments="}"))
    pairs = [
        (messages.content_delta("text"), DeltaMessage(content="text")),
        (messages.delta("", [messages.first_delta(3, "i", "f", '{"a": 1')]), DeltaMessage(tool_calls=[first])),
        (
            messages.delta("text", [messages.arguments_delta(3, "}")]),
            DeltaMessage(content="text", tool_calls=[later]),
        ),
        (messages.reasoning_delta("hm", ""), DeltaMessage(reasoning="hm")),
        (messages.reasoning_delta("hm", "text"), DeltaMessage(reasoning="hm", content="text")),
        (messages.reasoning_delta("", "text"), DeltaMessage(content="text")),
    ]
    assert messages.reasoning_delta("", "") is None
    for ours, theirs in pairs:
        assert ours is not None
        assert ours == theirs
        for options in ({}, {"exclude_unset": True}, {"exclude_none": True}):
            assert json.loads(ours.model_dump_json(**options)) == json.loads(theirs.model_dump_json(**options))
        assert ours.model_copy(deep=True) == theirs.model_copy(deep=True)
        ours.content = theirs.content = "more"  # the serving layer changes deltas
        assert ours == theirs
        assert type(ours).model_validate(ours.model_dump()) == type(theirs).model_validate(theirs.model_dump())


def test_one_parser_for_several_choices() -> None:
    """``n`` > 1: whole texts share an instance in some versions, and streams run interleaved."""
    request = served.adjusted(served.chat(n=3))
    texts = [TEXT, f'{S}[get_weather(city="Oslo', "No call."]
    shared = served.parser(request=request)
    for _ in range(2):
        for text in texts:
            _, content, calls = shared.parse(text, request, enable_auto_tools=True)
            alone = served.whole(text, request)
            assert [(call.name, call.arguments) for call in calls or ()] == alone.calls
            assert (content or "") == alone.content

    streams = [(served.parser(request=request), served.Turn(), text) for text in texts]
    for position in range(max(map(len, texts))):
        for parser, turn, text in streams:
            if position < len(text):
                last = position == len(text) - 1
                message = parser.parse_delta(text[position], [1], request, prompt_token_ids=[0], finished=last)
                if message is not None:
                    served.take(turn, json.loads(message.model_dump_json(exclude_unset=True)))
    assert [turn.calls for _, turn, _ in streams] == [CALLS, [("get_weather", '{"city": "Oslo')], []]
    assert [turn.content for _, turn, _ in streams] == ["Let me look.\nDone.", "", "No call."]
    ids = [call_id for _, turn, _ in streams for call_id in turn.ids]
    assert len(set(ids)) == 3


def test_an_instance_may_be_used_again() -> None:
    """After the end of a stream nothing of it is left."""
    request = served.adjusted(served.chat())
    parser = served.parser(request=request).tool_parser
    for _ in range(2):
        said = [
            parser.extract_tool_calls_streaming("", piece, piece, [], [1], [1], request)
            for piece in (S, '[get_weather(city="')
        ]
        assert said == [None, None]
        assert parser.finish_streaming() is None
        assert parser.finish_streaming() is None


def test_content_survives_where_vllm_would_return_the_raw_text() -> None:
    """Without a completed call the markup is still no content."""
    request = served.adjusted(served.chat())
    for text, content in (
        (f'One.{S}[get_weather(city="Par', "One."),
        (f"{S}[]{E}", ""),
        (f"One.{S}[]{E}\nTwo.<|im_end|>", "One.\nTwo."),
        (f"{S}[get_weather()]{E}", ""),
        ("Plain.", "Plain."),
        ("", ""),
    ):
        turn = served.whole(text, request)
        assert turn.content == content
        assert turn.calls == ([("get_weather", "{}")] if "()" in text else [])


@pytest.mark.parametrize(
    ("text", "called"),
    [
        (TEXT, True),
        (f"{S}[get_weather()]{E}", True),
        (f"{S}[]{E}", False),
        (f"One.{S}[get_weather(city=secret())]{E}", False),
        (f'One.{S}[get_weather(city="Par', False),
        ("Plain.", False),
        ("", False),
    ],
)
def test_tools_called_only_with_calls(text: str, called: bool) -> None:
    """vLLM's own invariant.  What some versions make of the content then is mended around the tool parser."""
    request = served.adjusted(served.chat())
    found = served.parser(request=request).tool_parser.extract_tool_calls(text, request)
    assert found.tools_called is called is bool(found.tool_calls)


def test_what_becomes_of_content_without_calls_is_tried() -> None:
    """The trial on vLLM's code tells what that code does with content found in another text."""
    from lfm2_fixed.plugin.compat import keeps_content

    served.load()
    found = served.parser().tool_parser.extract_tool_calls("", served.chat())
    for reasoning in (None, "qwen3", "deepseek_r1", "lfm2_fixed"):
        one = served.parser(reasoning=reasoning)
        one.tool_parser.extract_tool_calls = lambda text, request: type(found)(
            tools_called=False, tool_calls=[], content="content"
        )
        _, content, _ = one.parse("<think></think>raw", served.chat(), enable_auto_tools=True)
        # With an instance attribute in its place it is still this package's parser, so the content arrives anyway.
        assert content == "content"
        patched, one._tool_parser = one._tool_parser, type("Other", (), {"supports_required_and_named": False})()
        one._tool_parser.extract_tool_calls = patched.extract_tool_calls
        _, content, _ = one.parse("<think></think>raw", served.chat(), enable_auto_tools=True)
        assert (content == "content") is keeps_content(one._engine_based)


def tool_shapes() -> dict[str, Any]:
    """The same tool in every shape."""
    schema = {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]}
    chat = {"type": "function", "function": {"name": "get_weather", "parameters": schema}}
    flat = {"type": "function", "name": "get_weather", "parameters": schema}
    other = {"type": "function", "function": {"name": "other", "parameters": {"type": "object"}}}
    return {
        "dict": [chat],
        "flat dict": [flat],
        "object": served.chat([chat]).tools,
        "flat object": served.responses([chat]).tools,
        "mixture": [other, *served.chat([other]).tools, flat],
        "mixture of objects": [*served.responses([other]).tools, *served.chat([chat]).tools],
        "Messages": [{"name": "get_weather", "input_schema": schema}],
    }


@pytest.mark.parametrize("shape", tool_shapes())
def test_tools_in_any_shape_without_a_request(shape: str) -> None:
    """A positional argument gets its name from the declaration, wherever that comes from."""
    served.load()
    text = f"{S}[get_weather('Paris')]{E}"
    for name, tools in (("of the parser", tool_shapes()[shape]), ("of the request", None)):
        request = None if tools else SimpleNamespace(tools=tool_shapes()[shape])
        parser = served.ToolParserManager.get_tool_parser("lfm2_fixed")(served.tokenizer(), tools)
        found = parser.extract_tool_calls(text, request)
        assert [(call.function.name, call.function.arguments) for call in found.tool_calls] == CALLS[:1], name
        said = [parser.extract_tool_calls_streaming("", char, char, [], [1], [1], request) for char in text]
        said.append(parser.finish_streaming())
        calls = [call for message in said if message for call in message.tool_calls]
        assert "".join(call.function.arguments for call in calls) == CALLS[0][1], name
        assert calls[0].function.name == "get_weather"


def test_parallel_calls_off_keeps_the_first() -> None:
    """vLLM drops the other calls; ours must keep to its rule of one entry for each index."""
    request = served.adjusted(served.chat(parallel_tool_calls=False))
    turn = served.streamed(cut(TEXT, 5), request)
    assert turn.calls == CALLS
