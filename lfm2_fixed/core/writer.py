"""The one way out: a turn's content and its calls, as events that are certain.

Content comes in segments that blocks and calls given back set apart (contract 6.9).  With no
block it is the text exactly.  Otherwise the segments are joined by newlines, without the blanks
beside a block or at the end of the turn; the first segment keeps its leading blanks.  Blanks are
therefore held until what follows them is known.

Of a call, scalars carry the structure (contract 2.1).  ``put`` adds structure (braces, keys, commas),
which waits; ``send`` adds text that is certain and takes everything that waits along, the call's name
first of all.  Between ``hold`` and ``take`` nothing leaves: for what may yet become something else
(the first element after ``(`` or ``{``, keys, f-strings).
"""

from __future__ import annotations

from typing import Literal

from .events import ArgumentsDelta, CallAborted, CallEnd, CallStart, Content, Event
from .tokens import TEXT_BLANKS


class Writer:
    """Makes the events of one turn; ``whole`` sends nothing of a call before its end."""

    __slots__ = (
        "events", "name", "index", "cut", "_waiting", "_holds", "_whole", "_calls",
        "_blanks", "_fresh", "_sent", "_parted",
    )  # fmt: skip

    def __init__(self, *, whole: bool = False) -> None:
        self.events: list[Event] = []  # that have become certain; whoever takes them leaves another list
        self._whole = whole
        # The call that is open.
        self.name = ""
        self.index: int | None = None  # None until the call shows in the stream
        self._waiting: list[str] = []
        self._holds = 0
        self._calls = 0  # that were started in this turn
        self.cut = False  # the turn ended inside a call
        # The content.
        self._blanks: list[str] = []  # that may turn out to end a segment
        self._fresh = False  # at the start of a segment that is not the first
        self._sent = False
        self._parted = False  # there was a block

    # ---- content ----

    def text(self, text: str) -> None:
        """More text of the current segment."""
        if self._fresh:
            text = text.lstrip(TEXT_BLANKS)
        if not text:
            return
        if self._blanks or text[-1] in TEXT_BLANKS:
            body = text.rstrip(TEXT_BLANKS)
            if not body:
                self._blanks.append(text)
                return
            blanks = text[len(body) :]
            text = "".join(self._blanks) + body
            self._blanks.clear()
            if blanks:
                self._blanks.append(blanks)
        if self._fresh:
            self._fresh = False
            if self._sent:
                text = "\n" + text
        self._sent = True
        self.events.append(Content(text))

    def part(self) -> None:
        """A block, or a call given back, ends the current segment."""
        self._blanks.clear()
        self._fresh = self._parted = True

    def segment(self, text: str) -> None:
        """A whole segment of its own."""
        self.part()
        self.text(text.rstrip(TEXT_BLANKS))
        self.part()

    def finish(self) -> None:
        """The end of the turn."""
        if self._blanks and not self._parted:
            self.events.append(Content("".join(self._blanks)))
        self._blanks.clear()

    # ---- calls ----

    def begin(self) -> None:
        """A call may begin.  The one before it has ended or was aborted."""
        self.name = ""
        self.index = None
        self._waiting.clear()
        self._holds = 1 if self._whole else 0

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
            self.events.append(ArgumentsDelta(self.index, text))

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
        self.events.append(CallEnd(self.index))  # type: ignore[arg-type]

    def abort(self, reason: Literal["cut", "malformed"]) -> None:
        """The call will not be completed."""
        if reason == "cut":
            self.cut = True  # also where nothing of the call was sent, so that no event says it
        if self.index is not None:
            self.events.append(CallAborted(self.index, reason))

    def _flush(self) -> None:
        text = "".join(self._waiting)
        self._waiting.clear()
        if self.index is None:
            self.index = self._calls
            self._calls += 1
            self.events.append(CallStart(self.index, self.name))
        if text:
            self.events.append(ArgumentsDelta(self.index, text))
