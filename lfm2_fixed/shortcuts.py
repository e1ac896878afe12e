"""Shortcuts for what is all there: short tokens with what follows them, read by one match.

They give what the readers give, sooner, and nothing (None, the cursor unmoved) wherever the
readers would have to wait, look further or refuse.  Texts cut into single characters never come
this way, so the tests of chunk invariance compare the two.
"""

from __future__ import annotations

import re

from .numbers import number_json
from .source import Source
from .state import CALL, DICT, LIST, Frame

_NUMBER = re.compile(r"(-?)([0-9][0-9A-Za-z_.]*)(?=[,)\]}])")
_ARGUMENT = re.compile(r"([A-Za-z_][A-Za-z0-9_]*)=(?=[^=])")
_BODY = {quote: re.compile(rf"{quote}([^{quote}\\\r\n\ud800-\udfff]*){quote}(?!{quote})") for quote in "'\""}
# Where the list certainly goes on after a string, by the innermost open bracket.
_AFTER_ARGUMENT = re.compile(r" ?(?:\) ?[,;\]]|, ?[A-Za-z_][A-Za-z0-9_]*=[^=])")
_AFTER_ELEMENT = {closer: re.compile(rf" ?(?:\{closer}|, ?['\"\[(0-9{{])") for closer in "])}"}
_AFTER_KEY = re.compile(r" ?:")
_AFTER_ENTRY = re.compile(r" ?(?:\}|, ?['\"])")


def short_number(source: Source) -> str | None:
    """Take a number: its JSON text."""
    token = _NUMBER.match(source.text, source.pos)
    number = number_json(token[2], token[1]) if token else None
    if token and number is not None:
        source.pos = token.end()
    return number


def short_argument(source: Source) -> str | None:
    """Take ``name=``: the name."""
    name = _ARGUMENT.match(source.text, source.pos)
    if not name:
        return None
    source.pos = name.end()
    return name[1]


def short_string(source: Source, frame: Frame, quote: str) -> str | None:
    """Take a string without escapes that closes beyond doubt: its text."""
    body = _BODY[quote].match(source.text, source.pos)
    if not body:
        return None
    if frame.kind == CALL:
        after = _AFTER_ARGUMENT
    elif frame.kind == LIST:
        after = _AFTER_ELEMENT[frame.closer]
    elif frame.kind == DICT:
        after = _AFTER_KEY if frame.at_key else _AFTER_ENTRY
    else:
        return None
    if not after.match(source.text, body.end()):
        return None
    source.pos = body.end()
    return body[1]
