"""``llama4_pythonic_fixed`` with a Llama model."""

from __future__ import annotations

import pytest
from rig import Server

from lfm2_fixed.repro.families import FAMILIES
from lfm2_fixed.repro.turns import Payload
from tests.support.turns import Turn, at_once, both, check_payload, streamed, wanted, whole

CALL = '[get_weather(city="San (F)", days=2), write(path="a", content="{\\"k\\": \\"]\\"}")]'
CALLS = wanted(("get_weather", {"city": "San (F)", "days": 2}), ("write", {"path": "a", "content": '{"k": "]"}'}))


@pytest.mark.parametrize("payload", [p for p in FAMILIES if p.dialect == "llama4"], ids=lambda payload: payload.id)
def test_payload(llama4: Server, payload: Payload) -> None:
    check_payload(llama4, payload)


@pytest.mark.parametrize(
    "script",
    [
        f"<|python_start|>{CALL}<|python_end|>",
        f"<|python_start|>{CALL}<|python_end|><|eom|>",
        f"{CALL}<|eom|>",
        f"\n\n{CALL}<|eot|>",
    ],
)
def test_markers(llama4: Server, script: str) -> None:
    turn = both(llama4, script)
    assert (turn.calls, turn.content, turn.finish_reason) == (CALLS, "", "tool_calls")


@pytest.mark.parametrize(
    "text", ["[1, 2, 3]", "[docs](https://x) say so.", '{"name": "f"}', "[get_wea", "Use `[bash()]`."]
)
def test_text(llama4: Server, text: str) -> None:
    turn = both(llama4, text)
    assert (turn.calls, turn.content, turn.finish_reason) == ([], text, "stop")


def test_tool_choice_none(llama4: Server) -> None:
    turn = both(llama4, f"<|python_start|>{CALL}<|python_end|>", tool_choice="none")
    assert (turn.calls, turn.content) == ([], CALL)


def test_tool_choice_required(llama4: Server) -> None:
    turn = both(llama4, '[get_weather(city="San (F)", days=2)]', tool_choice="required")
    assert (turn.calls, turn.content) == (CALLS[:1], "")


def test_length_cuts(llama4: Server) -> None:
    def cut(length: int) -> tuple[Turn, Turn]:
        [stream] = streamed(llama4, CALL, max_tokens=length)
        [answer] = whole(llama4, CALL, max_tokens=length)
        return stream, answer

    counts = []
    for stream, answer in at_once(cut, range(1, 60, 3)):
        assert answer.calls == CALLS[: len(answer.calls)]
        assert stream.calls[: len(answer.calls)] == answer.calls
        assert stream.content == answer.content
        counts.append(len(answer.calls))
    assert counts == sorted(counts) and set(counts) == {0, 1, 2}
