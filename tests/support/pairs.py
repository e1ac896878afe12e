"""A proxy with its upstream, and what a client makes of its answers."""

from __future__ import annotations

import json
import socket
from collections.abc import Iterator
from typing import Any
from urllib.parse import urlsplit

import httpx

from tests.support.scripted import Scripted

TOOLS = [
    {
        "type": "function",
        "function": {
            "name": name,
            "parameters": {"type": "object", "properties": properties, "required": list(properties)},
        },
    }
    for name, properties in {
        "bash": {"command": {"type": "string"}},
        "add": {"a": {"type": "integer"}, "b": {"type": "integer"}},
    }.items()
]


CLIENT = httpx.Client(timeout=30, trust_env=False, verify=False)
"""For plain HTTP: making the context that verifies certificates takes a third of a second."""


class Pair:
    """A proxy and its upstream."""

    def __init__(self, url: str, upstream: Scripted) -> None:
        self.url = url
        self.upstream = upstream
        self.client = httpx.Client(base_url=url, timeout=30, trust_env=False, verify=False)

    def ask(self, script: dict[str, Any] | str, **fields: Any) -> Any:
        """The answer to a chat request with this script, or with one piece of text."""
        return self.client.post("/v1/chat/completions", json=body(script, **fields))

    def stream(self, script: dict[str, Any] | str, **fields: Any) -> list[Any]:
        """The events of a streamed answer; comments as bytes."""
        answer = self.ask(script, stream=True, **fields)
        assert answer.status_code == 200, answer.text
        return list(events(answer.content))

    def merged(self, script: dict[str, Any] | str, **fields: Any) -> dict[int, dict[str, Any]]:
        """What a client makes of a streamed answer, by choice."""
        return merge(self.stream(script, **fields))


def sse(*chunks: Any, done: bool = True, **script: Any) -> dict[str, Any]:
    """The script of a stream with these events: chunks, or lines as they are."""
    lines = [chunk if isinstance(chunk, str) else f"data: {json.dumps(chunk)}" for chunk in chunks]
    raw = [f"{line}\n\n" for line in [*lines, *(["data: [DONE]"] if done else [])]]
    return {"headers": {"content-type": "text/event-stream"}, "raw": raw, **script}


def chunk(delta: dict[str, Any] | str, reason: Any = None, index: int = 0, **fields: Any) -> dict[str, Any]:
    """A chunk of a stream, with one choice; ``fields`` are the choice's."""
    delta = {"content": delta} if isinstance(delta, str) else delta
    choice = {"index": index, "delta": delta, "finish_reason": reason, **fields}
    return {"id": "chatcmpl-1", "object": "chat.completion.chunk", "created": 1, "model": "m", "choices": [choice]}


def error_of(received: list[Any]) -> dict[str, Any]:
    """The error at a stream's end: nothing follows, not even [DONE]."""
    assert received[-1].get("error"), received[-1]
    assert all(isinstance(chunk, bytes) or "error" not in chunk for chunk in received[:-1])
    return received[-1]["error"]


def body(script: dict[str, Any] | str, **fields: Any) -> dict[str, Any]:
    """A chat request."""
    if isinstance(script, str):
        script = {"turns": [[script]]}
    messages = [{"role": "user", "content": json.dumps(script)}]
    return {"model": "scripted", "messages": messages, "tools": TOOLS, **fields}


def open_raw(url: str, script: dict[str, Any], receive_buffer: int | None = None, **fields: Any) -> socket.socket:
    """A connection with a request sent and nothing read."""
    host = urlsplit(url)
    raw = socket.socket()
    if receive_buffer:
        raw.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, receive_buffer)
    raw.connect((host.hostname, host.port))
    raw.settimeout(30)
    content = json.dumps(body(script, **fields)).encode()
    head = b"POST /v1/chat/completions HTTP/1.1\r\nhost: x\r\nconnection: close\r\ncontent-length: %d\r\n\r\n"
    raw.sendall(head % len(content) + content)
    return raw


def events(data: bytes) -> Iterator[Any]:
    """The events of a stream, read by the book."""
    for block in data.replace(b"\r\n", b"\n").split(b"\n\n"):
        for line in filter(None, block.split(b"\n")):
            if line.startswith(b"data: [DONE]"):
                yield "[DONE]"
            elif line.startswith(b"data: "):
                yield json.loads(line[6:])
            else:
                assert line.startswith(b":"), line
                yield line


def merge(received: list[Any]) -> dict[int, dict[str, Any]]:
    """Put chunks together as official clients do, and check their form on the way."""
    choices: dict[int, dict[str, Any]] = {}
    for chunk in received:
        if chunk == "[DONE]" or isinstance(chunk, bytes):
            continue
        assert chunk["object"] == "chat.completion.chunk"
        for choice in chunk["choices"]:
            new = {"role": None, "content": "", "reasoning": "", "calls": [], "finish_reason": None}
            merged = choices.setdefault(choice["index"], new)
            delta = choice["delta"]
            assert merged["finish_reason"] is None, "something comes after the end"
            merged["role"] = merged["role"] or delta.get("role")
            merged["content"] += delta.get("content") or ""
            merged["reasoning"] += delta.get("reasoning_content") or ""
            for call in delta.get("tool_calls", []):
                assert None not in call.values() and None not in call["function"].values()
                if call["index"] == len(merged["calls"]):
                    assert call["type"] == "function" and call["id"] and call["function"]["name"]
                    merged["calls"].append([call["function"]["name"], call["function"]["arguments"]])
                else:
                    assert call.keys() == {"index", "function"} and call["function"].keys() == {"arguments"}
                    merged["calls"][call["index"]][1] += call["function"]["arguments"]
            merged["finish_reason"] = choice["finish_reason"]
    for merged in choices.values():
        merged["calls"] = [tuple(call) for call in merged["calls"]]
    return choices
