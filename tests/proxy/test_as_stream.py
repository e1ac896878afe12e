"""A finished reply as a stream: which chunks it becomes, field by field, and what an upstream's error says."""

from __future__ import annotations

import json
from typing import Any

import pytest

from lfm2_fixed.proxy.as_stream import check_reply, chunks
from lfm2_fixed.proxy.errors import ProxyError, UpstreamError
from lfm2_fixed.proxy.request import Request, read_request

CALL = {"id": "c", "type": "function", "function": {"name": "f", "arguments": "{}"}}
HEAD = {"id": "r", "created": 1, "model": "m", "object": "chat.completion.chunk"}
USAGE = {"total_tokens": 7}
TOOLS = [{"type": "function", "function": {"name": "f", "parameters": {"type": "object"}}}]


def request(**fields: Any) -> Request:
    read = read_request(json.dumps({"messages": [], "tools": TOOLS, "stream": True, **fields}).encode(), gate=True)
    assert read is not None
    return read


def reply(message: dict[str, Any], reason: str | None, **fields: Any) -> dict[str, Any]:
    choice = {"index": 0, "message": {"role": "assistant", **message}, "finish_reason": reason, "stop_reason": 2}
    head = {**HEAD, "object": "chat.completion"}
    return {**head, "choices": [choice], "usage": USAGE, "kept": "too", **fields}


def said(delta: dict[str, Any], reason: str | None = None, **fields: Any) -> dict[str, Any]:
    return {**HEAD, "choices": [{"index": 0, "delta": delta, "finish_reason": reason, **fields}]}


@pytest.mark.parametrize(
    ("message", "reason", "expected"),
    [
        ({"content": "Hi"}, "stop", "stop"),
        ({"content": "Hi"}, None, "stop"),
        ({"content": "Hi"}, "length", "length"),
        ({"content": None, "tool_calls": [CALL]}, "stop", "tool_calls"),
        ({"content": None, "tool_calls": [CALL]}, "tool_calls", "tool_calls"),
        ({"content": None, "tool_calls": [CALL]}, "content_filter", "content_filter"),
        ({"content": None, "function_call": CALL["function"]}, "stop", "function_call"),
    ],
    ids=str,
)
def test_how_it_ends(message: dict[str, Any], reason: str | None, expected: str) -> None:
    *_, last = chunks(reply(message, reason), request())
    assert last == {**said({}, expected, stop_reason=2), "kept": "too"}


def test_what_it_says() -> None:
    """Thoughts come before the text, each call has its place, and what the protocol does not know keeps its own."""
    message = {"content": "Hi", "reasoning_content": "hm", "tool_calls": [CALL, CALL], "empty": ""}
    whole = reply(message, "stop")
    whole["choices"][0]["logprobs"] = {"content": []}
    assert list(chunks(whole, request(stream_options={"include_usage": True}))) == [
        said({"role": "assistant", "content": ""}),
        said({"reasoning_content": "hm"}),
        said({"content": "Hi"}, logprobs={"content": []}),
        said({"tool_calls": [{**CALL, "index": 0}]}),
        said({"tool_calls": [{**CALL, "index": 1}]}),
        said({}, "tool_calls", stop_reason=2),
        {**HEAD, "choices": [], "usage": USAGE, "kept": "too"},
    ]


def test_its_calls_are_counted_and_judged() -> None:
    both = {"tool_calls": [CALL], "function_call": CALL["function"]}
    assert check_reply(reply(both, "stop"), request()) == 2
    with pytest.raises(ProxyError, match="abort"):
        check_reply(reply(both, "abort"), request())


@pytest.mark.parametrize(
    ("error", "message", "body"),
    [
        ({"error": {"message": "boom", "code": 3}}, "boom", {"error": {"message": "boom", "code": 3}}),
        ({"error": "boom"}, "The upstream reported an error.", {"error": "boom"}),
        ({"message": "boom"}, "The upstream reported an error.", {"error": {"message": "boom"}}),
    ],
)
def test_an_upstreams_error_is_passed_on(error: Any, message: str, body: dict[str, Any]) -> None:
    raised = UpstreamError(error)
    assert (raised.status, raised.message, str(raised), raised.kind) == (502, message, message, "upstream_error")
    assert raised.body() == body


def test_an_error_without_words_gets_some() -> None:
    said = {"message": "The upstream reported an error.", "type": "upstream_error", "param": None, "code": 502}
    assert UpstreamError({"error": None}).body() == {"error": said}
