"""What a request asks of the calls: which functions may be called, whether one must be, and how many."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

from ..core import tools as declared
from ..core.cursor import is_name
from ..core.dialects import DIALECTS
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
    choice, known = _chosen(tool_choice, known)
    callable_ones = [function for function in known if is_name(function.name)]
    for function in known:
        if function not in callable_ones:
            relaxed(function.name, "", "the name, which has no form in a call list; this tool cannot be called")
    if not callable_ones or choice == "none":
        if choice in ("required", "forced"):
            raise ValueError("tool_choice requires a call, but the request has no function that could be called")
        return None
    return Asked(tuple(callable_ones), choice != "auto", parallel and choice != "forced", dialect)


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
    if tool_choice is None:
        return "auto", known
    if isinstance(tool_choice, str):
        if tool_choice not in ("auto", "required", "forced", "none"):
            raise ValueError(f"unknown tool_choice {tool_choice!r}")
        return tool_choice, known
    kind = _get(tool_choice, "type")
    if kind == "allowed_tools":
        allowed = _get(tool_choice, "allowed_tools") or tool_choice
        names = {_get(_get(tool, "function") or tool, "name") for tool in _get(allowed, "tools") or ()}
        return str(_get(allowed, "mode") or "auto"), [function for function in known if function.name in names]
    name = _get(_get(tool_choice, "function") or _get(tool_choice, "custom") or tool_choice, "name")
    named = [function for function in known if function.name == name]
    if not named:
        raise ValueError(f"tool_choice names {name!r}, which is no function of this request")
    return "forced", named[:1]


def _get(value: Any, key: str) -> Any:
    return value.get(key) if isinstance(value, Mapping) else getattr(value, key, None)
