"""Does a Python expression go on?  A recogniser of Python's expressions, ahead of the reader.

    'hello'[:5]   "a" + "b"   'x' if y else 'z'   'a', blue, 'b'

A literal with such a thing behind it is no literal but a part of an expression, and the call is malformed
(contract 3.2), rather than one string that runs on to the next quote that could close (contract 4.7.2).

Python's grammar is context-free, so the recogniser is a stack of open constructs and, in the innermost one,
whether an operand is wanted or was just read.  It may accept a little more than Python (``[a for x in y, z]``)
but reads every expression that Python reads, and stops at the first token that no expression could have:
most text behind a quote has no operator there.
"""

from __future__ import annotations

import re

from .cursor import Reader, Source
from .literals import opens_string, pass_number, pass_string
from .tokens import (
    BINARY_OPERATORS,
    CLOSERS,
    DIGITS,
    KEYWORDS,
    MAX_DEPTH,
    NO_STRING_OPERATORS,
    NO_TEXT_PREFIXES,
    UNARY_SYMBOLS,
)

NONE, STRINGS, EXPRESSION = "", "strings", "expression"
"""What was read: no expression; adjacent literals only, which join; anything else."""

# The constructs that may be open: the expression itself, brackets, and a lambda's parameters.
_TOP, _PAREN, _CALL, _LIST, _SUBSCRIPT, _BRACE, _LAMBDA = "top", "paren", "call", "list", "subscript", "brace", "lambda"
_OPENED = {"(": _PAREN, "[": _LIST, "{": _BRACE}
_CLOSED_BY = {_PAREN: ")", _CALL: ")", _LIST: "]", _SUBSCRIPT: "]", _BRACE: "}", _LAMBDA: ":"}

# What was just read in the innermost construct.
_START = "start"  # its opening or a comma: an element may begin, or the construct may end
_WANTED = "wanted"  # an operator: an operand must follow
_OPERAND = "operand"
_NAME = "name"  # an operand that is a single name: ``=`` or ``:=`` may follow
_STRING = "string"  # an operand that is a string literal: another may follow

_OPERATOR = re.compile(BINARY_OPERATORS)
_WORD_OPERATORS = frozenset(["and", "or", "in", "is"])


class _Open:
    """One open construct."""

    __slots__ = ("kind", "ifs", "comprehension")

    def __init__(self, kind: str) -> None:
        self.kind = kind
        self.ifs = 0  # ``if`` that wait for their ``else``
        self.comprehension = False  # behind ``for``, where ``if`` filters and has no ``else``


def pass_expression(source: Source, *, after_string: str = "", behind_string: bool = False) -> Reader[str]:
    """Pass an expression up to the comma, colon or closing bracket behind it, which stays.

    ``after_string``: the cursor is behind its first operand, a string literal with this quote, which may be text.
    ``behind_string``: it is behind its first operand, a string of its own.  Returns one of the constants above;
    where it is ``NONE`` the cursor is where the text ceased to be an expression.
    """
    return _Expression(source, after_string, behind_string or bool(after_string)).read()


class _Expression:
    def __init__(self, source: Source, after_string: str, behind_string: bool) -> None:
        self.source = source
        self.open = [_Open(_TOP)]
        self.last = _STRING if behind_string else _START
        self.strings_only = bool(after_string)
        self.text = False  # so far it is two literals with an operator between them that Python refuses there
        self.literal = after_string  # the quote of the literal that the expression began with, if nothing joined it
        self.operator = ""  # right behind the literals that the expression began with

    def read(self) -> Reader[str]:
        source = self.source
        while True:
            char = yield from source.skip()
            if not char:
                return NONE
            if self.last in (_START, _WANTED):
                going_on = yield from self._operand(char)
            elif len(self.open) == 1 and char in ",:)]}" and not (yield from self._walrus(char)):
                if self.open[0].ifs or self.text:
                    return NONE
                return STRINGS if self.strings_only else EXPRESSION
            else:
                going_on = yield from self._behind_operand(char)
            if not going_on or len(self.open) > MAX_DEPTH:
                return NONE

    # ---- where an operand may begin ----

    def _operand(self, char: str) -> Reader[bool]:
        source = self.source
        innermost = self.open[-1]
        operator, self.operator = self.operator, ""
        prefix = yield from opens_string(source)
        if prefix is not None:
            # Text goes on with the literal's own quote, and is over behind the next: a program may do otherwise.
            self.text = operator in NO_STRING_OPERATORS and prefix + (yield from source.ahead(2))[:1] == self.literal
            self.last = _STRING
            return (yield from pass_string(source))
        if self.last is _START and (char == _CLOSED_BY.get(innermost.kind)):
            return self._close(char)
        if char in CLOSERS:
            return self._push(_OPENED[char])
        if char in UNARY_SYMBOLS:
            return self._take(char, _WANTED)
        if char == "*" and self.last is _START:  # ``*x`` and ``**x``; a lambda's bare ``*``
            stars = yield from source.ahead(2)
            return self._take(stars if stars == "**" else "*", _START if innermost.kind is _LAMBDA else _WANTED)
        if innermost.kind is _LAMBDA and char in ",/":
            return self._take(char, _START)
        if char in ":," and self.last is _START and innermost.kind is _SUBSCRIPT:  # ``[:5]``, ``[::2]``, ``[:, :]``
            return self._take(char, _START)
        if char in DIGITS or char == ".":
            return (yield from self._number())
        return self._name((yield from source.word()), innermost)

    def _number(self) -> Reader[bool]:
        source = self.source
        self.last = _OPERAND
        if (yield from source.ahead(3)) == "...":
            source.pos += 3
            return True
        return (yield from pass_number(source))

    def _name(self, word: str, innermost: _Open) -> bool:
        if word in KEYWORDS:
            if word in ("not", "await"):
                self.last = _WANTED
            elif word == "lambda":
                self._push(_LAMBDA, opener=False)
            elif word == "yield" and innermost.kind is _PAREN and self.last is _START:
                pass  # what it yields may be missing, as an element may
            elif word == "from" and innermost.kind is _PAREN:
                self.last = _WANTED
            else:
                return False
            return True
        self.last = _NAME
        return word.isidentifier()

    # ---- behind an operand ----

    def _behind_operand(self, char: str) -> Reader[bool]:
        source = self.source
        innermost = self.open[-1]
        self.text = False
        prefix = yield from opens_string(source)
        if prefix is not None:
            if self.last is not _STRING or (self.strings_only and prefix.lower() in NO_TEXT_PREFIXES):
                return False
            self.literal = ""
            return (yield from pass_string(source))
        strings_only = self.strings_only
        self.strings_only = False
        if char == _CLOSED_BY.get(innermost.kind) and not (yield from self._walrus(char)):
            return not innermost.ifs and self._close(char)
        if char == "(":
            return self._push(_CALL)
        if char == "[":
            return self._push(_SUBSCRIPT)
        if char == ".":
            source.pos += 1
            yield from source.skip()
            word = yield from source.word()
            self.last = _OPERAND
            return word.isidentifier() and word not in KEYWORDS
        if char == "," and len(self.open) > 1:
            return not innermost.ifs and self._take(char, _START)
        if char == ":":
            if (yield from self._walrus(char)):
                source.pos += 2
                self.last = _WANTED
                return True
            if innermost.kind is _SUBSCRIPT:
                return not innermost.ifs and self._take(char, _START)
            return innermost.kind is _BRACE and not innermost.ifs and self._take(char, _WANTED)
        yield from source.ahead(2)
        symbol = _OPERATOR.match(source.text, source.pos)
        if symbol:
            self.operator = symbol[0] if strings_only else ""
            return self._take(symbol[0], _WANTED)
        if char == "=":
            return self.last is _NAME and innermost.kind in (_CALL, _LAMBDA) and self._take(char, _WANTED)
        return (yield from self._word_operator((yield from source.word()), innermost))

    def _word_operator(self, word: str, innermost: _Open) -> Reader[bool]:
        source = self.source
        self.last = _WANTED
        if word in ("not", "async"):
            yield from source.skip()
            following = yield from source.word()
            if following != {"not": "in", "async": "for"}[word]:
                return False
            word = following
        if word == "for":
            innermost.comprehension = True
            return not innermost.ifs
        if word == "if":
            innermost.ifs += not innermost.comprehension
            return True
        if word == "else":
            innermost.ifs -= 1
            return innermost.ifs >= 0
        return word in _WORD_OPERATORS

    def _walrus(self, char: str) -> Reader[bool]:
        """Whether ``:=`` is next, behind a name."""
        return char == ":" and self.last is _NAME and (yield from self.source.ahead(2)) == ":="

    # ---- the stack ----

    def _take(self, token: str, last: str) -> bool:
        self.source.pos += len(token)
        self.last = last
        return True

    def _push(self, kind: str, *, opener: bool = True) -> bool:
        self.source.pos += opener
        self.open.append(_Open(kind))
        self.last = _START
        return True

    def _close(self, closer: str) -> bool:
        """Take the closing bracket, or the colon behind a lambda's parameters: then its body is wanted."""
        self.open.pop()
        return self._take(closer, _WANTED if closer == ":" else _OPERAND)
