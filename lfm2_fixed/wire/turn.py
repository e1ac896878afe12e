"""One turn of a model as it was received: its calls, its text, how it ended, and what was wrong with it.

These are the only types for calls and turns above the core: the three readers (``chat``, ``responses``,
``messages``) make them, and the gate, the replay and the proxy judge them.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, TypeGuard, overload

from .text import shortened

Protocol = Literal["chat", "responses", "messages"]
Kind = Literal["function", "custom"]

ENDED_WELL: Mapping[str, frozenset[str]] = {
    "chat": frozenset({"stop", "tool_calls", "function_call"}),
    "responses": frozenset({"completed"}),
    "messages": frozenset({"end_turn", "tool_use", "stop_sequence"}),
}
"""The finish reasons that say "the answer is whole", by protocol.

A list of what is allowed, since the words for everything else have no end: each server adds its own for being
aborted, paused, filtered or out of room, and a turn that ended for a reason not understood is not known to be
whole.  Source: the vendors' references for ``finish_reason``, ``status`` and ``stop_reason``.
"""


def settled(known: str | None, given: Any, protocol: Protocol) -> str | None:
    """The finish reason to keep, of what was said before and what is said now.

    An empty one is none: some servers write ``""`` on every chunk.  The first that does not end a turn well
    stays: a server that says "length" and then "stop" has told us that the turn was cut.
    """
    reason = text_of(given)
    return reason if reason and (known is None or known in ENDED_WELL[protocol]) else known


CALLS_PROMISED = frozenset({"tool_calls", "function_call", "tool_use"})
"""Finish reasons that say that the turn makes calls."""

MOST_PROBLEMS = 100
"""Problems that one turn keeps.  A broken server repeats its fault in each of thousands of chunks."""


@dataclass(frozen=True)
class Call:
    """One tool call as it was received.

    ``arguments``: the text as sent, never reformatted; for a ``custom`` tool the free text it takes.
    ``id``: what a tool result must name (``call_id`` in Responses), None if the server gave none.
    ``complete``: False if the protocol marks the end of a call and that mark never came.
    ``namespace``: the namespace that the tool was declared in (Responses), None for a tool of its own.
    ``trace``: pairs (characters of ``arguments`` so far, offset given with the chunk), for evidence.
    """

    name: str
    arguments: str
    id: str | None = None
    kind: Kind = "function"
    complete: bool = True
    namespace: str | None = None
    trace: tuple[tuple[int, int], ...] = field(default=(), compare=False, repr=False)


@dataclass(frozen=True)
class Problem:
    """Something in the stream itself that no client can make sense of.

    ``kind``: ``error`` (the server reported one), ``malformed`` (the protocol is broken) or ``unknown`` (an
    event that belongs to no protocol known here).
    ``call``: index of the call concerned, None for the whole turn.  ``offset``: as given with the chunk.
    """

    kind: Literal["error", "malformed", "unknown"]
    message: str
    call: int | None = None
    offset: int | None = None


@dataclass(frozen=True)
class Turn(Sequence[Call]):
    """The calls of one turn, in order, with what else decides whether they may be run.

    ``finish_reason``: as the server says it (``stop_reason`` in Messages, the status in Responses); None if
    the turn ended without one; where the server gave several, the first that does not end a turn well.
    ``content``: the text beside the calls.  ``reasoning``: what the server says the model thought.
    ``protocol``: None if nothing recognisable arrived.
    """

    calls: tuple[Call, ...] = ()
    content: str = ""
    finish_reason: str | None = None
    protocol: Protocol | None = None
    problems: tuple[Problem, ...] = ()
    reasoning: str = ""

    @property
    def ended_well(self) -> bool:
        """Whether the server says that the turn is whole.  A turn of no protocol may use any one's word."""
        if self.protocol is None:
            return any(self.finish_reason in reasons for reasons in ENDED_WELL.values())
        return self.finish_reason in ENDED_WELL[self.protocol]

    @property
    def cut(self) -> bool:
        """Whether it ended for a reason that does not say so: a limit, a filter, an abort, an unknown word."""
        return self.finish_reason is not None and not self.ended_well

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


class Problems:
    """Problems as they are found, each once."""

    def __init__(self) -> None:
        self._found: dict[tuple[str, str, int | None], Problem] = {}

    def add(
        self,
        kind: Literal["error", "malformed", "unknown"],
        message: str,
        call: int | None = None,
        offset: int | None = None,
    ) -> None:
        key = (kind, message, call)
        if key not in self._found and len(self._found) < MOST_PROBLEMS:
            self._found[key] = Problem(kind, message, call, offset)

    def malformed(self, message: str, call: int | None = None, offset: int | None = None) -> None:
        self.add("malformed", message, call, offset)

    def all(self) -> tuple[Problem, ...]:
        return tuple(self._found.values())


class Building:
    """A call while its pieces arrive.  ``position``: its index among the turn's calls, where it is known."""

    def __init__(self, kind: Kind = "function", position: int = 0) -> None:
        self.kind: Kind = kind
        self.position = position
        self.id: str | None = None
        self.name = ""
        self.namespace: str | None = None
        self.complete = True
        self._pieces: list[str] = []
        self._trace: list[tuple[int, int]] = []
        self._length = 0

    def add(self, text: str, offset: int | None) -> None:
        """The next piece of the arguments."""
        self._pieces.append(text)
        self._length += len(text)
        if offset is not None:
            self._trace.append((self._length, offset))

    def replace(self, text: str, offset: int | None) -> None:
        """The arguments as a whole, in place of the pieces."""
        self._pieces, self._length = [], 0
        self.add(text, offset)

    @property
    def text(self) -> str:
        return "".join(self._pieces)

    @property
    def empty(self) -> bool:
        return self._length == 0

    def call(self) -> Call:
        return Call(
            self.name, self.text, self.id, self.kind, self.complete, self.namespace, trace=tuple(self._trace)
        )  # fmt: skip


def nameless(calls: Sequence[Call], *, ids: bool = True) -> Iterator[Problem]:
    """What a turn's calls lack that every protocol gives them: a result could not be sent back without it.

    ``ids``: False for the API before tools, whose calls have none.
    """
    for index, call in enumerate(calls):
        if not call.name:
            yield Problem("malformed", "a call has no name", index)
        if ids and not call.id:
            yield Problem("malformed", "a call has no id", index)


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


def is_index(value: Any) -> TypeGuard[int]:
    """Whether this can be an index: JSON's ``true`` is none, though Python counts it as 1."""
    return isinstance(value, int) and not isinstance(value, bool) and value >= 0


def text_of(value: Any) -> str | None:
    """A string that says something.  Servers write ``""`` and null alike for "nothing"."""
    return value if isinstance(value, str) and value else None


def is_error(event: Mapping[str, Any]) -> bool:
    """Whether a document reports an error.  ``"error": null``, or anything else that is empty, reports none."""
    return bool(event.get("error")) or event.get("type") == "error" or event.get("object") == "error"


def error_message(event: Mapping[str, Any]) -> str:
    """What an error says, in one piece of bounded length."""
    error = event.get("error")
    source = error if isinstance(error, Mapping) else event
    said = text_of(source.get("message")) or text_of(error) or "no message"
    code = source.get("code") or source.get("type")
    said = shortened(said)
    if isinstance(code, (str, int)) and code != "error":
        said += f" (code {shortened(str(code), 60)})"
    return said
