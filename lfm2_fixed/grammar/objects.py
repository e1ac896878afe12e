"""Objects, and a call's arguments: the members that are declared, and those that are not."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from ..core.cursor import is_name
from . import dfa as automata
from . import patterns
from .dfa import Dfa
from .here import Here
from .quotes import constant_string, string, unquoted
from .rules import SEPARATOR, literal
from .schema import Schema
from .work import MEMBER_STEPS, STRING_RULE_STEPS, NotRegular, TooLarge, Work

# Letters that Python's identifiers have, too, in the order of their code points: Latin, Greek, Cyrillic, kana,
# Chinese, Korean.  Names in other scripts are written through ``**{"…": …}``.
_LETTERS = (
    "\u00c0-\u00d6\u00d8-\u00f6\u00f8-\u024f\u0391-\u03a1\u03a3-\u03ff\u0430-\u044f"
    "\u3041-\u3096\u4e00-\u9fff\uac00-\ud7a3"
)
_WORD = f"A-Za-z0-9_{_LETTERS}"
NAME = f"[{_WORD}]([{_WORD}.:/-]*[{_WORD}])?"
"""Argument names that are written as they are (contract 5.1), as far as ``is_name`` takes them on every Python."""

_ANY_ORDER = 5
"""Up to so many members may come in any order: every set of those that are written is a rule, 2 to the power of
this.  More come in the declared order, in which models write them as a rule."""
_COUNTED = 64
"""Members that are counted one by one."""
_MOST_COUNTED = 2000
"""Counts times members: each is a rule."""
_MOST_PATTERNS = 16
"""Ways in which names can match the patterns: each is an automaton."""
_QUICK = 4
"""So many steps of taking names apart, by few and long classes, are one of others."""
_EXCLUDED = 96
"""Declared names are told from others by so many states at most, each of which takes 20 ms to compile."""


@dataclass
class Members:
    """What a schema's keywords say about an object."""

    parts: list[Mapping[str, Any]] = field(default_factory=list)
    """The schemas that describe members."""
    required: list[str] = field(default_factory=list)
    names: list[Schema] = field(default_factory=list)
    low: int = 0
    high: int | None = None


def members(obj: Members, part: Mapping[str, Any], here: Here) -> None:
    """``properties``, ``patternProperties`` and ``additionalProperties``, which belong together."""
    if not obj.parts or obj.parts[-1] is not part:  # its keywords are read one after the other
        obj.parts.append(part)


def required(obj: Members, part: Mapping[str, Any], here: Here) -> None:
    """``required``."""
    obj.required = list(dict.fromkeys([*obj.required, *part["required"]]))


def property_names(obj: Members, part: Mapping[str, Any], here: Here) -> None:
    """``propertyNames``."""
    if part["propertyNames"] not in (True, {}):
        obj.names.append(part["propertyNames"])


def min_properties(obj: Members, part: Mapping[str, Any], here: Here) -> None:
    """``minProperties``."""
    obj.low = max(obj.low, int(part["minProperties"]))


def max_properties(obj: Members, part: Mapping[str, Any], here: Here) -> None:
    """``maxProperties``."""
    high = int(part["maxProperties"])
    obj.high = high if obj.high is None else min(obj.high, high)


@dataclass(frozen=True)
class Names:
    """What ``propertyNames`` allows: an automaton, and the names where they are listed."""

    dfa: Dfa
    listed: list[str] | None = None


class Writer:
    """Writes one object, or one call's arguments.

    Args:
        obj: what is said about it.
        names: what is said about its names; None: nothing.
        here: where it stands.
        arguments: ``name=value`` rather than ``"name": value``.
    """

    def __init__(self, obj: Members, names: Names | None, here: Here, *, arguments: bool) -> None:
        self._obj = obj
        self._names = names
        self._here = here
        self._rules = here.rules
        self._arguments = arguments
        keys = dict.fromkeys(k for part in obj.parts for k in part.get("properties", {}))
        self._keys = list(dict.fromkeys([*keys, *obj.required]))
        # Parts that say nothing about names they do not list are found by those names: there may be thousands.
        self._general: list[int] = []
        self._listing: dict[str, list[int]] = {}
        for at, part in enumerate(obj.parts):
            if "patternProperties" in part or "additionalProperties" in part:
                self._general.append(at)
            else:
                for key in part.get("properties", {}):
                    self._listing.setdefault(key, []).append(at)
        self._patterns: dict[str, Dfa | None] = {}
        for part in obj.parts:
            for pattern in part.get("patternProperties", {}):
                if pattern not in self._patterns:
                    self._patterns[pattern] = self._pattern(pattern)

    def _pattern(self, pattern: str) -> Dfa | None:
        """The names that ``pattern`` matches; None where it cannot be told, and nothing follows from it."""
        try:
            return patterns.search(self._here.work, pattern)
        except (NotRegular, TooLarge):
            self._here.relax("patternProperties")
            return None

    def write(self, closing: str) -> str | None:
        """The members and ``closing``; None if there are none that fit."""
        extras: list[str] = []
        keys = list(self._keys)
        if self._names is not None and self._names.listed is not None:
            keys += [key for key in self._names.listed if key not in keys and self._schemas(key) is not None]
        else:
            extras = self._extras(free=self._says_more() or (not self._arguments and not self._says_any()))
        found = self._members(keys, extras, closing)
        if found is None and not extras and not self._says_more() and not self._obj.names:
            # Nothing but members that are not declared can satisfy this, and the schema does not forbid them.
            found = self._members(keys, self._extras(free=True), closing)
        return found

    def _says_more(self) -> bool:
        return any("additionalProperties" in part for part in self._obj.parts)

    def _says_any(self) -> bool:
        """Whether any member is described.  ``"properties": {}`` describes none: Go's libraries write it for every
        object that is free."""
        return any(part.get(word) for part in self._obj.parts for word in ("properties", "patternProperties"))

    def _members(self, keys: Sequence[str], extras: Sequence[str], closing: str) -> str | None:
        obj, rules = self._obj, self._rules
        self._here.work.charge(MEMBER_STEPS * len(keys))
        required = set(obj.required)
        entries: list[tuple[str, bool]] = []
        for key in keys:
            schemas = self._schemas(key)
            value = None if schemas is None else self._here.value(schemas, self._here.member(key))
            written = self._key(key)
            if value is None or written is None or (self._names is not None and not self._names.dfa.accepts(key)):
                if key in required:
                    return None
                continue
            entries.append((f"{written[0]} {value}{written[1]}", key in required))
        low, high = obj.low, obj.high
        must = sum(1 for _, needed in entries if needed)
        if high is not None and (high < must or high < low):
            return None
        if low <= must:
            low = 0
        if high is not None and not extras and high >= len(entries):
            high = None
        if low > len(entries) and not extras:
            return None
        cap = max(low, high if high is not None else 0)
        if cap > _COUNTED or cap * (len(entries) + 1) > _MOST_COUNTED:
            if low or high is None or high < 2 * _COUNTED:  # more members than that are not written
                self._here.relax("minProperties/maxProperties")
            low, high, cap = 0, None, 0
        if not cap and high is None and 1 < len(entries) <= _ANY_ORDER:
            return self._any_order(entries, extras, closing)
        extra = rules.one_of(*extras) if extras else None
        return self._declared_order(entries, extra, closing, low, high, cap)

    def _any_order(self, entries: Sequence[tuple[str, bool]], extras: Sequence[str], closing: str) -> str | None:
        rules = self._rules
        end = literal(closing)
        written = [rules.one_of(member) for member, _ in entries]
        # The blank behind a comma belongs to the member: it is a state in which a quarter of the vocabulary has to be
        # looked at, and there are fewer members than orders.
        spaced = [rules.one_of(f'" " {member}', member) for member in written]
        all_of_them = (1 << len(entries)) - 1
        needed = sum(1 << at for at, (_, must) in enumerate(entries) if must)
        extra = rules.one_of(*extras) if extras else None
        after: dict[int, str] = {}
        more = self._more(extra, end) if extra else end
        for done in range(all_of_them, -1, -1):  # what is a superset comes first
            alternatives = [
                f'"," {spaced[at]} {onward}' if done else f"{written[at]} {onward}"
                for at in range(len(entries))
                if not done >> at & 1 and (onward := after[done | 1 << at])
            ]
            if done & needed == needed:
                if done or not extra:
                    alternatives.insert(0, more)
                else:
                    alternatives += [end, f"{extra} {more}"]
            after[done] = rules.one_of(*alternatives)
        return after[0]

    def _more(self, extra: str, end: str) -> str:
        """The rule for more members that are not declared, each with a separator before it, and the end."""
        more, new = self._rules.reserve(("more", extra, end))
        if new:
            self._rules.define(more, [end, f"{SEPARATOR} {extra} {more}"])
        return more

    def _declared_order(
        self,
        entries: Sequence[tuple[str, bool]],
        extra: str | None,
        closing: str,
        low: int,
        high: int | None,
        cap: int,
    ) -> str | None:
        # Backwards, for c members written so far (counted up to ``cap``): whether the end may follow, and
        # the next member with all that follows it.
        rules = self._rules
        end = literal(closing)
        counts = range(cap + 1)
        ends = [c >= low for c in counts]
        first: list[str | None] = [None] * (cap + 1)

        def after(c: int) -> str | None:
            if first[c] is None:
                return end if ends[c] else None
            return rules.one_of(*([end] if ends[c] else []), f"{SEPARATOR} {first[c]}")

        if extra is not None:
            if high is None:
                first[cap] = f"{extra} {self._more(extra, end)}"
            for c in reversed(range(cap)):
                if (onward := after(c + 1)) is not None:
                    first[c] = f"{extra} {onward}"
        for member, needed in reversed(entries):
            nexts: list[str | None] = []
            for c in counts:
                onward = None if high is not None and c == high else after(min(c + 1, cap))
                options = [f"{member} {onward}"] if onward is not None else []
                if not needed and first[c] is not None:
                    options.append(str(first[c]))
                nexts.append(rules.one_of(*options) if options else None)
            ends = [yes and not needed for yes in ends]
            first = nexts
        start = [*([end] if ends[0] else []), *([first[0]] if first[0] is not None else [])]
        return rules.one_of(*start) if start else None

    def _key(self, key: str) -> tuple[str, str] | None:
        """What is written before and after the value of the member ``key``."""
        if self._arguments and is_name(key):
            return literal(key + "="), ""
        text = constant_string(self._rules, key)
        if text is None:
            return None
        return (f'"**{{" {text} ":" " "?', ' "}"') if self._arguments else (f'{text} ":" " "?', "")

    def _schemas(self, key: str) -> list[Schema] | None:
        """What holds for the member ``key``; None if it may not be there."""
        found: list[Schema] = []
        for at in sorted([*self._listing.get(key, ()), *self._general]):
            part = self._obj.parts[at]
            here: list[Schema] = []
            unknown = False
            if key in part.get("properties", {}):
                here.append(part["properties"][key])
            for pattern, schema in part.get("patternProperties", {}).items():
                matching = self._patterns[pattern]
                if matching is None:
                    unknown = True  # reported when the pattern was read
                elif matching.accepts(key):
                    here.append(schema)
            if not here and not unknown and "additionalProperties" in part:
                here.append(part["additionalProperties"])
            found += here
        return None if any(schema is False for schema in found) else found

    # Members that are not declared.

    def _extras(self, *, free: bool) -> list[str]:
        """The alternatives for a member whose name is not declared.

        ``free``: such members are written although no pattern asks for them.
        """
        known = {pattern: dfa for pattern, dfa in self._patterns.items() if dfa is not None}
        unknown = len(known) < len(self._patterns)
        if not free and not self._patterns:
            return []
        if not known and self._region((), free=free, unknown=unknown) is None:
            return []  # as most objects say; to tell the declared names from others would be half of the work
        regions: list[tuple[Dfa, tuple[str, ...]]] = [(self._undeclared(), ())]
        for pattern, matching in known.items():
            try:
                regions = [
                    (names, chosen)
                    for region, before in regions
                    for names, chosen in (
                        (automata.both(self._here.work, region, matching), (*before, pattern)),
                        (automata.but_not(self._here.work, region, matching), before),
                    )
                    if not names.empty
                ]
                if len(regions) > _MOST_PATTERNS:
                    raise TooLarge("too many patterns")
            except TooLarge:
                self._here.relax("patternProperties")
                unknown = True
        found: list[str] = []
        for names, chosen in regions:
            schemas = self._region(chosen, free=free, unknown=unknown)
            value = None if schemas is None else self._here.value(schemas, self._here.member("*"))
            if value is not None:
                size = self._rules.size
                found += self._extra(names, value)
                self._here.work.charge_keyword(STRING_RULE_STEPS * (self._rules.size - size))
        return found

    def _region(self, chosen: tuple[str, ...], *, free: bool, unknown: bool) -> list[Schema] | None:
        """What holds for names that match the patterns ``chosen``; None: there are none."""
        if not chosen and not free and not unknown:
            return None
        schemas: list[Schema] = []
        for part in self._obj.parts:
            of_part = part.get("patternProperties", {})
            matched = [of_part[pattern] for pattern in chosen if pattern in of_part]
            if not matched and "additionalProperties" in part and not (unknown and of_part):
                matched = [part["additionalProperties"]]
            schemas += matched
        return None if any(schema is False for schema in schemas) else schemas

    def _undeclared(self) -> Dfa:
        """The names that may be written and are not declared.  Those of arguments are never empty."""
        work = self._here.work
        try:
            if self._names is None:
                never = [*([""] if self._arguments else []), *self._keys]
                return automata.none_of(work, never, _EXCLUDED) if never else automata.ANY
            if not self._keys:
                return self._names.dfa
            declared = automata.one_of(work, self._keys)
            if len(declared.edges) > _EXCLUDED:
                raise TooLarge("too many names")
            return automata.but_not(work, self._names.dfa, declared)
        except TooLarge:
            self._here.relax("additionalProperties (declared names may be written as others)")
            return automata.ANY if self._names is None else self._names.dfa

    def _extra(self, names: Dfa, value: str) -> list[str]:
        rules, work = self._rules, self._here.work
        if names.empty:
            return []
        if not self._arguments:
            return [f'{rules.one_of(*string(rules, names))} ":" " "? {value}']
        found: list[str] = []
        plain = patterns.match(NAME)
        try:
            written, others = work.once(("names", names), lambda inner: _split(inner, names, plain), _QUICK)
        except TooLarge:
            self._here.relax("the names of undeclared arguments")
            written, others = plain, names
        if not written.empty:
            found.append(f"{unquoted(rules, written, '=')} {value}")
        if not others.empty:
            found += [f'"**{{" {key} ":" " "? {value} "}}"' for key in string(rules, others)]
        return found


def _split(work: Work, names: Dfa, plain: Dfa) -> tuple[Dfa, Dfa]:
    """The names that are written as they are, and the others."""
    return automata.both(work, names, plain), automata.but_not(work, names, plain)
