"""A cursor over the text of one block that arrives in pieces, with memory.

Readers are generators: where the text runs out before its end is known they ``yield``, and are
resumed when :meth:`Source.feed` has added the next piece.  Offsets count characters from the
block's start.  What was read is kept, so that a reader can look ahead and :meth:`Source.rewind`, and a
call's source text can be given back.  Every operation costs what it moves over; nothing depends
on the length of the block.

The end of the block is a case of every reader: :meth:`Source.skip` answers ``""`` there.  The
block's own end sentinel never gets here (the envelope splits it off); the start sentinel of a
next block does, because inside a string it is text.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Generator, Sequence
from typing import TypeVar

from .tokens import BLANKS, NAME_CHARACTERS, NAME_PUNCTUATION, NEWLINES

T = TypeVar("T")
Reader = Generator[None, None, T]
"""A generator that yields whenever it needs more text, and returns a ``T``."""

_BLANKS = re.compile(rf"[{BLANKS}]+")
_NEWLINE = re.compile(rf"[{NEWLINES}]")
_COMMENT = re.compile(rf"[^{NEWLINES}<]+")
_NAME = re.compile(rf"[{NAME_CHARACTERS}]+")
_WORD = re.compile(r"\w+")
_NO_PUNCTUATION = str.maketrans("", "", NAME_PUNCTUATION)
NOT_NOW = frozenset(["", *BLANKS, *"\\#<"])
"""Characters where ``Source.skip`` must say what comes next; any other is a token's first (``""``: no text yet)."""


def is_name(text: str) -> bool:
    """Whether ``text`` can name a call or an argument: ``a.b``, ``get-it``, ``mcp/get``, ``3d``, ``from``."""
    return (
        bool(text)
        and text[0] not in NAME_PUNCTUATION
        and text[-1] not in NAME_PUNCTUATION
        and ("_" + text.translate(_NO_PUNCTUATION)).isidentifier()
    )


class Source:
    """See the module's contract.  ``text[pos]`` is the next character."""

    __slots__ = ("text", "pos", "base", "ended", "cut", "newline", "start", "sentinels", "_kept")

    def __init__(self, start: str, ends: Sequence[str]) -> None:
        self.text = ""
        self.pos = 0
        self.base = 0  # offset of text[0]
        self.ended = False  # no more text will come
        self.cut = False  # ... because the turn ended, not the block
        self.newline = False  # the last skip() passed the end of a line
        self.start = start  # the sentinel that opens the next block
        self.sentinels = (start, *ends)
        self._kept: list[str] = []  # the pieces before ``text``

    def feed(self, piece: str) -> None:
        """Add text.  What the reader has not taken of the last piece (a few characters) stays next."""
        pos = self.pos
        text = self.text
        self.base += pos
        if pos == len(text):
            self._kept.append(text)
            self.text = piece
        else:
            self._kept.append(text[:pos])
            self.text = text[pos:] + piece
        self.pos = 0

    def close(self, *, cut: bool) -> None:
        """No more text: the block's end sentinel came, or (``cut``) the turn is over."""
        self.ended = True
        self.cut = cut

    @property
    def offset(self) -> int:
        return self.base + self.pos

    def whole(self) -> str:
        """All of the block's text so far."""
        return "".join(self._kept) + self.text

    def rewind(self, offset: int) -> None:
        """Put the cursor at ``offset``."""
        if offset < self.base:
            pieces = [self.text]
            while offset < self.base:
                piece = self._kept.pop()
                self.base -= len(piece)
                pieces.append(piece)
            before = offset - self.base
            if before:  # leave it: taking it along each time would make it grow
                self._kept.append(pieces[-1][:before])
                pieces[-1] = pieces[-1][before:]
                self.base = offset
            self.text = "".join(reversed(pieces))
        self.pos = offset - self.base

    def since(self, offset: int) -> str:
        """The text from ``offset`` to the cursor."""
        here = self.offset
        self.rewind(offset)
        start = self.pos
        self.pos = here - self.base
        return self.text[start : self.pos]

    def rest(self) -> str:
        """The text from the cursor on."""
        return self.text[self.pos :]

    @property
    def exhausted(self) -> bool:
        """Whether all text was read and no more will come."""
        return self.ended and self.pos == len(self.text)

    @property
    def cut_here(self) -> bool:
        """Whether the end just met is the end of the turn, rather than of the block."""
        return self.cut and not self.text.startswith(self.start, self.pos)

    def now(self) -> str:
        """Pass a single space: the next character, or ``""`` where ``skip`` must say what comes next."""
        char = self.text[self.pos : self.pos + 1]
        if char == " ":
            char = self.text[self.pos + 1 : self.pos + 2]
            if char in NOT_NOW:
                return ""
            self.pos += 1
            return char
        return "" if char in NOT_NOW else char

    def peek(self) -> Reader[str]:
        """The next character as it is, or ``""`` at the end of the text."""
        while self.pos == len(self.text):
            if self.ended:
                return ""
            yield
        return self.text[self.pos]

    def ahead(self, length: int) -> Reader[str]:
        """The next ``length`` characters, or as many as there are before the end of the text."""
        while len(self.text) < self.pos + length and not self.ended:
            yield
        return self.text[self.pos : self.pos + length]

    def skip(self, comments: bool = True, *, line: bool = False) -> Reader[str]:
        """Pass blanks, line continuations and comments: the next character, or ``""`` at the block's end.

        ``line``: go no further than over the end of a line, and answer with a newline.
        """
        self.newline = False
        char = self.text[self.pos : self.pos + 1]
        if char not in NOT_NOW:  # most are asked for where they are: the look-aheads at every quote of a text
            return char
        while True:
            blanks = _BLANKS.match(self.text, self.pos)
            if blanks:
                self.pos = blanks.end()
                newline = None if self.newline else _NEWLINE.search(self.text, blanks.start(), self.pos)
                if newline:
                    self.newline = True
                    if line:  # just behind it, however many blanks have arrived
                        self.pos = newline.end()
                        return "\n"
            char = yield from self.peek()
            if char == "\\":
                if not (yield from self._continuation()):
                    return char
            elif char == "#" and comments:
                yield from self._comment()
            elif char == "<" and (yield from self._at_end()):
                return ""
            elif not char or char not in BLANKS:
                return char

    def _continuation(self) -> Reader[bool]:
        """Pass a backslash at the end of a line, if it is one."""
        while True:
            after = self.text[self.pos + 1 : self.pos + 3]
            if len(after) == 2 or self.ended or (after and after != "\r"):
                break
            yield
        if after[:1] not in ("\n", "\r"):
            return False
        self.pos += 3 if after == "\r\n" else 2
        return True

    def _comment(self) -> Reader[None]:
        while True:
            run = _COMMENT.match(self.text, self.pos)
            if run:
                self.pos = run.end()
            char = yield from self.peek()
            if char == "<" and not (yield from self._at_end()):
                self.pos += 1
            elif char in ("\r", "\n", "<", ""):
                return

    def _at_end(self) -> Reader[bool]:
        """At ``<``: whether the block ends here, because the next one starts or a cut sentinel is all that is left."""
        while True:
            ahead = self.text[self.pos : self.pos + len(self.start)]
            if ahead == self.start:
                return True
            if self.ended:
                return self.cut and any(sentinel.startswith(ahead) for sentinel in self.sentinels)
            if not self.start.startswith(ahead):
                return False
            yield

    def name(self, possible: Callable[[str], bool] | None = None) -> Reader[str]:
        """Take a run of name characters; ``is_name`` says whether it is one.

        ``possible`` is given the name piece by piece: where it says False, there is no need to wait for more.
        """
        return self._run(_NAME, possible)

    def word(self) -> Reader[str]:
        """Take a run of letters, digits and underscores."""
        return self._run(_WORD, None)

    def _run(self, pattern: re.Pattern[str], possible: Callable[[str], bool] | None) -> Reader[str]:
        runs: list[str] = []
        while True:
            run = pattern.match(self.text, self.pos)
            if run:
                runs.append(run[0])
                self.pos = run.end()
            if self.pos < len(self.text) or self.ended or (run and possible and not possible(run[0])):
                return runs[0] if len(runs) == 1 else "".join(runs)
            yield
