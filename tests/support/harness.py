"""Feeding the machine and collecting what it says, with the event protocol checked on the way."""

from __future__ import annotations

import json
import random
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, Union

from lfm2_fixed import (
    ArgumentsDelta,
    CallAborted,
    CallEnd,
    CallStart,
    Content,
    PythonicStream,
    parse,
)

Tools = Mapping[str, Union[Sequence[str], Mapping[str, Any]]]


@dataclass
class Call:
    """One started call: ``state`` is ``"open"``, ``"complete"``, ``"cut"`` or ``"malformed"``."""

    name: str
    arguments: str = ""
    state: str = "open"


@dataclass
class Turn:
    """Everything one stream said."""

    started: list[Call] = field(default_factory=list)
    content: str = ""

    @property
    def calls(self) -> list[tuple[str, str]]:
        """The completed calls: name and argument text, in order."""
        return [(call.name, call.arguments) for call in self.started if call.state == "complete"]

    @property
    def completed(self) -> tuple[list[tuple[str, str]], str]:
        """What both modes must agree on."""
        return self.calls, self.content

    def add(self, events: Iterable[Any]) -> None:
        """Take events in, and check that they come in the documented order."""
        for event in events:
            current = self.started[-1] if self.started else None
            is_open = current is not None and current.state == "open"
            if isinstance(event, Content):
                assert event.text, "empty content"
                assert not is_open, "content inside an open call"
                self.content += event.text
            elif isinstance(event, CallStart):
                assert not is_open, "a call starts inside an open call"
                assert event.index == len(self.started), "call indexes do not run on"
                assert event.name, "a call without a name"
                self.started.append(Call(event.name))
            else:
                assert current is not None and is_open, f"{event} outside a call"
                assert event.index == len(self.started) - 1, "event of another call"
                if isinstance(event, ArgumentsDelta):
                    assert event.text, "empty arguments delta"
                    current.arguments += event.text
                    continue
                assert current.arguments, "a call was started without arguments"
                if isinstance(event, CallEnd):
                    current.state = "complete"
                else:
                    assert isinstance(event, CallAborted), event
                    assert event.reason in ("cut", "malformed")
                    current.state = event.reason


def stream(
    pieces: Iterable[str],
    dialect: str = "lfm2",
    tools: Tools | None = None,
    *,
    mode: Literal["delta", "call"] = "delta",
    special_tokens: Sequence[str] | None = None,
    watch: Any = None,
) -> Turn:
    """Feed ``pieces`` one by one, then finish. ``watch(turn, events, piece)`` sees every step."""
    machine = PythonicStream(dialect, tools, mode=mode, special_tokens=special_tokens)
    turn = Turn()
    for piece in pieces:
        events = machine.feed(piece)
        turn.add(events)
        if watch is not None:
            watch(turn, events, piece)
    events = machine.finish()
    turn.add(events)
    if watch is not None:
        watch(turn, events, "")
    assert not turn.started or turn.started[-1].state != "open", "a call is neither ended nor aborted"
    return turn


def whole(
    text: str,
    dialect: str = "lfm2",
    tools: Tools | None = None,
    *,
    special_tokens: Sequence[str] | None = None,
) -> tuple[list[tuple[str, str]], str]:
    """The non-streaming result: completed calls and content."""
    result = parse(text, dialect, tools, special_tokens=special_tokens)
    return [(call.name, call.arguments) for call in result.calls], result.content


def json_text(value: Any) -> str:
    """The JSON text the contract promises for a value."""
    return json.dumps(value, ensure_ascii=False)


def read_object(text: str) -> dict[str, Any]:
    """Read completed arguments as strictly as RFC 8259 wants: one object, no repeated key, no NaN."""

    def pairs(items: list[tuple[str, Any]]) -> dict[str, Any]:
        keys = [key for key, _ in items]
        assert len(keys) == len(set(keys)), f"repeated key in {text!r}"
        return dict(items)

    def constant(name: str) -> Any:
        raise AssertionError(f"{name} in {text!r}")

    # Numbers stay text: a completed integer may be longer than int() accepts.
    value = json.loads(text, object_pairs_hook=pairs, parse_constant=constant, parse_int=str)
    assert isinstance(value, dict), text
    text.encode("utf-8")  # a lone surrogate raises
    assert "\\ud8" not in text.lower() or _no_surrogate_escape(text), f"surrogate escape in {text!r}"
    return value


def _no_surrogate_escape(text: str) -> bool:
    """Whether decoding ``text`` gives no lone surrogate (a ``\\ud8…`` may be an escaped backslash's tail)."""
    json.dumps(json.loads(text, parse_int=str), ensure_ascii=False).encode("utf-8")
    return True


# ------------------------------------------------------------------ cuttings


def cut_at(text: str, positions: Iterable[int]) -> list[str]:
    """``text`` cut at the given offsets."""
    edges = [0, *sorted(positions), len(text)]
    return [text[start:end] for start, end in zip(edges, edges[1:])]


def every(text: str, size: int) -> list[str]:
    """Pieces of ``size`` characters."""
    return [text[start : start + size] for start in range(0, len(text), size)]


def random_cut(text: str, rng: random.Random, empty: float = 0.15) -> list[str]:
    """Random pieces, some of them empty; runs of single characters are likely."""
    pieces: list[str] = []
    position = 0
    while position < len(text):
        if rng.random() < empty:
            pieces.append("")
        size = rng.choice((1, 1, 1, 2, 3, 5, 8, 20, 60))
        pieces.append(text[position : position + size])
        position += size
    return pieces


def with_empties(pieces: Iterable[str]) -> list[str]:
    """The same pieces with an empty delta before each and at the end."""
    return [part for piece in pieces for part in ("", piece)] + [""]
