"""Finding sentinels, the special tokens that structure a turn, in text that arrives in pieces.

Two kinds: markers, which open and end blocks of calls, and tokens that are hidden from content.
Neither reaches a client who did not ask for special tokens.  A quoted marker is what the model
writes *about* markers, so it is text (contract 6.2).
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from functools import lru_cache

_SENTINEL = re.compile("<[^<>]+>")

MARKER_QUOTES = frozenset("\"'`")
"""Around a marker, the same on both sides, these make it text."""


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


@lru_cache(maxsize=64)
def sentinels(tokens: tuple[str, ...]) -> Sentinels:
    """One for all turns that look for the same."""
    return Sentinels(tokens)


class Markup:
    """The sentinels outside blocks: ``markers``, and ``hidden`` tokens.

    ``shown``: the client asked for special tokens, so markers that belong to no block stay in the text.
    """

    def __init__(self, markers: Iterable[str], hidden: Iterable[str], *, shown: bool = False) -> None:
        self.markers = frozenset(filter(is_sentinel, markers))
        self.shown = shown
        self._sentinels = Sentinels(self.markers | set(filter(is_sentinel, hidden)))

    def find(self, text: str, start: int, final: bool) -> tuple[re.Match[str] | None, int]:
        """The next one, as :meth:`Sentinels.find` finds it."""
        return self._sentinels.find(text, start, final)

    def is_quoted(self, token: re.Match[str], before: str, final: bool) -> bool | None:
        """Whether the marker just found is text, ``before`` being the character before it.

        None: what follows it must arrive first (``final``: nothing will).
        """
        if before not in MARKER_QUOTES or token[0] not in self.markers:
            return False
        after = token.string[token.end() : token.end() + 1]
        return after == before if after or final else None

    def clean(self, text: str) -> str:
        """A whole text, of a call that was given back, without what is not meant for the client."""
        return PlainText(self).whole(text)


@lru_cache(maxsize=64)
def markup(markers: tuple[str, ...], hidden: tuple[str, ...], shown: bool = False) -> Markup:
    """One for all turns with the same sentinels."""
    return Markup(markers, hidden, shown=shown)


class PlainText:
    """What a turn says when no call may come of it: its text without the sentinels, wherever these are cut."""

    __slots__ = ("_held", "_last", "_markup")

    def __init__(self, hidden: Markup | Iterable[str], markers: Iterable[str] = ()) -> None:
        """Leave out ``hidden`` tokens, and ``markers`` that are not quoted."""
        self._markup = hidden if isinstance(hidden, Markup) else markup(tuple(markers), tuple(hidden))
        self._held = ""
        self._last = ""  # the character before ``_held``, where no sentinel was left out there

    def feed(self, text: str) -> str:
        """Add a delta and return what of the text so far is certain and was not returned before."""
        return self._pass(self._held + text, False)

    def finish(self) -> str:
        """End the text and return what was held back."""
        return self._pass(self._held, True)

    def whole(self, text: str) -> str:
        """A whole text at once."""
        return self._pass(text, True)

    def _pass(self, text: str, final: bool) -> str:
        pieces: list[str] = []
        start = 0
        while True:
            token, stop = self._markup.find(text, start, final)
            if stop > start:
                pieces.append(text[start:stop])
                self._last = text[stop - 1]
            start = stop
            quoted = token and self._markup.is_quoted(token, self._last, final)
            if token is None or quoted is None:
                self._held = text[stop:]
                return "".join(pieces)
            start = token.end()
            if quoted or (self._markup.shown and token[0] in self._markup.markers):
                pieces.append(token[0])
            self._last = ""
