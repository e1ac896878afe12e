"""A turn's text on its way to the states of the envelope: a slice at a time, and again where a block left it."""

from __future__ import annotations

import re

SLICE = 4096
"""Characters read at once.  What a block leaves unread is read again, so it must not be much; and it must be
enough for what slicing costs not to show."""


class Input:
    """The text of a turn that has not been read yet, a slice at a time."""

    __slots__ = ("text", "at", "base", "found", "_later", "_closed")

    def __init__(self) -> None:
        self.text = ""  # the slice
        self.at = 0  # what is next in it
        self.base = 0  # offset of the slice, see ``offset``
        self.found: tuple[re.Match[str] | None, int] | None = None  # what the text's reader found in this slice
        self._later: list[tuple[str, int]] = []  # what follows, last first: texts, and where to go on in them
        self._closed = False

    @property
    def offset(self) -> int:
        """Of what is next.

        It counts what came through here and what blocks were given, but not other text that ``take`` took: such text
        is never read again, so places that were remembered before it are in front of all that follows, either way.
        """
        return self.base + self.at

    def set_offset(self, at: int, offset: int) -> None:
        """The character ``at`` of the slice is the one at ``offset``."""
        self.base = offset - at

    @property
    def ending(self) -> bool:
        """Whether the turn ends with the slice."""
        return self._closed and not self._later

    def add(self, text: str) -> None:
        """More has arrived."""
        self._later.append((text, 0))

    def close(self) -> None:
        """Nothing more will."""
        self._closed = True
        self._later.append(("", 0))

    def next_slice(self) -> bool:
        """Go on to the next slice, which begins with what is left of this one.  False: there is none."""
        if not self._later:
            return False
        text, start = self._later.pop()
        if len(text) - start > SLICE:
            self._later.append((text, start + SLICE))
        self._replace(self.text[self.at :] + text[start : start + SLICE])
        return True

    def read_again(self, text: str) -> None:
        """``text``, which ends with what is left of the slice, takes its place."""
        self._later.append((text, 0))
        self.at = len(self.text) - len(text)  # before the slice, if that much was read from earlier ones
        self._replace("")

    def _replace(self, text: str) -> None:
        self.base += self.at
        self.text = text
        self.at = 0
        self.found = None
