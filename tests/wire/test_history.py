"""What goes back to the server: a turn with its calls, and the answer to each, letter by letter as each API has it."""

from __future__ import annotations

from typing import Any

import pytest

from lfm2_fixed.wire import chat, messages, responses
from lfm2_fixed.wire.turn import Call, Turn

PLAIN = Call("w", '{"a": 1}')
CUSTOM = Call("sh", "ls", kind="custom")
SPACED = Call("look", "{}", namespace="crm")

CHAT_CALL = {"id": "c1", "type": "function", "function": {"name": "w", "arguments": '{"a": 1}'}}
CHAT_CUSTOM = {"id": "c2", "type": "custom", "custom": {"name": "sh", "input": "ls"}}
ITEM = {"type": "function_call", "call_id": "c1", "name": "w", "arguments": '{"a": 1}'}
ITEM_CUSTOM = {"type": "custom_tool_call", "call_id": "c2", "name": "sh", "input": "ls"}
ITEM_SPACED = {"type": "function_call", "call_id": "c3", "name": "look", "arguments": "{}", "namespace": "crm"}
SAID = {"type": "message", "role": "assistant", "content": "Hm."}
USE = {"type": "tool_use", "id": "c1", "name": "w", "input": {"a": 1}}
RESULTS = [{"any": "thing"}]


@pytest.mark.parametrize(
    ("api", "content", "said", "expected"),
    [
        (
            chat,
            "Hm.",
            [(PLAIN, "c1"), (CUSTOM, "c2")],
            [{"role": "assistant", "content": "Hm.", "tool_calls": [CHAT_CALL, CHAT_CUSTOM]}, *RESULTS],
        ),
        (
            chat,
            "",
            [(PLAIN, "c1")],
            [{"role": "assistant", "content": None, "tool_calls": [CHAT_CALL]}, *RESULTS],
        ),
        (
            responses,
            "Hm.",
            [(PLAIN, "c1"), (CUSTOM, "c2"), (SPACED, "c3")],
            [SAID, ITEM, ITEM_CUSTOM, ITEM_SPACED, *RESULTS],
        ),
        (responses, "", [(PLAIN, "c1")], [ITEM, *RESULTS]),
        (
            messages,
            "Hm.",
            [(PLAIN, "c1")],
            [
                {"role": "assistant", "content": [{"type": "text", "text": "Hm."}, USE]},
                {"role": "user", "content": RESULTS},
            ],
        ),
        (
            messages,
            "",
            [(PLAIN, "c1")],
            [{"role": "assistant", "content": [USE]}, {"role": "user", "content": RESULTS}],
        ),
    ],
)
def test_history(api: Any, content: str, said: list[tuple[Call, str]], expected: list[Any]) -> None:
    assert api.history(Turn(content=content), said, RESULTS) == expected


@pytest.mark.parametrize(
    ("api", "call", "expected"),
    [
        (chat, PLAIN, {"role": "tool", "tool_call_id": "c", "content": "no"}),
        (responses, PLAIN, {"type": "function_call_output", "call_id": "c", "output": "no"}),
        (responses, CUSTOM, {"type": "custom_tool_call_output", "call_id": "c", "output": "no"}),
        (messages, PLAIN, {"type": "tool_result", "tool_use_id": "c", "is_error": True, "content": "no"}),
    ],
)
def test_result(api: Any, call: Call, expected: dict[str, Any]) -> None:
    assert api.result(call, "c", "no") == expected
