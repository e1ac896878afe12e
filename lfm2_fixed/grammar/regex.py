"""Reading a regular expression: its text to a tree.

What is read is the common part of ECMA-262 (what JSON Schema asks for) and Python's ``re``.  Where they differ
(``\\d`` beyond ASCII, ``$`` before a newline) the reading is the one that satisfies both.
"""

from __future__ import annotations

from functools import lru_cache
from typing import NamedTuple, Union

from .charsets import ALL, EMPTY, CharSet, chars, charset, complement, union, without
from .work import NotRegular

_DEPTH = 100
"""Groups within groups; deeper ones are not read, so that no pattern overflows the stack."""

_DIGIT = chars("0123456789")
_WORD = charset([(48, 57), (65, 90), (95, 95), (97, 122)])
_SPACE = chars(" \t\n\r\f\v")
_NOT_ASCII = charset([(0x80, 0x10FFFF)])
_ANY_SPACE = union(
    _SPACE,
    charset([(0x1C, 0x1F), (0x85, 0x85), (0xA0, 0xA0), (0x1680, 0x1680), (0x2000, 0x200A), (0x2028, 0x2029),
             (0x202F, 0x202F), (0x205F, 0x205F), (0x3000, 0x3000), (0xFEFF, 0xFEFF)]),
)  # fmt: skip
_DOT = without(ALL, chars("\n\r\u2028\u2029"))
# Letter of a class escape: what is surely in it, and what may be in it.
_CLASSES = {
    "d": (_DIGIT, union(_DIGIT, _NOT_ASCII)),
    "w": (_WORD, union(_WORD, _NOT_ASCII)),
    "s": (_SPACE, _ANY_SPACE),
}
_CONTROLS = {"n": "\n", "r": "\r", "t": "\t", "f": "\f", "v": "\v", "0": "\0"}


class Set(NamedTuple):
    """One character of a set."""

    label: CharSet


class Sequence(NamedTuple):
    """One after the other."""

    nodes: tuple[Node, ...]


class Choice(NamedTuple):
    """One of these."""

    choices: tuple[Node, ...]


class Repeat(NamedTuple):
    """``least`` to ``most`` times (None: no limit)."""

    node: Node
    least: int
    most: int | None


class Edge(NamedTuple):
    """The text's beginning or its end."""

    start: bool


Node = Union[Set, Sequence, Choice, Repeat, Edge]


class Run(NamedTuple):
    """A whole text of ``low`` to ``high`` characters (None: no limit) of one set."""

    label: CharSet
    low: int
    high: int | None


@lru_cache(maxsize=512)
def read(pattern: str) -> Node:
    """The tree of ``pattern``.

    Raises:
        NotRegular: look-around, back references, flags, Unicode properties, or no pattern at all.
    """
    return _Reader(pattern).read()


def run(node: Node) -> Run | None:
    """The pattern as a counted character set (``^[a-z]{1,255}$``), if that is all it is: no automaton is needed."""
    nodes = list(node.nodes) if isinstance(node, Sequence) else [node]
    while len(nodes) == 1 and isinstance(nodes[0], Sequence):
        nodes = list(nodes[0].nodes)
    if len(nodes) != 3 or nodes[0] != Edge(True) or nodes[2] != Edge(False):
        return None
    inner = nodes[1]
    count: Repeat | None = None
    while not isinstance(inner, Set):
        if isinstance(inner, Sequence) and len(inner.nodes) == 1:
            inner = inner.nodes[0]
        elif isinstance(inner, Repeat) and count is None:
            count, inner = inner, inner.node
        else:
            return None
    return Run(inner.label, 1, 1) if count is None else Run(inner.label, count.least, count.most)


def loosened(node: Node, most: int) -> Node:
    """The same pattern with no repetition counted beyond ``most``: more texts than before, never fewer."""
    if isinstance(node, Sequence):
        return Sequence(tuple(loosened(inner, most) for inner in node.nodes))
    if isinstance(node, Choice):
        return Choice(tuple(loosened(inner, most) for inner in node.choices))
    if isinstance(node, Repeat):
        high = None if node.most is None or node.most > most else node.most
        return Repeat(loosened(node.node, most), min(node.least, most), high)
    return node


class _Reader:
    """Recursive descent."""

    def __init__(self, pattern: str) -> None:
        self._text = pattern
        self._at = 0
        self._depth = 0

    def read(self) -> Node:
        node = self._choice()
        if self._at < len(self._text):
            raise NotRegular("unbalanced parenthesis")
        return node

    def _choice(self) -> Node:
        self._depth += 1
        if self._depth > _DEPTH:
            raise NotRegular("nested too deeply")
        choices = [self._sequence()]
        while self._take("|"):
            choices.append(self._sequence())
        self._depth -= 1
        return choices[0] if len(choices) == 1 else Choice(tuple(choices))

    def _sequence(self) -> Node:
        nodes: list[Node] = []
        while self._at < len(self._text) and self._text[self._at] not in "|)":
            node = self._atom()
            bounds = self._bounds()
            if bounds is not None:
                self._take("?")  # lazy: the same language
                if self._take("+"):
                    raise NotRegular("possessive repetition")
                if isinstance(node, Edge) or self._bounds() is not None:
                    raise NotRegular("repeated repetition")  # an error in ECMA and in Python
                node = Repeat(node, *bounds)
            nodes.append(node)
        return Sequence(tuple(nodes))

    def _bounds(self) -> tuple[int, int | None] | None:
        if self._take("*"):
            return 0, None
        if self._take("+"):
            return 1, None
        if self._take("?"):
            return 0, 1
        if self._at < len(self._text) and self._text[self._at] == "{":
            close = self._text.find("}", self._at)
            low, comma, high = self._text[self._at + 1 : max(close, self._at + 1)].partition(",")
            if close > 0 and low.isascii() and low.isdigit() and (not high or high.isascii() and high.isdigit()):
                self._at = close + 1
                if len(low) > 9 or len(high) > 9:
                    raise NotRegular("repetition count")
                least, most = int(low), int(high) if high else None if comma else int(low)
                if most is not None and most < least:
                    raise NotRegular("repetition count")
                return least, most
        return None

    def _atom(self) -> Node:
        c = self._next()
        if c == "(":
            if self._take("?") and not self._take(":"):
                name = self._text.find(">", self._at)
                named = self._take("<") or self._take("P<")
                if not named or name < 0 or not self._text[self._at : name].isidentifier():
                    raise NotRegular("a group that is more than a group")
                self._at = name + 1
            node = self._choice()
            if not self._take(")"):
                raise NotRegular("unbalanced parenthesis")
            return node
        if c in "^$":
            return Edge(c == "^")
        if c in "*+?":
            raise NotRegular("nothing to repeat")
        if c == "[":
            return Set(self._class())
        if c == ".":
            return Set(_DOT)
        if c == "\\":
            return Set(self._escape(in_class=False)[0])
        return Set(chars(c))

    def _class(self) -> CharSet:
        negated = self._take("^")
        sure, possible = EMPTY, EMPTY
        begun = False
        while not self._take("]") or not begun:
            if begun is False and self._at and self._text[self._at - 1] == "]" and self._text[self._at - 2] in "[^":
                # Python reads a first ``]`` as itself, ECMA as the end of an empty class.
                raise NotRegular("an empty class")
            begun = True
            low_sure, low_possible = self._class_item()
            after = self._text[self._at + 1 : self._at + 2]
            if self._text[self._at : self._at + 1] == "-" and after not in ("]", "") and _single(low_sure):
                self._at += 1
                high, _ = self._class_item()
                if not _single(high) or high[0][0] < low_sure[0][0]:
                    raise NotRegular("a bad range in a class")
                low_sure = low_possible = charset([(low_sure[0][0], high[0][0])])
            sure, possible = union(sure, low_sure), union(possible, low_possible)
        return complement(possible) if negated else sure

    def _class_item(self) -> tuple[CharSet, CharSet]:
        c = self._next()
        if c == "[" and self._text[self._at : self._at + 1] == ":":
            raise NotRegular("a named class")
        return self._escape(in_class=True) if c == "\\" else (chars(c), chars(c))

    def _escape(self, *, in_class: bool) -> tuple[CharSet, CharSet]:
        c = self._next()
        if c in _CLASSES:
            return _CLASSES[c]
        if c.lower() in _CLASSES and c.isalpha():
            sure, possible = _CLASSES[c.lower()]
            return complement(possible), complement(sure)
        if c == "b" and in_class:
            return chars("\b"), chars("\b")
        if c in _CONTROLS:
            if c == "0" and self._text[self._at : self._at + 1].isdigit():
                raise NotRegular("an octal escape")
            return chars(_CONTROLS[c]), chars(_CONTROLS[c])
        if c in "xu":
            width = 2 if c == "x" else 4
            digits = self._text[self._at : self._at + width]
            if len(digits) == width and all(d in "0123456789abcdefABCDEF" for d in digits):
                self._at += width
                code = charset([(int(digits, 16), int(digits, 16))])
                return code, code
            raise NotRegular("a bad escape")
        if c.isalnum():
            raise NotRegular(f"the escape \\{c}")
        return chars(c), chars(c)

    def _next(self) -> str:
        if self._at >= len(self._text):
            raise NotRegular("the pattern ends too early")
        self._at += 1
        return self._text[self._at - 1]

    def _take(self, text: str) -> bool:
        if self._text.startswith(text, self._at):
            self._at += len(text)
            return True
        return False


def _single(label: CharSet) -> bool:
    return len(label) == 1 and label[0][0] == label[0][1]
