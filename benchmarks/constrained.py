"""Constrained calls of a model with random weights: whatever is right in what it says, a grammar made.

usage: python -m benchmarks.constrained URL [--model NAME] [--fields JSON] [--required 100] [--named 50] [--single 30]

URL is a proxy (or a server with the plugin) in front of such a model.  Each request is sent streamed and whole; every
answer has to be calls of the declared tools, with arguments that ``jsonschema`` takes, and no other text.
"""

from __future__ import annotations

import argparse
import json
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import httpx
import jsonschema

from lfm2_fixed.wire.sse import SSEDecoder

WORDS = {"type": "string", "maxLength": 12}
TOOLS: dict[str, dict[str, Any]] = {
    "get_weather": {
        "type": "object",
        "properties": {
            "city": {"type": "string", "minLength": 1, "maxLength": 10},
            "days": {"type": "integer", "minimum": 1, "maximum": 14},
            "unit": {"enum": ["celsius", "fahrenheit", None]},
        },
        "required": ["city", "days"],
        "additionalProperties": False,
    },
    "book": {
        "type": "object",
        "properties": {
            "guests": {
                "type": "array",
                "items": {"$ref": "#/$defs/guest"},
                "minItems": 1,
                "maxItems": 2,
            },
            "day": {"type": "string", "pattern": r"^20\d\d-(0[1-9]|1[0-2])-(0[1-9]|1\d|2[0-8])$"},
            "room type": {"anyOf": [{"const": "any"}, {"type": "number", "exclusiveMinimum": 0, "maximum": 2.5}]},
        },
        "required": ["room type", "guests"],
        "$defs": {
            "guest": {
                "type": "object",
                "properties": {"name": WORDS, "vip": {"type": "boolean"}, "max-age": {"type": "integer"}},
                "required": ["name"],
                "additionalProperties": False,
            }
        },
        "additionalProperties": False,
    },
    "now": {"type": "object", "properties": {}, "additionalProperties": False},
}
MAX_TOKENS = 3000
"""A list has no upper limit, and noise ends one at every second call: this many tokens are some twenty."""

AT_ONCE = 4
"""Requests at the same time: a server takes little longer for a few than for one."""

Call = tuple[str, dict[str, Any]]


def chat_tools(**more: Any) -> list[dict[str, Any]]:
    """The tools as a Chat request declares them."""
    return [
        {"type": "function", "function": {"name": name, "parameters": schema, **more}} for name, schema in TOOLS.items()
    ]


def ask(client: httpx.Client, url: str, n: int, *, model: str, stream: bool, **body: Any) -> list[Call]:
    """The calls of the answer to request number ``n``.

    Raises AssertionError where it is anything but calls of the tools, and jsonschema.ValidationError where their
    arguments do not fit.
    """
    request = {
        "model": model,
        "messages": [{"role": "user", "content": f"request number {n}, {n * 7919 % 1000}"}],
        "max_tokens": MAX_TOKENS,
        "temperature": 0.7 + n % 5 * 0.2,  # at 0 noise repeats itself for ever
        "tools": chat_tools(),
        "stream": stream,
        **body,
    }
    answer = client.post(url + "/v1/chat/completions", json=request)
    assert answer.status_code == 200, answer.text
    message, reason = _streamed(answer.content) if stream else _whole(answer.json())
    assert reason in ("tool_calls", "stop"), (reason, message)
    assert not message["content"], message
    calls = [(name, json.loads(arguments)) for name, arguments in message["calls"]]
    for name, arguments in calls:
        jsonschema.validate(arguments, TOOLS[name])
    return calls


def _whole(reply: dict[str, Any]) -> tuple[dict[str, Any], str]:
    [choice] = reply["choices"]
    functions = [call["function"] for call in choice["message"].get("tool_calls") or ()]
    calls = [(function["name"], function["arguments"]) for function in functions]
    return {"content": choice["message"].get("content"), "calls": calls}, choice["finish_reason"]


def _streamed(body: bytes) -> tuple[dict[str, Any], str]:
    content, reason = "", ""
    calls: list[list[str]] = []
    for event in SSEDecoder().feed(body):
        if event.done:
            break
        chunk = json.loads(event.data)
        assert "error" not in chunk, chunk
        for choice in chunk["choices"]:
            content += choice["delta"].get("content") or ""
            reason = choice["finish_reason"] or reason
            for call in choice["delta"].get("tool_calls") or ():
                if call["index"] == len(calls):
                    calls.append(["", ""])
                calls[call["index"]][0] += call["function"].get("name") or ""
                calls[call["index"]][1] += call["function"].get("arguments") or ""
    return {"content": content, "calls": calls}, reason


def no_thoughts(client: httpx.Client, url: str, model: str) -> dict[str, float]:
    """The bias against what a thought begins with: noise does not end one, and a thought that never ends is free."""
    tokens: set[int] = set()
    for text in ("<think>", "<"):  # as the special token, and spelled out
        # vLLM's fields, and llama.cpp's.
        asked = {"model": model, "prompt": text, "content": text, "add_special_tokens": False, "parse_special": True}
        tokens.update(client.post(url + "/tokenize", json=asked).json()["tokens"])
    return {str(token): -100.0 for token in tokens}


def rounds(required: int, named: int, single: int) -> Iterator[tuple[str, int, dict[str, Any]]]:
    """What is asked: the kind, the number of the request, and its fields."""
    for n in range(required):
        yield "required", n, {"tool_choice": "required"}
    for n in range(named):
        name = list(TOOLS)[n % len(TOOLS)]
        yield "named", n, {"tool_choice": {"type": "function", "function": {"name": name}}}
    for n in range(single):
        yield "parallel_tool_calls: false", n, {"tool_choice": "required", "parallel_tool_calls": False}


def right(kind: str, fields: dict[str, Any], calls: list[Call]) -> bool:
    """Whether these calls are what was asked for; that their arguments fit is known."""
    names = [name for name, _ in calls]
    if kind == "required":
        return bool(calls)
    return len(calls) == 1 and (kind != "named" or names == [fields["tool_choice"]["function"]["name"]])


def run(url: str, *, required: int, named: int, single: int, model: str = "tiny", **more: Any) -> Counter[str]:
    """How many answers were right, by kind, and how often each tool was called.  Raises for the first wrong one."""
    found: Counter[str] = Counter()
    with httpx.Client(timeout=600, trust_env=False) as client, ThreadPoolExecutor(AT_ONCE) as pool:
        bias = no_thoughts(client, url, model)

        def answer(asked: tuple[str, int, dict[str, Any]], stream: bool) -> list[Call]:
            kind, n, fields = asked
            calls = ask(client, url, n, model=model, stream=stream, logit_bias=bias, **fields, **more)
            assert right(kind, fields, calls), (kind, calls)
            return calls

        asked = [(one, stream) for one in rounds(required, named, single) for stream in (False, True)]
        for ((kind, _, _), stream), calls in zip(asked, pool.map(lambda pair: answer(*pair), asked)):
            found[f"{kind}, {'streamed' if stream else 'whole'}"] += 1
            found.update(name for name, _ in calls)
            found["several calls"] += len(calls) > 1
    return found


def main() -> None:
    """Ask, and print the counts."""
    parser = argparse.ArgumentParser(description="Constrained calls of a model with random weights.")
    parser.add_argument("url")
    parser.add_argument("--model", default="tiny")
    parser.add_argument("--fields", type=json.loads, default={}, help="JSON: more fields of each request")
    for kind, count in (("required", 100), ("named", 50), ("single", 30)):
        parser.add_argument(f"--{kind}", type=int, default=count)
    options = parser.parse_args()
    try:
        found = run(**{**vars(options), **vars(options).pop("fields")})
    except httpx.HTTPError as error:
        parser.exit(1, f"{options.url}: {error}\n")
    for what, count in found.items():
        print(f"{what:40} {count}")


if __name__ == "__main__":
    main()
