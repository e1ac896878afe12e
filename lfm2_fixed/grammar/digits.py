"""Decimal numbers between two limits, as rules: digit by digit, deterministic, and exact.

A number is compared with a limit while it is read: its digits so far are less than the limit's, equal to them, or
greater.  Once that is decided for both limits, what is left is a count of any digits.  So a limit of n digits
takes about n rules.  Limits are inclusive here, unsigned and decimal.
"""

from __future__ import annotations

from decimal import ROUND_CEILING, ROUND_FLOOR, Decimal, localcontext
from typing import NamedTuple

from .dfa import one_of
from .quotes import unquoted
from .rules import Rules, literal
from .work import own

WHOLE = 40
"""Digits before the point, unless a limit needs more: a 128-bit integer has 39.  (Floats of more than 17 digits
are written with an exponent.)  Bounded, because a model that repeats itself would write digits for ever."""
FRACTION = 20
"""Digits behind the point: those of the longest float that Python writes without an exponent, 0.000x with 17."""
MANTISSA = 18
"""Digits behind the point of a number with an exponent.  17 digits tell all floats apart."""
SMALLEST, LARGEST = -324, 308
"""Exponents of floats."""

_SMALLEST_FRACTION = "0" * (FRACTION - 1) + "1"
_LESS, _EQUAL, _GREATER = -1, 0, 1


def some_digits(rules: Rules, least: int, most: int) -> str:
    """``least`` to ``most`` digits.

    The optional ones are rules that all numbers share, each with one digit more than the next: as counts in place they
    would be compiled for each place.
    """
    first = "[0-9]" if least == 1 else f"[0-9]{{{least}}}" if least else ""
    return f"{first} {_up_to(rules, most - least)}".strip() if most > least else first or '""'


def _up_to(rules: Rules, most: int) -> str:
    name, new = rules.reserve(("digits", most))
    if new:
        rules.define(name, ['""', f"[0-9] {_up_to(rules, most - 1)}" if most > 1 else "[0-9]"])
    return name


class Between(NamedTuple):
    """Unsigned limits, both inclusive."""

    low: Decimal
    high: Decimal | None


class Fractions:
    """What may follow a number's whole digits: any digits behind a point."""

    limit = FRACTION
    """Digits."""
    whole_only = False

    def any(self, rules: Rules, *, needed: bool) -> str:
        """Any fraction; ``needed``: not none."""
        point = f'"." {some_digits(rules, 1, FRACTION)}'
        return point if needed else f"({point})?"

    def digits(self, at: int) -> str:
        """The digits that may stand at this place behind the point."""
        return "0123456789"

    def tail(self, rules: Rules, at: int) -> str:
        """Any digits from this place on, or none."""
        return some_digits(rules, 0, max(FRACTION - at, 0))


class NoFractions(Fractions):
    """Whole numbers."""

    whole_only = True

    def any(self, rules: Rules, *, needed: bool) -> str:
        return '""'


class Decimals(Fractions):
    """Multiples of 0.1, 0.01, 0.001 …: so many digits, and zeros."""

    def __init__(self, places: int) -> None:
        self._places = places

    def any(self, rules: Rules, *, needed: bool) -> str:
        point = f'"." [0-9]{{1,{self._places}}} "0"{{0,{FRACTION - self._places}}}'
        return point if needed else f"({point})?"

    def digits(self, at: int) -> str:
        return "0123456789" if at < self._places else "0"

    def tail(self, rules: Rules, at: int) -> str:
        if at >= self._places:
            return f'"0"{{0,{max(FRACTION - at, 0)}}}'
        return f'[0-9]{{0,{self._places - at}}} "0"{{0,{FRACTION - self._places}}}'


def decimals(rules: Rules, limits: Between, fractions: Fractions, *, needed: bool = False) -> str | None:
    """The rule for unsigned numbers within ``limits``, without an exponent; None if there is none.

    ``needed``: only those with a point.
    """
    places = 0 if fractions.whole_only else fractions.limit
    low = _rounded(limits.low, places, ROUND_CEILING)
    high = None if limits.high is None else _rounded(limits.high, places, ROUND_FLOOR)
    if high is not None and high < low:
        return None
    return _Decimals(rules, low, high, fractions, needed).start()


def _rounded(number: Decimal, places: int, rounding: str) -> Decimal:
    """The nearest number of so many places on the inner side of a limit: texts have no more places."""
    with localcontext() as context:
        context.prec = 800  # of a float, all digits are wanted: 309 before the point, 324 behind it
        return number.quantize(Decimal(1).scaleb(-places), rounding=rounding)


def _parts(number: Decimal) -> tuple[str, str]:
    whole, _, fraction = f"{number:f}".partition(".")
    return whole, fraction.rstrip("0")


class _Decimals:
    def __init__(self, rules: Rules, low: Decimal, high: Decimal | None, fractions: Fractions, needed: bool) -> None:
        self._rules = rules
        self._fractions = fractions
        self._needed = needed
        self._low, self._low_fraction = _parts(low)
        self._high, self._high_fraction = ("", "") if high is None else _parts(high)
        # Longer numbers than ``WHOLE`` are not written, unless the lower limit asks for them.
        self._open = high is None or len(self._low) <= WHOLE < len(self._high)
        self._longest = max(WHOLE, len(self._low) + (len(self._low) > 1)) if self._open else len(self._high)

    def start(self) -> str | None:
        alternatives = [f'"0" {after}' for after in [self._ended(1, *self._compared("0", 0, 0, 0))] if after]
        alternatives += self._next(0, _EQUAL, _EQUAL, "123456789")
        return self._rules.one_of(*alternatives) if alternatives else None

    def _compared(self, digit: str, at: int, low: int, high: int) -> tuple[int, int]:
        """How the digits compare with those of the limits, one digit on."""
        if low == _EQUAL and at < len(self._low):
            low = (digit > self._low[at]) - (digit < self._low[at])
        elif at >= len(self._low):
            low = _GREATER  # longer than the limit
        if self._open:
            return low, _LESS
        if high == _EQUAL and at < len(self._high):
            high = (digit > self._high[at]) - (digit < self._high[at])
        return low, high

    def _next(self, at: int, low: int, high: int, digits: str) -> list[str]:
        """What begins with one of ``digits`` as the digit number ``at``."""
        if at >= self._longest:
            return []
        groups: dict[tuple[int, int], str] = {}
        for digit in digits:
            key = self._compared(digit, at, low, high)
            groups[key] = groups.get(key, "") + digit
        found: list[str] = []
        for (low, high), group in groups.items():
            if (after := self._after(at + 1, low, high)) is not None:
                found.append(f"[{group[0]}-{group[-1]}] {after}" if len(group) > 1 else f'"{group}" {after}')
        return found

    def _after(self, at: int, low: int, high: int) -> str | None:
        """What may follow ``at`` whole digits."""
        if low != _EQUAL and high != _EQUAL:
            least = max(len(self._low) + (low == _LESS), at) - at
            most = self._longest - (high == _GREATER) - at
            if most < least:
                return None
            rest = self._fractions.any(self._rules, needed=self._needed)
            return f"{some_digits(self._rules, least, most)} {rest}"
        alternatives = [end for end in [self._ended(at, low, high)] if end is not None]
        alternatives += self._next(at, low, high, "0123456789")
        return self._rules.one_of(*alternatives) if alternatives else None

    def _ended(self, at: int, low: int, high: int) -> str | None:
        """What may follow the last whole digit."""
        if at < len(self._low) or (at == len(self._low) and low == _LESS):
            return None
        if not self._open and (at > len(self._high) or (at == len(self._high) and high == _GREATER)):
            return None
        low_fraction = self._low_fraction if at == len(self._low) and low == _EQUAL else None
        equals_high = not self._open and at == len(self._high) and high == _EQUAL
        high_fraction = self._high_fraction if equals_high else None
        if self._fractions.whole_only:
            return None if low_fraction else '""'
        if low_fraction is None and high_fraction is None:
            return self._fractions.any(self._rules, needed=self._needed)
        alternatives = [] if low_fraction or self._needed else ['""']
        if isinstance(self._fractions, Listed):
            listed = self._fractions.within(self._rules, low_fraction or "", high_fraction)
            alternatives += [f'"." {listed}'] if listed else []
        else:
            point = self._fraction(low_fraction or "", high_fraction, 0, _EQUAL, _EQUAL)
            alternatives += [f'"." {point}'] if point else []
        return self._rules.one_of(*alternatives) if alternatives else None

    def _fraction(self, low_digits: str, high_digits: str | None, at: int, low: int, high: int) -> str | None:
        """What may follow ``at`` digits behind the point."""
        if at >= len(low_digits) and low == _EQUAL:
            low = _GREATER  # whatever follows
        if high_digits is None:
            high = _LESS
        if at and low == _GREATER and high == _LESS:
            return self._fractions.tail(self._rules, at)
        if not at and high == _LESS and low_digits == _SMALLEST_FRACTION and type(self._fractions) is Fractions:
            return f'"0"{{0,{FRACTION - 1}}} [1-9] {some_digits(self._rules, 0, FRACTION - 1)}'  # any but zero
        alternatives = ['""'] if at and low == _GREATER else []
        if at < self._fractions.limit:
            groups: dict[tuple[int, int], str] = {}
            for digit in self._fractions.digits(at):
                after_low, after_high = low, high
                if low == _EQUAL:
                    after_low = (digit > low_digits[at]) - (digit < low_digits[at])
                if high == _EQUAL and high_digits is not None:
                    bound = high_digits[at] if at < len(high_digits) else "0"
                    after_high = (digit > bound) - (digit < bound)
                if after_low != _LESS and after_high != _GREATER:
                    groups[after_low, after_high] = groups.get((after_low, after_high), "") + digit
            for (after_low, after_high), group in groups.items():
                rest = self._fraction(low_digits, high_digits, at + 1, after_low, after_high)
                if rest is not None:
                    alternatives.append(f"[{group[0]}-{group[-1]}] {rest}" if len(group) > 1 else f'"{group}" {rest}')
        return self._rules.one_of(*alternatives) if alternatives else None


class Listed(Fractions):
    """Multiples of 0.5, 0.25, 0.05 …: fractions that are listed."""

    def __init__(self, fractions: list[str]) -> None:
        self._fractions = [fraction or "0" for fraction in fractions]

    def any(self, rules: Rules, *, needed: bool) -> str:
        point = f'"." {self.within(rules, "", None)}'
        return point if needed else f"({point})?"

    def within(self, rules: Rules, low: str, high: str | None) -> str | None:
        """The listed fractions within limits, each a fraction's digits."""
        chosen = [
            fraction
            for fraction in self._fractions
            if _at_least(fraction, low) and (high is None or _at_least(high, fraction))
        ]
        if not chosen:
            return None
        words = own(("words", tuple(chosen)), lambda work: one_of(work, chosen))
        return f'{unquoted(rules, words, "")} "0"{{0,{FRACTION - 8}}}'


def _at_least(a: str, b: str) -> bool:
    size = max(len(a), len(b))
    return a.ljust(size, "0") >= b.ljust(size, "0")


# --- exponents ------------------------------------------------------------------------------------


def scientific(rules: Rules, limits: Between) -> str | None:
    """The rule for unsigned numbers with one digit before the point and an exponent; None if there is none."""
    low = None if limits.low == 0 else limits.low.normalize()
    high = limits.high
    if high == 0:
        return None
    return _Scientific(rules, low, high.normalize() if high is not None else None).start()


class _Scientific:
    def __init__(self, rules: Rules, low: Decimal | None, high: Decimal | None) -> None:
        self._rules = rules
        self._low = "" if low is None else "".join(map(str, low.as_tuple().digits))
        self._high = "" if high is None else "".join(map(str, high.as_tuple().digits))
        self._low_exponent = SMALLEST if low is None else low.adjusted()
        self._high_exponent = LARGEST if high is None else high.adjusted()
        self._compared = (_GREATER if low is None else _EQUAL, _LESS if high is None else _EQUAL)

    def start(self) -> str | None:
        return self._after(0, *self._compared)

    def _after(self, at: int, low: int, high: int) -> str | None:
        """What may follow ``at`` digits of the mantissa."""
        if at >= len(self._low) and low == _EQUAL:
            low = _GREATER  # whatever follows
        if at and low != _EQUAL and high != _EQUAL:
            exponent = self._exponent(low, high)
            digits = some_digits(self._rules, 0, max(MANTISSA + 1 - at, 0))
            if at == 1:
                digits = f'("." {some_digits(self._rules, 1, MANTISSA)})?'
            return exponent and f"{digits} {exponent}"
        alternatives: list[str] = []
        if at:  # ended: what is equal so far is less than a limit with more digits
            ended_low = _LESS if low == _EQUAL else low
            ended_high = _EQUAL if high == _EQUAL and at >= len(self._high) else _LESS if high == _EQUAL else high
            if exponent := self._exponent(ended_low, ended_high):
                alternatives.append(exponent)
        more: list[str] = []
        groups: dict[tuple[int, int], str] = {}
        if at <= MANTISSA:
            for digit in "123456789" if at == 0 else "0123456789":
                after_low, after_high = low, high
                if low == _EQUAL:
                    after_low = (digit > self._low[at]) - (digit < self._low[at])
                if high == _EQUAL:
                    bound = self._high[at] if at < len(self._high) else "0"
                    after_high = (digit > bound) - (digit < bound)
                groups[after_low, after_high] = groups.get((after_low, after_high), "") + digit
        for (after_low, after_high), group in groups.items():
            if (rest := self._after(at + 1, after_low, after_high)) is not None:
                more.append(f"[{group[0]}-{group[-1]}] {rest}" if len(group) > 1 else f'"{group}" {rest}')
        if at == 1 and more:
            alternatives.append(f'"." {self._rules.one_of(*more)}')
        else:
            alternatives += more
        return self._rules.one_of(*alternatives) if alternatives else None

    def _exponent(self, low: int, high: int) -> str | None:
        """The exponents that are possible behind a mantissa that compares so with those of the limits."""
        least = self._low_exponent + (low == _LESS)
        most = self._high_exponent - (high == _GREATER)
        least, most = max(least, SMALLEST), min(most, LARGEST)
        if most < least:
            return None
        name, new = self._rules.reserve(("exponent", least, most))
        if not new:
            return name
        signs: list[str] = []
        if most >= 0:
            signs.append(f'"+"? "0"? {self._natural(max(least, 0), most)}')
        if least < 0:
            signs.append(f'"-" "0"? {self._natural(max(1, -most), -least)}')
        self._rules.define(name, [f"[eE] {sign}" for sign in signs])
        return name

    def _natural(self, low: int, high: int) -> str:
        return decimals(self._rules, Between(Decimal(low), Decimal(high)), NoFractions()) or literal("0")
