"""/v1/responses with the official openai client, /v1/messages with the official anthropic one."""

from __future__ import annotations

import json
from typing import Any

import anthropic
import pytest
from rig import MODEL_NAME, Server

from lfm2_fixed.repro.turns import TOOLS
from tests.support.turns import END, MARKERS, START, client

RESPONSES_TOOLS: list[dict[str, Any]] = [{"type": "function", **tool["function"]} for tool in TOOLS]
ANTHROPIC_TOOLS = [{"name": tool["function"]["name"], "input_schema": tool["function"]["parameters"]} for tool in TOOLS]
WRITE = ("write", {"path": "a.json", "content": '{"a": "é ]"}\n'})
LIST = ("bash", {"command": "ls 'a b'"})
CALLS = [WRITE, LIST]
BLOCK = START + r"""[write(path="a.json", content="{\"a\": \"é ]\"}\n"), bash(command="ls 'a b'")]""" + END
SCRIPTS = {
    "calls": (BLOCK, "", CALLS),
    "text-first": (f"Let me look.\n{BLOCK}", "Let me look.", CALLS),
    "text": ("Hello [there].", "Hello [there].", []),
}


def extra(script: str) -> dict[str, Any]:
    return {"vllm_xargs": {"script": script}}


@pytest.mark.parametrize("name", SCRIPTS)
@pytest.mark.parametrize("stream", [False, True], ids=["whole", "streamed"])
def test_responses(lfm2: Server, name: str, stream: bool) -> None:
    script, text, calls = SCRIPTS[name]
    api = client(lfm2).responses
    options: dict[str, Any] = {"model": MODEL_NAME, "input": "go", "tools": RESPONSES_TOOLS, "temperature": 0}
    if not stream:
        answer = api.create(**options, extra_body=extra(script))
    else:
        arguments: dict[str, str] = {}  # by item
        opened: dict[str, str] = {}
        done: list[tuple[str, str]] = []
        content = ""
        completed = None
        for event in api.create(**options, stream=True, extra_body=extra(script)):
            if event.type == "response.output_item.added" and event.item.type == "function_call":
                assert event.item.name and event.item.call_id
                assert event.item.id not in opened
                opened[event.item.id] = event.item.name
                arguments[event.item.id] = ""
            elif event.type == "response.function_call_arguments.delta":
                arguments[event.item_id] += event.delta
            elif event.type == "response.function_call_arguments.done":
                assert arguments[event.item_id] == event.arguments
                done.append((opened[event.item_id], event.arguments))
            elif event.type == "response.output_text.delta":
                content += event.delta
            elif event.type == "response.completed":
                completed = event.response
        assert [(name, json.loads(text)) for name, text in done] == calls
        assert len(done) == len(opened)
        assert content == text
        assert completed is not None
        answer = completed
    got = [item for item in answer.output if item.type == "function_call"]
    assert [(call.name, json.loads(call.arguments)) for call in got] == calls
    assert len({call.call_id for call in got}) == len(calls)
    assert answer.output_text == text
    assert answer.status == "completed"


@pytest.mark.parametrize("name", SCRIPTS)
@pytest.mark.parametrize("stream", [False, True], ids=["whole", "streamed"])
def test_messages(lfm2: Server, name: str, stream: bool) -> None:
    script, text, calls = SCRIPTS[name]
    api = anthropic.Anthropic(base_url=lfm2.url, api_key="none", max_retries=0, timeout=300).messages
    options: dict[str, Any] = {
        "model": MODEL_NAME,
        "messages": [{"role": "user", "content": "go"}],
        "max_tokens": 512,
        "tools": ANTHROPIC_TOOLS,
        "extra_body": extra(script),
    }
    if stream:
        with api.stream(**options) as events:
            answer = events.get_final_message()
    else:
        answer = api.create(**options)
    got = [block for block in answer.content if block.type == "tool_use"]
    assert [(block.name, block.input) for block in got] == calls
    assert len({block.id for block in got}) == len(calls)
    assert "".join(block.text for block in answer.content if block.type == "text") == text
    assert answer.stop_reason == ("tool_use" if calls else "end_turn")


@pytest.mark.parametrize("stream", [False, True], ids=["whole", "streamed"])
def test_messages_without_calls_allowed(lfm2: Server, stream: bool) -> None:
    api = anthropic.Anthropic(base_url=lfm2.url, api_key="none", max_retries=0, timeout=300).messages
    options: dict[str, Any] = {
        "model": MODEL_NAME,
        "messages": [{"role": "user", "content": "go"}],
        "max_tokens": 512,
        "tools": ANTHROPIC_TOOLS,
        "tool_choice": {"type": "none"},
        "extra_body": extra(BLOCK),
    }
    if stream:
        with api.stream(**options) as events:
            answer = events.get_final_message()
    else:
        answer = api.create(**options)
    [block] = answer.content
    assert block.type == "text"
    assert not any(marker in block.text for marker in MARKERS)
