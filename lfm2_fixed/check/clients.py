"""The readers of server-sent events that people write into their clients, each with its usual mistake.

A network may end a read anywhere.  A right decoder gives the same events for every cutting (ours is held to that
by its tests), so reading a capture with it, cut at each offset, could find nothing.  What can be found is where
*these* break on the very bytes of the capture: each looks right, passes its author's tests on a fast local
network, and loses a call on the day a read ends in the wrong place.

Each holds nothing between two events that arrive whole, so it can be begun at any event.
"""

from __future__ import annotations

import codecs
import json
from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol


class Reader(Protocol):
    """Takes the bytes of each read; gives the data of the events that the client has then."""

    def feed(self, piece: bytes) -> list[str]: ...


@dataclass(frozen=True)
class Client:
    """``description`` completes "a client that …"; ``why``: what goes wrong, and what to do about it."""

    description: str
    why: str
    make: Callable[[], Reader]


class _JsonOfEachRead:
    def feed(self, piece: bytes) -> list[str]:
        text = piece.decode("utf-8", "replace").strip().removeprefix("data:").strip()
        return [text] if _usable(text) else []


class _LinesOfEachRead:
    def feed(self, piece: bytes) -> list[str]:
        lines = [line.rstrip("\r") for line in piece.decode("utf-8", "replace").split("\n")]
        return [text for line in lines if line.startswith("data:") and _usable(text := line[5:].strip())]


class _EventsOfEachRead:
    def feed(self, piece: bytes) -> list[str]:
        found = []
        for event in piece.decode("utf-8", "replace").split("\n\n"):
            found += [text for line in event.split("\n") if line.startswith("data: ") and _usable(text := line[6:])]
        return found


class _DecodedReads:
    """Buffers lines, but turns each read into text by itself."""

    def __init__(self) -> None:
        self._rest = ""

    def feed(self, piece: bytes) -> list[str]:
        *lines, self._rest = (self._rest + piece.decode("utf-8", "replace")).split("\n")
        lines = [line.rstrip("\r") for line in lines]
        return [line[5:].lstrip() for line in lines if line.startswith("data:")]


class _BlankLines:
    """Buffers, and takes two line feeds for an event's end."""

    def __init__(self) -> None:
        self._decoder = codecs.getincrementaldecoder("utf-8")("replace")
        self._rest = ""

    def feed(self, piece: bytes) -> list[str]:
        *events, self._rest = (self._rest + self._decoder.decode(piece)).split("\n\n")
        return [event[6:] for event in events if event.startswith("data: ")]


class _UnicodeLines:
    """Buffers, and lets ``str.splitlines`` find the lines."""

    def __init__(self) -> None:
        self._decoder = codecs.getincrementaldecoder("utf-8")("replace")
        self._rest = ""

    def feed(self, piece: bytes) -> list[str]:
        lines = (self._rest + self._decoder.decode(piece)).splitlines(keepends=True)
        self._rest = lines.pop() if lines and not lines[-1].endswith(("\n", "\r")) else ""
        lines = [line.rstrip("\r\n") for line in lines]
        return [line[5:].lstrip() for line in lines if line.startswith("data:")]


class _DataLines:
    """Buffers lines ended by a line feed, and takes each ``data: `` line for an event."""

    def __init__(self) -> None:
        self._decoder = codecs.getincrementaldecoder("utf-8")("replace")
        self._rest = ""

    def feed(self, piece: bytes) -> list[str]:
        *lines, self._rest = (self._rest + self._decoder.decode(piece)).split("\n")
        return [line[6:].rstrip("\r") for line in lines if line.startswith("data: ")]


def _usable(text: str) -> bool:
    """What such a client makes of a piece that ``json.loads`` refuses: it skips it (or raises)."""
    if text == "[DONE]":
        return True
    try:
        json.loads(text)
    except (ValueError, RecursionError):
        return False
    return True


CLIENTS = (
    Client(
        "calls json.loads on each read",
        "a read is not an event: it may hold a part of one, or several. Put the reads together into events first",
        _JsonOfEachRead,
    ),
    Client(
        "takes each read for whole lines",
        "a read may end in the middle of a line. Keep what follows its last line end for the next read",
        _LinesOfEachRead,
    ),
    Client(
        "splits each read at blank lines",
        "a read may end in the middle of an event, and blank lines may be ended by CR LF. Keep what is not ended",
        _EventsOfEachRead,
    ),
    Client(
        "decodes each read as UTF-8 by itself",
        "a read may end inside a character of several bytes. Split the bytes into lines first, or use an "
        "incremental decoder",
        _DecodedReads,
    ),
    Client(
        "takes two line feeds for the end of an event",
        "lines may end with CR LF or CR, and an event may have other lines before its data. Read line by line",
        _BlankLines,
    ),
    Client(
        "finds lines with str.splitlines",
        "it also splits at U+2028, U+0085 and other characters that JSON strings hold as they are. Only LF, CR LF "
        "and CR end a line",
        _UnicodeLines,
    ),
    Client(
        'takes each line that begins with "data: " for an event',
        "the blank after the colon may be missing, lines may end with CR alone, and several data lines are one event",
        _DataLines,
    ),
)
"""In the order of how often they are met, the worst first."""
