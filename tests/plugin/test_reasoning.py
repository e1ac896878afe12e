"""Behind reasoning parsers: those of the new kind, and those that make vLLM accumulate the text."""

from __future__ import annotations

import pytest

from tests.support import served
from tests.support.served import E, S

TEXT = f'One.{S}[get_weather(city="Paris"), get_weather(city="Rome")]{E}Two.'
CALLS = [("get_weather", '{"city": "Paris"}'), ("get_weather", '{"city": "Rome"}')]
THOUGHTS = f"hm {S}[get_weather(city='no')]{E}"  # a call that is only thought of is none
PARSERS = pytest.mark.parametrize("reasoning", ["qwen3", "deepseek_r1"])


@PARSERS
@pytest.mark.parametrize("size", [1, 2, 3, 7, 30])
def test_streamed(reasoning: str, size: int) -> None:
    request = served.adjusted(served.chat(), reasoning=reasoning)
    pieces = [TEXT[start : start + size] for start in range(0, len(TEXT), size)]
    turn = served.streamed(["<think>", THOUGHTS, "</think>", *pieces], request, reasoning=reasoning)
    assert (turn.reasoning, turn.content, turn.calls) == (THOUGHTS, "One.\nTwo.", CALLS)


@PARSERS
def test_the_end_of_thinking_and_a_call_in_one_delta(reasoning: str) -> None:
    request = served.adjusted(served.chat(), reasoning=reasoning)
    for head in range(0, len(TEXT), 5):
        pieces = ["<think>", "hm", "</think>" + TEXT[:head], TEXT[head:]]
        turn = served.streamed(pieces, request, reasoning=reasoning)
        assert (turn.reasoning, turn.content, turn.calls) == ("hm", "One.\nTwo.", CALLS), head


@PARSERS
@pytest.mark.parametrize(
    ("text", "content", "calls"),
    [
        (TEXT, "One.\nTwo.", CALLS),
        (f'One.{S}[get_weather(city="Par', "One.", []),
        (f"One.{S}[]{E}Two.", "One.\nTwo.", []),
        ("One.", "One.", []),
    ],
)
def test_whole(reasoning: str, text: str, content: str, calls: served.ToolCalls) -> None:
    request = served.adjusted(served.chat(), reasoning=reasoning)
    turn = served.whole(f"<think>{THOUGHTS}</think>{text}", request, reasoning=reasoning)
    assert (turn.reasoning, turn.content, turn.calls) == (THOUGHTS, content, calls)


def test_only_the_delta_is_read() -> None:
    """What vLLM passes as the text so far may be the delta, or everything: it must not matter."""
    request = served.adjusted(served.chat())
    parser = served.parser(request=request).tool_parser
    so_far = ""
    said = []
    for piece in TEXT:
        said.append(parser.extract_tool_calls_streaming(so_far, so_far + piece, piece, [], [1], [1], request))
        so_far += piece
    said.append(parser.finish_streaming())
    arguments = [
        call.function.arguments for message in said if message for call in message.tool_calls if call.index == 1
    ]
    assert "".join(arguments) == CALLS[1][1]
    assert "".join(message.content or "" for message in said if message) == "One.\nTwo."
