"""Upstreams that die: wherever they do, no client takes a part for the whole."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import httpx
import pytest

from tests.support.pairs import Pair, body, chunk, error_of, events, merge, sse

CALLS = "Look: <|tool_call_start|>[bash(command='it\\'s'), add(a=1, b=2)]<|tool_call_end|> done"
WHOLE = {"calls": [("bash", '{"command": "it\'s"}'), ("add", '{"a": 1, "b": 2}')], "content": "Look:\ndone"}
DELTAS = [{"role": "assistant", "content": ""}, *(CALLS[at : at + 9] for at in range(0, len(CALLS), 9))]
STREAM = "".join(sse(*map(chunk, DELTAS), chunk({}, "stop"))["raw"])
LAST = STREAM.index('"finish_reason": "stop"') + len('"finish_reason": "stop"}]}')
"""Where the finish reason has come: what breaks behind this has said all that it had to say."""

CHAT = "/v1/chat/completions"


def cuts(text: str, step: int) -> list[int]:
    """Where to cut: everywhere at the end, and every ``step`` bytes before."""
    return sorted({*range(1, len(text), step), *range(LAST - 40, len(text))})


def is_prefix(merged: dict[str, Any]) -> None:
    """What a client has is the beginning of the whole answer."""
    assert WHOLE["content"].startswith(merged["content"])
    for number, (name, arguments) in enumerate(merged["calls"]):
        assert name == WHOLE["calls"][number][0] and WHOLE["calls"][number][1].startswith(arguments)


@pytest.mark.parametrize("die", [True, False], ids=["the connection breaks", "the body ends"])
def test_a_stream_read_here_that_is_cut_anywhere(parse: Pair, die: bool) -> None:
    for cut in cuts(STREAM, 31):
        script = {"raw": [STREAM[:cut]], "headers": {"content-type": "text/event-stream"}}
        received = list(events(parse.ask({**script, **({"die": 1} if die else {})}, stream=True).content))
        chunks = [event for event in received if isinstance(event, dict) and "error" not in event]
        merged = merge(chunks).get(0)
        if received[-1] == "[DONE]":
            assert cut >= LAST and merged is not None
            assert {key: merged[key] for key in WHOLE} == WHOLE and merged["finish_reason"] == "tool_calls"
            # A connection that breaks is no end of a stream, unless the stream has said that it ended.
            assert not die or "[DONE]" in STREAM[:cut]
        else:
            assert error_of(received)["type"] == "upstream_error"
            assert cut < len(STREAM) - 1 or (die and cut < len(STREAM))
            if merged is not None:
                is_prefix(merged)


def test_the_last_event_needs_no_blank_line(parse: Pair) -> None:
    for end in ("", "\n", "\r", "\n\n"):
        script = sse(chunk(CALLS), done=False)
        script["raw"].append(f"data: {json.dumps(chunk({}, 'stop'))}{end}")
        merged = parse.merged(script)[0]
        assert (merged["calls"], merged["finish_reason"]) == (WHOLE["calls"], "tool_calls")


@pytest.mark.parametrize("kind", ["parse", "buffer"])
def test_a_whole_answer_that_is_cut_anywhere(kind: str, parse: Pair, buffer: Pair) -> None:
    pair = parse if kind == "parse" else buffer
    reply = {
        "object": "chat.completion",
        "choices": [{"index": 0, "message": {"role": "assistant", "content": CALLS}, "finish_reason": "stop"}],
    }
    text = json.dumps(reply)
    for cut in range(1, len(text), 7):
        for script in ({"raw": [text[:cut]], "die": 1}, {"raw": [text[:cut]]}):
            for stream in (True, False):
                answer = pair.ask(script, stream=stream)
                if answer.status_code == 200:
                    assert error_of(list(events(answer.content)))
                else:
                    assert answer.status_code == 502 and answer.json()["error"]


def broken(pair: Pair, path: str, content: Any) -> bytes:
    """What arrives of an answer that must not be complete."""
    received = b""
    with (
        pytest.raises(httpx.RemoteProtocolError, match="incomplete"),
        pair.client.stream("POST", path, json=content) as answer,
    ):
        for piece in answer.iter_raw():
            received += piece
    return received


@pytest.mark.parametrize("mode", ["parse", "buffer"])
def test_a_stream_that_passes_is_cut_where_the_upstream_cut_it(start: Callable[..., Pair], mode: str) -> None:
    pair = start(mode=mode)
    for cut in range(1, len(STREAM), 97):
        script = {"raw": [STREAM[:cut]], "die": 1, "headers": {"content-type": "text/event-stream"}}
        assert broken(pair, CHAT, body(script, stream=True, tools=[])) == STREAM[:cut].encode()
    whole = {"raw": [STREAM], "headers": {"content-type": "text/event-stream"}}
    assert pair.ask(whole, stream=True, tools=[]).text == STREAM


def test_a_stream_that_passes_is_cut_at_the_read_timeout(start: Callable[..., Pair]) -> None:
    pair = start(read_timeout=0.3)
    script = {"raw": [STREAM[:200], "never"], "pause": 3600, "headers": {"content-type": "text/event-stream"}}
    assert broken(pair, CHAT, body(script, stream=True, tools=[])) == STREAM[:200].encode()


def test_a_fault_of_ours_in_a_stream_does_not_end_it_well(start: Callable[..., Pair], monkeypatch: Any) -> None:
    def fail(*_: Any) -> None:
        raise KeyError

    pair = start()
    monkeypatch.setattr("lfm2_fixed.proxy.modes.ChunkTranslator.translate", fail)
    assert error_of(pair.stream("Hello"))["type"] == "internal_error"
