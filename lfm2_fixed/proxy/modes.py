"""A chat request with tools, answered: by reading the model's own text here, or by having the server read it."""

from __future__ import annotations

import logging
from collections.abc import AsyncIterator, Callable, Iterable, Mapping
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from functools import partial
from typing import Any, NamedTuple, TypeVar

import httpx
from anyio import to_thread

from ..wire.sse import DONE, NotAChunk, SSEvent, encode_comment, encode_event, read_chunk
from . import as_stream
from .browsers import Origins
from .constrain import REFUSALS, Constraints
from .errors import ProxyError, UpstreamError, bad_chunk
from .exchange import Exchange
from .incoming import Incoming, error_in
from .reply import ChunkTranslator, holds_markers, translate_reply, warn_once
from .request import Request, raw_text_request, whole_reply_request
from .settings import Settings
from .upstream import Kind, Upstream, end_to_end

log = logging.getLogger("lfm2_fixed.proxy")

Result = TypeVar("Result")


class Modes:
    """Answers chat requests in the modes ``parse`` and ``buffer``."""

    def __init__(self, settings: Settings, upstream: Upstream, origins: Origins) -> None:
        self._settings = settings
        self._upstream = upstream
        self._origins = origins
        self._constraints = Constraints(settings)

    async def answer(self, exchange: Exchange, request: Request, kind: Kind, raw: bytes) -> None:
        """Answer in the mode that suits the upstream's kind.  ``raw``: the request as the client sent it."""
        parse = self._upstream.mode(kind) == "parse"
        exchange.note = "parse" if parse else "buffer"
        if parse and request.streaming:
            await exchange.with_heartbeats(lambda: self._parse_stream(exchange, request, kind))
        elif parse:
            await self._parse_whole(exchange, request, kind)
        elif request.streaming:
            await exchange.with_heartbeats(lambda: self._buffer_stream(exchange, request))
        else:
            await self._buffer_whole(exchange, request, raw)

    @asynccontextmanager
    async def _ask(self, exchange: Exchange, content: bytes) -> AsyncIterator[httpx.Response]:
        """The upstream's response to a body of ours."""
        headers = [
            *end_to_end(exchange.headers, b"content-length", b"accept-encoding"),
            (b"accept-encoding", b"identity"),  # what is read here need not be packed
        ]
        async with self._upstream.send(exchange.method, exchange.target, headers, content, fresh=True) as response:
            self._origins.learn(response.headers.raw)
            exchange.inherit(response.headers.raw)
            yield response

    # ---- parse: the model's own text, read here

    async def _constraint(self, request: Request, kind: Kind) -> dict[str, Any]:
        """The fields that hold the model to the request, where it asks for that and the upstream can."""
        if not self._constraints.wanted(request, kind):
            return {}
        # Off the event loop: hostile tools may take 0.2 s.
        return await to_thread.run_sync(lambda: self._constraints.fields(request, kind))

    @asynccontextmanager
    async def _ask_raw(
        self, exchange: Exchange, request: Request, kind: Kind, constraint: Mapping[str, Any]
    ) -> AsyncIterator[httpx.Response]:
        """The response with the model's own text; without the ``constraint`` where the upstream refuses that."""
        if constraint:
            async with self._ask(exchange, raw_text_request(request, kind, constraint)) as response:
                if response.status_code not in REFUSALS:
                    yield response
                    return
                said = (await Incoming(response, self._upstream).body()).decode("utf-8", "replace")
        async with self._ask(exchange, raw_text_request(request, kind, {})) as response:
            if constraint and response.is_success:
                self._constraints.refused(constraint, kind, said)
            yield response

    async def _parse_stream(self, exchange: Exchange, request: Request, kind: Kind) -> None:
        constraint = await self._constraint(request, kind)
        try:
            await self._stream(exchange, request, kind, constraint)
        except _RefusedInStream as refusal:
            await self._stream(exchange, request, kind, {})
            self._constraints.refused(constraint, kind, refusal.said)

    async def _stream(self, exchange: Exchange, request: Request, kind: Kind, constraint: Mapping[str, Any]) -> None:
        async with self._ask_raw(exchange, request, kind, constraint) as response:
            if not response.is_success:
                await self._refused(exchange, response)
                return
            incoming = Incoming(response, self._upstream)
            if incoming.says_events:
                await exchange.start_stream()  # the client sees at once that it is served
            shape = await incoming.shape()
            if shape == "json":
                reply = await incoming.reply()
                calls = await self._judged(request, lambda: translate_reply(reply, request, self._settings))
                await self._send_as_stream(exchange, request, reply, calls)
            elif shape == "events":
                await self._parse_events(exchange, request, incoming, trial=bool(constraint))
            else:
                raise UpstreamError(error_in(incoming.status, await incoming.body()))

    async def _parse_events(self, exchange: Exchange, request: Request, incoming: Incoming, *, trial: bool) -> None:
        """Translate a stream.  ``trial``: an engine may still refuse the grammar that its front end has let through.

        Such a stream is an error behind the chunk with the role; so what comes first is held until something follows.
        """
        translator = ChunkTranslator(request, self._settings)
        await exchange.start_stream()
        done = False
        held = b""
        async for events in incoming.events():
            if request.gate is None:
                step = _translate(events, translator)
            else:
                step = await self._judged(request, partial(_translate, events, translator))
            if trial and isinstance(step.error, UpstreamError):
                raise _RefusedInStream(step.error.message)
            if trial and not held and not step.done and step.error is None:
                held = step.data
                continue
            trial = False
            if held or step.data:
                await exchange.write(held + step.data)
                held = b""
            if step.error is not None:
                raise step.error
            done = step.done
            if done:
                break
        if held:
            await exchange.write(held)
        if not (done or translator.complete):
            raise ProxyError(502, "The upstream ended its answer too early.", kind="upstream_error")
        exchange.note += f" calls={translator.calls}"
        await exchange.write(DONE)
        await exchange.end()

    async def _parse_whole(self, exchange: Exchange, request: Request, kind: Kind) -> None:
        constraint = await self._constraint(request, kind)
        answer = await self._whole(exchange, self._ask_raw(exchange, request, kind, constraint))
        if answer is None:
            return
        reply = answer.reply
        calls = await self._judged(request, lambda: translate_reply(reply, request, self._settings))
        exchange.note += f" calls={calls}"
        await exchange.answer_json(200, reply, exchange.inherited)

    # ---- buffer: the server's own reading, asked for in one piece

    async def _buffer_whole(self, exchange: Exchange, request: Request, raw: bytes) -> None:
        answer = await self._whole(exchange, self._ask(exchange, raw))
        if answer is None:
            return
        reply = answer.reply
        changed = await self._read_again(request, reply)
        calls = await self._judged(request, lambda: as_stream.check_reply(reply, request))
        exchange.note += f" calls={calls}"
        if changed:
            await exchange.answer_json(200, reply, exchange.inherited)
        else:
            await _pass_whole(exchange, answer.incoming, answer.body)

    async def _buffer_stream(self, exchange: Exchange, request: Request) -> None:
        async with self._ask(exchange, whole_reply_request(request)) as response:
            if not response.is_success:
                await self._refused(exchange, response)
                return
            reply = await Incoming(response, self._upstream).reply()
        await self._read_again(request, reply)
        calls = await self._judged(request, lambda: as_stream.check_reply(reply, request))
        await self._send_as_stream(exchange, request, reply, calls)

    async def _read_again(self, request: Request, reply: dict[str, Any]) -> bool:
        """Read calls that the server left in the text; whether there are any."""
        if request.choice.none or not holds_markers(reply, self._settings):
            return False
        warn_once(
            "A reply has tool calls in its text, which the upstream did not read; they are read here. "
            "If it always does this, use --mode parse. (This is said once.)"
        )
        await self._judged(request, lambda: translate_reply(reply, request, self._settings, marked=True))
        return True

    # ---- both

    async def _whole(self, exchange: Exchange, asking: AbstractAsyncContextManager[httpx.Response]) -> _Whole | None:
        """The answer to a request that is not streamed.  None: a refusal, which the client has got as it is."""
        async with asking as response:
            incoming = Incoming(response, self._upstream)
            body = await incoming.body()
        if incoming.success:
            return _Whole(incoming, body, incoming.reply_in(body))
        await _pass_whole(exchange, incoming, body)
        return None

    async def _judged(self, request: Request, work: Callable[[], Result]) -> Result:
        """Do work in which calls may be validated, which takes as long as the schemas make it: off the event loop."""
        return await to_thread.run_sync(work) if request.gate is not None else work()

    async def _send_as_stream(self, exchange: Exchange, request: Request, reply: dict[str, Any], calls: int) -> None:
        data = b"".join([*map(encode_event, as_stream.chunks(reply, request)), DONE])
        exchange.note += f" calls={calls}"
        await exchange.start_stream()
        await exchange.write(data)
        await exchange.end()

    async def _refused(self, exchange: Exchange, response: httpx.Response) -> None:
        """The upstream refused the request: the client gets its answer, or, in a stream that has begun, an event."""
        if not exchange.started:
            await pass_on(exchange, self._upstream, response)
            return
        incoming = Incoming(response, self._upstream)
        raise UpstreamError(error_in(incoming.status, await incoming.body()))


async def pass_on(exchange: Exchange, upstream: Upstream, response: httpx.Response) -> None:
    """Status, headers and body as they come.  What breaks off is left incomplete."""
    await exchange.start(response.status_code, end_to_end(response.headers.raw))
    async for piece in upstream.pieces(response):
        await exchange.write(piece)
    await exchange.end()


async def _pass_whole(exchange: Exchange, incoming: Incoming, body: bytes) -> None:
    headers = end_to_end(incoming.headers, b"content-length", b"content-encoding")
    await exchange.start(incoming.status, [*headers, (b"content-length", b"%d" % len(body))])
    await exchange.write(body)
    await exchange.end()


class _Whole(NamedTuple):
    """An answer in one piece, as it came and as it reads."""

    incoming: Incoming
    body: bytes
    reply: dict[str, Any]


class _RefusedInStream(Exception):
    """The upstream's engine refused a grammar after its front end had begun a stream.  ``said``: in these words."""

    def __init__(self, said: str) -> None:
        super().__init__(said)
        self.said = said


class _Step(NamedTuple):
    """``data``: the bytes to send.  ``done``: ``[DONE]`` came.  ``error``: what ends the stream, after the data."""

    data: bytes
    done: bool = False
    error: ProxyError | None = None


def _translate(events: Iterable[SSEvent], translator: ChunkTranslator) -> _Step:
    out: list[bytes] = []
    try:
        for event in events:
            if event.comment:
                out.append(encode_comment(event.data))
            elif event.intact and not event.name and (known := translator.again(event.data)) is not None:
                out.append(known)
            elif event.done:
                out += map(encode_event, translator.finish())
                return _Step(b"".join(out), done=True)
            else:
                chunk = read_chunk(event)
                out += map(encode_event, translator.translate(chunk))
                translator.learn(event.data, chunk)
    except ProxyError as error:
        return _Step(b"".join(out), error=error)
    except (NotAChunk, RecursionError):
        return _Step(b"".join(out), error=bad_chunk())
    return _Step(b"".join(out))
