"""Slips of punctuation around a quote (contract 4.7.7): broken, so that nothing is completed by a guess.

A quote that does not close is text, and the literal goes on to the next one that might.  Where a comma, a quote,
a bracket or an equals sign is missing, or is one too many, that would be one argument that swallows the rest.
What shows it is a declared name in the place where only a slip would put it, or a quote that stands alone at
the very edge of a text.  The rules were chosen by measuring slips in plain calls against code as values.
"""

from __future__ import annotations

import re

from .cursor import Reader, Source
from .literals import pass_string
from .state import CALL, DICT, LIST, OBJECT, Block, Frame
from .tokens import NAME_CHARACTERS, QUOTES

_CLOSERS_AND_COMMAS = re.compile(r"[ \t,)\]}]*")


def quoted_name(block: Block, after: int) -> Reader[bool]:
    """Whether the literal is an argument without a name and ``=`` follows: ``f('path'='a')``."""
    source = block.source
    if not block.positional or block.named or len(block.frames) > 1:
        return False
    source.rewind(after)
    return (yield from source.skip(comments=False)) == "=" and (yield from source.ahead(2)) != "=="


def slipped_entry(block: Block, after: int) -> Reader[bool]:
    """Whether punctuation is broken behind a string's first quote, which does not close, where keys have colons.

    A key without a colon or a value (``{'a' 'b', …}``, ``{'k': 'v', 'l'}``), a key in a set, a value that the next
    key follows without a comma (``{'a': 'x' 'b': …}``).  In the keys and the name of a call in JSON form no quote
    is text at all; right before a letter it opens a string, which is for ``lacks_quote`` to judge.
    """
    source = block.source
    frame = block.frames[-1]
    cut = source.exhausted  # what would close the string may be missing only because the text ends
    source.rewind(after)
    if frame.word:
        return not cut and not (yield from source.peek()).isalnum()
    char = yield from source.skip(comments=False)
    if frame.kind == DICT and frame.at_key:
        while char and char in QUOTES and (yield from pass_string(source)):
            char = yield from source.skip()  # joined to a key, if a colon is behind it
        return char in (",", "}")
    if frame.kind == LIST:
        return char == ":" and frame.closer == "}"
    if frame.kind not in (DICT, OBJECT) or not char or char not in QUOTES or source.newline:
        return False
    return (yield from pass_string(source)) and (yield from source.skip(comments=False)) == ":"


def slipped(block: Block, after: int) -> Reader[bool]:
    """Whether punctuation is broken behind a quote that does not close.

    On the same line, after blanks, commas and closing brackets in any order: ``name=`` of a declared
    parameter that has no value yet, or ``name(`` of a declared tool; after a comma also that name and a quote.
    """
    source = block.source
    frame = block.frames[0]
    if not block.tools or frame.kind != CALL:
        return False
    source.rewind(after)
    comma = False
    while True:
        run = _CLOSERS_AND_COMMAS.match(source.text, source.pos)
        assert run
        source.pos = run.end()
        comma = comma or "," in run[0]
        if source.pos < len(source.text) or source.ended:
            break
        yield
    char = source.text[source.pos : source.pos + 1]
    if not char.isalnum() and char != "_":
        return False
    name = yield from source.name(block.beginning_of_declared())
    missing = block.lacks(name)
    if not missing and name not in block.tools:
        return False
    char = yield from source.peek()
    if char == "(":
        return name in block.tools
    if char == "=":
        return missing and (yield from source.ahead(2)) != "=="
    return missing and comma and char in QUOTES  # the equals sign is missing


def is_stray_quote(source: Source, start: int, quote: int) -> bool:
    """Whether the only quote in a text, which closes at the cursor, is one too many: ``"Paris""``, ``''Paris'``.

    ``start`` and ``quote`` are the offsets of the text and of that quote.  A text has quotes in pairs, and
    apostrophes inside words.  At its very beginning or end a single one is a slip, unless it may be an
    apostrophe (``'the boys''``, ``''tis so'``, ``''90s'``) or inches (``"5""``).
    """
    mark = source.since(quote)[0]
    if quote == start:
        neighbour = source.since(quote)[1]
        return mark == '"' or not (neighbour.islower() or neighbour.isdigit())
    if quote == source.offset - 2:
        neighbour = source.since(quote - 1)[0]
        if mark == '"':
            return not neighbour.isdigit()
        return neighbour.isupper() or neighbour.isdigit() or neighbour in ")]}"
    return False


_LONGEST_BEGINNING = 100
"""Characters before a quote to look for ``name(…, name=`` in: what is longer is not looked for."""
_NAME_RUN = re.compile(rf"[{NAME_CHARACTERS}]*")


def _name_before(text: str, end: int) -> str:
    """The run of name characters that ends at ``end``, read backwards."""
    run = _NAME_RUN.match(text[:end][::-1])
    assert run
    return run[0][::-1]


def _key_lacks_quote(source: Source, start: int, frame: Frame, *, first: bool) -> bool:
    """The same in a key, ``{'a: 'x', …}``: a colon is behind it.  In a call's keys and name it is before a letter."""
    if not first or frame.word:
        return first and source.text[source.pos : source.pos + 1].isalnum()
    before = source.since(max(start, source.offset - _LONGEST_BEGINNING))[:-1]
    return before.rstrip(" ").endswith(":")


def lacks_quote(block: Block, start: int, *, first: bool) -> bool:
    """Whether a quote is missing before the one just passed, which opens a string: it is text of the literal so far.

    The text from ``start`` on then ends with the beginning of a declared tool's call, ``name(name=``, or
    (``first``: this is the literal's first quote, on its first line) with ``, name=`` of a declared parameter
    that has no value yet.
    """
    source = block.source
    frame = block.frames[0]
    if block.frames[-1].at_key or block.frames[-1].word:
        return _key_lacks_quote(source, start, block.frames[-1], first=first)
    if not block.tools or frame.kind != CALL:
        return False
    text = source.since(max(start, source.offset - _LONGEST_BEGINNING))[:-1]
    if not text.endswith("="):
        return False
    argument = _name_before(text, len(text) - 1)
    before = text[: len(text) - 1 - len(argument)]
    bracket = before.rfind("(")
    if bracket >= 0 and before[-1] in "( ,":
        parameters = block.tools.get(_name_before(before, bracket), ())
        if argument in parameters:
            if first:
                block.python_end = start  # the missing quote is somewhere behind
            return True
    return first and (not before or before.rstrip(" ").endswith(",")) and block.lacks(argument)
