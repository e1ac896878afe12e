"""Deltas, as vLLM's serving layer takes them.

What a delta does not say (``wire.deltas``) is *unset* here, not null, since ``"id": null`` breaks strict clients.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from ..core.events import ArgumentsDelta, Content, Event
from ..wire.deltas import Piece, gather, new_call_id
from .compat import DeltaFunctionCall, DeltaMessage, DeltaToolCall


def _factory(model: Any) -> Callable[[dict[str, Any], set[str]], Any]:
    """A constructor of ``model`` from values that need no validation.

    Building and validating three nested models is most of what a delta costs, so the instance is
    filled directly, as pydantic's ``model_construct`` does it, less its loop over the fields.
    Fields that are not in ``fields`` count as unset and are left out of the JSON.
    """
    empty = model.model_construct()
    defaults = {**dict.fromkeys(model.model_fields), **empty.__dict__}
    extra, private = empty.__pydantic_extra__, empty.__pydantic_private__
    new, assign = model.__new__, object.__setattr__

    def build(values: dict[str, Any], fields: set[str]) -> Any:
        instance = new(model)
        assign(instance, "__pydantic_fields_set__", fields)
        assign(instance, "__pydantic_extra__", None if extra is None else {})
        assign(instance, "__pydantic_private__", None if private is None else dict(private))
        assign(instance, "__dict__", {**defaults, **values})
        return instance

    return build


_delta_message = _factory(DeltaMessage)
_delta_tool_call = _factory(DeltaToolCall)
_delta_function_call = _factory(DeltaFunctionCall)


def content_delta(text: str) -> DeltaMessage:
    """A delta with content alone."""
    return _delta_message({"content": text, "tool_calls": []}, {"content"})


def reasoning_delta(reasoning: str, content: str) -> DeltaMessage | None:
    """A delta with a piece of the thought, of what is said after it, or of both; None without either."""
    if not reasoning:
        return content_delta(content) if content else None
    if not content:
        return _delta_message({"reasoning": reasoning, "tool_calls": []}, {"reasoning"})
    fields = {"reasoning": reasoning, "content": content}
    return _delta_message({**fields, "tool_calls": []}, set(fields))


def delta(content: str, calls: list[DeltaToolCall]) -> DeltaMessage:
    """A delta with pieces of calls, and with content unless ``content`` is empty."""
    if content:
        return _delta_message({"content": content, "tool_calls": calls}, {"content", "tool_calls"})
    return _delta_message({"tool_calls": calls}, {"tool_calls"})


def first_delta(index: int, call_id: str, name: str, arguments: str) -> DeltaToolCall:
    """The delta that opens a call."""
    function = _delta_function_call({"name": name, "arguments": arguments}, {"name", "arguments"})
    return _delta_tool_call(
        {"id": call_id, "type": "function", "index": index, "function": function},
        {"id", "type", "index", "function"},
    )


def arguments_delta(index: int, arguments: str) -> DeltaToolCall:
    """A later delta of a call: id, type and name are unset rather than null."""
    function = _delta_function_call({"arguments": arguments}, {"arguments"})
    return _delta_tool_call({"index": index, "function": function}, {"index", "function"})


def message(events: Sequence[Event]) -> DeltaMessage | None:
    """The delta that says what ``events`` say, with one entry for each call; None if nothing."""
    if len(events) == 1:  # nearly always
        event = events[0]
        if type(event) is ArgumentsDelta:
            return _delta_message({"tool_calls": [arguments_delta(event.index, event.text)]}, {"tool_calls"})
        return content_delta(event.text) if type(event) is Content else None
    content, pieces = gather(events)
    if pieces:
        return delta(content, list(map(_call, pieces)))
    return content_delta(content) if content else None


def _call(piece: Piece) -> DeltaToolCall:
    if piece.name is None:
        return arguments_delta(piece.index, piece.arguments)
    return first_delta(piece.index, new_call_id(), piece.name, piece.arguments)
