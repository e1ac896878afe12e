"""Streams of protocols that ``check`` does not read, and the name that its refusal must give."""

from __future__ import annotations

import json
from typing import Any


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
