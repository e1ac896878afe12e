"""One request of a client, as ASGI gives it: its body, its departure, its answer."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine
from typing import Any, TypeVar, cast

import anyio
from starlette.types import Message, Receive, Scope, Send

from ..wire.sse import encode_json
from .errors import ProxyError
from .settings import Settings
from .upstream import Headers

Result = TypeVar("Result")


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
        """The answer is a stream of events, so that an error can be one."""
        self._receive = receive
        self._send = send
        self._settings = settings
        self._received = anyio.Event()
        if not self.has_body:
            self._received.set()

    @property
    def started(self) -> bool:
        """Whether a status has been sent."""
        return self.status != 0

    @property
    def has_body(self) -> bool:
        """Whether the request has a body."""
        return any(name in (b"content-length", b"transfer-encoding") for name, _ in self.headers)

    def header(self, name: bytes) -> bytes:
        """The first header of this (lower-case) name, or nothing."""
        return next((value for key, value in self.headers if key == name), b"")

    # ---- in

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
        return b"".join([piece async for piece in self.body_pieces()])

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

    async def start(self, status: int, headers: Headers) -> None:
        """Send the status and the headers."""
        self.status = status
        self._received.set()  # what is left of the body is of no interest now
        await self._send({"type": "http.response.start", "status": status, "headers": headers})

    async def write(self, data: bytes) -> None:
        """Send a piece of the body; waits while the client is slow."""
        self.sent += len(data)
        await self._send({"type": "http.response.body", "body": data, "more_body": True})

    async def end(self) -> None:
        """The body is complete."""
        await self._send({"type": "http.response.body", "body": b"", "more_body": False})
        self.complete = True

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
