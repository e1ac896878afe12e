"""``--reasoning-parser lfm2_fixed`` on a real server: one command line for models that think and those that do not."""

from __future__ import annotations

from typing import Any

import pytest
from rig import Server

from tests.e2e.test_constrained import calls_of, chat, token
from tests.e2e.test_endpoints import both_ways
from tests.support.endpoints import messages, responses
from tests.support.turns import END, START, both, streamed, wanted, whole

CALL = START + "[bash(command='ls')]" + END
TAGGED = START + "[bash(command='echo \"</think>\" <think>')]" + END
LS: tuple[str, dict[str, Any]] = ("bash", {"command": "ls"})
ECHO: tuple[str, dict[str, Any]] = ("bash", {"command": 'echo "</think>" <think>'})

TURNS: dict[str, tuple[str, str, str, list[tuple[str, dict[str, Any]]]]] = {
    # the model's text; reasoning, content, calls
    "think + call": (f"<think>I should look.</think>\n{CALL}", "I should look.", "", [LS]),
    "no think + call": (CALL, "", "", [LS]),
    "text + call": (f"Let me look.\n{CALL}", "", "Let me look.", [LS]),
    "think straight to a call": (f"<think>I should look. {CALL}", "I should look. ", "", [LS]),
    "tag in an argument": (f"<think>Hm.</think>{TAGGED}", "Hm.", "", [ECHO]),
    "no think + tag in an argument": (TAGGED, "", "", [ECHO]),
    "straight to a tag in an argument": (f"<think>Hm.{TAGGED}", "Hm.", "", [ECHO]),
    "think + text": ("<think>Hm.\n</think>Hello.", "Hm.\n", "Hello.", []),
    "text": ("Hello, I write <think> and </think>.", "", "Hello, I write <think> and </think>.", []),
    "a thought alone": ("<think>Hm.", "Hm.", "", []),
    "a marker in quotes": (
        f"<think>Calls begin with `{START}`.</think>{CALL}",
        f"Calls begin with `{START}`.",
        "",
        [LS],
    ),
}
SHAPES = pytest.mark.parametrize("name", ["think + call", "text + call", "think + text", "a thought alone"])
"""What the other two APIs turn into items and blocks of their own: a thought, text and calls, each there and not.
Where a thought ends is decided before, in the same way for all three."""


@pytest.mark.parametrize("name", TURNS)
def test_chat(thoughts: Server, name: str) -> None:
    text, reasoning, content, calls = TURNS[name]
    turn = both(thoughts, text)
    assert (turn.reasoning, turn.content, turn.calls) == (reasoning, content, wanted(*calls))
    assert turn.finish_reason == ("tool_calls" if calls else "stop")


@pytest.mark.parametrize("name", ["think + call", "think + text", "text"])
def test_without_tools(thoughts: Server, name: str) -> None:
    text, reasoning, content, calls = TURNS[name]
    turn = both(thoughts, text, tools=None, tool_choice=None)
    assert (turn.reasoning, turn.calls) == (reasoning, [])
    assert turn.content == (content if not calls else "\n[bash(command='ls')]")


def test_cut_in_the_thought(thoughts: Server) -> None:
    """By ``max_tokens``: what there is of the thought, and neither content nor a call."""
    text = "<think>" + "Let me see. " * 30
    turn = both(thoughts, text, max_tokens=40)
    assert turn.finish_reason == "length"
    assert turn.reasoning and text.removeprefix("<think>").startswith(turn.reasoning)
    assert (turn.content, turn.calls) == ("", [])


def test_several_choices(thoughts: Server) -> None:
    text, reasoning, _, calls = TURNS["think + call"]
    for turns in (streamed(thoughts, text, n=2, temperature=1.0), whole(thoughts, text, n=2, temperature=1.0)):
        assert [turn.reasoning for turn in turns] == [reasoning] * 2
        assert [turn.calls for turn in turns] == [wanted(*calls)] * 2


@SHAPES
@both_ways
def test_responses(thoughts: Server, name: str, stream: bool) -> None:
    text, reasoning, content, calls = TURNS[name]
    turn = responses(thoughts, text, stream=stream)
    assert (turn.reasoning, turn.content, turn.calls) == (reasoning, content, wanted(*calls))


@SHAPES
@both_ways
def test_messages(thoughts: Server, name: str, stream: bool) -> None:
    text, reasoning, content, calls = TURNS[name]
    turn = messages(thoughts, text, stream=stream)
    assert (turn.reasoning, turn.content, turn.calls) == (reasoning, content, wanted(*calls))
    assert turn.finish_reason == ("tool_use" if calls else "end_turn")


def bias(server: Server, **weights: int) -> dict[str, int]:
    """``logit_bias`` for the two tags."""
    return {
        str(token(server, {"open": "<think>", "close": "</think>"}[name])): weight for name, weight in weights.items()
    }


def test_a_grammar_holds_from_the_first_token_on(thoughts: Server) -> None:
    """Without a thought: the model has no choice but to call, whatever it is pushed to."""
    for n in range(5):
        message = chat(
            thoughts, n, tool_choice="required", parallel_tool_calls=False, logit_bias=bias(thoughts, close=100)
        )
        assert len(calls_of(message)) == 1
        assert not message["content"] and not message["reasoning"]


def test_a_grammar_lets_a_thought_through(thoughts: Server) -> None:
    """And holds behind it."""
    text, reasoning, _, calls = TURNS["think + call"]
    turn = both(thoughts, text, tool_choice="required")
    assert (turn.reasoning, turn.calls) == (reasoning, wanted(*calls))
    for n in range(5):
        message = chat(
            thoughts,
            n,
            tool_choice="required",
            parallel_tool_calls=False,
            logit_bias=bias(thoughts, open=50, close=100),
        )
        assert len(calls_of(message)) == 1
        assert not message["content"]
