"""How streams end: in other words, without a word, in the middle; and what each choice's fields become."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest

from tests.support.pairs import Pair, chunk, error_of, merge, sse
from tests.support.scripted import USAGE

S, E = "<|tool_call_start|>", "<|tool_call_end|>"
CALL = f'{S}[bash(command="ls")]{E}'
LS = [("bash", '{"command": "ls"}')]
CUT = f'{S}[bash(command="ls"), add(a=1'
GATED = {"code": "INCOMPLETE", "type": "invalid_tool_call"}


@pytest.fixture(scope="module")
def gated(start: Callable[..., Pair]) -> Pair:
    return start(gate=True)


def whole(text: str, reason: Any) -> dict[str, Any]:
    """The script of a reply in one piece."""
    return {"turns": [[text]], "reason": reason}


# ---- the end, without a finish reason


def test_done_without_a_finish_reason_ends_every_open_choice(parse: Pair) -> None:
    received = parse.stream(sse(chunk(CALL), chunk("Hello", index=1), chunk("bye", "stop", index=2)))
    merged = merge(received)
    assert received[-1] == "[DONE]"
    assert [(merged[i]["calls"], merged[i]["content"], merged[i]["finish_reason"]) for i in range(3)] == [
        (LS, "", "tool_calls"),
        ([], "Hello", "stop"),
        ([], "bye", "stop"),
    ]


def test_the_chunks_made_for_it_are_like_the_others(parse: Pair) -> None:
    *chunks, _ = parse.stream(sse(chunk("Hello <|tool_")))
    assert {tuple(sorted(chunk)) for chunk in chunks} == {("choices", "created", "id", "model", "object")}
    assert {(chunk["id"], chunk["model"], chunk["created"]) for chunk in chunks} == {("chatcmpl-1", "m", 1)}


def test_held_text_goes_out_at_done(parse: Pair) -> None:
    for text in ("Hello <|tool_", " ", "<thin", "a <"):
        merged = parse.merged(sse(chunk(text)))[0]
        assert (merged["content"], merged["finish_reason"]) == (text, "stop")


def test_what_was_asked_for_is_checked_at_done(parse: Pair, gated: Pair) -> None:
    assert error_of(parse.stream(sse(chunk("No.")), tool_choice="required"))["param"] == "tool_choice"
    assert error_of(parse.stream(sse(), tool_choice="required"))["param"] == "tool_choice"
    received = gated.stream(sse(chunk(CUT)))
    assert GATED.items() <= error_of(received).items()
    wrong = gated.stream(sse(chunk(f"{S}[add(a=1, b='x')")))  # known to be complete at the end only
    assert error_of(wrong)["code"] == "TYPE_MISMATCH" and len(wrong) == 1


def test_usage_comes_after_the_end_that_we_made(parse: Pair) -> None:
    usage = {"id": "chatcmpl-1", "object": "chat.completion.chunk", "choices": [], "usage": USAGE}
    received = parse.stream(sse(chunk(CALL), usage), stream_options={"include_usage": True})
    assert received[-1] == "[DONE]" and received[-2] == usage
    assert received[-3]["choices"][0]["finish_reason"] == "tool_calls"


@pytest.mark.parametrize("reason", ["", False, 0])
def test_an_empty_finish_reason_is_none(parse: Pair, reason: Any) -> None:
    first, rest = CALL[:40], CALL[40:]
    events = [chunk({"role": "assistant", "content": ""}, reason), chunk(first, reason), chunk(rest, reason)]
    for script in (sse(*events), sse(*events, chunk("", "stop"))):
        merged = parse.merged(script)[0]
        assert (merged["calls"], merged["finish_reason"]) == (LS, "tool_calls")
    assert "too early" in error_of(parse.stream(sse(*events, done=False)))["message"]
    reply = parse.ask(whole(CALL, reason)).json()
    assert reply["choices"][0]["finish_reason"] == "tool_calls"


@pytest.mark.parametrize("last", range(1, 5))
def test_a_stream_that_ends_with_neither_is_an_error(parse: Pair, last: int) -> None:
    events = [chunk({"role": "assistant"}), chunk("Hello"), chunk(CALL[:30]), chunk(CALL[30:]), chunk("", "stop")]
    received = parse.stream(sse(*events[:last], done=False))
    assert "too early" in error_of(received)["message"]
    assert all(chunk["choices"][0]["finish_reason"] is None for chunk in received[:-1])


# ---- other words


@pytest.mark.parametrize("reason", ["stop", "tool_calls", "function_call", "eos", "EOS_TOKEN", "end_turn", "completed"])
def test_words_for_the_end_of_a_whole_answer(parse: Pair, gated: Pair, reason: str) -> None:
    for pair in (parse, gated):
        for text, calls, expected in ((CALL, LS, "tool_calls"), ("Hello", [], "stop")):
            if pair is gated and text == "Hello" and reason in ("tool_calls", "function_call"):
                continue  # below
            merged = pair.merged(whole(text, reason))[0]
            assert (merged["calls"], merged["finish_reason"]) == (calls, expected)
            choice = pair.ask(whole(text, reason)).json()["choices"][0]
            assert (len(choice["message"].get("tool_calls", [])), choice["finish_reason"]) == (len(calls), expected)
    assert error_of(parse.stream(whole("Hello", reason), tool_choice="required"))["param"] == "tool_choice"
    assert parse.ask(whole("Hello", reason), tool_choice="required").status_code == 502


@pytest.mark.parametrize("reason", ["abort", "error", "repetition", "pause_turn", "network_error", "x" * 1000])
def test_words_that_nobody_knows_are_not_trusted(parse: Pair, gated: Pair, reason: str) -> None:
    merged = parse.merged(whole(CALL + "<|tool_", reason))[0]
    assert (merged["calls"], merged["content"], merged["finish_reason"]) == (LS, "<|tool_", reason)
    assert parse.ask(whole(CALL, reason)).json()["choices"][0]["finish_reason"] == reason
    assert error_of(parse.stream(whole("No.", reason), tool_choice="required"))["param"] == "tool_choice"
    for text in (CALL, CUT):
        assert GATED.items() <= error_of(gated.stream(whole(text, reason))).items()
        answer = gated.ask(whole(text, reason))
        assert answer.status_code == 502 and GATED.items() <= answer.json()["error"].items()
        assert len(answer.text) < 500
    assert gated.merged(whole("Hello", reason))[0]["finish_reason"] == reason


def test_a_call_that_the_model_cut_is_no_answer_for_the_gate(gated: Pair, parse: Pair) -> None:
    for text in (CUT, f"Look: {S}[ad", f'{S}[bash(command="l', f'{S}{{"name": "bash", "argu'):
        assert GATED.items() <= error_of(gated.stream(whole(text, "stop"))).items()
        assert GATED.items() <= error_of(gated.stream({"turns": [list(text)]})).items()
        assert GATED.items() <= gated.ask(whole(text, "stop")).json()["error"].items()
        assert parse.ask(whole(text, "stop")).status_code == 200
    for reason in ("length", "content_filter"):  # these say themselves that the answer was cut
        assert gated.merged(whole(CUT, reason))[0]["finish_reason"] == reason


def test_calls_that_were_promised_and_did_not_come(gated: Pair) -> None:
    assert error_of(gated.stream(whole("Hello", "tool_calls")))["code"] == "CALL_COUNT_MISMATCH"


def test_nothing_comes_after_the_end_of_a_choice(parse: Pair) -> None:
    extra = [chunk({"role": "assistant", "content": ""}), chunk({}), chunk({"content": None}, "stop")]
    merged = parse.merged(sse(chunk(CALL), chunk("", "stop"), *extra))[0]
    assert (merged["calls"], merged["finish_reason"]) == (LS, "tool_calls")
    for more in (chunk("more"), chunk({"tool_calls": [{"index": 0, "function": {"arguments": "}"}}]})):
        received = parse.stream(sse(chunk(CALL), chunk("", "stop"), more))
        assert "after the end" in error_of(received)["message"]


# ---- errors


@pytest.mark.parametrize("nothing", [None, "", {}, [], False])
def test_an_empty_error_is_none(parse: Pair, nothing: Any) -> None:
    events = [{**event, "error": nothing} for event in (chunk(CALL), chunk("", "stop"))]
    received = parse.stream(sse(*events))
    assert merge(received)[0]["calls"] == LS and received[-1] == "[DONE]"
    assert parse.ask({**whole(CALL, "stop"), "reply": {"error": nothing}}).status_code == 200


@pytest.mark.parametrize(
    "said",
    [
        "error: null",
        "error:",
        "error: {}",
        "error: out of memory",
        'error: {"error": null}',
        "event: error\ndata: {}",
        "event: error\ndata: [1]",
        'data: {"object": "error", "message": "out of memory"}',
        'data: {"error": "out of memory"}',
        'data: {"error": {"message": "out of memory"}, "choices": []}',
        "data: {\ndata: }]",
    ],
)
def test_an_error_event_always_has_an_error(parse: Pair, said: str) -> None:
    received = parse.stream(sse(chunk("Look: "), chunk(CALL), said, chunk("", "stop")))
    assert error_of(received) and "Look" in json.dumps(received)
    if "out of memory" in said:
        assert "out of memory" in json.dumps(received[-1])


def test_an_error_beside_a_whole_answer_is_an_error(parse: Pair, buffer: Pair) -> None:
    failed = {**whole(CALL, "stop"), "reply": {"error": {"message": "out of memory"}}}
    for pair in (parse, buffer):
        answer = pair.ask(failed)
        assert answer.status_code == 502 and answer.json()["error"]["message"] == "out of memory"


# ---- fields that nobody knows


def test_fields_of_a_choice_are_neither_lost_nor_doubled(parse: Pair) -> None:
    pieces = ["Look", " <|tool_", "call_start|>", "[bash(", 'command="l', 's")]', E, ""]
    events = [
        chunk(piece, "stop" if number == len(pieces) - 1 else None, token_ids=[number], stop_reason=None)
        for number, piece in enumerate(pieces)
    ]
    events[-1]["choices"][0]["stop_reason"] = 7
    received = parse.stream(sse(*events))[:-1]
    choices = [choice for chunk in received for choice in chunk["choices"]]
    assert [i for choice in choices for i in choice.get("token_ids", [])] == list(range(len(pieces)))
    assert [choice["stop_reason"] for choice in choices if choice.get("stop_reason")] == [7]
    assert choices[-1]["stop_reason"] == 7 and choices[-1]["finish_reason"] == "tool_calls"
    assert merge(received)[0]["calls"] == LS


def test_a_chunk_that_is_split_says_everything_once(parse: Pair) -> None:
    fields = {"token_ids": [1, 2], "stop_reason": "</s>", "logprobs": {"content": [1]}, "x": {"y": 1}}
    event = {**chunk(CALL, "stop", **fields), "usage": USAGE, "prompt_token_ids": [3], "system_fingerprint": "f"}
    first, last, done = parse.stream(sse(event), stream_options={"include_usage": True})
    assert done == "[DONE]" and first["system_fingerprint"] == last["system_fingerprint"] == "f"
    text, end = first["choices"][0], last["choices"][0]
    assert {key: text.get(key) for key in fields} == {**fields, "stop_reason": None}
    assert {key: end.get(key) for key in fields} == {**dict.fromkeys(fields), "stop_reason": "</s>"}
    assert [(chunk.get("usage"), chunk.get("prompt_token_ids")) for chunk in (first, last)] == [
        (None, None),
        (USAGE, [3]),
    ]


def test_fields_of_a_chunk_whose_text_is_held_are_not_lost(parse: Pair) -> None:
    held = {**chunk("<|tool_"), "prompt_token_ids": [3]}
    first, *_ = parse.stream(sse(held, chunk("", "stop")))
    assert first["prompt_token_ids"] == [3] and first["choices"] == [{"index": 0, "delta": {}, "finish_reason": None}]
    quiet = {**chunk("<|tool_"), "usage": None, "timings": None}
    assert len(parse.stream(sse(quiet, chunk("", "stop")))) == 3  # the text, the end, [DONE]


# ---- calls that the upstream reads although told not to


def test_calls_of_the_upstream_pass_only_where_nothing_is_asked_of_them(parse: Pair, gated: Pair) -> None:
    call = {"index": 0, "id": "a", "type": "function", "function": {"name": "bash", "arguments": "{}"}}
    events = [chunk({"tool_calls": [call]}), chunk({}, "tool_calls")]
    merged = parse.merged(sse(*events))[0]
    assert merged["calls"] == [("bash", "{}")] and merged["finish_reason"] == "tool_calls"
    for pair, fields in ((gated, {}), (parse, {"tool_choice": "required"}), (parse, {"parallel_tool_calls": False})):
        received = pair.stream(sse(*events), **fields)
        assert "cannot be checked" in error_of(received)["message"] and len(received) == 1
        reply = {"turns": [[""]], "message": {"tool_calls": [call]}}
        assert pair.ask(reply, **fields).status_code == 502
    for mixed in ([events[0], chunk(CALL)], [chunk(CALL), events[0]]):
        received = parse.stream(sse(*mixed, chunk("", "stop")))
        assert "left others in the text" in error_of(received)["message"]
