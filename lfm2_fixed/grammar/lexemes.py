"""A grammar's rules in Lark, as llguidance reads it: with a lexer, and with tokens as symbols.

Its lexer takes the longest match and never goes back.  So that it decides nothing, whatever may begin at one place has
to end at one place.  A string literal ends at its quote whatever is in it: it is one lexeme, made of all its rules (a
lexeme is an automaton there, with quick masks).  So is text up to where a call begins.  Anything else is read
character by character.

Where a rule goes on with itself at its end, it is repeated (Arden: ``x = a x | b`` is ``a* b``): the parser would
carry one item for each time, and gives up after 2,000.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping, Sequence
from itertools import chain

from .graphs import circles
from .notation import Notation, Rule

_TOKEN = re.compile(
    r"""(?P<string>"(?:[^"\\]|\\.)*") | (?P<chars>\[(?:[^\]\\]|\\.)*\]) | (?P<name>[A-Za-z]\w*)
    | (?P<token><\[\d+\]>) | (?P<count>[?*+]|\{[^}]*\}) | (?P<mark>[()|])""",
    re.VERBOSE,
)
_ESCAPE = re.compile(r"\\(?:u(\w{4})|U(\w{8})|(.))")

Token = tuple[str, str]


def _write(root: str, rules: Mapping[str, Rule]) -> str:
    return _Lark(rules).text(root)


LARK = Notation("Lark", counts=False, joins=True, most_repeated=2000, both_quotes=1000, deepest=300, write=_write)
"""llguidance.  It follows rules by recursion, and the whole process dies where its stack ends: after some 600 in the
2 MB that a thread has at least, 2,500 in the usual 8 MB.  ``root`` may name tokens by their numbers: ``<[10]>``."""


def _read(expression: str) -> list[Token]:
    """The tokens of an expression; strings by what they mean."""
    found = [(str(match.lastgroup), match[0]) for match in _TOKEN.finditer(expression)]
    return [(kind, _meant(text[1:-1]) if kind == "string" else text) for kind, text in found]


def _meant(text: str) -> str:
    def one(escape: re.Match[str]) -> str:
        code = escape[1] or escape[2]
        return chr(int(code, 16)) if code else {"n": "\n"}.get(escape[3], escape[3])

    return _ESCAPE.sub(one, text)


def _alternatives(tokens: Sequence[Token]) -> list[list[Token]]:
    """The alternatives that the tokens are at the top."""
    found: list[list[Token]] = [[]]
    depth = 0
    for token in tokens:
        depth += {"(": 1, ")": -1}.get(token[1], 0) if token[0] == "mark" else 0
        if token == ("mark", "|") and not depth:
            found.append([])
        else:
            found[-1].append(token)
    return found


def _string(text: str) -> str:
    return json.dumps(text)


def _either(alternatives: Iterable[str]) -> str:
    return " | ".join(dict.fromkeys(text or '""' for text in alternatives))


def _repeated(loops: Sequence[str], ends: Sequence[str]) -> str:
    """``loops`` any number of times, then one of ``ends``."""
    return f"({_either(loops)})* ({_either(ends)})" if loops else _either(ends)


class _Lark:
    def __init__(self, rules: Mapping[str, Rule]) -> None:
        self._rules = {
            name: [one for text in rule.alternatives for one in _alternatives(_read(text))]
            for name, rule in rules.items()
        }
        self._also = {name: _read(rule.also) for name, rule in rules.items() if rule.also}
        self._free = {name: rule.free for name, rule in rules.items()}
        # Behind free text may be what leads back to it: that is none of the text's.
        self._circles = circles(
            {
                name: [other for other in self._named_in(name) if self._free[other] or not self._free[name]]
                for name in self._rules
            }
        )
        self._circle = {name: at for at, circle in enumerate(self._circles) for name in circle}
        self._lines: dict[str, str] = {}
        """Of each rule and terminal that was written: what it is."""
        self._written: dict[str, str] = {}
        """The terminals that have no rule, by what they are."""
        self._literals: dict[str, bool] = {}
        """Of a rule: whether it is a string literal, whatever is in it."""

    def text(self, root: str) -> str:
        """The grammar that begins at the expression ``root``."""
        expression = _read(root)
        self._write_rules("start", _alternatives(expression))
        return "\n".join([*(f"{name}: {body}" for name, body in self._lines.items()), ""])

    def _named_in(self, name: str) -> list[str]:
        return _names([*self._rules[name], self._also.get(name, [])])

    # --- rules: for the parser --------------------------------------------------------------------

    def _write_rules(self, name: str, alternatives: list[list[Token]]) -> None:
        """A rule, and all that it needs."""
        todo = [(name, alternatives)]
        while todo:
            name, alternatives = todo.pop()
            if name in self._lines:
                continue
            literals = [one for one in alternatives if self._is_literal(one)]
            # All of them together are one terminal: an ``enum`` of thousands would be as many for the lexer.
            choice = list(chain(*((("mark", "|"), *one) for one in literals)))[1:]
            ends = [self._terminal_of(choice)] if choice else []
            loops: list[str] = []
            named: list[str] = []
            self._lines[name] = ""
            if self._free.get(name):
                for onward, body in self._solved(name).items():
                    ends.append(f"{self._named(body)} {onward}".strip())
                    named += [onward] if onward else []
                alternatives = []
            for one in alternatives:
                if not self._is_literal(one):
                    again = one[-1:] == [("name", name)]
                    (loops if again else ends).append(self._expression(one[:-1] if again else one, named))
            self._lines[name] = _repeated(loops, ends)
            todo += [(other, self._rules[other]) for other in reversed(named)]

    def _expression(self, tokens: Sequence[Token], named: list[str]) -> str:
        """Tokens for the parser: characters, and string literals in one.  ``named`` gets the rules in it."""
        found: list[str] = []
        at = 0
        while at < len(tokens):
            kind, text = tokens[at]
            at += 1
            if kind == "string":
                pieces, goes_on = _pieces(text)
                lexemes = [_string(piece) for piece in pieces or [""]]
                if goes_on:
                    lexemes[-1] = self._terminal_of([("string", pieces[-1]), tokens[at]])
                    at += 1
                counted = len(lexemes) > 1 and at < len(tokens) and tokens[at][0] == "count"
                found += ["(", *lexemes, ")"] if counted else lexemes
            elif kind == "name" and self._is_literal([(kind, text)]):
                found.append(self._terminal(text))
            else:
                _add(found, kind, text)
                if kind == "name" and text in self._rules:
                    named.append(text)
        return " ".join(found)

    # --- terminals: for the lexer -----------------------------------------------------------------

    def _is_literal(self, tokens: Sequence[Token]) -> bool:
        """Whether the tokens are one string literal, or a choice of such."""
        beside = False
        at = 0
        while at < len(tokens):
            kind, text = tokens[at]
            at += 1
            if kind == "mark":
                if text == "(" and beside:
                    return False
                beside = text == ")" or (beside and text != "|")
                continue
            if beside or not (kind == "string" or text in self._rules):
                return False
            beside = True
            if kind == "string":
                pieces, goes_on = _pieces(text)
                if len(pieces) != 1 or pieces[0][0] not in QUOTES:
                    return False
                at += goes_on
            else:
                if text not in self._literals:
                    self._literals[text] = False  # for one that comes back to itself
                    self._literals[text] = all(map(self._is_literal, self._rules[text]))
                if not self._literals[text]:
                    return False
        return beside

    def _terminal_of(self, tokens: Sequence[Token]) -> str:
        """The terminal that is what the tokens say."""
        if len(tokens) == 1 and tokens[0][0] == "name":
            return self._terminal(tokens[0][1])
        return self._named(self._inner(tokens))

    def _named(self, body: str) -> str:
        """The terminal for ``body``: what is said several times is written once."""
        if re.fullmatch(r"\w+", body):
            return body
        if body not in self._written:
            self._written[body] = f"T{len(self._written)}"
            self._lines[self._written[body]] = body
        return self._written[body]

    def _inner(self, tokens: Iterable[Token]) -> str:
        """Tokens for the lexer."""
        found: list[str] = []
        for kind, text in tokens:
            _add(found, kind, self._terminal(text) if kind == "name" else _string(text) if kind == "string" else text)
        return " ".join(found)

    def _terminal(self, name: str) -> str:
        """The terminal that a rule is.  What it is made of is written first: that may be hundreds of rules deep."""
        if name.upper() not in self._lines:
            entries = {name}
            seen, todo = {name}, [name]
            while todo:
                here = todo.pop()
                for other in self._named_in(here):
                    if self._circle[other] != self._circle[here]:
                        entries.add(other)
                    if other not in seen:
                        seen.add(other)
                        todo.append(other)
            for entry in sorted(entries, key=lambda entry: (self._circle[entry], entry)):
                if entry.upper() not in self._lines:
                    [body] = self._solved(entry).values()
                    also = self._also.get(entry)
                    self._lines[entry.upper()] = f"({body}) & ({self._inner(also)})" if also else body
        return name.upper()

    def _solved(self, start: str) -> dict[str, str]:
        """What the terminal of ``start`` is, when the other rules of its circle are put in, one after the other.

        By the rule that follows it: of free text that is one of those which it leads to, else there is none (``""``).
        """
        circle = self._circles[self._circle[start]]
        # Of each rule in the circle: what stands before each of them, and before what is outside.
        before: dict[str, dict[str, list[str]]] = {name: {} for name in circle}
        for name in circle:
            for one in self._rules[name]:
                kind, last = one[-1] if one else ("", "")
                if kind == "name" and (last in before or self._free[name]):
                    before[name].setdefault(last, []).append(self._inner(one[:-1]))
                else:
                    before[name].setdefault("", []).append(self._inner(one))
        for name in [*(other for other in circle if other != start), start]:
            edges = before.pop(name)
            loops = edges.pop(name, [])
            if name == start:
                return {to: _repeated(loops, texts) for to, texts in edges.items()}
            onward = {to: self._named(_repeated(loops, texts)) for to, texts in edges.items()}
            for its in before.values():
                if (prefix := its.pop(name, None)) is not None:
                    for to, text in onward.items():
                        its.setdefault(to, []).append(f"({_either(prefix)}) {text}")
        raise AssertionError("a rule is in its circle")


QUOTES = "\"'"

_PIECE = re.compile(r"""(?s:"(?:[^"\\]|\\.)*(?P<double>"?)|'(?:[^'\\]|\\.)*(?P<single>'?)|.)""")


def _pieces(text: str) -> tuple[list[str], bool]:
    """Text for the parser: characters, and string literals in one; whether the last of these goes on behind it."""
    found = list(_PIECE.finditer(text))
    goes_on = bool(found) and found[-1][0][0] in QUOTES and not (found[-1]["double"] or found[-1]["single"])
    return [piece[0] for piece in found], goes_on


def _names(alternatives: Iterable[Sequence[Token]]) -> list[str]:
    return [text for one in alternatives for kind, text in one if kind == "name"]


def _add(found: list[str], kind: str, text: str) -> None:
    """Add a token, a count to what it counts."""
    if kind == "count":
        found[-1] += text
    else:
        found.append(f"/{text}/" if kind == "chars" else text)
