"""In real servers: how long others wait while one request streams a long argument.

    python -m benchmarks.server [--size 64] [--stock lfm2] [--json FILE]

Starts two vLLM servers one after the other, on the CPU with the tiny scripted model of
``serve/`` (its venv: ``LFM2_FIXED_SERVE_VENV``, made by ``serve/setup_venv.sh``): one with
vLLM's own parser, one with this one.  The same long call is streamed from each.  Meanwhile
``/health`` is asked again and again, which needs the event loop and nothing else, and a second
request streams prose.  Times of the wall clock, and the engine and this client share the machine:
compare the two servers with each other, and both with the idle server.
"""

from __future__ import annotations

import argparse
import http.client
import json
import sys
import threading
import time
from collections.abc import Iterator
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from .texts import SHAPES, START, TOOLS

ROOT = Path(__file__).resolve().parent.parent
PROBE_PAUSE = 0.02  # seconds between two questions


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


def measure(server: Any, parser: str, size: int, limit: float, pace: float, chat_body: Any) -> Result:
    """Measure a running server."""
    result = Result(parser)
    text = SHAPES["string"].make(size)
    call = chat_body(text, TOOLS, stream=True, tool_choice="auto", max_tokens=30_000)
    prose = chat_body(SHAPES["prose"].make(size), None, stream=True, max_tokens=30_000)
    for body in (call, prose):
        body["vllm_xargs"]["step_ms"] = pace
    never = threading.Event()
    for body in (
        chat_body(START + "[write(text='x')]", TOOLS, stream=True, max_tokens=100),
        prose | {"max_tokens": 50},
    ):
        for _ in events(server.port, body, never):  # the first requests of a server are slow
            pass
    idle: list[float] = []
    stop = threading.Event()
    prober = threading.Thread(target=probe, args=(server.port, stop, idle))
    prober.start()
    time.sleep(4)
    stop.set()
    prober.join()
    result.idle = Spread.of(idle)

    health: list[float] = []
    gaps: list[float] = []
    stop = threading.Event()

    def other() -> None:
        before = 0.0
        for _ in events(server.port, prose, stop):
            now = time.perf_counter()
            if before:
                gaps.append(now - before)
            before = now

    threads = [threading.Thread(target=other), threading.Thread(target=probe, args=(server.port, stop, health))]
    alarm = threading.Timer(limit, stop.set)
    begin = time.perf_counter()
    for thread in (*threads, alarm):
        thread.start()
    arguments = ""
    for chunk in events(server.port, call, stop):
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
    parser.add_argument("--only", choices=["stock", "fixed"], help="one of the two servers")
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
    names = {"stock": options.stock, "fixed": "lfm2_fixed"}
    for kind, name in names.items():
        if options.only not in (None, kind):
            continue
        print(f"{name}: starting a server", flush=True)
        try:
            with Server(name, plugin=PLUGIN if kind == "fixed" else None) as server:
                print(f"{name}: streaming {options.size} KB", flush=True)
                result = measure(server, name, options.size * 1024, options.limit, options.pace, chat_body)
        except ServerError as error:
            print(error, file=sys.stderr)
            return 1
        results.append(result)
        print(
            f"{name}: first argument byte after {result.first_byte * 1000:.0f} ms; {result.characters} characters in "
            f"{result.chunks} chunks, {result.seconds:.1f} s, {'complete' if result.complete else 'NOT complete'}\n"
            f"    /health, idle:       {result.idle}\n    /health, meanwhile:  {result.health}\n"
            f"    other stream's gaps: {result.gaps}",
            flush=True,
        )
    if options.json:
        options.json.write_text(json.dumps([asdict(result) for result in results], indent=1) + "\n", encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
