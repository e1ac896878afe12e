"""What the proxy costs: CPU time of its process per chunk, against a plain pass-through.

    python -m benchmarks.proxy [--quick]

Three proxies stand in front of the same server, each in a process of its own, and stream the same answers:
``plain`` is the shortest pass-through that starlette and httpx allow, ``pass`` and ``parse`` are
``lfm2-fixed proxy`` for a request without tools and with tools.  Once the server's chunks come one by one,
as from a model, and once as fast as they can be written, when one read brings many.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import subprocess
import sys
import time
from collections.abc import AsyncIterator, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import httpx
import uvicorn
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import StreamingResponse
from starlette.routing import Route

ROOT = Path(__file__).resolve().parent.parent
TICK = os.sysconf("SC_CLK_TCK")
TOOLS = [{"type": "function", "function": {"name": "write", "parameters": {"properties": {"content": {}}}}}]
WORDS = ["import", " matplotlib", ".py", "plot", " as", " plt", "\\n", "plt", ".plot", "(", "x", ",", " y", ")", "\\n"]


def chunks(count: int) -> list[bytes]:
    """A call with one long argument, a token in each of ``count`` chunks."""
    pieces = ["<|tool_call_start|>", "[", "write", "(content", "='"]
    pieces += [WORDS[number % len(WORDS)] for number in range(count - 8)] + ["'", ")]", "<|tool_call_end|>"]
    head = {"id": "chatcmpl-1", "object": "chat.completion.chunk", "created": 1, "model": "m"}

    def event(delta: dict[str, Any], reason: str | None = None) -> bytes:
        choice = {"index": 0, "delta": delta, "logprobs": None, "finish_reason": reason}
        return b"data: %b\n\n" % json.dumps({**head, "choices": [choice]}, separators=(",", ":")).encode()

    events = [event({"role": "assistant", "content": ""}), *(event({"content": piece}) for piece in pieces)]
    return [*events, event({}, "stop"), b"data: [DONE]\n\n"]


def upstream() -> Starlette:
    """The server: ``max_tokens`` chunks, with ``pause`` seconds between them."""

    async def answer(request: Request) -> StreamingResponse:
        asked = await request.json()

        async def body() -> AsyncIterator[bytes]:
            for chunk in chunks(asked["max_tokens"]):
                yield chunk
                await asyncio.sleep(asked["pause"])

        return StreamingResponse(body(), media_type="text/event-stream")

    return Starlette(routes=[Route("/v1/chat/completions", answer, methods=["POST"])])


def plain(url: str) -> Starlette:
    """The shortest pass-through."""
    client = httpx.AsyncClient(base_url=url, timeout=None, trust_env=False)

    async def answer(request: Request) -> StreamingResponse:
        asked = client.build_request("POST", request.url.path, content=await request.body())
        response = await client.send(asked, stream=True)
        return StreamingResponse(
            response.aiter_raw(), response.status_code, media_type=response.headers["content-type"]
        )

    return Starlette(routes=[Route("/v1/chat/completions", answer, methods=["POST"])])


def serve(role: str, url: str) -> None:
    """Run one of the servers; its URL goes to standard output."""
    if role == "ours":
        from lfm2_fixed.proxy import Settings
        from lfm2_fixed.proxy.serve import new_server

        server, listener = new_server(Settings(url, mode="parse"), port=0)
    else:
        app = upstream() if role == "upstream" else plain(url)
        config = uvicorn.Config(app, port=0, log_level="warning", access_log=False)
        server, listener = uvicorn.Server(config), config.bind_socket()
    print(f"http://127.0.0.1:{listener.getsockname()[1]}", flush=True)
    server.run(sockets=[listener])


@contextmanager
def process(role: str, url: str = "") -> Iterator[tuple[str, int]]:
    """One of the servers in a process of its own: URL and process id."""
    command = [sys.executable, "-m", "benchmarks.proxy", "--serve", role, "--url", url]
    running = subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, text=True)
    try:
        assert running.stdout is not None
        yield running.stdout.readline().strip(), running.pid
    finally:
        running.terminate()
        running.wait()


def cpu(pid: int) -> float:
    """Seconds of CPU time that a process has used."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / TICK


def measure(client: httpx.Client, url: str, pid: int, *, count: int, streams: int, pause: float, tools: bool) -> float:
    """Microseconds of CPU time per chunk."""
    request = {
        "model": "m",
        "messages": [{"role": "user", "content": "go"}],
        "stream": True,
        "max_tokens": count,
        "pause": pause,
        **({"tools": TOOLS} if tools else {}),
    }

    def stream() -> None:
        with client.stream("POST", url + "/v1/chat/completions", json=request) as answer:
            last = b""
            for piece in answer.iter_raw():
                last = (last + piece)[-20:]
            assert last.endswith(b"data: [DONE]\n\n"), last

    stream()  # connections and imports
    before = cpu(pid)
    for _ in range(streams):
        stream()
    return (cpu(pid) - before) / (count * streams) * 1e6


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--quick", action="store_true", help="fewer chunks")
    parser.add_argument("--repeat", type=int, default=3, help="repetitions, of which the least counts")
    parser.add_argument("--json", type=Path, help="where the results go")
    parser.add_argument("--serve", help=argparse.SUPPRESS)
    parser.add_argument("--url", default="", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.serve:
        serve(options.serve, options.url)
        return
    count = 1000 if options.quick else 5000
    results: dict[str, dict[str, float]] = {}
    with ExitStack() as stack:
        client = stack.enter_context(httpx.Client(timeout=None, trust_env=False))
        server, _ = stack.enter_context(process("upstream"))
        plain_url, plain_pid = stack.enter_context(process("plain", server))
        our_url, our_pid = stack.enter_context(process("ours", server))
        time.sleep(1.5)
        subjects = {
            "plain": (plain_url, plain_pid, False),
            "pass": (our_url, our_pid, False),
            "parse": (our_url, our_pid, True),
        }
        for way, pause, streams in (("one by one", 0.001, 1), ("as fast as possible", 0.0, 4)):
            results[way] = {}
            for name in list(subjects) * options.repeat:  # in turn: the machine's load is the same for all
                url, pid, tools = subjects[name]
                print(f"{way}: {name} …", file=sys.stderr)
                cost = measure(client, url, pid, count=count, streams=streams, pause=pause, tools=tools)
                results[way][name] = min(cost, results[way].get(name, cost))
    print(f"{'chunks':<22}{'':>8}{'µs CPU a chunk':>16}{'ratio':>8}")
    for way, costs in results.items():
        for name, cost in costs.items():
            print(f"{way:<22}{name:>8}{cost:>16.1f}{cost / costs['plain']:>8.2f}")
    if options.json:
        options.json.write_text(json.dumps(results, indent=2) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
