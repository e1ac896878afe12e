"""Does this quote close the string?  Models and chat templates write quotes unescaped.

``'sed -n '1,9p' f'`` is meant as one string.  A literal's first quote is read by Python's rule: it
closes where *the list goes on* after it, adjacent literals included.  Where a Python expression
goes on instead (``"a" + "b"``), the call is malformed.  Otherwise this quote is text, and so are
later ones until one *strictly* closes: a sibling call or argument must follow, not merely
something that could.

Each question is answered by looking ahead from behind the quote.  A look-ahead that may be long
(a comment, an expression, a chain of literals) is not begun before the end of one that failed, so
that all of them together read the text a bounded number of times.
"""

from __future__ import annotations

import enum
import re

from .cursor import Reader, is_name
from .numbers import number_json, read_number
from .state import BRACE, CALL, CLOSERS, DICT, MAX_DEPTH, OBJECT, Block

CONSTANTS = {
    "True": "true",
    "False": "false",
    "None": "null",
    "true": "true",
    "false": "false",
    "null": "null",
}
_PREFIX = re.compile(r"(?:[fFbBtT][rR]|[rR][fFbBtT]|[rRuUfFbBtT])?")


class Verdict(enum.Enum):
    CLOSE = "the string ends here"
    JOIN = "it ends here, and the next literal joins it"
    EXPRESSION = "an expression goes on here: no literal"
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
        joins = yield from opens_string(block)
        source.rewind(after)
        return Verdict.CLOSE if joins is None else Verdict.JOIN
    if strict:
        char = source.now()
        if char and char not in ",:)]}":  # most quotes in a text: a letter, a bracket or a point follows
            return Verdict.TEXT
        closes = yield from _GoesOn(block, strict=True, comments=False).after_value()
        if closes:
            source.rewind(after)
        return Verdict.CLOSE if closes else Verdict.TEXT
    speculate = after >= block.speculate_from
    verdict = Verdict.TEXT
    if (yield from _GoesOn(block, strict=False, comments=speculate).after_value()):
        verdict = Verdict.CLOSE
    elif speculate:
        block.speculate_from = source.offset
        if not raw_newline:
            source.rewind(after)
            verdict = yield from _expression(block)
            block.speculate_from = max(block.speculate_from, source.offset)
    if verdict is not Verdict.TEXT:
        source.rewind(after)
    return verdict


def opens_string(block: Block) -> Reader[str | None]:
    """At a significant character: the prefix (taken) if a string literal is next, else None."""
    source = block.source
    while True:
        prefix = _PREFIX.match(source.text, source.pos)
        assert prefix
        if prefix.end() < len(source.text) or source.ended:
            break
        yield
    if source.text[prefix.end() : prefix.end() + 1] not in ("'", '"'):
        return None
    source.pos = prefix.end()
    return prefix[0]


def opens_literal(block: Block, char: str) -> Reader[bool]:
    """Whether a literal starts at ``char``, the next significant character."""
    source = block.source
    if not char:
        return False
    if char in "'\"[({" or char in "0123456789":
        return True
    if char in "+-":
        source.pos += 1
        char = yield from source.skip(comments=False)
    if char == ".":
        source.pos += 1
        char = yield from source.peek()
    if char in "0123456789":
        return bool(char)
    if (yield from opens_string(block)) is not None:
        return True
    return (yield from source.word()) in CONSTANTS


class _GoesOn:
    """Whether the list goes on at the cursor, after a value.  Moves the cursor."""

    def __init__(self, block: Block, *, strict: bool, comments: bool) -> None:
        self.block = block
        self.source = block.source
        self.strict = strict
        self.comments = comments

    def after_value(self) -> Reader[bool]:
        """A value of the innermost open bracket ends here."""
        source = self.source
        for frame in reversed(self.block.frames):
            char = yield from source.skip(self.comments)
            if frame.kind == CALL:
                return (yield from self._after_argument(char))
            if frame.at_key:
                if char == ":":
                    return True
                if frame.kind != BRACE:
                    return False
            if char == ",":
                source.pos += 1
                char = yield from source.skip(self.comments)
                if char != frame.closer:
                    return (yield from self._element(char, frame.kind in (DICT, OBJECT)))
            if char != frame.closer:
                return False
            if not self.strict:
                return True
            source.pos += 1
        return (yield from self._after_call())

    def _element(self, char: str, key: bool) -> Reader[bool]:
        """After a comma in a container."""
        if not (key and self.strict):
            return (yield from opens_literal(self.block, char))
        if not char or char not in "'\"":
            return False
        yield from pass_string(self.block, char)
        return (yield from self.source.skip(self.comments)) == ":"

    def _after_argument(self, char: str) -> Reader[bool]:
        source = self.source
        if char == ",":
            source.pos += 1
            char = yield from source.skip(self.comments)
            if char == "*":
                source.pos += 1
                return (yield from source.peek()) == "*"
            if char != ")":
                return (yield from self._next_argument(char))
            if not self.strict:
                return True
        if char != ")":
            return False
        source.pos += 1
        return (yield from self._after_call())

    def _next_argument(self, char: str) -> Reader[bool]:
        source = self.source
        block = self.block
        start = source.offset
        name = yield from source.name()
        if is_name(name) and (yield from source.skip(self.comments)) == "=":
            source.pos += 1
            if (yield from source.peek()) == "=":
                return False
            return not (self.strict and block.parameters) or name in (block.parameters or ())
        if block.named:
            return False
        source.rewind(start)
        return (yield from opens_literal(block, char))

    def _after_call(self) -> Reader[bool]:
        """After the ``)`` of a call, or the ``}`` of one in JSON form."""
        source = self.source
        char = yield from source.skip(self.comments, line=not self.strict)
        if not char:
            return True
        if not self.strict:
            return char in ",;]\n"
        if char == "]":
            source.pos += 1
            char = yield from source.skip(self.comments)
            return char in ("", "[") or (self.block.newline_ends and source.newline)
        if char in ",;":
            source.pos += 1
            char = yield from source.skip(self.comments)
            if char == "]" or (not char and not self.block.in_list):
                return True
        elif not source.newline or (self.block.in_list and self.block.parameters is None):
            return False  # in a list a line of code would look like the next call, if none is declared
        return (yield from self._next_call(char))

    def _next_call(self, char: str) -> Reader[bool]:
        source = self.source
        tools = self.block.tools
        if char == "{":
            source.pos += 1
            return (yield from source.skip(self.comments)) in ("'", '"')
        name = yield from source.name()
        if not is_name(name) or (yield from source.peek()) != "(":
            return False
        return self.block.parameters is None or name in tools


# ---- does a Python expression go on after the literal? -----------------------------------------

_OPERATOR = re.compile(r"\*\*?|//?|<<|>>|[<>=!]=|[-+%@&|^<>]")
_UNARY_WORDS = frozenset(["not", "await"])
_BINARY_WORDS = frozenset(["and", "or", "in", "is", "if", "else", "for"])
_NO_TEXT = frozenset("bBtT")  # prefixes of literals that do not join text
_STRING, _OPERAND, _WANTED = "string", "operand", "wanted"


def _expression(block: Block) -> Reader[Verdict]:
    """Judge what follows a literal: JOIN, EXPRESSION, or TEXT where it reads as neither.

    A tokenizer and the alternation of operands and operators; inside brackets also what calls,
    slices and comprehensions add.  The expression ends outside brackets where the list goes on.
    """
    source = block.source
    literals_only = True
    last = _STRING
    brackets: list[str] = []
    conditions = 0  # ``if`` without its ``else``, outside brackets
    while True:
        char = yield from source.skip()
        if not char:
            return Verdict.TEXT
        here = source.offset
        if last is not _WANTED and not brackets and char in ",:)]}":
            if not conditions and (yield from _GoesOn(block, strict=False, comments=True).after_value()):
                return Verdict.JOIN if literals_only else Verdict.EXPRESSION
            return Verdict.TEXT
        prefix = yield from opens_string(block)
        if prefix is not None:
            if last is _OPERAND or (last is _STRING and not _NO_TEXT.isdisjoint(prefix)):
                return Verdict.TEXT
            if not (yield from pass_string(block, source.text[source.pos])):
                return Verdict.TEXT
            last = _STRING
            continue
        source.rewind(here)
        literals_only = False
        if char in ")]}":
            if not brackets or brackets.pop() != char:
                return Verdict.TEXT
            source.pos += 1
            last = _OPERAND
        elif last is _WANTED:
            if char in "([{":
                brackets.append(CLOSERS[char])
            elif char in "0123456789.":
                number = yield from read_number(source)
                if number_json(number.rstrip("jJ")) is None:
                    return Verdict.TEXT
                last = _OPERAND
                continue
            elif char not in "+-~" and not (brackets and char == "*"):
                word = yield from source.word()
                if not word.isidentifier() or word in _BINARY_WORDS:
                    return Verdict.TEXT
                last = _WANTED if word in _UNARY_WORDS else _OPERAND
                continue
            source.pos += 1
        elif char in "([":
            source.pos += 1
            brackets.append(CLOSERS[char])
            last = _WANTED
        elif char == ".":
            source.pos += 1
            yield from source.skip()
            word = yield from source.word()
            if not word.isidentifier():
                return Verdict.TEXT
            last = _OPERAND
        elif brackets and char in ",:":
            source.pos += 1
            last = _WANTED
        else:
            operator = yield from _binary(block, bool(brackets))
            if not operator:
                return Verdict.TEXT
            if not brackets:
                conditions += {"if": 1, "else": -1}.get(operator, 0)
                if conditions < 0:
                    return Verdict.TEXT
            last = _WANTED
        if len(brackets) > MAX_DEPTH:
            return Verdict.TEXT


def _binary(block: Block, bracketed: bool) -> Reader[str]:
    """Take a binary operator, symbol or word; ``""`` if there is none."""
    source = block.source
    while len(source.text) < source.pos + 2 and not source.ended:
        yield
    symbol = _OPERATOR.match(source.text, source.pos)
    if symbol:
        source.pos = symbol.end()
        return symbol[0]
    if bracketed and source.text[source.pos] == "=":
        source.pos += 1
        return "="
    word = yield from source.word()
    if word == "not":
        yield from source.skip()
        word = yield from source.word()
        return "not in" if word == "in" else ""
    return word if word in _BINARY_WORDS else ""


_TO_QUOTE = {quote: re.compile(rf"[^{quote}\\]+") for quote in "'\""}


def pass_string(block: Block, quote: str, *, newlines: bool = False) -> Reader[bool]:
    """Pass the literal whose first quote is next by Python's rule.  False: it does not end.

    ``newlines``: it may hold them even if single-quoted.
    """
    source = block.source
    delimiter = quote
    while len(source.text) < source.pos + 3 and not source.ended:
        yield
    if source.text.startswith(quote * 3, source.pos):
        delimiter = quote * 3
    source.pos += len(delimiter)
    plain = _TO_QUOTE[quote]
    while True:
        run = plain.match(source.text, source.pos)
        if run:
            source.pos = run.end()
            if not newlines and len(delimiter) == 1 and ("\n" in run[0] or "\r" in run[0]):
                return False
        char = yield from source.peek()
        if char == "\\":
            source.pos += 1
            if not (yield from source.peek()):
                return False
            source.pos += 1
        elif char == quote:
            while len(source.text) < source.pos + len(delimiter) and not source.ended:
                yield
            if source.text.startswith(delimiter, source.pos):
                source.pos += len(delimiter)
                return True
            source.pos += 1
        elif not char:
            return False
