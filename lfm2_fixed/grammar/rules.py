"""A grammar's rules: they refer to each other, and each is written once.  ``notation`` says how they are printed.

Masks stay cheap where repetition is tail recursion, and where a rule of unknown length contains what ends it.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from functools import lru_cache

from .charsets import CharSet, intersection
from .dfa import Dfa
from .graphs import Depths
from .notation import EBNF, Notation, Rule

SEPARATOR = '"," " "?'
"""Between arguments, items and members: what models write, and no more than one blank, so that they cannot write
blanks for ever."""

GUARD = 4
"""Characters of an end marker that is plain text which no string may hold: enough that HTML and code are written as
they are (``</form>`` beside ``</function_calls>``), and no more, since each character makes a rule for each state."""

_BUNDLE = 32
"""Expressions in one rule: see :meth:`Rules.sequence`."""


class Rules:
    """Grammar rules under construction; equal rules are written once."""

    def __init__(self, ends: Iterable[str] = (), notation: Notation = EBNF) -> None:
        """``ends``: the markers that end a block wherever they stand."""
        self.notation = notation
        # Special tokens of all the families begin so, and a model may write any of them in a string.
        self.guards = tuple(dict.fromkeys(["<|", *(end[:GUARD] for end in ends if not end.startswith("<|"))]))
        """What no string may hold as it is."""
        self._rules: dict[str, Rule] = {}
        self._names: dict[object, str] = {}
        self._idents: dict[object, int] = {}
        self._futures: dict[int, list[int]] = {}
        self._in_both_quotes: set[int] = set()
        self.strings: dict[int, list[str]] = {}
        """The literals of automata, by their :meth:`ident`: most strings of a request are of few."""
        self._depths = Depths(self._rules)
        self.impossible: set[str] = set()
        """Rules that nothing satisfies; only a value that contains itself can still refer to one."""

    def ident(self, thing: object) -> int:
        """A number for ``thing`` (the same for equal things): keys made of it are hashed quickly."""
        return self._idents.setdefault(thing, len(self._idents))

    def futures(self, dfa: Dfa) -> list[int]:
        """A number for each state of ``dfa``.  What can follow is written once, in whichever strings: each rule in
        which nearly every character is possible takes 20 ms to compile."""
        ident = self.ident(dfa)
        if ident not in self._futures:
            self._futures[ident] = dfa.futures(self.ident)
        return self._futures[ident]

    def admits_both_quotes(self, broad: set[int]) -> bool:
        """Whether a string whose expensive states are ``broad`` (of :meth:`futures`) may be written in both quotes.

        Equal states of other strings are there already, and cost nothing more.
        """
        together = self._in_both_quotes | broad
        if len(together) > self.notation.both_quotes:
            return False
        self._in_both_quotes = together
        return True

    def reserve(self, key: object) -> tuple[str, bool]:
        """The name of the rule for ``key``, and whether it is new: then :meth:`define` must follow."""
        new = key not in self._names
        return self._names.setdefault(key, f"r{len(self._names)}"), new

    def define(
        self,
        name: str,
        alternatives: Iterable[str],
        *,
        max_chars: int | None = None,
        followed_by: str | None = None,
        also: str = "",
        free: bool = False,
        redundant: Iterable[str] = (),
    ) -> None:
        """Give a rule its alternatives; for the rest see :class:`~.notation.Rule`."""
        kept = tuple(dict.fromkeys(alternatives))
        self._rules[name] = Rule(kept, max_chars, followed_by, also, free, tuple(redundant))

    def one_of(self, *alternatives: str) -> str:
        """A rule that is one of ``alternatives``."""
        name, new = self.reserve(alternatives)
        if new:
            self.define(name, alternatives)
        return name

    def sequence(self, expressions: Sequence[str]) -> str:
        """The expression for one after the other.

        Long ones are split into rules of a limited length: xgrammar's memory grows with the square of a rule's.
        """
        while len(expressions) > _BUNDLE:
            expressions = [
                self.one_of(" ".join(expressions[at : at + _BUNDLE])) for at in range(0, len(expressions), _BUNDLE)
            ]
        return " ".join(expressions)

    def too_deep(self, expression: str) -> bool:
        """Whether the notation's reader cannot follow an expression, whose rules are all defined."""
        deepest = self.notation.deepest
        return deepest is not None and self._depths.of(expression) > deepest

    @property
    def size(self) -> int:
        """Rules so far."""
        return len(self._names)

    def text(self, root: str) -> str:
        """The grammar, beginning at the expression ``root``."""
        return self.notation.write(root, self._rules)


_PLAIN = re.compile(r"[ !#-\[\]-~]*")
"""Text that is written in a grammar as it is."""


def literal(text: str) -> str:
    """The expression for exactly ``text``."""
    if _PLAIN.fullmatch(text):
        return f'"{text}"'
    return '"' + "".join(c if c.isascii() and c.isprintable() and c not in '"\\' else _code(ord(c)) for c in text) + '"'


_SCALARS: CharSet = (
    (0, 0x7F),
    (0x80, 0x7FF),
    (0x800, 0xCFFF),
    (0xD000, 0xD7FF),
    (0xE000, 0xFFFF),
    (0x10000, 0x10FFFF),
)
"""All characters of UTF-8, cut where the number of bytes grows and on both sides of the first bytes 0xED of
characters (U+D000 to U+D7FF; surrogates would follow): see :func:`char_class`."""


@lru_cache(maxsize=4096)  # an automaton has few labels and many edges
def char_class(label: CharSet) -> str | None:
    """The expression for one character of ``label``; None if it holds surrogates only, which no text does.

    xgrammar turns each range into ranges of bytes, and gets those wrong that cross certain borders.  Every version
    takes the surrogates (ED A0 80 to ED BF BF) where a range goes across them: no UTF-8, so that the server decodes
    each to *three* U+FFFD, and a limit of 10 characters gives 12.  Before 0.2.8 a range that begins before U+D000
    and ends at U+D7FF loses U+D000 to U+D7FF (Korean syllables), and one that goes across a number of
    bytes takes overlong forms (C0 80, E0 80 80, F0 80 80 80), which are decoded to several U+FFFD as well.  So each
    range is cut at all these borders: what is left is right on every version, and compiles as quickly.
    """
    written = intersection(label, _SCALARS)  # neighbours are not joined by it: the cuts stay
    if not written:
        return None
    return "[" + "".join(_code(low) if low == high else f"{_code(low)}-{_code(high)}" for low, high in written) + "]"


def _code(code: int) -> str:
    if 48 <= code <= 57 or 65 <= code <= 90 or 97 <= code <= 122:
        return chr(code)
    return f"\\u{code:04x}" if code < 0x10000 else f"\\U{code:08x}"
