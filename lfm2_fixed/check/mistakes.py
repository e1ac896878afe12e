"""The mistakes that hand-written clients make when they put streamed calls together.

Each is a whole reassembly of a Chat Completions stream, wrong in one way.  What a client has is compared with
what each of them makes of the capture, so that a verdict can name the mistake.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Any

from ..wire.turn import Call, is_index


@dataclass(frozen=True)
class Mistake:
    """``description`` completes "a client that …"."""

    description: str
    reassemble: Callable[[Iterable[str]], list[Call]]


def _choices(frames: Iterable[str]) -> Iterator[dict[str, Any]]:
    for frame in frames:
        try:
            chunk = json.loads(frame)
        except (ValueError, RecursionError):
            continue
        choices = chunk.get("choices") if isinstance(chunk, dict) else None
        if isinstance(choices, list):
            yield from (c for c in choices if isinstance(c, dict) and c.get("index", 0) == 0)


def _pieces(choice: dict[str, Any]) -> list[tuple[Any, str, str]]:
    """Index, name and arguments of each piece of a call in one chunk."""
    delta = choice.get("delta")
    entries = delta.get("tool_calls") if isinstance(delta, dict) else None
    pieces = []
    for entry in entries if isinstance(entries, list) else ():
        function = entry.get("function") if isinstance(entry, dict) else None
        function = function if isinstance(function, dict) else {}
        index = entry.get("index") if isinstance(entry, dict) else None
        name, arguments = function.get("name"), function.get("arguments")
        pieces.append(
            (
                index if is_index(index) else None,
                name if isinstance(name, str) else "",
                arguments if isinstance(arguments, str) else "",
            )
        )
    return pieces


def _calls(built: Iterable[list[str]]) -> list[Call]:
    return [Call(name, arguments) for name, arguments in built]


def _ignoring_index(frames: Iterable[str]) -> list[Call]:
    built: list[list[str]] = []
    for choice in _choices(frames):
        for _, name, arguments in _pieces(choice):
            if not built:
                built.append(["", ""])
            built[0][0] += name
            built[0][1] += arguments
    return _calls(built)


def _first_piece_only(frames: Iterable[str]) -> list[Call]:
    built: dict[Any, list[str]] = {}
    for choice in _choices(frames):
        for index, name, arguments in _pieces(choice)[:1]:
            call = built.setdefault(index, ["", ""])
            call[0] += name
            call[1] += arguments
    return _calls(built.values())


def _assigning(frames: Iterable[str]) -> list[Call]:
    built: dict[Any, list[str]] = {}
    for choice in _choices(frames):
        for index, name, arguments in _pieces(choice):
            call = built.setdefault(index, ["", ""])
            call[0] = name or call[0]
            call[1] = arguments or call[1]
    return _calls(built.values())


def _opening_only(frames: Iterable[str]) -> list[Call]:
    built: dict[Any, list[str]] = {}
    for choice in _choices(frames):
        for index, name, arguments in _pieces(choice):
            built.setdefault(index, [name, arguments])
    return _calls(built.values())


def _call_per_piece(frames: Iterable[str]) -> list[Call]:
    return [Call(name, arguments) for choice in _choices(frames) for _, name, arguments in _pieces(choice)]


def _stopping_at_finish(frames: Iterable[str]) -> list[Call]:
    built: dict[Any, list[str]] = {}
    for choice in _choices(frames):
        if choice.get("finish_reason"):
            break
        for index, name, arguments in _pieces(choice):
            call = built.setdefault(index, ["", ""])
            call[0] += name
            call[1] += arguments
    return _calls(built.values())


def _dropping_blanks(frames: Iterable[str]) -> list[Call]:
    built: dict[Any, list[str]] = {}
    for choice in _choices(frames):
        for index, name, arguments in _pieces(choice):
            call = built.setdefault(index, ["", ""])
            call[0] += name
            call[1] += arguments.strip()
    return _calls(built.values())


MISTAKES = (
    Mistake("does not look at the index, and joins all calls into one", _ignoring_index),
    Mistake("reads only the first entry of tool_calls in each chunk", _first_piece_only),
    Mistake("assigns each piece of the arguments in place of appending it", _assigning),
    Mistake("keeps only the first piece of each call's arguments", _opening_only),
    Mistake("takes every piece for a call of its own", _call_per_piece),
    Mistake("stops reading at the finish reason, and loses what that chunk brings", _stopping_at_finish),
    Mistake("strips the pieces of the arguments", _dropping_blanks),
)
