"""Numbers: exact, as JSON.

number  := [+-]? (integer | float)
integer := decimal digits (leading zeros allowed) | 0x… | 0o… | 0b…, with ``_`` between digits
float   := as in Python; written as Python's ``repr``
"""

from __future__ import annotations

import math
import re

from .cursor import Reader, Source
from .tokens import MAX_DIGITS, SAME_NUMBER

_SAME_NUMBER = re.compile(SAME_NUMBER)
_SAME_NUMBERS = re.compile(rf"(?:{SAME_NUMBER}, )+")
_NUMBER = re.compile(r"(-?)([0-9][0-9A-Za-z_.]*(?:(?<=[eE])[+-][0-9]+)?)(?![\w.])")
_RUN = re.compile(r"[\w.]+")
_BEFORE_SIGN = re.compile(r"[0-9][0-9_.]*[eE]|\.[0-9][0-9_]*[eE]")
_DECIMAL = re.compile(r"[0-9](?:_?[0-9])*")
_BASED = re.compile(r"0(?:[xX](?:_?[0-9a-fA-F])+|[oO](?:_?[0-7])+|[bB](?:_?[01])+)")
_FLOAT = re.compile(
    r"(?:[0-9](?:_?[0-9])*(?:\.(?:[0-9](?:_?[0-9])*)?)?|\.[0-9](?:_?[0-9])*)(?:[eE][+-]?[0-9](?:_?[0-9])*)?"
)
_LIMIT = 10**MAX_DIGITS
_LONGEST = 2 * MAX_DIGITS + 16  # characters: an underscore for each digit, a point, an exponent


def take_number(source: Source) -> str:
    """Take a number behind which another character is there: its JSON text, or "" (the cursor is anywhere then)."""
    same = _SAME_NUMBER.match(source.text, source.pos)
    if same:
        source.pos = same.end()
        return same[0]
    number = _NUMBER.match(source.text, source.pos)
    if not number or number.end() - source.pos > MAX_DIGITS:
        return ""
    source.pos = number.end()
    return number_json(number[2], number[1]) or ""


def take_numbers(source: Source) -> str:
    """Take numbers with a comma and a blank behind each: their JSON text, without the last comma, or "".

    The first must be the same in JSON.  (Where it is not, ``take_number`` is next, and need not be tried twice.)
    """
    text = source.text
    run = _SAME_NUMBERS.match(text, source.pos)
    if not run:
        return ""
    pieces = [run[0]]
    end = source.pos = run.end()
    while text.find(", ", end) >= 0:
        if run := _SAME_NUMBERS.match(text, end):
            source.pos = run.end()
            pieces.append(run[0])
        elif (number := take_number(source)) and text.startswith(", ", source.pos):
            source.pos += 2
            pieces.append(f"{number}, ")
        else:
            source.pos = end
            break
        end = source.pos
    return "".join(pieces)[:-2]


def read_number(source: Source) -> Reader[str]:
    """Take a run that looks like an unsigned number; ``number_json`` says whether it is one."""
    token = ""
    while True:
        # No further than the limit, however much has arrived: the cursor must be at the same place either way.
        run = _RUN.match(source.text, source.pos, source.pos + _LONGEST - len(token))
        if run:
            token += run[0]
            source.pos = run.end()
            if len(token) == _LONGEST:
                return ""
        if source.pos == len(source.text) and not source.ended:
            yield
        elif source.text[source.pos : source.pos + 1] in ("+", "-") and _BEFORE_SIGN.fullmatch(token):
            token += source.text[source.pos]
            source.pos += 1
        else:
            return token


def number_json(token: str, sign: str = "") -> str | None:
    """The JSON text of a Python number, or None if it is none or has no JSON form (``1e999``)."""
    negative = "-" if sign == "-" else ""
    if _DECIMAL.fullmatch(token):
        digits = token.replace("_", "")
        if len(digits) > MAX_DIGITS:
            return None
        digits = digits.lstrip("0")
        return negative + digits if digits else "0"
    if _BASED.fullmatch(token):
        value = int(token, 0)
        if value >= _LIMIT:
            return None
        try:
            return negative + str(value) if value else "0"
        except ValueError:  # the interpreter's own limit on digits may be lower
            return None
    if _FLOAT.fullmatch(token) and (len(token) <= MAX_DIGITS or sum(map(str.isdigit, token)) <= MAX_DIGITS):
        number = float(token)
        return negative + repr(number) if math.isfinite(number) else None
    return None
