"""A captured stream read again: once as it should be, and as the clients that people write would read it.

How every byte offset is tried without reading the file again for each of them:

- Between two events that came whole a client has nothing in hand.  So a cut can only matter inside the event that it
  falls into: a client is begun there, fed the bytes before the cut and then those after it, up to the event's end,
  and must have that event's data.
- A client looks at line ends, fields and, at most, at the bytes of one UTF-8 character.  So two cuts are of one
  *kind* if their events have the same lines (fields, colons, line ends), they fall into the same line of it, and
  the four bytes on either side are alike, letter for letter in a field, else by what they are in UTF-8.
  The first cut of each kind is made; that makes megabytes a matter of seconds.
- At last the whole file is read in random pieces, from a few bytes to many events at a time.
"""

from __future__ import annotations

import random
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

from ..wire.assemble import Assembler
from ..wire.sse import NotAChunk, SSEDecoder, SSEvent, read_chunk
from ..wire.turn import Turn
from .clients import CLIENTS, Client
from .compare import around

WINDOW = 4
"""Bytes on either side of a cut that tell its kind: no character of UTF-8 is longer."""

PIECES = (64, 1460, 16384, 65536)
"""The largest piece, in bytes, of the random cuttings, in turn: less than an event, a packet, a TLS record,
a large buffer."""

PIECES_OF_AN_EVENT = 32
"""No random cutting has its longest event come in many more pieces than twice this: clients that append each read to
what they have take time in the square of that number."""

MOST_BYTES = 20_000_000
"""Bytes that the cuts of one event are fed at most, by each client: an event of megabytes is cut at fewer places."""

FEWEST_CUTS = 16
"""Cuts that are made in every event, however long: about one for each line and kind of character."""

MOST_BREAKS = 200
"""Cuts under which a client breaks that are kept, to be compared with what the user's client has."""


@dataclass(frozen=True)
class BadFrame:
    """An event whose data is no JSON object."""

    offset: int
    message: str


@dataclass(frozen=True)
class Reading:
    """The capture read in one piece.

    ``turns``: by choice.  ``done``: whether ``[DONE]`` came.  ``unfinished``: an event that the end of the file
    leaves open, or None.  ``chunks``: the JSON objects of the events that hold one.
    """

    events: tuple[SSEvent, ...]
    turns: dict[int, Turn]
    bad_frames: tuple[BadFrame, ...]
    done: bool
    unfinished: SSEvent | None
    chunks: tuple[dict[str, Any], ...]


@dataclass(frozen=True)
class Break:
    """Where a client goes wrong on this capture.

    ``delivery``: how the bytes arrive, in words.  ``always``: whether it goes wrong with one event a read already.
    ``offset``: in bytes, of the cut or of the event.  ``expected`` and ``got``: the data of that event, shortened.
    ``data``: what the client has in place of the event's data; ``event``: which one.
    """

    client: Client
    delivery: str
    always: bool
    offset: int
    expected: str
    got: str
    event: int
    data: tuple[str, ...]


@dataclass
class Cuttings:
    """What was tried.

    ``offsets``: byte offsets at which the stream was cut.  ``kinds``: distinct cuts that stood for all of them.
    ``random``: whole readings in random pieces.  ``breaks``: by the client's description, first the one that is
    told; a client that is not in it reads this stream right however it is cut.
    """

    offsets: int = 0
    kinds: int = 0
    random: int = 0
    breaks: dict[str, list[Break]] = field(default_factory=dict)


def read_stream(data: bytes) -> Reading:
    """Read a stream in one piece and put its calls together."""
    decoder = SSEDecoder()
    events = decoder.feed(data)
    assembler = Assembler()
    bad: list[BadFrame] = []
    done = False
    chunks = []
    for event in events:
        if event.done:
            done = True
            continue
        try:
            chunk = read_chunk(event)
        except NotAChunk as trouble:
            bad.append(BadFrame(event.start, str(trouble)))
        else:
            chunks.append(chunk)
            assembler.feed(chunk, event.start)
    unfinished = decoder.finish()
    if unfinished is not None and unfinished.done:
        done, unfinished = True, None
    turns = {choice: assembler.result(choice) for choice in assembler.choices}
    return Reading(tuple(events), turns, tuple(bad), done, unfinished, tuple(chunks))


@dataclass(frozen=True)
class _Segment:
    """An event's bytes; ``cuts``: offsets in them, one for each kind that no event before had."""

    number: int
    start: int
    content: bytes
    data: list[str]
    cuts: list[int]


def cut_everywhere(
    data: bytes,
    *,
    clients: Sequence[Client] = CLIENTS,
    random_cuttings: int = 4,
    seed: int = 0,
    progress: Callable[[int], None] = lambda advanced: None,
) -> Cuttings:
    """Read a stream with each client: an event a read, cut at every byte offset, and in random pieces.

    ``progress`` is called with numbers of bytes; they add up to ``len(data) * (1 + len(clients))``.  The same
    ``seed`` gives the same pieces.
    """
    segments = list(_segments(data, SSEDecoder().feed(data)))
    result = Cuttings(len(data), sum(len(segment.cuts) for segment in segments), random_cuttings)
    progress(len(data))
    for client in clients:
        found = list(_breaks(client, segments)) or list(_at_random(client, data, segments, random_cuttings, seed))
        if found:
            result.breaks[client.description] = found
        progress(len(data))
    return result


def _segments(data: bytes, events: list[SSEvent]) -> Iterator[_Segment]:
    """The stream event by event, with the cuts to be made in each."""
    known: dict[tuple[object, ...], list[set[bytes]]] = {}
    seen: set[bytes] = set()
    start = 0
    for number, event in enumerate(events):
        # The line feed of a CR LF that ended the last event belongs to that event.
        end = event.end + (data[event.end - 1 : event.end + 1] == b"\r\n")
        content = data[start:end]
        cuts: list[int] = []
        lines, looks = _looks(content)
        structure = tuple(line[:2] for line in lines)
        if looks not in seen or structure not in known:
            seen.add(looks)
            cuts = _new_kinds(looks, lines, known.setdefault(structure, [set() for _ in lines]))
            cuts = cuts[: max(FEWEST_CUTS, MOST_BYTES // len(content))]
        yield _Segment(number, start, content, [event.data], cuts)
        start = end


def _breaks(client: Client, segments: list[_Segment]) -> Iterator[Break]:
    """Where the client goes wrong with one event a read; else with all in one read; else where it is cut."""
    reader = client.make()
    whole = [(segment, reader.feed(segment.content)) for segment in segments]
    wrong = [(segment, got) for segment, got in whole if got != segment.data]
    for segment, got in wrong[:MOST_BREAKS]:
        yield _break(client, "even if each read is one event", segment, segment.start, got, always=True)
    if wrong:
        return
    together = client.make().feed(b"".join(segment.content for segment in segments))
    for segment, text in zip(segments, [*together, *[""] * len(segments)]):
        if [text] != segment.data:
            yield _break(client, "if a read brings several events", segment, segment.start, [text] if text else [])
            return  # what it loses depends on how many came together
    count = 0
    for segment in segments:
        for cut in segment.cuts:
            reader = client.make()
            got = [*reader.feed(segment.content[:cut]), *reader.feed(segment.content[cut:])]
            if got != segment.data:
                count += 1
                yield _break(client, "if a read ends here", segment, segment.start + cut, got)
                if count == MOST_BREAKS:
                    return


def _at_random(client: Client, data: bytes, segments: list[_Segment], readings: int, seed: int) -> Iterator[Break]:
    source = random.Random(seed)
    least = max((len(segment.content) for segment in segments), default=0) // PIECES_OF_AN_EVENT
    for number in range(readings):
        largest = max(PIECES[number % len(PIECES)], least)
        reader = client.make()
        got: list[str] = []
        at = 0
        while at < len(data):
            size = source.randint(1, largest)
            got += reader.feed(data[at : at + size])
            at += size
        for segment, text in zip(segments, [*got, *[""] * len(segments)]):
            if [text] != segment.data:
                yield _break(client, "if reads end at random", segment, segment.start, [text] if text else [])
                return


def _break(
    client: Client, delivery: str, segment: _Segment, offset: int, got: Iterable[str], *, always: bool = False
) -> Break:
    data = tuple(got)
    shown = " | ".join(data) or "no event"
    expected = segment.data[0]
    at = next((i for i, (a, b) in enumerate(zip(expected, shown)) if a != b), min(len(expected), len(shown)))
    at = at if data else 0
    return Break(
        client, delivery, always, offset, around(expected, at), around(shown, at), segment.number, data
    )  # fmt: skip


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
