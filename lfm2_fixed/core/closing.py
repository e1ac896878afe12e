"""Does this quote close the string?  Models and chat templates write quotes unescaped (contract 4.7).

``'sed -n '1,9p' f'`` is meant as one string.  A literal's *first* unescaped quote is read by Python's rule:
it closes where *the list goes on* behind it, adjacent literals included.  Where a Python expression goes on
instead (``"a" + "b"``), or broken punctuation shows (``'x' b='y'``), the call is malformed.  Otherwise this
quote is text, and so are later ones until one *strictly* closes: a sibling call or argument must follow, not
merely something that could.

Each question is answered by looking ahead from behind the quote.  A look-ahead that may be long (a comment,
an expression, a chain of literals) is not begun before the end of one that failed, so that all of them
together read the text a bounded number of times (L7).
"""

from __future__ import annotations

import enum
import re

from .cursor import Reader, is_name
from .elements import Elements
from .expression import NONE, STRINGS, pass_expression
from .literals import opens_literal, opens_string, pass_string
from .slips import quoted_name, slipped, slipped_entry
from .state import BRACE, CALL, DICT, LIST, OBJECT, Block, Frame
from .tokens import CLOSERS, DIGITS, PLAIN_NAME, QUOTES


class Verdict(enum.Enum):
    CLOSE = "the string ends here"
    JOIN = "it ends here, and the next literal joins it"
    MALFORMED = "an expression goes on here, or the punctuation is broken: no literal"
    TEXT = "the quote is part of the text"


def closing_verdict(block: Block, *, python: bool, strict: bool, raw_newline: bool) -> Reader[Verdict]:
    """Judge the quote just passed.  Where the verdict is TEXT the cursor may be anywhere after it.

    ``python``: by Python's rule alone.  ``strict``: it is not the literal's first quote.
    ``raw_newline``: the literal is single-quoted and holds a newline, so it cannot be Python.
    """
    source = block.source
    after = source.offset
    if python:
        yield from source.skip()
        joins = yield from opens_string(source)
        source.rewind(after)
        return Verdict.CLOSE if joins is None else Verdict.JOIN
    verdict = yield from (_later(block, after, raw_newline) if strict else _first(block, after, raw_newline))
    if verdict is not Verdict.TEXT:
        source.rewind(after)
        if verdict is not Verdict.MALFORMED:
            block.python_end = -1
    elif not strict:
        block.python_end = after
    return verdict


def _first(block: Block, after: int, raw_newline: bool) -> Reader[Verdict]:
    """The literal's first quote."""
    source = block.source
    block.walk_closes = None
    speculate = after >= block.speculate_from
    if (yield from _GoesOn(block, strict=False, speculate=speculate, raw_newline=raw_newline).after_value()):
        return Verdict.CLOSE
    failed = source.offset
    for slip in (slipped_entry, quoted_name, slipped):
        if (yield from slip(block, after)):
            return Verdict.MALFORMED
    if not speculate:
        return Verdict.TEXT
    block.speculate_from = failed
    if not raw_newline:
        source.rewind(after - 1)
        quote = source.text[source.pos]
        source.pos += 1
        read = yield from pass_expression(source, after_string=quote)
        if read and (yield from _GoesOn(block, strict=False, speculate=True, raw_newline=False).after_value()):
            return Verdict.JOIN if read is STRINGS else Verdict.MALFORMED
        block.speculate_from = failed = max(failed, source.offset)
    source.rewind(after)
    if (yield from source.skip(comments=False)) == ",":
        goes_on = _GoesOn(block, strict=True, speculate=False, raw_newline=raw_newline, walk=True)
        if (yield from goes_on.after_value()):
            return Verdict.CLOSE
        block.speculate_from = max(failed, goes_on.ahead.reached)
    return Verdict.TEXT


def _later(block: Block, after: int, raw_newline: bool) -> Reader[Verdict]:
    """A quote that is not the literal's first."""
    source = block.source
    char = source.now() or (yield from source.skip(comments=False))
    if not char or char in ",:)]}":
        walked = after < block.walked_to
        if walked and char == "," and block.walk_closes is not None:
            closes = block.walk_closes  # what is behind this one was passed on the way: the list ends as it does
        else:
            goes_on = _GoesOn(block, strict=True, speculate=False, raw_newline=raw_newline, walk=not walked)
            closes = yield from goes_on.after_value()
            if not walked:
                block.walked_to, block.walk_closes = goes_on.ahead.reached, closes if char == "," else None
        if closes:
            return Verdict.CLOSE
    elif not block.tools or not (char.isalnum() or char == "_"):
        return Verdict.TEXT  # most quotes in a text: a letter, a bracket or a point follows
    return Verdict.MALFORMED if (yield from slipped(block, after)) else Verdict.TEXT


# What shows at once, where it has arrived, that the list goes on behind a literal's first quote: a part of what
# ``_GoesOn`` answers, by the kind of the innermost bracket.
ARGUMENT_AT_ONCE = rf" ?(?:\) ?[,;\]\r\n]|, ?{PLAIN_NAME}=[^=])"
POSITIONAL_AT_ONCE = r" ?(?:\) ?[,;\]\r\n]|, ?['\"\[(0-9{])"
ENTRY_AT_ONCE = r""" ?(?:\}|, ?(?:"[^"\\\r\n]*"|'[^'\\\r\n]*') ?:)"""
_AT_ONCE = {
    CALL: re.compile(ARGUMENT_AT_ONCE),
    OBJECT: re.compile(ENTRY_AT_ONCE),
    DICT: re.compile(ENTRY_AT_ONCE),
    LIST: re.compile(r" ?(?:[\])}]|, ?['\"\[(0-9{])"),
}
_POSITIONAL_AT_ONCE = re.compile(POSITIONAL_AT_ONCE)
_KEY_AT_ONCE = re.compile(" ?:")


def closes_at_once(block: Block, frame: Frame, end: int) -> bool:
    """Whether the first quote of a literal in the innermost bracket, before ``end``, closes it beyond doubt."""
    text = block.source.text
    if frame.at_key:
        return bool(_KEY_AT_ONCE.match(text, end))
    pattern = _AT_ONCE.get(frame.kind)
    found = pattern and pattern.match(text, end)
    if not found:
        return frame.kind == CALL and not block.named and bool(_POSITIONAL_AT_ONCE.match(text, end))
    return frame.kind != LIST or "," in found[0] or found[0][-1] == frame.closer


_ELEMENTS_AHEAD = 2
"""How many elements behind a comma must be literals, for a later quote to close an element of a list, where no more
can be known: the next one has lines in it, or a walk to the list's end came by here already (L7)."""


class _GoesOn:
    """Whether *the list goes on* at the cursor, behind a value (contract 4.7.4, 4.7.5).  Moves the cursor.

    ``speculate``: look-aheads of any length are allowed: comments, and (in what may be Python) elements that are
    no literals.  ``walk`` (strictly): so is going to the list's end.
    """

    def __init__(self, block: Block, *, strict: bool, speculate: bool, raw_newline: bool, walk: bool = False) -> None:
        self.block = block
        self.source = block.source
        self.strict = strict
        self.comments = speculate
        self.raw_newline = raw_newline
        self.elements = speculate and not raw_newline
        self.walk = walk
        self.ahead = Elements(self.source)
        self.behind_string = -1  # the element begins with a string, which was passed up to here and is no key

    def after_value(self) -> Reader[bool]:
        """A value of the innermost open bracket ends here."""
        source = self.source
        for frame in reversed(self.block.frames):
            char = yield from source.skip(self.comments)
            if frame.at_key:
                if char == ":":  # after a key
                    return True
                if frame.kind != BRACE:
                    return False
            if char == ",":
                source.pos += 1
                char = yield from source.skip(self.comments)
                if char != frame.closer:
                    if not self.strict:
                        return (yield from self._element(frame, char))
                    goes_on = yield from self._strict_element(frame, char)
                    if goes_on is not None:
                        return goes_on
                    char = frame.closer
            if char != frame.closer:
                return False
            if frame.kind == CALL:
                source.pos += 1
                return (yield from self._after_call())
            if not self.strict:
                return True
            source.pos += 1
        return (yield from self._after_call())

    # ---- behind a comma ----

    def _element(self, frame: Frame, char: str) -> Reader[bool]:
        """A literal, a key, or ``name=``; or, as a program might have it, something else up to one of these.

        Then the quote closes, and the call is malformed: ``['red', blue, 'green']`` must not become one
        invented string.
        """
        source = self.source
        while True:
            if char == frame.closer:
                if frame.kind != CALL:
                    return True
                source.pos += 1
                return (yield from self._after_call())
            if not char:
                return False
            if char != ",":  # else an element was left out
                start = source.offset
                if (yield from self._good_element(frame, char)):
                    return True
                source.rewind(start)
                if not self.elements or (frame.kind == CALL and self.block.named and char in QUOTES):
                    return False  # ``s.split(',') if x]', new='y'``: more likely text than a string without a name
                if self.behind_string >= 0:
                    source.rewind(self.behind_string)
                if (yield from pass_expression(source, behind_string=self.behind_string >= 0)) is NONE:
                    return False
                char = yield from source.skip()
                if char == ":" and frame.kind in (DICT, BRACE, OBJECT):
                    source.pos += 1
                    if (yield from pass_expression(source)) is NONE:
                        return False
                    char = yield from source.skip()
            elif not self.elements:
                return False
            if char == ",":
                source.pos += 1
                char = yield from source.skip()
            elif char != frame.closer:
                return False

    def _good_element(self, frame: Frame, char: str) -> Reader[bool]:
        """What the grammar has behind a comma in this bracket."""
        source = self.source
        self.behind_string = -1
        if frame.kind == CALL:
            if not self.block.named and (char in CLOSERS or char in QUOTES or char in DIGITS):
                return True  # also where it is the beginning of a name
            argument = yield from self._argument(frame, char)
            if argument is not None:
                return argument
            return not self.block.named and (yield from opens_literal(source, char))
        if frame.kind not in (DICT, OBJECT):
            return (yield from opens_literal(source, char))
        if char in QUOTES:
            if not (yield from pass_string(source)):
                return False
            self.behind_string = source.offset
            return (yield from source.skip(self.comments)) == ":"
        if not (yield from opens_literal(source, char)):
            return False
        yield from source.name()
        return (yield from source.skip(self.comments)) == ":"

    def _strict_element(self, frame: Frame, char: str) -> Reader[bool | None]:
        """The same, but the bracket must go on to its end: text has commas before quotes as well.

        None: the cursor is at the bracket's closer, and what is behind that decides.  Behind a newline in the
        literal the element must be on the same line, as the templates write containers: documents have one entry
        a line.
        """
        source = self.source
        if frame.kind == CALL:
            argument = yield from self._argument(frame, char)
            if argument is not None:
                return argument
            if self.block.named:
                return False
        elif self.raw_newline and source.newline:
            return False
        if frame.kind in (DICT, OBJECT):
            if char not in QUOTES or not (yield from self.ahead.literal(char)):
                return False
            return (yield from source.skip(self.comments)) == ":"
        ahead = 0
        while True:
            if self.walk:
                after = yield from self.ahead.element(frame.closer, char)
                if not after:
                    return self.ahead.open_string and ahead >= _ELEMENTS_AHEAD
            elif char in CLOSERS:
                return True
            elif (yield from self.ahead.literal(char)):
                after = yield from source.skip(self.comments)
            else:
                return False
            if after != ",":
                return None if after == frame.closer else False
            source.pos += 1
            ahead += 1
            char = yield from source.skip(self.comments)
            if char == frame.closer:
                return None
            if not self.walk and ahead == _ELEMENTS_AHEAD:
                return True

    def _argument(self, frame: Frame, char: str) -> Reader[bool | None]:
        """Whether ``name=`` or ``**`` is next.  None: neither, nothing is passed: maybe an argument without a name."""
        source = self.source
        start = source.offset
        if char == "*":
            if (yield from source.ahead(2)) != "**":
                return None
            source.pos += 2
            return not self.strict or (yield from source.skip(self.comments)) == "{"
        name = yield from source.name()
        if is_name(name) and (yield from source.skip(self.comments)) == "=":
            if (yield from source.ahead(2)) == "==":
                return False
            if not self.strict:
                return True
            if self.block.parameters:
                return name in self.block.parameters
            source.pos += 1  # no tool says which names there are: code is full of ``name=name``
            return (yield from opens_literal(source, (yield from source.skip(self.comments))))
        source.rewind(start)
        return None

    # ---- behind a call ----

    def _after_call(self) -> Reader[bool]:
        """After the ``)`` of a call, or the ``}`` of one in JSON form."""
        source = self.source
        char = yield from source.skip(self.comments, line=not self.strict)
        if not char:
            return True
        if not self.strict:
            return char in ",;]\n"
        if char == "]":
            return (yield from self._after_list())
        if char in ",;":
            source.pos += 1
            char = yield from source.skip(self.comments)
            if char == "]":
                return (yield from self._after_list())
            if not char and not self.block.in_list:
                return True
        elif not source.newline or (self.block.in_list and self.block.parameters is None):
            return False  # in a list a line of code would look like the next call, if none is declared
        return (yield from self._next_call(char))

    def _after_list(self) -> Reader[bool]:
        """At the ``]`` of the list of calls: behind it the block ends, or another list begins."""
        source = self.source
        source.pos += 1
        char = yield from source.skip(self.comments)
        return char in ("", "[") or (self.block.newline_ends and source.newline)

    def _next_call(self, char: str) -> Reader[bool]:
        source = self.source
        if char == "{":
            source.pos += 1
            return (yield from source.skip(self.comments)) in QUOTES
        name = yield from source.name()
        if not is_name(name) or (yield from source.peek()) != "(":
            return False
        return self.block.parameters is None or name in self.block.tools
