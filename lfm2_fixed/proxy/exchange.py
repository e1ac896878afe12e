"""One request of a client, as ASGI gives it: its body, its departure, its answer."""

from __future__ import annotations

import re
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine
from typing import Any, TypeVar, cast

import anyio
from starlette.types import Message, Receive, Scope, Send

from ..wire.sse import encode_comment, encode_json
from .errors import ProxyError
from .settings import Settings
from .upstream import Headers, end_to_end

Result = TypeVar("Result")

EVENT_STREAM: Headers = [
    (b"content-type", b"text/event-stream; charset=utf-8"),
    (b"cache-control", b"no-cache"),
    (b"x-accel-buffering", b"no"),  # nginx would collect the stream otherwise
]

_OF_THE_BODY = (b"content-type", b"content-length", b"content-encoding", b"transfer-encoding", b"etag")
"""Headers that describe a body which is not passed on as it is."""

_ABSOLUTE = re.compile(rb"https?://[^/?#]*", re.IGNORECASE)


def origin_form(target: bytes) -> bytes:
    """A request target as servers take it: path and query.

    RFC 9112, 3.2.2: a server must accept the absolute form (``GET http://host/path``), which clients that take us
    for a forward proxy send.  The host in it is the client's name for us, and says nothing to the upstream.
    """
    found = _ABSOLUTE.match(target)
    if found is None:
        return target
    rest = target[found.end() :]
    return rest if rest.startswith(b"/") else b"/" + rest


class ClientGone(Exception):
    """The client closed the connection."""


class Exchange:
    """Receives within limits, sends, and counts what the access log wants to know."""

    def __init__(self, scope: Scope, receive: Receive, send: Send, settings: Settings) -> None:
        self.method: str = scope["method"]
        self.path: str = scope["path"]
        query = scope.get("query_string", b"")
        self.target: bytes = scope.get("raw_path") or self.path.encode()
        if query:
            self.target += b"?" + query
        self.headers: Headers = scope["headers"]
        self.status = 0
        self.sent = 0
        self.note = ""
        """What was done, for the access log."""
        self.complete = False
        self.streaming = False
        """The answer is a stream of events that we write, so that an error can be one of them."""
        self.inherited: Headers = []
        """What an answer of ours takes over from the upstream's: request id, CORS and the like.  Before there is one:
        what is known without it."""
        self._receive = receive
        self._send = send
        self._settings = settings
        self._received = anyio.Event()
        # Heartbeats are written beside the answer, and what is sent must be sent in order.  Not anyio's lock, which
        # costs as much as the rest of a write: hardly ever has anyone to wait.
        self._sending = False
        self._sent: anyio.Event | None = None  # what those who wait wait for
        self._last = time.monotonic()  # when something was sent
        if not self.has_body:
            self._received.set()

    @property
    def started(self) -> bool:
        """Whether a status has been sent."""
        return self.status != 0

    @property
    def received(self) -> bool:
        """Whether all of the request has been read."""
        return self._received.is_set()

    @property
    def has_body(self) -> bool:
        """Whether the request has a body."""
        return any(name in (b"content-length", b"transfer-encoding") for name, _ in self.headers)

    def header(self, name: bytes) -> bytes:
        """The first header of this (lower-case) name, or nothing."""
        return next((value for key, value in self.headers if key == name), b"")

    # ---- in

    def check(self) -> None:
        """Refuse what no server behind us should have to interpret.  Raises ProxyError (400, 501)."""
        if self.method == "CONNECT":
            raise ProxyError(501, "This proxy makes no tunnels (CONNECT).", kind="invalid_request_error")
        if not self.target.startswith(b"/"):
            raise ProxyError(
                400, "The request's target must be a path such as /v1/models.", kind="invalid_request_error"
            )
        names = {name for name, _ in self.headers}
        if {b"content-length", b"transfer-encoding"} <= names:
            # RFC 9112, 6.1: whoever takes the other of the two for the body's end sees another request in it.
            raise ProxyError(
                400,
                "A request must not have both Content-Length and Transfer-Encoding.",
                kind="invalid_request_error",
            )

    async def body_pieces(self) -> AsyncIterator[bytes]:
        """The body as it comes.  Raises ProxyError (408, 413), ClientGone."""
        limit = self._settings.max_body
        if limit and self.header(b"content-length").isdigit() and int(self.header(b"content-length")) > limit:
            raise self._too_large()
        size = 0
        more = self.has_body
        while more:
            message = await self._next()
            if message["type"] == "http.disconnect":
                raise ClientGone
            piece = message.get("body", b"")
            more = message.get("more_body", False)
            size += len(piece)
            if limit and size > limit:
                raise self._too_large()
            if piece:
                yield piece
        self._received.set()

    async def body(self) -> bytes:
        """The whole body."""
        # Not a list of pieces: each would cost some 40 bytes, and a client may send them of one byte each.
        body = bytearray()
        async for piece in self.body_pieces():
            body += piece
        return bytes(body)

    async def _next(self) -> Message:
        timeout = self._settings.client_timeout or None
        try:
            with anyio.fail_after(timeout):
                return await self._receive()
        except TimeoutError:
            raise ProxyError(408, "The request's body did not arrive in time.", kind="timeout_error") from None

    def _too_large(self) -> ProxyError:
        return ProxyError(
            413,
            f"The request's body is larger than {self._settings.max_body} bytes (--max-body).",
            kind="invalid_request_error",
        )

    async def unless_gone(self, work: Callable[[], Awaitable[None]]) -> None:
        """Do the work, and cancel it at once when the client goes.  Raises ClientGone in that case."""
        gone = False

        async def watch(cancel: Callable[[], None]) -> None:
            nonlocal gone
            await self._received.wait()
            while (await self._receive())["type"] != "http.disconnect":
                pass
            gone = True
            cancel()

        await beside(watch, work)
        if gone and not self.complete:
            raise ClientGone

    # ---- out

    def inherit(self, headers: Headers) -> None:
        """Take these headers of the upstream's answer over into ours, as far as they do not describe its body."""
        self.inherited = end_to_end(headers, *_OF_THE_BODY)

    async def start(self, status: int, headers: Headers) -> None:
        """Send the status and the headers."""
        self.status = status
        self._received.set()  # what is left of the body is of no interest now
        await self._in_order({"type": "http.response.start", "status": status, "headers": headers})

    async def start_stream(self) -> None:
        """Begin a stream of events of our own, if a heartbeat has not begun it."""
        if not self.started:
            self.streaming = True
            ours = {name for name, _ in EVENT_STREAM}
            inherited = [(name, value) for name, value in self.inherited if name not in ours]
            await self.start(200, [*inherited, *EVENT_STREAM])

    async def write(self, data: bytes) -> None:
        """Send a piece of the body; waits while the client is slow."""
        self.sent += len(data)
        await self._in_order({"type": "http.response.body", "body": data, "more_body": True})
        self._last = time.monotonic()

    async def end(self) -> None:
        """The body is complete."""
        await self._in_order({"type": "http.response.body", "body": b"", "more_body": False})
        self.complete = True

    async def _in_order(self, message: Message) -> None:
        while self._sending:
            self._sent = self._sent or anyio.Event()
            await self._sent.wait()
        self._sending = True
        try:
            await self._send(message)
        finally:
            self._sending = False
            if self._sent is not None:
                self._sent.set()
                self._sent = None

    async def answer_json(self, status: int, value: object, headers: Headers | None = None) -> None:
        """A whole answer."""
        data = encode_json(value)
        await self.start(
            status,
            [
                *(headers or []),
                (b"content-type", b"application/json"),
                (b"content-length", b"%d" % len(data)),
            ],
        )
        await self.write(data)
        await self.end()

    async def with_heartbeats(self, work: Callable[[], Awaitable[Result]]) -> Result:
        """Do the work; while it sends nothing for a while, say in a comment that the stream lives.

        That begins the stream, with status 200, if the work has not begun an answer by then: prompts may take
        minutes, and what lies between would take the connection for dead.
        """
        pause = self._settings.heartbeat
        if not pause:
            return await work()
        self._last = time.monotonic()

        async def beat(_: object) -> None:
            while self.streaming or not self.started:
                wait = self._last + pause - time.monotonic()
                if wait > 0:
                    await anyio.sleep(wait)
                elif self._sending:
                    await anyio.sleep(pause)  # the client is slow, not we
                else:
                    await self.start_stream()
                    await self.write(encode_comment("heartbeat"))

        return await beside(beat, work)


async def beside(
    background: Callable[[Callable[[], None]], Coroutine[Any, Any, None]], work: Callable[[], Awaitable[Result]]
) -> Result:
    """Do the work while ``background`` runs, which is given a function that cancels the work.

    Cancelled work gives None.
    """
    result: Result | None = None
    failure: Exception | None = None
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(background, tasks.cancel_scope.cancel)
        try:
            result = await work()
        except Exception as error:  # raised below: the group would wrap it
            failure = error
        tasks.cancel_scope.cancel()
    if failure is not None:
        raise failure
    return cast(Result, result)
