"""In real servers: how long others wait while one request streams a long argument.

    python -m benchmarks.server [--size 64] [--stock lfm2] [--only fixed rust] [--json FILE]

Starts vLLM servers one after the other, on the CPU with the tiny scripted model of
``serve/`` (its venv: ``LFM2_FIXED_SERVE_VENV``, made by ``serve/setup_venv.sh``): one with
vLLM's own parser, one with this one, and vLLM's Rust front end with ``lfm2-fixed proxy`` before it.
The same long call is streamed from each.  Meanwhile ``/health`` is asked again and again, which needs
the event loop and nothing else, and a second request streams prose.  Then a call is streamed alone, for
the CPU time of a chunk, and many at once.  All but that are times of the wall clock, and the engine and
this client share the machine: compare the servers with each other, and each with itself when idle.
"""

from __future__ import annotations

import argparse
import http.client
import json
import sys
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from .proxy import cpu, process
from .texts import SHAPES, START, TOOLS

ROOT = Path(__file__).resolve().parent.parent
PROBE_PAUSE = 0.02  # seconds between two questions
CROWD = 64  # streams at once, twice as many as the engine decodes together
ALONE_KB = 16  # of the call that is streamed alone: so many chunks that those of the request do not count


@dataclass
class Spread:
    """Of many durations, in milliseconds."""

    count: int = 0
    median: float = 0.0
    p99: float = 0.0
    worst: float = 0.0

    @classmethod
    def of(cls, seconds: list[float]) -> Spread:
        """Sum up; all zero if there are none."""
        if not seconds:
            return cls()
        ordered = sorted(seconds)

        def at(share: float) -> float:
            return 1000 * ordered[min(len(ordered) - 1, int(share * len(ordered)))]

        return cls(len(ordered), at(0.5), at(0.99), 1000 * ordered[-1])

    def __str__(self) -> str:
        return f"median {self.median:.1f}, 99 % {self.p99:.1f}, worst {self.worst:.0f} ms ({self.count})"


@dataclass
class Result:
    """What one server showed."""

    parser: str
    idle: Spread = field(default_factory=Spread)
    """``/health`` without other requests."""
    health: Spread = field(default_factory=Spread)
    """``/health`` while the argument streams."""
    gaps: Spread = field(default_factory=Spread)
    """Between chunks of the other stream."""
    first_byte: float = 0.0
    """Seconds from the request to the first character of an argument's value."""
    seconds: float = 0.0
    """Until the stream ended."""
    chunks: int = 0
    characters: int = 0
    """Of the arguments."""
    complete: bool = False
    """It ended within the time allowed, and its arguments are one JSON object."""
    cpu: list[float] = field(default_factory=list)
    """Microseconds of CPU time for a chunk of a stream that is alone, of each process that answers HTTP."""
    crowd: Spread = field(default_factory=Spread)
    """``/health`` while ``CROWD`` calls stream at once."""
    crowd_cpu: list[float] = field(default_factory=list)
    """As ``cpu``, meanwhile."""
    crowd_seconds: float = 0.0
    """Until the last of these streams ended."""

    def __str__(self) -> str:
        def costs(each: list[float]) -> str:
            return " + ".join(f"{cost:.0f}" for cost in each) + " µs CPU a chunk"

        return (
            f"{self.parser}: first argument byte after {self.first_byte * 1000:.0f} ms; {self.characters} characters "
            f"in {self.chunks} chunks, {self.seconds:.1f} s, {'complete' if self.complete else 'NOT complete'}\n"
            f"    /health, idle:       {self.idle}\n    /health, meanwhile:  {self.health}\n"
            f"    other stream's gaps: {self.gaps}\n    a stream alone:      {costs(self.cpu)}\n"
            f"    {CROWD} at once:          {costs(self.crowd_cpu)}, {self.crowd_seconds:.1f} s\n"
            f"    /health, meanwhile:  {self.crowd}"
        )


def events(port: int, body: dict[str, Any], stop: threading.Event) -> Iterator[dict[str, Any]]:
    """The chunks of a streamed chat answer, until it ends or ``stop`` is set."""
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=600)
    try:
        connection.request("POST", "/v1/chat/completions", json.dumps(body), {"Content-Type": "application/json"})
        answer = connection.getresponse()
        if answer.status != 200:
            raise RuntimeError(f"HTTP {answer.status}: {answer.read(500)!r}")
        while not stop.is_set() and (line := answer.readline()):
            if line.startswith(b"data: {"):
                yield json.loads(line[6:])
    finally:
        connection.close()


def probe(port: int, stop: threading.Event, into: list[float]) -> None:
    """Ask ``/health`` again and again."""
    while not stop.is_set():
        # A connection each time: a server that is stuck for seconds closes those that are kept alive.
        connection = http.client.HTTPConnection("127.0.0.1", port, timeout=600)
        begin = time.perf_counter()
        connection.request("GET", "/health")
        connection.getresponse().read()
        into.append(time.perf_counter() - begin)
        connection.close()
        stop.wait(PROBE_PAUSE)


@contextmanager
def probing(port: int) -> Iterator[list[float]]:
    """Ask ``/health`` meanwhile; the seconds of each answer."""
    stop = threading.Event()
    seen: list[float] = []
    prober = threading.Thread(target=probe, args=(port, stop, seen))
    prober.start()
    try:
        yield seen
    finally:
        stop.set()
        prober.join()


def count(port: int, body: dict[str, Any]) -> int:
    """Stream an answer; its chunks."""
    return sum(1 for _ in events(port, body, threading.Event()))


def measure_cpu(result: Result, port: int, pids: Sequence[int], pace: float, call: Callable[[int, float], Any]) -> None:
    """Measure what chunks cost these processes, and how long others wait for many streams."""
    before = [cpu(pid) for pid in pids]
    chunks = count(port, call(ALONE_KB * 1024, pace))
    result.cpu = [(cpu(pid) - old) / chunks / 1000 for pid, old in zip(pids, before)]
    before = [cpu(pid) for pid in pids]
    begin = time.perf_counter()
    with probing(port) as waits, ThreadPoolExecutor(CROWD) as pool:
        # The pauses of all streams add up.
        chunks = sum(pool.map(lambda _: count(port, call(1024, 2 * pace / CROWD)), range(CROWD)))
    result.crowd_seconds = time.perf_counter() - begin
    result.crowd = Spread.of(waits)
    result.crowd_cpu = [(cpu(pid) - old) / chunks / 1000 for pid, old in zip(pids, before)]


def measure(
    port: int, pids: Sequence[int], parser: str, size: int, limit: float, pace: float, chat_body: Any
) -> Result:
    """Measure a running server.  ``pids``: of what answers HTTP."""
    result = Result(parser)

    def body_of(shape: str, tools: Any, size: int, pace: float) -> dict[str, Any]:
        text = SHAPES[shape].make(size)
        body: dict[str, Any] = chat_body(text, tools, stream=True, max_tokens=30_000)
        body["vllm_xargs"]["step_ms"] = pace
        return body

    def call_of(size: int, pace: float) -> dict[str, Any]:
        return body_of("string", TOOLS, size, pace) | {"tool_choice": "auto"}

    call = call_of(size, pace)
    prose = body_of("prose", None, size, pace)
    never = threading.Event()
    for body in (
        chat_body(START + "[write(text='x')]", TOOLS, stream=True, max_tokens=100),
        prose | {"max_tokens": 50},
    ):
        for _ in events(port, body, never):  # the first requests of a server are slow
            pass
    with probing(port) as idle:
        time.sleep(4)
    result.idle = Spread.of(idle)

    health: list[float] = []
    gaps: list[float] = []
    stop = threading.Event()

    def other() -> None:
        before = 0.0
        for _ in events(port, prose, stop):
            now = time.perf_counter()
            if before:
                gaps.append(now - before)
            before = now

    threads = [threading.Thread(target=other), threading.Thread(target=probe, args=(port, stop, health))]
    alarm = threading.Timer(limit, stop.set)
    begin = time.perf_counter()
    for thread in (*threads, alarm):
        thread.start()
    arguments = ""
    for chunk in events(port, call, stop):
        for choice in chunk["choices"]:
            for piece in choice["delta"].get("tool_calls") or ():
                result.chunks += 1
                arguments += piece["function"].get("arguments") or ""
                if not result.first_byte and len(arguments) > len('{"text": "'):
                    result.first_byte = time.perf_counter() - begin
    result.seconds = time.perf_counter() - begin
    in_time = not stop.is_set()
    stop.set()
    alarm.cancel()
    for thread in threads:
        thread.join()
    result.health, result.gaps, result.characters = Spread.of(health), Spread.of(gaps), len(arguments)
    result.complete = in_time and arguments == SHAPES["string"].calls(size)[0][1]
    measure_cpu(result, port, pids, pace, call_of)
    return result


def main(argv: list[str] | None = None) -> int:
    """Start the servers, measure, print."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.server", description=__doc__.splitlines()[0])
    parser.add_argument("--size", type=int, default=64, help="KB of arguments (default 64)")
    parser.add_argument("--limit", type=float, default=600, help="seconds a stream may take (default 600)")
    parser.add_argument(
        "--pace",
        type=float,
        default=4,
        help="milliseconds the model pauses before a token of each stream (default 4); without a pause the tiny model "
        "outruns the API server",
    )
    parser.add_argument("--stock", default="lfm2", help="vLLM's own parser (default lfm2)")
    parser.add_argument("--only", choices=["stock", "fixed", "rust"], nargs="+", help="some of the servers")
    parser.add_argument("--json", type=Path, help="also write the results there")
    options = parser.parse_args(argv)
    sys.path.insert(0, str(ROOT / "serve"))
    from rig import (  # type: ignore[import-not-found,unused-ignore]
        PLUGIN,
        Server,
        ServerError,
        chat_body,
    )

    results = []
    names = {"stock": options.stock, "fixed": "lfm2_fixed", "rust": "Rust, lfm2-fixed proxy"}
    for kind, name in names.items():
        if options.only and kind not in options.only:
            continue
        print(f"{name}: starting a server", flush=True)
        try:
            with ExitStack() as stack:
                plugin = PLUGIN if kind == "fixed" else None
                server = stack.enter_context(Server(name, plugin=plugin, rust=kind == "rust"))
                port, pids = server.port, [server.pid]
                if kind == "rust":
                    proxy = stack.enter_context(process("ours", server.url))
                    port, pids = int(proxy.url.rpartition(":")[2]), [server.pid, proxy.pid]
                print(f"{name}: streaming {options.size} KB", flush=True)
                result = measure(port, pids, name, options.size * 1024, options.limit, options.pace, chat_body)
        except ServerError as error:
            print(error, file=sys.stderr)
            return 1
        results.append(result)
        print(result, flush=True)
    if options.json:
        options.json.write_text(json.dumps([asdict(result) for result in results], indent=1) + "\n", encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
