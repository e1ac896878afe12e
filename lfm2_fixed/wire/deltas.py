"""What a batch of events says on the wire: one delta's content and pieces of calls, for whoever writes deltas.

Two rules of the wire (contract 7.1): a call's first delta has its ``index``, ``id``, ``type`` and ``name``, later
ones have ``index`` and ``arguments`` only; and what a delta does not say is left out, not null.  Which of the two a
piece is, its ``name`` tells; the plugin builds vLLM's models from the pieces, the proxy dicts.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any
from uuid import uuid4

from ..core.events import ArgumentsDelta, CallStart, Content, Event


@dataclass(slots=True)  # frozen ones take three times as long to make
class Piece:
    """The next piece of one call.  ``name``: None unless the call begins with it.  ``arguments``: JSON text."""

    index: int
    name: str | None
    arguments: str


def gather(events: Sequence[Event]) -> tuple[str, list[Piece]]:
    """The content and the pieces of calls in these events, one piece for each call, in the order of the calls.

    A call's end and its abortion say nothing on the wire: they show in the finish reason, or not at all.
    """
    if len(events) == 1 and type(event := events[0]) is ArgumentsDelta:  # nearly always
        return "", [Piece(event.index, None, event.text)]
    content: list[str] = []
    names: dict[int, str] = {}
    arguments: dict[int, list[str]] = {}
    for event in events:
        if type(event) is ArgumentsDelta:
            arguments.setdefault(event.index, []).append(event.text)
        elif type(event) is Content:
            content.append(event.text)
        elif type(event) is CallStart:
            names[event.index] = event.name
            arguments[event.index] = []
    pieces = [Piece(index, names.get(index), "".join(texts)) for index, texts in arguments.items()]
    return "".join(content), pieces


def new_call_id() -> str:
    """An id for a call, of the form that vLLM gives."""
    return f"chatcmpl-tool-{uuid4().hex}"


def as_dict(piece: Piece) -> dict[str, Any]:
    """The entry of ``tool_calls`` in a delta."""
    if piece.name is None:
        return {"index": piece.index, "function": {"arguments": piece.arguments}}
    function = {"name": piece.name, "arguments": piece.arguments}
    return {"index": piece.index, "id": new_call_id(), "type": "function", "function": function}
