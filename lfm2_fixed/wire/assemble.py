"""Streamed chunks put together into tool calls, as the official clients do it.

Three protocols, recognised by what arrives: OpenAI Chat Completions chunks, OpenAI Responses events,
Anthropic Messages events; each as dicts or as the objects of the ``openai`` and ``anthropic`` packages.
Whole responses of the same three are read by ``from_response``.

Nothing is repaired here.  What no official client could put together is kept as a ``Problem``.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, TypeGuard, overload

Protocol = Literal["chat", "responses", "messages"]


@dataclass(frozen=True)
class Call:
    """One tool call as it was received.

    ``arguments``: the text as sent, never reformatted; for a ``custom`` tool the free text it takes.
    ``id``: what a tool result must name (``call_id`` in Responses), None if the server gave none.
    ``complete``: False if the protocol marks the end of a call and that mark never came.
    ``trace``: pairs (characters of ``arguments`` so far, offset given with the chunk), for evidence.
    """

    name: str
    arguments: str
    id: str | None = None
    kind: Literal["function", "custom"] = "function"
    complete: bool = True
    trace: tuple[tuple[int, int], ...] = field(default=(), compare=False, repr=False)


@dataclass(frozen=True)
class Problem:
    """Something in the stream itself that no client can make sense of.

    ``kind``: ``error`` (the server reported one) or ``malformed`` (the protocol is broken).
    ``call``: index of the call concerned, None for the whole turn.  ``offset``: as given with the chunk.
    """

    kind: Literal["error", "malformed"]
    message: str
    call: int | None = None
    offset: int | None = None


@dataclass(frozen=True)
class Assembled(Sequence[Call]):
    """The calls of one turn, in order, with what else decides whether they may be run.

    ``finish_reason``: as the server says it (``stop_reason`` in Messages, the status in Responses); None if
    the stream ended without one.  ``cut``: the server says that the turn was cut off (a limit, a filter).
    ``content``: the text beside the calls.  ``protocol``: None if nothing recognisable arrived.
    """

    calls: tuple[Call, ...] = ()
    content: str = ""
    finish_reason: str | None = None
    cut: bool = False
    protocol: Protocol | None = None
    problems: tuple[Problem, ...] = ()

    @overload
    def __getitem__(self, index: int) -> Call: ...
    @overload
    def __getitem__(self, index: slice) -> Sequence[Call]: ...
    def __getitem__(self, index: int | slice) -> Call | Sequence[Call]:
        return self.calls[index]

    def __len__(self) -> int:
        return len(self.calls)

    def __iter__(self) -> Iterator[Call]:
        return iter(self.calls)


def assemble(chunks: Iterable[Any], *, choice: int = 0) -> Assembled:
    """Put the chunks of one streamed turn together.  ``choice``: which one, where ``n`` was above 1."""
    assembler = Assembler()
    for chunk in chunks:
        assembler.feed(chunk)
    return assembler.result(choice)


class Assembler:
    """The same, chunk by chunk."""

    def __init__(self) -> None:
        self._chat: dict[int, _Chat] = {}
        self._responses: _Responses | None = None
        self._messages: _Messages | None = None
        self._problems: list[Problem] = []

    @property
    def choices(self) -> tuple[int, ...]:
        """The choices seen so far; always ``(0,)`` outside Chat Completions."""
        return tuple(sorted(self._chat)) or (0,)

    def feed(self, chunk: Any, offset: int | None = None) -> None:
        """Take the next chunk.  ``offset``: where it was found, in any unit; given back as evidence."""
        event = plain(chunk)
        if not isinstance(event, Mapping):
            self._malformed("a chunk is not an object", offset)
            return
        kind = event.get("type")
        if event.get("error") is not None or kind == "error" or event.get("object") == "error":
            self._problems.append(Problem("error", _error_message(event), None, offset))
        elif "choices" in event:
            self._feed_chat(event["choices"], offset)
        elif kind == "chunk" and "chunk" in event:  # the stream helper of the openai package
            self.feed(event["chunk"], offset)
        elif isinstance(kind, str) and kind.startswith("response."):
            self._responses = self._responses or _Responses(self._problems)
            self._responses.feed(kind, event, offset)
        elif isinstance(kind, str):
            # Both vendors say: ignore the types that you do not know.
            self._messages = self._messages or _Messages(self._problems)
            self._messages.feed(kind, event, offset)
        else:
            self._malformed("a chunk has neither choices nor a type", offset)

    def result(self, choice: int = 0) -> Assembled:
        """What has come together so far."""
        problems = tuple(self._problems)
        if self._chat:
            state = self._chat.get(choice) or _Chat([])
            return state.result((*problems, *state.problems))
        if self._responses is not None:
            return self._responses.result(problems)
        if self._messages is not None and self._messages.begun:
            return self._messages.result(problems)
        return Assembled(problems=problems)

    def _malformed(self, message: str, offset: int | None) -> None:
        self._problems.append(Problem("malformed", message, None, offset))

    def _feed_chat(self, choices: Any, offset: int | None) -> None:
        if not isinstance(choices, list):
            if choices is not None:
                self._malformed("choices is not a list", offset)
            return
        for entry in choices:
            index = entry.get("index", 0) if isinstance(entry, Mapping) else None
            if not _is_index(index):
                self._malformed("a choice is no object with an integer index", offset)
                continue
            self._chat.setdefault(index, _Chat([])).feed(entry, offset)


class _Building:
    """A call while its pieces arrive."""

    def __init__(self, kind: Literal["function", "custom"] = "function", position: int = 0) -> None:
        self.kind = kind
        self.position = position
        self.id: str | None = None
        self.name = ""
        self.pieces: list[str] = []
        self.complete = True
        self.trace: list[tuple[int, int]] = []
        self._length = 0

    def add(self, text: str, offset: int | None) -> None:
        self.pieces.append(text)
        self._length += len(text)
        if offset is not None:
            self.trace.append((self._length, offset))

    def replace(self, text: str, offset: int | None) -> None:
        self.pieces, self._length = [], 0
        self.add(text, offset)

    @property
    def text(self) -> str:
        return "".join(self.pieces)

    def call(self) -> Call:
        return Call(self.name, self.text, self.id, self.kind, self.complete, tuple(self.trace))


class _Chat:
    """One choice.  ``id``, ``name`` and ``arguments`` are joined, as the Python client joins all strings."""

    def __init__(self, problems: list[Problem]) -> None:
        self.problems = problems
        self._calls: dict[int, _Building] = {}
        self._content: list[str] = []
        self._finish: str | None = None

    def feed(self, choice: Mapping[str, Any], offset: int | None) -> None:
        delta = choice.get("delta")
        if isinstance(delta, Mapping):
            if isinstance(delta.get("content"), str):
                self._content.append(delta["content"])
            if isinstance(delta.get("function_call"), Mapping):  # the API before tools
                self._entry({"index": 0, "function": delta["function_call"]}, offset)
            entries = delta.get("tool_calls")
            if isinstance(entries, list):
                for entry in entries:
                    self._entry(entry, offset)
            elif entries is not None:
                self._malformed("tool_calls is not a list", None, offset)
        elif delta is not None:
            self._malformed("a delta is not an object", None, offset)
        if isinstance(choice.get("finish_reason"), str):
            self._finish = choice["finish_reason"]

    def _entry(self, entry: Any, offset: int | None) -> None:
        index = entry.get("index") if isinstance(entry, Mapping) else None
        if not _is_index(index):
            self._malformed("a piece of a call lacks the index of its call", None, offset)
            return
        call = self._calls.get(index)
        if call is None:
            if index != len(self._calls):
                message = f"a call begins with index {index} where {len(self._calls)} is next"
                self._malformed(message, len(self._calls), offset)
            call = self._calls[index] = _Building(position=len(self._calls))
        if entry.get("type") == "custom" or isinstance(entry.get("custom"), Mapping):
            call.kind = "custom"
        position = call.position
        identity = self._text(entry, "id", position, offset)
        if identity:
            call.id = (call.id or "") + identity
        function = entry.get("custom" if call.kind == "custom" else "function")
        if isinstance(function, Mapping):
            call.name += self._text(function, "name", position, offset)
            text = self._text(function, "input" if call.kind == "custom" else "arguments", position, offset)
            call.add(text, offset)
        elif function is not None:
            self._malformed("the function of a call is not an object", position, offset)

    def _text(self, mapping: Mapping[str, Any], key: str, call: int, offset: int | None) -> str:
        value = mapping.get(key)
        if isinstance(value, str):
            return value
        if value is not None:
            self._malformed(f"the {key} of a call is not a string", call, offset)
        return ""

    def _malformed(self, message: str, call: int | None, offset: int | None) -> None:
        self.problems.append(Problem("malformed", message, call, offset))

    def result(self, problems: tuple[Problem, ...]) -> Assembled:
        calls = tuple(call.call() for call in self._calls.values())
        cut = self._finish in _CHAT_CUT
        return Assembled(calls, "".join(self._content), self._finish, cut, "chat", problems)


_CHAT_CUT = ("length", "content_filter")


class _Responses:
    """Items by output index.  A call's text is its deltas; what the events say about it later must agree."""

    _DELTAS = ("response.function_call_arguments.delta", "response.custom_tool_call_input.delta")
    _DONE = {
        "response.function_call_arguments.done": "arguments",
        "response.custom_tool_call_input.done": "input",
    }

    def __init__(self, problems: list[Problem]) -> None:
        self._problems = problems
        self._calls: dict[int, _Building] = {}
        self._content: list[str] = []
        self._status: str | None = None

    def feed(self, kind: str, event: Mapping[str, Any], offset: int | None) -> None:
        if kind == "response.output_text.delta" and isinstance(event.get("delta"), str):
            self._content.append(event["delta"])
        elif kind in ("response.output_item.added", "response.output_item.done"):
            self._item(event.get("item"), event.get("output_index"), kind.endswith("done"), offset)
        elif kind in self._DELTAS or kind in self._DONE:
            index = event.get("output_index")
            call = self._calls.get(index) if isinstance(index, int) else None
            if call is None:
                self._malformed("arguments arrive for a call that was never begun", None, offset)
            elif kind in self._DELTAS:
                call.add(event["delta"] if isinstance(event.get("delta"), str) else "", offset)
            else:
                self._agree(call, event.get(self._DONE[kind]), offset)
        elif kind in ("response.completed", "response.incomplete", "response.failed"):
            self._end(kind.removeprefix("response."), event.get("response"), offset)

    def _item(self, item: Any, index: Any, done: bool, offset: int | None) -> None:
        if not isinstance(item, Mapping) or item.get("type") not in _RESPONSES_CALLS:
            return
        if not _is_index(index):
            self._malformed("a call has no output index", None, offset)
            return
        call = self._calls.get(index)
        name, identity = item.get("name"), item.get("call_id")
        text = item.get(_RESPONSES_CALLS[item["type"]])
        if call is None:
            call = self._calls[index] = _Building("function" if item["type"] == "function_call" else "custom")
            call.name = name if isinstance(name, str) else ""
            call.id = identity if isinstance(identity, str) else None
            call.add(text if isinstance(text, str) else "", offset)
        elif done:
            self._agree(call, text, offset)
            if name != call.name or identity != call.id:
                self._malformed("a call's name or id changes before its end", self._position(call), offset)
        call.complete = done and item.get("status") != "incomplete"

    def _agree(self, call: _Building, text: Any, offset: int | None) -> None:
        if not isinstance(text, str):
            return
        if not call.text:
            call.replace(text, offset)
        elif text != call.text:
            message = "the deltas of a call and its closing event say different arguments"
            self._malformed(message, self._position(call), offset)
            call.replace(text, offset)  # what clients hand over in the end

    def _end(self, status: str, response: Any, offset: int | None) -> None:
        self._status = status
        if not isinstance(response, Mapping):
            return
        if response.get("error"):
            self._problems.append(Problem("error", _error_message(response), None, offset))
        output = response.get("output")
        if status != "completed" or not isinstance(output, list):
            return
        final = [item for item in map(plain, output) if isinstance(item, Mapping)]
        final = [item for item in final if item.get("type") in _RESPONSES_CALLS]
        if len(final) != len(self._calls):
            message = f"{len(self._calls)} calls were streamed, the completed response has {len(final)}"
            self._malformed(message, None, offset)
        for call, item in zip(self._ordered(), final, strict=False):
            self._agree(call, item.get(_RESPONSES_CALLS[item["type"]]), offset)
            if item.get("name") != call.name:
                self._malformed("the completed response names another tool", self._position(call), offset)

    def _ordered(self) -> list[_Building]:
        return [self._calls[index] for index in sorted(self._calls)]

    def _position(self, call: _Building) -> int:
        return self._ordered().index(call)

    def _malformed(self, message: str, call: int | None, offset: int | None) -> None:
        self._problems.append(Problem("malformed", message, call, offset))

    def result(self, problems: tuple[Problem, ...]) -> Assembled:
        calls = tuple(call.call() for call in self._ordered())
        cut = self._status in ("incomplete", "failed")
        return Assembled(calls, "".join(self._content), self._status, cut, "responses", problems)


_RESPONSES_CALLS = {"function_call": "arguments", "custom_tool_call": "input"}


class _Messages:
    """Content blocks by index; the JSON of a ``tool_use`` block arrives in pieces, or with its start."""

    def __init__(self, problems: list[Problem]) -> None:
        self._problems = problems
        self._calls: dict[int, _Building] = {}
        self._given: dict[int, Any] = {}
        self._content: list[str] = []
        self._stop: str | None = None
        self.begun = False

    def feed(self, kind: str, event: Mapping[str, Any], offset: int | None) -> None:
        index = event.get("index")
        if kind == "message_start":
            self.begun = True
        elif kind == "content_block_start":
            self.begun = True
            self._start(index, event.get("content_block"), offset)
        elif kind == "content_block_delta":
            self._delta(index, event.get("delta"), offset)
        elif kind == "content_block_stop" and isinstance(index, int) and index in self._calls:
            call = self._calls[index]
            if not call.text:
                call.replace(dumped(self._given.get(index)), offset)
            call.complete = True
        elif kind == "message_delta":
            delta = event.get("delta")
            reason = delta.get("stop_reason") if isinstance(delta, Mapping) else None
            self._stop = reason if isinstance(reason, str) else self._stop

    def _start(self, index: Any, block: Any, offset: int | None) -> None:
        if not isinstance(block, Mapping) or block.get("type") != "tool_use":
            return
        if not _is_index(index) or index in self._calls:
            message = "a tool_use block has no index, or one already used"
            self._problems.append(Problem("malformed", message, None, offset))
            return
        call = self._calls[index] = _Building()
        call.id = block["id"] if isinstance(block.get("id"), str) else None
        call.name = block["name"] if isinstance(block.get("name"), str) else ""
        call.complete = False
        self._given[index] = block.get("input")

    def _delta(self, index: Any, delta: Any, offset: int | None) -> None:
        if not isinstance(delta, Mapping):
            return
        if delta.get("type") == "text_delta" and isinstance(delta.get("text"), str):
            self._content.append(delta["text"])
        elif delta.get("type") == "input_json_delta":
            call = self._calls.get(index) if isinstance(index, int) else None
            if call is None:
                message = "arguments arrive for a block that is no tool_use"
                self._problems.append(Problem("malformed", message, None, offset))
            elif isinstance(delta.get("partial_json"), str):
                call.add(delta["partial_json"], offset)

    def result(self, problems: tuple[Problem, ...]) -> Assembled:
        calls = tuple(self._calls[index].call() for index in sorted(self._calls))
        return Assembled(calls, "".join(self._content), self._stop, self._stop in _MESSAGES_CUT, "messages", problems)


_MESSAGES_CUT = ("max_tokens", "model_context_window_exceeded", "refusal")


def from_response(response: Any, *, choice: int = 0) -> Assembled:
    """The calls of a whole (not streamed) response of any of the three protocols.

    Raises ValueError if it is none of them.
    """
    whole = plain(response)
    if not isinstance(whole, Mapping):
        raise ValueError("a response must be an object")
    if whole.get("error") is not None and not whole.get("choices"):
        return Assembled(problems=(Problem("error", _error_message(whole)),))
    if isinstance(whole.get("choices"), list):
        return _from_chat(whole["choices"], choice)
    if isinstance(whole.get("output"), list):
        return _from_responses(whole)
    if isinstance(whole.get("content"), list) and whole.get("role") == "assistant":
        return _from_messages(whole)
    raise ValueError("no response of Chat Completions (choices), Responses (output) or Messages (content)")


def _from_chat(choices: list[Any], number: int) -> Assembled:
    found = [c for c in choices if isinstance(c, Mapping) and c.get("index", 0) == number]
    if not found:
        raise ValueError(f"the response has no choice {number}")
    message = found[0].get("message")
    if not isinstance(message, Mapping):
        raise ValueError("the choice has no message")
    given = message.get("tool_calls")
    entries: list[Any] = list(given) if isinstance(given, list) else []
    if isinstance(message.get("function_call"), Mapping):
        entries.insert(0, {"function": message["function_call"]})
    state = _Chat([])
    for index, entry in enumerate(entries):
        state._entry({**entry, "index": index} if isinstance(entry, Mapping) else entry, None)
    ending = {"delta": {"content": message.get("content")}, "finish_reason": found[0].get("finish_reason")}
    state.feed(ending, None)
    return state.result(tuple(state.problems))


def _from_responses(whole: Mapping[str, Any]) -> Assembled:
    problems: list[Problem] = []
    state = _Responses(problems)
    for index, item in enumerate(whole["output"]):
        if isinstance(item, Mapping) and item.get("type") == "message":
            for part in item.get("content") or ():
                if isinstance(part, Mapping) and isinstance(part.get("text"), str):
                    state.feed("response.output_text.delta", {"delta": part["text"]}, None)
        state.feed("response.output_item.done", {"item": item, "output_index": index}, None)
    status = whole.get("status")
    if status in ("completed", "incomplete", "failed"):
        state.feed(f"response.{status}", {"response": whole}, None)
    return state.result(tuple(problems))


def _from_messages(whole: Mapping[str, Any]) -> Assembled:
    calls = []
    text = []
    for block in whole["content"]:
        if isinstance(block, Mapping) and block.get("type") == "tool_use":
            calls.append(Call(str(block.get("name") or ""), dumped(block.get("input")), block.get("id")))
        elif isinstance(block, Mapping) and isinstance(block.get("text"), str):
            text.append(block["text"])
    reason = whole.get("stop_reason")
    reason = reason if isinstance(reason, str) else None
    return Assembled(tuple(calls), "".join(text), reason, reason in _MESSAGES_CUT, "messages")


def plain(value: Any) -> Any:
    """A client's object as the dicts and lists it was made from; anything else as it is."""
    dump = getattr(value, "model_dump", None)
    if callable(dump) and not isinstance(value, type):
        return dump(exclude_unset=True, warnings=False)
    return value


def dumped(value: Any) -> str:
    """Arguments that arrive as an object, as JSON text; what has no JSON form becomes the empty text."""
    try:
        return json.dumps(value, ensure_ascii=False)
    except (TypeError, ValueError, RecursionError):
        return ""


def _is_index(value: Any) -> TypeGuard[int]:
    return isinstance(value, int) and not isinstance(value, bool) and value >= 0


def _error_message(event: Mapping[str, Any]) -> str:
    error = event.get("error")
    source = error if isinstance(error, Mapping) else event
    message = source.get("message")
    code = source.get("code") or source.get("type")
    said = message or error
    said = said if isinstance(said, str) and said else "no message"
    return f"{said} (code {code})" if code not in (None, "error") else said
