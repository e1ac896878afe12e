"""A verdict and what was read, as lines for a terminal and as a document for machines."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from ..wire.text import printable, shortened
from .blame import Finding
from .clients import CLIENTS
from .replay import Cuttings, Reading
from .verdict import Verdict


def as_document(verdict: Verdict, data: bytes, reading: Reading, cuttings: Cuttings, seed: int) -> dict[str, Any]:
    """For machines.  What a model or a server wrote is in it as it was written, for JSON to escape."""
    return {
        **verdict.as_json(),
        "bytes": len(data),
        "events": len(reading.events),
        "calls": {choice: [call.name for call in turn] for choice, turn in reading.turns.items()},
        "cuttings": {
            "offsets": cuttings.offsets,
            "kinds": cuttings.kinds,
            "random": cuttings.random,
            "seed": seed,
        },
        "clients": list(_clients(cuttings)),
    }


def _clients(cuttings: Cuttings) -> Iterator[dict[str, Any]]:
    for client in CLIENTS:
        breaks = cuttings.breaks.get(client.description)
        if breaks is None:
            yield {"client": client.description, "breaks": False}
        else:
            first = breaks[0]
            yield {
                "client": client.description,
                "breaks": True,
                "when": first.delivery,
                "always": first.always,
                "offset": first.offset,
                "why": client.why,
                "expected": first.expected,
                "got": first.got,
            }


def as_lines(verdict: Verdict, data: bytes, reading: Reading, cuttings: Cuttings, seed: int) -> Iterator[str]:
    """For a terminal: nothing that a model or a server wrote is in it unescaped."""
    yield printable(verdict.summary)
    for finding in verdict.findings:
        yield ""
        yield from _finding(finding)
    yield ""
    for note in verdict.notes:
        yield f"Note: {printable(note)}"
    yield (
        f"Read: {len(data):,} bytes, {len(reading.events):,} events; cut at each of {cuttings.offsets:,} byte offsets "
        f"({cuttings.kinds:,} kinds of cut) and {cuttings.random} times in random pieces (seed {seed})."
    )
    if cuttings.breaks:
        yield "These bytes break a client that"
    for first in (breaks[0] for breaks in cuttings.breaks.values()):
        yield f"- {first.client.description}, {first.delivery} (byte {first.offset:,}): {first.client.why}."
        yield f"    expected: {printable(first.expected)}"
        yield f"    got:      {printable(first.got)}"
    right = [client.description for client in CLIENTS if client.description not in cuttings.breaks]
    if right:
        yield f"They break no client that {', or that '.join(right)}."


def _finding(finding: Finding) -> Iterator[str]:
    where = [] if finding.call is None else [f"call {finding.call}"]
    if finding.choice:
        where.append(f"choice {finding.choice}")
    if finding.pointer:
        where.append(f"at {printable(shortened(finding.pointer))}")
    if finding.offset is not None:
        where.append(f"byte {finding.offset:,}")
    certainty = "" if finding.shown else " (likely)"
    yield f"{finding.fault}{certainty}: {finding.code}{' in ' + ', '.join(where) if where else ''}"
    yield f"  {printable(finding.message)}"
    if finding.expected is not None:
        yield f"  expected: {printable(finding.expected)}"
    if finding.got is not None:
        yield f"  got:      {printable(finding.got)}"
