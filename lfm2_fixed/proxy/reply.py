"""The upstream's raw text into an OpenAI reply: the same machine for chunks and for whole replies."""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from typing import Any
from uuid import uuid4

from ..core.dialects import DIALECTS
from ..core.events import ArgumentsDelta, CallEnd, CallStart, Content, Event
from ..core.sentinels import PlainText
from ..core.stream import ToolCall
from .errors import UpstreamError
from .plan import Request, bare_call, new_machine
from .reasoning import ThinkSplitter
from .settings import Settings
from .verify import Verifier

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

    def __init__(self, request: Request, settings: Settings) -> None:
        self._request = request
        self._dialect = DIALECTS[settings.dialect]
        keep_tags = settings.reasoning == "keep" or request.wants_tags
        self._think = None if keep_tags else ThinkSplitter(inside=settings.reasoning == "open")
        self._verifier = Verifier(request)
        self._read: Callable[[str], Sequence[Event]]
        self._end: Callable[[], Sequence[Event]]
        if request.choice.none:
            plain = PlainText((self._dialect.start, *self._dialect.ends))
            self._read = lambda text: _content(plain.feed(text))
            self._end = lambda: _content(plain.finish())
        else:
            machine = new_machine(request, settings)
            self._read, self._end = machine.feed, machine.finish
        self._whole = settings.gate  # whether the arguments must be kept
        self._name = ""
        self._arguments: list[str] = []
        self._head = ""  # the content's beginning
        self.started = 0
        self.completed = 0

    def feed(self, text: str) -> dict[str, Any]:
        """What the next piece of text makes certain."""
        if self._think is None:
            return self._delta("", self._read(text))
        reasoning, text = self._think.feed(text)
        return self._delta(reasoning, self._read(text) if text else ())

    def finish(self, reason: str | None) -> tuple[dict[str, Any], str | None]:
        """What the end makes certain, and the finish reason, given the upstream's."""
        reasoning, text = self._think.finish() if self._think else ("", "")
        delta = self._delta(reasoning, [*(self._read(text) if text else ()), *self._end()])
        self._verifier.finish(reason)
        if not self.started and not self._request.choice.none and not self._dialect.bare_lists:
            self._look_for_bare_call()
        return delta, "tool_calls" if reason == "stop" and self.completed else reason

    def _delta(self, reasoning: str, events: Sequence[Event]) -> dict[str, Any]:
        delta: dict[str, Any] = {"reasoning_content": reasoning} if reasoning else {}
        content: list[str] = []
        calls: dict[int, dict[str, Any]] = {}
        for event in events:
            if isinstance(event, ArgumentsDelta):
                if self._whole:
                    self._arguments.append(event.text)
                call = calls.get(event.index)
                if call is None:
                    calls[event.index] = {"index": event.index, "function": {"arguments": event.text}}
                else:
                    call["function"]["arguments"] += event.text
            elif isinstance(event, Content):
                content.append(event.text)
            elif isinstance(event, CallStart):
                self._verifier.start(event.name)
                self.started += 1
                self._name = event.name
                self._arguments.clear()
                calls[event.index] = {
                    "index": event.index,
                    "id": f"chatcmpl-tool-{uuid4().hex}",
                    "type": "function",
                    "function": {"name": event.name, "arguments": ""},
                }
            elif isinstance(event, CallEnd):
                self._verifier.complete(ToolCall(self._name, "".join(self._arguments)))
                self.completed += 1
        if content:
            text = delta["content"] = "".join(content)
            if len(self._head) < _HEAD:
                self._head += text[:_HEAD]
        if calls:
            delta["tool_calls"] = list(calls.values())
        return delta

    def _look_for_bare_call(self) -> None:
        if bare_call(self._request).search(self._head):
            warn_once(
                f"A reply looks like a tool call but has no {self._dialect.start}: the upstream strips special "
                "tokens. llama.cpp: start llama-server with --special, or with the model's own chat template; "
                "vLLM: use another --tool-call-parser than lfm2_fixed, which needs no proxy. (This is said once.)"
            )


def _content(text: str) -> Sequence[Event]:
    return [Content(text)] if text else ()


class ChunkTranslator:
    """The chunks of one streamed reply, for any number of choices."""

    def __init__(self, request: Request, settings: Settings) -> None:
        self._request = request
        self._settings = settings
        self._readers: dict[int, ChoiceReader] = {}
        self._open: set[int] = set()  # choices without a finish reason

    @property
    def complete(self) -> bool:
        """Whether every choice that began has ended."""
        return bool(self._readers) and not self._open

    @property
    def calls(self) -> int:
        """Calls completed so far."""
        return sum(reader.completed for reader in self._readers.values())

    def translate(self, chunk: Any) -> list[dict[str, Any]]:
        """What to send for an upstream chunk: often nothing, seldom more than one.

        Raises UpstreamError for an error in place of a chunk.
        """
        if not isinstance(chunk, dict) or "error" in chunk or chunk.get("object") == "error":
            raise UpstreamError(chunk)
        choices = chunk.get("choices")
        if not choices:  # usage: never without being asked, since clients read choices[0]
            return [chunk] if self._request.wants_usage or "usage" not in chunk else []
        now: list[dict[str, Any]] = []
        ends: list[dict[str, Any]] = []
        for choice in choices:
            delta, reason = self._translate(choice)
            finished = choice.get("finish_reason") is not None
            if delta or (choice.get("logprobs") and not finished):
                now.append({**choice, "delta": delta, "finish_reason": None})
            if finished:
                end = {**choice, "delta": {}, "finish_reason": reason}
                if delta and end.get("logprobs"):
                    end["logprobs"] = None  # they went with the text
                ends.append(end)
        if not ends:
            if not now and chunk.get("usage"):  # asked for on every chunk
                now = [{**choice, "delta": {}} for choice in choices]
            return [{**chunk, "choices": now}] if now else []
        if not now:
            return [{**chunk, "choices": ends}]
        first = {key: value for key, value in chunk.items() if key not in ("usage", "timings")}
        return [{**first, "choices": now}, {**chunk, "choices": ends}]

    def _translate(self, choice: dict[str, Any]) -> tuple[dict[str, Any], str | None]:
        index = choice.get("index", 0)
        reader = self._readers.get(index)
        if reader is None:
            reader = self._readers[index] = ChoiceReader(self._request, self._settings)
            self._open.add(index)
        said = choice.get("delta") or {}
        text = said.get("content")
        read = text is None or isinstance(text, str)  # other content, such as a list of parts, stays as it is
        delta = {key: value for key, value in said.items() if value is not None and not (read and key == "content")}
        parts = reader.feed(text) if text and read else {}
        reason = choice.get("finish_reason")
        if reason is not None:
            tail, reason = reader.finish(reason)
            parts = _joined(parts, tail)
            self._open.discard(index)
        if delta.get("tool_calls"):
            warn_once("The upstream sent tool calls although told not to read any: they are passed on as they are.")
        elif "tool_calls" in delta:
            del delta["tool_calls"]
        if "role" in delta and read and "content" not in parts and "content" in said:
            delta["content"] = None if parts or text is None else ""
        return _joined(delta, parts), reason


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


def translate_reply(reply: Any, request: Request, settings: Settings) -> int:
    """Read the choices of a whole reply, in place; the number of calls.

    Raises ProxyError where the calls are not what the request asked for.
    """
    total = 0
    for choice in reply.get("choices") or []:
        message = choice.get("message")
        text = message.get("content") if isinstance(message, dict) else None
        if not isinstance(text, str):
            continue
        reader = ChoiceReader(request, settings)
        parts = reader.feed(text)
        tail, reason = reader.finish(choice.get("finish_reason"))
        parts = _joined(parts, tail)
        calls = parts.get("tool_calls", [])
        for call in calls:
            del call["index"]
        if parts.get("reasoning_content"):
            message["reasoning_content"] = (message.get("reasoning_content") or "") + parts["reasoning_content"]
        message["content"] = parts.get("content", None if calls else "")
        if calls:
            message["tool_calls"] = calls
        choice["finish_reason"] = reason
        total += len(calls)
    return total
