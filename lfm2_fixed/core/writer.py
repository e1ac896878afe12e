"""One call's arguments on their way out: JSON text that is sent as soon as it is certain.

Scalars carry structure.  ``put`` adds structure (braces, keys, commas), which waits; ``send`` adds
text that is certain and takes everything that waits along, the call's name first of all.  Between
``hold`` and ``take`` nothing leaves: for what may yet become something else (the first element
after ``(`` or ``{``, keys, f-strings).
"""

from __future__ import annotations

from typing import Literal

from .events import ArgumentsDelta, CallAborted, CallEnd, CallStart, Event


class Counter:
    """The index of the next call to start in this turn, and whether its last call was cut off."""

    __slots__ = ("cut", "next")

    def __init__(self) -> None:
        self.cut = False
        self.next = 0


class ArgumentsWriter:
    """Appends the events of one call to ``events``; ``whole`` sends nothing before the call's end."""

    __slots__ = ("name", "index", "_events", "_counter", "_waiting", "_holds", "_whole")

    def __init__(self, events: list[Event], counter: Counter, *, whole: bool) -> None:
        self.name = ""
        self.index: int | None = None  # None until the call shows in the stream
        self._events = events
        self._counter = counter
        self._waiting: list[str] = []
        self._holds = 1 if whole else 0
        self._whole = whole

    def put(self, text: str) -> None:
        """Structure: waits for the next scalar or closing bracket."""
        self._waiting.append(text)

    def send(self, text: str) -> None:
        """Certain text."""
        if self._waiting or self._holds or self.index is None:
            self._waiting.append(text)
            if not self._holds:
                self._flush()
        elif text:
            self._events.append(ArgumentsDelta(self.index, text))

    def hold(self) -> int:
        """Let nothing leave until ``take`` is called with the mark returned here."""
        self._holds += 1
        return len(self._waiting)

    def take(self, mark: int) -> str:
        """End the hold begun at ``mark`` and return (and remove) all that was added since."""
        self._holds -= 1
        text = "".join(self._waiting[mark:])
        del self._waiting[mark:]
        return text

    def end(self) -> None:
        """The call is complete: what waits is certain."""
        if self._whole:
            self._holds -= 1
        self._flush()
        self._events.append(CallEnd(self.index))  # type: ignore[arg-type]

    def complete(self, name: str, arguments: str) -> None:
        """A whole call at once."""
        index = self._counter.next
        self._counter.next = index + 1
        self._events += CallStart(index, name), ArgumentsDelta(index, arguments), CallEnd(index)

    def abort(self, reason: Literal["cut", "malformed"]) -> None:
        """The call will not be completed."""
        if reason == "cut":
            self._counter.cut = True  # also where nothing of the call was sent, so that no event says it
        if self.index is not None:
            self._events.append(CallAborted(self.index, reason))

    def _flush(self) -> None:
        text = "".join(self._waiting)
        self._waiting.clear()
        if self.index is None:
            self.index = self._counter.next
            self._counter.next += 1
            self._events.append(CallStart(self.index, self.name))
        if text:
            self._events.append(ArgumentsDelta(self.index, text))
