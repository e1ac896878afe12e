"""Server-sent events from bytes, in whatever pieces they arrive.

Sans-I/O, by the rules of the HTML standard: CR, LF and CRLF end a line, a byte order mark may begin the stream,
comments and unknown fields are skipped, several ``data`` lines of an event are joined by a newline.  The SSE
libraries of Python read a response or lines of text; the replay needs the state between any two bytes, which
is why this is here.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

_LINE_END = re.compile(rb"[\r\n]")
_BOM = b"\xef\xbb\xbf"


@dataclass(frozen=True)
class SSEvent:
    """One event.  ``start`` and ``end``: the bytes of the stream it was made from, as offsets.

    ``intact``: False if its data is not UTF-8; ``data`` then has U+FFFD in the place of what is not.
    """

    data: str
    name: str
    start: int
    end: int
    intact: bool = True


class SSEDecoder:
    """Bytes in, events out.

    ``offset``: where in the stream it begins; ``after_cr``: whether the byte before that was a CR (then an LF
    belongs to it).  A decoder can be begun anywhere that an event has just ended.
    """

    __slots__ = ("_after_cr", "_data", "_line", "_name", "_offset", "_start")

    def __init__(self, offset: int = 0, *, after_cr: bool = False) -> None:
        self._offset = offset
        self._start = offset
        self._after_cr = after_cr
        self._line = bytearray()
        self._data: list[bytes] = []
        self._name = b""

    def feed(self, piece: bytes) -> list[SSEvent]:
        """Take the next bytes, any number of them; the events that they complete."""
        if not piece:
            return []
        begin = 1 if self._after_cr and piece[0] == 0x0A else 0
        events: list[SSEvent] = []
        for match in _LINE_END.finditer(piece, begin):
            end = match.start()
            if end < begin:
                continue  # the LF of a CRLF
            if self._line:
                self._line += piece[begin:end]
                line = bytes(self._line)
                self._line.clear()
            else:
                line = piece[begin:end]
            begin = end + 1
            # The event ends with the line's first end byte, so that it does not matter whether the LF of a
            # CRLF is there yet.
            event = self._take(line, self._offset + begin)
            if event is not None:
                events.append(event)
            if piece[end] == 0x0D and piece[begin : begin + 1] == b"\n":
                begin += 1
        self._line += piece[begin:]
        self._after_cr = piece[-1] == 0x0D
        self._offset += len(piece)
        return events

    def finish(self) -> SSEvent | None:
        """The event that the end of the stream leaves unfinished.  By the standard it is dropped."""
        data = list(self._data)
        if self._line:
            field, value = _split(bytes(self._line))
            if field == b"data":
                data.append(value)
        return self._event(data, self._offset) if data else None

    def state(self) -> tuple[object, ...]:
        """All that decides what happens next: equal states go on alike."""
        return (self._offset, self._start, self._after_cr, bytes(self._line), tuple(self._data), self._name)

    def _take(self, line: bytes, end: int) -> SSEvent | None:
        if not line:
            event = self._event(self._data, end) if self._data else None
            self._data = []
            self._name = b""
            self._start = end
            return event
        if line.startswith(_BOM) and end <= len(line) + 1:
            line = line[len(_BOM) :]
        field, value = _split(line)
        if field == b"data":
            self._data.append(value)
        elif field == b"event":
            self._name = value
        return None

    def _event(self, data: list[bytes], end: int) -> SSEvent:
        raw = b"\n".join(data)
        name = self._name.decode("utf-8", "replace")
        try:
            return SSEvent(raw.decode("utf-8"), name, self._start, end)
        except UnicodeDecodeError:
            return SSEvent(raw.decode("utf-8", "replace"), name, self._start, end, intact=False)


def _split(line: bytes) -> tuple[bytes, bytes]:
    """A line's field and value; a comment's field is empty."""
    field, _, value = line.partition(b":")
    return field, value[1:] if value.startswith(b" ") else value
