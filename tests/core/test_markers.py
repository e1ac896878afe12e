"""Markers reach nobody who did not ask: against the plain definition, in every dialect and every cutting."""

from __future__ import annotations

import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lfm2_fixed.core.dialects import DIALECTS
from lfm2_fixed.core.sentinels import PlainText
from tests.support.examples import SOME
from tests.support.harness import every, random_cut, stream, whole

DIALECT = st.sampled_from(sorted(DIALECTS))
# No bracket: with none of them no block begins, except for one with a name and a parenthesis.
WORDS = ["a", "Done.", " ", "\n", "'", '"', "`", "```", "f (", "# x", "1, 2", "\\", "<", "<|", "|>", "é", ")", "]", "}"]


def text_of(dialect: str, picks: list[int]) -> str:
    """A text of words and markers, some of these cut short, with no marker at its end."""
    markers = DIALECTS[dialect].markers
    parts = [*WORDS, *markers * 3, *(marker[:-2] for marker in markers), *(marker[:3] for marker in markers)]
    # A marker and blanks at the end of a turn are a block cut off.
    return "".join(parts[pick % len(parts)] for pick in picks) + "."


def without_markers(dialect: str, text: str) -> str:
    """``text`` less the markers that are not between two of one quote."""
    result, at = "", 0
    while at < len(text):
        marker = next((marker for marker in DIALECTS[dialect].markers if text.startswith(marker, at)), "")
        before, after = text[at - 1 : at] if at else "", text[at + len(marker) : at + len(marker) + 1]
        if marker and not (before == after and before in ("'", '"', "`")):
            at += len(marker)
        else:
            result += marker or text[at]
            at += len(marker) or 1
    return result


PICKS = st.lists(st.integers(0, 10**6), max_size=14)


@SOME
@given(DIALECT, PICKS, st.integers(0, 2**32))
def test_text_without_blocks(dialect: str, picks: list[int], seed: int) -> None:
    """Every marker that belongs to no block is left out as if it was not there; nothing else is."""
    text = text_of(dialect, picks)
    want = ([], without_markers(dialect, text))
    assert whole(text, dialect) == want
    for pieces in (every(text, 1), random_cut(text, random.Random(seed))):
        assert stream(pieces, dialect).completed == want, pieces


@SOME
@given(DIALECT, PICKS, st.integers(0, 2**32))
def test_who_asks_for_special_tokens_gets_the_text(dialect: str, picks: list[int], seed: int) -> None:
    """With none to be hidden, a text without blocks is itself."""
    text = text_of(dialect, picks)
    for pieces in ([text], every(text, 1), random_cut(text, random.Random(seed))):
        assert stream(pieces, dialect, special_tokens=()).completed == ([], text), pieces


@SOME
@given(DIALECT, PICKS, st.integers(0, 2**32))
def test_where_no_call_may_come(dialect: str, picks: list[int], seed: int) -> None:
    """Plain text leaves out the same markers, and it does so around what would be a block, too."""
    row = DIALECTS[dialect]
    text = text_of(dialect, picks) + f"{row.start}[f(x='{row.start}')]{row.ends[0]}"
    for pieces in ([text], every(text, 1), random_cut(text, random.Random(seed))):
        plain = PlainText((), row.markers)
        assert "".join(map(plain.feed, pieces)) + plain.finish() == without_markers(dialect, text), pieces


@pytest.mark.parametrize("dialect", sorted(DIALECTS))
def test_a_marker_is_held_until_its_quote_is_known(dialect: str) -> None:
    """No longer than for one more character, and only behind a quote."""
    start = DIALECTS[dialect].start
    for before, after, parts in [
        ("`", "`", ["See `", "", f"{start}`"]),
        ("`", "?", ["See `", "", "?"]),
        ("'", '"', ["See '", "", '"']),
        ("x", "`", ["See x", "", "`"]),
    ]:
        seen: list[str] = []
        stream(
            [f"See {before}", start, after],
            dialect,
            watch=lambda turn, events, piece, seen=seen: seen.append("".join(e.text for e in events)),
        )
        assert seen[:3] == parts


@pytest.mark.parametrize("dialect", sorted(DIALECTS))
def test_the_own_end_of_a_block_is_no_text(dialect: str) -> None:
    """Also for those who asked for special tokens: a block takes both its markers along."""
    row = DIALECTS[dialect]
    block = f"{row.start}[f(x=1)]"
    calls = [("f", '{"x": 1}')]
    for text, content in [
        (f"{block}{row.ends[0]} ok", "ok"),
        (f"{block} ok {row.ends[0]}", "ok"),
        (f"{block} ok {row.ends[0]} and {row.ends[0]}", f"ok  and {row.ends[0]}"),
        (f"{row.start}[1]{row.ends[0]} {block}{row.ends[0]}", f"{row.start}[1]{row.ends[0]}"),
    ]:
        for pieces in ([text], every(text, 1)):
            assert stream(pieces, dialect, special_tokens=()).completed == (calls, content)
