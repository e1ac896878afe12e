"""What schemas that are made to be expensive cost: CPU and memory to build their grammar, and what others wait for.

    python -m benchmarks.hostile [--server] [--only SCHEMA …]

Each schema is one request with one tool, built in a process that has built another one before (so that imports
and the package's own automata are there), nothing of it remembered.  ``--server`` sends them to a real vLLM (the
serve venv, as in :mod:`benchmarks.server`) as ``tool_choice: "required"``, while ``/health`` is asked again and again.
"""

from __future__ import annotations

import argparse
import json
import logging
import sys
import tempfile
import threading
import time
import tracemalloc
import urllib.error
import urllib.request
from pathlib import Path
from typing import Any

from lfm2_fixed.grammar import structural_tag
from lfm2_fixed.grammar.tag import _build
from lfm2_fixed.grammar.work import forget

from .server import Spread, probe

ROOT = Path(__file__).resolve().parent.parent
START, END = 9001, 9002
"""Ids of the markers: any will do."""
TEMPLATE = "{% for message in messages %}{{ message['content'] }}{% endfor %}"
"""A chat template without the tools: a prompt that holds them would be too long for the model, and refused first."""


def _members(count: int, make: Any) -> dict[str, Any]:
    return {"type": "object", "properties": {f"p{n}": make(n) for n in range(count)}}


def _nested(depth: int, width: int) -> dict[str, Any]:
    if not depth:
        return {"type": "string"}
    return {"type": "object", "properties": {f"k{n}": _nested(depth - 1, width) for n in range(width)}}


SCHEMAS: dict[str, dict[str, Any]] = {
    "300 patterns": _members(300, lambda n: {"type": "string", "pattern": f"^[a-z]{{1,40}}-{n}.{{0,30}}$"}),
    "200 patternProperties": {
        "type": "object",
        "patternProperties": {f"^x{n}-.*[a-z]{n % 7}$": {"type": "integer", "minimum": n} for n in range(200)},
    },
    "2,000 ranges": _members(2000, lambda n: {"type": "number", "minimum": n * 1.37, "maximum": 1000 + n * 3.1}),
    "16,000 values": _nested(4, 11),
    "an enum of 20,000": _members(1, lambda n: {"enum": [f"value number {n}" for n in range(20_000)]}),
    "a constant of 40 KB": _members(1, lambda n: {"const": {f"k{n}": list(range(20)) for n in range(400)}}),
    "an allOf of 2,000": {
        "type": "object",
        "allOf": [{"type": "object", "properties": {f"k{n}": {"type": "string"}}} for n in range(2000)],
    },
    "unions beside each other": _members(
        1,
        lambda n: {
            "allOf": [
                {"anyOf": [{"type": "object", "properties": {f"k{m}_{n}": {"type": "integer"}}} for n in range(40)]}
                for m in range(3)
            ]
        },
    ),
    "a pattern of products": _members(
        1, lambda n: {"type": "string", "allOf": [{"pattern": f"({chr(97 + n)}x|y)+{chr(97 + n)}"} for n in range(12)]}
    ),
    "long names beside others": {
        "type": "object",
        "properties": {f"a_very_long_property_name_{n}": {"type": "string"} for n in range(800)},
        "additionalProperties": True,
        "patternProperties": {f"^{chr(97 + n)}.*{n}$": {"type": "integer"} for n in range(12)},
    },
    "800 limited strings": _members(800, lambda n: {"type": "string", "minLength": n % 40, "maxLength": 50 + n}),
    "500 ranges in a list": _members(
        1,
        lambda _: {
            "type": "array",
            "prefixItems": [{"type": "integer", "minimum": n, "maximum": 7 * n + 3} for n in range(500)],
        },
    ),
}


def tools_of(schema: dict[str, Any]) -> list[dict[str, Any]]:
    """The tools of a request."""
    return [{"type": "function", "function": {"name": "f", "parameters": schema}}]


def build(schema: dict[str, Any]) -> Any:
    """The structural tag, with nothing of it remembered."""
    forget()
    _build.cache_clear()
    ids = {"<|tool_call_start|>": START, "<|tool_call_end|>": END}
    return structural_tag(tools_of(schema), "required", token_ids=ids)


def costs(schema: dict[str, Any], rounds: int = 3) -> tuple[float, float, int]:
    """Seconds of CPU at best, the most memory in use at once in MB, and characters of the tag."""
    best = float("inf")
    for _ in range(rounds):
        begun = time.process_time()
        tag = build(schema)
        best = min(best, time.process_time() - begun)
    tracemalloc.start()
    build(schema)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    return best, peak / 1e6, len(json.dumps(tag))


def waits(server: Any, schema: dict[str, Any] | None) -> tuple[Spread, int]:
    """How long ``/health`` takes while the request is served (None: none is), and the status of the answer."""
    times: list[float] = []
    stop = threading.Event()
    prober = threading.Thread(target=probe, args=(server.port, stop, times))
    prober.start()
    time.sleep(0.3)
    status = 200
    if schema is None:
        time.sleep(4)
    else:
        body = {
            "model": "tiny", "messages": [{"role": "user", "content": "go"}], "tools": tools_of(schema),
            "tool_choice": "required", "max_tokens": 4,
        }  # fmt: skip
        try:
            server.post("/v1/chat/completions", body)
        except urllib.error.HTTPError as error:
            status = error.code
    time.sleep(0.3)
    stop.set()
    prober.join()
    return Spread.of(times), status


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--server", action="store_true", help="also ask a real vLLM")
    parser.add_argument("--only", nargs="+", choices=SCHEMAS, metavar="SCHEMA", help="some of them")
    options = parser.parse_args()
    chosen = {name: schema for name, schema in SCHEMAS.items() if not options.only or name in options.only}
    logging.getLogger("lfm2_fixed.grammar").disabled = True  # a line for each keyword that takes too much
    build(SCHEMAS["a pattern of products"])
    for name, schema in chosen.items():
        seconds, megabytes, size = costs(schema)
        print(f"{name:28} {seconds * 1e3:6.0f} ms {megabytes:6.1f} MB {size:9,} characters", flush=True)
    if not options.server:
        return
    sys.path.insert(0, str(ROOT / "serve"))
    from rig import Server  # type: ignore[import-not-found,unused-ignore]

    with tempfile.TemporaryDirectory() as folder:
        template = Path(folder) / "template.jinja"
        template.write_text(TEMPLATE, encoding="utf-8")
        ask(Server(flags=["--chat-template", str(template)]), chosen)


def ask(server: Any, schemas: dict[str, dict[str, Any]]) -> None:
    """Send all of ``schemas`` to the server."""
    with server:
        waits(server, _members(1, lambda n: {"type": "string"}))  # the first request of a server is slow
        print("/health, idle:", waits(server, None)[0])
        for name, schema in schemas.items():
            spread, status = waits(server, schema)
            print(f"{name:28} HTTP {status}: {spread}", flush=True)


if __name__ == "__main__":
    main()
