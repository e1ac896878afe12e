"""What parsers made of the payloads, for people: a table, and what was expected where they differ."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence

from rich.console import Console
from rich.table import Table
from rich.text import Text

from .readers import Outcome
from .turns import Payload

Outcomes = Mapping[str, Mapping[str, Outcome]]
"""By payload id, then by way of reading."""

_SHORT = {"1 char": "1", "3 chars": "3", "7 chars": "7", "tokens": "tok"}
_LEGEND = {
    "1 char": "1, 3, 7: streamed, so many characters a delta",
    "tokens": "tok: streamed, a token a delta",
    "streamed": "streamed: as the server cuts it",
    "whole": "whole: not streamed",
}


def right(payload: Payload, outcomes: Mapping[str, Outcome]) -> bool:
    """Whether every way of reading gave what the payload says, or has nothing to say."""
    return all(outcome.void or outcome.matches(payload) for outcome in outcomes.values())


def void(outcomes: Mapping[str, Outcome]) -> str:
    """Why the readings of a payload say nothing; empty where they do."""
    return next((outcome.void for outcome in outcomes.values() if outcome.void), "")


def all_right(payloads: Sequence[Payload], outcomes: Outcomes) -> bool:
    """Whether all payloads were read right in every way."""
    return all(right(payload, outcomes[payload.id]) for payload in payloads)


def print_report(
    console: Console, payloads: Sequence[Payload], parsers: Mapping[str, Outcomes], *, details: bool = True
) -> None:
    """Print the table, the differences (with ``details``) and one line of sums for each parser."""
    console.print(_table(payloads, parsers))
    ways = {way for outcomes in parsers.values() for one in outcomes.values() for way in one}
    legend = [words for way, words in _LEGEND.items() if way in ways]
    voids = {reason: None for outcomes in parsers.values() for one in outcomes.values() if (reason := void(one))}
    legend += [f"-: {reason}" for reason in voids]
    console.print(Text("; ".join(["ok: every call and all text exact, NO: not", *legend]), "dim"), soft_wrap=True)
    if details:
        for line in _details(payloads, parsers):
            console.print(Text(line), soft_wrap=True)
    for name, outcomes in parsers.items():
        judged = [payload for payload in payloads if not void(outcomes[payload.id])]
        count = sum(right(payload, outcomes[payload.id]) for payload in judged)
        style = "bold green" if count == len(judged) else "bold red"
        left = len(payloads) - len(judged)
        not_judged = f"; {left} not judged (-)" if left else ""
        console.print(Text(f"{name}: {count} of {len(judged)} payloads right in every way{not_judged}", style))


def _table(payloads: Sequence[Payload], parsers: Mapping[str, Outcomes]) -> Table:
    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0))
    table.add_column("payload", no_wrap=True)
    for name, outcomes in parsers.items():
        ways = [_SHORT.get(way, way).ljust(3) for way in next(iter(outcomes.values()))]
        table.add_column(f"{name.split()[0].rstrip(':')}\n{' '.join(ways)}", no_wrap=True)
    for payload in payloads:
        cells = []
        for outcomes in parsers.values():
            cell = Text()
            for way, outcome in outcomes[payload.id].items():
                mark, style = ("ok", "green") if outcome.matches(payload) else ("NO", "bold red")
                if outcome.void:
                    mark, style = "-", "dim"
                cell.append(mark.ljust(max(3, len(_SHORT.get(way, way))) + 1), style)
            cells.append(cell)
        table.add_row(payload.id, *cells)
    return table


def _details(payloads: Sequence[Payload], parsers: Mapping[str, Outcomes]) -> Iterator[str]:
    for payload in payloads:
        if all(right(payload, outcomes[payload.id]) for outcomes in parsers.values()):
            continue
        yield ""
        yield f"{payload.id}: {payload.about}"
        yield f"  text      {_line(payload.text)}"
        calls = [(name, json.dumps(arguments, ensure_ascii=False)) for name, arguments in payload.calls]
        expected = payload.fits.words if payload.fits else _show(Outcome(tuple(calls), payload.content))
        yield f"  expected  {expected}"
        for name, outcomes in parsers.items():
            # Ways with the same result share a line.
            ways: dict[Outcome, list[str]] = {}
            for way, outcome in outcomes[payload.id].items():
                if not outcome.void and not outcome.matches(payload):
                    ways.setdefault(outcome, []).append(way)
            for outcome, names in ways.items():
                yield f"  {name}, {', '.join(names)}"
                yield f"    got     {_show(outcome)}"
    yield ""


def _show(outcome: Outcome) -> str:
    if outcome.error:
        return f"an error: {_line(outcome.error)}"
    parts = [f"{name} {_line(arguments)}" for name, arguments in outcome.calls]
    if outcome.content.strip():
        parts.append(f"content {_line(json.dumps(outcome.content, ensure_ascii=False))}")
    return "; ".join(parts) or "nothing"


def _line(text: str) -> str:
    """On one line, and not too long for a terminal.  A line break is a sign of its own: a model may write ``\\n``."""
    text = "".join(char if char.isprintable() else "⏎" if char == "\n" else repr(char)[1:-1] for char in text)
    return text if len(text) <= 400 else f"{text[:300]} … ({len(text)} characters)"
