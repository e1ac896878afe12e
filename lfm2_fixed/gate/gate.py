"""The gate: takes a turn as a whole, or refuses it."""

from __future__ import annotations

from collections.abc import AsyncIterable, AsyncIterator, Iterable, Iterator
from dataclasses import dataclass, replace
from typing import Any, Literal, TypeVar

from ..wire import chat, messages, responses
from ..wire.assemble import Assembler
from ..wire.strict_json import read
from ..wire.text import sendable
from ..wire.turn import Call, Turn
from .schemas import Tools, compiled_tools
from .validate import Code, Issue, examine

Chunk = TypeVar("Chunk")


@dataclass(frozen=True)
class VerifiedCall:
    """A call that may be run.

    ``arguments``: the value, exactly as the model gave it (for a ``custom`` tool: its text).
    ``text``: the arguments as they were sent.  ``id``: what the tool result must name.
    ``namespace``: the one that the tool was declared in, where the call names it.
    """

    name: str
    arguments: Any
    text: str
    id: str | None
    kind: Literal["function", "custom"] = "function"
    namespace: str | None = None


class CallsRefused(Exception):
    """The turn has issues, so none of its calls may be run.

    ``issues``: all of them.  ``turn``: what was received, unverified.
    """

    def __init__(self, issues: list[Issue], turn: Turn) -> None:
        self.issues = issues
        self.turn = turn
        super().__init__("; ".join(map(str, issues)))

    def tool_results(self) -> list[dict[str, Any]]:
        """A result for each call that tells the model what to mend, in the shape of the turn's protocol."""
        results: list[dict[str, Any]] = sendable(self._results())
        return results

    def messages(self) -> list[dict[str, Any]]:
        """What to append to the conversation: the model's turn, then a result for each of its calls.

        Arguments that are no JSON object stand in the history as ``{}``: servers parse it and would answer
        with an error.  Without any call: one user message with the reasons.  It can be sent as it is: what has no
        form in UTF-8 is replaced.
        """
        if not self.turn.calls:
            return [{"role": "user", "content": sendable(self._text(None))}]
        wire = _wire(self.turn.protocol)
        said = [(_readable(call), identity) for call, identity in zip(self.turn, _identities(self.turn))]
        history: list[dict[str, Any]] = sendable(wire.history(self.turn, said, self._results()))
        return history

    def _results(self) -> list[dict[str, Any]]:
        wire = _wire(self.turn.protocol)
        pairs = zip(self.turn, _identities(self.turn))
        return [wire.result(call, identity, self._text(index)) for index, (call, identity) in enumerate(pairs)]

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
    if Code.OVER_BUDGET in codes:
        return "Make the call again with simpler arguments."
    if Code.INCOMPLETE in codes:
        return "Make the call again, complete; if it was cut off for its length, make it shorter or split it."
    if Code.UNKNOWN_TOOL in codes:
        return "Call one of the declared tools, by its exact name."
    return "Make the call again with all of its arguments, corrected as said above."


def _wire(protocol: str | None) -> Any:
    """The module that writes the turn's protocol."""
    return {"responses": responses, "messages": messages}.get(protocol or "", chat)


def _identities(turn: Turn) -> list[str]:
    """The calls' ids, made up where one is missing or used twice: each result must name one call."""
    taken: set[str] = set()
    identities = []
    for index, call in enumerate(turn):
        identity = sendable(call.id or f"call_{index}")
        while identity in taken:
            identity = f"{identity}_{index}"
        taken.add(identity)
        identities.append(identity)
    return identities


def _readable(call: Call) -> Call:
    """The call with arguments that a server can read."""
    if call.kind == "custom":
        return call
    reading = read(call.arguments)
    right = not reading.faults and isinstance(reading.value, dict)
    return call if right else replace(call, arguments="{}")


class Gate:
    """Collects one turn's chunks and hands over its calls once they are verified.

    ``tools``: as in the request, or compiled ``Tools``.  ``show_values``: let messages quote bad values.
    One gate serves one conversation: ``reset`` before each turn (``through`` and ``athrough`` do it).
    Raises ToolsError for unusable tools, ImportError without ``jsonschema``.
    """

    def __init__(self, tools: Iterable[Any] | Tools, *, show_values: bool = False) -> None:
        self._tools = compiled_tools(tools)
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

    def turn(self, *, choice: int = 0) -> Turn:
        """What has been received so far, unverified."""
        return self._assembler.result(choice)

    def calls(self, *, choice: int = 0, expected_calls: int | None = None) -> list[VerifiedCall]:
        """The verified calls of the turn; empty if the model called nothing.  Raises CallsRefused."""
        return self.check(self.turn(choice=choice), expected_calls=expected_calls)

    def check(self, turn: Turn, *, expected_calls: int | None = None) -> list[VerifiedCall]:
        """The same for a turn at hand, such as ``from_response`` gives.  Raises CallsRefused."""
        issues, values = examine(turn, self._tools, expected_calls=expected_calls, show_values=self._show_values)
        if issues:
            raise CallsRefused(issues, turn)
        return [
            VerifiedCall(call.name, value, call.arguments, call.id, call.kind, call.namespace)
            for call, value in zip(turn, values, strict=True)
        ]
