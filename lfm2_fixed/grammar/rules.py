"""JSON Schema to grammar rules: what a model may write for a call's arguments, in xgrammar's EBNF.

The text is Python's (and the parser's): ``f(city="Oslo", days=3, opts={"wind": True})``.  Every
rule is written so that the token masks stay cheap: repetition is tail recursion, and a rule of
unknown length contains what ends it.

What a schema says and a grammar cannot is left out there and reported; what is generated is then a
superset of the schema at that place alone.  Choices go the other way: a type that is not stated but
implied by other keywords is taken as stated, and properties that are not declared are written only
where ``additionalProperties`` allows them explicitly or the schema declares no property at all.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import Any, Union

from ..core.cursor import is_name
from . import automata
from .automata import ALL, CharSet, Dfa, NotRegular, TooLarge

Schema = Union[bool, Mapping[str, Any]]
Report = Callable[[str, str], None]
"""Called with the place in the schema and the keyword that is not enforced there."""

SEPARATOR = '"," " "?'

_TYPES = frozenset({"object", "array", "string", "number", "integer", "boolean", "null"})
_BOOLEAN = '("True" | "False" | "true" | "false")'
_NULL = '("None" | "null")'
# Digits are bounded: what is longer has no use, and numbers stay finite and of a length that every reader takes.
_INTEGER = '("0" | "-"? [1-9] [0-9]{0,18})'
_NUMBER = '"-"? ("0" | [1-9] [0-9]{0,18}) ("." [0-9]{1,18})? ([eE] [+\\-]? [0-9]{1,2})?'
_FAR = Decimal(10**12)
_DIGITS = 15
"""Decimals of so many digits keep their order as floats, so a limit holds for the value as well as for the text."""

_CHAIN = 48
"""Up to here a length limit is counted by the rules themselves; see :meth:`Values._string`."""
_COUNTED = 64
"""Array items and object members that are counted one by one."""
_BROAD = 1000
"""A state that takes more different characters than this has an expensive token mask."""
_MAX_BRANCHES = 128
_MAX_DEPTH = 100

_SHORT_ESCAPES = {"n": "\n", "r": "\r", "t": "\t", "b": "\b", "f": "\f", "\\": "\\", '"': '"', "'": "'"}
_ESCAPES = {value: letter for letter, value in _SHORT_ESCAPES.items()}
_CONTROLS = automata.charset([(0, 0x1F), (0x7F, 0x7F)])
_LESS, _BAR = automata.chars("<"), automata.chars("|")

_FORMATS = {
    "date": r"(\d{4}-((0[13578]|1[02])-(0[1-9]|[12]\d|3[01])|(0[469]|11)-(0[1-9]|[12]\d|30)|02-(0[1-9]|1\d|2[0-8]))"
    r"|(\d\d(0[48]|[2468][048]|[13579][26])|([02468][048]|[13579][26])00)-02-29)",
    "time": r"([01]\d|2[0-3]):[0-5]\d:[0-5]\d(\.\d{1,9})?(Z|[+-]([01]\d|2[0-3]):[0-5]\d)",
    "email": r"[A-Za-z0-9_+-]+(\.[A-Za-z0-9_+-]+)*@[A-Za-z0-9]+(-+[A-Za-z0-9]+)*(\.[A-Za-z0-9]+(-+[A-Za-z0-9]+)*)+",
    "hostname": r"[A-Za-z0-9]+(-+[A-Za-z0-9]+)*(\.[A-Za-z0-9]+(-+[A-Za-z0-9]+)*)*",
    "uuid": r"[0-9a-fA-F]{8}-[0-9a-fA-F]{4}-[0-9a-fA-F]{4}-[0-9a-fA-F]{4}-[0-9a-fA-F]{12}",
    "ipv4": r"((25[0-5]|2[0-4]\d|1\d\d|[1-9]?\d)\.){3}(25[0-5]|2[0-4]\d|1\d\d|[1-9]?\d)",
    "uri": r"[A-Za-z][A-Za-z0-9+.-]*:(//)?[A-Za-z0-9._~:/?#@!$&()*+,;=%-]+",
    "duration": r"P(\d+W|(\d+Y(\d+M)?(\d+D)?|\d+M(\d+D)?|\d+D)(T(\d+H(\d+M)?(\d+S)?|\d+M(\d+S)?|\d+S))?"
    r"|T(\d+H(\d+M)?(\d+S)?|\d+M(\d+S)?|\d+S))",
}
_FORMATS["date-time"] = f"({_FORMATS['date']})T{_FORMATS['time']}"

# Keywords that no grammar rule expresses, and that limit something where they stand.
_NOT_EXPRESSED = (
    "not", "if", "dependentRequired", "dependentSchemas", "dependencies", "contains", "unevaluatedItems",
    "unevaluatedProperties", "$dynamicRef", "$recursiveRef",
)  # fmt: skip


class SchemaError(ValueError):
    """A tool's ``parameters`` that are no JSON Schema of an object.  The message says where and why."""


# --- rules ----------------------------------------------------------------------------------------


class Rules:
    """Grammar rules under construction; equal rules are written once."""

    def __init__(self) -> None:
        self._bodies: dict[str, str] = {}
        self._names: dict[object, str] = {}
        self._attributes: dict[str, str] = {}
        self.impossible: set[str] = set()
        """Rules that nothing satisfies; only a value that contains itself can still refer to one."""

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
    ) -> None:
        """Give a rule its alternatives.

        ``max_chars`` bounds its text, as far as it can end there.  ``followed_by`` says what follows it anyway:
        that decides about most tokens that reach beyond the rule when the masks are compiled.
        """
        body = " | ".join(dict.fromkeys(alternatives))
        self._bodies[name] = f"({body}) (={followed_by})" if followed_by else body
        if max_chars is not None:
            self._attributes[name] = f"[max_chars={max_chars}]"

    def one_of(self, *alternatives: str) -> str:
        """A rule that is one of ``alternatives``."""
        name, new = self.reserve(alternatives)
        if new:
            self.define(name, alternatives)
        return name

    def text(self, root: str) -> str:
        """The grammar, beginning at the expression ``root``."""
        rules = (f"{name}{self._attributes.get(name, '')} ::= {body}" for name, body in self._bodies.items())
        return "\n".join([f"root ::= {root}", *rules, ""])


def literal(text: str) -> str:
    """The EBNF expression for exactly ``text``."""
    return '"' + "".join(c if c.isascii() and c.isprintable() and c not in '"\\' else _code(ord(c)) for c in text) + '"'


def char_class(label: CharSet) -> str:
    """The EBNF expression for one character of ``label``."""
    return "[" + "".join(_code(low) if low == high else f"{_code(low)}-{_code(high)}" for low, high in label) + "]"


def _code(code: int) -> str:
    if 48 <= code <= 57 or 65 <= code <= 90 or 97 <= code <= 122:
        return chr(code)
    return f"\\u{code:04x}" if code < 0x10000 else f"\\U{code:08x}"


# --- strings, names and numbers as rules ----------------------------------------------------------


def quoted(rules: Rules, dfa: Dfa, quote: str, *, closed: bool = True) -> str:
    """The rule for what follows the opening quote of a string literal whose value ``dfa`` accepts.

    ``closed``: with the closing quote, which makes for cheaper masks than a quote after the rule.

    Raw control characters are left out (the readers of such text disagree about them), and so is
    ``<|``: special tokens are legal inside a structural tag, and an end sentinel ends a block even
    inside a string.  Both can be written with an escape.
    """
    bars = [any(automata.contains(label, ord("|")) for label, _ in edges) for edges in dfa.edges]
    todo: list[tuple[str, int, bool]] = []

    def rule(state: int, after_less: bool) -> str:
        after_less = after_less and bars[state]
        name, new = rules.reserve(("quoted", dfa, quote, closed, state, after_less))
        if new:
            todo.append((name, state, after_less))
        return name

    start = rule(0, False)
    never_raw = automata.union(_CONTROLS, automata.chars(quote + "\\"))
    for name, state, after_less in todo:
        alternatives = [literal(quote if closed else "")] if dfa.accepting[state] else []
        for label, target in dfa.edges[state]:
            onward, less = rule(target, False), rule(target, True)
            raw = automata.without(label, never_raw)
            if less != onward and automata.contains(raw, ord("<")):
                raw = automata.without(raw, _LESS)
                alternatives.append(f'"<" {less}')
            if after_less:
                raw = automata.without(raw, _BAR)
            if raw:
                alternatives.append(f"{char_class(raw)} {onward}")
            alternatives += [f"{escape} {onward}" for escape in _escapes(rules, label, bar=after_less)]
        rules.define(name, alternatives, followed_by="[,)\\]}:]" if closed else None)
    return start


def string(rules: Rules, dfa: Dfa) -> list[str]:
    """String literals whose value ``dfa`` accepts, in both quotes where that is cheap."""
    return [f"{literal(quote)} {quoted(rules, dfa, quote)}" for quote in _quotes(dfa)]


def _quotes(dfa: Dfa) -> str:
    broad = sum(any(high - low > _BROAD for label, _ in edges for low, high in label) for edges in dfa.edges)
    return "\"'" if broad <= 1 else '"'


def _escapes(rules: Rules, label: CharSet, *, bar: bool) -> list[str]:
    if label == ALL:
        return [rules.one_of(_any_escape())]
    letters = "".join(letter for letter, value in _SHORT_ESCAPES.items() if automata.contains(label, ord(value)))
    found = [f'"\\\\" {char_class(automata.chars(letters))}'] if letters else []
    if bar and automata.contains(label, ord("|")):
        found.append(literal("\\u007c"))
    return found


def _any_escape() -> str:
    """Escapes that JSON and Python read alike, and an escaped apostrophe.  Surrogates come in pairs.

    A slash is not escaped: in Python both characters would stay.
    """
    digit = "[0-9a-fA-F]"
    return (
        f'"\\\\" ({char_class(automata.chars("".join(_SHORT_ESCAPES)))}'
        f' | "u" ([0-9a-cA-Ce-fE-F] {digit} {digit} {digit} | [dD] [0-7] {digit} {digit}'
        f' | [dD] [89abAB] {digit} {digit} "\\\\u" [dD] [c-fC-F] {digit} {digit}))'
    )


def unquoted(rules: Rules, dfa: Dfa, end: str) -> str:
    """The rule for text that ``dfa`` accepts, written as it is, and then ``end`` (may be empty)."""
    named = [rules.reserve(("unquoted", dfa, end, state)) for state in range(len(dfa.edges))]
    for state, (name, new) in enumerate(named):
        if new:
            alternatives = [literal(end)] if dfa.accepting[state] else []
            alternatives += [f"{char_class(label)} {named[target][0]}" for label, target in dfa.edges[state]]
            rules.define(name, alternatives)
    return named[0][0]


def constant_string(value: str) -> str | None:
    """The literals of one string; None if it has none (a lone surrogate)."""
    if any(0xD800 <= ord(c) <= 0xDFFF for c in value):
        return None
    return f"({literal(_written(value, chr(34)))} | {literal(_written(value, chr(39)))})"


def _written(value: str, quote: str) -> str:
    text = [quote]
    for c in value:
        if c in "\"'":
            text.append("\\" + c if c == quote else c)
        elif c in _ESCAPES:
            text.append("\\" + _ESCAPES[c])
        elif ord(c) < 0x20 or c == "\x7f" or (c == "|" and text[-1] == "<"):
            text.append(f"\\u{ord(c):04x}")
        else:
            text.append(c)
    return "".join(text) + quote


def _constant(value: Any) -> str | None:
    """The literals of one JSON value; None if there are none."""
    if value is None:
        return _NULL
    if value is True or value is False:
        return f'("{value}" | "{str(value).lower()}")'
    if isinstance(value, str):
        return constant_string(value)
    if isinstance(value, int):
        return literal(str(value)) if abs(value) < 10**300 else None
    if isinstance(value, float):
        return literal(repr(value)) if math.isfinite(value) else None
    if isinstance(value, Mapping):
        members = [(constant_string(str(key)), _constant(member)) for key, member in value.items()]
        pieces = [f'{key} ":" " "? {member}' for key, member in members if key and member]
    else:
        pieces = [item for item in map(_constant, value) if item]
    if len(pieces) < len(value):
        return None
    opening, closing = "{}" if isinstance(value, Mapping) else "[]"
    return f'("{opening}" {f" {SEPARATOR} ".join(pieces)} "{closing}")'


# --- numeric limits -------------------------------------------------------------------------------


@dataclass(frozen=True)
class _Limits:
    """Inclusive or exclusive decimal limits."""

    low: Decimal | None = None
    low_open: bool = False
    high: Decimal | None = None
    high_open: bool = False

    def allow(self, value: Any) -> bool:
        number = Decimal(repr(value))
        return not (
            (self.low is not None and (number < self.low or (self.low_open and number == self.low)))
            or (self.high is not None and (number > self.high or (self.high_open and number == self.high)))
        )


def _range(limits: _Limits, *, integer: bool) -> Dfa:
    """The texts of the numbers within ``limits``, without exponents.

    Raises:
        TooLarge: a limit that needs more digits than are written.
    """
    low, high, low_open, high_open = limits.low, limits.high, limits.low_open, limits.high_open
    if integer:
        if low is not None:
            low = Decimal(math.floor(low) + 1 if low_open else math.ceil(low))
        if high is not None:
            high = Decimal(math.ceil(high) - 1 if high_open else math.floor(high))
        low_open = high_open = False
    else:  # what is written is far from limits that are far from zero
        if low is not None and low < -_FAR:
            low, low_open = -_FAR, False
        if high is not None and high > _FAR:
            high, high_open = _FAR, False
    bounds = [_digits(bound) for bound in (low, high) if bound is not None]
    whole = max([len(digits) for digits, _ in bounds], default=1) + 1
    decimals = 0 if integer else max([len(digits) for _, digits in bounds], default=0)
    if integer:
        whole = max(19, whole)
        if whole > 300:
            raise TooLarge("a limit of too many digits")
    elif whole + decimals > _DIGITS:
        raise TooLarge("a limit of too many digits")
    else:
        decimals = max(decimals, min(6, _DIGITS - whole))
        whole = max(whole, min(9, _DIGITS - decimals))
    every = rf"(0|[1-9]\d{{0,{whole - 1}}})" + (rf"(\.\d{{1,{decimals}}})?" if decimals else "")
    dfa = automata.match(rf"0|-?[1-9]\d{{0,{whole - 1}}}" if integer else f"-?{every}")
    for bound, at_least, is_open in ((low, True, low_open), (high, False, high_open)):
        if bound is None:
            continue
        same, other = ("", "-") if at_least else ("-", "")  # the sign on the bound's far side, and towards zero
        if (bound > 0 if at_least else bound < 0) or (bound == 0 and is_open):
            pattern = f"{same}({_magnitude(abs(bound), True, is_open, whole, decimals)})"
        else:
            pattern = f"{same}{every}|{other}({_magnitude(abs(bound), False, is_open, whole, decimals)})"
        dfa = automata.both(dfa, automata.match(pattern))
    return dfa


def _digits(number: Decimal) -> tuple[str, str]:
    whole, _, decimals = f"{abs(number):f}".partition(".")
    return whole, decimals.rstrip("0")


def _magnitude(bound: Decimal, at_least: bool, is_open: bool, whole: int, decimals: int) -> str:
    """A pattern of the unsigned decimals on one side of ``bound``."""
    number, fraction = _digits(bound)
    rest = rf"(\.\d{{1,{decimals}}})?" if decimals else ""
    found = []
    n = len(number)
    if at_least:
        if whole > n:
            found.append(rf"[1-9]\d{{{n},{whole - 1}}}{rest}")
    else:
        if n > 1:
            found.append(rf"(0|[1-9]\d{{0,{n - 2}}}){rest}")
    for at, digit in enumerate(number):
        first = 1 if at == 0 and n > 1 else 0
        low, high = (int(digit) + 1, 9) if at_least else (first, int(digit) - 1)
        if low <= high:
            found.append(rf"{number[:at]}[{low}-{high}]\d{{{n - at - 1}}}{rest}")
    equal = _fraction(fraction, at_least, is_open, decimals)
    if equal is not None:
        found.append(number + equal)
    return "|".join(found) if found else r"[^\d\D]"


def _fraction(fraction: str, at_least: bool, is_open: bool, decimals: int) -> str | None:
    """What follows the whole digits where these equal the bound's; None: nothing can."""
    if not decimals:
        return None if is_open else ""
    zeros = rf"(\.0{{1,{decimals}}})?"
    if at_least:
        if not fraction:
            return rf"(\.\d{{1,{decimals}}})?" if not is_open else _not_zero(r"\.", decimals)
        found = [
            rf"\.{fraction[:at]}[{int(d) + 1}-9]\d{{0,{decimals - at - 1}}}"
            for at, d in enumerate(fraction)
            if d != "9"
        ]
        left = decimals - len(fraction)
        if is_open:
            if left:
                found.append(_not_zero(rf"\.{fraction}", left))
        else:
            found.append(rf"\.{fraction}\d{{0,{left}}}")
        return f"({'|'.join(found)})" if found else None
    if not fraction:
        return None if is_open else zeros
    found = [""]
    for at, d in enumerate(fraction):
        if at:
            found.append(rf"\.{fraction[:at]}")
        if d != "0":
            found.append(rf"\.{fraction[:at]}[0-{int(d) - 1}]\d{{0,{decimals - at - 1}}}")
    if not is_open:
        found.append(rf"\.{fraction}0{{0,{decimals - len(fraction)}}}")
    return f"({'|'.join(found)})"


def _not_zero(before: str, decimals: int) -> str:
    return "(" + "|".join(rf"{before}0{{{n}}}[1-9]\d{{0,{decimals - n - 1}}}" for n in range(decimals)) + ")"


def _multiples(factor: int) -> Dfa:
    """The texts of the integers that ``factor`` divides."""
    edges: list[list[tuple[CharSet, int]]] = [[(automata.chars("-"), 1)], []]
    for remainder in range(factor):
        edges.append([(automata.chars(str(d)), 2 + (10 * remainder + d) % factor) for d in range(10)])
    for start in (0, 1):
        edges[start] += [(automata.chars(str(d)), 2 + d % factor) for d in range(10)]
    return Dfa(tuple(map(tuple, edges)), (False, False, True, *[False] * (factor - 1)))


# --- schemas --------------------------------------------------------------------------------------


class Values:
    """Rules for the values of one root schema.

    Args:
        rules: where the rules go; shared by all tools.
        root: the schema that local references start from.
        report: told what is not enforced, see :data:`Report`.
        max_chars: whether this xgrammar can bound a rule's text by a counter.

    Raises:
        SchemaError: from the constructor, if ``root`` is no JSON Schema.
    """

    def __init__(self, rules: Rules, root: Schema, report: Report, *, max_chars: bool) -> None:
        self._rules = rules
        self._root = root
        self._report = report
        self._max_chars = max_chars
        self._text = json.dumps(root)
        self._has_references = '"$ref"' in self._text
        self._depth = 0
        check(root, root, "parameters")

    # Conjunctions.  A value is described by several schemas at once (allOf, references with siblings,
    # properties declared twice), so everything below takes a sequence of schemas that all hold.

    def value(self, schemas: Sequence[Schema], place: str) -> str | None:
        """The expression for a value that satisfies all ``schemas``; None if there is none."""
        schemas = [schema for schema in schemas if schema is not True and schema != {}]
        if not schemas:
            return self.anything()
        key = ("value", self._text if self._has_references else "", json.dumps(schemas), self._max_chars)
        name, new = self._rules.reserve(key)
        if new:
            self._depth += 1
            try:
                if self._depth > _MAX_DEPTH:
                    self._report(place, "nesting")
                    alternatives = [self.anything()]
                else:
                    alternatives = self._alternatives(schemas, place)
            finally:
                self._depth -= 1
            if not alternatives:
                self._rules.impossible.add(name)
            self._rules.define(name, alternatives or [literal("\0")])
        return None if name in self._rules.impossible else name

    def anything(self) -> str:
        """Any literal."""
        rules = self._rules
        value, new = rules.reserve("anything")
        if new:
            items, _ = rules.reserve("items of anything")
            members, _ = rules.reserve("members of anything")
            keys = rules.one_of(*string(rules, automata.of_length(1, None)))
            member = f'{keys} ":" " "? {value}'
            rules.define(items, ['"]"', f"{SEPARATOR} {value} {items}"])
            rules.define(members, ['"}"', f"{SEPARATOR} {member} {members}"])
            rules.define(value, [
                *string(rules, automata.any_string()), _NUMBER, _BOOLEAN, _NULL,
                f'"[" ("]" | {value} {items})', f'"{{" ("}}" | {member} {members})',
            ])  # fmt: skip
        return value

    def arguments(self, place: str) -> str | None:
        """A call's arguments and its closing parenthesis; None if nothing satisfies the schema."""
        found: list[str] = []
        for parts in self._branches([self._root], place):
            types = _types(parts)
            if types is not None and "object" not in types:
                continue
            members = self._members(parts, place, ")", arguments=True)
            if members is not None:
                found.append(members)
        return self._rules.one_of(*found) if found else None

    def describes_object(self) -> bool:
        """Whether the root schema's types allow an object at all."""
        types = [_types(parts) for parts in self._branches([self._root], "")]
        return any(kinds is None or "object" in kinds for kinds in types)

    def _branches(self, schemas: Sequence[Schema], place: str) -> list[list[Mapping[str, Any]]]:
        """The ways to satisfy ``schemas``, each a conjunction of schemas without references and unions."""
        found: list[list[Mapping[str, Any]]] = []

        def expand(todo: list[Schema], parts: list[Mapping[str, Any]], unions: list[Any], seen: frozenset[str]) -> None:
            todo = list(todo)
            parts = list(parts)
            unions = list(unions)
            while todo:
                schema = todo.pop(0)
                if schema is True:
                    continue
                if schema is False:
                    return
                assert isinstance(schema, Mapping)
                reference = schema.get("$ref")
                if reference is not None and reference not in seen:
                    seen |= {reference}
                    target = resolve(self._root, reference)
                    if target is None:
                        self._report(place, "$ref")
                    else:
                        todo.append(target)
                todo += schema.get("allOf", ())
                for keyword in ("anyOf", "oneOf"):
                    if keyword in schema:
                        unions.append(schema[keyword])
                        if keyword == "oneOf" and not self._disjoint(schema[keyword]):
                            self._report(place, "oneOf (more than one branch may hold)")
                for keyword in _NOT_EXPRESSED:
                    if keyword in schema and schema[keyword] is not True:
                        self._report(place, keyword)
                parts.append({k: v for k, v in schema.items() if k not in ("$ref", "allOf", "anyOf", "oneOf", "$defs")})
            if not unions:
                if len(found) >= _MAX_BRANCHES:
                    raise TooLarge("too many branches")
                found.append(parts)
                return
            for branch in unions[0]:
                if isinstance(branch, Mapping) and branch.get("$ref") in seen:
                    continue  # a union that contains itself: nothing new
                expand([branch], parts, unions[1:], seen)

        expand(list(schemas), [], [], frozenset())
        return found

    def _disjoint(self, branches: Sequence[Schema]) -> bool:
        """Whether it is certain that no value satisfies two of ``branches``."""
        kinds = [self._kind(branch) for branch in branches]
        if any(kind is None for kind in kinds):
            return False
        known = [kind for kind in kinds if kind is not None]
        return all(a.isdisjoint(b) for at, a in enumerate(known) for b in known[:at])

    def _kind(self, schema: Schema) -> set[str] | None:
        """A set of marks such that schemas with disjoint sets have no value in common."""
        if isinstance(schema, Mapping) and "$ref" in schema:
            schema = resolve(self._root, schema["$ref"]) or True
        if not isinstance(schema, Mapping):
            return None
        values = [schema["const"]] if "const" in schema else schema.get("enum")
        if values is not None:
            return {f"={json.dumps(value)}" for value in values} if all(isinstance(v, str) for v in values) else None
        types = _types([schema])
        if types is None:
            return None
        if types == {"object"}:
            for key in schema.get("required", ()):
                member = schema.get("properties", {}).get(key)
                if isinstance(member, Mapping) and ("const" in member or "enum" in member):
                    marks = self._kind(member)
                    return marks and {f"{key}{mark}" for mark in marks}
        return {"number" if kind == "integer" else kind for kind in types}

    def _alternatives(self, schemas: Sequence[Schema], place: str) -> list[str]:
        try:
            branches = self._branches(schemas, place)
        except TooLarge:
            self._report(place, "anyOf")
            return [self.anything()]
        return [alternative for parts in branches for alternative in self._branch(parts, place)]

    def _branch(self, parts: Sequence[Mapping[str, Any]], place: str) -> list[str]:
        """The alternatives for a value that satisfies all ``parts``."""
        types = _types(parts)
        values = [part["enum"] for part in parts if "enum" in part] + [
            [part["const"]] for part in parts if "const" in part
        ]
        if values:
            common = [value for value in values[0] if all(_among(value, others) for others in values[1:])]
            allowed = [value for value in common if self._allowed(value, types, parts, place)]
            return [text for text in map(_constant, allowed) if text is not None]
        if types is None:
            types = _implied(parts)
            if types is None:
                return [self.anything()]
        found: list[str | None] = []
        if "string" in types:
            found += self._string(parts, place)
        if "number" in types or "integer" in types:
            found.append(self._number(parts, place, integer="number" not in types))
        if "boolean" in types:
            found.append(_BOOLEAN)
        if "null" in types:
            found.append(_NULL)
        if "array" in types:
            found.append(self._array(parts, place))
        if "object" in types:
            members = self._members(parts, place, "}", arguments=False)
            found.append(members and f'"{{" {members}')
        return [text for text in found if text]

    def _allowed(
        self, value: Any, types: frozenset[str] | None, parts: Sequence[Mapping[str, Any]], place: str
    ) -> bool:
        kind = _type_of(value)
        if types is not None and kind not in types and not (kind == "integer" and "number" in types):
            whole = isinstance(value, float) and value.is_integer()
            if not (whole and "integer" in types):
                return False
        if kind == "string":
            return self._text_dfa(parts, place).accepts(value) and _length_fits(len(value), parts)
        if kind in ("number", "integer"):
            return _limits(parts).allow(value)
        return True

    # One kind of value each.

    def _string(self, parts: Sequence[Mapping[str, Any]], place: str) -> list[str | None]:
        """String literals.

        A limit of up to ``_CHAIN`` characters is counted by the rules (each count is a state with a
        token mask of its own: quick to use, slow to compile); a longer one by xgrammar's counter
        where it has one.
        """
        rules = self._rules
        base = self._text_dfa(parts, place)
        low = max([int(part["minLength"]) for part in parts if "minLength" in part], default=0)
        high = min([int(part["maxLength"]) for part in parts if "maxLength" in part], default=None)  # type: ignore[type-var]
        if high is not None and (high < low or base.empty):
            return []
        dfa, counter = base, None
        try:
            if high is not None and high > _CHAIN and self._max_chars and all(base.accepting) and low <= _CHAIN:
                # The counter sees the text with its escapes: never less than the value.  It yields where the
                # text cannot end, hence ``all(base.accepting)``; inside an escape that does no harm.
                dfa, counter = automata.both(base, automata.of_length(low, None)), high
            elif base is automata.any_string() and max(low, high or 0) > _CHAIN:
                return [_repeated_class(low, high)]
            elif low or high is not None:
                dfa = automata.both(base, automata.of_length(low, high))
        except TooLarge:
            self._report(place, "minLength/maxLength")
        if dfa.empty:
            return []
        if counter is None:
            return list(string(rules, dfa))
        found: list[str | None] = []
        for quote in _quotes(dfa):
            text = quoted(rules, dfa, quote, closed=False)
            name, new = rules.reserve(("counted", text, counter))
            if new:
                rules.define(name, [text], max_chars=counter)
            found.append(f"{literal(quote)} {name} {literal(quote)}")
        return found

    def _text_dfa(self, parts: Sequence[Mapping[str, Any]], place: str) -> Dfa:
        """The strings that patterns and formats allow, as far as they are regular."""
        dfa = automata.any_string()
        for part in parts:
            for keyword in ("pattern", "format"):
                if keyword not in part:
                    continue
                try:
                    if keyword == "pattern":
                        found = automata.search(part["pattern"])
                    elif part["format"] in _FORMATS:
                        found = automata.match(_FORMATS[part["format"]])
                    else:
                        raise NotRegular(part["format"])
                    dfa = automata.both(dfa, found)
                except (NotRegular, TooLarge):
                    self._report(place, keyword)
        return dfa

    def _number(self, parts: Sequence[Mapping[str, Any]], place: str, *, integer: bool) -> str | None:
        limits = _limits(parts)
        factor: int | None = None
        decimals: int | None = None
        for part in parts:
            if "multipleOf" in part:
                step = Decimal(repr(part["multipleOf"]))
                if step == step.to_integral_value() and 1 <= step <= 1000:
                    factor = math.lcm(factor or 1, int(step))
                elif step in (Decimal("0.1"), Decimal("0.01"), Decimal("0.001")) and not integer:
                    decimals = min(decimals or 9, len(_digits(step)[1]))
                elif not (integer and (1 / step) == (1 / step).to_integral_value()):
                    self._report(place, "multipleOf")
        if factor is not None and factor > 1000:
            self._report(place, "multipleOf")
            factor = None
        if factor is None and decimals is None and limits == _Limits():
            return self._rules.one_of(_INTEGER if integer else _NUMBER)
        try:
            dfa = _range(limits, integer=integer or factor is not None)
            if factor is not None and factor > 1:
                dfa = automata.both(dfa, _multiples(factor))
            if decimals is not None:
                dfa = automata.both(dfa, automata.match(rf"-?\d+(\.\d{{1,{decimals}}})?"))
        except (TooLarge, NotRegular):
            self._report(place, "minimum/maximum/multipleOf")
            return self._rules.one_of(_INTEGER if integer else _NUMBER)
        return None if dfa.empty else unquoted(self._rules, dfa, "")

    def _array(self, parts: Sequence[Mapping[str, Any]], place: str) -> str | None:
        rules = self._rules
        prefixes = [_prefix(part) for part in parts]
        low = max([int(part["minItems"]) for part in parts if "minItems" in part], default=0)
        high: int | None = min([int(part["maxItems"]) for part in parts if "maxItems" in part], default=None)  # type: ignore[type-var]
        if high != 1 and high != 0 and any(part.get("uniqueItems") is True for part in parts):
            self._report(place, "uniqueItems")

        def item(at: int) -> str | None:
            schemas: list[Schema] = []
            for part, prefix in zip(parts, prefixes):
                if at < len(prefix):
                    schemas.append(prefix[at])
                elif (rest := _rest(part)) is not None:
                    schemas.append(rest)
            return self.value(schemas, f"{place}[]")

        longest = max(map(len, prefixes), default=0)
        counted = max(1, longest, min(low, _COUNTED), min(high or 0, _COUNTED))
        if high is not None:
            counted = min(counted, high)
        # Backwards: ``after`` is what may follow ``at`` items.
        after: str | None = '"]"' if counted >= low else None
        if high is None or high > counted:
            more = item(counted)
            if more is not None and high is None and counted >= low:
                after, new = rules.reserve(("items", more))
                if new:
                    rules.define(after, ['"]"', f"{SEPARATOR} {more} {after}"])
            elif more is not None:
                bounds = f"{max(low - counted, 0)},{'' if high is None else high - counted}"
                after = f'{rules.one_of(f"{SEPARATOR} {more}")}{{{bounds}}} "]"'
        for at in range(counted - 1, -1, -1):
            element = item(at)
            alternatives = ['"]"'] if at >= low else []
            if element is not None and after is not None:
                alternatives.append(f"{SEPARATOR if at else ''} {element} {after}")
            after = rules.one_of(*alternatives) if alternatives else None
        return after and f'"[" {after}'

    def _members(
        self, objects: Sequence[Mapping[str, Any]], place: str, closing: str, *, arguments: bool
    ) -> str | None:
        """An object's members (a call's arguments) and ``closing``; None if there are none that fit."""
        rules = self._rules
        required = list(dict.fromkeys(key for part in objects for key in part.get("required", ())))
        names = self._names(objects, place)
        keys = list(dict.fromkeys([*(k for part in objects for k in part.get("properties", {})), *required]))
        extras: list[str] = []
        if names is not None and names[1] is not None:
            keys += [key for key in names[1] if key not in keys and self._key_schemas(objects, key) is not None]
        else:
            extras = self._extras(objects, keys, names[0] if names else None, place, arguments=arguments)
        entries: list[tuple[str, bool]] = []
        for key in keys:
            schemas = self._key_schemas(objects, key)
            value = None if schemas is None else self.value(schemas, f"{place}.{key}" if place else key)
            written = _key(key, arguments=arguments)
            if value is None or written is None or (names is not None and not names[0].accepts(key)):
                if key in required:
                    return None
                continue
            entries.append((f"{written[0]} {value}{written[1]}", key in required))

        low = max([int(part["minProperties"]) for part in objects if "minProperties" in part], default=0)
        high: int | None = min(
            [int(part["maxProperties"]) for part in objects if "maxProperties" in part], default=None
        )  # type: ignore[type-var]
        must = sum(1 for _, needed in entries if needed)
        if low <= must:
            low = 0
        if high is not None and not extras and high >= len(entries):
            high = None
        cap = max(low, high if high is not None else 0)
        if cap > _COUNTED or cap * (len(entries) + 1) > 2000:
            self._report(place, "minProperties/maxProperties")
            low, high, cap = 0, None, 0

        # Backwards, for c members written so far (counted up to ``cap``): whether the end may follow, and
        # the next member with all that follows it.
        end = literal(closing)
        counts = range(cap + 1)
        ends = [c >= low for c in counts]
        first: list[str | None] = [None] * (cap + 1)

        def after(c: int) -> str | None:
            if first[c] is None:
                return end if ends[c] else None
            return rules.one_of(*([end] if ends[c] else []), f"{SEPARATOR} {first[c]}")

        if extras:
            extra = rules.one_of(*extras)
            if high is None:
                more, new = rules.reserve(("more", extra, closing))
                if new:
                    rules.define(more, [end, f"{SEPARATOR} {extra} {more}"])
                first[cap] = f"{extra} {more}"
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

    def _key_schemas(self, objects: Sequence[Mapping[str, Any]], key: str) -> list[Schema] | None:
        """What holds for the member ``key``; None if it may not be there."""
        found: list[Schema] = []
        for part in objects:
            here: list[Schema] = []
            if key in part.get("properties", {}):
                here.append(part["properties"][key])
            for pattern, schema in part.get("patternProperties", {}).items():
                try:
                    if automata.search(pattern).accepts(key):
                        here.append(schema)
                except (NotRegular, TooLarge):
                    pass  # reported where the other keys are handled
            if not here and "additionalProperties" in part:
                here.append(part["additionalProperties"])
            found += here
        return None if any(schema is False for schema in found) else found

    def _names(self, objects: Sequence[Mapping[str, Any]], place: str) -> tuple[Dfa, list[str] | None] | None:
        """What ``propertyNames`` allows: an automaton, and the names where they are listed."""
        dfa: Dfa | None = None
        listed: list[str] | None = None
        for part in objects:
            schema = part.get("propertyNames", True)
            if schema is True or schema == {}:
                continue
            if schema is False:
                return automata.one_of([]), []
            if any(keyword not in _NAME_KEYWORDS for keyword in schema) or schema.get("type", "string") != "string":
                self._report(place, "propertyNames")
                continue
            values = [schema["const"]] if "const" in schema else schema.get("enum")
            names = self._text_dfa([schema], place)
            low, high = int(schema.get("minLength", 0)), schema.get("maxLength")
            try:
                if low or high is not None:
                    names = automata.both(names, automata.of_length(low, high if high is None else int(high)))
                if values is not None:
                    values = [value for value in values if isinstance(value, str) and names.accepts(value)]
                    names = automata.one_of(values)
                    listed = values if listed is None else [value for value in listed if value in values]
                dfa = names if dfa is None else automata.both(dfa, names)
            except TooLarge:
                self._report(place, "propertyNames")
        return None if dfa is None else (dfa, listed)

    def _extras(
        self,
        objects: Sequence[Mapping[str, Any]],
        keys: Sequence[str],
        names: Dfa | None,
        place: str,
        *,
        arguments: bool,
    ) -> list[str]:
        """Members with names that the schema does not list."""
        patterns = list(dict.fromkeys(p for part in objects for p in part.get("patternProperties", {})))
        said = any("additionalProperties" in part for part in objects)
        free = said or (not arguments and not patterns and not any("properties" in part for part in objects))
        if not free and not patterns:
            return []
        known: dict[str, Dfa] = {}
        for pattern in patterns:
            try:
                known[pattern] = automata.search(pattern)
            except (NotRegular, TooLarge):
                self._report(place, "patternProperties")
                return []
        found: list[str] = []
        start = automata.of_length(1, None) if names is None else names
        start = automata.but_not(start, automata.one_of(keys)) if keys else start
        for chosen in [*patterns, None]:
            if chosen is None and not free:
                continue
            schemas: list[Schema] = []
            for part in objects:
                if chosen is not None and chosen in part.get("patternProperties", {}):
                    schemas.append(part["patternProperties"][chosen])
                elif "additionalProperties" in part:
                    schemas.append(part["additionalProperties"])
            if any(schema is False for schema in schemas):
                continue
            value = self.value(schemas, f"{place}.*" if place else "*")
            if value is None:
                continue
            try:
                dfa = start
                for pattern, matching in known.items():
                    dfa = automata.both(dfa, matching) if pattern == chosen else automata.but_not(dfa, matching)
                found += self._extra(dfa, value, arguments=arguments)
            except TooLarge:
                self._report(place, "patternProperties")
        return found

    def _extra(self, names: Dfa, value: str, *, arguments: bool) -> list[str]:
        rules = self._rules
        if names.empty:
            return []
        if arguments:
            identifiers = automata.both(names, automata.match(IDENTIFIER))
            if not identifiers.empty:
                return [f"{unquoted(rules, identifiers, '=')} {value}"]
            return [f'"**{{" {key} ":" " "? {value} "}}"' for key in string(rules, names)]
        return [f'{rules.one_of(*string(rules, names))} ":" " "? {value}']


IDENTIFIER = r"[A-Za-z_][A-Za-z0-9_]*"
_NAME_KEYWORDS = {"type", "pattern", "format", "minLength", "maxLength", "enum", "const", "description", "title"}


def _key(key: str, *, arguments: bool) -> tuple[str, str] | None:
    """What is written before and after the value of the member ``key``."""
    if arguments and is_name(key):
        return literal(key + "="), ""
    text = constant_string(key)
    if text is None:
        return None
    return (f'"**{{" {text} ":" " "?', ' "}"') if arguments else (f'{text} ":" " "?', "")


def _repeated_class(low: int, high: int | None) -> str:
    """A string of ``low`` to ``high`` characters without escapes, for an xgrammar without a counter."""
    label = automata.without(ALL, automata.union(_CONTROLS, automata.chars('"\\|')))
    return f'"\\"" {char_class(label)}{{{low},{"" if high is None else high}}} "\\""'


def _types(parts: Sequence[Mapping[str, Any]]) -> frozenset[str] | None:
    """The types that all ``parts`` allow; None: none of them says."""
    types: frozenset[str] | None = None
    for part in parts:
        if "type" not in part:
            continue
        here = frozenset([part["type"]] if isinstance(part["type"], str) else part["type"])
        if types is None:
            types = here
        else:
            one_whole = ("number" in types and "integer" in here) or ("integer" in types and "number" in here)
            types = (types & here) | ({"integer"} if one_whole else set())
    return types


_IMPLIED = {
    "object": ("properties", "required", "additionalProperties", "patternProperties", "propertyNames", "minProperties",
               "maxProperties"),
    "array": ("items", "prefixItems", "minItems", "maxItems", "uniqueItems"),
    "string": ("pattern", "minLength", "maxLength", "format"),
    "number": ("minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "multipleOf"),
}  # fmt: skip


def _implied(parts: Sequence[Mapping[str, Any]]) -> frozenset[str] | None:
    types = {kind for kind, keywords in _IMPLIED.items() for part in parts if any(word in part for word in keywords)}
    return frozenset(types) or None


def _type_of(value: Any) -> str:
    if value is None:
        return "null"
    if isinstance(value, bool):
        return "boolean"
    if isinstance(value, int):
        return "integer"
    if isinstance(value, float):
        return "number"
    if isinstance(value, str):
        return "string"
    return "object" if isinstance(value, Mapping) else "array"


def _among(value: Any, others: Iterable[Any]) -> bool:
    numeric = _type_of(value) in ("integer", "number")
    return any(
        value == other and (_type_of(other) in ("integer", "number") if numeric else _type_of(other) == _type_of(value))
        for other in others
    )


def _length_fits(length: int, parts: Sequence[Mapping[str, Any]]) -> bool:
    return all(part.get("minLength", 0) <= length <= part.get("maxLength", length) for part in parts)


def _limits(parts: Sequence[Mapping[str, Any]]) -> _Limits:
    lows: list[tuple[Decimal, bool]] = []
    highs: list[tuple[Decimal, bool]] = []
    for part in parts:
        for found, plain, exclusive in (
            (lows, "minimum", "exclusiveMinimum"),
            (highs, "maximum", "exclusiveMaximum"),
        ):
            bound = part.get(exclusive)
            if plain in part:
                found.append((Decimal(repr(part[plain])), bound is True))  # True: as in draft 4
            if bound is not None and not isinstance(bound, bool):
                found.append((Decimal(repr(bound)), True))
    low = max(lows, default=(None, False))
    high = min(highs, key=lambda bound: (bound[0], not bound[1]), default=(None, False))
    return _Limits(low[0], low[1], high[0], high[1])


def _prefix(part: Mapping[str, Any]) -> Sequence[Schema]:
    prefix = part.get("prefixItems", part["items"] if isinstance(part.get("items"), list) else ())
    return list(prefix)


def _rest(part: Mapping[str, Any]) -> Schema | None:
    """The schema of the items after the prefix; None: not said."""
    rest = part.get("additionalItems") if isinstance(part.get("items"), list) else part.get("items")
    return rest if isinstance(rest, (bool, Mapping)) else None


# --- references and validity ----------------------------------------------------------------------


def resolve(root: Schema, reference: str) -> Schema | None:
    """The schema that a local ``$ref`` points to; None if it is not local.

    Raises:
        SchemaError: a local reference to nothing.
    """
    if not reference.startswith("#"):
        return None
    if reference != "#" and not reference.startswith("#/"):
        return None  # an anchor
    found: Any = root
    for step in reference[2:].split("/") if len(reference) > 1 else ():
        step = re.sub("%([0-9a-fA-F]{2})", lambda code: chr(int(code[1], 16)), step)
        step = step.replace("~1", "/").replace("~0", "~")
        if isinstance(found, Mapping) and step in found:
            found = found[step]
        elif isinstance(found, list) and step.isdigit() and int(step) < len(found):
            found = found[int(step)]
        else:
            raise SchemaError(f"$ref {reference!r} points to nothing")
    if not isinstance(found, (bool, Mapping)):
        raise SchemaError(f"$ref {reference!r} does not point to a schema")
    return found


_SCHEMAS = ("additionalProperties", "additionalItems", "not", "if", "then", "else", "contains", "propertyNames")
_SCHEMA_LISTS = ("anyOf", "oneOf", "allOf", "prefixItems")
_SCHEMA_MAPS = ("properties", "patternProperties", "$defs", "definitions", "dependentSchemas")
_COUNTS = ("minLength", "maxLength", "minItems", "maxItems", "minProperties", "maxProperties")
_NUMBERS = ("minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "multipleOf")


def check(schema: Any, root: Schema, place: str, depth: int = 0) -> None:
    """Check the keywords that are used here against JSON Schema's own rules.

    Raises:
        SchemaError: the first violation.
    """

    def fail(what: str) -> None:
        raise SchemaError(f"invalid JSON schema at {place}: {what}")

    if isinstance(schema, bool):
        return
    if not isinstance(schema, Mapping):
        fail(f"a schema is an object or a boolean, not {_shown(schema)}")
    if depth > _MAX_DEPTH:
        fail("nested too deeply")
    kinds = schema.get("type", [])
    for kind in [kinds] if not isinstance(kinds, list) else kinds:
        if not isinstance(kind, str) or kind not in _TYPES:
            fail(f"unknown type {_shown(kind)}")
    if kinds == [] and "type" in schema:
        fail("type is empty")
    if "enum" in schema and not isinstance(schema["enum"], list):
        fail("enum is no array")
    if "required" in schema and not (
        isinstance(schema["required"], list) and all(isinstance(key, str) for key in schema["required"])
    ):
        # Draft 3 had a boolean here; later drafts do not.
        fail("required is no array of strings")
    for keyword in _COUNTS:
        count = schema.get(keyword, 0)
        if isinstance(count, bool) or not isinstance(count, (int, float)) or count < 0 or count != int(count):
            fail(f"{keyword} is no count")
    for keyword in _NUMBERS:
        number = schema.get(keyword, 1)
        if keyword.startswith("exclusive") and isinstance(number, bool):
            continue
        if isinstance(number, bool) or not isinstance(number, (int, float)) or not math.isfinite(number):
            fail(f"{keyword} is no number")
        if keyword == "multipleOf" and number <= 0:
            fail("multipleOf is not above 0")
    for keyword in ("pattern", "format", "$ref"):
        if keyword in schema and not isinstance(schema[keyword], str):
            fail(f"{keyword} is no string")
    if "$ref" in schema:
        try:
            resolve(root, schema["$ref"])
        except SchemaError as error:
            fail(str(error))
    for keyword in _SCHEMAS:
        if keyword in schema:
            check(schema[keyword], root, f"{place}.{keyword}", depth + 1)
    for keyword in _SCHEMA_LISTS:
        if keyword in schema:
            if not isinstance(schema[keyword], list) or not schema[keyword]:
                fail(f"{keyword} is no array of schemas")
            for at, inner in enumerate(schema[keyword]):
                check(inner, root, f"{place}.{keyword}[{at}]", depth + 1)
    items = schema.get("items", True)
    for at, inner in enumerate(items if isinstance(items, list) else [items]):
        check(inner, root, f"{place}.items" + (f"[{at}]" if isinstance(items, list) else ""), depth + 1)
    for keyword in _SCHEMA_MAPS:
        if keyword in schema:
            if not isinstance(schema[keyword], Mapping):
                fail(f"{keyword} is no object")
            for key, inner in schema[keyword].items():
                check(inner, root, f"{place}.{keyword}.{key}", depth + 1)


def _shown(value: Any) -> str:
    text = json.dumps(value, default=str)
    return text if len(text) <= 40 else text[:37] + "..."
