"""Requests' JSON, read within bounds of memory and of nesting.

Not for answers: the upstream is our own user's choice, and log probabilities are as dense as what is refused here.
"""

from __future__ import annotations

import json
from typing import Any

FREE_MARKS = 300_000
"""Marks that any text may have.  Their values take some 30 MB at most; the densest of what people send, a
``logit_bias`` for each of 128,000 tokens, has 256,000."""

BYTES_OF_A_MARK = 32
"""A longer text may have one mark (an opening bracket, a comma, a string) for this many of its bytes.

Values are counted by their marks, one to three each.  CPython takes 64 bytes for the two marks of ``[],`` (the list
and the reference to it) and up to 280 for the three of ``{"a":1},``; ``[],[],…`` has two marks in every three bytes.
So with this bound what is read takes at most three times the text's length, beside its strings.
"""


class BadJSON(ValueError):
    """The text is no JSON, or JSON beyond the bounds; the message says which, without quoting it."""


class TooManyValues(BadJSON):
    """The text is small for what it holds."""


class TooDeep(BadJSON):
    """The text is nested deeper than Python's reader follows (1,000 levels; some thousands since 3.12)."""


def read_json(text: bytes) -> Any:
    """The value of a JSON text.  Raises BadJSON.

    Peak memory is bounded by about ten times the text's length, plus 30 MB: one emoji in a string makes CPython
    take four bytes for each of its characters, twice, as the text is decoded first.
    """
    try:
        encoding = json.detect_encoding(text)
        if encoding not in ("utf-8", "utf-8-sig"):
            text = text.decode(encoding).encode()  # as Python's servers would read it; marks are counted in UTF-8
        if len(text) > FREE_MARKS:
            _check(text, max(FREE_MARKS, len(text) // BYTES_OF_A_MARK))
        return json.loads(text)
    except TooManyValues:
        raise
    except RecursionError:
        raise TooDeep("it is nested too deep") from None
    except ValueError:
        raise BadJSON("it is no JSON") from None


def _check(text: bytes, most: int) -> None:
    """Raises TooManyValues for more than ``most`` marks.  Takes time linear in the text, most of it in C."""
    if sum(map(text.count, (b",", b"[", b"{", b'"'))) <= most:
        return  # whether these stand in strings or not, there are no more marks; strings are marked by these, too
    # Escapes begin at the first backslash of a run, so that pairs can be taken out from the left.
    text = text.replace(b"\\\\", b"").replace(b'\\"', b"")
    count = at = 0
    while count <= most:
        quote = text.find(b'"', at)
        end = len(text) if quote < 0 else quote
        count += text.count(b",", at, end) + text.count(b"[", at, end) + text.count(b"{", at, end)
        if quote < 0:
            break
        count += 1  # a string: a value itself, or a key
        close = text.find(b'"', quote + 1)
        if close < 0:
            break  # no JSON, but the reader finds that out at the end only
        at = close + 1
    if count > most:
        raise TooManyValues("it holds too many values for its length")
