"""One block: the calls in it, and what becomes of those that are none.

    block  := list ([,;]* list)* | items            items without a list; a list closed ends them
    list   := "[" items "]"
    items  := (call | json | other)  separated by "," ";" and newlines
    call   := name "(" (argument ("," argument)* ","?)? ")"
    argument := name "=" value | "**" dict | value  the last one only for declared tools
    json   := see ``json_calls``

A call counts when it is complete and the list goes on after it.  What is malformed is given back
as text, up to where the list goes on: found from the error on, outside the brackets that are open
there and outside Python strings.  If the block ends in an open string, the call is read again by
Python's quote rule alone to find that place, and the rest of the block, too.
"""

from __future__ import annotations

import logging
from collections import Counter as Counts

from .calls import read_call
from .cursor import NOT_NOW, Reader, Source
from .json_calls import read_json_call
from .literals import opens_string, pass_string
from .openings import Opening
from .state import Block, EndOfBlock, Malformed
from .tokens import CLOSERS
from .writer import Writer

logger = logging.getLogger("lfm2_fixed")


class BlockReader:
    """Reads one block, into the block's writer."""

    def __init__(self, block: Block, opening: Opening) -> None:
        self.block = block
        self._opening = opening

    def read(self) -> Reader[bool]:
        """Read to the block's end, or to where other text follows its list.  False: it is no block."""
        block = self.block
        source = block.source
        if not (yield from self._opening(block)):
            source.rewind(0)
            return False
        block.out.part()
        source.rewind(0)
        char = yield from source.skip()
        if char != "[" and not block.declared_only:
            yield from self._items()
            return True
        while True:
            # A list, or one of the JSON objects that stand for calls without a list (Llama 4).
            block.in_list = char == "["
            if block.in_list:
                source.pos += 1
                closed = yield from self._items()
            else:
                yield from self._item(char)
                closed = True
            char = (yield from self._another()) if closed else ""
            if not char:
                return True

    def _another(self) -> Reader[str]:
        """After a list: the character that opens a further one.  Else "", the cursor is where text begins."""
        block = self.block
        source = block.source
        openers = "[{" if block.declared_only else "["
        end = source.offset
        while char := (yield from source.skip(comments=False)):
            if char not in ",;":
                start = source.offset
                further = char in openers and (yield from self._opening(block))
                source.rewind(start if further else end)
                return char if further else ""
            source.pos += 1
        return ""

    def _items(self) -> Reader[bool]:
        """Read items up to the list's end (True, taken) or the block's (False)."""
        block = self.block
        source = block.source
        while True:
            char = source.text[source.pos : source.pos + 1]
            if char in NOT_NOW:
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
        start = source.base + source.pos
        out = block.out
        out.begin()
        block.frames.clear()
        try:
            yield from self.read_item(char)
        except Malformed as error:
            yield from self._resynchronise(error.at)
            self._return_source(start)
        except EndOfBlock as end:
            self._pass_unfinished(end)
            found = False
            if end.in_string and not block.python_only:
                block.python_only = True
                source.rewind(start)
                found = yield from self._find_end(char)
            if source.cut_here and not found:
                out.abort("cut")
                source.pos = len(source.text)  # what is left may be the beginning of a sentinel, which is no text
            else:
                self._return_source(start)
        else:
            out.end()

    def _find_end(self, char: str) -> Reader[bool]:
        """Read an item once more, by Python's quote rule and in silence, to where the list goes on.

        False: it goes on nowhere, the cursor is at the block's end.
        """
        block = self.block
        out = block.out
        block.out = Writer(whole=True)
        block.out.begin()
        block.frames.clear()
        try:
            yield from self.read_item(char)
        except Malformed as error:
            return (yield from self._resynchronise(error.at))
        except EndOfBlock as end:
            self._pass_unfinished(end)
            return False
        finally:
            block.out = out
        return True

    def _pass_unfinished(self, end: EndOfBlock) -> None:
        """Go over what is left of an open string: the beginning of an escape."""
        if end.in_string:
            self.block.source.pos = len(self.block.source.text)

    def _resynchronise(self, at: int) -> Reader[bool]:
        """After an error, go to where the list goes on (True), or to the block's end.

        A slip of punctuation may show only behind the call, at a quote of the next one, since a quote was taken as
        text: ``f(a='b' c), g(z='w')``.  So the text from that quote to the error is read by Python's quote rule first.
        It is looked at once more and no further: the error may be in the midst of what Python takes as a string,
        and then the error is all that is known.
        """
        block = self.block
        source = block.source
        brackets = [frame.closer for frame in block.frames]
        if 0 <= block.python_end < at:
            source.rewind(at)
            text = Source(source.start, ())
            text.feed(source.since(block.python_end))
            text.close(cut=False)
            read = brackets.copy()
            found = yield from self._goes_on(text, read)
            if found:
                source.rewind(block.python_end + text.offset)
                return True
            if found is not None:
                brackets = read
        source.rewind(at)
        return bool((yield from self._goes_on(source, brackets)))

    def _goes_on(self, source: Source, brackets: list[str]) -> Reader[bool | None]:
        """Go to where the list goes on (True), or to the text's end.  None: that is in a string.

        ``brackets``: the closers of those that are open, as they are at the cursor at last.
        """
        in_list = self.block.in_list
        counts = Counts(brackets)
        ends = ",]" if in_list else ",;\n"
        while char := (yield from source.skip(line=not in_list and not brackets)):
            if not brackets and char in ends:
                return True
            if (yield from opens_string(source)) is not None:
                if not (yield from pass_string(source, newlines=True)):
                    return None
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

    def _return_source(self, start: int) -> None:
        out = self.block.out
        logger.warning(
            "A tool call%s cannot be represented as JSON; its text was returned as content.",
            f" of {out.name!r}" if out.name else "",
        )
        out.abort("malformed")
        out.segment(self.block.markup.clean(self.block.source.since(start)))

    def read_item(self, char: str) -> Reader[None]:
        """Read a call up to where the list goes on.  All of its JSON but the last piece may be sent then."""
        block = self.block
        block.python_end = -1
        if char == "{":
            yield from read_json_call(block)
        else:
            yield from read_call(block)
        block.out.put("}")
        char = block.source.text[block.source.pos : block.source.pos + 1]
        if char in NOT_NOW:
            char = yield from block.source.skip(line=True)
        if char not in ("", ",", ";", "]", "\n"):
            raise Malformed(block.source.offset)
