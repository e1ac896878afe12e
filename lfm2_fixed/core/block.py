"""One block: the calls in it, and what becomes of those that are none.

    block  := list ([,;]* list)* | items            items without a list; a list closed ends them
    list   := "[" items "]"
    items  := (call | json | other)  separated by "," ";" and newlines
    call   := name "(" (argument ("," argument)* ","?)? ")"
    argument := name "=" value | "**" dict | value  the last one only for declared tools
    json   := "{" … "name": string … "arguments" | "parameters": dict … "}"

A call counts when it is complete and the list goes on after it.  What is malformed is given back
as text, up to where the list goes on: found from the error on, outside the brackets that are open
there and outside Python strings.  If the block ends in an open string, the call is read again by
Python's quote rule alone to find that place, and the rest of the block, too.
"""

from __future__ import annotations

import logging
from collections import Counter as Counts
from collections.abc import Callable

from .calls import call_name, read_call
from .cursor import Reader, is_name
from .json_calls import read_json_call
from .literals import opens_literal, opens_string, pass_string
from .state import Block, EndOfBlock, Malformed
from .tokens import CLOSERS
from .writer import ArgumentsWriter, Counter

logger = logging.getLogger("lfm2_fixed")

Opening = Callable[[Block], Reader[bool]]
"""Decides at the cursor whether a block, or a further list, begins there.  May move the cursor."""


class BlockReader:
    """Reads one block.  ``opened`` and ``give_back`` are called as things become certain."""

    def __init__(
        self,
        block: Block,
        new_writer: Callable[[], ArgumentsWriter],
        opening: Opening,
        *,
        opened: Callable[[], None],
        give_back: Callable[[str], None],
    ) -> None:
        self.block = block
        self._new_writer = new_writer
        self._opening = opening
        self._opened = opened
        self._give_back = give_back

    def read(self) -> Reader[bool]:
        """Read to the block's end, or to where other text follows its list.  False: it is no block."""
        block = self.block
        source = block.source
        if not (yield from self._opening(block)):
            source.rewind(0)
            return False
        self._opened()
        source.rewind(0)
        block.in_list = (yield from source.skip()) == "["
        if not block.in_list:
            yield from self._items()
            return True
        while True:
            source.pos += 1
            if not (yield from self._items()) or not (yield from self._another_list()):
                return True

    def _another_list(self) -> Reader[bool]:
        """After a list: whether a further one follows.  Else the cursor is where text begins."""
        source = self.block.source
        end = source.offset
        while char := (yield from source.skip(comments=False)):
            if char not in ",;":
                start = source.offset
                further = char == "[" and (yield from self._opening(self.block))
                source.rewind(start if further else end)
                return further
            source.pos += 1
        return False

    def _items(self) -> Reader[bool]:
        """Read items up to the list's end (True, taken) or the block's (False)."""
        block = self.block
        source = block.source
        while True:
            char = source.now() or (yield from source.skip())
            if not char:
                if source.cut_here:
                    source.pos = len(source.text)  # the beginning of a sentinel is no text
                return False
            if char in ",;":
                source.pos += 1
            elif char == "]":
                source.pos += 1
                if block.in_list:
                    return True
            else:
                yield from self._item(char)

    def _item(self, char: str) -> Reader[None]:
        """Read one item; whatever is wrong with it stays its own."""
        block = self.block
        source = block.source
        start = source.offset
        out = block.out = self._new_writer()
        block.frames.clear()
        try:
            yield from self.read_item(char)
        except Malformed as error:
            yield from self._resynchronise(error.at)
            self._return_source(out, start)
        except EndOfBlock as end:
            self._pass_unfinished(end)
            found = False
            if end.in_string and not block.python_only:
                block.python_only = True
                source.rewind(start)
                found = yield from self._find_end(char)
            if source.cut_here and not found:
                out.abort("cut")
            else:
                self._return_source(out, start)
        else:
            out.end()

    def _find_end(self, char: str) -> Reader[bool]:
        """Read an item once more, by Python's quote rule and in silence, to where the list goes on.

        False: it goes on nowhere, the cursor is at the block's end.
        """
        self.block.out = ArgumentsWriter([], Counter(), whole=True)
        self.block.frames.clear()
        try:
            yield from self.read_item(char)
        except Malformed as error:
            return (yield from self._resynchronise(error.at))
        except EndOfBlock as end:
            self._pass_unfinished(end)
            return False
        return True

    def _pass_unfinished(self, end: EndOfBlock) -> None:
        """Go over what is left of an open string: the beginning of an escape."""
        if end.in_string:
            self.block.source.pos = len(self.block.source.text)

    def _resynchronise(self, at: int) -> Reader[bool]:
        """After an error, go to where the list goes on (True), or to the block's end."""
        block = self.block
        source = block.source
        brackets = [frame.closer for frame in block.frames]
        counts = Counts(brackets)
        ends = ",]" if block.in_list else ",;\n"
        source.rewind(at)
        while char := (yield from source.skip(line=not block.in_list and not brackets)):
            if not brackets and char in ends:
                return True
            if (yield from opens_string(source)) is not None:
                yield from pass_string(source, newlines=True)
                continue
            source.pos += 1
            if char in CLOSERS:
                brackets.append(CLOSERS[char])
                counts[CLOSERS[char]] += 1
            elif brackets and char in ")]}":
                # A closer without opener closes the innermost bracket.
                while (closed := brackets.pop()) != char and counts[char]:
                    counts[closed] -= 1
                counts[closed] -= 1
            elif char.isalnum():
                yield from source.word()
        return False

    def _return_source(self, out: ArgumentsWriter, start: int) -> None:
        logger.warning(
            "A tool call%s cannot be represented as JSON; its text was returned as content.",
            f" of {out.name!r}" if out.name else "",
        )
        out.abort("malformed")
        self._give_back(self.block.source.since(start))

    def read_item(self, char: str) -> Reader[None]:
        """Read a call up to where the list goes on.  All of its JSON but the last piece may be sent then."""
        block = self.block
        if char == "{":
            yield from read_json_call(block)
        else:
            yield from read_call(block)
        block.out.put("}")
        char = yield from block.source.skip(line=True)
        if char not in ("", ",", ";", "]", "\n"):
            raise Malformed(block.source.offset)


def block_opens(block: Block) -> Reader[bool]:
    """After a start sentinel: ``name(``, ``[name(``, ``[]``, ``[{"`` or ``{"``, or the end of the turn amid these."""
    source = block.source
    char = yield from source.skip()
    in_list = char == "["
    if in_list:
        source.pos += 1
        char = yield from source.skip()
    if in_list and char == "]":
        return True
    if char == "{":
        source.pos += 1
        opens = (yield from source.skip()) in ("'", '"')
    elif in_list:
        try:
            opens = bool((yield from call_name(block)))
        except (Malformed, EndOfBlock):
            opens = False
    else:
        opens = is_name((yield from source.name())) and (yield from source.peek()) == "("
    return opens or (source.cut and source.exhausted)


def bare_list_opens(block: Block, *, declared: bool) -> Reader[bool]:
    """Whether the ``[`` at the cursor opens a list of calls, without a sentinel before it (Llama 4).

    ``declared``: only if it names a declared tool.
    """
    source = block.source
    tools = block.tools
    if (yield from source.skip(comments=False)) != "[":
        return False
    source.pos += 1
    yield from source.skip(comments=False)
    if declared:
        name = yield from source.name(lambda start: any(tool.startswith(start) for tool in tools))
    else:
        name = yield from source.name()
    if not is_name(name) or (declared and name not in tools):
        return False
    if (yield from source.skip(comments=False)) != "(":
        return False
    source.pos += 1
    char = yield from source.skip()
    if char == ")":
        source.pos += 1
        return (yield from source.skip()) in (",", "]")
    if char == "*":
        source.pos += 1
        return (yield from source.peek()) == "*"
    start = source.offset
    argument = yield from source.name()
    if is_name(argument) and (yield from source.skip()) == "=":
        source.pos += 1
        return (yield from source.peek()) != "="
    source.rewind(start)
    return name in tools and (yield from opens_literal(source, char))
