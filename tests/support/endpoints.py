"""One turn through ``/v1/responses`` with the official openai client, or ``/v1/messages`` with the anthropic one."""

from __future__ import annotations

import json
from typing import Any

import anthropic
from rig import MODEL_NAME

from lfm2_fixed.repro.turns import TOOLS

from .turns import Served, Turn, client

RESPONSES_TOOLS: list[dict[str, Any]] = [{"type": "function", **tool["function"]} for tool in TOOLS]
ANTHROPIC_TOOLS = [{"name": tool["function"]["name"], "input_schema": tool["function"]["parameters"]} for tool in TOOLS]


def responses(server: Served, script: str, *, stream: bool) -> Turn:
    """The turn that the answer's items say; of a stream, its deltas must say the same.

    ``finish_reason`` is the answer's status.
    """
    api = client(server).responses
    options: dict[str, Any] = {"model": MODEL_NAME, "input": "go", "tools": RESPONSES_TOOLS, "temperature": 0}
    options["extra_body"] = {"vllm_xargs": {"script": script}}
    if not stream:
        return _of_items(api.create(**options))
    said = Turn()
    opened: dict[str, str] = {}  # names by item
    arguments: dict[str, str] = {}
    answer = None
    for event in api.create(**options, stream=True):
        if event.type == "response.output_item.added" and event.item.type == "function_call":
            assert event.item.name and event.item.call_id
            assert event.item.id not in opened
            opened[event.item.id] = event.item.name
            arguments[event.item.id] = ""
            said.ids.append(event.item.call_id)
        elif event.type == "response.function_call_arguments.delta":
            arguments[event.item_id] += event.delta
        elif event.type == "response.function_call_arguments.done":
            assert arguments[event.item_id] == event.arguments
            said.calls.append((opened[event.item_id], event.arguments))
        elif event.type == "response.output_text.delta":
            said.content += event.delta
        elif event.type == "response.reasoning_text.delta":
            said.reasoning += event.delta
        elif event.type == "response.completed":
            answer = event.response
    assert answer is not None
    assert len(said.calls) == len(opened)
    turn = _of_items(answer)
    said.finish_reason = turn.finish_reason
    # vLLM makes the ids of the final answer anew.
    said.ids = turn.ids
    assert said == turn
    return turn


def _of_items(answer: Any) -> Turn:
    calls = [item for item in answer.output if item.type == "function_call"]
    thoughts = [part.text for item in answer.output if item.type == "reasoning" for part in item.content or ()]
    ids = [call.call_id for call in calls]
    assert len(set(ids)) == len(calls)
    return Turn(
        [(call.name, call.arguments) for call in calls], answer.output_text, "".join(thoughts), answer.status, ids
    )


def messages(server: Served, script: str, *, stream: bool, **more: Any) -> Turn:
    """The turn that the message's blocks say.  ``more``: further fields of the request."""
    api = anthropic.Anthropic(base_url=server.url, api_key="none", max_retries=0, timeout=300).messages
    options: dict[str, Any] = {
        "model": MODEL_NAME,
        "messages": [{"role": "user", "content": "go"}],
        "max_tokens": 512,
        "tools": ANTHROPIC_TOOLS,
        "extra_body": {"vllm_xargs": {"script": script}},
        **more,
    }
    if stream:
        with api.stream(**options) as events:
            answer = events.get_final_message()
    else:
        answer = api.create(**options)
    calls = [block for block in answer.content if block.type == "tool_use"]
    ids = [block.id for block in calls]
    assert len(set(ids)) == len(calls)
    return Turn(
        [(block.name, json.dumps(block.input, ensure_ascii=False)) for block in calls],
        "".join(block.text for block in answer.content if block.type == "text"),
        "".join(block.thinking for block in answer.content if block.type == "thinking"),
        answer.stop_reason,
        ids,
    )
