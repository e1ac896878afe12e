"""The server's side of HTTP: uvicorn's protocol on h11, with a limit of time for headers and errors in JSON.

h11 also where httptools is installed: it reads requests by the letter of RFC 9112, so that what is refused does not
depend on which packages happen to be there.
"""

from __future__ import annotations

import asyncio
from http import HTTPStatus
from typing import Any

import h11
from uvicorn.protocols.http.h11_impl import H11Protocol

from ..wire.sse import encode_json
from .errors import ProxyError


class _Connection(h11.Connection):
    """An h11 connection in which the middle of a body takes a short way.

    Data leaves every state as it is; so where h11 has framed one piece as a chunk, the next is framed alike.  (What
    h11 does to find that out again takes as long as this package's machine takes for the text.)
    """

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self._in_chunks = False

    def send(self, event: Any) -> Any:
        data = event.data if type(event) is h11.Data else b""
        chunk = b"%x\r\n%b\r\n" % (len(data), data) if data else b""  # an empty one would end the body
        if chunk and self._in_chunks:
            return chunk
        self._in_chunks = False  # also where h11 refuses
        sent = super().send(event)
        self._in_chunks = bool(chunk) and sent == chunk
        return sent


def protocol(patience: float) -> type[H11Protocol]:
    """The protocol class for uvicorn.

    ``patience``: seconds in which a client must have sent the headers of its next request, counted from the
    connection's beginning or the request's first byte; 0: no limit.  uvicorn waits for ever, so that a client which
    sends a byte a minute, or nothing, keeps a connection.
    """

    class Protocol(H11Protocol):  # type: ignore[misc]  # uvicorn has no types here
        def __init__(self, *args: Any, **kwargs: Any) -> None:
            super().__init__(*args, **kwargs)
            self.conn = _Connection(h11.SERVER)
            self._deadline: asyncio.TimerHandle | None = None

        def connection_made(self, transport: Any) -> None:
            super().connection_made(transport)
            self._wait()

        def data_received(self, data: bytes) -> None:
            super().data_received(data)
            self._wait()

        def connection_lost(self, exc: Exception | None) -> None:
            self._stop_waiting()
            super().connection_lost(exc)

        def _wait(self) -> None:
            """Begin to count, or stop: headers are awaited between requests only."""
            if self.conn.their_state is not h11.IDLE:
                self._stop_waiting()
            elif self._deadline is None and patience:
                self._deadline = self.loop.call_later(patience, self._give_up)

        def _stop_waiting(self) -> None:
            if self._deadline is not None:
                self._deadline.cancel()
                self._deadline = None

        def _give_up(self) -> None:
            self._deadline = None
            if self.conn.their_state is h11.IDLE and not self.transport.is_closing():
                if self.conn.trailing_data[0]:
                    self._refuse(ProxyError(408, "The request's headers did not arrive in time.", kind="timeout_error"))
                else:
                    self.transport.close()  # it never said anything

        def send_400_response(self, msg: str) -> None:
            self._refuse(ProxyError(400, msg, kind="invalid_request_error"))

        def _refuse(self, error: ProxyError) -> None:
            """Answer what is no request, and close the connection."""
            data = encode_json(error.body())
            headers = [
                (b"content-type", b"application/json"),
                (b"content-length", b"%d" % len(data)),
                (b"connection", b"close"),
            ]
            if self.conn.our_state in (h11.IDLE, h11.SEND_RESPONSE):  # no answer is under way
                reason = HTTPStatus(error.status).phrase.encode()
                head = h11.Response(status_code=error.status, headers=headers, reason=reason)
                for event in (head, h11.Data(data=data)):
                    self.transport.write(self.conn.send(event))
            self.transport.close()

    return Protocol
