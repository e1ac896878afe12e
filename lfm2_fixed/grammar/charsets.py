"""Sets of characters: sorted, disjoint, inclusive ranges of code points.

Surrogates are code points like all others here, so that the complement of a set needs no special case.  They
are left out where a set is *written* into a grammar, because UTF-8 has none: see ``rules.char_class``.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable

CharSet = tuple[tuple[int, int], ...]

EMPTY: CharSet = ()
ALL: CharSet = ((0, 0x10FFFF),)


def charset(ranges: Iterable[tuple[int, int]]) -> CharSet:
    """The set of the given inclusive ranges, which may overlap."""
    merged: list[tuple[int, int]] = []
    for low, high in sorted(ranges):
        if merged and low <= merged[-1][1] + 1:
            if high > merged[-1][1]:
                merged[-1] = (merged[-1][0], high)
        else:
            merged.append((low, high))
    return tuple(merged)


def chars(text: str) -> CharSet:
    """The set of the characters of ``text``."""
    return charset((ord(c), ord(c)) for c in text)


def union(a: CharSet, b: CharSet) -> CharSet:
    """What is in ``a`` or in ``b``."""
    return charset((*a, *b))


def intersection(a: CharSet, b: CharSet) -> CharSet:
    """What is in both."""
    if a == ALL:
        return b
    if b == ALL:
        return a
    found: list[tuple[int, int]] = []
    i = j = 0
    while i < len(a) and j < len(b):
        low, high = max(a[i][0], b[j][0]), min(a[i][1], b[j][1])
        if low <= high:
            found.append((low, high))
        if a[i][1] < b[j][1]:
            i += 1
        else:
            j += 1
    return tuple(found)


def complement(a: CharSet) -> CharSet:
    """What is not in ``a``."""
    gaps: list[tuple[int, int]] = []
    at = 0
    for low, high in a:
        if at < low:
            gaps.append((at, low - 1))
        at = high + 1
    if at <= 0x10FFFF:
        gaps.append((at, 0x10FFFF))
    return tuple(gaps)


def without(a: CharSet, b: CharSet) -> CharSet:
    """What is in ``a`` and not in ``b``."""
    return intersection(a, complement(b))


def contains(a: CharSet, code: int) -> bool:
    """Whether the code point is in ``a``."""
    at = bisect_right(a, (code, 0x110000)) - 1
    return at >= 0 and a[at][1] >= code
