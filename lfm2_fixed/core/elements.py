"""What stands between two commas: passed ahead of the reader, whatever it is (contract 4.7.5, 4.7.6).

A later quote of a string closes where the list that it would end in goes on *to its end*, and the call with it: text
may have a quote, a comma and two literals in it, but hardly the end of the call as well.  So everything up to there is
passed here, literals or not: nothing is decoded, nothing is sent.
"""

from __future__ import annotations

import re

from .cursor import Reader, Source
from .expression import NONE, pass_expression
from .literals import opens_literal, pass_run, pass_string
from .tokens import CLOSERS, MAX_DEPTH, NEWLINES, QUOTES

# No literal and no expression, but what a slip may leave there; what opens or closes something is never passed so.
_OTHER = re.compile(rf"""[^'",()\[\]{{}}\\<#{NEWLINES}]*""")


class Elements:
    """Passes elements at the cursor."""

    __slots__ = ("_source", "_furthest", "open_string")

    def __init__(self, source: Source) -> None:
        self._source = source
        self._furthest = 0
        self.open_string = False
        """The last one has a string that does not end on its line, as raw literals have."""

    @property
    def reached(self) -> int:
        """The offset up to which text was looked at; it depends on the text alone."""
        return max(self._furthest, self._source.offset)

    def literal(self, char: str) -> Reader[bool]:
        """Pass a string or a scalar at ``char``, the next character.  False: there is none, or it does not end."""
        source = self._source
        if not (yield from opens_literal(source, char)):
            return False
        if (yield from source.peek()) in QUOTES:
            self.open_string = not (yield from pass_string(source, words=True))
            return not self.open_string
        yield from source.name()
        return True

    def element(self, closer: str, char: str) -> Reader[str]:
        """Pass a literal, an expression, or anything without quotes and brackets, at ``char``, the next character.

        Returns what is behind it, a comma or ``closer``; nothing, if it is neither.
        """
        source = self._source
        start = source.offset
        if (yield from (self._container(char) if char in CLOSERS else self.literal(char))):
            char = yield from source.skip(comments=False)
            if char in (",", closer):
                return char
        elif self.open_string:
            return ""
        self._rewind(start)
        if (yield from pass_expression(source)) is not NONE:
            char = yield from source.skip(comments=False)
            if char in (",", closer):
                return char
        self._rewind(start)
        yield from pass_run(source, _OTHER)
        char = yield from source.skip(comments=False)
        return char if char in (",", closer) and source.offset > start else ""

    def _rewind(self, offset: int) -> None:
        self._furthest = self.reached
        self._source.rewind(offset)

    def _container(self, char: str) -> Reader[bool]:
        """Pass a bracket with literals in it.  False: there is something else in it."""
        source = self._source
        closers: list[str] = []
        while True:
            if char in CLOSERS:
                closers.append(CLOSERS[char])
                source.pos += 1
            elif char == closers[-1]:
                closers.pop()
                source.pos += 1
                if not closers:
                    return True
            elif char in (",", ":"):
                source.pos += 1
            elif not (yield from self.literal(char)):
                return False
            if len(closers) > MAX_DEPTH:
                return False
            char = yield from source.skip(comments=False)
