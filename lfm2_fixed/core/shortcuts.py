"""Shortcuts for what is all there: plain calls and values, read by a few matches.

They give what the readers give, sooner, and nothing (None, the cursor unmoved) wherever the
readers would have to wait, look further or refuse.  Texts cut into single characters never come
this way, so the tests of chunk invariance compare the two.
"""

from __future__ import annotations

import re

from . import plain_values
from .cursor import Source
from .escapes import unescape
from .plain_values import AFTER_CALL, NAME
from .state import CALL, CLOSERS, DICT, LIST, MAX_DEPTH, Block, Frame

_FAR = 4096  # characters to look for a closing bracket in: without one nearby, nothing is tried

_ARGUMENT = re.compile(rf"({NAME})=(?=[^=])")
_NUMBER = re.compile(rf"{plain_values.NUMBER}(?= ?[,)\]}}])")
_STRING = {quote: re.compile(rf"{quote}({plain_values.body(quote)}){quote}(?!{quote})") for quote in "'\""}
# Where the list certainly goes on after a string, by the innermost open bracket.
_AFTER_ARGUMENT = re.compile(rf" ?(?:\) ?{AFTER_CALL}|, ?{NAME}=[^=])")
_AFTER_ELEMENT = {closer: re.compile(rf" ?(?:\{closer}|, ?['\"\[(0-9{{])") for closer in "])}"}
_AFTER_KEY = re.compile(r" ?:")
_AFTER_ENTRY = re.compile(r" ?(?:\}|, ?['\"])")


def short_call(block: Block) -> tuple[str, str] | None:
    """Take a call after which the list goes on: its name and its arguments as JSON text."""
    source = block.source
    if source.base + source.pos < block.plain_from:
        return None
    pieces: list[str] = []
    name, pos = plain_values.call(source.text, source.pos, block.tools, pieces)
    return (name, "".join(pieces)) if _taken(block, pos) else None


def short_container(block: Block) -> str | None:
    """Take a list or a dict: its JSON text."""
    source = block.source
    text = source.text
    start = source.pos
    if source.base + start < block.plain_from or text.find(CLOSERS[text[start]], start, start + _FAR) < 0:
        return None
    pieces: list[str] = []
    pos = plain_values.container(text, start, pieces, MAX_DEPTH - len(block.frames))
    return "".join(pieces) if _taken(block, pos) else None


def _taken(block: Block, pos: int) -> bool:
    """Go to ``pos``.  If that is the complement of where what is plain ends: no other attempt before it."""
    source = block.source
    if pos < 0:
        block.plain_from = source.base + ~pos
        return False
    source.pos = pos
    return True


def short_argument(source: Source) -> str | None:
    """Take ``name=``: the name."""
    name = _ARGUMENT.match(source.text, source.pos)
    if not name:
        return None
    source.pos = name.end()
    return name[1]


def short_string(source: Source, frame: Frame, quote: str) -> str | None:
    """Take a plain string that closes beyond doubt: its text."""
    string = _STRING[quote].match(source.text, source.pos)
    if not string:
        return None
    if frame.kind == CALL:
        after = _AFTER_ARGUMENT
    elif frame.kind == LIST:
        after = _AFTER_ELEMENT[frame.closer]
    elif frame.kind == DICT:
        after = _AFTER_KEY if frame.at_key else _AFTER_ENTRY
    else:
        return None
    if not after.match(source.text, string.end()):
        return None
    source.pos = string.end()
    return unescape(string[1])


def short_number(source: Source) -> str | None:
    """Take a number: its JSON text."""
    token = _NUMBER.match(source.text, source.pos)
    number = plain_values.number(token[0]) if token else ""
    if not token or not number:
        return None
    source.pos = token.end()
    return number


def short_numbers(source: Source) -> str | None:
    """Take numbers with a comma after each: their JSON text without the last comma."""
    pieces: list[str] = []
    pos = plain_values.numbers(source.text, source.pos, pieces)
    if pos < 0:
        return None
    source.pos = pos
    return pieces[0]
