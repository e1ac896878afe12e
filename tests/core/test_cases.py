"""Every case of ``cases.jsonl``: whole, and streamed in many cuttings, compared byte for byte."""

from __future__ import annotations

import json
import random
from typing import Any

import pytest

from tests.support.cases import CASES, each, expected, tools_of
from tests.support.harness import cut_at, every, random_cut, read_object, stream, whole, with_empties

BY_ID = each(CASES)


def cuttings(text: str) -> list[list[str]]:
    """Whole, single characters, small steps, every two pieces, random ones, and with empty deltas."""
    result = [[text], with_empties([text]), with_empties(every(text, 1))]
    result += [every(text, size) for size in (1, 2, 3, 5, 7, 16)]
    result += [cut_at(text, [position]) for position in range(1, len(text))]
    rng = random.Random(text.encode("utf-8", "surrogatepass"))
    result += [random_cut(text, rng) for _ in range(10)]
    return result


def test_the_file_is_whole() -> None:
    """Ids are unique and the file is not a stub."""
    ids = [case["id"] for case in CASES]
    assert len(ids) == len(set(ids)) and len(ids) > 800


@BY_ID
def test_case(case: dict[str, Any]) -> None:
    """All that is asked of a case; one item, since what pytest takes for four is a fifth of the whole."""
    same_whole_and_streamed(case)
    same_in_call_mode(case)
    if can_be_followed(case):
        same_where_a_block_follows(case)


def same_whole_and_streamed(case: dict[str, Any]) -> None:
    """Whole, and streamed in every cutting: the same calls and content, and the same unfinished calls."""
    want = expected(case)
    assert whole(case["input"], case["format"], tools_of(case)) == want
    first = None
    for pieces in cuttings(case["input"]):
        turn = stream(pieces, case["format"], tools_of(case))
        assert turn.completed == want, pieces
        if first is None:
            first = turn
            for _, arguments in turn.calls:
                read_object(arguments)
        assert turn.started == first.started, pieces
    assert first is not None
    unfinished = [call for call in first.started if call.state != "complete"]
    if case.get("no_trace"):
        assert unfinished == []
    if case.get("stream_incomplete"):
        assert [call.state for call in unfinished] == ["cut"]
        assert first.started[-1] is unfinished[0]
        with pytest.raises(ValueError):
            json.loads(unfinished[0].arguments)


def same_in_call_mode(case: dict[str, Any]) -> None:
    """``mode="call"``: the same results, each call in one piece, nothing unfinished ever shown."""
    for pieces in ([case["input"]], every(case["input"], 1), every(case["input"], 4)):
        turn = stream(pieces, case["format"], tools_of(case), mode="call")
        assert turn.completed == expected(case)
        assert all(call.state == "complete" for call in turn.started)


def can_be_followed(case: dict[str, Any]) -> bool:
    """Whether it says the same with more text behind it: the others are about the very end of the text."""
    return case["format"] == "lfm2" and not case.get("stream_incomplete") and not case["id"].startswith("cut/")


def same_where_a_block_follows(case: dict[str, Any]) -> None:
    """One more block after the text: its call is read, and what came before keeps its meaning."""
    text = case["input"]
    extra = '<|tool_call_start|>[tail(q="it", n=[1])]<|tool_call_end|>'
    calls, _ = expected(case)
    want = [*calls, ("tail", '{"q": "it", "n": [1]}')]
    assert whole(text + extra, "lfm2", tools_of(case))[0] == want
    assert stream(every(text + extra, 1), "lfm2", tools_of(case)).calls == want
