"""Answers in JSON (Llama 4): data and prose go out as soon as they show that they are no call."""

from __future__ import annotations

import pytest

from lfm2_fixed.core.dialects import DIALECTS
from tests.support.harness import Turn, every, stream

TOOLS = {"get_weather": {"city": "string"}, "bash": {"command": "string"}}
JSON_DIALECTS = [name for name, row in DIALECTS.items() if row.json_answers]
LONG = "a long text, " * 20


@pytest.mark.parametrize("dialect", JSON_DIALECTS)
@pytest.mark.parametrize(
    "begins, goes_on",
    [
        ('{"', f'Temperature": 21, "text": "{LONG}"}}'),
        ('{"na', f'tion": "{LONG}"}}'),
        ('{"name": "', f'Ann", "bio": "{LONG}"}}'),
        ('{"name": "bash', f'ful", "bio": "{LONG}"}}'),
        ('{"name": "bash"', f'; "{LONG}"'),
        ('{"name": ', f'7, "x": "{LONG}"}}'),
        ('{"type": "object", "properties"', f': {{"{LONG}": {{}}}}}}'),
        ('{"input": "', f'{LONG}"}}'),
        ('{"arguments": ', f'7, "x": "{LONG}"}}'),
        ('{"function": ', f'"{LONG}"}}'),
        ('{"function": {"', f'say": "{LONG}"}}}}'),
        ('{"parameters": {"a": 1}, "', f'result": "{LONG}"}}'),
        ('[{"c', f'ity": "{LONG}"}}]'),
        ("[{", f"see {LONG}}}]"),
        ("{", f"see {LONG}}}"),
        ("{", f'}} "{LONG}"'),
    ],
)
def test_it_streams_from_where_it_shows(dialect: str, begins: str, goes_on: str) -> None:
    """``begins`` could still become a call and waits; with the next character all that has come is sent."""
    said: list[str] = []
    turn = stream(
        every(begins + goes_on, 1), dialect, TOOLS, watch=lambda turn, events, piece: said.append(turn.content)
    )
    assert turn.completed == ([], begins + goes_on)
    assert said[len(begins) - 1] == ""
    for size in range(len(begins) + 1, len(begins + goes_on)):
        assert said[size - 1].rstrip() == (begins + goes_on)[:size].rstrip()  # blanks might end the content


@pytest.mark.parametrize("dialect", JSON_DIALECTS)
def test_arguments_stream_behind_the_name(dialect: str) -> None:
    """Where the name comes first, strings go out as they come; where it comes last, with the name."""
    sent: list[str] = []

    def watch(turn: Turn, events: object, piece: str) -> None:
        sent.append("".join(call.arguments for call in turn.started))

    stream(['{"name": "bash", "parameters": {"command": "a', "ls ", "-l", '"}', "}"], dialect, TOOLS, watch=watch)
    assert sent[:4] == ['{"command": "a', '{"command": "als ', '{"command": "als -l', '{"command": "als -l"']
    assert sent[-1] == '{"command": "als -l"}'
    sent.clear()
    stream(['{"parameters": {"command": "ls ', '-l"}, "name": "ba', 'sh"', "}"], dialect, TOOLS, watch=watch)
    assert sent[:4] == ["", "", "", '{"command": "ls -l"'] and sent[-1] == '{"command": "ls -l"}'


def test_without_tools_nothing_waits() -> None:
    """No declared tool can be named."""
    said: list[str] = []
    stream(every('{"name": "bash"}', 1), "llama4", None, watch=lambda turn, events, piece: said.append(turn.content))
    assert said[0] == "{"


def test_other_dialects_have_no_json_answers() -> None:
    """There a call in JSON stands between markers."""
    text = '{"name": "bash", "parameters": {}}'
    for dialect in DIALECTS.keys() - set(JSON_DIALECTS):
        assert stream(every(text, 1), dialect, TOOLS).completed == ([], text)
