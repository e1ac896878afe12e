"""The parts that need no connection: thoughts, headers, choices."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lfm2_fixed.core.reasoning import ReasoningSplitter
from lfm2_fixed.proxy.upstream import end_to_end
from lfm2_fixed.wire.request import Choice, choice
from tests.support.harness import random_cut

FEW = settings(max_examples=min(settings().max_examples, 100))


def split(pieces: list[str], *, inside: bool = False) -> tuple[str, str]:
    splitter = ReasoningSplitter(inside=inside, trim=True)
    parts = [*map(splitter.feed, pieces), splitter.finish()]
    return "".join(part[0] for part in parts), "".join(part[1] for part in parts)


@pytest.mark.parametrize(
    "text, expected",
    [
        ("", ("", "")),
        (" \n", ("", " \n")),
        (" <thin", ("", " <thin")),
        (" <thing>", ("", " <thing>")),
        ("a <think>b</think>", ("", "a <think>b</think>")),
        ("\n<think>\n a  b \n</think>\n\n c ", ("a  b", "c ")),
        ("<think></think>x", ("", "x")),
        ("<think>a<b></thin</think>x</think>", ("a<b></thin", "x</think>")),
        ("<think>cut ", ("cut", "")),
        ("<think>cut </thin", ("cut </thin", "")),
        ("<think>a</think> \n", ("a", "")),
        ("<think>a<think>b</think>c", ("a<think>b", "c")),
    ],
)
def test_thoughts(text: str, expected: tuple[str, str]) -> None:
    assert split([text]) == split(list(text)) == expected
    bare = text.lstrip()
    if bare.startswith("<think>"):
        assert split(list(bare.removeprefix("<think>")), inside=True) == expected


@FEW
@given(
    st.lists(st.sampled_from(["<think>", "</think>", "<", "</", "think>", " ", "\n", "a", "b"]), max_size=12).map(
        "".join
    ),
    st.booleans(),
    st.randoms(use_true_random=False),
)
def test_thoughts_survive_any_cutting(text: str, inside: bool, rng) -> None:
    assert split(random_cut(text, rng), inside=inside) == split([text], inside=inside)
    if not inside and not text.lstrip().startswith("<think>"):
        assert split([text]) == ("", text)


def test_a_thought_comes_as_it_is_written() -> None:
    splitter = ReasoningSplitter(trim=True)
    assert [splitter.feed(piece) for piece in ("<think>", "a", "b ", "c", "<", "d", "</think>", "e")] == [
        *[("", ""), ("a", ""), ("b", ""), (" c", ""), ("", ""), ("<d", ""), ("", ""), ("", "e")]
    ]


def test_hop_by_hop_headers() -> None:
    headers = [
        (b"Connection", b"close, X-One"),
        (b"X-One", b"1"),
        (b"X-Two", b"2"),
        (b"Upgrade", b"x"),
        (b"Host", b"h"),
    ]
    assert end_to_end(headers, b"host") == [(b"x-two", b"2")]


@pytest.mark.parametrize(
    "value, expected",
    [
        (None, Choice()),
        ("auto", Choice()),
        ("none", Choice(none=True)),
        ("required", Choice(required=True)),
        ({"type": "function", "function": {"name": "f"}}, Choice(required=True, names=frozenset("f"))),
        ({"type": "function", "name": "f"}, Choice(required=True, names=frozenset("f"))),
        (
            {"type": "allowed_tools", "mode": "required", "tools": [{"type": "function", "name": "f"}]},
            Choice(required=True, names=frozenset("f")),
        ),
        ("any", None),
        (3, None),
        ({"type": "function"}, None),
        ({"type": "allowed_tools", "tools": [{}]}, None),
        ({"type": "allowed_tools"}, None),
        ({"type": "other"}, None),
    ],
)
def test_tool_choice(value: object, expected: Choice | None) -> None:
    assert choice(value) == expected
