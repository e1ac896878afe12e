"""A turn: content, and the blocks in it; where a block begins and ends.

    turn (LFM2)    := (text | S block E echo?)*
    turn (Llama 4) := (text | "<|python_start|>" block "<|python_end|>" | bare list)*

End sentinels are split off here, before a block is read: they end it even inside a string.  A
start sentinel that no block follows is text, and so is its end sentinel; any other end sentinel
outside a block is dropped.  What might be the beginning of a sentinel is held until it is known.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from functools import lru_cache, partial

from .block import BlockReader, Opening, bare_list_opens, block_opens
from .content import BLANKS, ContentWriter
from .cursor import Source
from .dialects import Dialect
from .events import Event
from .sentinels import Sentinels, is_sentinel
from .state import Block
from .tools import Tools, declared_parameters
from .writer import ArgumentsWriter, Counter

_SLICE = 4096
"""Characters read at once: what a block leaves unread is read again, so it must not be much."""


class Envelope:
    """Reads a turn; appends its events to ``events``.

    ``special_tokens`` are left out of the content.  ``whole``: each call in one piece.
    """

    def __init__(
        self,
        dialect: Dialect,
        tools: Tools,
        events: list[Event],
        *,
        special_tokens: Iterable[str],
        whole: bool,
    ) -> None:
        self._dialect = dialect
        self._tools = declared_parameters(tools)
        self._content = ContentWriter(events)
        self._counter = Counter()
        self._new_writer = partial(ArgumentsWriter, events, self._counter, whole=whole)
        self._outside, self._ends, self._hidden = _tokens(dialect, tuple(special_tokens))
        self._text = ""  # what has arrived and is not passed on: from ``_at``
        self._at = 0
        self._queue: list[tuple[str, int]] = []  # what follows ``_text``, last first: texts, and where to go on in them
        self._final = False
        self._go_on: Callable[[], bool] = self._read_text  # the state; False: needs more text
        self._plain = not dialect.bare_lists  # in this state text without ``<`` is content
        self._block: _OpenBlock | None = None  # the block being read
        self._echo: _Echo
        self._found: tuple[re.Match[str] | None, int] | None = None  # the next sentinel in ``_text``
        self._unopened = 0  # start sentinels that were text: so are their ends
        self._python_until = 0  # up to here in ``_text`` an earlier block fell back to Python's quote rule
        self._blank_so_far = True
        self._last = ""  # the last character of content

    def feed(self, text: str) -> None:
        """Read more text."""
        if self._at == len(self._text) and "<" not in text and len(text) <= _SLICE:
            # Nothing is held, and no sentinel begins in the text: most deltas are like this.
            block = self._block
            if block is not None:
                if not block.feed(text):
                    return
                self._replace(text)
                self._leave(block, None, 0, len(text))
                text = ""
            elif self._plain:
                self._content.text(text)
                return
        self._queue.append((text, 0))
        self._run()

    def finish(self) -> None:
        """Read the end of the turn."""
        self._final = True
        self._queue.append(("", 0))
        self._run()
        self._content.finish()

    @property
    def cut(self) -> bool:
        """Whether the turn ended inside a call."""
        return self._counter.cut

    def _run(self) -> None:
        """Read what is queued, a slice at a time."""
        while self._queue:
            text, start = self._queue.pop()
            if len(text) - start > _SLICE:
                self._queue.append((text, start + _SLICE))
            self._replace(self._text[self._at :] + text[start : start + _SLICE])
            while self._go_on():
                pass

    @property
    def _ending(self) -> bool:
        """Whether the turn ends with ``_text``."""
        return self._final and not self._queue

    def _replace(self, text: str) -> None:
        self._python_until = max(0, self._python_until - self._at)
        self._text = text
        self._at = 0
        self._found = None

    def _read_again(self, text: str) -> None:
        """``text``, which ends with what is left of ``_text``, takes its place."""
        self._queue.append((text, 0))
        self._at = len(self._text) - len(text)
        self._replace("")

    # ---- text ----

    def _resume_text(self) -> None:
        self._go_on = self._read_text
        self._plain = not self._dialect.bare_lists

    def _read_text(self) -> bool:
        text = self._text
        start = self._at
        if not self._found or (self._found[0] and self._found[0].start() < start):
            self._found = self._outside.find(text, start, self._ending)
        token, stop = self._found
        if self._dialect.bare_lists and (bracket := self._find_bracket(text, start, stop)) >= 0:
            self._emit(text[start:bracket])
            self._at = bracket
            return self._open(partial(bare_list_opens, declared=not self._blank_so_far), "")
        self._emit(text[start:stop])
        self._at = stop
        if token is None:
            return False
        self._at = token.end()
        if token[0] == self._dialect.start:
            return self._open(block_opens, token[0])
        if token[0] in self._dialect.ends and self._unopened:
            self._unopened -= 1
            self._emit(token[0])
        return True

    def _emit(self, text: str) -> None:
        if text:
            self._content.text(text)
            self._last = text[-1]
            if self._blank_so_far and text.strip(BLANKS):
                self._blank_so_far = False

    def _find_bracket(self, text: str, start: int, stop: int) -> int:
        """The first ``[`` that may open a bare list, or -1."""
        if self._blank_so_far:
            first = _VISIBLE.search(text, start, stop)
            if first and first[0] == "[":
                return first.start()
        if self._tools:
            bracket = text.find("[", start, stop)
            while bracket >= 0:
                if (text[bracket - 1] if bracket > start else self._last) in _BLANK:
                    return bracket
                bracket = text.find("[", bracket + 1, stop)
        return -1

    def _give_back(self, text: str) -> None:
        """The source of a call that has no JSON form."""
        self._content.segment(self._hidden.remove(text))

    # ---- blocks ----

    def _open(self, opening: Opening, sentinel: str) -> bool:
        """A block may begin at the cursor, behind ``sentinel`` (none before a bare list)."""
        source = Source(self._dialect.start, self._dialect.ends)
        block = Block(
            source,
            self._new_writer(),
            self._tools,
            python_only=self._at < self._python_until,
            newline_ends=self._dialect.bare_lists,
        )
        reader = BlockReader(block, self._new_writer, opening, opened=self._opened, give_back=self._give_back)
        self._block = _OpenBlock(block, reader, sentinel)
        self._go_on = self._read_block
        self._plain = False
        return True

    def _opened(self) -> None:
        self._content.part()
        self._blank_so_far = False
        self._last = ""

    def _read_block(self) -> bool:
        block = self._block
        assert block
        start = self._at
        token, stop = self._ends.find(self._text, start, self._ending)
        self._at = stop
        done = block.feed(self._text[start:stop])
        if not done and (token or self._ending):
            done = block.close(cut=token is None)
        if done:
            self._leave(block, token, start, stop)
        return done

    def _leave(self, block: _OpenBlock, token: re.Match[str] | None, start: int, stop: int) -> None:
        """The block is over; ``_text[start:stop]`` was the last it was given, ``token`` may follow.

        What the block left is read as text, and then the sentinel, unless that ended the block.
        """
        self._block = None
        self._resume_text()
        rest = block.source.rest()
        if token and block.found and not rest:
            self._at = token.end()
            if self._dialect.echoes:
                self._echo = _Echo(["", block.source.whole().strip(BLANKS), "", token[0]])
                self._go_on = self._read_echo
                self._plain = False
            return
        if not block.found:
            self._emit(block.sentinel or "[")
            if block.sentinel:
                self._unopened += 1
            else:
                rest = rest[1:]
        self._at = stop - len(rest)
        if self._at < start:
            self._read_again(rest + self._text[stop:])
        if block.fell_back and rest:
            self._python_until = max(self._python_until, self._at + len(rest))

    def _read_echo(self) -> bool:
        repeats = self._echo.feed(self._text[self._at :])
        if repeats is None and not self._ending:
            self._at = len(self._text)
            return False
        self._resume_text()
        self._read_again(self._echo.rest() if repeats else "".join(self._echo.pieces))
        return True


_BLANK = frozenset(" \t\r\n")
_VISIBLE = re.compile(rf"[^{BLANKS}]")


@lru_cache(maxsize=64)
def _tokens(dialect: Dialect, special_tokens: tuple[str, ...]) -> tuple[Sentinels, Sentinels, Sentinels]:
    """What to find outside blocks, in blocks, and in text given back."""
    sentinels = {dialect.start, *dialect.ends}
    hidden = {token for token in special_tokens if is_sentinel(token)} - sentinels
    return Sentinels(sentinels | hidden), Sentinels(dialect.ends), Sentinels(hidden)


class _OpenBlock:
    """A block being read, and what the envelope must remember of it."""

    def __init__(self, state: Block, reader: BlockReader, sentinel: str) -> None:
        self.state = state
        self.source = state.source
        self.sentinel = sentinel
        self.found = True  # False: it turned out to be no block
        self._python_only = state.python_only
        self._reader = reader.read()
        next(self._reader)

    @property
    def fell_back(self) -> bool:
        """Whether it was in this block that only Python's quote rule was left."""
        return self.state.python_only and not self._python_only

    def feed(self, piece: str) -> bool:
        """Whether the block is over."""
        if not piece:
            return False
        self.source.feed(piece)
        fast_lane = self.state.fast_lane
        if fast_lane is not None and fast_lane():
            return False
        return self._resume()

    def close(self, *, cut: bool) -> bool:
        self.source.close(cut=cut)
        return self._resume()

    def _resume(self) -> bool:
        try:
            next(self._reader)
        except StopIteration as end:
            self.found = end.value
            return True
        return False


class _Echo:
    """Compares what follows a block with the block's text and end, blanks around the text aside."""

    def __init__(self, parts: list[str]) -> None:
        self.pieces: list[str] = []
        self._parts = parts  # "" stands for blanks
        self._matched = 0  # of the first part
        self._used = 0  # of the last piece

    def feed(self, piece: str) -> bool | None:
        """True: it is repeated, up to ``rest``.  None: not known yet."""
        self.pieces.append(piece)
        at = 0
        while self._parts:
            part = self._parts[0]
            if not part:
                at += len(piece) - at - len(piece[at:].lstrip(BLANKS))
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

    def rest(self) -> str:
        """What follows the repetition."""
        return self.pieces[-1][self._used :]
