"""Regular languages over characters: the part of a JSON Schema that limits one string or number.

A :class:`Dfa` says which strings are meant (values, not their escaped text).  Patterns, lengths,
excluded names and numeric ranges are all automata, so that any of them can be combined exactly.
Character sets are sorted, disjoint, inclusive ranges of code points; surrogates are never in one.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import lru_cache

CharSet = tuple[tuple[int, int], ...]

MAX_STATES = 600
"""Larger automata are given up: the constraint is not worth its compile time."""
_MINIMISED = 150
"""Larger ones are not minimised: they come from length limits, and are nearly minimal already."""

EMPTY: CharSet = ()
ALL: CharSet = ((0, 0xD7FF), (0xE000, 0x10FFFF))


class NotRegular(ValueError):
    """A pattern that is no regular language, or none that this module reads."""


class TooLarge(ValueError):
    """An automaton with more than ``MAX_STATES`` states."""


# --- character sets -------------------------------------------------------------------------------


def charset(ranges: Iterable[tuple[int, int]]) -> CharSet:
    """The set of the given inclusive ranges, which may overlap; surrogates are left out."""
    merged: list[tuple[int, int]] = []
    for low, high in sorted(ranges):
        if merged and low <= merged[-1][1] + 1:
            merged[-1] = (merged[-1][0], max(merged[-1][1], high))
        else:
            merged.append((low, high))
    return intersection(tuple(merged), ALL)


def chars(text: str) -> CharSet:
    """The set of the characters of ``text``."""
    return charset((ord(c), ord(c)) for c in text)


def union(a: CharSet, b: CharSet) -> CharSet:
    return charset((*a, *b))


def intersection(a: CharSet, b: CharSet) -> CharSet:
    found: list[tuple[int, int]] = []
    i = j = 0
    while i < len(a) and j < len(b):
        low, high = max(a[i][0], b[j][0]), min(a[i][1], b[j][1])
        if low <= high:
            found.append((low, high))
        if a[i][1] < b[j][1]:
            i += 1
        else:
            j += 1
    return tuple(found)


def complement(a: CharSet) -> CharSet:
    gaps: list[tuple[int, int]] = []
    at = 0
    for low, high in a:
        if at < low:
            gaps.append((at, low - 1))
        at = high + 1
    gaps.append((at, 0x10FFFF))
    return intersection(tuple(gap for gap in gaps if gap[0] <= gap[1]), ALL)


def without(a: CharSet, b: CharSet) -> CharSet:
    return intersection(a, complement(b))


def contains(a: CharSet, code: int) -> bool:
    return any(low <= code <= high for low, high in a)


# --- deterministic automata -----------------------------------------------------------------------


@dataclass(frozen=True)
class Dfa:
    """State 0 is the start.  A character without an edge is refused.  No dead states."""

    edges: tuple[tuple[tuple[CharSet, int], ...], ...]
    accepting: tuple[bool, ...]

    @property
    def empty(self) -> bool:
        return not any(self.accepting)

    def accepts(self, text: str) -> bool:
        state = 0
        for c in text:
            for label, target in self.edges[state]:
                if contains(label, ord(c)):
                    state = target
                    break
            else:
                return False
        return self.accepting[state]


_ANY = Dfa((((ALL, 0),),), (True,))


def any_string() -> Dfa:
    return _ANY


@lru_cache(maxsize=64)
def of_length(low: int, high: int | None) -> Dfa:
    """Strings of ``low`` to ``high`` characters (None: no limit)."""
    last = low if high is None else high
    if last >= MAX_STATES:
        raise TooLarge(f"{last} characters")
    edges: list[tuple[tuple[CharSet, int], ...]] = [((ALL, n + 1),) for n in range(last)]
    edges.append(((ALL, last),) if high is None else ())
    return Dfa(tuple(edges), tuple(n >= low for n in range(last + 1)))


def one_of(words: Iterable[str]) -> Dfa:
    """Exactly these strings."""
    edges: list[dict[str, int]] = [{}]
    accepting = [False]
    for word in words:
        state = 0
        for c in word:
            if c not in edges[state]:
                edges[state][c] = len(edges)
                edges.append({})
                accepting.append(False)
            state = edges[state][c]
        accepting[state] = True
    return _tidy([[(chars(c), target) for c, target in edge.items()] for edge in edges], accepting)


def both(a: Dfa, b: Dfa) -> Dfa:
    """The strings of ``a`` that are also in ``b``."""
    if a is _ANY:
        return b
    if b is _ANY:
        return a
    return _product(a, b, lambda x, y: x and y)


def but_not(a: Dfa, b: Dfa) -> Dfa:
    """The strings of ``a`` that are not in ``b``."""
    edges = [list(state) for state in b.edges]
    sink = len(edges)
    for state in edges:
        rest = complement(charset(r for label, _ in state for r in label))
        if rest:
            state.append((rest, sink))
    edges.append([(ALL, sink)])
    full = Dfa(tuple(map(tuple, edges)), (*b.accepting, False))
    return _product(a, full, lambda x, y: x and not y)


def _product(a: Dfa, b: Dfa, accept: object) -> Dfa:
    numbers = {(0, 0): 0}
    todo = [(0, 0)]
    edges: list[list[tuple[CharSet, int]]] = []
    accepting: list[bool] = []
    for x, y in todo:
        out: list[tuple[CharSet, int]] = []
        for label_a, to_a in a.edges[x]:
            for label_b, to_b in b.edges[y]:
                label = intersection(label_a, label_b)
                if label:
                    target = (to_a, to_b)
                    if target not in numbers:
                        numbers[target] = len(numbers)
                        todo.append(target)
                        if len(todo) > 4 * MAX_STATES:
                            raise TooLarge("too many states")
                    out.append((label, numbers[target]))
        edges.append(out)
        accepting.append(bool(accept(a.accepting[x], b.accepting[y])))  # type: ignore[operator]
    return _tidy(edges, accepting)


def _tidy(edges: list[list[tuple[CharSet, int]]], accepting: list[bool]) -> Dfa:
    """The minimal automaton: dead states dropped, equal states joined (Moore's algorithm)."""
    sources: list[set[int]] = [set() for _ in edges]
    for state, out in enumerate(edges):
        for _, target in out:
            sources[target].add(state)
    alive = {state for state, yes in enumerate(accepting) if yes}
    todo = list(alive)
    while todo:
        for source in sources[todo.pop()] - alive:
            alive.add(source)
            todo.append(source)
    if 0 not in alive:
        return Dfa(((),), (False,))
    group = [int(yes) for yes in accepting]
    count = 0
    if len(alive) > _MINIMISED:
        group = list(range(len(edges)))
    while len(alive) <= _MINIMISED:
        keys: dict[object, int] = {}
        new: list[int] = []
        for state, out in enumerate(edges):
            if state not in alive:
                new.append(-1)
                continue
            new.append(keys.setdefault((group[state], _grouped(out, group, alive)), len(keys)))
        group = new
        if len(keys) == count:
            break
        count = len(keys)
    # Number the groups from the start state on.
    order: dict[int, int] = {group[0]: 0}
    picked = [0]
    result: list[tuple[tuple[CharSet, int], ...]] = []
    for state in picked:
        out_edges: list[tuple[CharSet, int]] = []
        for target_group, label in _grouped(edges[state], group, alive):
            if target_group not in order:
                order[target_group] = len(order)
                picked.append(group.index(target_group))
            out_edges.append((label, order[target_group]))
        result.append(tuple(out_edges))
    if len(result) > MAX_STATES:
        raise TooLarge("too many states")
    return Dfa(tuple(result), tuple(accepting[state] for state in picked))


def _grouped(
    out: Sequence[tuple[CharSet, int]], group: Sequence[int], alive: set[int]
) -> tuple[tuple[int, CharSet], ...]:
    labels: dict[int, list[tuple[int, int]]] = {}
    for label, target in out:
        if target in alive:
            labels.setdefault(group[target], []).extend(label)
    return tuple(sorted((target, charset(ranges)) for target, ranges in labels.items()))


# --- regular expressions --------------------------------------------------------------------------
#
# The common part of ECMA-262 (what JSON Schema asks for) and Python's ``re``.  Where they differ
# (``\d`` beyond ASCII, ``$`` before a newline) the reading is the one that satisfies both.

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
_MAX_REPEAT = 1000


@lru_cache(maxsize=256)
def search(pattern: str) -> Dfa:
    """Strings in which ``pattern`` is found (JSON Schema's ``pattern`` is not anchored).

    Raises:
        NotRegular: look-around, back references, flags, Unicode properties, or no pattern at all.
        TooLarge: too many states.
    """
    return _PatternReader(pattern).dfa(anywhere=True)


@lru_cache(maxsize=256)
def match(pattern: str) -> Dfa:
    """Strings that match ``pattern`` from beginning to end.  Raises as :func:`search` does."""
    return _PatternReader(pattern).dfa(anywhere=False)


_Part = tuple[int, int]  # first and last state of a piece of the automaton


class _PatternReader:
    """A recursive-descent reader that builds Thompson's automaton."""

    def __init__(self, pattern: str) -> None:
        self._text = pattern
        self._at = 0
        self._free: list[list[int]] = []  # edges without a character
        self._starts: list[list[int]] = []  # ... taken at the text's beginning only
        self._ends: list[list[int]] = []  # ... at its end only
        self._edges: list[list[tuple[CharSet, int]]] = []

    def dfa(self, *, anywhere: bool) -> Dfa:
        try:
            first, last = self._alternatives()
        except RecursionError:
            raise NotRegular("nested too deeply") from None
        if self._at < len(self._text):
            raise NotRegular("unbalanced parenthesis")
        if anywhere:
            before, after = self._state(), self._state()
            self._edges[before].append((ALL, before))
            self._free[before].append(first)
            self._edges[after].append((ALL, after))
            self._free[last].append(after)
            first, last = before, after
        return self._determine(first, last)

    # The pattern's grammar.

    def _alternatives(self) -> _Part:
        parts = [self._sequence()]
        while self._take("|"):
            parts.append(self._sequence())
        if len(parts) == 1:
            return parts[0]
        first, last = self._state(), self._state()
        for part in parts:
            self._free[first].append(part[0])
            self._free[part[1]].append(last)
        return first, last

    def _sequence(self) -> _Part:
        first = last = self._state()
        while self._at < len(self._text) and self._text[self._at] not in "|)":
            part = self._repeated()
            self._free[last].append(part[0])
            last = part[1]
        return first, last

    def _repeated(self) -> _Part:
        start = self._at
        part = self._atom()
        end = self._at
        while (bounds := self._bounds()) is not None:
            self._take("?")  # lazy: the same language
            if self._take("+"):
                raise NotRegular("possessive repetition")
            part = self._repeat(part, self._text[start:end], *bounds)
            start, end = 0, 0  # a repeated repetition is copied from nothing: refused below
        return part

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
                least, most = int(low), int(high) if high else None if comma else int(low)
                if least > _MAX_REPEAT or (most or 0) > _MAX_REPEAT or (most is not None and most < least):
                    raise NotRegular("repetition count")
                return least, most
        return None

    def _repeat(self, part: _Part, source: str, least: int, most: int | None) -> _Part:
        def copy() -> _Part:
            if not source:
                raise NotRegular("repeated repetition")
            if len(self._free) > 20 * MAX_STATES:
                raise TooLarge("too many states")
            after, self._at, self._text, whole = self._at, 0, source, self._text
            try:
                return self._atom()
            finally:
                self._at, self._text = after, whole

        first = last = self._state()
        for n in range(max(least, most or 0, 1)):
            piece = part if n == 0 else copy()
            enter, leave = self._state(), self._state()
            self._free[last].append(enter)
            self._free[enter].append(piece[0])
            self._free[piece[1]].append(leave)
            if n >= least:
                self._free[enter].append(leave)
            if most is None and n == max(least, 1) - 1:
                self._free[leave].append(enter)
            last = leave
        if most == 0:
            return first, first
        return first, last

    def _atom(self) -> _Part:
        c = self._next()
        if c == "(":
            if self._take("?") and not self._take(":"):
                name = self._text.find(">", self._at)
                named = self._take("<") or self._take("P<")
                if not named or name < 0 or not self._text[self._at : name].isidentifier():
                    raise NotRegular("a group that is more than a group")
                self._at = name + 1
            part = self._alternatives()
            if not self._take(")"):
                raise NotRegular("unbalanced parenthesis")
            return part
        if c in "^$":
            first, last = self._state(), self._state()
            (self._starts if c == "^" else self._ends)[first].append(last)
            return first, last
        if c in "*+?":
            raise NotRegular("nothing to repeat")
        if c == "[":
            label = self._class()
        elif c == ".":
            label = _DOT
        elif c == "\\":
            sure, _ = self._escape(in_class=False)
            label = sure
        else:
            label = chars(c)
        first, last = self._state(), self._state()
        self._edges[first].append((label, last))
        return first, last

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

    # The automaton.

    def _state(self) -> int:
        self._free.append([])
        self._starts.append([])
        self._ends.append([])
        self._edges.append([])
        return len(self._free) - 1

    def _closure(self, states: Iterable[int], *, start: bool = False, end: bool = False) -> frozenset[int]:
        found = set(states)
        todo = list(found)
        while todo:
            state = todo.pop()
            for target in (
                *self._free[state],
                *(self._starts[state] if start else ()),
                *(self._ends[state] if end else ()),
            ):
                if target not in found:
                    found.add(target)
                    todo.append(target)
        return frozenset(found)

    def _determine(self, first: int, last: int) -> Dfa:
        # The text's beginning is also its end when it is empty: hence the two closures at the start.
        start = self._closure([first], start=True)
        numbers = {start: 0}
        todo = [start]
        edges: list[list[tuple[CharSet, int]]] = []
        accepting: list[bool] = []
        for states in todo:
            at_start = not edges
            accepting.append(last in self._closure(states, start=at_start, end=True))
            moves = [move for state in states for move in self._edges[state]]
            out: list[tuple[CharSet, int]] = []
            for label, targets in _split(moves):
                target = self._closure(targets)
                if target not in numbers:
                    numbers[target] = len(numbers)
                    todo.append(target)
                    if len(todo) > 4 * MAX_STATES:
                        raise TooLarge("too many states")
                out.append((label, numbers[target]))
            edges.append(out)
        if any(target == 0 for out in edges for _, target in out):
            # State 0 knows that the text has just begun; nothing may come back to it.
            edges, accepting = self._apart(edges, accepting, start, last)
        return _tidy(edges, accepting)

    def _apart(
        self, edges: list[list[tuple[CharSet, int]]], accepting: list[bool], start: frozenset[int], last: int
    ) -> tuple[list[list[tuple[CharSet, int]]], list[bool]]:
        again = len(edges)
        edges = [[(label, again if target == 0 else target) for label, target in out] for out in edges]
        return [*edges, edges[0]], [*accepting, last in self._closure(start, end=True)]


def _split(moves: Sequence[tuple[CharSet, int]]) -> list[tuple[CharSet, frozenset[int]]]:
    """Disjoint labels, each with the states it leads to."""
    bounds = sorted({bound for label, _ in moves for low, high in label for bound in (low, high + 1)})
    ranges: dict[frozenset[int], list[tuple[int, int]]] = {}
    for low, after in zip(bounds, bounds[1:]):
        targets = frozenset(target for label, target in moves if contains(label, low))
        if targets:
            ranges.setdefault(targets, []).append((low, after - 1))
    return [(charset(spans), targets) for targets, spans in ranges.items()]


def _single(label: CharSet) -> bool:
    return len(label) == 1 and label[0][0] == label[0][1]
