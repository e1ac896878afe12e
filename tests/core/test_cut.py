"""A turn that ended inside a call says so, however it came and whatever of the call was sent (contract 3.1)."""

from __future__ import annotations

from typing import Literal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lfm2_fixed import PythonicStream
from tests.support.examples import SOME
from tests.support.harness import random_cut

S, E = "<|tool_call_start|>", "<|tool_call_end|>"
CALL = "add(a=1)"


def is_cut(pieces: list[str], mode: Literal["delta", "call"] = "delta") -> bool:
    stream = PythonicStream("lfm2", {"add": ["a"]}, mode=mode)
    for piece in pieces:
        stream.feed(piece)
    stream.finish()
    return stream.cut


CUT = [f"{S}[ad", f"{S}[add(", f"{S}[add(a=", f"{S}[add(a=1", f"{S}[add(a='x", f"{S}[{CALL}, b", f'{S}{{"name": "add"']
WHOLE = ["", "text", S, f"{S}[", f"{S}[{CALL}", f"{S}[{CALL}]", f"{S}[{CALL}]{E}", f"{S}[{CALL},", f"{S}[add(a=foo())"]
"""The contract counts a complete call whose list is not; and what no call has begun in is no cut call."""


@pytest.mark.parametrize("mode", ["delta", "call"])
@pytest.mark.parametrize("text, cut", [*((text, True) for text in CUT), *((text, False) for text in WHOLE)])
def test_cut_turns(text: str, cut: bool, mode: Literal["delta", "call"]) -> None:
    assert is_cut([text], mode) is is_cut(list(text), mode) is cut
    assert is_cut([f"{S}[{CALL}]{E}", text], mode) is cut
    if text.startswith(S):
        assert not is_cut([text, E], mode), "a block that has its end is not cut"


@SOME
@given(
    st.lists(st.sampled_from([S, E, "[", "]", "add(", "a=", "1", "'", ")", ",", " ", "x"]), max_size=15).map("".join),
    st.randoms(use_true_random=False),
    st.sampled_from(["delta", "call"]),
)
def test_no_cutting_changes_it(text: str, rng, mode: Literal["delta", "call"]) -> None:
    assert is_cut(random_cut(text, rng), mode) is is_cut([text], "delta")
