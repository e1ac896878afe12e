"""A finished reply as a short stream, for servers that are right only when they do not stream."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from ..core.stream import ToolCall
from .request import Request
from .verify import Verifier

_ON_EVERY_CHUNK = ("id", "created", "model", "system_fingerprint", "service_tier")


def check_reply(reply: dict[str, Any], request: Request) -> int:
    """Check the calls the server read; their number.  Raises ProxyError as :class:`Verifier` does."""
    total = 0
    for choice in reply.get("choices") or []:
        verifier = Verifier(request)
        for call in (choice.get("message") or {}).get("tool_calls") or []:
            function = call.get("function") or {}
            verifier.start(str(function.get("name")))
            verifier.complete(ToolCall(str(function.get("name")), str(function.get("arguments"))))
            total += 1
        verifier.finish(choice.get("finish_reason"))
    return total


def chunks(reply: dict[str, Any], request: Request) -> Iterator[dict[str, Any]]:
    """The chunks that say what ``reply`` says.

    For each choice: its role, its text, its calls, its end.  Fields that the protocol does not
    know keep their place: those of a message are in a delta, those of a choice beside it, those of
    the reply in the last chunk.
    """
    head = {key: reply[key] for key in _ON_EVERY_CHUNK if key in reply} | {"object": "chat.completion.chunk"}
    known = {*head, "choices", "usage", "object"}
    extra = {key: value for key, value in reply.items() if key not in known}
    choices = reply.get("choices") or []
    usage = reply.get("usage") if request.wants_usage else None
    for position, choice in enumerate(choices):
        message = choice.get("message") or {}
        index = choice.get("index", position)

        def chunk(delta: dict[str, Any], index: int = index, **fields: Any) -> dict[str, Any]:
            return {**head, "choices": [{"index": index, "delta": delta, "finish_reason": None, **fields}]}

        beside = {
            key: value for key, value in choice.items() if key not in ("index", "message", "finish_reason", "logprobs")
        }
        yield chunk(
            {
                "role": message.get("role", "assistant"),
                "content": None if message.get("content") is None else "",
            }
        )
        calls = message.get("tool_calls") or []
        rest = {
            key: value
            for key, value in message.items()
            if key not in ("role", "tool_calls") and value not in (None, "", [])
        }
        logprobs = {"logprobs": choice["logprobs"]} if choice.get("logprobs") else {}
        content = rest.pop("content", None)
        if rest:
            yield chunk(rest)  # the reasoning comes first
        if content or logprobs:
            yield chunk({"content": content} if content else {}, **logprobs)
        for number, call in enumerate(calls):
            yield chunk({"tool_calls": [{"index": number, **call}]})
        last = chunk({}, **beside)
        last["choices"][0]["finish_reason"] = choice.get("finish_reason")
        if usage is None and position == len(choices) - 1:
            last |= extra
        yield last
    if usage is not None:
        yield {**head, "choices": [], "usage": usage, **extra}
