"""Calls put together as the official clients do it: these are the oracles, over a real HTTP connection."""

from __future__ import annotations

import json
from typing import Any

import anthropic
import openai
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lfm2_fixed.gate import Code, Turn, assemble, from_response, validate
from tests.support.answers import (
    TOOLS,
    Answer,
    chat_chunk,
    chat_frames,
    chat_whole,
    messages_frames,
    responses_frames,
    serving,
    sse,
)

CALLS = [("write", '{"path": "ä.txt", "content": "a \\"b\\" €"}'), ("move", '{"lat": -1.5}'), ("ping", "{}")]
KINDS = {"chat": chat_frames, "responses": responses_frames, "messages": messages_frames}

arguments = st.dictionaries(
    st.text(st.characters(exclude_categories=["Cs"]), max_size=5),
    st.text(st.characters(exclude_categories=["Cs"]), max_size=20) | st.integers() | st.lists(st.booleans()),
    max_size=4,
).map(lambda value: json.dumps(value, ensure_ascii=False))
turns = st.lists(st.tuples(st.sampled_from(["write", "move", "f"]), arguments), max_size=4)
cuttings = st.lists(st.integers(0, 200), max_size=12)


def named(turn: Turn) -> list[tuple[str, str]]:
    return [(call.name, call.arguments) for call in turn]


@pytest.mark.parametrize("kind", KINDS)
@given(calls=turns, cuts=cuttings)
@settings(max_examples=max(50, settings.default.max_examples // 10))
def test_any_calls_in_any_pieces(kind: str, calls: list[tuple[str, str]], cuts: list[int]) -> None:
    turn = assemble(KINDS[kind](calls, cuts=cuts))
    assert named(turn) == calls
    assert turn.problems == () and turn.protocol == kind and not turn.cut
    assert turn.finish_reason in ("tool_calls", "completed", "tool_use")
    assert all(call.complete for call in turn)


@given(calls=turns, cuts=cuttings)
@settings(max_examples=max(50, settings.default.max_examples // 10))
def test_pieces_are_joined_as_the_openai_package_joins_them(calls: list[tuple[str, str]], cuts: list[int]) -> None:
    from openai.lib.streaming._deltas import accumulate_delta

    frames = chat_frames(calls, cuts=cuts)
    state: dict[object, object] = {}
    for frame in json.loads(json.dumps(frames)):
        state = accumulate_delta(state, frame["choices"][0]["delta"])
    theirs: Any = state.get("tool_calls") or []
    assert named(assemble(frames)) == [(c["function"]["name"], c["function"]["arguments"]) for c in theirs]
    assert [call.id for call in assemble(frames)] == [c["id"] for c in theirs]


def test_what_the_openai_package_makes_of_ids_and_names_that_come_again() -> None:
    """The reason why a repeated name is a broken stream: its client hands over another one."""
    from openai.lib.streaming._deltas import accumulate_delta

    entry = {"index": 0, "id": "a", "type": "function", "function": {"name": "ping", "arguments": "{"}}
    frames = [chat_chunk({"tool_calls": [entry]}), chat_chunk({"tool_calls": [entry]}), chat_chunk({}, "tool_calls")]
    state: dict[object, object] = {}
    for frame in json.loads(json.dumps(frames)):
        state = accumulate_delta(state, frame["choices"][0]["delta"])
    (theirs,) = state["tool_calls"]  # type: ignore[attr-defined]
    assert (theirs["id"], theirs["function"]["name"], theirs["function"]["arguments"]) == ("aa", "pingping", "{{")
    turn = assemble(frames)
    assert [(call.id, call.name, call.arguments) for call in turn] == [("a", "ping", "{{")]
    assert [(p.kind, p.call) for p in turn.problems] == [("malformed", 0), ("malformed", 0)]


def test_the_openai_client_over_http() -> None:
    body = sse(chat_frames(CALLS, content="Well: "))
    with serving(Answer(body)) as server:
        client = openai.OpenAI(base_url=f"{server.url}/v1", api_key="k", max_retries=0)
        request: Any = {"model": "m", "messages": [{"role": "user", "content": "x"}], "tools": TOOLS}
        turn = assemble(client.chat.completions.create(**request, stream=True))
        with client.chat.completions.stream(**request) as helper:
            from_events = assemble(helper)
            final = helper.get_final_completion()
    assert named(turn) == CALLS and turn.content == "Well: " and turn.problems == ()
    assert named(from_events) == CALLS and from_events.problems == ()
    assert named(from_response(final)) == CALLS
    assert [call.id for call in turn] == [call.id for call in from_response(final)]
    assert from_response(final).content == turn.content


def test_the_openai_client_on_responses() -> None:
    with serving(Answer(sse(responses_frames(CALLS), names=True, done=False))) as server:
        client = openai.OpenAI(base_url=f"{server.url}/v1", api_key="k", max_retries=0)
        request: Any = {"model": "m", "input": "x"}
        turn = assemble(client.responses.create(**request, stream=True))
        with client.responses.stream(**request) as helper:
            final = helper.get_final_response()
    assert named(turn) == CALLS and turn.problems == () and turn.finish_reason == "completed"
    assert named(from_response(final)) == CALLS
    assert [call.id for call in turn] == ["call_0", "call_1", "call_2"] == [call.id for call in from_response(final)]


def test_the_anthropic_client_on_messages() -> None:
    with serving(Answer(sse(messages_frames(CALLS), names=True, done=False))) as server:
        client = anthropic.Anthropic(base_url=server.url, api_key="k", max_retries=0)
        request: Any = {"model": "m", "max_tokens": 9, "messages": [{"role": "user", "content": "x"}]}
        turn = assemble(client.messages.create(**request, stream=True))
        with client.messages.stream(**request) as helper:
            from_events = assemble(helper)
            final = helper.get_final_message()
    assert named(turn) == CALLS and turn.problems == () and turn.finish_reason == "tool_use"
    assert named(from_events) == CALLS and from_events.problems == ()
    assert [json.loads(a) for _, a in CALLS] == [json.loads(call.arguments) for call in from_response(final)]
    assert [call.id for call in turn] == ["toolu_0", "toolu_1", "toolu_2"] == [c.id for c in from_response(final)]


def test_a_whole_message_keeps_a_call_without_arguments() -> None:
    frames = [
        {"type": "message_start", "message": {}},
        {"type": "content_block_start", "index": 0, "content_block": {"type": "text", "text": ""}},
        {"type": "content_block_delta", "index": 0, "delta": {"type": "text_delta", "text": "Hm."}},
        {"type": "content_block_stop", "index": 0},
        {
            "type": "content_block_start",
            "index": 1,
            "content_block": {"type": "tool_use", "id": "t", "name": "ping", "input": {}},
        },
        {"type": "content_block_stop", "index": 1},
        {"type": "message_delta", "delta": {"stop_reason": "tool_use"}},
    ]
    turn = assemble(frames)
    assert named(turn) == [("ping", "{}")] and turn.content == "Hm."
    assert validate(turn, TOOLS) == []


def test_choices_are_kept_apart() -> None:
    one, two = chat_frames([CALLS[1]]), chat_frames([CALLS[0], CALLS[2]], choice=1)
    mixed = [frame for pair in zip(one + [chat_chunk({})] * 9, two) for frame in pair]
    assert named(assemble(mixed)) == [CALLS[1]]
    assert named(assemble(mixed, choice=1)) == [CALLS[0], CALLS[2]]
    assert not assemble(mixed, choice=2) and assemble(mixed, choice=2).finish_reason is None


def test_interleaved_calls_are_told_apart_by_index() -> None:
    first, second = chat_frames(CALLS[:2])[1:6], chat_frames(CALLS[:2])[6:-1]
    mixed = [first[0], second[0]] + [f for pair in zip(first[1:], second[1:]) for f in pair]
    left = first[len(second) :] if len(first) > len(second) else second[len(first) :]
    assert named(assemble([*mixed, *left, chat_chunk({}, "tool_calls")])) == CALLS[:2]


def test_the_api_before_tools() -> None:
    frames = [
        chat_chunk({"function_call": {"name": "move", "arguments": '{"lat"'}}),
        chat_chunk({"function_call": {"arguments": ": 1}"}}),
        chat_chunk({}, "function_call"),
    ]
    assert named(assemble(frames)) == [("move", '{"lat": 1}')]
    message = {"role": "assistant", "function_call": {"name": "move", "arguments": "{}"}}
    whole = {"choices": [{"index": 0, "message": message, "finish_reason": "function_call"}]}
    assert named(from_response(whole)) == [("move", "{}")]


def call_delta(entry: Any) -> list[dict[str, Any]]:
    return [chat_chunk({"tool_calls": [entry]}), chat_chunk({}, "tool_calls")]


PING = {"id": "a", "type": "function", "function": {"name": "ping", "arguments": "{}"}}
RESPONSES, MESSAGES = responses_frames(CALLS[1:2]), messages_frames(CALLS[1:2])


@pytest.mark.parametrize(
    "frames",
    [
        call_delta(PING),  # no index
        call_delta({**PING, "index": 1}),  # the first call is number 0
        call_delta({**PING, "index": None}),
        call_delta({**PING, "index": -1}),
        call_delta({**PING, "index": True}),
        call_delta("ping"),
        call_delta({**PING, "index": 0, "function": {"name": "ping", "arguments": {}}}),
        call_delta({**PING, "index": 0, "function": "ping"}),
        [chat_chunk({"tool_calls": PING}), chat_chunk({}, "tool_calls")],
        [{**chat_chunk({}), "choices": 3}, *chat_frames([])],
        [{**chat_chunk({}), "choices": [3]}, *chat_frames([])],
        [{**chat_chunk({}), "choices": [{"index": "0", "delta": {}}]}, *chat_frames([])],
        [{**chat_chunk({}), "choices": [{"index": 0, "delta": 3}]}, *chat_frames([])],
        [3, *chat_frames([])],
        [{"id": "x"}, *chat_frames([])],
        [f for f in RESPONSES if f["type"] != "response.output_item.added"],
        [{**f, "arguments": "{}"} if f["type"].endswith("arguments.done") else f for f in RESPONSES],
        [f for f in MESSAGES if f["type"] != "content_block_start"],
    ],
    ids=lambda frames: str(frames[0])[:40],
)
def test_what_no_client_can_put_together_is_said(frames: list[Any]) -> None:
    assert Code.MALFORMED_STREAM in {issue.code for issue in validate(assemble(frames), TOOLS)}


def without(frames: list[dict[str, Any]], *types: str) -> list[dict[str, Any]]:
    return [frame for frame in frames if frame["type"] not in types]


@pytest.mark.parametrize(
    "frames",
    [
        chat_frames(CALLS, finish=None),
        chat_frames(CALLS, finish="length"),
        chat_frames(CALLS, finish="content_filter"),
        [*chat_frames(CALLS), {"error": {"message": "Invalid diff", "code": 500}}],
        [{"error": "overloaded"}],
        [{"object": "error", "message": "older servers", "code": 400}],
        [{"type": "error", "error": {"type": "overloaded_error", "message": "later"}}],
        [],
        without(responses_frames(CALLS), "response.completed"),
        [{"type": "response.incomplete", "response": None}],
        [*without(responses_frames(CALLS), "response.completed"),
         {"type": "response.incomplete", "response": {"id": "resp_1"}}],
        [*without(responses_frames(CALLS), "response.completed"),
         {"type": "response.failed", "response": {"error": {"message": "no", "code": "server_error"}}}],
        without(responses_frames(CALLS), "response.output_item.done", "response.completed"),
        without(messages_frames(CALLS), "message_delta"),
        without(messages_frames(CALLS), "content_block_stop"),
        [*without(messages_frames(CALLS), "message_delta"),
         {"type": "message_delta", "delta": {"stop_reason": "max_tokens"}}],
        [{"type": "ping"}],
    ],
    ids=lambda frames: str(frames[-1:])[:60],
)  # fmt: skip
def test_what_did_not_end_well_is_incomplete(frames: list[Any]) -> None:
    assert Code.INCOMPLETE in {issue.code for issue in validate(assemble(frames), TOOLS)}


def test_whole_responses_that_cannot_be_used() -> None:
    for bad in (3, {}, {"choices": []}, {"choices": [{"index": 1}]}, {"choices": [{"index": 0}]}):
        with pytest.raises(ValueError):
            from_response(bad)
    assert [p.kind for p in from_response({"error": {"message": "x"}}).problems] == ["error"]


def test_whole_and_streamed_answers_agree() -> None:
    turn, whole = assemble(chat_frames(CALLS)), from_response(chat_whole(CALLS))
    assert named(turn) == named(whole) and turn.finish_reason == whole.finish_reason
