"""A finished reply as a short stream, for servers that are right only when they do not stream."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from ..wire.turn import Call
from .chat import CHUNK_HEAD, Choice, read_choices
from .request import Request
from .verify import Verifier, is_whole


def check_reply(reply: dict[str, Any], request: Request) -> int:
    """Check the calls the server read; their number.  Raises ProxyError as :class:`Verifier` does."""
    total = 0
    for choice in read_choices(reply, "message"):
        verifier = Verifier(request)
        functions = [call.get("function") or {} for call in choice.said.get("tool_calls") or []]
        if isinstance(legacy := choice.said.get("function_call"), dict):
            functions.append(legacy)
        for function in functions:
            verifier.start(str(function.get("name")))
            verifier.complete(Call(str(function.get("name")), str(function.get("arguments"))))
            total += 1
        verifier.finish(choice.reason)
    return total


def chunks(reply: dict[str, Any], request: Request) -> Iterator[dict[str, Any]]:
    """The chunks that say what ``reply`` says.

    For each choice: its role, its text, its calls, its end.  Fields that the protocol does not
    know keep their place: those of a message are in a delta, those of a choice beside it, those of
    the reply in the last chunk.
    """
    head = {key: value for key, value in reply.items() if key in CHUNK_HEAD} | {"object": "chat.completion.chunk"}
    known = {*head, "choices", "usage", "object"}
    extra = {key: value for key, value in reply.items() if key not in known}
    choices = read_choices(reply, "message")
    usage = reply.get("usage") if request.wants_usage else None
    for position, choice in enumerate(choices):
        message = choice.said
        index = choice.index

        def chunk(delta: dict[str, Any], index: int = index, **fields: Any) -> dict[str, Any]:
            return {**head, "choices": [{**fields, "index": index, "delta": delta, "finish_reason": None}]}

        beside = {key: value for key, value in choice.fields.items() if key != "logprobs"}
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
        logprobs = {"logprobs": choice.fields["logprobs"]} if choice.fields.get("logprobs") else {}
        content = rest.pop("content", None)
        if rest:
            yield chunk(rest)  # the reasoning comes first
        if content or logprobs:
            yield chunk({"content": content} if content else {}, **logprobs)
        for number, call in enumerate(calls):
            yield chunk({"tool_calls": [{**call, "index": number}]})
        last = chunk({}, **beside)
        last["choices"][0]["finish_reason"] = _reason(choice)
        if usage is None and position == len(choices) - 1:
            last |= extra
        yield last
    if usage is not None:
        yield {**head, "choices": [], "usage": usage, **extra}


def _reason(choice: Choice) -> str:
    """The finish reason as clients of a stream know it."""
    if choice.reason is not None and not is_whole(choice.reason):
        return choice.reason
    if choice.said.get("function_call"):
        return "function_call"
    return "tool_calls" if choice.said.get("tool_calls") else "stop"
