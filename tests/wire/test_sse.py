"""The decoder of server-sent events: any cutting gives the same, and other decoders are its oracles."""

from __future__ import annotations

from typing import Any

import httpx
import pytest
from httpx_sse import EventSource
from hypothesis import given, settings
from hypothesis import strategies as st
from openai._streaming import SSEDecoder as OpenAIDecoder

from lfm2_fixed.wire.sse import (
    DONE,
    EventTooLarge,
    NotAChunk,
    SSEDecoder,
    SSEvent,
    encode_comment,
    encode_event,
    encode_json,
    read_chunk,
)

TEXTS = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\r\n"), max_size=12)
LINES = st.one_of(
    TEXTS.map("data: {}".format),
    TEXTS.map("data:{}".format),
    TEXTS.map(": {}".format),
    TEXTS.map("event: {}".format),
    TEXTS.map("error: {}".format),
    st.sampled_from(["data", "data:", "error", "event", "event:", "", "", "", "id: 1", "retry: 5", "nothing", ":"]),
)
ENDS = st.sampled_from(["\n", "\r\n", "\r"])
STREAMS = st.builds(
    lambda bom, lines, tail: bom + "".join(line + end for line, end in lines).encode() + tail,
    st.sampled_from([b"", b"\xef\xbb\xbf"]),
    st.lists(st.tuples(LINES, ENDS), max_size=20),
    st.sampled_from([b"", b"data: x", b"da", b"\xff", b"data: \xe2\x82"]),
)
ANY = settings(max_examples=max(100, settings.default.max_examples // 4))


STANDARD = STREAMS.filter(lambda stream: b"error" not in stream)
"""Streams without the one field that is ours alone."""


def decode(pieces: list[bytes]) -> tuple[list[SSEvent], SSEvent | None, tuple[object, ...]]:
    decoder = SSEDecoder(comments=True)
    events = [event for piece in pieces for event in decoder.feed(piece)]
    return events, decoder.finish(), decoder.state()


def _events(stream: bytes) -> list[SSEvent]:
    return [event for event in decode([stream])[0] if not event.comment]


@ANY
@given(STREAMS | st.binary(max_size=40), st.lists(st.integers(0, 400), max_size=20))
def test_no_cutting_changes_anything(stream: bytes, cuts: list[int]) -> None:
    whole = decode([stream])
    assert decode([stream[i : i + 1] for i in range(len(stream))]) == whole
    places = [0, *sorted(cut % (len(stream) + 1) for cut in cuts), len(stream)]
    assert decode([stream[a:b] for a, b in zip(places, places[1:])]) == whole


@ANY
@given(STANDARD)
def test_the_events_are_those_of_httpx_sse(stream: bytes) -> None:
    body = stream.removeprefix(b"\xef\xbb\xbf")  # httpx-sse keeps the mark
    body += b"\n" if body[-1:] not in (b"\r", b"\n") else b""
    body = body.decode("utf-8", "replace").encode()
    answer = httpx.Response(200, headers={"content-type": "text/event-stream"}, content=body)
    # It also dispatches events without data, which the standard drops.
    theirs = [(event.event, event.data) for event in EventSource(answer).iter_sse() if event.data]
    ours = [(event.name or "message", event.data) for event in _events(body) if event.data]
    assert ours == theirs


@ANY
@given(st.lists(st.lists(TEXTS, min_size=1, max_size=3), max_size=6), ENDS)
def test_the_events_are_those_of_the_openai_client(events: list[list[str]], end: str) -> None:
    stream = "".join("".join(f"data: {line}{end}" for line in lines) + end for lines in events).encode()
    theirs = [event.data for event in OpenAIDecoder().iter_bytes(iter([stream]))]
    assert [event.data for event in _events(stream)] == theirs == ["\n".join(lines) for lines in events]


def test_offsets_cover_the_stream() -> None:
    stream = b"\xef\xbb\xbf: hi\r\n\r\ndata: a\r\ndata: b\r\n\r\nevent: x\rdata:c\r\rdata: d"
    events, unfinished, _ = decode([stream])
    assert events.pop(0) == SSEvent("hi", "", 0, 8, comment=True)
    assert [(e.data, e.name) for e in events] == [("a\nb", ""), ("c", "x")]
    assert b"data: a" in stream[events[0].start : events[0].end]
    assert stream[events[1].start : events[1].end].strip() == b"event: x\rdata:c"
    assert unfinished is not None and stream[unfinished.start :] == b"data: d"


def test_what_is_not_utf8_is_marked() -> None:
    events, _, _ = decode([b"data: \xff\n\ndata: \xe2\x82\xac\n\n"])
    assert [(event.data, event.intact) for event in events] == [("\ufffd", False), ("€", True)]


def test_a_decoder_can_begin_wherever_an_event_has_ended() -> None:
    stream = b"data: a\r\n\r\ndata: b\r\n\r\n"
    first, second = decode([stream])[0]
    resumed = SSEDecoder(first.end, after_cr=True)
    assert resumed.feed(stream[first.end :]) == [second]


VALUES = st.dictionaries(st.text(max_size=5), st.text() | st.integers() | st.none(), max_size=3)


@ANY
@given(st.lists(VALUES | st.none(), max_size=5), ENDS)
def test_what_is_written_is_read(sent: list[dict[str, Any] | None], end: str) -> None:
    data = b"".join(encode_comment("c") if value is None else encode_event(value) for value in sent) + DONE
    events, unfinished, _ = decode([data.replace(b"\n", end.encode())])
    assert events.pop().done and unfinished is None
    assert [None if event.comment else read_chunk(event) for event in events] == sent


def test_lines_of_an_event() -> None:
    first, lost = b"event: e\nid: 1\nretry: 2\ndata\ndata:a\ndata:  b\n\n", b"event: lost\n\ndata: 1\n"
    events, unfinished, _ = decode([first, lost])
    assert events == [SSEvent("\na\n b", "e", 0, len(first))]
    assert unfinished is not None and (unfinished.data, unfinished.name) == ("1", "")
    assert decode([])[1] is None


@pytest.mark.parametrize(
    "line, done", [("[DONE]", True), ("[DONE] ", True), (" [DONE]\t", True), ("[DONE]x", False), ('"[DONE]"', False)]
)
def test_the_mark_of_the_end(line: str, done: bool) -> None:
    for stream in (f"data:{line}\n\n", f"data: {line}\r\r"):
        (event,) = _events(stream.encode())
        assert event.done is done
    assert not decode([f":{line}\n".encode()])[0][0].done


@pytest.mark.parametrize(
    "stream, chunk",
    [
        ('data: {"choices": []}', {"choices": []}),
        ('data:{"error": null}', {"error": None}),
        # llama-server before b10362, and the same error as newer builds say it
        ('error: {"code": 500, "message": "m", "type": "server_error"}',
         {"error": {"code": 500, "message": "m", "type": "server_error"}}),
        ('data: {"error": {"code": 500, "message": "m"}}', {"error": {"code": 500, "message": "m"}}),
        ('error: {"error": {"message": "m"}}', {"error": {"message": "m"}}),
        ("error: out of memory", {"error": "out of memory"}),
        ('event: error\ndata: {"message": "m"}', {"error": {"message": "m"}}),
        ('event: error\ndata: {"type": "error", "error": {"type": "overloaded_error"}}',
         {"type": "error", "error": {"type": "overloaded_error"}}),
        ('event: error\ndata: {"type": "error", "message": "m"}', {"type": "error", "message": "m"}),
        # whatever is in it, an error is one
        ("error: null", {"error": {"message": ""}}),
        ('error: {"error": null}', {"error": {"error": None}}),
        ("error:", {"error": {"message": ""}}),
    ],
)  # fmt: skip
def test_chunks(stream: str, chunk: dict[str, Any]) -> None:
    (event,) = _events(stream.encode() + b"\n\n")
    assert read_chunk(event) == chunk


@pytest.mark.parametrize(
    "data, why",
    [
        (b"{", "not JSON"),
        (b"[1]", "not a JSON object"),
        (b"null", "not a JSON object"),
        (b'{"a": "\xff"}', "not UTF-8"),
        (b"[" * 100_000 + b"]" * 100_000, "nested too deep"),
    ],
)
def test_what_is_no_chunk(data: bytes, why: str) -> None:
    (event,) = _events(b"data: " + data + b"\n\n")
    with pytest.raises(NotAChunk, match=why):
        read_chunk(event)


@pytest.mark.parametrize("line", [b"data: 0123456789\n", b"data: 0123456789\r", b"data:\n" * 3, b"data: 01234567890"])
def test_the_limit_is_of_one_event(line: bytes) -> None:
    decoder = SSEDecoder(limit=100)
    for _ in range(50):
        decoder.feed(b"data: 0123456789\n\n: a comment that nobody keeps\n")
    with pytest.raises(EventTooLarge, match="100 bytes"):
        for _ in range(10):
            decoder.feed(line)


def test_the_limit_holds_in_one_piece_too() -> None:
    with pytest.raises(EventTooLarge):
        SSEDecoder(limit=100).feed(b"data: 0123456789\n" * 10 + b"\n")
    assert len(SSEDecoder(limit=100).feed(b"data: 0123456789\n\n" * 50)) == 50


@given(st.lists(st.tuples(TEXTS, st.sampled_from(["data: {}\n\n", "data: {}\r\n\r\n", "data:{}\n\n", "data: {}\n\r"]))))
def test_events_that_come_one_by_one(lines: list[tuple[str, str]]) -> None:
    pieces = [line.format(text).encode() for text, line in lines]
    assert decode(pieces) == decode([b"".join(pieces)])


def test_an_event_that_comes_alone_is_within_the_limit_too() -> None:
    piece = b"data: " + b"x" * 92 + b"\n\n"  # 99 bytes are kept of its line
    assert len(SSEDecoder(limit=99).feed(piece)) == 1
    with pytest.raises(EventTooLarge):
        SSEDecoder(limit=98).feed(piece)
    decoder = SSEDecoder(limit=98)
    with pytest.raises(EventTooLarge):
        decoder.feed(piece[:-1])


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        ({"a": [1, 2], "b": "ü"}, '{"a":[1,2],"b":"ü"}'),
        ({"a": "\ud800", "b": "ü"}, '{"a":"\\ud800","b":"\\u00fc"}'),  # UTF-8 has no lone surrogates
    ],
)
def test_json_is_compact(value: Any, expected: str) -> None:
    assert encode_json(value) == expected.encode()
