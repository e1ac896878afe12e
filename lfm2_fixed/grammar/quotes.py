"""String literals of an automaton's values: what is written as it is, what is escaped, and in which quotes."""

from __future__ import annotations

import re
from collections.abc import Iterable
from functools import lru_cache

from .charsets import ALL, CharSet, chars, charset, contains, intersection, union, without
from .dfa import Dfa
from .rules import GUARD, Rules, char_class, literal

_BROAD = 1000
"""A state that takes more different characters than this has an expensive token mask."""

_ASCII = charset([(0, 0x7F)])
_COMMON = charset([(0x20, 0x20), (0x30, 0x39), (0x41, 0x5A), (0x61, 0x7A)])
"""Characters of most tokens.  Redundant alternatives are of these alone: they are followed beside the others, at the
cost of a second mask, and end with the first other character."""
_QUOTES = "\"'"
_AFTER = "[,)\\]}:]"
"""What may follow a string literal."""

_SHORT_ESCAPES = {"n": "\n", "r": "\r", "t": "\t", "b": "\b", "f": "\f", "\\": "\\", '"': '"', "'": "'"}
_ESCAPES = {value: letter for letter, value in _SHORT_ESCAPES.items()}
CONTROLS = charset([(0, 0x1F), (0x7F, 0x7F)])
_PLAIN = re.compile(r"[ !#-&(-\[\]-~]*")
"""Strings that are written in quotes as they are, unless they hold a guard."""


def is_plain(rules: Rules, dfa: Dfa) -> bool:
    """Whether no character that is accepted needs an escape."""
    return not any(_needs_escape(label, rules.guards) for edges in dfa.edges for label, _ in edges)


@lru_cache(maxsize=4096)  # an automaton has few labels and many edges
def _needs_escape(label: CharSet, guards: tuple[str, ...]) -> bool:
    never = union(CONTROLS, chars("\"'\\" + "".join(guard[0] for guard in guards)))
    return bool(intersection(label, never))


def quoted(rules: Rules, dfa: Dfa, quote: str, *, closed: bool = True) -> str:
    """The rule for what follows the opening ``quote`` (may be either) of a string literal whose value ``dfa`` accepts.

    ``closed``: with the closing quote, which makes for cheaper masks than a quote after the rule.

    Raw control characters are left out (the readers of such text disagree about them), and so are the
    guards: an end marker ends a block even inside a string (contract 4.8), and special tokens are legal
    inside a structural tag.  All of them can be written with an escape.
    """
    futures = rules.futures(dfa)
    special = chars("".join(rules.guards))
    todo: list[tuple[str, int, str]] = []

    def rule(state: int, begun: str) -> str:
        if begun:  # a guard that cannot go on from here needs no rules of its own
            begun = _begun(begun, [guard for guard in rules.guards if _goes_on(dfa, state, begun, guard)])
        name, new = rules.reserve(("quoted", futures[state], quote, closed, begun))
        if new:
            todo.append((name, state, begun))
        return name

    start = rule(0, "")
    never_raw = union(CONTROLS, chars(quote + "\\"))
    for name, state, begun in todo:
        alternatives = [literal(quote if closed else "")] if dfa.accepting[state] else []
        redundant: list[str] = []
        for label, target in dfa.edges[state]:
            onward, escaped = rule(target, ""), ""
            raw, begin_guards = _raw(label, never_raw, special)
            for c in begin_guards:
                text = begun + c
                if text.endswith(rules.guards):
                    raw = without(raw, chars(c))
                    escaped += c
                elif (after := rule(target, _begun(text, rules.guards))) != onward:
                    raw = without(raw, chars(c))
                    alternatives.append(f"{literal(c)} {after}")
            if written := char_class(raw):
                more = _redundant(dfa, state, target, raw)
                if begun and not more and _is_broad(raw):
                    written = _shared_class(rules, raw)
                alternatives.append(f"{written} {onward}")
                if onward != name and more:
                    redundant.append(f"{more} {name}")
            alternatives += [f"{escape} {onward}" for escape in _escapes(rules, label, escaped)]
        end = _AFTER if closed else f"{char_class(chars(quote))} {_AFTER}"
        rules.define(name, alternatives or [literal("\0")], followed_by=end, redundant=redundant)
    return start


@lru_cache(maxsize=4096)
def _raw(label: CharSet, never: CharSet, special: CharSet) -> tuple[CharSet, str]:
    """The characters of ``label`` that are written as they are, and those of them that are ``special``."""
    raw = without(label, never)
    return raw, "".join(chr(code) for low, high in intersection(raw, special) for code in range(low, high + 1))


@lru_cache(maxsize=4096)
def _common(label: CharSet) -> str | None:
    common = intersection(label, _COMMON)
    return char_class(common) if common else None


def _redundant(dfa: Dfa, state: int, target: int, label: CharSet) -> str | None:
    """The characters after which a string may go on from ``state`` again instead of from ``target``, and nothing is
    added by that: see :class:`~.notation.Rule`."""
    common = _common(label)
    return common if common and dfa.includes(target, state) else None


def _begun(text: str, guards: Iterable[str]) -> str:
    """The longest end of ``text`` with which one of ``guards`` begins."""
    guards = tuple(guards)
    for at in range(len(text)):
        if any(guard.startswith(text[at:]) for guard in guards):
            return text[at:]
    return ""


def _goes_on(dfa: Dfa, state: int, begun: str, guard: str) -> bool:
    """Whether ``dfa`` takes from ``state`` the rest of a ``guard`` whose beginning ends ``begun``."""
    for c in guard[len(_begun(begun, (guard,))) :]:
        onward = [target for label, target in dfa.edges[state] if contains(label, ord(c))]
        if not onward:
            return False
        state = onward[0]
    return True


def string(rules: Rules, dfa: Dfa) -> list[str]:
    """String literals whose value ``dfa`` accepts, in both quotes where that is cheap."""
    ident = rules.ident(dfa)
    if ident not in rules.strings:
        if is_plain(rules, dfa) and not rules.notation.joins:
            inner = between_quotes(rules, dfa)
            rules.strings[ident] = [f"{literal(quote)} {text} {literal(quote)}" for quote, text in inner]
        else:
            quotes = quotes_of(rules, dfa)
            rules.strings[ident] = [f"{literal(quote)} {quoted(rules, dfa, quote)}" for quote in quotes]
    return rules.strings[ident]


def between_quotes(rules: Rules, dfa: Dfa, *, counted: bool = False) -> list[tuple[str, str]]:
    """Quotes, and for each the rule for what is between them: the same one where nothing is escaped."""
    plain = is_plain(rules, dfa)
    quotes = _QUOTES if plain else quotes_of(rules, dfa, counted=counted)
    return [(quote, quoted(rules, dfa, _QUOTES if plain else quote, closed=False)) for quote in quotes]


def quotes_of(rules: Rules, dfa: Dfa, *, counted: bool = False) -> str:
    """The quotes in which a string is written.  Without a counter, states that can go on with themselves are cheap,
    however broad they are."""
    broad = {
        future
        for future, state, edges in zip(rules.futures(dfa), range(len(dfa.edges)), dfa.edges)
        if any(_is_broad(label) and (counted or not dfa.includes(target, state)) for label, target in edges)
    }
    return _QUOTES if rules.admits_both_quotes(broad) else '"'


def _is_broad(label: CharSet) -> bool:
    """Whether a state from which all of ``label`` is possible has an expensive token mask."""
    return any(high - low > _BROAD for low, high in label)


def _shared_class(rules: Rules, label: CharSet) -> str:
    """The expression for one character of ``label``, as a rule whose mask is compiled once for all places.

    Each place then tries the tokens that are longer: 30 to 60 ms of a mask, instead of 20 ms of compiling for each.
    The two rules are one to whoever reads the grammar, but xgrammar would put a single class in its place again.
    """
    ascii_, rest = intersection(label, _ASCII), without(label, _ASCII)
    return rules.one_of(*(rules.one_of(text) for text in map(char_class, (ascii_, rest)) if text))


def _escapes(rules: Rules, label: CharSet, guarded: str) -> list[str]:
    """The escapes for characters of ``label``; those of ``guarded`` have no raw form."""
    if label == ALL:
        return [rules.one_of(any_escape())]
    short = _short_escapes(label)
    return ([short] if short else []) + [literal(f"\\u{ord(c):04x}") for c in guarded]


@lru_cache(maxsize=4096)
def _short_escapes(label: CharSet) -> str:
    letters = "".join(letter for letter, value in _SHORT_ESCAPES.items() if contains(label, ord(value)))
    return f'"\\\\" {char_class(chars(letters))}' if letters else ""


def any_escape() -> str:
    """Escapes that JSON and Python read alike, and an escaped apostrophe.  Surrogates come in pairs.

    A slash is not escaped: in Python both characters would stay.
    """
    digit = "[0-9a-fA-F]"
    return (
        f'"\\\\" ({char_class(chars("".join(_SHORT_ESCAPES)))}'
        f' | "u" ([0-9a-cA-Ce-fE-F] {digit} {digit} {digit} | [dD] [0-7] {digit} {digit}'
        f' | [dD] [89abAB] {digit} {digit} "\\\\u" [dD] [c-fC-F] {digit} {digit}))'
    )


def unquoted(rules: Rules, dfa: Dfa, end: str) -> str:
    """The rule for text that ``dfa`` accepts, written as it is, and then ``end`` (may be empty)."""
    named = [rules.reserve(("unquoted", future, end)) for future in rules.futures(dfa)]
    for state, (name, new) in enumerate(named):
        if new:
            alternatives = [literal(end)] if dfa.accepting[state] else []
            redundant = []
            for label, target in dfa.edges[state]:
                if written := char_class(label):
                    alternatives.append(f"{written} {named[target][0]}")
                    if target != state and (more := _redundant(dfa, state, target, label)):
                        redundant.append(f"{more} {name}")
            rules.define(name, alternatives, redundant=redundant)
    return named[0][0]


def constant_string(rules: Rules, value: str) -> str | None:
    """The literals of one string; None if it has none (a lone surrogate)."""
    if _PLAIN.fullmatch(value) and not any(guard in value for guard in rules.guards):
        return f'("\\u0022{value}\\u0022" | "\'{value}\'")'
    if any(0xD800 <= ord(c) <= 0xDFFF for c in value):
        return None
    double, single = (literal(_written(value, quote, rules.guards)) for quote in "\"'")
    return f"({double} | {single})"


def _written(value: str, quote: str, guards: tuple[str, ...]) -> str:
    text = [quote]
    for c in value:
        if c in "\"'":
            text.append("\\" + c if c == quote else c)
        elif c in _ESCAPES:
            text.append("\\" + _ESCAPES[c])
        elif ord(c) < 0x20 or c == "\x7f" or ("".join(text[-GUARD:]) + c).endswith(guards):
            text.append(f"\\u{ord(c):04x}")
        else:
            text.append(c)
    return "".join(text) + quote
