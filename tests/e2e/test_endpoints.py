"""/v1/responses with the official openai client, /v1/messages with the official anthropic one."""

from __future__ import annotations

import pytest
from rig import Server

from tests.support.endpoints import messages, responses
from tests.support.turns import END, MARKERS, START, wanted

WRITE = ("write", {"path": "a.json", "content": '{"a": "é ]"}\n'})
LIST = ("bash", {"command": "ls 'a b'"})
CALLS = wanted(WRITE, LIST)
BLOCK = START + r"""[write(path="a.json", content="{\"a\": \"é ]\"}\n"), bash(command="ls 'a b'")]""" + END
SCRIPTS = {
    "calls": (BLOCK, "", CALLS),
    "text-first": (f"Let me look.\n{BLOCK}", "Let me look.", CALLS),
    "text": ("Hello [there].", "Hello [there].", []),
}
both_ways = pytest.mark.parametrize("stream", [False, True], ids=["whole", "streamed"])


@pytest.mark.parametrize("name", SCRIPTS)
@both_ways
def test_responses(lfm2: Server, name: str, stream: bool) -> None:
    script, text, calls = SCRIPTS[name]
    turn = responses(lfm2, script, stream=stream)
    assert (turn.content, turn.calls, turn.finish_reason) == (text, calls, "completed")


@pytest.mark.parametrize("name", SCRIPTS)
@both_ways
def test_messages(lfm2: Server, name: str, stream: bool) -> None:
    script, text, calls = SCRIPTS[name]
    turn = messages(lfm2, script, stream=stream)
    assert (turn.content, turn.calls) == (text, calls)
    assert turn.finish_reason == ("tool_use" if calls else "end_turn")


@both_ways
def test_messages_without_calls_allowed(lfm2: Server, stream: bool) -> None:
    turn = messages(lfm2, BLOCK, stream=stream, tool_choice={"type": "none"})
    assert turn.content and not turn.calls
    assert not any(marker in turn.content for marker in MARKERS)
