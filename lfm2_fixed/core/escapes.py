"""Simple escapes (a backslash and one character that stand for one character), and JSON's strings."""

from __future__ import annotations

import re
from json.encoder import encode_basestring  # type: ignore[attr-defined]

from .tokens import SIMPLE_ESCAPES

SIMPLE_ESCAPE = rf"\\[{re.escape(''.join(SIMPLE_ESCAPES))}]"
"""A pattern of all of them."""


def unescape(text: str) -> str:
    """``text``, whose backslashes all begin simple escapes, decoded.

    A backslash for itself comes first: two in a row are one such escape wherever all escapes have two characters.
    """
    if "\\" not in text:
        return text
    return "\\".join(map(_unescape_part, text.split("\\\\")))


_OTHERS = [("\\" + char, meaning) for char, meaning in SIMPLE_ESCAPES.items() if char != "\\"]


def _unescape_part(text: str) -> str:
    """The same without backslashes for themselves: whole replacements are faster than a call for each escape."""
    for escape, meaning in _OTHERS:
        if "\\" not in text:
            break
        text = text.replace(escape, meaning)
    return text


def json_string(text: str) -> str:
    """``text`` as a JSON string, with quotes; the same as ``json.dumps(text, ensure_ascii=False)``."""
    return str(encode_basestring(text))
