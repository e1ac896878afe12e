"""Rows of the demo's table for constrained requests: what the model is made to write where it breaks the schema.

The tiny model has a script that the constraint forbids in part.  Where the grammar masks a token of it, the script goes
on with its next token that is allowed (``scripted_lp.py``), so that a row shows the constraint at work.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from lfm2_fixed.gate import validate
from lfm2_fixed.repro.turns import Fitting, Payload

FORCES_JSON = "vLLM's own parser forces JSON here, which no model of this family was trained to write: not compared"


def weather(*, strict: bool = False) -> dict[str, Any]:
    """The tool of these requests: a city of at most 20 characters, and at most 14 days."""
    properties = {"city": {"type": "string", "maxLength": 20}, "days": {"type": "integer", "minimum": 1, "maximum": 14}}
    schema = {"type": "object", "properties": properties, "required": ["city", "days"], "additionalProperties": False}
    function = {"name": "get_weather", "parameters": schema}
    return {"type": "function", "function": function | ({"strict": True} if strict else {})}


@dataclass(frozen=True)
class Constrained:
    """A row, and the fields of its request."""

    payload: Payload
    tools: Sequence[dict[str, Any]]
    choice: str | dict[str, Any]

    @property
    def forced(self) -> bool:
        """Whether vLLM by itself would force JSON."""
        return self.choice != "auto"


def _row(
    name: str,
    about: str,
    script: str,
    tool: dict[str, Any],
    choice: str | dict[str, Any],
    words: str,
    count: int | None = None,
) -> Constrained:
    def holds(calls: Sequence[tuple[str, str]]) -> bool:
        given = [{"name": called, "arguments": arguments} for called, arguments in calls]
        return bool(calls) and not validate(given, [tool], expected_calls=count)

    return Constrained(Payload(f"fit/{name}", script, (), about, fits=Fitting(words, holds)), [tool], choice)


TOO_MANY = '<|tool_call_start|>[get_weather(city="Paris", days=99)]<|tool_call_end|>'
ROWS = [
    _row(
        "required", 'tool_choice "required", days at most 14, and the model is about to write 99',
        TOO_MANY, weather(), "required", "one call or more that fits the schema",
    ),
    _row(
        "named", "a named function, and the model is about to write two calls",
        TOO_MANY.replace(")]", '), get_weather(city="Rome", days=3)]'), weather(),
        {"type": "function", "function": {"name": "get_weather"}}, "exactly one call, which fits the schema", 1,
    ),
    _row(
        "strict", 'tool_choice "auto" and strict: true, and the model is about to write a word for a number',
        TOO_MANY.replace("99", '"3 days"'), weather(strict=True), "auto", "a call that fits the schema",
    ),
]  # fmt: skip
