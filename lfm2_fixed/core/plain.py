"""Text that is only text: what a turn says when no call may come of it, less some sentinels."""

from __future__ import annotations

from collections.abc import Iterable
from functools import lru_cache

from .sentinels import Sentinels, is_sentinel


@lru_cache(maxsize=64)
def _sentinels(hidden: tuple[str, ...]) -> Sentinels:
    return Sentinels(filter(is_sentinel, hidden))


class PlainText:
    """Passes text on, without the ``hidden`` sentinels, wherever these are cut."""

    __slots__ = ("_held", "_hidden")

    def __init__(self, hidden: Iterable[str]) -> None:
        self._hidden = _sentinels(tuple(hidden))
        self._held = ""

    def feed(self, text: str) -> str:
        """Add a delta and return what of the text so far is certain and was not returned before."""
        text = self._held + text
        pieces: list[str] = []
        start = 0
        while True:
            hidden, stop = self._hidden.find(text, start, final=False)
            pieces.append(text[start:stop])
            if hidden is None:
                self._held = text[stop:]
                return "".join(pieces)
            start = hidden.end()

    def finish(self) -> str:
        """End the text and return what was held back."""
        held, self._held = self._held, ""
        return held
