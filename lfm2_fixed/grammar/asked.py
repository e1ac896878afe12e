"""What a request asks of the calls: which functions may be called, whether one must be, and how many."""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import Any, NamedTuple

from ..core import tools as declared
from ..core.cursor import is_name
from ..core.dialects import DIALECTS
from ..wire.request import choice
from .relaxed import relaxed


class Function(NamedTuple):
    """One callable tool of a request."""

    name: str
    parameters: str | None
    """JSON text of the schema; None: the tool takes no arguments."""
    strict: bool


class Asked(NamedTuple):
    """A request in so far as it decides the grammar; equal ones have equal grammars."""

    functions: tuple[Function, ...]
    """Those that may be called, each by a name that can be written; at least one."""
    forced: bool
    """There must be a call, and nothing else; else text in which there may be calls."""
    parallel: bool
    """There may be more than one call."""
    dialect: str

    def holds(self, function: Function) -> bool:
        """Whether the function's schema must be kept to; else its arguments are any literals."""
        return self.forced or function.strict


def asked(tools: Iterable[Any] | None, tool_choice: Any, *, dialect: str, parallel: bool) -> Asked | None:
    """The request, read; None where nothing can be called.  Arguments and errors: :func:`~.tag.structural_tag`."""
    if dialect not in DIALECTS:
        raise ValueError(f"unknown dialect {dialect!r}; known: {', '.join(DIALECTS)}")
    known = functions(tools)
    word, known = _chosen(tool_choice, known)
    callable_ones = [function for function in known if is_name(function.name)]
    for function in known:
        if function not in callable_ones:
            relaxed(function.name, "", "the name, which has no form in a call list; this tool cannot be called")
    if not callable_ones or word == "none":
        if word in ("required", "forced"):
            raise ValueError("tool_choice requires a call, but the request has no function that could be called")
        return None
    return Asked(tuple(callable_ones), word != "auto", parallel and word != "forced", dialect)


def functions(tools: Iterable[Any] | None) -> list[Function]:
    """The functions that ``tools`` declare, in order, by the names that the model writes.

    Raises:
        ValueError: two of one name: which one a call means could not be told.
    """
    found: dict[str, Function] = {}
    for function in declared.functions(tools):
        name = function.model_name
        if name in found:
            raise ValueError(f"two tools are named {name!r}")
        schema = None if function.schema is None else json.dumps(function.schema, default=str)
        found[name] = Function(name, schema, function.strict)
    return list(found.values())


def _chosen(tool_choice: Any, known: list[Function]) -> tuple[str, list[Function]]:
    """``tool_choice`` as one of auto, required, forced, none, and the functions it leaves."""
    if tool_choice == "forced":  # how vLLM says it, beside the one tool that is named
        return tool_choice, known
    said = _plain(tool_choice)
    found = choice(said)
    if found is None:
        raise ValueError(f"unknown tool_choice {tool_choice!r}")
    word = "none" if found.none else "required" if found.required else "auto"
    if found.names is None:
        return word, known
    left = [function for function in known if function.name in found.names]
    if said["type"] == "allowed_tools":
        return word, left
    if not left:
        raise ValueError(f"tool_choice names {next(iter(found.names))!r}, which is no function of this request")
    return "forced", left


def _plain(value: Any) -> Any:
    """``value``, an object of vLLM's or of anybody's, as JSON has it."""
    dump = getattr(value, "model_dump", None)  # what a model has by default alone, its type say, is in there, too
    if dump is not None:
        return dump()
    if isinstance(value, list | tuple):
        return [_plain(one) for one in value]
    return {name: _plain(one) for name, one in vars(value).items()} if hasattr(value, "__dict__") else value
