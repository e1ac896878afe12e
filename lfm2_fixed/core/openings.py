"""Does a block of calls begin here (contract §6)?  Asked behind a marker, and where a bare list may stand.

Each answer comes as soon as the text decides it, since the text is held until then.
"""

from __future__ import annotations

from collections.abc import Callable

from .calls import call_name
from .cursor import Reader, is_name
from .json_calls import names_declared_tool
from .literals import opens_literal
from .state import Block, EndOfBlock, Malformed
from .tokens import QUOTES

Opening = Callable[[Block], Reader[bool]]
"""Decides at the cursor whether a block, or a further list, begins there.  May move the cursor."""


def block_opens(block: Block) -> Reader[bool]:
    """After a start marker: ``name(``, ``[name(``, ``[]``, ``[{"`` or ``{"``.

    Also where the turn ends before that is known, if it could still become a call: after ``[`` or ``{``, after the
    beginning of a declared tool's name, and after the marker alone.  That is a call cut off, and no text.
    """
    source = block.source
    # Between tokens comments are passed over, but a marker is followed by blanks only: "# Title" is prose.
    char = yield from source.skip(comments=False)
    in_list = char == "["
    if in_list:
        source.pos += 1
        char = yield from source.skip()
    if in_list and char == "]":
        return True
    if char == "{":
        source.pos += 1
        opens = (yield from source.skip()) in QUOTES
    elif in_list:
        try:
            opens = bool((yield from call_name(block)))
        except (Malformed, EndOfBlock):
            opens = False
    else:
        name = yield from source.name()
        opens = is_name(name) and (yield from source.peek()) == "("
        if name and not block.tools.beginning().goes_on(name):
            return opens
    return opens or (source.cut and source.exhausted)


class BareOpening:
    """Whether a list of calls, or an answer in JSON, begins without a marker before it (Llama 4).

    ``first``: only blanks come before it.  Elsewhere it must name a declared tool.  ``json``: JSON may be calls if
    it comes first.
    ``at``: the offset of the block in the turn.  ``dead_ends``: what openings before this one found, see ``_pass``.
    """

    def __init__(self, at: int, dead_ends: dict[str, int], *, first: bool, json: bool) -> None:
        self._at = at
        self._first = first
        self._json = first and json
        self._dead_ends = dead_ends
        self._passed: dict[str, int] = {}

    def __call__(self, block: Block) -> Reader[bool]:
        source = block.source
        in_list = (yield from source.skip(comments=False)) == "["
        if in_list:
            source.pos += 1
            char = yield from source.skip(comments=False)
        if not in_list or char == "{":
            if not self._json:
                return False
            block.declared_only = yield from names_declared_tool(block)
            return block.declared_only
        self._passed.clear()
        if (yield from self._call_begins(block)):
            return True
        self._dead_ends.update(self._passed)
        return False

    def _call_begins(self, block: Block) -> Reader[bool]:
        """Read on to where a call is certain: at how its first argument begins, or behind ``name()`` and a comma."""
        source = block.source
        tools = block.tools
        name = yield from source.name(None if self._first else tools.beginning().goes_on)
        if not is_name(name) or not (self._first or name in tools):
            return False
        if (yield from source.skip(comments=False)) != "(":
            return False
        source.pos += 1
        declared = name in tools
        char = yield from self._pass(block, "(", declared)
        if char == ")":
            source.pos += 1
            return (yield from self._pass(block, ")", True)) in (",", "]")
        if char == "*":
            source.pos += 1
            return (yield from source.peek()) == "*"
        start = source.offset
        argument = yield from source.name()
        if is_name(argument) and (yield from self._pass(block, "=", True)) == "=":
            source.pos += 1
            return (yield from source.peek()) != "="
        source.rewind(start)
        return declared and (yield from opens_literal(source, char))

    def _pass(self, block: Block, place: str, remember: bool) -> Reader[str]:
        """Pass blanks and comments after ``place``: the next character.

        A comment hides brackets, each of which may begin a list whose own comment ends at the same place.  What
        comes behind it decides them all alike.  So where it decided against one, those in the comment need not
        read it again (which would take quadratic time): for them it is as if the text ended here.
        """
        source = block.source
        char = yield from source.skip(comments=False)
        if char == "#":
            if self._at + source.offset < self._dead_ends.get(place, 0):
                return ""
            char = yield from source.skip()
            if remember:
                self._passed[place] = self._at + source.offset
        return char
