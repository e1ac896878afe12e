"""Mode buffer: the upstream reads the calls itself, in one piece; the client gets a stream."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

from tests.support.pairs import Pair, merge
from tests.support.scripted import USAGE

CALLS = [
    {"id": "a", "type": "function", "function": {"name": "bash", "arguments": '{"command": "ls"}'}},
    {"id": "b", "type": "function", "function": {"name": "add", "arguments": '{"a": 1, "b": 2}'}},
]
REPLY: dict[str, Any] = {"turns": [["Hello"]], "message": {"tool_calls": CALLS}, "reason": "tool_calls"}


def test_the_upstream_is_asked_for_a_whole_answer(buffer: Pair) -> None:
    buffer.ask(REPLY, stream=True, stream_options={"include_usage": True}, tool_choice="required", top_p=1)
    asked = json.loads(buffer.upstream.requests[-1]["body"])
    assert asked["stream"] is False and "stream_options" not in asked
    assert asked["tool_choice"] == "required" and asked["top_p"] == 1


def test_the_answer_as_a_stream(buffer: Pair) -> None:
    received = buffer.stream(REPLY)
    deltas = [chunk["choices"][0]["delta"] for chunk in received[:-1]]
    assert deltas == [
        {"role": "assistant", "content": ""},
        {"content": "Hello"},
        {"tool_calls": [{"index": 0, **CALLS[0]}]},
        {"tool_calls": [{"index": 1, **CALLS[1]}]},
        {},
    ]
    assert received[-1] == "[DONE]" and received[-2]["choices"][0]["finish_reason"] == "tool_calls"
    assert {(chunk["id"], chunk["model"]) for chunk in received[:-1]} == {("chatcmpl-1", "scripted")}


def test_nothing_is_lost(buffer: Pair) -> None:
    script = {
        "turns": [["one"], ["two"]],
        "message": {"reasoning_content": "hm", "x": 1},
        "choice": {"logprobs": {"content": [1]}, "stop_reason": 7},
        "reply": {"timings": {"t": 1}, "system_fingerprint": "f"},
    }
    received = buffer.stream(script, n=2, stream_options={"include_usage": True})
    merged = merge(received)
    assert [(merged[i]["content"], merged[i]["reasoning"]) for i in (0, 1)] == [("one", "hm"), ("two", "hm")]
    *chunks, usage, done = received
    assert done == "[DONE]" and usage["choices"] == [] and usage["usage"] == USAGE and usage["timings"] == {"t": 1}
    choices = [choice for chunk in chunks for choice in chunk["choices"]]
    for index in (0, 1):
        of_one = [choice for choice in choices if choice["index"] == index]
        assert [choice["delta"]["x"] for choice in of_one if "x" in choice["delta"]] == [1]
        assert [choice["logprobs"] for choice in of_one if "logprobs" in choice] == [{"content": [1]}]
        assert of_one[-1]["stop_reason"] == 7
    assert all(chunk["system_fingerprint"] == "f" for chunk in received[:-1])
    unasked = buffer.stream(script)
    assert all(chunk["choices"] for chunk in unasked[:-1]) and unasked[-2]["timings"] == {"t": 1}


def test_heartbeats_while_it_takes(buffer: Pair) -> None:
    received = buffer.stream({**REPLY, "wait": 0.7})
    beats = [event for event in received if event == b": heartbeat"]
    assert beats and received[: len(beats)] == beats and len(merge(received)[0]["calls"]) == 2


def test_errors(buffer: Pair) -> None:
    early = buffer.ask({"raw": ['{"error": "full"}'], "status": 503}, stream=True)
    assert (early.status_code, early.text) == (503, '{"error": "full"}')
    late = buffer.stream({"raw": ['{"error": {"message": "full"}}'], "status": 503, "wait": 0.5})
    assert late[0] == b": heartbeat" and late[-1] == {"error": {"message": "full"}}
    strange = buffer.stream({"raw": ["<html>"], "status": 200, "wait": 0.5})
    assert "<html>" in strange[-1]["error"]["message"]


def test_choices_are_checked(buffer: Pair) -> None:
    answer = buffer.ask("no call", stream=True, tool_choice="required")
    assert answer.status_code == 502 and answer.json()["error"]["param"] == "tool_choice"


def test_what_needs_no_buffering_passes(buffer: Pair, start: Callable[..., Pair]) -> None:
    for fields in ({"stream": False}, {"stream": True, "tool_choice": "none"}, {"stream": True, "tools": []}):
        answer = buffer.ask({"turns": [["<|tool_call_start|>[x"]]}, **fields)
        assert answer.status_code == 200
        assert json.loads(buffer.upstream.requests[-1]["body"])["stream"] == fields["stream"]
    gated = start(kind="unknown", gate=True)
    bad = [{"id": "a", "type": "function", "function": {"name": "add", "arguments": '{"a": 1}'}}]
    for stream in (True, False):
        answer = gated.ask({**REPLY, "message": {"tool_calls": bad}}, stream=stream)
        assert answer.status_code == 502 and answer.json()["error"]["code"] == "MISSING_REQUIRED"
        assert gated.ask(REPLY, stream=stream).status_code == 200
