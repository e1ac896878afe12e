"""Finding sentinels, the special tokens that structure a turn, in text that arrives in pieces."""

from __future__ import annotations

import re
from collections.abc import Iterable

_SENTINEL = re.compile("<[^<>]+>")


def is_sentinel(text: str) -> bool:
    """Whether ``text`` has the form ``<…>``: no such text is the beginning or a part of another."""
    return bool(_SENTINEL.fullmatch(text))


class Sentinels:
    """A set of sentinels, to be found also where they have only begun to arrive."""

    def __init__(self, tokens: Iterable[str]) -> None:
        tokens = sorted(tokens)
        self._pattern = re.compile("|".join(map(re.escape, tokens)) or r"(?!)")
        self._beginnings = frozenset(token[:length] for token in tokens for length in range(1, len(token)))
        self._longest = max(map(len, tokens), default=0)

    def find(self, text: str, start: int, final: bool) -> tuple[re.Match[str] | None, int]:
        """The first one at or after ``start``, and where it begins.

        None, and where one may have begun at the end of the text (``final``: the length of the text).
        """
        first = text.find("<", start)
        if first < 0:
            return None, len(text)
        token = self._pattern.search(text, first)
        if token:
            return token, token.start()
        last = text.rfind("<", max(start, len(text) - self._longest))
        if last >= 0 and not final and text[last:] in self._beginnings:
            return None, last
        return None, len(text)

    def remove(self, text: str) -> str:
        """``text`` without them."""
        return self._pattern.sub("", text)
