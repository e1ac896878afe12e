"""A tool for the examples: its declaration, and the function that it stands for."""

from __future__ import annotations

import json
from typing import Any

TOOLS: list[Any] = [
    {
        "type": "function",
        "function": {
            "name": "get_weather",
            "description": "The weather of the next days.",
            "parameters": {
                "type": "object",
                "properties": {"city": {"type": "string"}, "days": {"type": "integer", "minimum": 1}},
                "required": ["city"],
                "additionalProperties": False,
            },
        },
    }
]


def get_weather(city: str, days: int = 1) -> str:
    return json.dumps({"city": city, "days": days, "sky": "clear"})
