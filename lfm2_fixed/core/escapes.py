"""Escapes that need no more than what is there, and JSON's strings.

Simple escapes are a backslash and one character that stand for one character.  Most of them, and ``\\u``, JSON has
too: text with *shared* escapes alone is JSON's text of itself, but for the quotes, and need not be decoded.
"""

from __future__ import annotations

import re
import unicodedata
from json.decoder import scanstring  # type: ignore[attr-defined]
from json.encoder import encode_basestring  # type: ignore[attr-defined]

from .tokens import HEX_DIGITS, JSON_SAME_ESCAPES, PLAIN_BODY, QUOTES, SIMPLE_ESCAPES

SIMPLE_ESCAPE = rf"\\[{re.escape(''.join(SIMPLE_ESCAPES))}]"
"""A pattern of all of them."""

# Shared simple escapes in a literal with this quote, which may be escaped there as well.
_SAME_ESCAPE = {quote: rf"\\[{re.escape(JSON_SAME_ESCAPES)}{quote}]" for quote in QUOTES}
SAME_BODY = {quote: f"(?:{PLAIN_BODY[quote]}{_SAME_ESCAPE[quote]})*{PLAIN_BODY[quote]}" for quote in QUOTES}
"""A pattern of what may stand between the quotes of a string whose escapes are shared, ``\\u`` aside: ``same_json``
writes it.  Plain text is followed by one certain character wherever it stands: so, where the quote is missing, a
pattern finds out as fast as it goes over the text (a set behind the plain text would be tried at each place in it)."""
SHARED_ESCAPE = {quote: rf"(?:{_SAME_ESCAPE[quote]}|\\u[0-9A-Fa-f]{{{HEX_DIGITS['u']}}})" for quote in QUOTES}
"""A pattern of all that are shared."""
_LONGEST = 2 + HEX_DIGITS["u"]  # characters of such an escape


def same_json(text: str, quote: str) -> str:
    """JSON's text, without quotes, of ``text`` from a literal with this ``quote``, whose escapes are all shared.

    Only double quotes may differ.  Backslashes for themselves are set apart first, as in ``unescape``: then a
    backslash before a quote escapes it.
    """
    if quote == '"' or ("'" not in text and '"' not in text):
        return text
    return r"\\".join(part.replace(r"\'", "'").replace(r"\"", '"').replace('"', r"\"") for part in text.split(r"\\"))


def read_shared(json: str) -> str:
    """What ``same_json`` wrote, decoded; half of a surrogate pair stays as it is."""
    return str(scanstring(json + '"', 0, False)[0])


def scan_shared(text: str, start: int) -> tuple[str, int]:
    """Decode what is next in a double-quoted literal, and say where it ends: at the quote, or near the text's end.

    JSON's own scanner does it, for half of what a pattern of escapes takes.  Nothing, and ``start``: somewhere there
    is more than plain text and shared escapes.
    """
    end = text.find(r"\/", start)  # JSON alone has this escape
    if end < 0:
        end = text.rfind("\\", len(text) - _LONGEST + 1)  # one that may not be all there
    try:
        decoded, length = scanstring(text[start : len(text) if end < 0 else end] + '"', 0)
    except ValueError:  # another escape, a part of one, or a control character
        return "", start
    return decoded, start + length - 1


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


def unicode_character(name: str) -> str | None:
    """The character of ``\\N{name}``, if there is one: no named sequences, as in Python."""
    try:
        found = unicodedata.lookup(name)
    except KeyError:
        return None
    return found if len(found) == 1 else None


def json_string(text: str) -> str:
    """``text`` as a JSON string, with quotes; the same as ``json.dumps(text, ensure_ascii=False)``."""
    return str(encode_basestring(text))
