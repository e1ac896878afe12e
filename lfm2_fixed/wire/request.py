"""What a request asks for, in every protocol: its tools and its ``tool_choice``, each read once.

Declared functions are read in ``core.tools``, which the parser needs as well; this module adds what only the
wire knows.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from ..core.tools import Function, functions
from .turn import plain, text_of

__all__ = ["Choice", "Function", "choice", "client_tools", "functions"]

_CLIENT_RUN = ("bash_", "text_editor_", "computer_", "memory_")
"""Beginnings of the types of Anthropic's tools that the client runs (``bash_20250124`` …).  They come without a
schema: the model was trained on it.  Other types with a version (web search …) are run by the server."""


def client_tools(tools: Iterable[Any]) -> list[str]:
    """The names of tools that the client runs and the vendor defines.  Calls of them are ordinary calls."""
    found = []
    for tool in map(plain, tools):
        if isinstance(tool, Mapping) and isinstance(tool.get("type"), str) and tool["type"].startswith(_CLIENT_RUN):
            name = text_of(tool.get("name"))
            if name:
                found.append(name)
    return found


@dataclass(frozen=True)
class Choice:
    """``tool_choice``, read.

    ``required``: some call must be made.  ``none``: none may be made.  ``names``: the functions that may be
    called, None for any.  ``single``: at most one call (Messages says that here).
    """

    required: bool = False
    names: frozenset[str] | None = None
    none: bool = False
    single: bool = False


_WORDS = {"auto": Choice(), "required": Choice(required=True), "any": Choice(required=True), "none": Choice(none=True)}


def choice(value: Any) -> Choice | None:
    """``tool_choice`` in any of its shapes; None for what is none.

    Chat Completions   "auto", "required", "none", {"type": "function", "function": {"name"}}
                       {"type": "custom", "custom": {"name"}}
                       {"type": "allowed_tools", "allowed_tools": {"mode", "tools": [the above]}}
    Responses          {"type": "function", "name"}, {"type": "allowed_tools", "mode", "tools": [the above]}
    Messages           {"type": "auto" | "any" | "none"}, {"type": "tool", "name"}
    """
    if value is None:
        return Choice()
    if isinstance(value, str):
        return _WORDS.get(value) if value != "any" else None  # a word only in Messages' objects
    if not isinstance(value, Mapping):
        return None
    kind = value.get("type")
    if not isinstance(kind, str):
        return None
    single = value.get("disable_parallel_tool_use") is True
    if kind in ("function", "custom", "tool"):
        name = _name(value, kind)
        return None if name is None else Choice(required=True, names=frozenset([name]), single=single)
    if kind == "allowed_tools":
        inner = value.get("allowed_tools", value)
        if not isinstance(inner, Mapping) or not isinstance(inner.get("tools"), list):
            return None
        names = [_name(tool, "custom" if _is_custom(tool) else "function") for tool in inner["tools"]]
        known = frozenset(name for name in names if name is not None)
        return Choice(required=inner.get("mode") == "required", names=known) if len(known) == len(set(names)) else None
    word = _WORDS.get(kind) if kind != "required" else None
    return None if word is None else Choice(word.required, None, word.none, single)


def _is_custom(tool: Any) -> bool:
    return isinstance(tool, Mapping) and tool.get("type") == "custom"


def _name(value: Any, kind: str) -> str | None:
    inner = value.get(kind, value) if isinstance(value, Mapping) else None
    return text_of(inner.get("name")) if isinstance(inner, Mapping) else None
