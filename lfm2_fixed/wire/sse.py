"""Server-sent events: the bytes of a stream into events, and JSON into the bytes of an event.

Sans-I/O, by the rules of the HTML standard (section 9.2.6, "Interpreting an event stream"): CR, LF and CRLF end
a line and nothing else does (U+2028 is ordinary text of a JSON string), a byte order mark may begin the stream,
unknown fields are skipped, several ``data`` lines of an event are joined by a newline.

One departure from the standard: a field ``error`` is data of an event named ``error``.  Builds of llama-server
before ``data: {"error": …}`` was agreed on say ``error: {…}``; by the standard that line would be skipped, and a
stream that reports an error would look like one that was cut.

Why not ``httpx-sse``?  Its decoders take text or a response, so the bytes that an event was made from are lost
(``check`` names a fault by its byte offset, and resumes the decoder between any two bytes of a capture); what is
not UTF-8 is replaced before it can be reported; a line or an event may grow without limit; comments, which a
proxy has to pass on, are dropped.  It is an oracle of the tests instead.
"""

from __future__ import annotations

import json
import re
from typing import Any, NamedTuple

_LINE_END = re.compile(rb"[\r\n]")
_BOM = b"\xef\xbb\xbf"


class EventTooLarge(ValueError):
    """An event, or a line of it, is longer than the decoder's limit."""


class NotAChunk(ValueError):
    """An event's data is no JSON object; the message says why, without quoting it."""


class SSEvent(NamedTuple):
    """One event.  ``start`` and ``end``: the bytes of the stream it was made from, as offsets.

    ``name`` is empty where the stream names none.  ``intact``: False if its data is not UTF-8; ``data`` then has
    U+FFFD in the place of what is not.  ``comment``: a comment line, whose text is ``data``.
    """

    data: str
    name: str
    start: int
    end: int
    intact: bool = True
    comment: bool = False

    @property
    def done(self) -> bool:
        """Whether this is the mark that ends an OpenAI stream; some servers write a blank after it."""
        # The length first (6 characters and room for blanks): stripping copies, and nearly all events are long.
        return len(self.data) < 64 and self.data.strip() == "[DONE]" and not self.comment


class SSEDecoder:
    """Bytes in, events out.

    ``offset``: where in the stream it begins; ``after_cr``: whether the byte before that was a CR (then an LF
    belongs to it).  A decoder can be begun anywhere that an event has just ended.  ``comments``: give comment
    lines, too.  ``limit``: the most bytes that an unfinished event may take, None for no limit.
    """

    __slots__ = ("_after_cr", "_comments", "_data", "_limit", "_line", "_name", "_offset", "_size", "_start")

    def __init__(
        self, offset: int = 0, *, after_cr: bool = False, comments: bool = False, limit: int | None = None
    ) -> None:
        self._offset = offset
        self._start = offset
        self._after_cr = after_cr
        self._comments = comments
        self._limit = limit
        self._line = bytearray()
        self._data: list[bytes] = []
        self._name = b""
        # Bytes of the wire that are kept for the open event, its last line aside.  The wire's bytes are counted,
        # not the data's: each line costs memory, also an empty one.
        self._size = 0

    def feed(self, piece: bytes) -> list[SSEvent]:
        """Take the next bytes, any number of them; the events that they complete.  Raises EventTooLarge."""
        if not piece:
            return []
        if piece.startswith(b"data: ") and (event := self._alone(piece)) is not None:
            return [event]
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
        self._check(len(self._line))
        return events

    def _alone(self, piece: bytes) -> SSEvent | None:
        """The piece as one event, if it is just that and nothing is open: so tokens come, and they are read at once."""
        end = len(piece) - 2
        if (
            piece.find(b"\n") != end
            or piece[end + 1 :] != b"\n"
            or b"\r" in piece
            or self._line
            or self._data
            or self._name
            or (self._limit is not None and end + 1 > self._limit)
        ):
            return None
        start = self._start
        self._offset += len(piece)
        self._start = self._offset
        self._after_cr = False
        return _event(piece[6:end], "", start, self._offset)

    def finish(self) -> SSEvent | None:
        """The event that the end of the stream leaves unfinished.  By the standard it is dropped.

        Its last line may be cut anywhere, which only its data can tell.
        """
        rest = SSEDecoder(self._offset)
        rest._start, rest._data, rest._name = self._start, list(self._data), self._name
        if self._line:
            rest._take(bytes(self._line), self._offset)
        return rest._event(self._offset) if rest._data else None

    def state(self) -> tuple[object, ...]:
        """All that decides what happens next: equal states go on alike."""
        return (self._offset, self._start, self._after_cr, bytes(self._line), tuple(self._data), self._name)

    def _take(self, line: bytes, end: int) -> SSEvent | None:
        if not line:
            event = self._event(end) if self._data else None
            self._data = []
            self._name = b""
            self._start = end
            self._size = 0
            return event
        if line.startswith(_BOM) and end <= len(line) + 1:
            line = line[len(_BOM) :]
        field, _, value = line.partition(b":")
        value = value[1:] if value.startswith(b" ") else value
        if field == b"data":
            self._keep(value, line)
        elif field == b"event":
            self._name = value
        elif field == b"error":
            self._name = field
            self._keep(value, line)
        elif not field and line and self._comments:
            return SSEvent(value.decode("utf-8", "replace"), "", self._start, end, comment=True)
        return None

    def _keep(self, value: bytes, line: bytes) -> None:
        self._data.append(value)
        self._size += len(line) + 1
        self._check(0)

    def _check(self, more: int) -> None:
        if self._limit is not None and self._size + more > self._limit:
            raise EventTooLarge(f"an event of more than {self._limit} bytes")

    def _event(self, end: int) -> SSEvent:
        return _event(b"\n".join(self._data), self._name.decode("utf-8", "replace"), self._start, end)


def _event(raw: bytes, name: str, start: int, end: int) -> SSEvent:
    try:
        return SSEvent(raw.decode("utf-8"), name, start, end)
    except UnicodeDecodeError:
        return SSEvent(raw.decode("utf-8", "replace"), name, start, end, intact=False)


_read = json.JSONDecoder().raw_decode


def parse_json(text: str) -> Any:
    """``json.loads`` without what it does for texts that have blanks around them, where there are none.

    Raises ValueError, RecursionError.
    """
    try:
        value, end = _read(text)
    except ValueError:  # blanks before it, a byte order mark, or no JSON
        return json.loads(text)
    return value if end == len(text) else json.loads(text)


def read_chunk(event: SSEvent) -> dict[str, Any]:
    """The JSON object in an event.  Raises NotAChunk.

    What an event named ``error`` holds becomes ``{"error": …}``, as the same error would be under ``data``, unless
    it says so itself: ``{"error": …}`` or, in the Anthropic and Responses formats, ``{"type": "error", …}``.
    """
    failure = event.name == "error"
    try:
        if not event.intact:
            raise NotAChunk("the data is not UTF-8")
        value = parse_json(event.data)
    except RecursionError:
        raise NotAChunk("the data is nested too deep") from None
    except NotAChunk:
        raise
    except ValueError:
        if not failure:
            raise NotAChunk("the data is not JSON") from None
        value = event.data
    if failure and not (isinstance(value, dict) and (value.get("error") or value.get("type") == "error")):
        return {"error": value or {"message": ""}}
    if not isinstance(value, dict):
        raise NotAChunk("the data is not a JSON object")
    return value


DONE = b"data: [DONE]\n\n"

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


def encode_comment(text: str) -> bytes:
    """A line that clients skip.  ``text`` must not hold a line end."""
    return b": %b\n\n" % text.encode("utf-8", "replace")
