"""Every case of ``cases.jsonl`` through ``Parser.parse`` and ``Parser.parse_delta``."""

from __future__ import annotations

import json
import random
from typing import Any

import pytest

from lfm2_fixed.core.tools import functions
from tests.support import served
from tests.support.cases import CASES, each

# A detokenizer gives no lone surrogates, and UTF-8 cannot carry them.
SERVED = [case for case in CASES if not any("\ud800" <= char <= "\udfff" for char in case["input"])]
BY_ID = each(SERVED)


def tools_of(case: dict[str, Any]) -> list[dict[str, Any]]:
    """The case's tools; a tool that no case calls where it declares none, since vLLM needs one."""
    declared = functions(case.get("tools") or {"unrelated-tool": []})
    return [served.tool(function.name, **function.schema) for function in declared]


def expected(case: dict[str, Any]) -> served.ToolCalls:
    return [(call["name"], json.dumps(call["arguments"], ensure_ascii=False)) for call in case["calls"]]


def complete(calls: served.ToolCalls) -> served.ToolCalls:
    """The calls whose arguments are whole: what a stream shows of the others stays unterminated."""

    def is_json(text: str) -> bool:
        try:
            json.loads(text)
        except ValueError:
            return False
        return True

    return [call for call in calls if is_json(call[1])]


def cuttings(text: str) -> list[list[str]]:
    """Single characters, four random cuts, all at once, and all at once before an empty end.

    The parser behind the serving layer has been fed in every other way where it is tested by itself.
    """
    rng = random.Random(len(text))
    edges = [0, *sorted(rng.randrange(len(text) + 1) for _ in range(4)), len(text)]
    return [list(text), [text[start:end] for start, end in zip(edges, edges[1:])], [text], [text, ""]]


@BY_ID
def test_case(case: dict[str, Any], monkeypatch: pytest.MonkeyPatch) -> None:
    """Whole and streamed, by both APIs, behind a reasoning parser, and call by call."""
    dialect, tools = case["format"], tools_of(case)
    chat, responses = (served.adjusted(api(tools), dialect) for api in (served.chat, served.responses))
    reasoned = served.adjusted(served.chat(tools), dialect, "qwen3")

    for request, reasoning, before in ((chat, None, ""), (reasoned, "qwen3", "<think>hm</think>")):
        turn = served.whole(before + case["input"], request, dialect, reasoning)
        assert turn.calls == expected(case)
        # vLLM makes content of blanks alone null beside calls, and the reasoning parser trims.
        assert turn.content.strip() == case["content"].strip()
        if turn.content.strip() and reasoning is None:
            assert turn.content == case["content"]
        assert len(set(turn.ids)) == len(turn.calls)
        assert all(call_id.startswith("chatcmpl-tool-") for call_id in turn.ids)

    for number, pieces in enumerate(cuttings(case["input"])):
        turn = served.streamed(pieces, (chat, responses)[number % 2], dialect)
        assert complete(turn.calls) == expected(case), pieces
        assert turn.content == case["content"], pieces
        assert len(set(turn.ids)) == len(turn.calls)
        if case.get("no_trace"):
            assert turn.calls == complete(turn.calls)
        if case.get("stream_incomplete"):
            assert len(turn.calls) == len(expected(case)) + 1

    # Behind a reasoning parser, whatever it hands over.
    turn = served.streamed(["<think>", "let me ", "see", "</think>", *case["input"]], reasoned, dialect, "qwen3")
    assert turn.reasoning == "let me see"
    assert complete(turn.calls) == expected(case)
    assert turn.content == case["content"]

    # ``LFM2_FIXED_STREAM=call``: each call in one delta, nothing unfinished.
    monkeypatch.setenv("LFM2_FIXED_STREAM", "call")
    turn = served.streamed(list(case["input"]), chat, dialect)
    assert turn.calls == expected(case)
    assert turn.content == case["content"]
    assert sum(len(chunk.get("tool_calls", ())) for chunk in turn.chunks) == len(turn.calls)
