"""Text that is only text: what a turn says when no call may come of it, less some sentinels."""

from __future__ import annotations

import re
from collections.abc import Iterable
from functools import lru_cache


@lru_cache(maxsize=64)
def _patterns(hidden: frozenset[str]) -> tuple[re.Pattern[str], frozenset[str], int]:
    """A pattern of the hidden texts, their proper prefixes, and the longest prefix's length."""
    longest_first = sorted(hidden, key=lambda text: (-len(text), text))
    prefixes = frozenset(text[:end] for text in hidden for end in range(1, len(text)))
    return re.compile("|".join(map(re.escape, longest_first))), prefixes, max(map(len, hidden)) - 1


class PlainText:
    """Passes text on, without the ``hidden`` texts, wherever these are cut.

    What may be the beginning of a hidden text is held back until it is known.  The result does
    not depend on the cutting.
    """

    __slots__ = ("_hidden", "_prefixes", "_longest", "_held")

    def __init__(self, hidden: Iterable[str]) -> None:
        texts = frozenset(hidden)
        if not texts or "" in texts:
            raise ValueError("hidden must name at least one text, and no empty one")
        self._hidden, self._prefixes, self._longest = _patterns(texts)
        self._held = ""

    def feed(self, text: str) -> str:
        """Add a delta and return what of the text so far is certain and was not returned before."""
        text = self._held + text
        pieces: list[str] = []
        start = 0
        for match in self._hidden.finditer(text):
            pieces.append(text[start : match.start()])
            start = match.end()
        hold = len(text)
        for begin in range(max(start, len(text) - self._longest), len(text)):
            if text[begin:] in self._prefixes:
                hold = begin
                break
        pieces.append(text[start:hold])
        self._held = text[hold:]
        return "".join(pieces)

    def finish(self) -> str:
        """End the text and return what was held back."""
        held, self._held = self._held, ""
        return held
