"""Slips of punctuation around a quote (contract 4.7.7): broken, so that nothing is completed by a guess.

A quote that does not close is text, and the literal goes on to the next one that might.  Where a comma, a quote,
a bracket or an equals sign is missing, or is one too many, that would be one argument that swallows the rest.
What shows it is a declared name in the place where only a slip would put it, or a quote that stands alone at
the very edge of a text.  The rules were chosen by measuring slips in plain calls against code as values.
"""

from __future__ import annotations

import re

from .cursor import Reader, Source
from .state import CALL, Block
from .tokens import NAME_CHARACTERS, QUOTES

_CLOSERS_AND_COMMAS = re.compile(r"[ \t,)\]}]*")


def quoted_name(block: Block, after: int) -> Reader[bool]:
    """Whether the literal is an argument without a name and ``=`` follows: ``f('path'='a')``."""
    source = block.source
    if not block.positional or block.named or len(block.frames) > 1:
        return False
    source.rewind(after)
    return (yield from source.skip(comments=False)) == "=" and (yield from source.ahead(2)) != "=="


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


def lacks_quote(block: Block, start: int, *, first: bool) -> bool:
    """Whether a quote is missing before the one just passed, which opens a string: it is text of the literal so far.

    The text from ``start`` on then ends with the beginning of a declared tool's call, ``name(name=``, or
    (``first``: this is the literal's first quote, on its first line) with ``, name=`` of a declared parameter
    that has no value yet.
    """
    source = block.source
    frame = block.frames[0]
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
