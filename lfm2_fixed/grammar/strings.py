"""Strings: which values ``pattern``, ``format``, ``minLength`` and ``maxLength`` leave.

How they are written is in ``quotes``.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from . import dfa as automata
from . import patterns, regex
from .charsets import ALL, CharSet, chars, intersection, union, without
from .dfa import Dfa
from .formats import FORMATS
from .here import Here
from .quotes import CONTROLS, any_escape, between_quotes, is_plain, quoted, quotes_of, string
from .rules import char_class, literal
from .work import STRING_RULE_STEPS, NotRegular, TooLarge, Work

_CHAIN = 48
"""Up to here a length limit of a broad string is counted by states, which is exact and has quick masks, but takes
20 ms of compiling each; a longer one by xgrammar's counter."""
_NARROW_CHAIN = 12
"""The same where no character needs an escape: there the counter is exact, too, and its masks are quick."""
_LONGEST_LOW = 64
"""A longer ``minLength`` holds as this: it has no counter, and each character of it is a state."""
_LONGEST_JOINED = 10_000
"""The same for both lengths where a text is held to two expressions: llguidance's lexer has 250,000 states an answer,
and each character of such a string takes seven."""
_NO_LIMIT = 2**31
"""A limit from here on is none: no answer is so long, and xgrammar's counter ends here."""


@dataclass
class Text:
    """What a schema's keywords say about a string."""

    label: CharSet = ALL
    """Every character is one of these."""
    low: int = 0
    high: int | None = None
    patterns: list[tuple[str, str]] = field(default_factory=list)
    """Keyword and pattern of what else holds, as far as it has to be an automaton."""

    def limit(self, low: int, high: int | None) -> None:
        """At least ``low`` characters, at most ``high``."""
        self.low = max(self.low, low)
        if high is not None:
            self.high = high if self.high is None else min(self.high, high)

    def automaton(self, here: Here) -> Dfa:
        """The strings that are meant, apart from their length.  What is too large is left out and reported."""
        dfa = automata.repeated(self.label)
        key: tuple[object, ...] = (self.label,)
        for keyword, pattern in dict.fromkeys(self.patterns):
            key += ((keyword, pattern),)
            try:
                found, whole = _automaton(here.work, keyword, pattern)
                so_far = dfa
                if so_far == automata.ANY:
                    dfa = found
                else:
                    dfa = here.work.once(
                        ("all of", *key),
                        lambda inner: automata.both(inner, so_far, found),  # noqa: B023
                    )
                if not whole:
                    here.relax(f"{keyword} (its counts)")
            except (NotRegular, TooLarge):
                here.relax(keyword)
                key = key[:-1]
        return dfa


def _automaton(work: Work, keyword: str, pattern: str) -> tuple[Dfa, bool]:
    """The automaton of a pattern or a format, and whether it is all of it."""
    if keyword == "format":
        return patterns.match(pattern), True
    try:
        return patterns.search(work, pattern), True
    except TooLarge:
        return patterns.search_loosely(work, pattern), False


# --- keywords -------------------------------------------------------------------------------------


def min_length(text: Text, part: Mapping[str, Any], here: Here) -> None:
    """``minLength``."""
    text.limit(int(part["minLength"]), None)


def max_length(text: Text, part: Mapping[str, Any], here: Here) -> None:
    """``maxLength``."""
    text.limit(0, int(part["maxLength"]))


def pattern(text: Text, part: Mapping[str, Any], here: Here) -> None:
    """``pattern``."""
    try:
        run = regex.run(regex.read(part["pattern"]))
    except NotRegular:
        here.relax("pattern")
        return
    if run is None:
        text.patterns.append(("pattern", part["pattern"]))
        return
    text.label = intersection(text.label, run.label)
    text.limit(run.low, run.high)


def format_(text: Text, part: Mapping[str, Any], here: Here) -> None:
    """``format``."""
    if part["format"] in FORMATS:
        text.patterns.append(("format", FORMATS[part["format"]]))
    else:
        here.relax("format")


# --- rules ----------------------------------------------------------------------------------------


def write(text: Text, here: Here) -> list[str]:
    """The alternatives for a string literal; none if no string is left."""
    size = here.rules.size
    found = _literals(text, here)
    here.work.charge_keyword(STRING_RULE_STEPS * (here.rules.size - size))
    return found


def _literals(text: Text, here: Here) -> list[str]:
    rules, work = here.rules, here.work
    low, high = text.low, text.high
    if high is not None and high < low:
        return []
    if high is not None and high >= _NO_LIMIT:
        high = None
    base = text.automaton(here)
    if rules.notation.joins and high != 0:
        return _measured(base, here, low, high)
    if low > _LONGEST_LOW and not (high is not None and high <= _LONGEST_LOW):
        here.relax(f"minLength above {_LONGEST_LOW}")
        low = _LONGEST_LOW
    chain = _NARROW_CHAIN if is_plain(rules, base) else _CHAIN
    dfa, counter = base, None
    try:
        if high is not None and high > chain and rules.notation.counts and base.ends_anywhere_after(high):
            # The counter sees the text with its escapes: never less than the value.  It yields where the text
            # cannot end, hence the condition; inside an escape that does no harm.
            dfa, counter = limited(work, base, low, None), high
        else:
            dfa = limited(work, base, low, high)
        if dfa is not base and not work.admits(rules.ident(dfa), len(dfa.edges)):
            raise TooLarge("too many states to write")
    except TooLarge:
        dfa, counter = base, None
        here.relax("minLength/maxLength")
    if dfa.empty:
        return []
    if counter is None:
        return string(rules, dfa)
    found: list[str] = []
    for quote, inner in between_quotes(rules, dfa, counted=True):
        name, new = rules.reserve(("counted", inner, counter))
        if new:
            rules.define(name, [inner], max_chars=counter)
        found.append(f"{literal(quote)} {name} {literal(quote)}")
    return found


def _measured(base: Dfa, here: Here, low: int, high: int | None) -> list[str]:
    """The same where a text can be held to two expressions: to ``base``, and to so many characters or escapes."""
    rules = here.rules
    if max(low, high or 0) > _LONGEST_JOINED:
        here.relax(f"minLength/maxLength above {_LONGEST_JOINED}")
        low, high = min(low, _LONGEST_JOINED), None if high is None or high > _LONGEST_JOINED else high
    if not low and high is None:
        return [] if base.empty else string(rules, base)
    try:
        # Two expressions that have no text in common would be a dead end.
        if not here.work.once(("has length", base, low, high), lambda work: automata.has_length(work, base, low, high)):
            return []
    except TooLarge:
        here.relax("minLength/maxLength")
        return [] if base.empty else string(rules, base)
    found: list[str] = []
    for quote in quotes_of(rules, base):
        raw = char_class(without(ALL, union(CONTROLS, chars(quote + "\\"))))
        one = rules.one_of(str(raw), any_escape())
        inner = quoted(rules, base, quote)
        name, new = rules.reserve(("measured", inner, low, high))
        if new:
            rules.define(name, [inner], also=f"{one}{{{low},{'' if high is None else high}}} {literal(quote)}")
        found.append(f"{literal(quote)} {name}")
    return found


def limited(work: Work, base: Dfa, low: int, high: int | None) -> Dfa:
    """The strings of ``base`` of ``low`` to ``high`` characters."""
    if low == 0 and high is None:
        return base
    if base.is_run:  # counting them is all there is to do
        return automata.of_length(work, base.edges[0][0][0], low, high)
    return work.once(
        ("length", base, low, high),
        lambda inner: automata.both(inner, base, automata.of_length(inner, ALL, low, high)),
    )
