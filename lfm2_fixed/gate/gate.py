"""The gate: takes a turn as a whole, or refuses it."""

from __future__ import annotations

from collections.abc import AsyncIterable, AsyncIterator, Iterable, Iterator
from dataclasses import dataclass
from typing import Any, Literal, TypeVar

from ..wire.assemble import Assembled, Assembler, Call
from ..wire.strict_json import read
from .schemas import Tools
from .validate import Code, Issue, examine

Chunk = TypeVar("Chunk")


@dataclass(frozen=True)
class VerifiedCall:
    """A call that may be run.

    ``arguments``: the value, exactly as the model gave it (for a ``custom`` tool: its text).
    ``text``: the arguments as they were sent.  ``id``: what the tool result must name.
    """

    name: str
    arguments: Any
    text: str
    id: str | None
    kind: Literal["function", "custom"] = "function"


class CallsRefused(Exception):
    """The turn has issues, so none of its calls may be run.

    ``issues``: all of them.  ``turn``: what was received, unverified.
    """

    def __init__(self, issues: list[Issue], turn: Assembled) -> None:
        self.issues = issues
        self.turn = turn
        super().__init__("; ".join(map(str, issues)))

    def tool_results(self) -> list[dict[str, Any]]:
        """A result for each call that tells the model what to mend, in the shape of the turn's protocol."""
        return [
            _result(self.turn.protocol, identity, self._text(index))
            for index, identity in enumerate(_identities(self.turn))
        ]

    def messages(self) -> list[dict[str, Any]]:
        """What to append to the conversation: the model's turn, then a result for each of its calls.

        Arguments that are no JSON object stand in the history as ``{}``: servers parse it and would answer
        with an error.  Without any call: one user message with the reasons.
        """
        if not self.turn.calls:
            return [{"role": "user", "content": self._text(None)}]
        calls = list(zip(self.turn, _identities(self.turn), strict=True))
        content = self.turn.content
        if self.turn.protocol == "responses":
            return [*(_responses_call(call, identity) for call, identity in calls), *self.tool_results()]
        if self.turn.protocol == "messages":
            blocks: list[dict[str, Any]] = [{"type": "text", "text": content}] if content else []
            blocks += [
                {"type": "tool_use", "id": identity, "name": call.name, "input": _object(call)}
                for call, identity in calls
            ]
            return [
                {"role": "assistant", "content": blocks},
                {"role": "user", "content": self.tool_results()},
            ]
        said = [_chat_call(call, identity) for call, identity in calls]
        return [{"role": "assistant", "content": content or None, "tool_calls": said}, *self.tool_results()]

    def _text(self, index: int | None) -> str:
        own = [issue for issue in self.issues if issue.call is None or issue.call == index]
        if not own:
            return (
                "This call was not run, because another call of the same answer was refused. "
                "Make it again together with the corrected one."
            )
        subject = "Your answer was not accepted" if index is None else "This call was not run"
        lines = [f"- {issue.code}{' at ' + issue.pointer if issue.pointer else ''}: {issue.message}" for issue in own]
        return "\n".join([f"{subject}:", *lines, _advice(own)])


def _advice(issues: list[Issue]) -> str:
    codes = {issue.code for issue in issues}
    if Code.INCOMPLETE in codes:
        return "Make the call again, complete; if it was cut off for its length, make it shorter or split it."
    if Code.UNKNOWN_TOOL in codes:
        return "Call one of the declared tools, by its exact name."
    return "Make the call again with all of its arguments, corrected as said above."


def _identities(turn: Assembled) -> list[str]:
    """The calls' ids, made up where one is missing or used twice: each result must name one call."""
    taken: set[str] = set()
    identities = []
    for index, call in enumerate(turn):
        identity = call.id or f"call_{index}"
        while identity in taken:
            identity = f"{identity}_{index}"
        taken.add(identity)
        identities.append(identity)
    return identities


def _result(protocol: str | None, identity: str, text: str) -> dict[str, Any]:
    if protocol == "responses":
        return {"type": "function_call_output", "call_id": identity, "output": text}
    if protocol == "messages":
        return {"type": "tool_result", "tool_use_id": identity, "is_error": True, "content": text}
    return {"role": "tool", "tool_call_id": identity, "content": text}


def _object(call: Call) -> dict[str, Any]:
    reading = read(call.arguments)
    return reading.value if not reading.faults and isinstance(reading.value, dict) else {}


def _sendable(call: Call) -> str:
    if call.kind == "custom":
        return call.arguments
    reading = read(call.arguments)
    return call.arguments if not reading.faults and isinstance(reading.value, dict) else "{}"


def _chat_call(call: Call, identity: str) -> dict[str, Any]:
    key = "input" if call.kind == "custom" else "arguments"
    return {"id": identity, "type": call.kind, call.kind: {"name": call.name, key: _sendable(call)}}


def _responses_call(call: Call, identity: str) -> dict[str, Any]:
    kind, key = ("custom_tool_call", "input") if call.kind == "custom" else ("function_call", "arguments")
    return {"type": kind, "call_id": identity, "name": call.name, key: _sendable(call)}


class Gate:
    """Collects one turn's chunks and hands over its calls once they are verified.

    ``tools``: as in the request, or compiled ``Tools``.  ``show_values``: let messages quote bad values.
    One gate serves one conversation: ``reset`` before each turn (``through`` and ``athrough`` do it).
    Raises ToolsError for unusable tools, ImportError without ``jsonschema``.
    """

    def __init__(self, tools: Iterable[Any] | Tools, *, show_values: bool = False) -> None:
        self._tools = tools if isinstance(tools, Tools) else Tools(tools)
        self._show_values = show_values
        self._assembler = Assembler()

    def reset(self) -> None:
        """Forget the chunks of the last turn."""
        self._assembler = Assembler()

    def feed(self, chunk: Any) -> None:
        """Take the next chunk of the turn: a dict or a client's object."""
        self._assembler.feed(chunk)

    def through(self, stream: Iterable[Chunk]) -> Iterator[Chunk]:
        """Begin a turn, and take all chunks of a stream while they pass."""
        self.reset()
        for chunk in stream:
            self.feed(chunk)
            yield chunk

    async def athrough(self, stream: AsyncIterable[Chunk]) -> AsyncIterator[Chunk]:
        """The same for an asynchronous stream."""
        self.reset()
        async for chunk in stream:
            self.feed(chunk)
            yield chunk

    def turn(self, *, choice: int = 0) -> Assembled:
        """What has been received so far, unverified."""
        return self._assembler.result(choice)

    def calls(self, *, choice: int = 0, expected_calls: int | None = None) -> list[VerifiedCall]:
        """The verified calls of the turn; empty if the model called nothing.  Raises CallsRefused."""
        return self.check(self.turn(choice=choice), expected_calls=expected_calls)

    def check(self, turn: Assembled, *, expected_calls: int | None = None) -> list[VerifiedCall]:
        """The same for a turn at hand, such as ``from_response`` gives.  Raises CallsRefused."""
        issues, values = examine(turn, self._tools, expected_calls=expected_calls, show_values=self._show_values)
        if issues:
            raise CallsRefused(issues, turn)
        return [
            VerifiedCall(call.name, value, call.arguments, call.id, call.kind)
            for call, value in zip(turn, values, strict=True)
        ]
