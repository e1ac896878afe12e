"""Server-sent events: the bytes of a stream into events, and JSON into the bytes of an event."""

from __future__ import annotations

import json
from typing import Any, NamedTuple

from .errors import ProxyError
from .settings import LIMIT_OF_AN_EVENT

DONE = b"data: [DONE]\n\n"


class Event(NamedTuple):
    """``name`` is ``"message"`` where the stream names none, and ``"comment"`` for a comment line."""

    name: str
    data: bytes


class EventDecoder:
    """Reads a stream's bytes, however they are cut.

    Lines end with ``\\n`` or ``\\r\\n`` and nothing else: other characters that Unicode counts as
    line ends are ordinary text of a JSON string.
    """

    def __init__(self) -> None:
        self._open: list[bytes] = []  # the line that has no end yet
        self._size = 0  # of the event so far
        self._name = ""
        self._data: list[bytes] = []

    def feed(self, piece: bytes) -> list[Event]:
        """The events that ``piece`` completes.  Raises ProxyError where one is too large."""
        self._size += len(piece)
        if self._size > LIMIT_OF_AN_EVENT:
            raise ProxyError(502, f"The upstream sent an event of more than {LIMIT_OF_AN_EVENT} bytes.")
        if b"\n" not in piece:
            self._open.append(piece)
            return []
        if self._open:
            piece = b"".join(self._open) + piece
            self._open.clear()
        *lines, rest = piece.split(b"\n")
        if rest:
            self._open.append(rest)
        events: list[Event] = []
        for line in lines:
            line = line.removesuffix(b"\r")
            if line.startswith(b"data:"):
                self._data.append(line[5:].removeprefix(b" "))
            elif not line:
                self._dispatch(events)
            elif line.startswith(b":"):
                events.append(Event("comment", line[1:].strip()))
            elif line.startswith(b"event:"):
                self._name = line[6:].strip().decode("utf-8", "replace")
            elif line.startswith(b"error:"):  # what old builds of llama-server send in place of data
                self._name = "error"
                self._data.append(line[6:].strip())
        return events

    def finish(self) -> list[Event]:
        """The end of the stream, which also ends an event that lacks its blank line."""
        return self.feed(b"\n\n")

    def _dispatch(self, events: list[Event]) -> None:
        if self._data:
            events.append(Event(self._name or "message", b"\n".join(self._data)))
            self._data.clear()
        self._name = ""
        self._size = len(self._open[0]) if self._open else 0


_ENCODER = json.JSONEncoder(ensure_ascii=False, separators=(",", ":"))


def encode_json(value: Any) -> bytes:
    """Compact JSON; what UTF-8 has no bytes for (lone surrogates) stays an escape."""
    try:
        return _ENCODER.encode(value).encode()
    except UnicodeEncodeError:
        return json.dumps(value, separators=(",", ":")).encode()


def encode_event(value: Any) -> bytes:
    """One event with ``value`` as its JSON."""
    return b"data: %b\n\n" % encode_json(value)


def comment(text: bytes) -> bytes:
    """A line that clients skip."""
    return b": %b\n\n" % text
