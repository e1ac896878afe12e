"""How a grammar is written down: xgrammar's EBNF, and llama.cpp's GBNF.  (llguidance's Lark: ``lexemes.py``.)

A rule's alternatives are text that both languages read alike: strings, classes, groups, ``|``, ``?``, ``*`` and counts.
What only one of them has is data of the rule (:class:`Rule`), and the printers write it or leave it out.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import NamedTuple


class Rule(NamedTuple):
    """One rule of a grammar."""

    alternatives: tuple[str, ...]
    max_chars: int | None = None
    """Bounds its text, as far as it can end there; only where the notation :attr:`~Notation.counts`."""
    followed_by: str | None = None
    """What follows it anyway: a hint that decides about most tokens that reach beyond the rule."""
    also: str = ""
    """An expression that its text has to fit as well; only where the notation :attr:`~Notation.joins`."""
    free: bool = False
    """It is a state of free text: what begins there ends in one way only, at what comes behind the text."""
    redundant: tuple[str, ...] = ()
    """Alternatives that add nothing.  Where a rule goes on with itself, xgrammar accepts all tokens of such characters
    at once when it compiles the rule's mask; else it tries each, ten times as slowly.  With counters it never does."""


@dataclass(frozen=True)
class Notation:
    """What a grammar's reader understands; equal ones give equal grammars."""

    name: str
    counts: bool
    """A rule's characters can be bounded by a counter; else a length is counted by states, a rule each."""
    joins: bool
    """A text can be held to two expressions at once: so its length is a repetition of characters."""
    most_repeated: int
    """The largest count that a repetition may have."""
    both_quotes: int
    """States of a request's strings in which nearly every character is possible, and which may be written in single
    quotes as well: of equal ones one.  Strings with more of them are in double quotes."""
    deepest: int | None
    """How many rules may be entered, one inside the other; None for no limit."""
    write: Callable[[str, Mapping[str, Rule]], str]
    """The grammar that begins at an expression, as text."""


def _ebnf(root: str, rules: Mapping[str, Rule]) -> str:
    counted = any(rule.max_chars is not None for rule in rules.values())
    lines = [f"root ::= {root}"]
    for name, rule in rules.items():
        body = " | ".join(rule.alternatives if counted else rule.alternatives + rule.redundant)
        counter = "" if rule.max_chars is None else f"[max_chars={rule.max_chars}]"
        lines.append(f"{name}{counter} ::= {f'({body}) (={rule.followed_by})' if rule.followed_by else body}")
    return "\n".join([*lines, ""])


def _gbnf(root: str, rules: Mapping[str, Rule]) -> str:
    lines = [f"{name} ::= {' | '.join(rule.alternatives)}" for name, rule in rules.items()]
    return "\n".join([f"root ::= {root}", *lines, ""])


EBNF = Notation("EBNF", counts=True, joins=False, most_repeated=65_535, both_quotes=100, deepest=None, write=_ebnf)
"""xgrammar from 0.2.8 on.  It counts repetitions; more than so many items do not fit into an answer.  Each broad state
is 20 ms of compiling: the 48 of all length limits that are counted by states, and as much for patterns."""

EBNF_WITHOUT_COUNTERS = replace(EBNF, name="EBNF without counters", counts=False)
"""xgrammar before that."""

GBNF = Notation("GBNF", counts=False, joins=False, most_repeated=2000, both_quotes=1000, deepest=None, write=_gbnf)
"""llama.cpp.  It writes repetitions out as rules, and refuses more than 2000 ("exceeds sane defaults").  Nothing is
compiled: a state is 350 bytes of the request for each kind of quotes."""
