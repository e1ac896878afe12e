"""One model turn as an OpenAI client gets it, streamed or whole, with what must hold for any stream checked."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import Any, Protocol, TypeVar

import openai
from rig import chat_body

from lfm2_fixed.repro.turns import TOOLS, Payload

START, END = "<|tool_call_start|>", "<|tool_call_end|>"
MARKERS = (START, END, "<|python_start|>", "<|python_end|>")

_T = TypeVar("_T")
_R = TypeVar("_R")


class Served(Protocol):
    """A server, or what stands in front of one.  ``url``: without the ``/v1`` of the API."""

    url: str


@dataclass
class At:
    """What serves at this URL."""

    url: str


@dataclass
class Turn:
    """What one choice of an answer says."""

    calls: list[tuple[str, str]] = field(default_factory=list)  # name, arguments
    content: str = ""
    reasoning: str = ""
    finish_reason: str | None = None
    ids: list[str] = field(default_factory=list)  # of the calls
    deltas: list[str] = field(default_factory=list)  # of all calls' arguments, in order; streams only

    def complete(self) -> list[tuple[str, str]]:
        """The calls whose arguments are one JSON object."""
        return [(name, arguments) for name, arguments in self.calls if is_object(arguments)]


def is_object(arguments: str) -> bool:
    """Whether this is the text of one JSON object."""
    try:
        return isinstance(json.loads(arguments), dict)
    except ValueError:
        return False


def client(server: Served) -> openai.OpenAI:
    """The official client, without retries that would hide an error."""
    return openai.OpenAI(base_url=f"{server.url}/v1", api_key="none", max_retries=0, timeout=300)


def _options(script: str | Sequence[int], options: dict[str, Any]) -> dict[str, Any]:
    options = {"tool_choice": "auto", "tools": TOOLS, **options}
    body = chat_body(script, options.pop("tools"), **options)
    extra = {name: body.pop(name) for name in ("vllm_xargs", *EXTRA) if name in body}
    extra["vllm_xargs"].update(extra.pop("xargs", {}))
    if body["tool_choice"] is None:
        del body["tool_choice"]
    return {**body, "extra_body": extra}


EXTRA = ("xargs", "skip_special_tokens", "chat_template_kwargs", "include_reasoning")
"""Options that are vLLM's own: the client sends them as extra fields.  ``xargs``: for ``vllm_xargs``."""


def whole(server: Served, script: str | Sequence[int], **options: Any) -> list[Turn]:
    """The choices of one answer without streaming."""
    answer = client(server).chat.completions.create(**_options(script, options))
    turns = []
    for choice in answer.choices:
        calls = choice.message.tool_calls or []
        turns.append(
            Turn(
                [(call.function.name, call.function.arguments) for call in calls],
                choice.message.content or "",
                _reasoning(choice.message),
                choice.finish_reason,
                [call.id for call in calls],
            )
        )
        assert all(call.type == "function" for call in calls)
        assert turns[-1].complete() == turns[-1].calls, "an incomplete call in an answer without streaming"
        assert len(set(turns[-1].ids)) == len(calls)
    return turns


def streamed(server: Served, script: str | Sequence[int], **options: Any) -> list[Turn]:
    """The choices of one streamed answer, put together from its deltas."""
    count = options.get("n", 1)
    turns = [Turn() for _ in range(count)]
    for chunk in client(server).chat.completions.create(**_options(script, {**options, "stream": True})):
        for choice in chunk.choices:
            turn = turns[choice.index]
            assert turn.finish_reason is None, "a delta after the finish reason"
            _add(turn, choice.delta)
            turn.finish_reason = choice.finish_reason
    for turn in turns:
        assert turn.finish_reason is not None, "no finish reason"
        assert len(set(turn.ids)) == len(turn.ids)
    return turns


def _reasoning(said: Any) -> str:
    """The thoughts in a message or a delta: vLLM's field, or that of llama.cpp and the proxy."""
    return getattr(said, "reasoning", None) or getattr(said, "reasoning_content", None) or ""


def _add(turn: Turn, delta: Any) -> None:
    turn.content += delta.content or ""
    turn.reasoning += _reasoning(delta)
    for call in delta.tool_calls or ():
        if call.index == len(turn.calls):  # the first delta of the next call
            assert call.id and call.id.startswith("chatcmpl-tool-") and call.type == "function"
            assert call.function.name and call.function.arguments
            turn.ids.append(call.id)
            turn.calls.append((call.function.name, ""))
        else:
            assert call.index == len(turn.calls) - 1, f"a delta for call {call.index} among {len(turn.calls)}"
            assert call.id is None and call.type is None and call.function.name is None
            assert call.function.arguments
        name, arguments = turn.calls[-1]
        turn.calls[-1] = (name, arguments + call.function.arguments)
        turn.deltas.append(call.function.arguments)


def both(server: Served, script: str | Sequence[int], **options: Any) -> Turn:
    """The turn that the stream and the whole answer agree on, both asked for at once."""
    with ThreadPoolExecutor(2) as pool:
        stream = pool.submit(streamed, server, script, **options)
        answer = pool.submit(whole, server, script, **options)
        [turn], [other] = stream.result(), answer.result()
    assert turn.calls == other.calls
    assert turn.content == other.content
    assert turn.reasoning == other.reasoning
    assert turn.finish_reason == other.finish_reason
    return turn


def check_payload(server: Served, payload: Payload) -> None:
    """Streamed and whole, the payload's turn is what it says."""
    turn = both(server, payload.text)
    assert turn.calls == wanted(*payload.calls)
    assert turn.content == payload.content
    assert turn.finish_reason == ("tool_calls" if payload.calls else "stop")


def at_once(function: Callable[[_T], _R], items: Iterable[_T], width: int = 16) -> list[_R]:
    """``function`` of each item, in that many threads; the server puts the requests in one batch."""
    with ThreadPoolExecutor(width) as pool:
        return list(pool.map(function, items))


def wanted(*calls: tuple[str, dict[str, Any]]) -> list[tuple[str, str]]:
    """These calls with their arguments as the parser writes them."""
    return [(name, json.dumps(arguments, ensure_ascii=False)) for name, arguments in calls]
