"""Plain calls and values in a text that is all there: where they end, and their JSON.

Plain are strings with simple escapes at most and no control characters, numbers, constants, lists
and dicts of these, and calls with such values as arguments, all with no more than single blanks
between them.  What is plain closes and ends where every reading of the text agrees: a quote of a
string is followed by what shows that the list goes on.

The functions add JSON text to ``pieces`` and return the position after what they read, or, where
the text is not plain or ends too early, the complement (``~``) of the position where that shows.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

from .closing import CONSTANTS
from .escapes import SAME_ESCAPE, SIMPLE_ESCAPE, json_string, unescape
from .numbers import SAME_NUMBER, number_json
from .state import CLOSERS, MAX_DEPTH


def body(quote: str, escape: str = SIMPLE_ESCAPE) -> str:
    """A pattern of what stands between the quotes of a plain string."""
    text = rf"[^{quote}\\\x00-\x1f\ud800-\udfff]*"
    return rf"{text}(?:{escape}{text})*"


NAME = "[A-Za-z_][A-Za-z0-9_]*"
NUMBER = r"-?[0-9][0-9A-Za-z_.]*(?:(?<=[eE])[+-][0-9]+)?"
"""What may be a number: ``number_json`` says whether it is."""
AFTER_CALL = r"[,;\]\r\n]"
"""What shows, after a call, that the list goes on."""
_VALUE = rf"""(?:
    (?P<same>     "{body('"', SAME_ESCAPE)}" | {SAME_NUMBER} (?![\w.]) )
  | '(?P<single>  {body("'")} )'
  | "(?P<double>  {body('"')} )"
  | (?P<constant> {"|".join(CONSTANTS)} ) (?!\w)
  | (?P<number>   {NUMBER} )
  | (?P<opening>  [\[{{] )
)"""

_ELEMENT = re.compile(_VALUE, re.VERBOSE)
_ENTRY = re.compile(rf"""("{body('"', SAME_ESCAPE)}" | '{body("'")}') [ ]?:[ ]? {_VALUE}""", re.VERBOSE)
_CLOSERS = re.compile(r"[\]} ]*(, ?)?")
_SAME_NUMBER = re.compile(SAME_NUMBER)
_SAME_NUMBERS = re.compile(rf"(?:{SAME_NUMBER}, )+")
_NUMBERS = re.compile(rf"(?:{NUMBER}, ?)+")

_CALL = re.compile(rf"({NAME}(?:\.{NAME})*)\(")
_NAMED = re.compile(rf"({NAME})={_VALUE}", re.VERBOSE)
_NEXT_ARGUMENT = re.compile(r" ?(?:, ?|(\)))")
_JSON_CALL = re.compile(rf"""\{{ ?"name" ?: ?"({body('"')})" ?, ?"(?:arguments|parameters)" ?: ?(?=\{{)""")
_GOES_ON = re.compile(rf" ?(?={AFTER_CALL})")


def call(text: str, pos: int, tools: Mapping[str, Sequence[str]], pieces: list[str]) -> tuple[str, int]:
    """Read a call after which the list goes on; its name comes with the position."""
    if head := _CALL.match(text, pos):
        name = head[1]
        pos = _arguments(text, head.end(), tools.get(name, ()), pieces)
    elif head := _JSON_CALL.match(text, pos):
        name = unescape(head[1])
        pos = container(text, head.end(), pieces, MAX_DEPTH - 1)
        if pos > 0:
            pos += text.startswith(" ", pos)
            pos = pos + 1 if name and text.startswith("}", pos) else ~pos
    else:
        return "", ~pos
    if pos < 0:
        return "", pos
    end = _GOES_ON.match(text, pos)
    return (name, end.end()) if end else ("", ~pos)


def _arguments(text: str, pos: int, parameters: Sequence[str], pieces: list[str]) -> int:
    """Read what follows ``name(``, with the closing parenthesis."""
    if text.startswith(")", pos):
        pieces.append("{}")
        return pos + 1
    names: set[str] = set()
    positional = 0
    while True:
        value = _NAMED.match(text, pos)
        if value:
            name = value[1]
        elif len(names) == positional < len(parameters) and (value := _ELEMENT.match(text, pos)):
            name = parameters[positional]
            positional += 1
        if not value or name in names:
            return ~pos
        if positional and value[0].endswith("{"):
            return ~pos  # it may be a lone object
        pieces.append(f"{', ' if names else '{'}{json_string(name)}: ")
        names.add(name)
        if value.lastgroup == "opening":
            pos = container(text, value.end() - 1, pieces, MAX_DEPTH)
        else:
            pieces.append(_scalar(value))
            pos = value.end() if pieces[-1] else ~pos
        if pos < 0:
            return pos
        after = _NEXT_ARGUMENT.match(text, pos)
        if not after:
            return ~pos
        pos = after.end()
        if after[1]:
            pieces.append("}")
            return pos


def container(text: str, pos: int, pieces: list[str], levels: int) -> int:
    """Read a list or a dict with no more than ``levels`` of nesting."""
    outer: list[tuple[str, set[str] | None]] = []
    closer = ""
    keys: set[str] | None = None  # of the innermost bracket, if it is a dict
    while True:
        if keys is None:
            value = _ELEMENT.match(text, pos)
            if not value:
                return ~pos
        else:
            value = _ENTRY.match(text, pos)
            if not value:
                return ~pos
            key = value[1]
            if key[0] == "'":
                key = json_string(unescape(key[1:-1]))
            if key in keys:
                return ~pos
            keys.add(key)
            pieces.append(f"{key}: ")
        if value.lastgroup == "opening":
            if len(outer) >= levels:
                return ~pos
            outer.append((closer, keys))
            pos = value.end()
            opening = text[pos - 1]
            pieces.append(opening)
            closer = CLOSERS[opening]
            keys = set() if closer == "}" else None
            if not text.startswith(closer, pos):
                continue
        else:
            pieces.append(_scalar(value))
            if not pieces[-1]:
                return ~pos
            pos = value.end()
        after = _CLOSERS.match(text, pos)
        assert after
        for char in after[0]:
            pos += 1
            if char == closer:
                pieces.append(closer)
                closer, keys = outer.pop()
                if not outer:
                    return pos
            elif char == ",":
                break
            elif char != " ":
                return ~pos
        if not after[1]:
            return ~pos
        pieces.append(", ")
        pos = after.end()
        if keys is None and (run := _SAME_NUMBERS.match(text, pos)):
            pieces.append(run[0])
            pos = run.end()


def numbers(text: str, pos: int, pieces: list[str]) -> int:
    """Read numbers, each with a comma after it; the comma after the last one is left out of the JSON."""
    if run := _SAME_NUMBERS.match(text, pos):
        pieces.append(run[0][:-2])
        return run.end()
    run = _NUMBERS.match(text, pos)
    found = []
    for token in run[0].split(",")[:-1] if run else ():
        value = number(token.strip())
        if not value:
            break
        found.append(value)
        pos += len(token) + 1
    pieces.append(", ".join(found))
    return pos if found else ~pos


def number(token: str) -> str:
    """The JSON text of a number; empty if it has none."""
    return token if _SAME_NUMBER.fullmatch(token) else number_json(token.lstrip("-"), token[0]) or ""


def _scalar(value: re.Match[str]) -> str:
    """The JSON text of the scalar that was matched; empty if it has none."""
    kind = value.lastgroup
    text: str = value[kind or 0]
    if kind == "same":
        return text
    if kind == "number":
        return number(text)
    return CONSTANTS[text] if kind == "constant" else json_string(unescape(text))
