"""The machine as users see it: a turn's text in, events out.  ``core`` has the map of what happens between.

Reading a whole text is feeding it once; there is no other parser.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Literal

from .dialects import DIALECTS
from .envelope import State, Take, Text, refuse
from .events import ArgumentsDelta, CallEnd, CallStart, Content, Event
from .input import SLICE, Input
from .sentinels import markup
from .tools import Tools
from .writer import Writer


class PythonicStream:
    """Reads one model turn incrementally.

    ``feed`` the text in pieces of any size, then ``finish``; both return the events that have
    become certain.  Neither raises on any text.  CPU time is linear in the text and the cost of a
    piece depends on the piece; what is kept is bounded by the open block.

    ``dialect``: a key of ``dialects.DIALECTS``: ``"lfm2"``, ``"llama4"``, ….
    ``tools``: the tools the request declares, in any shape that ``tools`` lists: those of the OpenAI and
    Anthropic APIs (dicts or objects), or parameter names by tool name.  They give positional arguments
    their names and decide some ambiguities.
    ``mode``: ``"delta"`` sends arguments as they come, ``"call"`` each call whole when it is complete.
    ``special_tokens``: texts of the form ``<…>`` left out of the content; None: the dialect's own.  Markers
    that belong to no block are left out with them.  ``()``: the client asked for special tokens, so all
    of them stay, these markers too.

    Raises ValueError for an unknown dialect or mode.
    """

    def __init__(
        self,
        dialect: str = "lfm2",
        tools: Tools = None,
        *,
        mode: Literal["delta", "call"] = "delta",
        special_tokens: Iterable[str] | None = None,
    ) -> None:
        if dialect not in DIALECTS:
            raise ValueError(f"Unknown dialect {dialect!r}: use one of {', '.join(sorted(DIALECTS))}.")
        if mode not in ("delta", "call"):
            raise ValueError(f"Unknown mode {mode!r}: use 'delta' or 'call'.")
        known = DIALECTS[dialect]
        hidden = known.special_tokens if special_tokens is None else tuple(special_tokens)
        self._out = Writer(whole=mode == "call")
        self._input = Input()
        self._state: State = Text(known, tools, markup(known.markers, hidden, not hidden), self._out)
        self._take: Take = self._state.take  # the state's, or one that refuses while something is held

    def feed(self, text: str) -> list[Event]:
        """Read the next piece of the turn, which may be empty."""
        # Nearly always nothing was held, no marker begins in the text, and the state goes on.
        if "<" in text or len(text) > SLICE or not self._take(text):
            self._input.add(text)
            self._read()
        out = self._out
        events = out.events
        if not events:
            return []
        out.events = []
        return events

    def finish(self) -> list[Event]:
        """The turn is over.  Nothing may be fed after this."""
        self._input.close()
        self._read()
        self._out.finish()
        events, self._out.events = self._out.events, []
        return events

    def _read(self) -> None:
        """Read what there is of the turn, in state after state."""
        turn = self._input
        while turn.next_slice():
            while (state := self._state.read(turn)) is not None:
                self._state = state
        self._take = self._state.take if turn.at == len(turn.text) else refuse

    @property
    def cut(self) -> bool:
        """After ``finish``: whether the turn ended inside a call (contract 3.1).

        Such a call is dropped, and no event tells of it unless a part of it was sent: whoever must not take a cut
        turn for a whole one asks here.
        """
        return self._out.cut


@dataclass(frozen=True)
class ToolCall:
    """A complete call.  ``arguments``: one valid JSON object, as text.

    Less than ``wire.turn.Call``, which the core does not know: a model's text has no ids and no half calls.
    """

    name: str
    arguments: str


@dataclass(frozen=True)
class ParseResult:
    """What a turn holds: its complete calls in order, and the text outside them."""

    calls: tuple[ToolCall, ...]
    content: str


def collect(events: Iterable[Event]) -> ParseResult:
    """Put events together: the complete calls, and the content."""
    names: dict[int, str] = {}
    arguments: dict[int, list[str]] = {}
    complete: list[int] = []
    content: list[str] = []
    for event in events:
        if isinstance(event, Content):
            content.append(event.text)
        elif isinstance(event, ArgumentsDelta):
            arguments[event.index].append(event.text)
        elif isinstance(event, CallStart):
            names[event.index] = event.name
            arguments[event.index] = []
        elif isinstance(event, CallEnd):
            complete.append(event.index)
    calls = tuple(ToolCall(names[index], "".join(arguments[index])) for index in complete)
    return ParseResult(calls, "".join(content))


def parse(
    text: str, dialect: str = "lfm2", tools: Tools = None, *, special_tokens: Iterable[str] | None = None
) -> ParseResult:
    """Read a whole turn; parameters as for :class:`PythonicStream`."""
    stream = PythonicStream(dialect, tools, mode="call", special_tokens=special_tokens)
    return collect([*stream.feed(text), *stream.finish()])
