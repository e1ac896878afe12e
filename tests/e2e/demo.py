"""The payloads through vLLM's own LFM2 parser and through ours, in two real servers, one after the other.

`serve.sh --demo` runs it, in the serve venv.  Exit status 0 if ours is right everywhere, 1 if not, 2 if it cannot run.
"""

from __future__ import annotations

import argparse
import json
import signal
import sys
import time
import urllib.error
from concurrent.futures import ThreadPoolExecutor

from rich.console import Console
from rig import PLUGIN, Server, ServerError, chat_body, read_sse

from lfm2_fixed.repro.payloads import PAYLOADS, TOOLS, Payload
from lfm2_fixed.repro.readers import Merged, Outcome
from lfm2_fixed.repro.report import all_right, print_report

LFM2 = [payload for payload in PAYLOADS if payload.dialect == "lfm2"]


def whole(server: Server, payload: Payload) -> Outcome:
    """The payload's turn in one answer."""
    try:
        message = json.loads(_post(server, payload, stream=False))["choices"][0]["message"]
    except urllib.error.HTTPError as error:
        return Outcome(error=f"HTTP {error.code}: {error.read().decode(errors='replace')}")
    calls = [(call["function"]["name"], call["function"]["arguments"]) for call in message.get("tool_calls") or ()]
    return Outcome(tuple(calls), message["content"] or "")


def streamed(server: Server, payload: Payload) -> Outcome:
    """The payload's turn as a client puts the stream together."""
    merged = Merged()
    try:
        for event in read_sse(_post(server, payload, stream=True)):
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


def _post(server: Server, payload: Payload, *, stream: bool) -> bytes:
    # A short pause before each token: each one becomes a delta of its own, as with a real model.
    body = chat_body(payload.text, TOOLS, stream=stream, tool_choice="auto")
    body["vllm_xargs"]["step_ms"] = 1
    return server.post("/v1/chat/completions", body)


def ask(server: Server) -> dict[str, dict[str, Outcome]]:
    """Every payload, streamed and whole, eight requests at a time."""
    with ThreadPoolExecutor(8) as pool:
        streams = pool.map(lambda payload: streamed(server, payload), LFM2)
        wholes = pool.map(lambda payload: whole(server, payload), LFM2)
        return {
            payload.id: {"streamed": stream, "whole": answer}
            for payload, stream, answer in zip(LFM2, streams, wholes, strict=True)
        }


def main() -> int:
    """Start, ask, stop; twice.  Then the table."""
    arguments = argparse.ArgumentParser(description=__doc__)
    arguments.add_argument("--port", type=int, help="default: a free one")
    arguments.add_argument("--brief", action="store_true", help="only the table and the sums")
    options = arguments.parse_args()

    def say(sentence: str) -> None:
        print(f"[demo] {sentence}", flush=True)

    def terminate(number: int, frame: object) -> None:
        raise KeyboardInterrupt

    signal.signal(signal.SIGTERM, terminate)
    parsers: dict[str, dict[str, dict[str, Outcome]]] = {}
    try:
        for name, parser, plugin in (("stock", "lfm2", None), ("ours", "lfm2_fixed", PLUGIN)):
            say(f"starting vLLM on the CPU with --tool-call-parser {parser} …")
            with Server(parser, plugin=plugin, port=options.port, say=say) as server:
                begin = time.monotonic()
                parsers[f"{name} ({parser})"] = ask(server)
                say(f"  {2 * len(LFM2)} requests answered in {time.monotonic() - begin:.0f} s")
    except ServerError as error:
        say(f"error: {error}")
        return 2
    except KeyboardInterrupt:
        say("stopped")
        return 130
    print(flush=True)
    print_report(Console(highlight=False), LFM2, parsers, details=not options.brief)
    return 0 if all_right(LFM2, parsers["ours (lfm2_fixed)"]) else 1


if __name__ == "__main__":
    sys.exit(main())
