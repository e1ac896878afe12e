"""Streams as servers write them, and a real HTTP server that answers with them."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

TOOLS: list[dict[str, Any]] = [
    {
        "type": "function",
        "function": {
            "name": "write",
            "parameters": {
                "type": "object",
                "properties": {"path": {"type": "string"}, "content": {"type": "string"}},
                "required": ["path", "content"],
                "additionalProperties": False,
            },
        },
    },
    {
        "type": "function",
        "function": {
            "name": "move",
            "parameters": {
                "type": "object",
                "properties": {
                    "lat": {"type": "number", "minimum": -90, "maximum": 90},
                    "steps": {"type": "integer"},
                    "mode": {"enum": ["walk", "fly"]},
                    "note": {"type": "string", "pattern": "^[a-z ]*$"},
                    "via": {"type": "array", "items": {"type": "object", "required": ["id"]}},
                },
                "required": ["lat"],
                "additionalProperties": False,
            },
        },
    },
    {"type": "function", "function": {"name": "ping"}},
]

Named = tuple[str, str]
"""A call: its name and the text of its arguments."""


def pieces(text: str, cuts: Sequence[int]) -> list[str]:
    """A text cut at these places, taken modulo its length."""
    places = sorted({cut % (len(text) + 1) for cut in cuts} | {0, len(text)})
    return [text[a:b] for a, b in zip(places, places[1:])]


def chat_chunk(delta: dict[str, Any], finish: str | None = None, choice: int = 0) -> dict[str, Any]:
    """One chunk of Chat Completions."""
    return {
        "id": "chatcmpl-1",
        "object": "chat.completion.chunk",
        "created": 1,
        "model": "m",
        "choices": [{"index": choice, "delta": delta, "finish_reason": finish, "logprobs": None}],
    }


def chat_frames(
    calls: Sequence[Named],
    *,
    cuts: Sequence[int] = (3, 9, 14, 27),
    content: str = "",
    finish: str | None = "tool_calls",
    choice: int = 0,
) -> list[dict[str, Any]]:
    """A turn of Chat Completions, the arguments cut at the same places in each call."""
    frames = [chat_chunk({"role": "assistant", "content": content}, choice=choice)]
    for index, (name, arguments) in enumerate(calls):
        first, *rest = pieces(arguments, cuts) or [""]
        function = {"name": name, "arguments": first}
        entry = {"index": index, "id": f"call-{choice}-{index}", "type": "function", "function": function}
        frames.append(chat_chunk({"tool_calls": [entry]}, choice=choice))
        for piece in rest:
            entry = {"index": index, "function": {"arguments": piece}}
            frames.append(chat_chunk({"tool_calls": [entry]}, choice=choice))
    if finish is not None:
        frames.append(chat_chunk({}, finish, choice=choice))
    return frames


def chat_whole(calls: Sequence[Named], *, content: str | None = None, finish: str = "tool_calls") -> dict[str, Any]:
    """The same turn without streaming."""
    said = [
        {"id": f"call-{i}", "type": "function", "function": {"name": name, "arguments": arguments}}
        for i, (name, arguments) in enumerate(calls)
    ]
    message = {"role": "assistant", "content": content, "tool_calls": said}
    choice = {"index": 0, "message": message, "finish_reason": finish, "logprobs": None}
    return {"id": "chatcmpl-2", "object": "chat.completion", "created": 1, "model": "m", "choices": [choice]}


def responses_frames(calls: Sequence[Named], *, cuts: Sequence[int] = (3, 9)) -> list[dict[str, Any]]:
    """A turn of Responses."""
    output: list[dict[str, Any]] = []
    frames: list[dict[str, Any]] = []

    def response(status: str) -> dict[str, Any]:
        return {
            **{"id": "resp_1", "object": "response", "created_at": 1, "model": "m", "status": status},
            **{"output": list(output), "tools": [], "tool_choice": "auto", "parallel_tool_calls": True},
        }

    frames.append({"type": "response.created", "response": response("in_progress")})
    for index, (name, arguments) in enumerate(calls):
        item = {"type": "function_call", "id": f"fc_{index}", "call_id": f"call_{index}", "name": name}
        where = {"output_index": index, "item_id": item["id"]}
        begun = {**item, "arguments": "", "status": "in_progress"}
        frames.append({"type": "response.output_item.added", "output_index": index, "item": begun})
        for piece in pieces(arguments, cuts):
            frames.append({"type": "response.function_call_arguments.delta", **where, "delta": piece})
        frames.append({"type": "response.function_call_arguments.done", **where, "arguments": arguments, "name": name})
        output.append({**item, "arguments": arguments, "status": "completed"})
        frames.append({"type": "response.output_item.done", "output_index": index, "item": output[-1]})
    frames.append({"type": "response.completed", "response": response("completed")})
    return [{**frame, "sequence_number": number} for number, frame in enumerate(frames)]


def messages_frames(calls: Sequence[Named], *, cuts: Sequence[int] = (3, 9)) -> list[dict[str, Any]]:
    """A turn of Messages."""
    message = {
        **{"id": "msg_1", "type": "message", "role": "assistant", "model": "m", "content": []},
        **{"stop_reason": None, "stop_sequence": None, "usage": {"input_tokens": 1, "output_tokens": 1}},
    }
    frames: list[dict[str, Any]] = [{"type": "message_start", "message": message}, {"type": "ping"}]
    for index, (name, arguments) in enumerate(calls):
        block = {"type": "tool_use", "id": f"toolu_{index}", "name": name, "input": {}}
        frames.append({"type": "content_block_start", "index": index, "content_block": block})
        for piece in pieces(arguments, cuts):
            delta = {"type": "input_json_delta", "partial_json": piece}
            frames.append({"type": "content_block_delta", "index": index, "delta": delta})
        frames.append({"type": "content_block_stop", "index": index})
    delta = {"stop_reason": "tool_use", "stop_sequence": None}
    frames.append({"type": "message_delta", "delta": delta, "usage": {"output_tokens": 9}})
    return [*frames, {"type": "message_stop"}]


def sse(frames: Sequence[Any], *, newline: str = "\n", done: bool = True, names: bool = False) -> bytes:
    """Frames as server-sent events.  ``names``: with an ``event`` line each, as Responses and Messages have it."""
    lines = []
    for frame in frames:
        data = frame if isinstance(frame, str) else json.dumps(frame, ensure_ascii=False)
        if names:
            lines += [f"event: {frame['type']}"]
        lines += [f"data: {data}", ""]
    if done:
        lines += ["data: [DONE]", ""]
    return "".join(line + newline for line in lines).encode()


class Answer:
    """What the server says to one request: ``body`` in ``pieces`` of bytes, then the connection ends.

    ``declare``: send a Content-Length of the whole body (a shorter body is then a cut connection).
    ``hang``: wait this many seconds (or until the server stops) after the body.
    """

    def __init__(
        self, body: bytes, *, status: int = 200, kind: str = "text/event-stream", piece: int = 37,
        declare: int | None = None, hang: float = 0,
    ) -> None:  # fmt: skip
        self.body, self.status, self.kind, self.piece, self.declare = body, status, kind, piece, declare
        self.hang = hang


def json_answer(document: Any, status: int = 200) -> Answer:
    """A whole JSON answer."""
    return Answer(json.dumps(document).encode(), status=status, kind="application/json")


class Scripted:
    """A real server on the loopback interface.  ``answers``: in order, the last one again and again."""

    def __init__(self, answers: Sequence[Answer]) -> None:
        self.requests: list[tuple[str, dict[str, Any]]] = []
        self.headers: list[dict[str, str]] = []
        self.stopping = threading.Event()
        outer = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
                answer = answers[min(len(outer.requests), len(answers) - 1)]
                outer.headers.append({key.lower(): value for key, value in self.headers.items()})
                outer.requests.append((self.path, json.loads(body)))
                self.send_response(answer.status)
                self.send_header("Content-Type", answer.kind)
                if answer.declare is not None:
                    self.send_header("Content-Length", str(answer.declare))
                self.end_headers()
                for at in range(0, len(answer.body), answer.piece):
                    self.wfile.write(answer.body[at : at + answer.piece])
                    self.wfile.flush()
                outer.stopping.wait(answer.hang)

            def log_message(self, *arguments: Any) -> None:
                pass

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._server.daemon_threads = True
        self.url = f"http://127.0.0.1:{self._server.server_port}"


@contextmanager
def serving(*answers: Answer) -> Iterator[Scripted]:
    """A server while the block runs."""
    scripted = Scripted(answers)
    thread = threading.Thread(target=scripted._server.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True)
    thread.start()
    try:
        yield scripted
    finally:
        scripted.stopping.set()
        scripted._server.shutdown()
        scripted._server.server_close()
        thread.join()
