"""Events of the Responses API and of Anthropic Messages, as their providers write them."""

from __future__ import annotations

from typing import Any

from tests.support.captured_chat import CUT, MOVE, Frames


def responses(name: str = MOVE[0], namespace: str | None = None) -> Frames:
    base = {"id": "resp_1", "object": "response", "created_at": 1767225600, "model": "m", "tools": []}
    thought = {"id": "rs_1", "type": "reasoning", "summary": []}
    search = {
        "id": "ws_1",
        "type": "web_search_call",
        "status": "completed",
        "action": {"type": "search", "query": "x"},
    }
    remote = {
        "id": "mcp_1",
        "type": "mcp_call",
        "server_label": "s",
        "name": "move",
        "arguments": '{"lat": 1}',
        "output": "ok",
        "error": None,
        "status": "completed",
    }
    call = {
        "id": "fc_1",
        "type": "function_call",
        "call_id": "call_1",
        "name": name,
        "arguments": MOVE[1],
        "status": "completed",
        **({"namespace": namespace} if namespace else {}),
    }
    said = {
        "id": "msg_1",
        "type": "message",
        "role": "assistant",
        "status": "completed",
        "content": [{"type": "output_text", "text": "I go.", "annotations": []}],
    }
    frames: Frames = [
        {"type": "response.created", "response": {**base, "status": "in_progress", "output": []}},
        {"type": "response.in_progress", "response": {**base, "status": "in_progress", "output": []}},
        {"type": "response.output_item.added", "output_index": 0, "item": thought},
        {"type": "response.output_item.done", "output_index": 0, "item": thought},
        {"type": "response.output_item.added", "output_index": 1, "item": {**search, "status": "in_progress"}},
        {"type": "response.web_search_call.searching", "output_index": 1, "item_id": "ws_1"},
        {"type": "response.output_item.done", "output_index": 1, "item": search},
        {
            "type": "response.output_item.added",
            "output_index": 2,
            "item": {**remote, "arguments": "", "status": "in_progress"},
        },
        {"type": "response.mcp_call_arguments.delta", "output_index": 2, "item_id": "mcp_1", "delta": '{"lat": 1}'},
        {"type": "response.mcp_call_arguments.done", "output_index": 2, "item_id": "mcp_1", "arguments": '{"lat": 1}'},
        {"type": "response.output_item.done", "output_index": 2, "item": remote},
        {
            "type": "response.output_item.added",
            "output_index": 3,
            "item": {**said, "status": "in_progress", "content": []},
        },
        {
            "type": "response.output_text.delta",
            "output_index": 3,
            "content_index": 0,
            "item_id": "msg_1",
            "delta": "I go.",
            "logprobs": [],
            "obfuscation": "z",
        },
        {"type": "response.output_item.done", "output_index": 3, "item": said},
        {
            "type": "response.output_item.added",
            "output_index": 4,
            "item": {**call, "arguments": "", "status": "in_progress"},
        },
        {
            "type": "response.function_call_arguments.delta",
            "output_index": 4,
            "item_id": "fc_1",
            "delta": MOVE[1][:CUT],
        },
        {
            "type": "response.function_call_arguments.delta",
            "output_index": 4,
            "item_id": "fc_1",
            "delta": MOVE[1][CUT:],
        },
        {"type": "response.function_call_arguments.done", "output_index": 4, "item_id": "fc_1", "arguments": MOVE[1]},
        {"type": "response.output_item.done", "output_index": 4, "item": call},
        {
            "type": "response.completed",
            "response": {**base, "status": "completed", "error": None, "output": [thought, search, remote, said, call]},
        },
    ]
    return [{**frame, "sequence_number": number} for number, frame in enumerate(frames)]


def block(index: int, start: Any, *deltas: Any) -> Frames:
    return [
        {"type": "content_block_start", "index": index, "content_block": start},
        *({"type": "content_block_delta", "index": index, "delta": delta} for delta in deltas),
        {"type": "content_block_stop", "index": index},
    ]


def piece(text: str) -> dict[str, Any]:
    return {"type": "input_json_delta", "partial_json": text}


def message(*blocks: Frames, stop: Any = "tool_use") -> Frames:
    begun = {
        "id": "msg_1",
        "type": "message",
        "role": "assistant",
        "model": "m",
        "content": [],
        "stop_reason": None,
        "stop_sequence": None,
        "usage": {"input_tokens": 80, "output_tokens": 1},
    }
    return [
        {"type": "message_start", "message": begun},
        {"type": "ping"},
        *(event for each in blocks for event in each),
        {
            "type": "message_delta",
            "delta": {"stop_reason": stop, "stop_sequence": None},
            "usage": {"output_tokens": 20},
        },
        {"type": "message_stop"},
    ]


def use(kind: str, name: str, **more: Any) -> dict[str, Any]:
    return {"type": kind, "id": f"{kind}_1", "name": name, "input": {}, **more}


def anthropic() -> Frames:
    return message(
        block(
            0,
            {"type": "thinking", "thinking": "", "signature": ""},
            {"type": "thinking_delta", "thinking": "North."},
            {"type": "signature_delta", "signature": "c2ln"},
        ),
        block(1, {"type": "text", "text": ""}, {"type": "text_delta", "text": "I go."}),
        block(2, use("tool_use", MOVE[0]), piece(""), piece(MOVE[1][:CUT]), piece(MOVE[1][CUT:])),
        block(3, {**use("tool_use", "ping"), "id": "toolu_2"}, piece("")),
    )


def anthropic_server_tools() -> Frames:
    """Tools that the server runs stream their input like calls, and are none."""
    return message(
        block(0, use("server_tool_use", "web_search"), piece(""), piece('{"query": "nor'), piece('th"}')),
        block(1, {"type": "web_search_tool_result", "tool_use_id": "server_tool_use_1", "content": []}),
        block(2, use("mcp_tool_use", "move", server_name="s"), piece('{"lat": "anything"}')),
        block(3, {"type": "mcp_tool_result", "tool_use_id": "mcp_tool_use_1", "is_error": False, "content": []}),
        block(4, use("some_later_tool_use", "x"), piece("{")),
        block(5, use("tool_use", MOVE[0], caller={"type": "direct"}), piece(MOVE[1])),
    )
