"""A chat request with tools, answered: by reading the model's own text here, or by having the server read it."""

from __future__ import annotations

import logging
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import dataclass, field
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
from .trial import DOUBTFUL, SURE, Refused, Trial
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
            answer = partial(self._parse_stream, exchange)
            await exchange.with_heartbeats(lambda: self._constrained(request, kind, answer))
        elif parse:
            await self._constrained(request, kind, partial(self._parse_whole, exchange))
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

    async def _constrained(self, request: Request, kind: Kind, answer: Callable[[_Asked], Awaitable[None]]) -> None:
        """Answer with the grammar that the request is worth; without where the upstream does not take that."""
        asked = _Asked(request, kind)
        if self._constraints.wanted(request, kind):
            # Off the event loop: hostile tools may take 0.2 s.
            asked.constraint = await to_thread.run_sync(lambda: self._constraints.fields(request, kind))
        if asked.constraint:
            asked.trial = Trial(request, kind)
            try:
                await answer(asked)
                self._constraints.taken(asked.constraint, kind)
                return
            except Refused as refusal:
                if asked.trial.over:
                    self._constraints.refused(asked.constraint, kind, refusal)
                    raise ProxyError(
                        502,
                        "The upstream's engine gave up the grammar of this request inside a call; ask again.",
                        kind="upstream_error",
                    ) from None
                asked.trial, asked.refusal = None, refusal
            except UpstreamError as error:
                if asked.trial.over:  # too late to ask again, but not to remember
                    self._constraints.refused(asked.constraint, kind, Refused(error.message, DOUBTFUL))
                raise
        await answer(asked)

    @asynccontextmanager
    async def _ask_raw(self, exchange: Exchange, asked: _Asked) -> AsyncIterator[httpx.Response]:
        """The response with the model's own text.  Raises Refused where it is about the grammar."""
        fields = {} if asked.refusal else asked.constraint
        async with self._ask(exchange, raw_text_request(asked.request, asked.kind, fields)) as response:
            if fields and response.status_code in REFUSALS:
                said = (await Incoming(response, self._upstream).body()).decode("utf-8", "replace")
                raise Refused(said, DOUBTFUL if response.status_code == 500 else SURE)
            if asked.refusal and response.is_success:  # else it was not the grammar's fault
                self._constraints.refused(asked.constraint, asked.kind, asked.refusal)
            yield response

    async def _parse_stream(self, exchange: Exchange, asked: _Asked) -> None:
        request = asked.request
        async with self._ask_raw(exchange, asked) as response:
            if not response.is_success:
                await self._refused(exchange, response)
                return
            incoming = Incoming(response, self._upstream)
            if incoming.says_events:
                await exchange.start_stream()  # the client sees at once that it is served
            shape = await incoming.shape()
            if shape == "json":
                reply = await incoming.reply()
                calls = await self._read_whole(asked, reply)
                await self._send_as_stream(exchange, request, reply, calls)
            elif shape == "events":
                await self._parse_events(exchange, asked, incoming)
            else:
                raise UpstreamError(error_in(incoming.status, await incoming.body()))

    async def _parse_events(self, exchange: Exchange, asked: _Asked, incoming: Incoming) -> None:
        trial = asked.trial
        translator = ChunkTranslator(asked.request, self._settings, trial)
        await exchange.start_stream()
        done = False
        async for events in incoming.events():
            if trial is not None:
                events = trial.stream(events)
            if not events:
                continue
            done = await self._translated(exchange, asked.request, translator, events)
            if done:
                break
        if trial is not None and not done:
            done = await self._translated(exchange, asked.request, translator, trial.rest())
        if not (done or translator.complete):
            raise ProxyError(502, "The upstream ended its answer too early.", kind="upstream_error")
        exchange.note += f" calls={translator.calls}"
        await exchange.write(DONE)
        await exchange.end()

    async def _translated(
        self, exchange: Exchange, request: Request, translator: ChunkTranslator, events: list[SSEvent]
    ) -> bool:
        """Send what the events say; whether ``[DONE]`` was among them."""
        if request.gate is None:
            step = _translate(events, translator)
        else:
            step = await self._judged(request, partial(_translate, events, translator))
        if step.data:
            await exchange.write(step.data)
        if step.error is not None:
            raise step.error
        return step.done

    async def _parse_whole(self, exchange: Exchange, asked: _Asked) -> None:
        answer = await self._whole(exchange, self._ask_raw(exchange, asked))
        if answer is None:
            return
        calls = await self._read_whole(asked, answer.reply)
        exchange.note += f" calls={calls}"
        await exchange.answer_json(200, answer.reply, exchange.inherited)

    async def _read_whole(self, asked: _Asked, reply: dict[str, Any]) -> int:
        """Translate a reply in place; the number of calls."""
        request, trial = asked.request, asked.trial
        if trial is not None:
            trial.whole(reply)
        return await self._judged(request, lambda: translate_reply(reply, request, self._settings, trial=trial))

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


@dataclass
class _Asked:
    """A request for the model's own text."""

    request: Request
    kind: Kind
    constraint: dict[str, Any] = field(default_factory=dict)
    """The fields that hold the model to the request, where it asks for that and the upstream can."""
    trial: Trial | None = None
    """Whether the upstream takes them, while they are sent."""
    refusal: Refused | None = None
    """Why they are not sent."""


class _Whole(NamedTuple):
    """An answer in one piece, as it came and as it reads."""

    incoming: Incoming
    body: bytes
    reply: dict[str, Any]


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
