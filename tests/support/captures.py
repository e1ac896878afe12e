"""Streams as providers write them, each with its own habits; written here after their published formats.

``HEALTHY`` are turns that are right, with the calls they make.  ``FOREIGN`` are streams of protocols that are none of
the three.  No text of a provider is in them.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any

from tests.support.answers import TOOLS

MOVE = ("move", '{"lat": 10.5, "note": "due north"}')
WRITE = ("write", '{"path": "ä.txt", "content": "a \\"b\\" € 😀\\n"}')
Frames = list[Any]


@dataclass(frozen=True)
class Capture:
    """``events``: the data of each event, as JSON or as it is; ``names``: with an ``event`` line each."""

    events: Frames
    calls: tuple[tuple[str, str], ...] = (MOVE,)
    names: bool = False
    done: bool = True
    newline: str = "\n"
    comments: tuple[str, ...] = ()
    tools: Any = None
    namespaces: tuple[str | None, ...] | None = None

    @property
    def declared(self) -> list[Any]:
        return TOOLS if self.tools is None else self.tools

    @property
    def stream(self) -> bytes:
        lines = [f": {comment}\n\n" for comment in self.comments]
        for event in self.events:
            name = f"event: {event['type']}\n" if self.names else ""
            lines.append(f"{name}data: {json.dumps(event, ensure_ascii=False)}\n\n")
        if self.done:
            lines.append("data: [DONE]\n\n")
        return "".join(lines).replace("\n", self.newline).encode()


def chunk(delta: Any, finish: Any = None, index: int = 0, **more: Any) -> dict[str, Any]:
    """A chunk of Chat Completions; ``more`` beside ``choices``."""
    choice = {"index": index, "delta": delta, "logprobs": None, "finish_reason": finish}
    return {
        "id": "c1",
        "object": "chat.completion.chunk",
        "created": 1767225600,
        "model": "m",
        "choices": [choice],
        **more,
    }


def first(index: int, identity: str, name: str, arguments: str = "", **more: Any) -> dict[str, Any]:
    function = {"name": name, "arguments": arguments}
    return {"index": index, "id": identity, "type": "function", "function": function, **more}


def rest(index: int, arguments: str, **more: Any) -> dict[str, Any]:
    return {"index": index, "function": {"arguments": arguments}, **more}


def calls(*entries: Any, **more: Any) -> dict[str, Any]:
    return {"tool_calls": list(entries), **more}


USAGE = {"prompt_tokens": 80, "completion_tokens": 20, "total_tokens": 100}
CUT = 14  # where the arguments are cut


def openai_chat() -> Frames:
    more = {"service_tier": "default", "system_fingerprint": "fp_0", "usage": None}
    return [
        chunk(calls(first(0, "call_a", MOVE[0]), role="assistant", content=None, refusal=None), **more),
        chunk(calls(rest(0, MOVE[1][:CUT])), obfuscation="xY3", **more),
        chunk(calls(rest(0, MOVE[1][CUT:])), obfuscation="q", **more),
        chunk(calls(first(1, "call_b", WRITE[0])), **more),
        chunk(calls(rest(1, WRITE[1])), **more),
        chunk({}, "tool_calls", **more),
        {**chunk({}), "choices": [], "usage": USAGE},
    ]


def azure() -> Frames:
    return [
        {
            "id": "",
            "object": "",
            "created": 0,
            "model": "",
            "choices": [],
            "prompt_filter_results": [{"prompt_index": 0, "content_filter_results": {}}],
        },
        *openai_chat(),
    ]


def vllm() -> Frames:
    def own(delta: Any, finish: Any = None) -> dict[str, Any]:
        made = chunk(delta, finish)
        made["choices"][0] |= {"stop_reason": None, "token_ids": None}
        return {**made, "prompt_token_ids": None}

    return [
        own({"role": "assistant", "content": "", "reasoning": None}),
        own({"reasoning": "They want to go north, so <|tool_call_start|> it is.", "reasoning_content": None}),
        own(calls(first(0, "chatcmpl-tool-0a", MOVE[0]))),
        own(calls(rest(0, MOVE[1][:CUT]))),
        own(calls(rest(0, MOVE[1][CUT:]))),
        own({"content": ""}, "tool_calls"),
        {**chunk({}), "choices": [], "usage": USAGE},
    ]


def sglang() -> Frames:
    def own(delta: Any, finish: Any = None) -> dict[str, Any]:
        made = chunk({"role": None, "content": None, "reasoning_content": None, **delta}, finish)
        made["choices"][0]["matched_stop"] = None
        return {**made, "usage": None}

    later = {"id": None, "type": "function"}
    return [
        own({"role": "assistant", "content": "", "tool_calls": None}),
        own(calls(first(0, "call_0", MOVE[0]))),
        own(calls({**later, "index": 0, "function": {"name": None, "arguments": MOVE[1][:CUT]}})),
        own(calls({**later, "index": 0, "function": {"name": None, "arguments": MOVE[1][CUT:]}})),
        own({"tool_calls": None}, "tool_calls"),
        {**chunk({}), "choices": [], "usage": USAGE},
    ]


def llama_cpp() -> Frames:
    more = {"system_fingerprint": "b11549-0000000"}
    return [
        chunk({"role": "assistant", "content": None}, **more),
        chunk({"reasoning_content": "North."}, **more),
        chunk(calls(first(0, "aB3dE6gH9", MOVE[0])), **more),
        chunk(calls(rest(0, MOVE[1][:CUT])), **more),
        chunk(calls(rest(0, MOVE[1][CUT:])), **more),
        chunk({}, "tool_calls", timings={"prompt_n": 80, "predicted_per_second": 30.5}, **more),
        {**chunk({}), "choices": [], "usage": USAGE, **more},
    ]


def mistral() -> Frames:
    call = {"id": "aB3dE6gH9", "function": {"name": MOVE[0], "arguments": MOVE[1]}, "index": 0}
    thought = {"type": "thinking", "thinking": [{"type": "text", "text": "North."}]}
    return [
        chunk({"role": "assistant", "content": ""}, p="abc"),
        chunk({"content": [thought]}, p="abcdef"),
        chunk({"content": [{"type": "text", "text": "I go. "}]}, p="a"),
        chunk({"content": "", "tool_calls": [call]}, "tool_calls", usage=USAGE, p="abcdefgh"),
    ]


def ollama() -> Frames:
    return [
        chunk({"role": "assistant", "content": "", "reasoning": "North."}, system_fingerprint="fp_ollama"),
        chunk({"role": "assistant", "content": "", "tool_calls": [first(0, "call_0", MOVE[0], MOVE[1])]}),
        chunk({"role": "assistant", "content": ""}, "tool_calls"),
    ]


def gemini_compatible() -> Frames:
    signed = {"google": {"thought_signature": "c2ln"}}
    return [
        chunk(calls(first(0, "function-call-1", MOVE[0], MOVE[1], extra_content=signed), role="assistant")),
        chunk({"role": "assistant"}, "stop", usage=USAGE),
    ]


def openrouter() -> Frames:
    return [
        chunk({"role": "assistant", "content": ""}, provider="X"),
        chunk({"role": "assistant", "content": "", "reasoning": "North.", "reasoning_details": []}, provider="X"),
        chunk(calls(first(0, "tooluse_0", MOVE[0], MOVE[1]), role="assistant", content=None), provider="X"),
        chunk({"role": "assistant", "content": ""}, "tool_calls", provider="X"),
        chunk({"role": "assistant", "content": ""}, None, usage=USAGE),
    ]


def empty_reasons() -> Frames:
    """A server that has an empty finish reason and empty strings everywhere."""
    return [
        chunk({"role": "assistant", "content": "", "tool_calls": []}, ""),
        chunk(calls(first(0, "call_0", MOVE[0])), ""),
        chunk(calls(rest(0, MOVE[1][:CUT], id="", type="")), ""),
        chunk(calls({"index": 0, "id": "", "function": {"name": "", "arguments": MOVE[1][CUT:]}}), ""),
        chunk({"content": ""}, "tool_calls"),
        {"id": "c1", "usage": USAGE},
    ]


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


FUNCTIONS = [tool["function"] for tool in TOOLS]
SCHEMAS: list[Any] = [
    {
        "type": "custom",
        "name": f["name"],
        "input_schema": f.get("parameters", {"type": "object", "additionalProperties": False}),
    }
    for f in FUNCTIONS
]
SERVER_TOOLS = [
    {"type": "web_search_20250305", "name": "web_search", "max_uses": 3},
    {"type": "mcp_toolset", "mcp_server_name": "s"},
]
NAMESPACES: list[Any] = [
    {
        "type": "namespace",
        "name": name,
        "description": "d",
        "tools": [{"type": "function", **FUNCTIONS[1], "name": "lookup"}],
    }
    for name in ("crm", "erp")
]

HEALTHY: dict[str, Capture] = {
    "openai chat": Capture(openai_chat(), (MOVE, WRITE)),
    "azure": Capture(azure(), (MOVE, WRITE)),
    "openai responses": Capture(responses(), names=True, done=False),
    "openai responses, namespaces": Capture(
        responses("lookup", "erp"), (("lookup", MOVE[1]),), True, False, tools=NAMESPACES, namespaces=("erp",)
    ),
    "anthropic": Capture(anthropic(), (MOVE, ("ping", "{}")), True, False, tools=SCHEMAS),
    "anthropic, server tools": Capture(
        anthropic_server_tools(), names=True, done=False, tools=[*SCHEMAS, *SERVER_TOOLS]
    ),
    "anthropic, paused": Capture(
        message(block(0, use("server_tool_use", "web_search"), piece("{}")), stop="pause_turn"),
        (),
        True,
        False,
        tools=[*SCHEMAS, *SERVER_TOOLS],
    ),
    "anthropic, its own tools": Capture(
        message(block(0, use("tool_use", "bash"), piece('{"command": "ls"}'))),
        (("bash", '{"command": "ls"}'),),
        True,
        False,
        tools=[{"type": "bash_20250124", "name": "bash"}],
    ),
    "vllm": Capture(vllm()),
    "sglang": Capture(sglang()),
    "llama.cpp": Capture(llama_cpp()),
    "mistral": Capture(mistral()),
    "ollama": Capture(ollama()),
    "gemini, openai-compatible": Capture(gemini_compatible()),
    "openrouter": Capture(openrouter(), comments=("OPENROUTER PROCESSING",) * 2),
    "empty reasons": Capture(empty_reasons()),
    "without [DONE]": Capture(vllm(), done=False),
    "crlf": Capture(openai_chat(), (MOVE, WRITE), newline="\r\n"),
    "words": Capture([chunk({"role": "assistant", "content": "Go [1] north."}), chunk({}, "stop")], ()),
}


def lines(*documents: Any) -> bytes:
    return "".join(json.dumps(document) + "\n" for document in documents).encode()


def events(*documents: Any, name: str = "") -> bytes:
    head = f"event: {name}\n" if name else ""
    return "".join(f"{head}data: {json.dumps(document)}\n\n" for document in documents).encode()


GEMINI = [
    {
        "candidates": [
            {
                "content": {"parts": [{"functionCall": {"name": "move", "args": {"lat": 1}}}], "role": "model"},
                "finishReason": "STOP",
                "index": 0,
            }
        ],
        "usageMetadata": {},
        "modelVersion": "g",
    },
]
CONVERSE = [
    {"messageStart": {"role": "assistant"}},
    {"contentBlockStart": {"start": {"toolUse": {"toolUseId": "t", "name": "move"}}, "contentBlockIndex": 0}},
    {"contentBlockDelta": {"delta": {"toolUse": {"input": '{"lat": 1}'}}, "contentBlockIndex": 0}},
    {"messageStop": {"stopReason": "tool_use"}},
]
OLLAMA = [
    {
        "model": "m",
        "created_at": "2026-01-01T00:00:00Z",
        "done": False,
        "message": {
            "role": "assistant",
            "content": "",
            "tool_calls": [{"function": {"name": "move", "arguments": {"lat": 1}}}],
        },
    },
    {"model": "m", "created_at": "2026-01-01T00:00:00Z", "done": True, "message": {"role": "assistant", "content": ""}},
]

FOREIGN: dict[str, tuple[bytes, str]] = {
    "gemini": (events(*GEMINI), "Gemini"),
    "gemini, a list": (json.dumps(GEMINI).encode(), "Gemini"),
    "gemini, broken off by an error": (events(*GEMINI, {"error": {"code": 503, "message": "x"}}), "Gemini"),
    "bedrock": (events(*CONVERSE), "Bedrock"),
    "bedrock, lines": (lines(*CONVERSE), "Bedrock"),
    "bedrock, binary": (
        b"\x00\x00\x00\xa5\x00\x00\x00\x52\x0b\x0b:event-type\x07\x00\x0cmessageStart\n\ndata: x\n\n",
        "Bedrock",
    ),
    "ollama": (lines(*OLLAMA), "Ollama"),
    "mcp": (events({"jsonrpc": "2.0", "id": 1, "result": {"content": []}}, name="message"), "MCP"),
    "mcp, an error": (events({"jsonrpc": "2.0", "id": 1, "error": {"code": -32601, "message": "x"}}), "MCP"),
    "llama.cpp, completion": (events({"content": "a", "stop": False}, {"content": "", "stop": True}), "llama.cpp"),
    "cohere": (events({"type": "message-start"}, {"type": "tool-call-start", "index": 0, "delta": {}}), "None of"),
    "something": (events({"hello": 1}), "None of"),
}
