"""The tools a request declares: their parameters' names in order."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Union

Tools = Union[Mapping[str, Sequence[str]], Iterable[Any], None]
"""OpenAI tools (dicts or objects, Chat or Responses shape), or parameter names by tool name."""


def declared_parameters(tools: Tools) -> dict[str, tuple[str, ...]]:
    """Parameter names by tool name.  What is no function tool, or has no usable schema, declares nothing."""
    if tools is None:
        return {}
    if isinstance(tools, Mapping):
        return {str(name): tuple(parameters) for name, parameters in tools.items()}
    declared: dict[str, tuple[str, ...]] = {}
    for tool in tools:
        function = _get(tool, "function") or tool
        name = _get(function, "name")
        if isinstance(name, str) and name:
            properties = _get(_get(function, "parameters"), "properties")
            declared[name] = tuple(properties) if isinstance(properties, Mapping) else ()
    return declared


def _get(value: Any, key: str) -> Any:
    return value.get(key) if isinstance(value, Mapping) else getattr(value, key, None)
