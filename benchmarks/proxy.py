"""What the proxy costs: CPU of its process per chunk, against the shortest pass-through; and its memory.

    python -m benchmarks.proxy [--quick] [--count] [--json FILE]

Three proxies stand in front of the same server, each in a process of its own, and stream the same answers: ``plain``
is the shortest pass-through that starlette and httpx allow, ``pass`` and ``parse`` are ``lfm2-fixed proxy`` for a
request without tools and with tools.  The chunks come one by one, as from a model: a read brings one.

``--count`` counts instructions (valgrind's callgrind) in place of CPU time: the same on every run and on a busy
machine, without what the kernel does.  It is the way to compare two versions of the proxy.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import re
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import AsyncIterator, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

import httpx
import uvicorn
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import Response, StreamingResponse
from starlette.routing import Route

from .texts import CUTTINGS, SHAPES, TOOLS

ROOT = Path(__file__).resolve().parent.parent
PATH = "/v1/chat/completions"
TEXTS = ("string", "calls", "prose")
PAUSE = 0.001  # seconds between the chunks that are measured: a proxy has read the one before by then
STILL = 1.0  # seconds without a byte, after which what came fast has come through, on a busy machine, too
SIZES = (4, 64, 1024)
"""KB of an answer at whose end a chunk is measured."""


@lru_cache(maxsize=4)
def chunks(text: str, size: int, measured: int) -> tuple[list[bytes], list[bytes]]:
    """An answer of ``size`` characters, a token in each chunk: its beginning, its last ``measured`` and the end."""
    head = {"id": "chatcmpl-0123456789abcdef", "object": "chat.completion.chunk", "created": 1, "model": "LFM2.5"}

    def event(delta: dict[str, Any], reason: str | None = None) -> bytes:
        choice = {"index": 0, "delta": delta, "logprobs": None, "finish_reason": reason, "token_ids": None}
        return b"data: %b\n\n" % json.dumps({**head, "choices": [choice]}, separators=(",", ":")).encode()

    pieces = CUTTINGS["token"](SHAPES[text].make(size))
    events = [event({"role": "assistant", "content": ""}), *(event({"content": piece}) for piece in pieces)]
    return events[:-measured], [*events[-measured:], event({}, "stop"), b"data: [DONE]\n\n"]


def upstream() -> Starlette:
    """The server: the beginning of an answer as fast as it can, the rest, after ``POST /go``, one by one."""
    go = asyncio.Event()

    async def answer(request: Request) -> StreamingResponse:
        asked = await request.json()
        first, last = chunks(asked["text"], asked["size"], asked["measured"])

        async def body() -> AsyncIterator[bytes]:
            yield b"".join(first)
            if asked["wait"]:
                await go.wait()
                go.clear()
            for chunk in last:
                yield chunk
                if asked["wait"]:
                    await asyncio.sleep(PAUSE)

        return StreamingResponse(body(), media_type="text/event-stream")

    async def release(_: Request) -> Response:
        go.set()
        return Response()

    return Starlette(routes=[Route(PATH, answer, methods=["POST"]), Route("/go", release, methods=["POST"])])


def plain(url: str) -> Starlette:
    """The shortest pass-through."""
    client = httpx.AsyncClient(base_url=url, timeout=None, trust_env=False)

    async def answer(request: Request) -> StreamingResponse:
        asked = client.build_request("POST", request.url.path, content=await request.body())
        response = await client.send(asked, stream=True)
        return StreamingResponse(
            response.aiter_raw(), response.status_code, media_type=response.headers["content-type"]
        )

    return Starlette(routes=[Route(PATH, answer, methods=["POST"])])


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


def cpu(pid: int) -> float:
    """Nanoseconds of CPU time that a process has used, less those of threads that have ended."""
    # Finer than /proc/PID/stat, which counts in hundredths of a second.
    return sum(float((task / "schedstat").read_text().split()[0]) for task in Path(f"/proc/{pid}/task").iterdir())


@dataclass
class Process:
    """One of the servers, in a process of its own."""

    url: str
    pid: int
    dumps: Path | None
    """Where callgrind writes, if it counts."""

    def reset(self) -> float:
        """Begin to count; what :meth:`used` is to be given."""
        if self.dumps is None:
            return cpu(self.pid)
        self._control("-z")
        return 0

    def used(self, before: float) -> float:
        """Nanoseconds of CPU time since :meth:`reset`, or instructions."""
        if self.dumps is None:
            return cpu(self.pid) - before
        for old in self.dumps.glob("out.*.*"):
            old.unlink()
        self._control("-d")
        until = time.monotonic() + 60
        while time.monotonic() < until:
            for dump in self.dumps.glob("out.*.*"):
                if found := re.search(r"^(?:totals|summary): (\d+)", dump.read_text(), re.MULTILINE):
                    return float(found[1])
            time.sleep(0.1)
        raise RuntimeError("callgrind wrote nothing")

    def memory(self) -> float:
        """Resident memory, in MB."""
        found = re.search(r"VmRSS:\s+(\d+) kB", Path(f"/proc/{self.pid}/status").read_text())
        return int(found[1]) / 1024 if found else 0.0

    def _control(self, what: str) -> None:
        subprocess.run(["callgrind_control", what, str(self.pid)], check=True, capture_output=True)


@contextmanager
def process(role: str, url: str = "", *, count: bool = False) -> Iterator[Process]:
    """Start a server."""
    command = [sys.executable, "-m", "benchmarks.proxy", "--serve", role, "--url", url]
    with tempfile.TemporaryDirectory() as scratch:
        if count:
            command = ["valgrind", "--tool=callgrind", f"--callgrind-out-file={scratch}/out.%p", *command]
        running = subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
        try:
            assert running.stdout is not None
            found = Process(running.stdout.readline().strip(), running.pid, Path(scratch) if count else None)
            transport = httpx.HTTPTransport(retries=10)  # the socket is bound, and may not listen yet
            with httpx.Client(timeout=120, transport=transport) as client:
                client.get(found.url + "/health")  # it serves now
            yield found
        finally:
            running.terminate()
            running.wait()


class Stream:
    """A client that reads one answer to its end, in a thread."""

    def __init__(self, client: httpx.Client, url: str, **fields: Any) -> None:
        self._body = {"model": "m", "messages": [{"role": "user", "content": "go"}], "stream": True, **fields}
        self._client, self._url = client, url
        self.received = 0
        self._thread = threading.Thread(target=self._read)
        self._thread.start()
        self._last = b""

    def _read(self) -> None:
        with self._client.stream("POST", self._url + PATH, json=self._body) as answer:
            for piece in answer.iter_raw():
                self.received += len(piece)
                self._last = (self._last + piece)[-20:]

    def wait_until_still(self) -> None:
        """Until something has come, and then nothing for a while."""
        before, since = -1, time.monotonic()
        while self.received != before or not before or time.monotonic() - since < STILL:
            if self.received != before:
                before, since = self.received, time.monotonic()
            time.sleep(STILL / 10)

    def finish(self) -> None:
        """Wait for the end."""
        self._thread.join()
        assert self._last.endswith(b"data: [DONE]\n\n"), self._last


def measure(client: httpx.Client, server: str, subject: Process, **fields: Any) -> float:
    """CPU for a chunk: nanoseconds, or instructions."""
    stream = Stream(client, subject.url, wait=True, **fields)
    stream.wait_until_still()
    before = subject.reset()
    client.post(server + "/go").raise_for_status()
    stream.finish()
    return subject.used(before) / fields["measured"]


def memory(client: httpx.Client, subject: Process, requests: int) -> tuple[float, float]:
    """Resident memory in MB after a tenth of that many requests, and after all of them."""

    def ask(_: int) -> None:
        Stream(client, subject.url, text="calls", size=200, measured=10, wait=False, tools=TOOLS).finish()

    seen = []
    with ThreadPoolExecutor(8) as pool:
        for part in (requests // 10, requests - requests // 10):
            list(pool.map(ask, range(part)))
            seen.append(subject.memory())
    return seen[0], seen[1]


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--quick", action="store_true", help="fewer chunks, sizes and requests")
    parser.add_argument("--count", action="store_true", help="count instructions; needs valgrind, takes minutes")
    parser.add_argument("--repeat", type=int, default=5, help="repetitions, of which the least counts (default 5)")
    parser.add_argument("--only", choices=["cost", "flat", "memory"], help="one of the three parts")
    parser.add_argument("--json", type=Path, help="where the results go")
    parser.add_argument("--serve", help=argparse.SUPPRESS)
    parser.add_argument("--url", default="", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.serve:
        serve(options.serve, options.url)
        return
    measured = 200 if options.count else 300 if options.quick else 800
    repeat = 1 if options.count else options.repeat
    unit, scale = ("thousand instructions", 1e3) if options.count else ("µs CPU", 1e3)
    results: dict[str, Any] = {"unit": unit}
    with ExitStack() as stack:
        client = stack.enter_context(httpx.Client(timeout=None, trust_env=False, limits=httpx.Limits()))
        server = stack.enter_context(process("upstream")).url
        theirs = stack.enter_context(process("plain", server, count=options.count))
        ours = stack.enter_context(process("ours", server, count=options.count))
        subjects: dict[str, tuple[Process, dict[str, Any]]] = {
            "plain": (theirs, {}),
            "pass": (ours, {}),
            "parse": (ours, {"tools": TOOLS}),
        }
        if options.only in (None, "cost"):
            results["cost"] = {}
            print(f"{'a chunk of':<12}{'':>8}{unit:>24}{'ratio':>8}")
            for text in TEXTS:
                costs: dict[str, float] = {}
                for name in [name for _ in range(repeat + 1) for name in subjects]:  # in turn, once to warm up
                    subject, more = subjects[name]
                    cost = (
                        measure(client, server, subject, text=text, size=4 * measured + 400, measured=measured, **more)
                        / scale
                    )
                    costs[name] = cost if name not in costs else min(cost, costs[name])
                results["cost"][text] = costs
                for name, cost in costs.items():
                    print(f"{text:<12}{name:>8}{cost:>24.1f}{cost / costs['plain']:>8.2f}", flush=True)
        if options.only in (None, "flat"):
            results["flat"] = {}
            for text in TEXTS:
                sizes = [kb for kb in SIZES if kb < 100 or not options.quick]
                found: dict[str, float] = {}
                for kb in [kb for _ in range(repeat) for kb in sizes]:
                    fields = {"text": text, "size": kb * 1024, "measured": measured, "tools": TOOLS}
                    cost = measure(client, server, ours, **fields) / scale
                    found[f"{kb} KB"] = min(cost, found.get(f"{kb} KB", cost))
                results["flat"][text] = found
                print(
                    f"{text}, a chunk after", ", ".join(f"{kb}: {cost:.1f}" for kb, cost in found.items()), flush=True
                )
        if options.only in (None, "memory") and not options.count:
            requests = 1000 if options.quick else 10_000
            early, late = results["memory"] = memory(client, ours, requests)
            print(f"resident after {requests // 10} requests {early:.1f} MB, after {requests} {late:.1f} MB")
    if options.json:
        options.json.write_text(json.dumps(results, indent=2) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
