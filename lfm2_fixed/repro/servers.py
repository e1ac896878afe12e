"""Payloads through a running server: directly, and by way of the proxy in each mode.

Used by ``lfm2-fixed repro --url``.
"""

from __future__ import annotations

import ast
import json
import re
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from typing import Any

import httpx

from ..proxy.background import running
from ..proxy.settings import Settings
from ..wire.sse import NotAChunk, SSEDecoder, read_chunk
from .readers import EngineFree, Outcome
from .turns import TOOLS, Payload

Prompt = Callable[[Payload], str]

DISOBEYED = "the model wrote something else than it was asked to, which says nothing about a parser"


def instruction(payload: Payload) -> str:
    """What makes a real model write the payload's calls, as a rule."""
    calls = "\n".join(f"- {name}: {json.dumps(arguments, ensure_ascii=False)}" for name, arguments in payload.calls)
    return (
        "Call the following tools, in one go and with exactly these arguments (given as JSON), and say nothing else.\n"
        + calls
    )


def server_readings(
    url: str,
    payloads: Sequence[Payload],
    *,
    prompt: Prompt = instruction,
    calls_only: bool = True,
    api_key: str | None = None,
    max_tokens: int = 1024,
    timeout: float = 300.0,
    say: Callable[[str], None] = lambda sentence: None,
) -> dict[str, dict[str, dict[str, Outcome]]]:
    """What a client receives: by way (``direct``, ``buffer``, ``ours: parse``), payload id, ``stream`` or ``whole``.

    ``url``: the server's base URL.  ``prompt``: the user message for a payload.  ``calls_only``: a model's
    words beside the calls do not count.  ``say`` is told of progress.  Where the model's own text does not hold
    the payload's calls, every outcome is void.  Raises httpx.TransportError where the server cannot be reached,
    ValueError for a bad URL.
    """
    base = url.rstrip("/").removesuffix("/v1")
    headers = {"authorization": f"Bearer {api_key}"} if api_key else {}
    readings: dict[str, dict[str, dict[str, Outcome]]] = {}
    with ExitStack() as stack:
        # A server may close a connection after an error in a stream without saying so: use none twice.
        limits = httpx.Limits(max_keepalive_connections=0)
        client = stack.enter_context(httpx.Client(headers=headers, timeout=timeout, limits=limits, trust_env=False))
        model = _model(client, base)
        fronts = {
            "direct": base,
            "buffer": stack.enter_context(running(Settings(base, mode="buffer"))),
            "ours: parse": stack.enter_context(running(Settings(base, mode="parse"))),
        }
        readings = {name: {} for name in fronts}
        for payload in payloads:
            request = {
                "model": model,
                "messages": [{"role": "user", "content": prompt(payload)}],
                "tools": TOOLS,
                "temperature": 0,
                "max_tokens": max_tokens,
            }
            say(f"{payload.id} …")
            if not wrote(_own_text(client, base, request), payload, calls_only=calls_only):
                for outcomes in readings.values():
                    outcomes[payload.id] = {way: Outcome(void=DISOBEYED) for way in ("stream", "whole")}
                continue
            for name, front in fronts.items():
                readings[name][payload.id] = {
                    way: _ask(client, front, {**request, "stream": way == "stream"}) for way in ("stream", "whole")
                }
                if calls_only:
                    readings[name][payload.id] = {
                        way: Outcome(outcome.calls, payload.content, outcome.error)
                        for way, outcome in readings[name][payload.id].items()
                    }
    return readings


def _own_text(client: httpx.Client, base: str, request: Mapping[str, Any]) -> str:
    """What the model writes by itself: the server is told not to read calls.  Empty where it does not answer."""
    # One field for llama.cpp, one for vLLM: neither minds the other's.
    raw = {"tool_choice": "none", "reasoning_format": "none", "skip_special_tokens": False}
    return _ask(client, base, {**request, **raw, "stream": False}).content


def wrote(text: str, payload: Payload, *, calls_only: bool = True) -> bool:
    """Whether this text holds the payload's calls: as CPython reads them, or, where it is no Python, as we do."""
    ours = EngineFree().whole(Payload(payload.id, text, (), "", dialect=payload.dialect))
    wanted = [(name, json.dumps(arguments)) for name, arguments in payload.calls]
    if _python_calls(text) == wanted:
        return True
    return Outcome(ours.calls, payload.content if calls_only else ours.content).matches(payload)


def _python_calls(text: str) -> list[tuple[str, str]] | None:
    """The calls of the lists between markers, read by CPython alone; None where they are no literals."""
    calls = []
    try:
        for block in re.findall(r"<\|tool_call_start\|>(.*?)<\|tool_call_end\|>", text, re.S) or [text]:
            body = ast.parse(block.strip(), mode="eval").body
            for call in body.elts if isinstance(body, ast.List) else [body]:
                if not isinstance(call, ast.Call) or call.args:
                    return None
                arguments = {str(keyword.arg): ast.literal_eval(keyword.value) for keyword in call.keywords}
                calls.append((ast.unparse(call.func), json.dumps(arguments)))
    except (SyntaxError, ValueError, TypeError, RecursionError, MemoryError):
        return None
    return calls


def _model(client: httpx.Client, base: str) -> str:
    """The name of the model that is served."""
    answer = client.get(base + "/v1/models")
    try:
        return str(answer.json()["data"][0]["id"])
    except (ValueError, LookupError, TypeError):
        return "default"


def _ask(client: httpx.Client, base: str, request: Mapping[str, Any]) -> Outcome:
    try:
        answer = client.post(base + "/v1/chat/completions", json=request)
    except httpx.TransportError as error:
        return Outcome(error=f"{type(error).__name__}: {error}")
    if answer.status_code != 200:
        return Outcome(error=f"HTTP {answer.status_code}: {_message(answer.text)}")
    if not request["stream"]:
        message = answer.json()["choices"][0]["message"]
        calls = [(call["function"]["name"], call["function"]["arguments"]) for call in message.get("tool_calls") or []]
        return Outcome(tuple(calls), message.get("content") or "")
    decoder = SSEDecoder()
    content = ""
    streamed: dict[int, list[str]] = {}
    done = False
    events = decoder.feed(answer.content)
    unfinished = decoder.finish()
    for event in [*events, *([unfinished] if unfinished else [])]:
        if event.done:
            done = True
            break
        try:
            chunk = read_chunk(event)
        except NotAChunk as error:
            return Outcome(error=f"in an event, {error}")
        if chunk.get("error"):
            return Outcome(error=_message(json.dumps(chunk)))
        for choice in chunk["choices"]:
            content += choice["delta"].get("content") or ""
            for call in choice["delta"].get("tool_calls") or []:
                entry = streamed.setdefault(call["index"], ["", ""])
                entry[0] += call["function"].get("name") or ""
                entry[1] += call["function"].get("arguments") or ""
    if not done:
        return Outcome(error="the stream ended without [DONE]")
    return Outcome(tuple((name, text) for name, text in streamed.values()), content)


def _message(text: str) -> str:
    """The message of an error in JSON, or the text's beginning."""
    try:
        value = json.loads(text)
        return str(value.get("error", value)["message"])
    except (ValueError, LookupError, TypeError, AttributeError):
        return text[:200]
