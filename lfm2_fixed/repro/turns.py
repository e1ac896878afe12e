"""What a payload is, the tools that its request declares, and texts that several of them hold."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

Call = tuple[str, dict[str, Any]]
"""A call's name and its arguments."""


@dataclass(frozen=True)
class Fitting:
    """What must be true of the calls (name, arguments as text) where more than one answer is right; in words, too."""

    words: str
    holds: Callable[[Sequence[tuple[str, str]]], bool]


@dataclass(frozen=True)
class Payload:
    """One turn.  ``calls``: names and arguments in order; ``about``: what is special about it.

    ``fits``: in place of ``calls``.
    """

    id: str
    text: str
    calls: tuple[Call, ...]
    about: str
    content: str = ""
    dialect: str = "lfm2"
    fits: Fitting | None = None


def _tool(name: str, **parameters: str) -> dict[str, Any]:
    properties = {parameter: {"type": kind} if kind else {} for parameter, kind in parameters.items()}
    return {
        "type": "function",
        "function": {"name": name, "parameters": {"type": "object", "properties": properties}},
    }


TOOLS: list[dict[str, Any]] = [
    _tool("write", path="string", content="string"),
    _tool("bash", command="string", timeout="number"),
    _tool("get_weather", city="string", unit="string", days="integer"),
    _tool("move", lat="number", lon="number", note="string"),
    _tool("update", record="object", tags="array"),
    _tool("search", query="string", limit="integer", **{"max-results": "integer", "from": "string"}),
]
"""The tools that a request declares for any of the payloads, in the OpenAI shape."""

PLOT = """import matplotlib.pyplot as plt
x = [0, 1]
plt.plot(x, x, 'red', label="wave")
plt.legend(loc='best')
"""
"""A Python file with quotes of both kinds."""


def quoted(text: str) -> str:
    """Between double quotes, as the models write it."""
    return json.dumps(text, ensure_ascii=False)
