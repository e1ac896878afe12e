"""Cutting at every offset: nothing is found with a right decoder, everything with wrong ones."""

from __future__ import annotations

import json
import random
import zlib
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from wire import chat_frames, messages_frames, responses_frames, sse

from lfm2_fixed.check.capture import UnusableInput, read_capture
from lfm2_fixed.check.replay import cut_everywhere, read_stream
from lfm2_fixed.wire.sse import SSEDecoder, SSEvent

CALLS = [("write", json.dumps({"path": "é.txt", "content": "€ 😀 \n" * 5}, ensure_ascii=False)), ("move", '{"lat": 1}')]
CLEAN = sse(chat_frames(CALLS, cuts=range(0, 90, 4)))


class DecodesEachRead(SSEDecoder):
    """A client's mistake: each read is decoded by itself."""

    def feed(self, piece: bytes) -> list[SSEvent]:
        return super().feed(piece.decode("utf-8", "replace").encode())


class ReadsAreLines(SSEDecoder):
    """A client's mistake: a read is taken for whole lines."""

    def feed(self, piece: bytes) -> list[SSEvent]:
        found = []
        for line in piece.splitlines():
            found += super().feed(line + b"\n")
        return found


class LosesAtReads(SSEDecoder):
    """A mistake that shows at few offsets: a read of one byte at one place in a line loses the line."""

    def feed(self, piece: bytes) -> list[SSEvent]:
        events = super().feed(piece)
        if len(piece) == 1 and len(self._line) == 7:
            self._line.clear()
        return events


@pytest.mark.parametrize("newline", ["\n", "\r\n", "\r"])
@pytest.mark.parametrize(
    "frames",
    [chat_frames(CALLS), responses_frames(CALLS), messages_frames(CALLS), [{"choices": [], "pad": "x" * 70_000}]],
    ids=["chat", "responses", "messages", "long"],
)
def test_every_offset_of_a_clean_stream(frames: list[dict[str, Any]], newline: str) -> None:
    data = sse(frames, newline=newline)
    seen: list[int] = []
    result = cut_everywhere(data, progress=seen.append)
    assert result.offsets == len(data) and result.random == 8 and result.disagreements == []
    assert sum(seen) == 9 * len(data)
    assert 20 < result.kinds < 400


def test_a_resumed_cut_is_the_cut_of_the_whole_file() -> None:
    """What the shortcut stands for: the file read anew for each offset."""
    whole = SSEDecoder()
    expected = whole.feed(CLEAN)
    for offset in range(len(CLEAN)):
        decoder = SSEDecoder()
        assert decoder.feed(CLEAN[:offset]) + decoder.feed(CLEAN[offset:]) == expected
        assert decoder.state() == whole.state()


@pytest.mark.parametrize("wrong", [DecodesEachRead, ReadsAreLines, LosesAtReads])
def test_wrong_decoders_are_found_at_an_offset_where_they_are_wrong(wrong: type[SSEDecoder]) -> None:
    result = cut_everywhere(CLEAN, make=wrong, random_cuttings=0)
    assert result.disagreements
    for found in result.disagreements:
        assert found.expected != found.got and 0 <= found.offset < len(CLEAN)


@given(st.integers(0, 2**32), st.integers(0, len(CLEAN)))
@settings(max_examples=max(30, settings.default.max_examples // 30))
def test_a_stream_cut_off_anywhere_still_reads_alike_however_it_is_cut(seed: int, end: int) -> None:
    assert cut_everywhere(CLEAN[:end], random_cuttings=2, seed=seed).disagreements == []


def test_random_pieces_alone_find_a_wrong_decoder() -> None:
    class OnlyAcrossEvents(SSEDecoder):
        """Wrong only if a read holds the end of one event and the beginning of the next."""

        def feed(self, piece: bytes) -> list[SSEvent]:
            return super().feed(piece.split(b"\n\n")[0] + b"\n\n" if piece[:-2].count(b"\n\n") == 1 else piece)

    data = CLEAN * 20
    result = cut_everywhere(data, make=OnlyAcrossEvents)
    assert result.disagreements


def test_a_reading_says_what_is_in_the_stream() -> None:
    reading = read_stream(CLEAN)
    assert [(c.name, c.arguments) for c in reading.turns[0]] == CALLS
    assert reading.done and reading.unfinished is None and reading.bad_frames == ()
    assert reading.chunks == len(reading.events) - 1
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
    assert cut_everywhere(capture.data, random_cuttings=2).disagreements == []


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
