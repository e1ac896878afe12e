"""Cutting at every offset: a right client breaks nowhere, the wrong ones where they are wrong."""

from __future__ import annotations

import json
import random
import zlib
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lfm2_fixed.check.capture import UnusableInput, read_capture
from lfm2_fixed.check.clients import CLIENTS, Client
from lfm2_fixed.check.replay import Break, cut_everywhere, read_stream
from lfm2_fixed.wire.sse import SSEDecoder
from tests.support.answers import chat_frames, messages_frames, responses_frames, sse

CALLS = [("write", json.dumps({"path": "é.txt", "content": "€ 😀 \n" * 5}, ensure_ascii=False)), ("move", '{"lat": 1}')]
CLEAN = sse(chat_frames(CALLS, cuts=range(0, 90, 4)))


def broken(data: bytes, **options: Any) -> dict[str, list[Break]]:
    return cut_everywhere(data, **options).breaks


def client(description: str) -> Client:
    (found,) = [client for client in CLIENTS if description in client.description]
    return found


class _Right:
    """A client without a mistake: our own decoder."""

    def __init__(self) -> None:
        self._decoder = SSEDecoder()

    def feed(self, piece: bytes) -> list[str]:
        return [event.data for event in self._decoder.feed(piece)]


class _LosesAtReads(_Right):
    """A mistake that shows at few offsets: what follows a read of one byte at one place of a line is lost."""

    def feed(self, piece: bytes) -> list[str]:
        found = super().feed(piece)
        if len(self._decoder._line) == 7:
            self._decoder._line.clear()
        return found


class _OnlyAcrossEvents(_Right):
    """Wrong only if a read holds the end of one event and the beginning of the next."""

    def feed(self, piece: bytes) -> list[str]:
        odd = piece[:-2].count(b"\n\n") == 1
        return super().feed(piece.split(b"\n\n")[0] + b"\n\n" if odd else piece)


RIGHT = Client("makes no mistake", "", _Right)


@pytest.mark.parametrize("newline", ["\n", "\r\n", "\r"])
@pytest.mark.parametrize(
    "frames",
    [chat_frames(CALLS), responses_frames(CALLS), messages_frames(CALLS), [{"choices": [], "pad": "x" * 70_000}]],
    ids=["chat", "responses", "messages", "long"],
)
def test_a_right_client_breaks_nowhere(frames: list[dict[str, Any]], newline: str) -> None:
    data = sse(frames, newline=newline)
    seen: list[int] = []
    result = cut_everywhere(data, clients=[RIGHT], progress=seen.append)
    assert result.offsets == len(data) and result.random == 4 and result.breaks == {}
    assert sum(seen) == 2 * len(data)
    assert 10 < result.kinds < 400


def test_a_cut_in_an_event_is_the_cut_of_the_whole_file() -> None:
    """What the shortcut stands for: the file read anew for each offset, by each client."""
    for each in CLIENTS:
        whole = broken(CLEAN, clients=[each]).get(each.description, [])
        if whole and (whole[0].always or "several" in whole[0].delivery):
            continue  # no cut was tried
        expected = each.make().feed(CLEAN)
        wrong = {
            offset
            for offset in range(1, len(CLEAN))
            if (lambda reader: reader.feed(CLEAN[:offset]) + reader.feed(CLEAN[offset:]))(each.make()) != expected
        }
        assert {found.offset for found in whole} <= wrong and bool(whole) == bool(wrong), each


@pytest.mark.parametrize(
    ("description", "delivery"),
    [
        ("json.loads", "if a read brings several events"),
        ("whole lines", "if a read ends here"),
        ("splits each read", "if a read ends here"),
        ("decodes each read", "if a read ends here"),
    ],
)
def test_each_mistake_shows_on_an_ordinary_stream(description: str, delivery: str) -> None:
    first = broken(CLEAN)[client(description).description][0]
    assert first.delivery == delivery and not first.always and first.client.why
    assert first.expected != first.got and 0 <= first.offset < len(CLEAN)


def test_a_client_that_decodes_each_read_breaks_inside_a_character_alone() -> None:
    for found in broken(CLEAN)[client("decodes each read").description]:
        with pytest.raises(UnicodeDecodeError):
            CLEAN[: found.offset].decode()


@pytest.mark.parametrize(
    ("description", "breaking", "harmless"),
    [
        ("two line feeds", sse(chat_frames(CALLS), newline="\r\n"), CLEAN),
        ("two line feeds", sse(messages_frames(CALLS), names=True), CLEAN),
        ("str.splitlines", sse(chat_frames([("write", '{"content": "a\u2028b"}')])), CLEAN),
        ('"data: "', CLEAN.replace(b"data: ", b"data:"), sse(chat_frames(CALLS), newline="\r\n")),
        ('"data: "', sse(chat_frames(CALLS), newline="\r"), sse(messages_frames(CALLS), names=True)),
    ],
)
def test_what_breaks_a_client_even_with_an_event_a_read(description: str, breaking: bytes, harmless: bytes) -> None:
    which = client(description)
    first = broken(breaking)[which.description][0]
    assert first.always and first.delivery == "even if each read is one event"
    assert which.description not in broken(harmless)


def test_a_mistake_that_shows_at_one_offset_of_a_line_is_found() -> None:
    odd = Client("loses", "", _LosesAtReads)
    found = broken(CLEAN, clients=[odd], random_cuttings=0)["loses"]
    assert {one.offset - (CLEAN.rfind(b"\n", 0, one.offset) + 1) for one in found} == {7}


def test_events_that_come_together_find_a_wrong_client() -> None:
    odd = Client("is wrong across events", "", _OnlyAcrossEvents)
    (first, *_) = broken(CLEAN * 20, clients=[odd])["is wrong across events"]
    assert not first.always and first.offset > 0


@given(st.integers(0, 2**32), st.integers(0, len(CLEAN)))
@settings(max_examples=max(30, settings.default.max_examples // 30))
def test_a_stream_cut_off_anywhere_breaks_no_right_client(seed: int, end: int) -> None:
    assert broken(CLEAN[:end], clients=[RIGHT], random_cuttings=2, seed=seed) == {}


def test_a_reading_says_what_is_in_the_stream() -> None:
    reading = read_stream(CLEAN)
    assert [(c.name, c.arguments) for c in reading.turns[0]] == CALLS
    assert reading.done and reading.unfinished is None and reading.bad_frames == ()
    assert len(reading.chunks) == len(reading.events) - 1
    for call in reading.turns[0]:
        lengths, offsets = zip(*call.trace)
        assert lengths[-1] == len(call.arguments) and list(offsets) == sorted(offsets)
        assert all(CLEAN[offset:].lstrip().startswith(b"data:") for offset in offsets)


@pytest.mark.parametrize(
    "change",
    [
        lambda data: b": keep-alive\n\n" + data.replace(b"\n\n", b"\n\n: ping\n\n"),
        lambda data: b"\xef\xbb\xbf" + data,
        lambda data: data.replace(b"\n", b"\r\n"),
        lambda data: data.replace(b"\n", b"\r"),
        lambda data: data.replace(b'{"id"', b'{\ndata: "id"'),
        lambda data: data.replace(b"data: ", b"data:"),
        lambda data: data.replace(b"data: ", b"id: 1\nretry: 3\nevent: x\ndata: "),
        lambda data: data.replace(b"data: [DONE]\n\n", b""),
        lambda data: data.removesuffix(b"\n\n"),
        lambda data: zipped(data),
        lambda data: zipped(data[:100]) + zipped(data[100:]),
        lambda data: b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\n\r\n" + data,
        lambda data: b"HTTP/1.1 100 Continue\r\n\r\nHTTP/2 200\r\nx: y\r\n\r\n" + zipped(data),
    ],
    ids=["comments", "bom", "crlf", "cr", "multi-line", "no-space", "fields", "no-done", "open-end", "gzip",
         "gzip-members", "headers", "headers-gzip"],
)  # fmt: skip
def test_whatever_a_file_of_curl_may_hold(change: Any) -> None:
    capture = read_capture(change(CLEAN))
    reading = read_stream(capture.data)
    assert capture.cut is None
    assert [(c.name, c.arguments) for c in reading.turns[0]] == CALLS
    assert reading.turns[0].finish_reason == "tool_calls" and reading.bad_frames == ()
    assert cut_everywhere(capture.data, clients=[RIGHT], random_cuttings=2).breaks == {}


def zipped(data: bytes) -> bytes:
    packer = zlib.compressobj(wbits=31)
    return packer.compress(data) + packer.flush()


def test_a_gzip_stream_that_is_cut_or_damaged_is_read_as_far_as_it_goes() -> None:
    noisy = sse(chat_frames([("write", json.dumps({"content": random.Random(1).randbytes(4000).hex()}))]))
    packed = zipped(noisy)
    cut = read_capture(packed[: len(packed) // 2])
    assert cut.cut is not None and noisy.startswith(cut.data) and len(cut.data) > 100
    damaged = read_capture(zipped(noisy[:50]) + b"\x1f\x8b" + b"\x00" * 30)
    assert damaged.cut is not None and damaged.data == noisy[:50]


@pytest.mark.parametrize(
    ("raw", "word"),
    [
        (b"", "empty"),
        (b"\n \n", "empty"),
        (b'{"choices": []}', "--whole"),
        (b"<html>502</html>", "HTML"),
        (b"\x1f\x8bnot gzip at all", "gzip"),
        (b"HTTP/1.1 401 Unauthorized\r\n\r\n" + b'{"error": "key"}', "401"),
    ],
)
def test_what_is_no_stream_is_refused_in_a_sentence(raw: bytes, word: str) -> None:
    with pytest.raises(UnusableInput, match=word):
        read_capture(raw)
