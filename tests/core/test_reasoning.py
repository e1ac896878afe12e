"""Thoughts told apart from what is said, for every cutting."""

from __future__ import annotations

import re
import tracemalloc
from collections.abc import Iterable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lfm2_fixed.core.reasoning import ReasoningSplitter
from tests.support.examples import SOME

S, E = "<|tool_call_start|>", "<|tool_call_end|>"
CALL = f'{S}[f(a="</think><think>")]{E}'


def split(pieces: Iterable[str], **options: bool) -> tuple[str, str]:
    splitter = ReasoningSplitter((S,), **options)
    parts = [*map(splitter.feed, pieces), splitter.finish()]
    return "".join(part[0] for part in parts), "".join(part[1] for part in parts)


ROWS = [
    ("", ("", "")),
    (" \n", ("", " \n")),
    ("Hello.", ("", "Hello.")),
    ("a <think>b</think>", ("", "a <think>b</think>")),
    (" <thin", ("", " <thin")),
    (" <thing>", ("", " <thing>")),
    ("</think>a", ("", "</think>a")),
    (CALL, ("", CALL)),
    (" \n" + CALL, ("", " \n" + CALL)),
    ("<think>hm</think>", ("hm", "")),
    ("<think></think>x", ("", "x")),
    ("<think>\n a \n</think>\n\nb \n", ("\n a \n", "\n\nb \n")),
    ("\n <think>a</think>b", ("a", "b")),
    ("<think>hm</think>\n" + CALL, ("hm", "\n" + CALL)),
    ("<think>hm\n" + CALL, ("hm\n", CALL)),
    (f"<think>hm {CALL}</think>b", ("hm ", CALL + "</think>b")),
    ("<think>" + CALL, ("", CALL)),
    ("<think>cut ", ("cut ", "")),
    ("<think>cut </thin", ("cut </thin", "")),
    ("<think>cut <|tool_call_st", ("cut <|tool_call_st", "")),
    ("<think>cut " + S, ("cut ", S)),
    (f"<think>cut `{S}", (f"cut `{S}", "")),
    (f"<think>write `{S}` and '{S}', \"{S}\".</think>b", (f"write `{S}` and '{S}', \"{S}\".", "b")),
    (f"<think>write `{S}[f()]{E}`", ("write `", f"{S}[f()]{E}`")),
    (f"<think>write '{S}\"", ("write '", f'{S}"')),
    ("<think>a<b></thin</think>x</think>", ("a<b></thin", "x</think>")),
    ("<think>a<think>b</think>c", ("a<think>b", "c")),
    (f"<think>a {E} b</think>c", (f"a {E} b", "c")),
]
BY_ROW = pytest.mark.parametrize(("text", "want"), ROWS, ids=range(len(ROWS)))


@BY_ROW
def test_rows(text: str, want: tuple[str, str]) -> None:
    assert split([text]) == want
    assert split(text) == want
    for at in range(len(text)):
        assert split([text[:at], "", text[at:]]) == want


@BY_ROW
def test_inside(text: str, want: tuple[str, str]) -> None:
    """Where the prompt ends with the tag, the text after it means the same; the tag once more is forgiven."""
    if text.lstrip().startswith("<think>"):
        assert split(text, inside=True) == split(text.lstrip().removeprefix("<think>"), inside=True) == want


@pytest.mark.parametrize(
    ("text", "want"),
    [
        ("\n a  b \n</think>\n\n c ", ("a  b", "c ")),
        ("a</think> \n", ("a", "")),
        ("cut \n", ("cut", "")),
        (" \n", ("", "")),
        (f"a \n{CALL}", ("a", CALL)),
        ("a \n<b \n\n</think>", ("a \n<b", "")),
    ],
)
def test_trimmed(text: str, want: tuple[str, str]) -> None:
    for before in ("", "<think>", " \n<think>"):
        for pieces in ([before + text], before + text):
            assert split(pieces, inside=not before, trim=True) == want
    assert split(" \n x ", trim=True) == ("", " \n x "), "without a tag the text is as it is"


def oracle(text: str, *, inside: bool) -> tuple[str, str]:
    """The same in two regular expressions over the whole text."""
    body = text.lstrip(" \t\r\n\f")
    if body.startswith("<think>"):
        body = body[len("<think>") :]
    elif inside:
        body = text
    else:
        return "", text
    marker = re.escape(S)
    quoted = "|".join(f"(?<={quote}){marker}(?={quote})" for quote in "\"'`")
    cut = rf"(?<=[\"'`]){marker}\Z"
    end = re.search(rf"</think>|(?!{quoted}|{cut}){marker}", body)
    if end is None:
        return body, ""
    return body[: end.start()], body[end.end() if end[0] == "</think>" else end.start() :]


PIECES = ["<think>", "</think>", S, E, f"`{S}`", "<", "</", "think>", "<|tool", "'", '"', "`", " ", "\n", "a"]
TEXTS = st.builds(
    "{}{}".format, st.sampled_from(["", "<think>", "\n<think>"]), st.lists(st.sampled_from(PIECES)).map("".join)
)


@st.composite
def cut_texts(draw: st.DrawFn) -> tuple[str, list[str]]:
    """A text, and the pieces of it."""
    text = draw(TEXTS)
    at = sorted(draw(st.lists(st.integers(0, len(text)), max_size=12)))
    return text, [text[start:end] for start, end in zip([0, *at], [*at, len(text)])]


@SOME
@given(cut_texts(), st.booleans(), st.booleans())
def test_any_cutting(cut: tuple[str, list[str]], inside: bool, trim: bool) -> None:
    text, pieces = cut
    want = oracle(text, inside=inside)
    whole = split([text], inside=inside, trim=trim)
    assert split(pieces, inside=inside, trim=trim) == split(text, inside=inside, trim=trim) == whole
    if not trim:
        assert whole == want
    elif want == ("", text):
        assert whole[1] in (text, text.lstrip(" \t\r\n\f"))
    else:
        assert (whole[0], whole[1].lstrip()) == (want[0].strip(), want[1].lstrip())


@SOME
@given(TEXTS, st.booleans())
def test_nothing_is_held_longer_than_it_may_be_a_tag(text: str, inside: bool) -> None:
    splitter = ReasoningSplitter((S,), inside=inside)
    sent = ""
    for at, char in enumerate(text, 1):
        sent += "".join(splitter.feed(char))
        held = "".join(split([text[:at]], inside=inside))[len(sent) :]
        if sent or not "<think>".startswith(held.lstrip()):
            assert "</think>".startswith(held) or S.startswith(held), (text[:at], held)


def test_a_thought_comes_as_it_is_written() -> None:
    splitter = ReasoningSplitter((S,))
    said = [splitter.feed(piece) for piece in (" ", "<think>", "a", " ", "<", "d", "</think>", "e", " ")]
    assert said == [("", ""), ("", ""), ("a", ""), (" ", ""), ("", ""), ("<d", ""), ("", ""), ("", "e"), ("", " ")]
    assert splitter.ended
    splitter = ReasoningSplitter((S,))
    assert splitter.feed("N") == ("", "N") and splitter.ended, "no tag: said at once"


def allocated(pieces: Iterable[str], **options: bool) -> int:
    """Bytes that each piece had allocated at its peak beyond what it found, summed over the pieces."""
    splitter = ReasoningSplitter((S,), **options)
    total = 0
    tracemalloc.start()
    try:
        for piece in pieces:
            found = tracemalloc.get_traced_memory()[0]
            tracemalloc.reset_peak()
            splitter.feed(piece)
            total += tracemalloc.get_traced_memory()[1] - found
    finally:
        tracemalloc.stop()
    return total


@pytest.mark.parametrize("trim", [False, True])
@pytest.mark.parametrize("inside", [False, True])
@pytest.mark.parametrize("head", ["", "<think>", "<think>a", "<think>a</think>", "<think>a</think>b"])
@pytest.mark.parametrize("unit", ["\n", "a", "<", "`<|tool_call_start|>`"])
def test_linear(head: str, unit: str, inside: bool, trim: bool) -> None:
    """Three times as many deltas take three times the work, also of blanks alone: what is held is never copied."""
    little, more = (allocated([head, *[unit] * count], inside=inside, trim=trim) for count in (1_000, 9_000))
    assert more < 12 * max(little, 1_000 * 100)
