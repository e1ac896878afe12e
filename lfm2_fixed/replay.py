"""A captured stream read again, cut in every way in which a network may deliver it.

How every byte offset is tried without reading the file again for each of them.  Between two events a decoder
has nothing in hand: its state is that of a new one.  So a cut can only matter inside the event that it falls
into.  For each event the decoder is resumed at the event's start, fed the bytes before the cut and then those
after it, up to the event's end.  If that gives the event of the uncut reading and the uncut reading's state,
the rest of the file is the same computation from the same state, and is not done again.

Two events of one *shape* (the same lines, fields, line ends and lengths, and the same UTF-8 lead and
continuation bytes at the same places) are one case: a decoder may look at nothing else.  The first of each shape
is tried, which makes megabytes a matter of seconds.  Each shape is also fed byte by byte, which cuts at all
its offsets at once; for events longer than ``LONG`` bytes that stands for the offsets far from any line's end.
At last the whole file is read in random pieces, from a few bytes to many events at a time.
"""

from __future__ import annotations

import json
import random
import re
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any, Protocol

from .assemble import Assembled, Assembler
from .sse import SSEDecoder, SSEvent

LONG = 4096
"""Bytes; in a longer event only the offsets within ``NEAR`` of a line's start or end are cut one by one."""

NEAR = 256

PIECES = (64, 1460, 16384, 65536)
"""The largest piece, in bytes, of the random cuttings, in turn."""


class Decoder(Protocol):
    """What is replayed: anything that takes bytes and gives events, like ``SSEDecoder``."""

    def feed(self, piece: bytes) -> list[SSEvent]: ...
    def state(self) -> tuple[object, ...]: ...


class MakeDecoder(Protocol):
    """Begins a decoder at an offset where no event is open."""

    def __call__(self, offset: int = 0, *, after_cr: bool = False) -> Decoder: ...


@dataclass(frozen=True)
class BadFrame:
    """An event whose data is no JSON object."""

    offset: int
    message: str


@dataclass(frozen=True)
class Reading:
    """The capture read in one piece.

    ``turns``: by choice.  ``done``: whether ``[DONE]`` came.  ``unfinished``: an event that the end of the file
    leaves open, or None.  ``chunks``: how many events were chunks of a known protocol.
    """

    events: tuple[SSEvent, ...]
    turns: dict[int, Assembled]
    bad_frames: tuple[BadFrame, ...]
    done: bool
    unfinished: SSEvent | None
    chunks: int
    state: tuple[object, ...]


@dataclass(frozen=True)
class Disagreement:
    """A cutting under which the reassembly gives something else.  ``offset``: the cut, in bytes."""

    offset: int
    expected: str
    got: str


@dataclass
class Cuttings:
    """What was tried.

    ``offsets``: byte offsets at which the stream was cut.  ``shapes``: distinct events that stood for all of
    them.  ``bytewise_only``: how many of the offsets were tried only by the byte-by-byte reading of their event.
    ``random``: whole readings in random pieces.
    """

    offsets: int = 0
    shapes: int = 0
    bytewise_only: int = 0
    random: int = 0
    disagreements: list[Disagreement] = field(default_factory=list)


def read_stream(data: bytes) -> Reading:
    """Read a stream in one piece and put its calls together."""
    decoder = SSEDecoder()
    events = decoder.feed(data)
    assembler = Assembler()
    bad: list[BadFrame] = []
    done = False
    chunks = 0
    for event in events:
        if event.data.strip() == "[DONE]":
            done = True
            continue
        chunk, trouble = _frame(event)
        if trouble:
            bad.append(BadFrame(event.start, trouble))
        else:
            chunks += 1
            assembler.feed(chunk, event.start)
    unfinished = decoder.finish()
    if unfinished is not None and unfinished.data.strip() == "[DONE]":
        done, unfinished = True, None
    turns = {choice: assembler.result(choice) for choice in assembler.choices}
    return Reading(tuple(events), turns, tuple(bad), done, unfinished, chunks, decoder.state())


def _frame(event: SSEvent) -> tuple[Any, str]:
    if not event.intact:
        return None, "the data is not UTF-8"
    try:
        chunk = json.loads(event.data)
    except ValueError:
        return None, "the data is not JSON"
    except RecursionError:
        return None, "the data is nested too deep"
    return (chunk, "") if isinstance(chunk, dict) else (None, "the data is not a JSON object")


def cut_everywhere(
    data: bytes,
    *,
    make: MakeDecoder = SSEDecoder,
    random_cuttings: int = 8,
    seed: int = 0,
    progress: Callable[[int], None] = lambda advanced: None,
) -> Cuttings:
    """Read a stream cut at every byte offset, and in random pieces.

    ``make``: the decoder on trial.  ``progress`` is called with numbers of bytes; they add up to
    ``len(data) * (1 + random_cuttings)``.  The same ``seed`` gives the same pieces.
    """
    uncut = make()
    events = uncut.feed(data)
    result = Cuttings()
    seen: set[bytes] = set()
    for segment, after_cr, start, expected in _segments(data, events):
        result.offsets += len(segment)
        shape = _shape(segment, after_cr, start == 0)
        if shape not in seen:
            seen.add(shape)
            _try_segment(make, segment, after_cr, start, expected, result)
        elif len(segment) > LONG:
            result.bytewise_only += len(segment) - len(_near_line_ends(segment))
        progress(len(segment))
    result.shapes = len(seen)
    source = random.Random(seed)
    for number in range(random_cuttings):
        _try_random(make, data, events, uncut.state(), source, PIECES[number % len(PIECES)], result)
        progress(len(data))
    return result


def _segments(data: bytes, events: list[SSEvent]) -> Iterator[tuple[bytes, bool, int, list[SSEvent]]]:
    """The stream event by event: bytes, whether a CR precedes them, their offset, the event they make."""
    start = 0
    for event in events:
        yield data[start : event.end], data[start - 1 : start] == b"\r", start, [event]
        start = event.end
    if start < len(data):
        yield data[start:], data[start - 1 : start] == b"\r", start, []


def _try_segment(
    make: MakeDecoder, segment: bytes, after_cr: bool, start: int, expected: list[SSEvent], result: Cuttings
) -> None:
    whole = make(start, after_cr=after_cr)
    whole.feed(segment)
    state = whole.state()

    def trial(pieces: Iterable[bytes], cut: int) -> None:
        decoder = make(start, after_cr=after_cr)
        got = [event for piece in pieces for event in decoder.feed(piece)]
        if got != expected or decoder.state() != state:
            result.disagreements.append(_disagreement(cut, expected, got))

    cuts: Iterable[int] = range(1, len(segment))
    if len(segment) > LONG:
        cuts = _near_line_ends(segment)
        result.bytewise_only += len(segment) - len(cuts)
    for cut in cuts:
        trial((segment[:cut], segment[cut:]), start + cut)
    trial((segment[at : at + 1] for at in range(len(segment))), start)


def _near_line_ends(segment: bytes) -> list[int]:
    places = {0, len(segment)} | {match.start() for match in re.finditer(rb"[\r\n]", segment)}
    cuts: set[int] = set()
    for place in places:
        cuts.update(range(max(1, place - NEAR), min(len(segment), place + NEAR)))
    return sorted(cuts)


def _try_random(
    make: MakeDecoder,
    data: bytes,
    expected: list[SSEvent],
    state: tuple[object, ...],
    source: random.Random,
    largest: int,
    result: Cuttings,
) -> None:
    result.random += 1
    decoder = make()
    count = at = 0
    while at < len(data):
        size = source.randint(1, largest)
        got = decoder.feed(data[at : at + size])
        at += size
        if got != expected[count : count + len(got)]:
            result.disagreements.append(_disagreement(at - size, expected[count : count + len(got)], got))
            return
        count += len(got)
    if count != len(expected) or decoder.state() != state:
        result.disagreements.append(_disagreement(len(data), expected[count:], []))


def _disagreement(offset: int, expected: list[SSEvent], got: list[SSEvent]) -> Disagreement:
    one, other = _shown(expected), _shown(got)
    if one == other:
        other += " (the same text, but from other bytes, or the decoder is in another state after it)"
    return Disagreement(offset, one, other)


def _shown(events: list[SSEvent]) -> str:
    text = " | ".join(event.data for event in events) or "no event"
    return text if len(text) <= 300 else text[:300] + "…"


# ASCII to one letter, UTF-8 continuation bytes to another, each kind of lead byte to its own.
_CLASSES = bytes(
    byte if byte in b"\r\n" else 0x61 if byte < 0x80 else 0x80 if byte < 0xC0 else byte & 0xF0 for byte in range(256)
)
_LINES = re.compile(rb"([^\r\n:]*)(:? ?)([^\r\n]*)(\r\n?|\n|\Z)")


def _shape(segment: bytes, after_cr: bool, first: bool) -> bytes:
    """The same for events that no decoder can tell apart but by the text of their values."""
    if first:
        return b"first"  # a byte order mark may stand here
    parts = [b"\r" if after_cr else b""]
    for name, colon, value, end in _LINES.findall(segment):
        parts += (name, colon, value.translate(_CLASSES), end)
    return b"".join(parts)
