"""One turn with what was meant by it, and the verdict on what a parser made of it."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

START, END = "<|tool_call_start|>", "<|tool_call_end|>"

Call = tuple[str, str]
"""A call's name and its arguments as ``json.dumps(…, ensure_ascii=False)`` writes them."""

# Parameters with their JSON type, by tool name.
Schema = dict[str, dict[str, str]]
TOOLS: Schema = {
    "write_file": {"path": "string", "content": "string", "mode": "string"},
    "bash": {"command": "string", "timeout": "integer"},
    "edit": {"path": "string", "edits": "array", "count": "integer"},
    "save": {"title": "string", "meta": "object", "tags": "array"},
    "search": {"pattern": "string", "paths": "array", "limit": "integer"},
    "get_weather": {"city": "string", "days": "integer", "metric": "boolean"},
    "move": {"x": "number", "y": "number"},
}


def as_openai(schema: Schema) -> list[dict[str, Any]]:
    """The tools as a request declares them."""
    return [
        {
            "type": "function",
            "function": {
                "name": name,
                "parameters": {
                    "type": "object",
                    "properties": {parameter: {"type": kind} for parameter, kind in parameters.items()},
                },
            },
        }
        for name, parameters in schema.items()
    ]


@dataclass(frozen=True)
class Example:
    """A turn of the corpus.

    ``target``: the call in question, ``None`` where there is none to be had (or the slip is between the calls).
    ``siblings``: the other calls, which must arrive whatever becomes of it.
    ``python``: what CPython reads in the call in question, where it reads it as something else than was meant: the
    contract follows Python there (law L3), so such an answer is counted apart.
    """

    text: str
    row: str
    target: Call | None
    siblings: tuple[Call, ...]
    declared: bool
    python: tuple[Call, ...] = ()


@dataclass
class Tally:
    """The verdicts of one row.

    exact: the call in question arrived as meant.  given back: it did not, and nothing was invented.
    wrong: a completed call that nobody meant.  python: such a call, where it is what CPython reads in the text.
    """

    exact: int = 0
    given_back: int = 0
    wrong: int = 0
    python: int = 0
    siblings: int = 0
    siblings_kept: int = 0
    failed: list[tuple[str, Example, list[Call]]] = field(default_factory=list)

    @property
    def total(self) -> int:
        """How many turns."""
        return self.exact + self.given_back + self.wrong + self.python

    def add(self, example: Example, calls: Sequence[Call]) -> str:
        """Judge one answer; the verdict's name."""
        got = Counter(calls)
        kept = sum((got & Counter(example.siblings)).values())
        self.siblings += len(example.siblings)
        self.siblings_kept += kept
        invented = got - Counter(example.siblings)
        exact = example.target is not None and invented[example.target] > 0
        if exact and example.target is not None:
            invented -= Counter([example.target])
        if invented and not invented - Counter(example.python):
            self.python += 1
            return "python"
        if invented:
            verdict = "wrong"
            self.wrong += 1
        elif exact:
            verdict = "exact"
            self.exact += 1
        else:
            verdict = "given back"
            self.given_back += 1
        if verdict == "wrong" or kept < len(example.siblings) or (not exact and example.target is not None):
            self.failed.append((verdict, example, list(calls)))
        return verdict


def dump(value: Any) -> str:
    """Arguments as the contract writes them."""
    return json.dumps(value, ensure_ascii=False)
