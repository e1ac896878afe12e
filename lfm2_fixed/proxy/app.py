"""The proxy as an ASGI application."""

from __future__ import annotations

import logging
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from urllib.parse import unquote

import anyio
from anyio import to_thread
from starlette.applications import Starlette
from starlette.responses import JSONResponse
from starlette.routing import Route
from starlette.types import ASGIApp, Receive, Scope, Send

from ..wire.sse import encode_event
from .browsers import Origins
from .errors import ProxyError
from .exchange import ClientGone, Exchange, origin_form
from .modes import Modes, pass_on
from .request import read_request
from .settings import Settings
from .upstream import Headers, Upstream

log = logging.getLogger("lfm2_fixed.proxy")
access_log = logging.getLogger("lfm2_fixed.proxy.access")

_LARGE = 2**18
"""Bytes of a request that is read off the event loop: reading them takes a few milliseconds."""


def create_app(settings: Settings) -> ASGIApp:
    """The application.  Raises ValueError for settings that cannot be.

    Its lifespan opens and closes the upstream; ``/health`` says whether that is well; everything
    else goes to the upstream, chat completions with tools by way of the machine.
    """
    proxy = Proxy(settings)

    @asynccontextmanager
    async def lifespan(app: Starlette) -> AsyncIterator[None]:
        async with proxy.upstream, anyio.create_task_group() as tasks:
            if settings.mode != "buffer":  # which needs no introduction
                tasks.start_soon(proxy.introduce)  # the upstream may take its time
            yield
            tasks.cancel_scope.cancel()

    return _Front(Starlette(lifespan=lifespan, routes=[Route(_HEALTH, proxy.health)]), proxy)


_HEALTH = "/health"


class _Front:
    """Decides what is ours; targets go on in their usual form only (:func:`origin_form`).

    The proxy is no route of the application's: none would match every path, and what starlette puts around each
    message that is sent, for errors that the proxy answers itself, would cost a twentieth of a chunk.
    """

    def __init__(self, ours: ASGIApp, proxy: ASGIApp) -> None:
        self._ours = ours
        self._proxy = proxy

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        raw = scope.get("raw_path") or b""
        if raw and raw[:1] != b"/":  # only HTTP requests have it
            raw = origin_form(raw)
            scope = {**scope, "raw_path": raw, "path": unquote(raw.decode("latin-1"))}
        ours = scope["type"] != "http" or scope["path"].removeprefix(scope.get("root_path", "")) == _HEALTH
        await (self._ours if ours else self._proxy)(scope, receive, send)


class Proxy:
    """Answers requests."""

    def __init__(self, settings: Settings) -> None:
        self.settings = settings
        self.upstream = Upstream(settings)
        self.origins = Origins()
        self._modes = Modes(settings, self.upstream, self.origins)
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
        exchange = Exchange(scope, receive, send, self.settings)
        exchange.inherited = self.origins.headers(exchange.header(b"origin"))
        begin = time.monotonic()
        self.active += 1
        outcome = ""
        try:
            if self.settings.max_requests and self.active > self.settings.max_requests:
                raise ProxyError(503, "The proxy is busy (--max-requests); try again.", kind="overloaded_error")
            exchange.check()
            await exchange.unless_gone(lambda: self._answer(exchange))
        except ClientGone:
            outcome = " (client gone)"
        except ProxyError as error:
            outcome = f" ({error.kind})"
            await self._fail(exchange, error)
        except RecursionError:
            outcome = " (too deep)"
            await self._fail(
                exchange, ProxyError(502, "The upstream's answer is nested too deep.", kind="upstream_error")
            )
        except Exception:  # a fault of ours: a client is owed an answer that it can read, and we are owed a report
            outcome = " (failed)"
            log.exception("A request failed; please report this.")
            await self._fail(exchange, ProxyError(500, "The proxy failed; its log says why.", kind="internal_error"))
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
            if not exchange.received:
                headers.append((b"connection", b"close"))  # what is left of the body is no request
            headers += exchange.inherited
            await exchange.answer_json(error.status, error.body(), headers)
        elif exchange.streaming:
            # An event of its own, also where the one before was cut.
            await exchange.write(b"\n\n" + encode_event(error.body()))
            await exchange.end()
        # else: left incomplete, so that the client does not take a part for the whole

    async def _answer(self, exchange: Exchange) -> None:
        chat = exchange.method == "POST" and exchange.path.endswith("/chat/completions")
        packed = exchange.header(b"content-encoding") not in (b"", b"identity")
        if chat and packed and self.settings.gate:  # what is in it would be answered unchecked
            raise ProxyError(
                415, "The gate reads requests without a content encoding only.", kind="invalid_request_error"
            )
        if not chat or packed:
            await self._pass(exchange, exchange.body_pieces() if exchange.has_body else None)
            return
        raw = await exchange.body()
        try:
            if self.settings.gate or len(raw) > _LARGE:
                request = await to_thread.run_sync(lambda: read_request(raw, gate=self.settings.gate))
            else:
                request = read_request(raw)
        except RecursionError:
            raise ProxyError(
                400, "The request cannot be read: its tools are nested too deep.", kind="invalid_request_error"
            ) from None
        if request is None:
            await self._pass(exchange, raw)
            return
        kind = await self.upstream.kind([pair for pair in exchange.headers if pair[0] == b"authorization"])
        if self.upstream.mode(kind) == "buffer" and request.choice.none:
            await self._pass(exchange, raw)
        else:
            await self._modes.answer(exchange, request, kind, raw)

    # ---- untouched

    async def _pass(self, exchange: Exchange, content: bytes | AsyncIterator[bytes] | None) -> None:
        fresh = isinstance(content, bytes)  # generation, which is worth a connection of its own
        async with self.upstream.send(
            exchange.method, exchange.target, exchange.headers, content, fresh=fresh
        ) as response:
            self.origins.learn(response.headers.raw)
            await pass_on(exchange, self.upstream, response)
