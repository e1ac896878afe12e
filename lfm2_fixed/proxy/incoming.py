"""The upstream's answer to a request that we wrote: what it turns out to be, whatever it says that it is."""

from __future__ import annotations

import json
import re
from collections.abc import AsyncIterator
from typing import Any, Literal

import httpx

from ..wire.sse import EventTooLarge, SSEDecoder, SSEvent
from .errors import ProxyError, UpstreamError
from .settings import LIMIT_OF_AN_EVENT
from .upstream import Upstream

Shape = Literal["events", "json", "other"]

_FIELD = re.compile(rb"(?:data|event|id|retry|error)?:|(?:data|event|id|retry)[\r\n]")
_LONGEST_FIELD = 6  # bytes of "event:", the longest that _FIELD can still be waiting for


def says_events(content_type: str) -> bool:
    """Whether this is the type of a stream, in whatever letters and with whatever parameters."""
    return content_type.partition(";")[0].strip().lower() == "text/event-stream"


def shape(begin: bytes, content_type: str) -> Shape | None:
    """What a body that begins like this is; None: more of it is needed.

    Servers and gateways send streams as ``text/plain`` or without any type, and whole replies in answer to
    requests for a stream.  The first visible character tells JSON; a stream is told by its first field.
    """
    begin = begin.removeprefix(b"\xef\xbb\xbf").lstrip(b" \t\r\n")
    if not begin:
        return None
    if begin[0] in b"{[":
        return "json"
    if _FIELD.match(begin) or says_events(content_type):
        return "events"
    return None if len(begin) < _LONGEST_FIELD else "other"


class Incoming:
    """A response, its body not read yet."""

    def __init__(self, response: httpx.Response, upstream: Upstream) -> None:
        self.status: int = response.status_code
        self.headers: list[tuple[bytes, bytes]] = response.headers.raw
        self.success: bool = response.is_success
        self._type: str = response.headers.get("content-type", "")
        self._pieces = upstream.pieces(response, decoded=True)
        self._begin = bytearray()  # what was read to see what it is

    @property
    def says_events(self) -> bool:
        """Whether its headers say that it is a stream."""
        return says_events(self._type)

    async def shape(self) -> Shape:
        """What the body is.  Raises ProxyError where it breaks off before that is known."""
        while (found := shape(bytes(self._begin), self._type)) is None:
            piece = await anext(self._pieces, None)
            if piece is None:
                raise ProxyError(502, "The upstream ended its answer too early.", kind="upstream_error")
            self._begin += piece
            if len(self._begin) > LIMIT_OF_AN_EVENT:
                raise _too_large()
        return found

    async def pieces(self) -> AsyncIterator[bytes]:
        """The body, without its content encoding."""
        if self._begin:
            yield bytes(self._begin)
            self._begin.clear()
        async for piece in self._pieces:
            yield piece

    async def events(self) -> AsyncIterator[list[SSEvent]]:
        """The body's events, those that come together in one list.  The last may lack its blank line."""
        decoder = SSEDecoder(comments=True, limit=LIMIT_OF_AN_EVENT)
        try:
            if self._begin:
                begin = bytes(self._begin)
                self._begin.clear()
                yield decoder.feed(begin)
            async for piece in self._pieces:
                yield decoder.feed(piece)
        except EventTooLarge as large:
            raise ProxyError(502, f"The upstream sent {large}.", kind="upstream_error") from None
        unfinished = decoder.finish()
        if unfinished is not None:
            yield [unfinished]

    async def body(self) -> bytes:
        """The whole body."""
        body = bytearray()
        async for piece in self.pieces():
            body += piece
            if len(body) > LIMIT_OF_AN_EVENT:
                raise _too_large()
        return bytes(body)

    async def reply(self) -> dict[str, Any]:
        """The body as a whole chat reply; raises as ``reply_in``."""
        return self.reply_in(await self.body())

    def reply_in(self, body: bytes) -> dict[str, Any]:
        """The chat reply in a body.  Raises UpstreamError with what it says if there is none, or an error with it."""
        value = _object(body)
        if value is None or value.get("error") or not isinstance(value.get("choices"), list):
            raise UpstreamError(error_in(self.status, body))
        return value


def error_in(status: int, body: bytes) -> dict[str, Any]:
    """What a body that is no reply says, as an error."""
    value = _object(body)
    if value is not None and value.get("error"):
        return value
    text = body[:1000].decode("utf-8", "replace")
    return {"message": f"The upstream answered {status}: {text}", "type": "upstream_error", "code": status}


def _object(data: bytes) -> dict[str, Any] | None:
    try:
        # By the standard there is no mark before JSON, but some servers write one.
        value = json.loads(data.removeprefix(b"\xef\xbb\xbf"))
    except (ValueError, RecursionError):
        return None
    return value if isinstance(value, dict) else None


def _too_large() -> ProxyError:
    return ProxyError(502, f"The upstream's answer is larger than {LIMIT_OF_AN_EVENT} bytes.", kind="upstream_error")
