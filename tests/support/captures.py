"""Streams as providers write them, each with its own habits; written here after their published formats.

``HEALTHY`` are turns that are right, with the calls they make.  No text of a provider is in them.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any

from tests.support.answers import TOOLS
from tests.support.captured_chat import (
    MOVE,
    WRITE,
    Frames,
    azure,
    chunk,
    empty_reasons,
    gemini_compatible,
    llama_cpp,
    mistral,
    ollama,
    openai_chat,
    openrouter,
    sglang,
    vllm,
)
from tests.support.captured_items import anthropic, anthropic_server_tools, block, message, piece, responses, use


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
