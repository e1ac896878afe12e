"""OpenAI Responses: the events of a stream or a whole response, and the input items of a history.

Items are told apart by ``output_index``.  The protocol says everything twice: a call's text is its deltas, and
the closing events repeat it.  Both must agree.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from .turn import Building, Call, Problems, Turn, error_message, is_index, nameless, plain, settled, text_of

_CALLS = {"function_call": "arguments", "custom_tool_call": "input"}
"""Types of items that the client has to answer, with the member that holds the call's text.

All other calls (web search, code interpreter, MCP …) are the server's own, or have no declared function."""

_DELTAS = ("response.function_call_arguments.delta", "response.custom_tool_call_input.delta")
_DONE = {
    "response.function_call_arguments.done": "arguments",
    "response.custom_tool_call_input.done": "input",
}
_ENDS = ("completed", "incomplete", "failed", "cancelled")
_THOUGHTS = ("response.reasoning_text.delta", "response.reasoning_summary_text.delta")


class Response:
    """One response while it streams."""

    def __init__(self, problems: Problems) -> None:
        self._problems = problems
        self._calls: dict[int, Building] = {}
        self._content: list[str] = []
        self._reasoning: list[str] = []
        self._status: str | None = None

    def feed(self, kind: str, event: Mapping[str, Any], offset: int | None = None) -> None:
        """Take the next event.  ``kind``: its type."""
        if kind == "response.output_text.delta" and isinstance(event.get("delta"), str):
            self._content.append(event["delta"])
        elif kind in _THOUGHTS and isinstance(event.get("delta"), str):
            self._reasoning.append(event["delta"])
        elif kind in ("response.output_item.added", "response.output_item.done"):
            self._item(event.get("item"), event.get("output_index"), kind.endswith("done"), offset)
        elif kind in _DELTAS or kind in _DONE:
            self._arguments(kind, event, offset)
        elif kind.removeprefix("response.") in _ENDS:
            self._end(kind.removeprefix("response."), event.get("response"), offset)

    def whole(self, response: Mapping[str, Any]) -> None:
        """Take a whole response."""
        for index, item in enumerate(map(plain, response["output"])):
            if isinstance(item, Mapping) and item.get("type") == "message":
                for part in item["content"] if isinstance(item.get("content"), list) else ():
                    if isinstance(part, Mapping) and isinstance(part.get("text"), str):
                        self._content.append(part["text"])
            self._item(item, index, True, None)
        # "in_progress" and "queued" are states of a response that has not ended.
        status = text_of(response.get("status"))
        if status in _ENDS:
            self._end(status, response, None)
        elif status not in ("in_progress", "queued"):
            self._status = status

    def result(self) -> Turn:
        """What has come together so far."""
        calls = tuple(call.call() for call in self._ordered())
        problems = (*self._problems.all(), *nameless(calls))
        return Turn(
            calls, "".join(self._content), self._status, "responses", problems, "".join(self._reasoning)
        )  # fmt: skip

    def _item(self, item: Any, index: Any, done: bool, offset: int | None) -> None:
        kind = item.get("type") if isinstance(item, Mapping) else None
        if not isinstance(kind, str) or kind not in _CALLS:
            return
        if not is_index(index):
            self._problems.malformed("a call has no output index", None, offset)
            return
        name, identity = text_of(item.get("name")), text_of(item.get("call_id"))
        text = item.get(_CALLS[kind])
        call = self._calls.get(index)
        if call is None:
            call = self._calls[index] = Building("function" if kind == "function_call" else "custom")
            call.name = name or ""
            call.id = identity
            call.namespace = text_of(item.get("namespace"))
            call.add(text if isinstance(text, str) else "", offset)
            if text is not None and not isinstance(text, str):
                self._problems.malformed("the arguments of a call are not a string", self._position(call), offset)
        elif done:
            self._agree(call, text, offset)
            if (name or "") != call.name or identity != call.id:
                self._problems.malformed("a call's name or id changes before its end", self._position(call), offset)
        else:
            message = "a second call begins under an output index that is taken"
            self._problems.malformed(message, self._position(call), offset)
        call.complete = done and item.get("status") != "incomplete"

    def _arguments(self, kind: str, event: Mapping[str, Any], offset: int | None) -> None:
        index = event.get("output_index")
        call = self._calls.get(index) if is_index(index) else None
        if call is None:
            self._problems.malformed("arguments arrive for a call that was never begun", None, offset)
        elif kind in _DONE:
            self._agree(call, event.get(_DONE[kind]), offset)
        elif not isinstance(event.get("delta"), str):
            self._problems.malformed("a piece of a call's arguments is not a string", self._position(call), offset)
        elif call.complete:
            self._problems.malformed("arguments arrive for a call that has ended", self._position(call), offset)
        else:
            call.add(event["delta"], offset)

    def _agree(self, call: Building, text: Any, offset: int | None) -> None:
        if not isinstance(text, str):
            return
        if call.empty:
            call.replace(text, offset)
        elif text != call.text:
            message = "the deltas of a call and its closing event say different arguments"
            self._problems.malformed(message, self._position(call), offset)
            call.replace(text, offset)  # what clients hand over in the end

    def _end(self, status: str, response: Any, offset: int | None) -> None:
        self._status = settled(self._status, status, "responses")
        if not isinstance(response, Mapping):
            return
        if response.get("error"):
            self._problems.add("error", error_message(response), None, offset)
        output = response.get("output")
        if status != "completed" or not isinstance(output, list):
            return
        final = [item for item in map(plain, output) if isinstance(item, Mapping)]
        final = [item for item in final if isinstance(item.get("type"), str) and item["type"] in _CALLS]
        if len(final) != len(self._calls):
            message = f"{len(self._calls)} calls were streamed, the completed response has {len(final)}"
            self._problems.malformed(message, None, offset)
        for call, item in zip(self._ordered(), final, strict=False):
            self._agree(call, item.get(_CALLS[item["type"]]), offset)
            if (item.get("name"), item.get("call_id")) != (call.name, call.id):
                message = "the completed response gives a call another name or id"
                self._problems.malformed(message, self._position(call), offset)

    def _ordered(self) -> list[Building]:
        return [self._calls[index] for index in sorted(self._calls)]

    def _position(self, call: Building) -> int:
        return self._ordered().index(call)


def history(turn: Turn, said: Sequence[tuple[Call, str]], results: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """The input items that repeat the turn: its text, its calls (each with the id to use), and their results."""
    text = [{"type": "message", "role": "assistant", "content": turn.content}] if turn.content else []
    return [*text, *(_call(call, identity) for call, identity in said), *results]


def result(call: Call, identity: str, text: str) -> dict[str, Any]:
    """The input item that answers a call."""
    kind = "custom_tool_call_output" if call.kind == "custom" else "function_call_output"
    return {"type": kind, "call_id": identity, "output": text}


def _call(call: Call, identity: str) -> dict[str, Any]:
    kind = "custom_tool_call" if call.kind == "custom" else "function_call"
    item = {"type": kind, "call_id": identity, "name": call.name, _CALLS[kind]: call.arguments}
    return item if call.namespace is None else {**item, "namespace": call.namespace}
