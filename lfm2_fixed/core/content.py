"""The turn's content: text outside calls, in segments that blocks and calls given back set apart.

With no block the content is the text exactly.  Otherwise the segments are joined by newlines,
without the blanks beside a block or at the end of the turn; the first segment keeps its leading
blanks.  Blanks are therefore held until what follows them is known.
"""

from __future__ import annotations

from .events import Content, Event

BLANKS = " \t\r\n\f\v"


class ContentWriter:
    """Appends :class:`Content` events to ``events`` as soon as they are certain."""

    __slots__ = ("_events", "_held", "_fresh", "_sent", "_parted")

    def __init__(self, events: list[Event]) -> None:
        self._events = events
        self._held: list[str] = []  # blanks that may turn out to end a segment
        self._fresh = False  # at the start of a segment that is not the first
        self._sent = False
        self._parted = False  # there was a block

    def text(self, text: str) -> None:
        """More text of the current segment."""
        if self._fresh:
            text = text.lstrip(BLANKS)
        if not text:
            return
        if text[-1] in BLANKS:
            body = text.rstrip(BLANKS)
            if not body:
                self._held.append(text)
                return
            held, text = text[len(body) :], body
        else:
            held = ""
        if self._held:
            text = "".join(self._held) + text
            self._held.clear()
        if held:
            self._held.append(held)
        if self._fresh:
            self._fresh = False
            if self._sent:
                text = "\n" + text
        self._sent = True
        self._events.append(Content(text))

    def part(self) -> None:
        """A block or a call given back ends the current segment."""
        self._held.clear()
        self._fresh = self._parted = True

    def segment(self, text: str) -> None:
        """A whole segment of its own."""
        self.part()
        self.text(text.rstrip(BLANKS))
        self.part()

    def finish(self) -> None:
        """The end of the turn."""
        if self._held and not self._parted:
            self._events.append(Content("".join(self._held)))
        self._held.clear()
