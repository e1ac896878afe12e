"""The proxy as an ASGI application."""

from __future__ import annotations

import json
import logging
import time
from collections.abc import AsyncIterator, Iterable
from contextlib import asynccontextmanager
from typing import Any

import anyio
from starlette.applications import Starlette
from starlette.responses import JSONResponse
from starlette.routing import Route
from starlette.types import Receive, Scope, Send

from ..wire.sse import DONE, EventTooLarge, NotAChunk, SSEDecoder, SSEvent, encode_comment, encode_event, read_chunk
from . import as_stream
from .errors import ProxyError, UpstreamError
from .exchange import ClientGone, Exchange, beside
from .reply import ChunkTranslator, translate_reply
from .request import Request, raw_text_request, read_request, whole_reply_request
from .settings import LIMIT_OF_AN_EVENT, Settings
from .upstream import Headers, Kind, Upstream, end_to_end

log = logging.getLogger("lfm2_fixed.proxy")
access_log = logging.getLogger("lfm2_fixed.proxy.access")

_EVENT_STREAM: Headers = [
    (b"content-type", b"text/event-stream; charset=utf-8"),
    (b"cache-control", b"no-cache"),
    (b"x-accel-buffering", b"no"),
]


def create_app(settings: Settings) -> Starlette:
    """The application.  Raises ValueError for settings that cannot be.

    Its lifespan opens and closes the upstream; ``/health`` says whether that is well; everything
    else goes to the upstream, chat completions with tools by way of the machine.
    """
    proxy = Proxy(settings)

    @asynccontextmanager
    async def lifespan(app: Starlette) -> AsyncIterator[None]:
        async with proxy.upstream, anyio.create_task_group() as tasks:
            tasks.start_soon(proxy.introduce)  # the upstream may take its time
            yield
            tasks.cancel_scope.cancel()

    app = Starlette(lifespan=lifespan, routes=[Route("/health", proxy.health)])
    app.router.redirect_slashes = False
    app.router.default = proxy  # a route would not match every path
    return app


class Proxy:
    """Answers requests."""

    def __init__(self, settings: Settings) -> None:
        self.settings = settings
        self.upstream = Upstream(settings)
        self.active = 0
        """Requests being answered."""

    async def introduce(self) -> None:
        """Say in the log what the upstream is, if it is there already."""
        try:
            await self.upstream.kind()
        except ProxyError as error:
            log.warning("%s It will be asked again with the first request.", error.message)

    # ---- every request

    async def health(self, _: object) -> JSONResponse:
        """``/health``: 200 if the upstream is well, else 503."""
        healthy = await self.upstream.healthy()
        answer = {"status": "ok" if healthy else "upstream unavailable", "active": self.active}
        return JSONResponse(answer, status_code=200 if healthy else 503)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            return
        exchange = Exchange(scope, receive, send, self.settings)
        begin = time.monotonic()
        self.active += 1
        outcome = ""
        try:
            if self.settings.max_requests and self.active > self.settings.max_requests:
                raise ProxyError(503, "The proxy is busy (--max-requests); try again.", kind="overloaded_error")
            await exchange.unless_gone(lambda: self._answer(exchange))
        except ClientGone:
            outcome = " (client gone)"
        except ProxyError as error:
            outcome = f" ({error.kind})"
            await self._fail(exchange, error)
        except BaseException:
            outcome = " (failed)"
            raise
        finally:
            self.active -= 1
            access_log.info(
                "%s %s %s %d %d bytes %.3f s%s%s",
                (scope.get("client") or ["-"])[0],
                exchange.method,
                exchange.target.partition(b"?")[0].decode("latin-1"),
                exchange.status,
                exchange.sent,
                time.monotonic() - begin,
                f" {exchange.note}" if exchange.note else "",
                outcome,
            )

    async def _fail(self, exchange: Exchange, error: ProxyError) -> None:
        if not exchange.started:
            headers: Headers = [(b"retry-after", b"1")] if error.status == 503 else []
            if error.status in (408, 413, 503):
                headers.append((b"connection", b"close"))  # the body has not been read
            await exchange.answer_json(error.status, error.body(), headers)
        elif exchange.streaming:
            # An event of its own, also where the one before was cut.
            await exchange.write(b"\n\n" + encode_event(error.body()))
            await exchange.end()
        # else: left incomplete, so that the client does not take a part for the whole

    async def _answer(self, exchange: Exchange) -> None:
        if not (
            exchange.method == "POST"
            and exchange.path.endswith("/chat/completions")
            and exchange.header(b"content-encoding") in (b"", b"identity")
        ):
            await self._pass(exchange, exchange.body_pieces() if exchange.has_body else None)
            return
        raw = await exchange.body()
        request = read_request(raw, gate=self.settings.gate)
        if request is None:
            await self._pass(exchange, raw)
            return
        kind = await self.upstream.kind()
        if self.upstream.mode(kind) == "parse":
            exchange.note = "parse"
            if request.streaming:
                await self._parse_stream(exchange, request, kind)
            else:
                await self._parse_whole(exchange, request, kind)
        elif request.choice.none or not (request.streaming or self.settings.gate):
            await self._pass(exchange, raw)
        else:
            exchange.note = "buffer"
            if request.streaming:
                await self._buffer_stream(exchange, request)
            else:
                await self._buffer_whole(exchange, request, raw)

    # ---- untouched

    async def _pass(self, exchange: Exchange, content: bytes | AsyncIterator[bytes] | None) -> None:
        fresh = isinstance(content, bytes)  # generation, which is worth a connection of its own
        async with self.upstream.send(
            exchange.method, exchange.target, exchange.headers, content, fresh=fresh
        ) as response:
            await self._pass_on(exchange, response)

    async def _pass_on(self, exchange: Exchange, response: Any) -> None:
        """Status, headers and body as they come."""
        exchange.streaming = response.headers.get("content-type", "").startswith("text/event-stream")
        await exchange.start(response.status_code, end_to_end(response.headers.raw))
        async for piece in self.upstream.pieces(response):
            await exchange.write(piece)
        await exchange.end()

    # ---- parse: the model's own text, read here

    @asynccontextmanager
    async def _ask(self, exchange: Exchange, content: bytes) -> AsyncIterator[Any]:
        """The upstream's response to a body of ours."""
        headers = [
            *end_to_end(exchange.headers, b"content-length", b"accept-encoding"),
            (b"accept-encoding", b"identity"),
        ]
        async with self.upstream.send(exchange.method, exchange.target, headers, content, fresh=True) as response:
            yield response

    async def _parse_stream(self, exchange: Exchange, request: Request, kind: Kind) -> None:
        async with self._ask(exchange, raw_text_request(request, kind.name)) as response:
            if not (response.is_success and response.headers.get("content-type", "").startswith("text/event-stream")):
                await self._pass_on(exchange, response)
                return
            exchange.streaming = True
            await exchange.start(response.status_code, end_to_end(response.headers.raw, b"content-length"))
            translator = ChunkTranslator(request, self.settings)
            decoder = SSEDecoder(comments=True, limit=LIMIT_OF_AN_EVENT)
            last = anyio.current_time()
            async for piece in self.upstream.pieces(response):
                try:
                    events = decoder.feed(piece)
                except EventTooLarge as large:
                    raise ProxyError(502, f"The upstream sent {large}.", kind="upstream_error") from None
                done, data, error = _translate(events, translator)
                now = anyio.current_time()
                if not data and self.settings.heartbeat and now - last >= self.settings.heartbeat:
                    data = encode_comment("heartbeat")
                if data:
                    last = now
                    await exchange.write(data)
                if done or error is not None:
                    break
            else:
                unfinished = decoder.finish()
                done, data, error = _translate([unfinished] if unfinished else [], translator)
                await exchange.write(data)
            if error is not None:
                raise error
            if not (done or translator.complete):
                raise ProxyError(502, "The upstream ended its answer too early.", kind="upstream_error")
            exchange.note += f" calls={translator.calls}"
            await exchange.write(DONE)
            await exchange.end()

    async def _parse_whole(self, exchange: Exchange, request: Request, kind: Kind) -> None:
        answer = await self._whole(exchange, raw_text_request(request, kind.name))
        if answer.reply is None:
            await answer.pass_on(exchange)
            return
        calls = translate_reply(answer.reply, request, self.settings)
        exchange.note += f" calls={calls}"
        await exchange.answer_json(200, answer.reply, answer.headers)

    # ---- buffer: the server's own reading, asked for in one piece

    async def _buffer_whole(self, exchange: Exchange, request: Request, raw: bytes) -> None:
        answer = await self._whole(exchange, raw)
        if answer.reply is not None:
            exchange.note += f" calls={as_stream.check_reply(answer.reply, request)}"
        await answer.pass_on(exchange)

    async def _buffer_stream(self, exchange: Exchange, request: Request) -> None:
        exchange.streaming = True

        async def heartbeats(_: object) -> None:
            while self.settings.heartbeat:
                await anyio.sleep(self.settings.heartbeat)
                if not exchange.started:
                    await exchange.start(200, _EVENT_STREAM)
                await exchange.write(encode_comment("heartbeat"))

        answer = await beside(heartbeats, lambda: self._whole(exchange, whole_reply_request(request)))
        if answer.reply is None:
            if exchange.started:
                raise UpstreamError(answer.error())
            await answer.pass_on(exchange)
            return
        exchange.note += f" calls={as_stream.check_reply(answer.reply, request)}"
        if not exchange.started:
            await exchange.start(200, _EVENT_STREAM)
        await exchange.write(b"".join([*map(encode_event, as_stream.chunks(answer.reply, request)), DONE]))
        await exchange.end()

    async def _whole(self, exchange: Exchange, content: bytes) -> _Whole:
        """The upstream's answer in one piece."""
        async with self._ask(exchange, content) as response:
            body: list[bytes] = []
            size = 0
            async for piece in self.upstream.pieces(response):
                size += len(piece)
                if size > LIMIT_OF_AN_EVENT:
                    raise ProxyError(502, f"The upstream's answer is larger than {LIMIT_OF_AN_EVENT} bytes.")
                body.append(piece)
        return _Whole(response.status_code, response.headers.raw, b"".join(body))


class _Whole:
    """A whole answer of the upstream.  ``reply``: its chat reply, or None if it is none."""

    def __init__(self, status: int, headers: Headers, body: bytes) -> None:
        self._status = status
        self._headers = headers
        self._body = body
        self.headers = end_to_end(headers, b"content-length", b"content-type")
        self.reply: dict[str, Any] | None = None
        if 200 <= status < 300:
            value = _object(body)
            if value is not None and isinstance(value.get("choices"), list):
                self.reply = value

    async def pass_on(self, exchange: Exchange) -> None:
        """Answer with it as it is."""
        await exchange.start(self._status, end_to_end(self._headers))
        await exchange.write(self._body)
        await exchange.end()

    def error(self) -> dict[str, Any]:
        """What it says, as an error."""
        value = _object(self._body)
        if value is not None and "error" in value:
            return value
        text = self._body[:1000].decode("utf-8", "replace")
        return {
            "message": f"The upstream answered {self._status}: {text}",
            "type": "upstream_error",
            "code": self._status,
        }


def _object(data: bytes) -> dict[str, Any] | None:
    """The JSON object, or None."""
    try:
        value = json.loads(data)
    except ValueError:
        return None
    return value if isinstance(value, dict) else None


def _translate(events: Iterable[SSEvent], translator: ChunkTranslator) -> tuple[bool, bytes, ProxyError | None]:
    """Whether ``[DONE]`` came, the bytes to send, and the error that ends the stream, if any."""
    out: list[bytes] = []
    for event in events:
        if event.comment:
            out.append(encode_comment(event.data))
            continue
        if event.done:
            return True, b"".join(out), None
        try:
            out += map(encode_event, translator.translate(read_chunk(event)))
        except ProxyError as error:
            return False, b"".join(out), error
        except (NotAChunk, TypeError, AttributeError, KeyError):
            bad = ProxyError(502, "The upstream sent an event that is no chat completion chunk.", kind="upstream_error")
            return False, b"".join(out), bad
    return False, b"".join(out), None
