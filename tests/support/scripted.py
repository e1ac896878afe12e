"""A real HTTP server that streams what a request scripts, and remembers what it saw."""

from __future__ import annotations

import asyncio
import json
import threading
import time
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from typing import Any

import uvicorn

Send = Callable[[dict[str, Any]], Awaitable[None]]


class Scripted:
    """An OpenAI-compatible server.  The last message's text is a JSON object that says what to do:

    ``turns``: for each choice the pieces of its text, ``repeat`` times.  ``reason``: the finish reason (``stop``).
    ``pause``: seconds between chunks.  ``die``: break the connection after that many chunks.
    ``hang``: fall silent after that many chunks.  ``raw``: in place of all this, the body's pieces,
    sent as they are (characters up to U+00FF are bytes where ``latin`` is set).  ``silent``: seconds
    between the headers and them.  ``status``, ``headers``: of the answer.  ``message``, ``choice``,
    ``reply``: further fields of a whole answer.  ``ends``: those of a choice's end.
    ``wait``: seconds before the answer.
    """

    def __init__(self, *, kind: str = "unknown") -> None:
        self.kind = kind
        self.says: dict[str, tuple[int, dict[str, Any]]] = {}
        """What ``/props``, ``/version`` and ``/tokenize`` answer, where not what the kind does."""
        self.tokens = {"<|tool_call_start|>": 10, "<|tool_call_end|>": 11}
        """Texts that are one token for it; any other is one for each character."""
        self.asked: list[str] = []
        """The questions for the kind, in order."""
        self.refuses: dict[str, int] = {}
        """Fields of a request that it does not take, each with the status that it says so with."""
        self.name = b""
        """What it calls itself in those answers (the ``Server`` header), if anything."""
        self.mutes = ""
        """A field of a request to which it answers nothing."""
        self.thinks = 0.0
        """Seconds before it answers them."""
        self.requests: list[dict[str, Any]] = []
        self.active = 0
        self.gone = 0
        """Requests whose client left before the end."""
        self.chunks = 0
        """Chunks sent so far, over all requests."""

    async def __call__(self, scope: dict[str, Any], receive: Callable[[], Awaitable[Any]], send: Send) -> None:
        if scope["type"] == "lifespan":
            while True:
                message = await receive()
                await send({"type": message["type"] + ".complete"})
                if message["type"] == "lifespan.shutdown":
                    return
        body = b""
        more = True
        while more:
            message = await receive()
            if message["type"] == "http.disconnect":
                self.gone += 1
                return
            body += message.get("body", b"")
            more = message.get("more_body", False)
        path = scope["path"]
        seen = {
            "method": scope["method"],
            "path": scope["raw_path"].decode("latin-1"),
            "query": scope["query_string"].decode("latin-1"),
            "headers": [(name.decode("latin-1"), value.decode("latin-1")) for name, value in scope["headers"]],
            "body": body,
        }
        name = "/" + path.rpartition("/")[2]
        if name in ("/props", "/version", "/health", "/tokenize"):
            status, value = {
                ("/tokenize", "vllm-rs"): (200, self.tokenized(body)),
                ("/props", "llama.cpp"): (200, {"build_info": "b1-test"}),
                ("/version", "vllm"): (200, {"version": "0.0.test"}),
                ("/version", "vllm-rs"): (200, {"version": "0.0.test", "rust_frontend_version": "0.0.test"}),
                ("/health", self.kind): (200, {"status": "ok"}),
            }.get((name, self.kind), (404, {"error": {"message": "no such path"}}))
            if name != "/health":
                self.asked.append(name)
                await asyncio.sleep(self.thinks)
                status, value = self.says.get(name, (status, value))
            named = [(b"server", self.name)] if self.name else []
            await answer(send, status, [(b"content-type", b"application/json"), *named], json.dumps(value).encode())
            return
        self.requests.append(seen)
        self.active += 1
        work = asyncio.ensure_future(self.respond(path, body, send))
        watch = asyncio.ensure_future(receive())  # returns when the client is gone, or at the end
        try:
            await asyncio.wait([work, watch], return_when=asyncio.FIRST_COMPLETED)
            if not work.done():
                self.gone += 1
            else:
                work.result()
        finally:
            self.active -= 1
            for task in (work, watch):
                task.cancel()
            await asyncio.gather(work, watch, return_exceptions=True)

    def tokenized(self, body: bytes) -> dict[str, Any]:
        prompt = json.loads(body)["prompt"] if body else ""
        return {"tokens": [self.tokens[prompt]] if prompt in self.tokens else [*map(ord, prompt)]}

    async def respond(self, path: str, body: bytes, send: Send) -> None:
        if not path.endswith(("/chat/completions", "/messages")):
            await answer(send, 200, [(b"x-echo", b"1"), (b"x-echo", b"2")], body)
            return
        request = json.loads(body)
        for name in request.keys() & self.refuses.keys():
            said = json.dumps({"error": {"message": f"no {name}s here"}}).encode()
            if self.refuses[name] == 200:  # too late to say so
                role = json.dumps({**HEAD, "choices": [{"index": 0, "delta": {"role": "assistant"}}]}).encode()
                await answer(
                    send, 200, [(b"content-type", b"text/event-stream")], b"data: %b\n\ndata: %b\n\n" % (role, said)
                )
                return
            await answer(send, self.refuses[name], [(b"content-type", b"application/json")], said)
            return
        script = json.loads(request["messages"][-1]["content"])
        if self.mutes in request:
            script["turns"] = [[]]
        await asyncio.sleep(script.get("wait", 0))
        status = script.get("status", 200)
        headers = [(name.encode(), value.encode()) for name, value in script.get("headers", {}).items()]
        if "raw" in script:
            await send({"type": "http.response.start", "status": status, "headers": headers})
            await asyncio.sleep(script.get("silent", 0))
            encoding = "latin-1" if script.get("latin") else "utf-8"
            for piece in script["raw"]:
                await send({"type": "http.response.body", "body": piece.encode(encoding), "more_body": True})
                await asyncio.sleep(script.get("pause", 0))
            if "die" not in script:
                await send({"type": "http.response.body", "body": b"", "more_body": False})
            return
        if not request.get("stream"):
            reply = whole_reply(script)
            await answer(send, status, [(b"content-type", b"application/json"), *headers], json.dumps(reply).encode())
            return
        headers += [(b"content-type", b"text/event-stream"), (b"x-upstream", b"yes")]
        await send({"type": "http.response.start", "status": status, "headers": headers})
        usage = bool((request.get("stream_options") or {}).get("include_usage"))
        for number, chunk in enumerate(chunks(script, usage)):
            if number == script.get("die"):
                return  # in the middle: the server breaks the connection
            if number == script.get("hang"):
                await asyncio.sleep(3600)
            data = chunk if isinstance(chunk, str) else json.dumps(chunk)
            await send({"type": "http.response.body", "body": f"data: {data}\n\n".encode(), "more_body": True})
            self.chunks += 1
            await asyncio.sleep(script.get("pause", 0))  # sending alone does not notice that nobody is there
        await send({"type": "http.response.body", "body": b"", "more_body": False})


async def answer(send: Send, status: int, headers: list[tuple[bytes, bytes]], body: bytes) -> None:
    """A whole answer."""
    await send({"type": "http.response.start", "status": status, "headers": headers})
    await send({"type": "http.response.body", "body": body, "more_body": False})


HEAD = {"id": "chatcmpl-1", "created": 1, "model": "scripted", "object": "chat.completion.chunk"}
USAGE = {"prompt_tokens": 1, "completion_tokens": 2, "total_tokens": 3}


def chunks(script: dict[str, Any], usage: bool) -> Iterator[Any]:
    """The chunks of a stream: the choices take turns."""

    def chunk(index: int, delta: dict[str, Any], reason: str | None = None, **more: Any) -> dict[str, Any]:
        return {**HEAD, "choices": [{"index": index, "delta": delta, "finish_reason": reason, **more}]}

    turns = [turn * script.get("repeat", 1) for turn in script["turns"]]
    for index in range(len(turns)):
        yield chunk(index, {"role": "assistant", "content": ""})
    for step in range(max(map(len, turns), default=0)):
        for index, pieces in enumerate(turns):
            if step < len(pieces):
                piece = pieces[step]
                yield chunk(index, piece if isinstance(piece, dict) else {"content": piece}, **script.get("choice", {}))
    for index in range(len(turns)):
        yield chunk(index, {}, script.get("reason", "stop"), **script.get("ends", {}))
    if usage:
        yield {**HEAD, "choices": [], "usage": USAGE}
    yield "[DONE]"


def whole_reply(script: dict[str, Any]) -> dict[str, Any]:
    """The same in one piece."""
    choices = [
        {
            "index": index,
            "message": {"role": "assistant", "content": "".join(pieces), **script.get("message", {})},
            "finish_reason": script.get("reason", "stop"),
            **script.get("choice", {}),
            **script.get("ends", {}),
        }
        for index, pieces in enumerate(script["turns"])
    ]
    return {**HEAD, "object": "chat.completion", "choices": choices, "usage": USAGE, **script.get("reply", {})}


@contextmanager
def serving(app: Any, *, on: int = 0, **options: Any) -> Iterator[str]:
    """Run an ASGI application in a thread, on a port of the loopback interface, a free one by default; its URL."""
    config = uvicorn.Config(app, host="127.0.0.1", port=on, log_config=None, access_log=False, ws="none", **options)
    config.timeout_graceful_shutdown = 1
    listener = config.bind_socket()
    server = uvicorn.Server(config)
    thread = threading.Thread(target=server.run, kwargs={"sockets": [listener]}, daemon=True)
    thread.start()
    try:
        eventually(lambda: server.started, "the server starts")
        scheme = "https" if "ssl_certfile" in options else "http"
        yield f"{scheme}://127.0.0.1:{listener.getsockname()[1]}"
    finally:
        server.should_exit = True
        thread.join(15)
        listener.close()


def eventually(true: Callable[[], bool], what: str, seconds: float = 20.0) -> None:
    """Wait until something holds; fails, saying what, if it does not."""
    end = time.monotonic() + seconds
    while not true():
        assert time.monotonic() < end, f"never: {what}"
        time.sleep(0.01)
