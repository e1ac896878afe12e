"""Answers in another shape than was asked for, streams in every spelling, and what is no answer at all."""

from __future__ import annotations

import gzip
import json
from typing import Any

import pytest

from lfm2_fixed.proxy.incoming import shape
from tests.support.pairs import Pair, chunk, error_of, events, merge, sse

CALL = '<|tool_call_start|>[bash(command="ls \u2028é")]<|tool_call_end|>'
LS = [("bash", json.dumps({"command": "ls \u2028é"}, ensure_ascii=False))]
REPLY = {
    "id": "r",
    "object": "chat.completion",
    "created": 1,
    "model": "m",
    "choices": [{"index": 0, "message": {"role": "assistant", "content": CALL}, "finish_reason": "stop"}],
}


def raw(text: str, content_type: str | None = None, **script: Any) -> dict[str, Any]:
    """The script of a body, as it is."""
    return {"raw": [text], "headers": {"content-type": content_type} if content_type else {}, **script}


@pytest.mark.parametrize("content_type", ["application/json", "text/event-stream", "text/plain", None])
@pytest.mark.parametrize("begin", ["", "\ufeff", " \r\n"])
def test_json_in_answer_to_a_streaming_request_is_read(parse: Pair, content_type: str | None, begin: str) -> None:
    received = parse.stream(raw(begin + json.dumps(REPLY, ensure_ascii=False), content_type))
    merged = merge(received)[0]
    assert (merged["calls"], merged["content"], merged["finish_reason"]) == (LS, "", "tool_calls")
    assert received[-1] == "[DONE]" and "tool_call_start" not in json.dumps(received)


@pytest.mark.parametrize(
    "content_type",
    [None, "", "text/plain", "Text/Event-Stream;charset=UTF-8", "application/octet-stream", "application/json"],
)
@pytest.mark.parametrize("first", ["data: ", "data:", ": hello\n\ndata: ", "event: message\ndata: ", "id:1\ndata:"])
def test_a_stream_is_one_whatever_its_type_says(parse: Pair, content_type: str | None, first: str) -> None:
    last = json.dumps(chunk("", "stop"))
    body = f"{first}{json.dumps(chunk(CALL), ensure_ascii=False)}\n\ndata: {last}\n\ndata: [DONE]\n\n"
    for pieces in ([body], list(body)):
        answer = parse.ask(raw("", content_type, raw=pieces), stream=True)
        assert answer.headers["content-type"].startswith("text/event-stream")
        received = list(events(answer.content))
        assert merge(received)[0]["calls"] == LS and received[-1] == "[DONE]"


@pytest.mark.parametrize("end", ["\n", "\r\n", "\r"])
@pytest.mark.parametrize("begin", ["", "\ufeff"])
@pytest.mark.parametrize("done", ["[DONE]", "[DONE] ", " [DONE]", "[DONE]\t"])
def test_every_spelling_of_a_stream(parse: Pair, end: str, begin: str, done: str) -> None:
    text = f"{begin}data: {json.dumps(chunk(CALL))}\n\ndata: {json.dumps(chunk({}, 'stop'))}\n\ndata: {done}\n\n"
    for pieces in ([text.replace("\n", end)], list(text.replace("\n", end))):
        received = parse.stream(raw("", "text/event-stream", raw=pieces))
        assert merge(received)[0]["calls"] == LS and received[-1] == "[DONE]" and len(received) == 3


def test_an_event_over_several_lines(parse: Pair) -> None:
    lines = json.dumps(chunk(CALL), indent=1).splitlines()
    received = parse.stream(sse("\n".join(f"data:{line}" for line in lines), chunk("", "stop")))
    assert merge(received)[0]["calls"] == LS


@pytest.mark.parametrize(
    "body",
    [
        "",
        " ",
        "<html>",
        "Hello",
        "data",
        "null",
        "[]",
        "[1]",
        "{}",
        '{"choices": 1}',
        '{"a": ',
        "[" * 2000,
        "\x00" * 99,
    ],
)
@pytest.mark.parametrize("content_type", ["application/json", "text/html", "text/event-stream", None])
def test_what_is_no_answer_is_an_error(parse: Pair, buffer: Pair, body: str, content_type: str | None) -> None:
    for pair in (parse, buffer):
        for stream in (True, False):
            answer = pair.ask(raw(body, content_type), stream=stream)
            if answer.status_code == 200:
                assert error_of(list(events(answer.content)))
            else:
                assert answer.status_code == 502 and answer.json()["error"]["type"] == "upstream_error"


@pytest.mark.parametrize(
    "choices",
    [
        [None],
        [1],
        [[]],
        {"0": {}},
        "x",
        [{"index": -1, "delta": {}, "message": {}}],
        [{"index": "0", "delta": {}, "message": {}}],
        [{"index": True, "delta": {}, "message": {}}],
        [{"index": [0], "delta": {}, "message": {}}],
        [{"index": 0, "delta": [], "message": []}],
        [{"index": 0, "delta": "x", "message": "x"}],
        [{"index": 0, "delta": {"tool_calls": {"a": 1}}, "message": {"tool_calls": {"a": 1}}}],
        [{"index": 0, "delta": {"tool_calls": [None]}, "message": {"tool_calls": [None]}}],
        [{"index": 0, "delta": {"tool_calls": [{"function": 1}]}, "message": {"tool_calls": [{"function": 1}]}}],
        [{"index": 0, "delta": {}, "message": {}, "finish_reason": ["stop"]}],
        [{"index": 0, "delta": {}, "message": {}, "finish_reason": 1}],
    ],
    ids=str,
)
def test_choices_of_no_known_form(parse: Pair, buffer: Pair, gated: Pair, choices: Any) -> None:
    event = {"object": "chat.completion.chunk", "choices": choices}
    assert error_of(parse.stream(sse(event, chunk("", "stop"))))["type"] == "upstream_error"
    for pair in (parse, buffer, gated):
        answer = pair.ask(raw(json.dumps({**REPLY, "choices": choices})), stream=False)
        assert answer.status_code == 502 and answer.json()["error"]["type"] == "upstream_error"


def test_answers_that_are_nested_too_deep(parse: Pair, buffer: Pair) -> None:
    levels = 100_000  # more than any Python's reader follows
    deep = json.dumps(chunk("", x=0)).replace('"x": 0', f'"x": {"[" * levels}{"]" * levels}')
    assert error_of(parse.stream(sse(f"data: {deep}", chunk("", "stop"))))["type"] == "upstream_error"
    whole = json.dumps({**REPLY, "x": 0}).replace('"x": 0', f'"x": {"[" * levels}{"]" * levels}')
    for pair in (parse, buffer):
        for stream in (True, False):
            answer = pair.ask(raw(whole), stream=stream)
            assert answer.status_code == 502 and answer.json()["error"]


def test_compressed_answers_are_read(parse: Pair, buffer: Pair) -> None:
    def packed(data: bytes, cut: int | None = None) -> dict[str, Any]:
        headers = {"content-encoding": "gzip", "content-type": "application/octet-stream"}
        return {"raw": [gzip.compress(data)[:cut].decode("latin-1")], "latin": True, "headers": headers}

    stream = "".join(sse(chunk(CALL), chunk("", "stop"))["raw"]).encode()
    assert merge(parse.stream(packed(stream)))[0]["calls"] == LS
    whole = json.dumps(REPLY).encode()
    for pair in (parse, buffer):
        answer = pair.ask(packed(whole))
        assert len(answer.json()["choices"][0]["message"]["tool_calls"]) == 1
        assert "content-encoding" not in answer.headers
        assert pair.ask(packed(whole, -20)).status_code == 502
        assert pair.ask({**packed(whole), "raw": ["no gzip"]}).status_code == 502
    refused = {**packed(b'{"error": "full"}'), "status": 429}
    assert parse.ask(refused, stream=True).json() == buffer.ask(refused).json() == {"error": "full"}


@pytest.mark.parametrize(
    "begin, content_type, expected",
    [
        (b"", "text/event-stream", None),
        (b"\xef\xbb\xbf \r\n", "", None),
        (b"{", "", "json"),
        (b"[", "text/event-stream", "json"),
        (b"dat", "", None),
        (b"data:", "", "events"),
        (b"retry", "", None),
        (b":", "", "events"),
        (b"data\n", "", "events"),
        (b"database", "", "other"),
        (b"<html>", "", "other"),
        (b"foo: 1\n", "TEXT/EVENT-STREAM ; x", "events"),
        (b"foo: 1\n", "text/event-streams", "other"),
    ],
)
def test_shapes(begin: bytes, content_type: str, expected: str | None) -> None:
    assert shape(begin, content_type) == expected
