"""A turn: content, and the blocks in it; where a block begins and ends (contract 6).

    turn := (text | marker block end echo? | bare list | JSON answer)*

Three states, each with what it needs and no more: ``Text``, ``_InBlock``, ``_Echo``.  A state reads
from the turn's ``Input`` and answers with the state that goes on, or with None where more text must
come first.

Markers that end a block are split off here, before the block is read: they end it even inside a
string.  A marker that no block belongs to is left out of the text, as if it was not there.  What
might be the beginning of a marker is held until it is known.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import cached_property
from typing import Union

from .block import BlockReader
from .cursor import Source
from .dialects import Dialect
from .input import Input
from .openings import BareOpening, Opening, block_opens
from .sentinels import MARKER_QUOTES, Markup, Sentinels, sentinels
from .state import Block
from .tokens import TEXT_BLANKS
from .tools import Declared, Tools
from .writer import Writer

Take = Callable[[str], bool]
"""Reads text in which no sentinel begins, and stays in its state.  False: the state's ``read`` must do it."""


def refuse(text: str) -> bool:
    """A :data:`Take`, where text cannot be read without what is around it."""
    return False


class Text:
    """Between blocks.  A turn begins in this state, which lasts as long as the turn: blocks come back to it."""

    def __init__(self, dialect: Dialect, tools: Tools, markers: Markup, out: Writer) -> None:
        self.out = out
        self._dialect = dialect
        self._given = tools
        self._markers = markers
        self._ends = sentinels(dialect.ends)
        self._plain = not dialect.bare_lists  # text without ``<`` is content
        self._first = True  # only blanks so far
        self._last = ""  # text whose last character is the one before this, unless a sentinel was left out between
        self._unended = False  # a block has not met its end marker: the next one is its own
        self._dead_ends: dict[str, int] = {}  # what openings of bare lists found, see ``BareOpening``
        self._python_until = 0  # up to this offset in the turn a block fell back to Python's quote rule

    @cached_property
    def _tools(self) -> Declared:
        """What the request declares, read where a call may begin: a turn of prose is not to pay for it."""
        return Declared(self._given)

    @property
    def _json_answers(self) -> bool:
        """Whether the turn's first ``{``, in a list or not, may be a call (contract 6.8)."""
        return self._dialect.json_answers and bool(self._tools)

    def take(self, text: str) -> bool:
        """A :data:`Take`; it refuses where a list without a marker may begin."""
        if not self._plain:
            return False
        if text:
            self.out.text(text)
            self._last = text
        return True

    def read(self, turn: Input) -> State | None:
        text = turn.text
        start = turn.at
        if not turn.found or (turn.found[0] and turn.found[0].start() < start):
            turn.found = self._markers.find(text, start, turn.ending)
        token, stop = turn.found
        if self._dialect.bare_lists and (bare := self._find_bare(text, start, stop)) >= 0:
            self._emit(text[start:bare])
            turn.at = bare
            opening = BareOpening(turn.offset, self._dead_ends, first=self._first, json=self._json_answers)
            return self._block(turn, opening, "")
        self._emit(text[start:stop])
        turn.at = stop
        if token is None:
            return None
        quoted = self._markers.is_quoted(token, self._last[-1:], turn.ending)
        if quoted is None:
            return None
        turn.at = token.end()
        if quoted:
            self._emit(token[0])
        elif token[0] == self._dialect.start:
            return self._block(turn, block_opens, token[0])
        else:
            self._drop(token[0])
        return self

    def _emit(self, text: str) -> None:
        if text:
            self.out.text(text)
            self._last = text
            if self._first and text.strip(TEXT_BLANKS):
                self._first = False

    def _drop(self, token: str) -> None:
        """Leave a sentinel out, unless the client wants it: a marker that belongs to no block, a hidden token."""
        ends_block = self._unended and token in self._dialect.ends
        self._unended = False
        if self._markers.shown and not ends_block:
            self._emit(token)
        elif self._last[-1:] in MARKER_QUOTES:
            self._last = ""  # a quote before this sentinel stands not beside the next one

    def _find_bare(self, text: str, start: int, stop: int) -> int:
        """Where a list of calls or an answer in JSON may begin without a marker, or -1."""
        if self._first:
            visible = _VISIBLE.search(text, start, stop)
            if visible and (visible[0] == "[" or (visible[0] == "{" and self._json_answers)):
                return visible.start()
        bracket = text.find("[", start, stop)
        while bracket >= 0 and self._tools:
            if (text[bracket - 1] if bracket > start else self._last[-1:]) in _BLANK:
                return bracket
            bracket = text.find("[", bracket + 1, stop)
        return -1

    def _block(self, turn: Input, opening: Opening, marker: str) -> _InBlock:
        """A block may begin at the cursor, behind ``marker`` (none before a bare list)."""
        dialect = self._dialect
        block = Block(
            Source(dialect.start, dialect.ends),
            self.out,
            self._tools,
            self._markers,
            python_only=turn.offset < self._python_until,
            newline_ends=dialect.newline_ends,
        )
        return _InBlock(self, block, BlockReader(block, opening), marker, self._ends, turn.offset)

    def after_block(self, turn: Input, block: _InBlock, token: re.Match[str] | None, start: int, stop: int) -> State:
        """A block is over; the slice from ``start`` to ``stop`` was the last it was given, ``token`` may follow.

        What the block left is read as text, and then the token, unless that ended the block.
        """
        rest = block.source.rest()
        turn.set_offset(stop, block.end)
        if not block.found:
            if block.marker:
                self._drop(block.marker)
            else:
                self._emit(rest[0])  # the bracket opens nothing; what follows may
                rest = rest[1:]
        else:
            self._first = False
            self._last = ""
            if token and not rest:
                turn.at = token.end()
                if self._dialect.echoes:
                    return _Echo(self, block.source.whole(), token[0])
                return self
            self._unended = bool(block.marker)
        turn.at = stop - len(rest)
        if turn.at < start:
            turn.read_again(rest + turn.text[stop:])
        if block.fell_back and rest:
            self._python_until = max(self._python_until, turn.offset + len(rest))
        return self


class _InBlock:
    """In a block, or in what may turn out to be none."""

    def __init__(
        self, text: Text, block: Block, reader: BlockReader, marker: str, ends: Sentinels, offset: int
    ) -> None:
        self.source = block.source
        self.marker = marker  # the one that opened it
        self.found = True  # False: it turned out to be no block
        self._text = text
        self._block = block
        self._ends = ends
        self._offset = offset  # in the turn
        self._over = False
        self._was_python_only = block.python_only
        self._reader = reader.read()
        next(self._reader)

    @property
    def end(self) -> int:
        """The offset in the turn of the end of what it was given."""
        return self._offset + self.source.base + len(self.source.text)

    @property
    def fell_back(self) -> bool:
        """Whether it was in this block that only Python's quote rule was left."""
        return self._block.python_only and not self._was_python_only

    def take(self, text: str) -> bool:
        """A :data:`Take`; it refuses where the block is over."""
        if not text:
            return True
        self.source.feed(text)
        fast_lane = self._block.fast_lane
        if fast_lane is not None and fast_lane():
            return True
        self._over = self._resume()
        return not self._over

    def read(self, turn: Input) -> State | None:
        start = turn.at
        token, stop = self._ends.find(turn.text, start, False)
        done = self._over or not self.take(turn.text[start:stop])
        if not done and (token or turn.ending):
            if token is None and stop < len(turn.text):
                # The beginning of a marker.  The reader must know that nothing comes after it.
                self.source.feed(turn.text[stop:])
                stop = len(turn.text)
            self.source.close(cut=token is None)
            done = self._resume()
        turn.at = stop
        return self._text.after_block(turn, self, token, start, stop) if done else None

    def _resume(self) -> bool:
        """Whether the block is over."""
        try:
            next(self._reader)
        except StopIteration as end:
            self.found = end.value
            return True
        return False


class _Echo:
    """After a block: whether its text and end come again, blanks around the text aside."""

    def __init__(self, text: Text, block: str, end: str) -> None:
        self._text = text
        self._pieces: list[str] = []
        self._parts = ["", block.strip(TEXT_BLANKS), "", end]  # "" stands for blanks
        self._matched = 0  # of the first part
        self._used = 0  # of the last piece

    take: Take = staticmethod(refuse)

    def read(self, turn: Input) -> State | None:
        repeats = self._compare(turn.text[turn.at :])
        if repeats is None and not turn.ending:
            turn.at = len(turn.text)
            return None
        turn.read_again(self._pieces[-1][self._used :] if repeats else "".join(self._pieces))
        return self._text

    def _compare(self, piece: str) -> bool | None:
        """True: it is repeated, up to ``_used`` in this piece.  None: not known yet."""
        self._pieces.append(piece)
        at = 0
        while self._parts:
            part = self._parts[0]
            if not part:
                at += len(piece) - at - len(piece[at:].lstrip(TEXT_BLANKS))
            else:
                length = min(len(part) - self._matched, len(piece) - at)
                if not piece.startswith(part[self._matched : self._matched + length], at):
                    return False
                self._matched += length
                at += length
            if at == len(piece) and self._matched < len(part or " "):
                return None
            self._parts.pop(0)
            self._matched = 0
        self._used = at
        return True


State = Union[Text, _InBlock, _Echo]
_BLANK = frozenset(TEXT_BLANKS)
"""Before a list without markers (contract 6.7).  A set, in which the beginning of the text is none."""
_VISIBLE = re.compile(rf"[^{TEXT_BLANKS}]")
