"""What a chat request asks for, and how the upstream must be asked so that we can answer it."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from ..core.stream import PythonicStream
from ..core.tools import Declared
from ..wire.request import Choice
from ..wire.request import choice as read_choice
from ..wire.sse import encode_json
from .bounded import BadJSON, TooDeep, TooManyValues, read_json
from .errors import ProxyError
from .settings import Settings
from .upstream import Kind

if TYPE_CHECKING:
    from ..gate.schemas import Tools as SchemaTools


@dataclass(frozen=True)
class Request:
    """A chat request that declares tools."""

    body: Mapping[str, Any]
    tools: Sequence[Any]
    choice: Choice
    single: bool
    """``parallel_tool_calls`` is false: at most one call."""
    streaming: bool
    wants_usage: bool
    wants_special: bool
    """The client asked for special tokens in the text."""
    wants_tags: bool
    """The client asked for ``<think>`` to stay in the text."""
    declared: Mapping[str, Sequence[str]]
    gate: SchemaTools | None = None
    """The tools' schemas, where calls must pass validation."""


def read_request(raw: bytes, *, gate: bool = False) -> Request | None:
    """The request, or None if it is none that we understand and that declares tools.

    What is None is the upstream's alone: to answer, or to refuse.  Raises ProxyError (400) for a
    choice of functions that are not declared, since the upstream will not see the choice, and with
    ``gate`` for tools that nothing can be validated against.
    """
    try:
        body = read_json(raw)
    except (TooManyValues, TooDeep) as error:
        # Not passed on: an upstream that can read it would answer with calls that nobody here has read.
        status = 413 if isinstance(error, TooManyValues) else 400
        raise ProxyError(status, f"The request cannot be read: {error}.", kind="invalid_request_error") from None
    except BadJSON as error:
        if gate:  # an upstream that takes it for JSON would answer with calls that nobody has checked
            raise ProxyError(400, f"The request cannot be read: {error}.", kind="invalid_request_error") from None
        return None
    if not isinstance(body, dict):
        return None
    tools = body.get("tools")
    if not isinstance(tools, list) or not tools or not isinstance(body.get("messages"), list):
        return None
    choice = read_choice(body.get("tool_choice"))
    if choice is None:
        if gate:  # the upstream may know what it means, and would answer with calls that nobody has checked
            raise ProxyError(400, "tool_choice has no known form.", kind="invalid_request_error", param="tool_choice")
        return None
    declared = Declared(tools)
    for name in sorted((choice.names or frozenset()) - set(declared)):
        raise ProxyError(
            400,
            f"tool_choice names the function {name!r}, which is not among the tools.",
            kind="invalid_request_error",
            param="tool_choice",
        )
    options = body.get("stream_options")
    return Request(
        body=body,
        tools=tools,
        choice=choice,
        single=choice.single or body.get("parallel_tool_calls") is False,
        streaming=bool(body.get("stream")),  # as servers coerce it; one that does not answers in one piece, or refuses
        wants_usage=isinstance(options, dict) and bool(options.get("include_usage")),
        wants_special=body.get("skip_special_tokens") is False,
        wants_tags=body.get("reasoning_format") == "none",
        declared=declared,
        gate=_schemas(tools) if gate else None,
    )


def _schemas(tools: Sequence[Any]) -> SchemaTools:
    from ..gate.schemas import ToolsError, compiled_tools  # here: it needs jsonschema, which only the gate does

    try:
        return compiled_tools(tools)
    except ToolsError as error:
        raise ProxyError(400, str(error), kind="invalid_request_error", param="tools") from None


def raw_text_request(request: Request, kind: Kind, constraint: Mapping[str, Any]) -> bytes:
    """The body that makes an upstream of this kind answer with the model's own text.

    With ``tool_choice`` ``"none"`` the tools stay in the prompt while nothing is parsed or forced.  ``constraint``: the
    fields that hold the model to the request (``constrain.py``).
    """
    body = {**request.body, "tool_choice": "none", **constraint}
    # A server that has not said what it is gets both: neither of the two minds the other's field.
    if kind.name == "llama.cpp" or not kind.certain:
        body["reasoning_format"] = "none"
    if kind.name == "vllm" or not kind.certain:
        body["skip_special_tokens"] = False  # the sentinels are special tokens
    if kind.rust and not request.choice.none:
        # vLLM 0.32's Rust front end leaves the tools out of the prompt under "none" (0.33's does not); what the chat
        # template is given by name it gets from both, and only once.  A client's own come last: they are its wish.
        own = body.get("chat_template_kwargs")
        if own is None or isinstance(own, dict):  # anything else is the upstream's to refuse
            body["chat_template_kwargs"] = {"tools": request.tools, **(own or {})}
    return _encoded(body)


def whole_reply_request(request: Request) -> bytes:
    """The body that asks for the same reply in one piece."""
    body = {**request.body, "stream": False}
    body.pop("stream_options", None)  # refused without a stream
    return _encoded(body)


def _encoded(body: Mapping[str, Any]) -> bytes:
    try:
        return encode_json(body)
    except RecursionError:  # what could just be read
        raise ProxyError(
            400, "The request cannot be read: it is nested too deep.", kind="invalid_request_error"
        ) from None


def new_machine(request: Request, settings: Settings) -> PythonicStream:
    """The machine for one reply to the request."""
    return PythonicStream(
        settings.dialect,
        request.tools,  # with their schemas, which decide some readings
        mode="call" if settings.held or not request.streaming else "delta",
        special_tokens=() if request.wants_special else None,
    )


def bare_call(request: Request) -> re.Pattern[str]:
    """Finds what looks like a list of calls without its sentinel."""
    names = sorted(map(re.escape, request.declared), key=len, reverse=True)
    return re.compile(rf"\[(?:{'|'.join(names)})\(" if names else r"(?!)")
