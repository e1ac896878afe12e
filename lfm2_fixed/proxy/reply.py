"""The upstream's raw text into an OpenAI reply: the same machine for chunks and for whole replies."""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from ..core.dialects import DIALECTS
from ..core.events import ArgumentsDelta, CallEnd, CallStart, Content, Event
from ..core.reasoning import ReasoningSplitter
from ..core.sentinels import PlainText, markup
from ..wire.deltas import as_dict, gather
from ..wire.turn import Call
from .alike import Alike
from .chat import CHUNK_HEAD, Choice, empty, read_choices, stopped
from .errors import ProxyError, UpstreamError
from .request import Request, bare_call, new_machine
from .settings import Settings
from .trial import Trial
from .verify import Verifier, is_whole

log = logging.getLogger("lfm2_fixed.proxy")

_HEAD = 2000
"""Characters of content in which a call without its sentinel is looked for."""

_told: set[str] = set()


def warn_once(message: str) -> None:
    """Log a warning, the first time only."""
    if message not in _told:
        _told.add(message)
        log.warning(message)


class ChoiceReader:
    """Reads one choice's text; the results are parts of a delta, unset fields absent.

    The parts are ``reasoning_content``, ``content`` and ``tool_calls``.  Raises ProxyError where
    the calls are not what the request asked for.
    """

    def __init__(self, request: Request, settings: Settings, trial: Trial | None = None) -> None:
        self._request = request
        self._trial = trial
        self._dialect = DIALECTS[settings.dialect]
        keep_tags = settings.reasoning == "keep" or request.wants_tags
        self._think = None
        if not keep_tags:
            opening = () if request.choice.none else (self._dialect.start,)
            self._think = ReasoningSplitter(opening, inside=settings.reasoning == "open", trim=True)
        self._verifier = Verifier(request)
        self._cut: Callable[[], bool] = lambda: False
        self._read: Callable[[str], Sequence[Event]]
        self._end: Callable[[], Sequence[Event]]
        if request.choice.none:
            # contract 7.3: the text, with markers only for who asked for special tokens.
            hidden = () if request.wants_special else self._dialect.special_tokens
            markers = (self._dialect.start, *self._dialect.ends)
            plain = PlainText(markup(markers, hidden, shown=request.wants_special))
            self._read = lambda text: _content(plain.feed(text))
            self._end = lambda: _content(plain.finish())
        else:
            machine = new_machine(request, settings)
            self._read, self._end = machine.feed, machine.finish
            self._cut = lambda: machine.cut
        self._whole = settings.gate  # whether the arguments must be kept
        self._name = ""
        self._arguments: list[str] = []
        self._head = ""  # the content's beginning
        self._foreign = False  # the upstream sends calls of its own
        self.ended = False
        self.started = 0
        self.completed = 0

    def feed(self, text: str) -> dict[str, Any]:
        """What the next piece of text makes certain."""
        return self.delta(*self.read(text))

    def read(self, text: str) -> tuple[str, Sequence[Event]]:
        """The reasoning and the events that the next piece of text makes certain: :meth:`delta` must get them."""
        if self._think is None:
            return "", self._read(text)
        reasoning, text = self._think.feed(text)
        return reasoning, self._read(text) if text else ()

    def delta(self, reasoning: str, events: Sequence[Event]) -> dict[str, Any]:
        """What these say, as a delta."""
        delta: dict[str, Any] = {"reasoning_content": reasoning} if reasoning else {}
        for event in events:
            self.watch(event)
        content, pieces = gather(events)
        if content:
            delta["content"] = content
        if pieces:
            delta["tool_calls"] = list(map(as_dict, pieces))
        return delta

    def foreign_calls(self) -> None:
        """The upstream sends calls although told to read none; they pass, if nothing has to be checked in them."""
        self._verifier.unchecked()
        self._foreign = True
        if self.started:
            raise self._mixed()
        warn_once("The upstream sent tool calls although told not to read any: they are passed on as they are.")

    def _mixed(self) -> ProxyError:
        # Both count their calls from 0: a client would join two calls into one.
        return ProxyError(502, "The upstream sent tool calls and left others in the text.", kind="upstream_error")

    def finish(self, reason: str | None, fields: Mapping[str, Any] | None = None) -> tuple[dict[str, Any], str]:
        """What the end makes certain, and the finish reason, given the upstream's (None: it gave none).

        ``fields``: what else the upstream said of the choice at its end.  Raises Refused, too.
        """
        self.ended = True
        reasoning, text = self._think.finish() if self._think else ("", "")
        delta = self.delta(reasoning, [*(self._read(text) if text else ()), *self._end()])
        if self._trial is not None and self._cut() and not stopped(reason, fields or {}):
            self._trial.cut()
        self._verifier.finish(reason, cut=self._cut())
        if not self.started and not self._request.choice.none:
            self._look_for_bare_call()
        if reason is not None and not is_whole(reason):
            return delta, reason
        if self._foreign:
            return delta, "function_call" if reason == "function_call" else "tool_calls"
        return delta, "tool_calls" if self.completed else "stop"

    def watch(self, event: Event) -> None:
        """Check an event before anything of its batch is sent."""
        if isinstance(event, ArgumentsDelta):
            if self._whole:
                self._arguments.append(event.text)
        elif isinstance(event, Content):
            if len(self._head) < _HEAD:
                self._head += event.text[:_HEAD]
        elif isinstance(event, CallStart):
            if self._foreign:
                raise self._mixed()
            self._verifier.start(event.name)
            self.started += 1
            self._name = event.name
            self._arguments.clear()
        elif isinstance(event, CallEnd):
            self._verifier.complete(Call(self._name, "".join(self._arguments)))
            self.completed += 1

    def _look_for_bare_call(self) -> None:
        dialect = self._dialect
        if not (dialect.needs_markers and dialect.markers_are_tokens):
            return  # it needs none, or none can be stripped
        if bare_call(self._request).search(self._head):
            warn_once(
                f"A reply looks like a tool call but has no {dialect.start}: the upstream strips special "
                "tokens. llama.cpp: start llama-server with --special, or with the model's own chat template; "
                f"vLLM: use another --tool-call-parser than {dialect.parser}, which needs no proxy. Where the server "
                "cannot be changed: --dialect pythonic reads lists without markers. (This is said once.)"
            )


def _content(text: str) -> Sequence[Event]:
    return [Content(text)] if text else ()


class ChunkTranslator:
    """The chunks of one streamed reply, for any number of choices."""

    def __init__(self, request: Request, settings: Settings, trial: Trial | None = None) -> None:
        self._request = request
        self._settings = settings
        self._trial = trial
        self._readers: dict[int, ChoiceReader] = {}
        self._last: dict[str, Any] = {}  # a chunk of the upstream's, for the head of those of our own
        self._late: list[dict[str, Any]] = []  # usage that came before the end of the choices
        self._alike = Alike()

    @property
    def complete(self) -> bool:
        """Whether every choice that began has ended."""
        return bool(self._readers) and all(reader.ended for reader in self._readers.values())

    @property
    def calls(self) -> int:
        """Calls completed so far."""
        return sum(reader.completed for reader in self._readers.values())

    def again(self, data: str) -> bytes | None:
        """The event to send for a chunk that is like one before but for its text, which may be none (empty).

        None: it is another, which :meth:`translate` reads.
        """
        alike = self._alike
        text = alike.text(data)
        if text is None or (reader := self._readers.get(alike.index)) is None or reader.ended:
            return None
        if not text:
            return b""
        reasoning, events = reader.read(text)
        if len(events) == 1 and not reasoning:  # nearly always
            event = events[0]
            if type(event) is ArgumentsDelta:  # not watched: where the gate needs arguments, a call comes whole
                return alike.arguments(event)
            if type(event) is Content:
                reader.watch(event)
                return alike.content(event)
        delta = reader.delta(reasoning, events)
        return alike.event(delta) if delta else b""

    def learn(self, data: str, chunk: dict[str, Any]) -> None:
        """``chunk``, which was read from ``data``, has been translated: others may be like it."""
        self._alike.learn(data, chunk)

    def translate(self, chunk: dict[str, Any]) -> list[dict[str, Any]]:
        """What to send for an upstream chunk: often nothing, seldom more than one.

        Raises UpstreamError for an error in place of a chunk, ProxyError for what is no chunk.
        """
        if chunk.get("error") or chunk.get("object") == "error":
            raise UpstreamError(chunk)
        choices = read_choices(chunk, "delta")
        if not choices:
            return self._without_choices(chunk)
        self._last = chunk
        now: list[dict[str, Any]] = []
        ends: list[dict[str, Any]] = []
        for choice in choices:
            reader = self._reader(choice.index)
            if reader.ended:
                if not empty({**choice.said, "role": None}):
                    raise ProxyError(502, "The upstream went on after the end of a choice.", kind="upstream_error")
                continue
            delta, reason = self._translate(reader, choice)
            beside = {key: value for key, value in choice.fields.items() if not empty(value)}
            base = {**choice.fields, "index": choice.index}
            if reason is None:
                if delta or beside:  # log probabilities, token ids: they come once, also where the text is held
                    now.append({**base, "delta": delta, "finish_reason": None})
            elif not delta:
                ends.append({**base, "delta": {}, "finish_reason": reason})
            else:
                with_end = {key for key in choice.fields if "stop" in key or "finish" in key}
                now.append(
                    {**_without(base, with_end), "delta": delta, "finish_reason": None}
                )  # what belongs to the text goes with it, and only there
                end = {key: base[key] for key in (*with_end, "index")}
                if "logprobs" in base:
                    end["logprobs"] = None
                ends.append({**end, "delta": {}, "finish_reason": reason})
        if now and ends:
            return [{**_head(chunk), "choices": now}, {**chunk, "choices": ends}]
        if now or ends:
            return [{**chunk, "choices": now or ends}]
        if all(empty(value) for key, value in chunk.items() if key not in CHUNK_HEAD and key != "choices"):
            return []
        still: list[dict[str, Any]] = [
            {"index": choice.index, "delta": {}, "finish_reason": None} for choice in choices
        ]
        return [{**chunk, "choices": still}]  # usage, asked for on every chunk, or what nobody knows

    def finish(self) -> list[dict[str, Any]]:
        """The upstream says that all is over: what to send for the choices to which it gave no finish reason.

        Raises ProxyError where their calls are not what the request asked for.
        """
        if not self._readers:
            self._reader(0).finish(None)  # nobody said anything, which may be too little
            return []
        out = []
        for index, reader in self._readers.items():
            if not reader.ended:
                delta, reason = reader.finish(None)
                choices = [{"index": index, "delta": delta, "finish_reason": None}] if delta else []
                choices.append({"index": index, "delta": {}, "finish_reason": reason})
                out += [{**_head(self._last), "choices": [choice]} for choice in choices]
        late, self._late = self._late, []
        return out + late

    def _without_choices(self, chunk: dict[str, Any]) -> list[dict[str, Any]]:
        if chunk.get("usage") is None:
            return [chunk]
        if not self._request.wants_usage:
            return []  # never without being asked, since clients read choices[0]
        if self._readers and not self.complete:
            self._late.append(chunk)
            return []
        return [chunk]

    def _reader(self, index: int) -> ChoiceReader:
        reader = self._readers.get(index)
        if reader is None:
            reader = self._readers[index] = ChoiceReader(self._request, self._settings, self._trial)
        return reader

    def _translate(self, reader: ChoiceReader, choice: Choice) -> tuple[dict[str, Any], str | None]:
        said, reason = choice.said, choice.reason
        text = said.get("content")
        read = text is None or isinstance(text, str)  # other content, such as a list of parts, stays as it is
        delta = {key: value for key, value in said.items() if value is not None and not (read and key == "content")}
        if delta.get("tool_calls") or delta.get("function_call"):
            reader.foreign_calls()
        elif "tool_calls" in delta:
            del delta["tool_calls"]
        parts = reader.feed(text) if text and isinstance(text, str) else {}
        if reason is not None:
            tail, reason = reader.finish(reason, choice.fields)
            parts = _joined(parts, tail)
        if "role" in delta and read and "content" not in parts and "content" in said:
            delta["content"] = None if parts or text is None else ""
        return _joined(delta, parts), reason


def _head(chunk: dict[str, Any]) -> dict[str, Any]:
    """What every chunk of a stream says."""
    return {key: value for key, value in chunk.items() if key in CHUNK_HEAD}


def _without(fields: dict[str, Any], keys: set[str]) -> dict[str, Any]:
    return {key: value for key, value in fields.items() if key not in keys}


def _joined(first: dict[str, Any], second: dict[str, Any]) -> dict[str, Any]:
    """Two parts of a delta, in one."""
    if not first or not second:
        return first or second
    joined = dict(first)
    for key, value in second.items():
        had = joined.get(key)
        if not had:
            joined[key] = value
        elif key == "tool_calls":
            calls = {call["index"]: call for call in had}
            for call in value:
                if call["index"] in calls:
                    calls[call["index"]]["function"]["arguments"] += call["function"]["arguments"]
                else:
                    had.append(call)
        else:
            joined[key] = had + value
    return joined


def translate_reply(
    reply: dict[str, Any],
    request: Request,
    settings: Settings,
    *,
    marked: bool = False,
    trial: Trial | None = None,
) -> int:
    """Read the choices of a whole reply, in place; the number of calls.

    ``marked``: only those that have the dialect's markers in their text, and no calls.  Raises ProxyError where
    the calls are not what the request asked for, and for what is no reply.
    """
    total = 0
    start = DIALECTS[settings.dialect].start
    for choice in read_choices(reply, "message"):
        message = choice.said
        text = message.get("content")
        foreign = message.get("tool_calls") or message.get("function_call")
        if marked and (foreign or not isinstance(text, str) or start not in text):
            continue
        reader = ChoiceReader(request, settings, trial)
        if foreign:
            reader.foreign_calls()
        parts = reader.feed(text) if isinstance(text, str) and text else {}
        tail, reason = reader.finish(choice.reason, choice.fields)
        parts = _joined(parts, tail)
        calls = parts.get("tool_calls", [])
        for call in calls:
            del call["index"]
        if parts.get("reasoning_content"):
            message["reasoning_content"] = (message.get("reasoning_content") or "") + parts["reasoning_content"]
        if isinstance(text, str):
            message["content"] = parts.get("content", None if calls else "")
        if calls:
            message["tool_calls"] = calls
        choice.set_reason(reason)
        total += len(calls)
    return total


def holds_markers(reply: dict[str, Any], settings: Settings) -> bool:
    """Whether a reply has the dialect's markers in a text beside which the server found no call."""
    start = DIALECTS[settings.dialect].start
    return any(
        isinstance(choice.said.get("content"), str)
        and start in choice.said["content"]
        and not choice.said.get("tool_calls")
        for choice in read_choices(reply, "message")
    )
