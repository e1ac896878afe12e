"""A grammar that goes to the upstream with a request: by it the model keeps to what the request asks of its calls.

The upstream was told ``tool_choice`` ``"none"`` so that it leaves the model's text alone; it holds the model to nothing
then.  But engines take grammars, whatever they have been told about tools.  The reply is checked all the same
(``verify.py``): an upstream may not know the field.
"""

from __future__ import annotations

import hashlib
import json
import logging
import re
from collections.abc import Mapping
from typing import Any

from ..core.tools import functions
from ..grammar import after_thought, gbnf, lark, structural_tag
from .errors import ProxyError
from .reply import warn_once
from .request import Request
from .settings import Settings
from .trial import SURE, Refused
from .upstream import Kind

log = logging.getLogger("lfm2_fixed.proxy")

REFUSALS = frozenset([400, 422, 500, 501])
"""Statuses by which upstreams say that they do not take a field, or what is in it.  After one of them the request is
sent again without.  Others (401, 404, 413, 429, 503 …) speak of something else."""

_OWN = {"llama.cpp": ("grammar", "json_schema"), "vllm": ("structured_outputs",)}
"""By kind: the fields with which a request constrains the answer itself, beside ``response_format``."""

_COUNTERS = (0, 32)
"""From this vLLM on its xgrammar has counters of characters: it asks for exactly 0.2.8.  An older one refuses them,
and is sent states in their place, which are slower to compile."""

_REMEMBERED = 256
"""Refused grammars, which are not sent again; the oldest is forgotten.  Agents send the same tools with every turn."""


class Constraints:
    """The constraints of requests, and what the upstream made of them."""

    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        self._refused: dict[bytes, int] = {}
        self._told = False

    def wanted(self, request: Request, kind: Kind) -> bool:
        """Whether the request asks more of the answer than to be text and calls, and this upstream can be told."""
        choice = request.choice
        if self._settings.constrain == "off" or kind.name not in _OWN or choice.none:
            return False
        plain = not (choice.required or choice.names is not None or request.single)
        if plain and not any(function.strict for function in functions(request.tools)):
            return False
        if kind.rust and kind.token_ids is None:
            warn_once(
                "The upstream does not answer /tokenize, so its grammars cannot be written: what requests ask of calls "
                "is checked in the reply alone. (This is said once.)"
            )
            return False
        return True

    def fields(self, request: Request, kind: Kind) -> dict[str, Any]:
        """The fields to add to the upstream's request for one that is :meth:`wanted`; none where there is no way.

        Raises ProxyError (400) for tools that no grammar can be made of, and for a request that forces a call and
        asks for another form of the answer as well.
        """
        own = _own(request.body, kind)
        if own is not None:
            if not request.choice.required:
                return {}  # there may be no call, and with that form there will be none
            raise ProxyError(
                400,
                f"tool_choice requires a call and {own} another form of the answer; it cannot have both.",
                kind="invalid_request_error",
                param=own,
            )
        try:
            found = _constraint(request, self._settings, kind)
        except (ValueError, RecursionError) as error:
            said = str(error) if isinstance(error, ValueError) else "the tools are nested too deep"
            raise ProxyError(400, f"{said}.", kind="invalid_request_error", param="tools") from None
        return {} if self._refused and self._refused.get(_digest(found, kind), 0) >= SURE else found

    def taken(self, fields: Mapping[str, Any], kind: Kind) -> None:
        """The upstream took these fields: what happened before was something else."""
        if self._refused:
            self._refused.pop(_digest(fields, kind), None)

    def refused(self, fields: Mapping[str, Any], kind: Kind, refusal: Refused) -> None:
        """The upstream refused these fields: it answered the same request without them, or it said so for certain."""
        digest = _digest(fields, kind)
        self._refused[digest] = self._refused.pop(digest, 0) + refusal.evidence
        if len(self._refused) > _REMEMBERED:
            self._refused.pop(next(iter(self._refused)))
        if not self._told:
            self._told = True
            log.warning(
                "The upstream refused a grammar (%s): what such requests ask of calls is checked in the reply alone. "
                "(This is said once.)",
                refusal.said[:300],
            )


def _own(body: Mapping[str, Any], kind: Kind) -> str | None:
    """The field by which the request constrains the answer itself, if any."""
    for name in _OWN[kind.name]:
        if body.get(name):
            return name
    form = body.get("response_format")
    return "response_format" if isinstance(form, Mapping) and form.get("type") != "text" else None


def _constraint(request: Request, settings: Settings, kind: Kind) -> dict[str, Any]:
    """The field with the constraint, in the upstream's notation; none where nothing is to be constrained."""
    if kind.name == "vllm" and not kind.rust:
        return _vllm(request, settings, kind)
    asked: dict[str, Any] = {
        "tool_choice": request.body.get("tool_choice"),
        "dialect": settings.dialect,
        "parallel": not request.single,
        "thought": "open" if settings.reasoning == "open" else "possible",
    }
    if not kind.rust:
        grammar = gbnf(request.tools, **asked)
        return {} if grammar is None else {"grammar": grammar}
    # vLLM's Rust front end leaves every constraint to the engine's guidance, whatever engine and request say of that.
    # It reads no structural tag, and in GBNF it has no way to name a token.
    grammar = lark(request.tools, **asked, token_ids=kind.token_ids)
    return {} if grammar is None else {"structured_outputs": {"grammar": grammar}}


def _vllm(request: Request, settings: Settings, kind: Kind) -> dict[str, Any]:
    tag = structural_tag(
        request.tools,
        request.body.get("tool_choice"),
        dialect=settings.dialect,
        parallel=not request.single,
        reasoning=request.choice.required and settings.reasoning == "open",
        counters=_version(kind.version) >= _COUNTERS,
    )
    if tag is None:
        return {}
    if request.choice.required and settings.reasoning != "open":
        tag = after_thought(tag, settings.dialect)
    return {"structured_outputs": {"structural_tag": json.dumps(tag)}}


def _version(text: str) -> tuple[int, int]:
    found = re.match(r"(\d+)\.(\d+)", text)
    return (int(found[1]), int(found[2])) if found else (0, 0)


def _digest(fields: Mapping[str, Any], kind: Kind) -> bytes:
    """What a refusal is remembered by: another version of the server may take it."""
    return hashlib.sha256(f"{kind.name} {kind.version} {json.dumps(fields)}".encode()).digest()
