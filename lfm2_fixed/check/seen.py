"""What the user's client made of a stream, against what was sent; and the mistake that would explain it."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from ..wire.assemble import Assembler
from ..wire.sse import NotAChunk, SSEvent, read_chunk
from ..wire.turn import Call, Turn
from .blame import Fault, Finding, located
from .compare import difference
from .mistakes import MISTAKES
from .replay import Break, Cuttings, Reading


def seen_by_client(reading: Reading, cuttings: Cuttings, seen: Sequence[Call]) -> list[Finding]:
    """A finding if the client has something else than was sent."""
    turn = reading.turns.get(0) or Turn()
    differs = difference(turn.calls, seen)
    if differs is None:
        return []
    message = f"the client has something else than was sent: {differs.message}"
    mistake = _mistake(reading, cuttings, seen)
    if mistake:
        message += f". It has what a client gets that {mistake}"
    return [located(turn, differs, 0, Fault.CLIENT, "CLIENT_DIFFERS", message, True)]


def _mistake(reading: Reading, cuttings: Cuttings, seen: Sequence[Call]) -> str | None:
    texts = [event.data for event in reading.events]
    for mistake in MISTAKES:
        if difference(mistake.reassemble(texts), seen) is None:
            return mistake.description
    for breaks in cuttings.breaks.values():
        # What goes wrong with every read goes wrong with all of them; a cut may have come alone.
        trials = [breaks] if breaks[0].always else [[one] for one in breaks]
        for trial in trials:
            if difference(_calls(reading.events, trial), seen) is None:
                where = "" if trial[0].always else f", when a read ends at byte {trial[0].offset:,}"
                return f"{trial[0].client.description}{where}: {trial[0].client.why}"
    return None


def _calls(events: Sequence[SSEvent], breaks: Iterable[Break]) -> Sequence[Call]:
    """The calls of a client that has other data in place of some events'."""
    changed = {one.event: one.data for one in breaks}
    assembler = Assembler()
    for number, event in enumerate(events):
        for text in changed.get(number, (event.data,)):
            try:
                assembler.feed(read_chunk(SSEvent(text, event.name, event.start, event.end)))
            except NotAChunk:
                continue
    return assembler.result().calls
