"""Where literals begin, and where strings end by Python's own rule: for looking ahead and for resynchronising.

Nothing is decoded and nothing is sent here; ``strings`` and ``values`` read what is a value.  Where a
look-ahead fails it leaves the cursor at a place that depends on the text alone, never on how the text was
cut: the next look-ahead may be measured from there.
"""

from __future__ import annotations

import re

from .cursor import Reader, Source
from .tokens import CONSTANTS, DIGITS, NEWLINES, NO_TEXT_PREFIXES, PREFIXES, QUOTES, SIGNS

# Longest first, since "f" is the beginning of "fr"; the empty prefix comes last and always matches.
_PREFIX = re.compile("|".join(sorted(PREFIXES | NO_TEXT_PREFIXES, key=len, reverse=True)), re.IGNORECASE | re.ASCII)

_IN_LINE = {quote: re.compile(rf"[^{quote}\\{NEWLINES}]+") for quote in QUOTES}
_IN_TEXT = {quote: re.compile(rf"[^{quote}\\]+") for quote in QUOTES}


def opens_string(source: Source) -> Reader[str | None]:
    """At a significant character: the prefix (taken) if a string literal is next, else None."""
    while True:
        prefix = _PREFIX.match(source.text, source.pos)
        assert prefix
        if prefix.end() < len(source.text) or source.ended:
            break
        yield
    if source.text[prefix.end() : prefix.end() + 1] not in QUOTES:
        return None
    source.pos = prefix.end()
    return prefix[0]


def opens_literal(source: Source, char: str) -> Reader[bool]:
    """Whether a literal starts at ``char``, the next significant character (``""``: the block's end)."""
    if not char:
        return False
    if char in "'\"[({" or char in DIGITS:
        return True
    if char in SIGNS:
        source.pos += 1
        char = yield from source.skip(comments=False)
    if char == ".":
        source.pos += 1
        char = yield from source.peek()
    if char in DIGITS:
        return bool(char)
    if (yield from opens_string(source)) is not None:
        return True
    return (yield from source.word()) in CONSTANTS


_DIGIT_RUN = re.compile(r"[0-9_]*")
_HEX_RUN = re.compile(r"[0-9A-Fa-f_]*")
_EXPONENT = re.compile(r"e[+-]?[0-9]")


def pass_number(source: Source) -> Reader[bool]:
    """Pass the unsigned number of Python's that is next: the longest one, whatever is behind it.

    Python lets a keyword follow at once: ``1if x else 2``, and ``0x1for x`` is ``0x1f or x``.  Underscores may stand
    anywhere among the digits here, and there may be any number of them.
    """
    base = (yield from source.ahead(2)).lower()
    if base in ("0x", "0o", "0b"):
        source.pos += 2
        return bool((yield from pass_run(source, _HEX_RUN if base == "0x" else _DIGIT_RUN)))
    digits = yield from pass_run(source, _DIGIT_RUN)
    if (yield from source.peek()) == ".":
        source.pos += 1
        digits += yield from pass_run(source, _DIGIT_RUN)
    if not digits:
        return False
    exponent = (yield from source.ahead(3)).lower()
    if _EXPONENT.match(exponent):
        source.pos += 2
        yield from pass_run(source, _DIGIT_RUN)
    source.pos += (yield from source.peek()) in ("j", "J")
    return True


def pass_run(source: Source, pattern: re.Pattern[str]) -> Reader[int]:
    """Pass what the pattern, which matches anywhere, takes in one piece or many: how many characters."""
    start = source.offset
    while True:
        run = pattern.match(source.text, source.pos)
        assert run
        source.pos = run.end()
        if source.pos < len(source.text) or source.ended:
            return source.offset - start
        yield


def pass_string(source: Source, *, newlines: bool = False, words: bool = False) -> Reader[bool]:
    """Pass the literal whose first quote is next, by Python's rule.  False: it does not end.

    ``newlines``: it may hold them even where it is single-quoted, as models write them.
    ``words``: a quote between two letters or digits is an apostrophe, whatever Python says.
    """
    quote = source.text[source.pos]
    delimiter = quote
    # One character first: where it is no quote a third is not waited for, however the text is cut.
    second = source.text[source.pos + 1 : source.pos + 2] or (yield from source.ahead(2))[1:]
    if second == quote and (yield from source.ahead(3)) == quote * 3:
        delimiter = quote * 3
    source.pos += len(delimiter)
    plain = _IN_LINE[quote] if len(delimiter) == 1 and not newlines else _IN_TEXT[quote]
    before = ""  # the character before the cursor, inside the literal
    while True:
        run = plain.match(source.text, source.pos)
        if run:
            source.pos = run.end()
            before = run[0][-1]
        char = source.text[source.pos : source.pos + 1] or (yield from source.peek())
        if char == "\\":
            before = ""
            source.pos += 1
            escaped = yield from source.peek()
            if not escaped:
                return False
            source.pos += 1
            if escaped == "\r" and (yield from source.peek()) == "\n":
                source.pos += 1  # one end of a line, escaped as a whole
        elif char == quote:
            if words and len(delimiter) == 1 and before.isalnum():
                after = yield from source.ahead(2)
                if after[1:].isalnum():
                    source.pos += 1
                    before = ""
                    continue
            if len(delimiter) == 1 or (yield from source.ahead(3)) == delimiter:
                source.pos += len(delimiter)
                return True
            source.pos += 1
            before = quote
        elif not char or (char in NEWLINES and plain is _IN_LINE[quote]):
            return False
