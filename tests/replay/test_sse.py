"""The decoder of server-sent events: any cutting gives the same, and other decoders are its oracles."""

from __future__ import annotations

import httpx
from httpx_sse import EventSource
from hypothesis import given, settings
from hypothesis import strategies as st
from openai._streaming import SSEDecoder as OpenAIDecoder

from lfm2_fixed.wire.sse import SSEDecoder, SSEvent

TEXTS = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\r\n"), max_size=12)
LINES = st.one_of(
    TEXTS.map("data: {}".format),
    TEXTS.map("data:{}".format),
    TEXTS.map(": {}".format),
    TEXTS.map("event: {}".format),
    st.sampled_from(["data", "data:", "event", "event:", "", "", "", "id: 1", "retry: 5", "nothing", ":"]),
)
ENDS = st.sampled_from(["\n", "\r\n", "\r"])
STREAMS = st.builds(
    lambda bom, lines, tail: bom + "".join(line + end for line, end in lines).encode() + tail,
    st.sampled_from([b"", b"\xef\xbb\xbf"]),
    st.lists(st.tuples(LINES, ENDS), max_size=20),
    st.sampled_from([b"", b"data: x", b"da", b"\xff", b"data: \xe2\x82"]),
)
ANY = settings(max_examples=max(100, settings.default.max_examples // 4))


def decode(pieces: list[bytes]) -> tuple[list[SSEvent], SSEvent | None, tuple[object, ...]]:
    decoder = SSEDecoder()
    events = [event for piece in pieces for event in decoder.feed(piece)]
    return events, decoder.finish(), decoder.state()


@ANY
@given(STREAMS | st.binary(max_size=40), st.lists(st.integers(0, 400), max_size=20))
def test_no_cutting_changes_anything(stream: bytes, cuts: list[int]) -> None:
    whole = decode([stream])
    assert decode([stream[i : i + 1] for i in range(len(stream))]) == whole
    places = [0, *sorted(cut % (len(stream) + 1) for cut in cuts), len(stream)]
    assert decode([stream[a:b] for a, b in zip(places, places[1:])]) == whole


@ANY
@given(STREAMS)
def test_the_events_are_those_of_httpx_sse(stream: bytes) -> None:
    body = stream.removeprefix(b"\xef\xbb\xbf")  # httpx-sse keeps the mark
    body += b"\n" if body[-1:] not in (b"\r", b"\n") else b""
    body = body.decode("utf-8", "replace").encode()
    answer = httpx.Response(200, headers={"content-type": "text/event-stream"}, content=body)
    # It also dispatches events without data, which the standard drops.
    theirs = [(event.event, event.data) for event in EventSource(answer).iter_sse() if event.data]
    ours = [(event.name or "message", event.data) for event in decode([body])[0] if event.data]
    assert ours == theirs


@ANY
@given(st.lists(st.lists(TEXTS, min_size=1, max_size=3), max_size=6), ENDS)
def test_the_events_are_those_of_the_openai_client(events: list[list[str]], end: str) -> None:
    stream = "".join("".join(f"data: {line}{end}" for line in lines) + end for lines in events).encode()
    theirs = [event.data for event in OpenAIDecoder().iter_bytes(iter([stream]))]
    assert [event.data for event in decode([stream])[0]] == theirs == ["\n".join(lines) for lines in events]


def test_offsets_cover_the_stream() -> None:
    stream = b"\xef\xbb\xbf: hi\r\n\r\ndata: a\r\ndata: b\r\n\r\nevent: x\rdata:c\r\rdata: d"
    events, unfinished, _ = decode([stream])
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
