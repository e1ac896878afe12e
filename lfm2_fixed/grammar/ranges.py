"""Numbers: what ``minimum``, ``maximum``, ``exclusiveMinimum``, ``exclusiveMaximum`` and ``multipleOf`` leave.

Exact in both directions: every integer of up to ``digits.WHOLE`` digits, and every float as Python, JavaScript and
JSON write it (up to 17 significant digits, an exponent where it is very large or small), is written exactly where
the limits allow it.  A number with a point or an exponent is read as a float.  So a limit that is no float, or is
exclusive, is moved to the next float on its inner side, and that float's shortest text is what texts are
compared with: rounding keeps the order, so a text that is within as a decimal is within as a float.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from decimal import Decimal
from fractions import Fraction
from typing import Any, Union

from . import dfa as automata
from .charsets import CharSet, chars
from .dfa import Dfa
from .digits import FRACTION, Between, Decimals, Fractions, Listed, NoFractions, decimals, scientific
from .here import Here
from .quotes import unquoted
from .work import NUMBER_RULE_STEPS, TooLarge, Work

Exact = Union[int, float]

_EXACT = 2**53
"""Up to here every integer is a float."""
_HUGE = 1e300
"""Limits of integers beyond this are not held: none of real schemas are, and each digit of a limit is a rule."""
_WRITTEN_OUT = Decimal(10**40)
"""Numbers beyond this are written with an exponent only, unless they have to be integers."""
_LARGEST = 1.7976931348623157e308
"""The largest float; a limit from here on is none."""
_STEPS_OF_FLOATS = 200
"""What comparing digit by digit with a float's limits takes beside that, in steps."""
_LISTED = 300
"""So many multiples are listed rather than computed."""
_LARGEST_STEP = 1000
"""Remainders that are told apart: each is a state."""


@dataclass
class Number:
    """What a schema's keywords say about a number."""

    low: Exact | None = None
    low_open: bool = False
    high: Exact | None = None
    high_open: bool = False
    steps: list[Fraction] = field(default_factory=list)


# --- keywords -------------------------------------------------------------------------------------


def minimum(number: Number, part: Mapping[str, Any], here: Here) -> None:
    """``minimum``; with a draft-4 ``exclusiveMinimum: true`` beside it exclusive."""
    _at_least(number, _clamped(part["minimum"]), part.get("exclusiveMinimum") is True)


def exclusive_minimum(number: Number, part: Mapping[str, Any], here: Here) -> None:
    """``exclusiveMinimum``."""
    if not isinstance(part["exclusiveMinimum"], bool):
        _at_least(number, _clamped(part["exclusiveMinimum"]), True)


def maximum(number: Number, part: Mapping[str, Any], here: Here) -> None:
    """``maximum``; with a draft-4 ``exclusiveMaximum: true`` beside it exclusive."""
    _at_most(number, _clamped(part["maximum"]), part.get("exclusiveMaximum") is True)


def exclusive_maximum(number: Number, part: Mapping[str, Any], here: Here) -> None:
    """``exclusiveMaximum``."""
    if not isinstance(part["exclusiveMaximum"], bool):
        _at_most(number, _clamped(part["exclusiveMaximum"]), True)


def multiple_of(number: Number, part: Mapping[str, Any], here: Here) -> None:
    """``multipleOf``: of the decimal that the schema writes, so that 0.15 is a multiple of 0.05."""
    number.steps.append(Fraction(Decimal(repr(_clamped(part["multipleOf"])))))


def _clamped(bound: Exact) -> Exact:
    """Integers of any length compare with floats, but cannot become ones."""
    limit = 10**309
    return max(min(bound, limit), -limit) if isinstance(bound, int) else bound


def _at_least(number: Number, bound: Exact, is_open: bool) -> None:
    if number.low is None or bound > number.low or (bound == number.low and is_open):
        number.low, number.low_open = bound, is_open


def _at_most(number: Number, bound: Exact, is_open: bool) -> None:
    if number.high is None or bound < number.high or (bound == number.high and is_open):
        number.high, number.high_open = bound, is_open


# --- rules ----------------------------------------------------------------------------------------


def write(number: Number, here: Here, *, integer: bool) -> str | None:
    """The rule for a number; None if none is left."""
    low, high = number.low, number.high
    if here.work.spent and (low is not None or high is not None):
        here.relax("minimum/maximum")
        low = high = None
    if low is None and high is None and not number.steps:
        name, new = here.rules.reserve(("number", integer))
        if new:
            here.rules.define(name, [str(_within(number, None, None, here, integer=integer))])
        return name
    size = here.rules.size
    found = _within(number, low, high, here, integer=integer)
    looked_at = 0 if integer else _STEPS_OF_FLOATS
    here.work.charge(NUMBER_RULE_STEPS * (here.rules.size - size) + looked_at)
    return found


def _within(number: Number, low: Exact | None, high: Exact | None, here: Here, *, integer: bool) -> str | None:
    if (low is not None and low <= -_LARGEST) or (integer and low is not None and low <= -_HUGE):
        low = None
    if (high is not None and high >= _LARGEST) or (integer and high is not None and high >= _HUGE):
        high = None
    if any(bound is not None and abs(bound) >= (_HUGE if integer else _LARGEST) for bound in (low, high)):
        here.relax("minimum/maximum beyond 1e300")
        low = high = None
    least = None if low is None else math.floor(low) + 1 if number.low_open else math.ceil(low)
    most = None if high is None else math.ceil(high) - 1 if number.high_open else math.floor(high)
    step = _common([step for step in number.steps if not (integer and step.numerator == 1)])
    if step is not None and (integer or step.denominator == 1):
        try:
            multiples = _multiples_between(here, step.numerator, least, most)
            return multiples if integer or multiples is None else f'{multiples} ("." "0"{{1,4}})?'
        except TooLarge:
            here.relax("multipleOf")
            step = None if integer else Fraction(1)
    if integer:
        return _signed(here, least, most, NoFractions())
    fractions = Fractions()
    if step is not None:
        stepped = _fractions(step)
        if stepped is None:
            here.relax("multipleOf")
        fractions, step = (Fractions(), None) if stepped is None else (stepped, step)
    return _number(here, number, low, high, least, most, fractions, exponents=step is None)


def _number(
    here: Here,
    number: Number,
    low: Exact | None,
    high: Exact | None,
    least: int | None,
    most: int | None,
    fractions: Fractions,
    *,
    exponents: bool,
) -> str | None:
    rules = here.rules
    low_float = None if low is None else _float_above(low, number.low_open)
    high_float = None if high is None else _float_below(high, number.high_open)
    apart = any(bound is not None and abs(bound) >= _EXACT for bound in (low, high))
    found: list[str] = []
    far_off = (least is not None and least >= _WRITTEN_OUT) or (most is not None and most <= -_WRITTEN_OUT)
    if apart and not far_off and (whole := _signed(here, least, most, NoFractions())):
        found.append(whole)  # integers are exact: their limits are not those of floats
    for negative in (False, True):
        near, far = (low_float, high_float) if not negative else (_minus(high_float), _minus(low_float))
        if far is not None and (far < 0 or (negative and far <= 0)):
            continue
        if near is not None and near == math.inf:
            continue
        within = Between(
            _decimal(near) if near is not None and near > 0 else Decimal(0), None if far is None else _decimal(far)
        )
        texts = [decimals(rules, within, fractions, needed=apart) if within.low < _WRITTEN_OUT else None]
        if exponents:
            bounded = within if within.high is not None else within._replace(high=_decimal(_LARGEST))
            texts.append(scientific(rules, bounded))
        found += [f'"-" {text}' if negative else text for text in texts if text]
    return rules.one_of(*found) if found else None


def _minus(bound: float | None) -> float | None:
    return None if bound is None else -bound


def _decimal(number: float) -> Decimal:
    return Decimal(repr(min(abs(number), _LARGEST)))  # of magnitudes only; a zero may have a sign


def _float_above(bound: Exact, is_open: bool) -> float:
    """The smallest float from ``bound`` on.  (Comparisons of int and float are exact in Python.)"""
    found = float(bound)
    while found < bound or (is_open and found == bound):
        found = math.nextafter(found, math.inf)
    before = math.nextafter(found, -math.inf)
    return before if before > bound or (before == bound and not is_open) else found


def _float_below(bound: Exact, is_open: bool) -> float:
    return -_float_above(-bound, is_open)


def _signed(here: Here, low: int | None, high: int | None, fractions: Fractions) -> str | None:
    """Integers within limits."""
    if low is not None and high is not None and low > high:
        return None
    found: list[str] = []
    if high is None or high >= 0:
        within = Between(Decimal(max(low or 0, 0)), None if high is None else Decimal(high))
        found += [text for text in [decimals(here.rules, within, fractions)] if text]
    if low is None or low < 0:
        within = Between(Decimal(max(1, -high) if high is not None else 1), None if low is None else Decimal(-low))
        found += [f'"-" {text}' for text in [decimals(here.rules, within, fractions)] if text]
    return here.rules.one_of(*found) if found else None


# --- multiples ------------------------------------------------------------------------------------


def _common(steps: list[Fraction]) -> Fraction | None:
    """The least common multiple."""
    if not steps:
        return None
    found = steps[0]
    for step in steps[1:]:
        found = Fraction(
            math.lcm(found.numerator * step.denominator, step.numerator * found.denominator),
            found.denominator * step.denominator,
        )
    return found


def _fractions(step: Fraction) -> Fractions | None:
    """The fractions of the multiples of ``step``, if 1 is such a multiple; else None (it would need an automaton of
    whole and fractional digits together)."""
    if step.numerator != 1 or step.denominator > _LARGEST_STEP:
        return None
    for places in range(1, 4):
        if step.denominator == 10**places:
            return Decimals(places)
    texts = [f"{Decimal(n) / Decimal(step.denominator):f}" for n in range(step.denominator)]
    if any(len(text) > FRACTION - 8 for text in texts):
        return None  # a third has no decimal form
    return Listed([text.partition(".")[2].rstrip("0") for text in texts])


def _multiples_between(here: Here, step: int, low: int | None, high: int | None) -> str | None:
    """The rule for multiples of ``step``; None if there is none.

    Raises:
        TooLarge: it would take too much.
    """
    if low is not None and high is not None and (high - low) // step <= _LISTED:
        words = [str(n) for n in range(-(-low // step) * step, high + 1, step)]
        dfa = here.work.once(("words", tuple(words)), lambda work: automata.one_of(work, words))
    else:
        dfa = here.work.once(("multiples", step, low, high), lambda work: _multiples(work, step, low, high))
    return None if dfa.empty else unquoted(here.rules, dfa, "")


def _multiples(work: Work, step: int, low: int | None, high: int | None) -> Dfa:
    zeros = 0
    while step % 10 == 0:  # a zero at the end is one state; ten times the remainders would be many
        step, zeros = step // 10, zeros + 1
    if step > _LARGEST_STEP:
        raise TooLarge("a large step")
    # A state: where the number is, and the zeros at its end so far behind digits that are a multiple.
    begun, sign, zero = ("begun", 0), ("sign", 0), ("zero", 0)
    numbers: dict[tuple[str | int, int], int] = {begun: 0}
    todo: list[tuple[str | int, int]] = [begun]
    edges: list[list[tuple[CharSet, int]]] = []
    accepting: list[bool] = []
    for state in todo:
        work.spend(10)
        at, run = state
        accepting.append(state == zero or (at == 0 and run >= zeros))
        moves: list[tuple[str, tuple[str | int, int]]] = []
        if state == begun:
            moves += [("-", sign), ("0", zero)]
        if state != zero:
            value = at if isinstance(at, int) else 0
            for digit in "0123456789" if isinstance(at, int) else "123456789":
                after = min(run + 1, zeros) if digit == "0" and at == 0 else 0
                moves.append((digit, ((10 * value + int(digit)) % step, after)))
        for _, key in moves:
            if key not in numbers:
                numbers[key] = len(todo)
                todo.append(key)
        edges.append([(chars(c), numbers[key]) for c, key in moves])
    dfa = automata.tidy(work, edges, accepting)
    if low is None and high is None:
        return dfa
    return automata.both(work, dfa, _integers(work, low, high))


def _integers(work: Work, low: int | None, high: int | None) -> Dfa:
    """The texts of the integers within limits."""
    texts = (str(abs(low)) if low is not None else "", str(abs(high)) if high is not None else "")
    start = ("start", 0, 0, 0)
    numbers: dict[tuple[str, int, int, int], int] = {start: 0}
    todo = [start]
    edges: list[list[tuple[CharSet, int]]] = []
    accepting: list[bool] = []
    longest = max(map(len, texts)) + 1

    def within(sign: str, size: int, a: int, b: int) -> bool:
        def order(bound: int, text: str, compared: int) -> int:
            """How the number compares with a limit."""
            if (bound < 0) != (sign == "-"):
                return 1 if bound < 0 else -1
            magnitude = (size > len(text)) - (size < len(text)) or compared
            return -magnitude if sign == "-" else magnitude

        return (low is None or order(low, texts[0], a) >= 0) and (high is None or order(high, texts[1], b) <= 0)

    for state in todo:
        work.spend(10)
        sign, size, a, b = state
        zero = sign == "0"
        accepting.append(size > 0 and within("+" if zero else sign, size, a, b))
        moves: list[tuple[CharSet, int]] = []
        after: list[tuple[str, tuple[str, int, int, int]]] = []
        if sign == "start":
            after.append(("-", ("-", 0, 0, 0)))
        if not zero:
            for digit in "0123456789":
                if size == 0 and digit == "0" and sign == "-":
                    continue
                compared = [
                    c if c or not text or size >= len(text) else (digit > text[size]) - (digit < text[size])
                    for c, text in ((a, texts[0]), (b, texts[1]))
                ]
                kind = "0" if size == 0 and digit == "0" else "+" if sign == "start" else sign
                after.append((digit, (kind, min(size + 1, longest), compared[0], compared[1])))
        for c, key in after:
            if key not in numbers:
                numbers[key] = len(numbers)
                todo.append(key)
            moves.append((chars(c), numbers[key]))
        edges.append(moves)
    return automata.tidy(work, edges, accepting)
