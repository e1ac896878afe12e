"""A captured stream read again, cut in every way in which a network may deliver it.

How every byte offset is tried without reading the file again for each of them:

- Between two events a decoder has nothing in hand: its state is that of a new one.  So a cut can only matter
  inside the event that it falls into.  The decoder is resumed at that event's start, fed the bytes before the
  cut and then those after it, up to the event's end.  If that gives the event of the uncut reading and the
  uncut reading's state, the rest of the file is the same computation from the same state, and is not done again.
- A decoder looks at line ends, fields and, at most, at the bytes of one UTF-8 character.  So two cuts are of one
  *kind* if their events have the same lines (fields, colons, line ends), they fall into the same line of it, and
  the four bytes on either side are alike, letter for letter in a field, else by what they are in UTF-8.
  The first cut of each kind is made; that makes megabytes a matter of seconds.
- The first event of each structure is also fed byte by byte, which cuts at all of its offsets at once.
- At last the whole file is read in random pieces, from a few bytes to many events at a time.
"""

from __future__ import annotations

import random
import re
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any, Protocol

from ..wire.assemble import Assembled, Assembler
from ..wire.sse import NotAChunk, SSEDecoder, SSEvent, read_chunk

WINDOW = 4
"""Bytes on either side of a cut that tell its kind: no character of UTF-8 is longer."""

BYTEWISE = 65536
"""Bytes; longer events are not fed byte by byte."""

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

    ``offsets``: byte offsets at which the stream was cut.  ``kinds``: distinct cuts that stood for all of them.
    ``random``: whole readings in random pieces.
    """

    offsets: int = 0
    kinds: int = 0
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
        if event.done:
            done = True
            continue
        chunk, trouble = _frame(event)
        if trouble:
            bad.append(BadFrame(event.start, trouble))
        else:
            chunks += 1
            assembler.feed(chunk, event.start)
    unfinished = decoder.finish()
    if unfinished is not None and unfinished.done:
        done, unfinished = True, None
    turns = {choice: assembler.result(choice) for choice in assembler.choices}
    return Reading(tuple(events), turns, tuple(bad), done, unfinished, chunks, decoder.state())


def _frame(event: SSEvent) -> tuple[Any, str]:
    try:
        return read_chunk(event), ""
    except NotAChunk as error:
        return None, str(error)


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
    known: dict[tuple[object, ...], list[set[bytes]]] = {}
    for segment, after_cr, start, expected in _segments(data, events):
        result.offsets += len(segment)
        lines, looks = _looks(segment)
        structure = (after_cr, start == 0, bool(expected), *(line[:2] for line in lines))
        if looks not in seen or structure not in known:
            seen.add(looks)
            new = structure not in known
            kinds = known.setdefault(structure, [set() for _ in lines])
            cuts = _new_kinds(looks, lines, kinds)
            result.kinds += len(cuts)
            _try_segment(make, segment, after_cr, start, expected, cuts, new, result)
        progress(len(segment))
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


def _new_kinds(looks: bytes, lines: list[tuple[bytes, bytes, int]], kinds: list[set[bytes]]) -> list[int]:
    """Offsets of cuts, one for each kind not met before in an event of this structure."""
    cuts = []
    begin = 0
    for (_, _, end), met in zip(lines, kinds):
        window = {looks[max(0, at - WINDOW) : at + WINDOW]: at for at in range(begin, end)}
        cuts += [at for look, at in window.items() if look not in met and at]
        met.update(window)
        begin = end
    return cuts


def _try_segment(
    make: MakeDecoder,
    segment: bytes,
    after_cr: bool,
    start: int,
    expected: list[SSEvent],
    cuts: list[int],
    bytewise: bool,
    result: Cuttings,
) -> None:
    whole = make(start, after_cr=after_cr)
    whole.feed(segment)
    state = whole.state()

    def trial(pieces: Iterable[bytes], cut: int) -> None:
        decoder = make(start, after_cr=after_cr)
        got = [event for piece in pieces for event in decoder.feed(piece)]
        if got != expected or decoder.state() != state:
            result.disagreements.append(_disagreement(cut, expected, got))

    for cut in cuts:
        trial((segment[:cut], segment[cut:]), start + cut)
    if bytewise and len(segment) <= BYTEWISE:
        trial((segment[at : at + 1] for at in range(len(segment))), start)


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


def _looks(segment: bytes) -> tuple[list[tuple[bytes, bytes, int]], bytes]:
    """The lines of an event (field with its colon, line end, offset of the next line), and its bytes with the
    values made alike but for what they are in UTF-8."""
    lines = []
    parts: list[bytes] = []
    end = 0
    for name, colon, value, stop in _LINES.findall(segment):
        end += len(name) + len(colon) + len(value) + len(stop)
        lines.append((name + colon, stop, end))
        parts += (name, colon, value.translate(_CLASSES), stop)
    return lines, b"".join(parts)
