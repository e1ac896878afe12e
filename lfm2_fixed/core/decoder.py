"""Decoded text on its way into a JSON string: surrogate halves that arrive apart become one character."""

from __future__ import annotations

import re
from collections.abc import Callable
from json.encoder import encode_basestring  # type: ignore[attr-defined]

from .escapes import read_shared, same_json
from .state import Block

_SURROGATE = re.compile("[\ud800-\udfff]")
_PAIR = re.compile("[\ud800-\udbff][\udc00-\udfff]")


class Decoder:
    """Writes decoded text; joins surrogate halves that arrive apart."""

    __slots__ = ("_send", "_high", "same")

    def __init__(self, block: Block) -> None:
        self._send = block.out.send
        self._high = ""
        self.same: Callable[[str], None] = self._send
        """Takes text that JSON writes as it is: nearly all there is, and nearly never behind half a character."""

    def text(self, text: str) -> None:
        if self._high or (not text.isascii() and _has_surrogate(text)):
            text = self._join(text)
        if text:
            self._send(encode_basestring(text)[1:-1])

    def _behind_half(self, text: str) -> None:
        self.flush()
        self._send(text)

    def shared(self, text: str, quote: str, *, plain: bool) -> None:
        """Text as it stands in a literal with this ``quote``, whose escapes JSON shares.

        ``plain``: JSON writes the text between the escapes as it is.
        """
        json = same_json(text, quote)
        if "\\u" in json or not plain:  # ``json.dumps`` escapes no more than it must
            self.text(read_shared(json))
        else:
            self.same(json)

    def _join(self, text: str) -> str:
        text = self._high + text
        self._high, self.same = "", self._send
        text = _PAIR.sub(lambda pair: pair[0].encode("utf-16", "surrogatepass").decode("utf-16"), text)
        if text and "\ud800" <= text[-1] <= "\udbff":
            self._high, self.same = text[-1], self._behind_half
            text = text[:-1]
        return _SURROGATE.sub("\ufffd", text)

    def flush(self) -> None:
        if self._high:
            self._high, self.same = "", self._send
            self._send("\ufffd")


def _has_surrogate(text: str) -> bool:
    """Whether half a pair stands in the text, or both as two characters.  Encoding tells it faster than a pattern."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return True
    return False
