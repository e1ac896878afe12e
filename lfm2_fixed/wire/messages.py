"""Anthropic Messages: the events of a stream or a whole message, and the messages of a history.

Content blocks are told apart by ``index``.  Only ``tool_use`` is a call for the client.  Blocks of tools that the
server runs (``server_tool_use``, ``mcp_tool_use``) stream their input in the same deltas, and more types of
blocks are added all the time: their deltas are theirs, and no calls.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from .strict_json import read
from .turn import Building, Call, Problems, Turn, dumped, is_index, nameless, plain, settled, text_of

_WITHOUT_INPUT = ("text", "thinking", "redacted_thinking")
"""Blocks that take no input: arguments under the index of one belong to a call that was lost."""


class Message:
    """One message while it streams."""

    def __init__(self, problems: Problems) -> None:
        self._problems = problems
        self._kinds: dict[int, str] = {}
        self._calls: dict[int, Building] = {}
        self._given: dict[int, Any] = {}
        self._content: list[str] = []
        self._reasoning: list[str] = []
        self._stop: str | None = None
        self._started = False
        self.begun = False

    def feed(self, kind: str, event: Mapping[str, Any], offset: int | None = None) -> None:
        """Take the next event.  Types that are not known are passed over, as the vendor asks."""
        index = event.get("index")
        if kind == "message_start":
            if self._started:
                self._problems.malformed("a second message begins in the same stream", None, offset)
            self.begun = self._started = True
        elif kind == "content_block_start":
            self.begun = True
            self._start(index, event.get("content_block"), offset)
        elif kind == "content_block_delta":
            self.begun = True
            self._delta(index, event.get("delta"), offset)
        elif kind == "content_block_stop" and is_index(index) and index in self._calls:
            call = self._calls[index]
            if call.empty:  # a call without arguments has no deltas; its start may bring all of them
                call.replace(dumped(self._given.get(index)), offset)
            call.complete = True
        elif kind == "message_delta":
            delta = event.get("delta")
            self._end(delta.get("stop_reason") if isinstance(delta, Mapping) else None)

    def whole(self, message: Mapping[str, Any]) -> None:
        """Take a whole message."""
        for block in map(plain, message["content"]):
            if not isinstance(block, Mapping):
                continue
            if block.get("type") == "tool_use":
                call = self._calls[len(self._calls)] = Building()
                call.name = text_of(block.get("name")) or ""
                call.id = text_of(block.get("id"))
                call.add(dumped(block.get("input")), None)
            elif isinstance(block.get("text"), str):
                self._content.append(block["text"])
            elif isinstance(block.get("thinking"), str):
                self._reasoning.append(block["thinking"])
        self._end(message.get("stop_reason"))

    def result(self) -> Turn:
        """What has come together so far."""
        calls = tuple(self._calls[index].call() for index in sorted(self._calls))
        problems = (*self._problems.all(), *nameless(calls))
        return Turn(calls, "".join(self._content), self._stop, "messages", problems, "".join(self._reasoning))

    def _start(self, index: Any, block: Any, offset: int | None) -> None:
        kind = text_of(block.get("type")) if isinstance(block, Mapping) else None
        if not is_index(index) or index in self._kinds:
            # Only a call needs its index; two blocks under one are two calls, or a call and a text, in one.
            if kind == "tool_use" or (is_index(index) and index in self._calls):
                self._problems.malformed("a tool_use block has no index, or one already used", None, offset)
            return
        self._kinds[index] = kind or ""
        if kind == "tool_use":
            call = self._calls[index] = Building()
            call.id = text_of(block.get("id"))
            call.name = text_of(block.get("name")) or ""
            call.complete = False
            self._given[index] = block.get("input")
        elif kind == "text" and isinstance(block.get("text"), str):
            self._content.append(block["text"])

    def _delta(self, index: Any, delta: Any, offset: int | None) -> None:
        if not isinstance(delta, Mapping):
            return
        if delta.get("type") == "text_delta" and isinstance(delta.get("text"), str):
            self._content.append(delta["text"])
        elif delta.get("type") == "thinking_delta" and isinstance(delta.get("thinking"), str):
            self._reasoning.append(delta["thinking"])
        elif delta.get("type") == "input_json_delta":
            kind = self._kinds.get(index) if is_index(index) else None
            call = self._calls.get(index) if is_index(index) else None
            if call is None:
                if kind is None or kind in _WITHOUT_INPUT:
                    self._problems.malformed("arguments arrive for a block that is no tool_use", None, offset)
            elif call.complete:
                self._problems.malformed("arguments arrive for a call that has ended", self._position(index), offset)
            elif isinstance(delta.get("partial_json"), str):
                call.add(delta["partial_json"], offset)
            else:
                message = "a piece of a call's arguments is not a string"
                self._problems.malformed(message, self._position(index), offset)

    def _end(self, reason: Any) -> None:
        self._stop = settled(self._stop, reason, "messages")

    def _position(self, index: int) -> int:
        return sorted(self._calls).index(index)


def history(turn: Turn, said: Sequence[tuple[Call, str]], results: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """The assistant's message with its calls (each with the id to use), and the user's with their results."""
    blocks: list[dict[str, Any]] = [{"type": "text", "text": turn.content}] if turn.content else []
    blocks += [
        {"type": "tool_use", "id": identity, "name": call.name, "input": read(call.arguments).value}
        for call, identity in said
    ]
    return [{"role": "assistant", "content": blocks}, {"role": "user", "content": results}]


def result(call: Call, identity: str, text: str) -> dict[str, Any]:
    """The block that answers a call."""
    return {"type": "tool_result", "tool_use_id": identity, "is_error": True, "content": text}
