"""``tool_choice`` in every shape, read once."""

from __future__ import annotations

from typing import Any

import pytest

from lfm2_fixed.wire.request import Choice, choice, client_tools

NAMED = Choice(required=True, names=frozenset(["f"]))
F = {"type": "function", "name": "f"}


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        (None, Choice()),
        ("auto", Choice()),
        ("none", Choice(none=True)),
        ("required", Choice(required=True)),
        ({"type": "function", "function": {"name": "f"}}, NAMED),
        (F, NAMED),
        ({"type": "custom", "custom": {"name": "f"}}, NAMED),
        ({"type": "tool", "name": "f"}, NAMED),
        ({"type": "any"}, Choice(required=True)),
        ({"type": "auto", "disable_parallel_tool_use": True}, Choice(single=True)),
        ({"type": "none"}, Choice(none=True)),
        ({"type": "allowed_tools", "mode": "auto", "tools": [F]}, Choice(names=frozenset(["f"]))),
        ({"type": "allowed_tools", "allowed_tools": {"mode": "required", "tools": [F, F]}}, NAMED),
        (
            {
                "type": "allowed_tools",
                "allowed_tools": {"mode": "auto", "tools": [F, {"type": "custom", "custom": {"name": "g"}}]},
            },
            Choice(names=frozenset("fg")),
        ),
        *(
            (odd, None)
            for odd in (
                *("any", "sometimes", 3, [], {}, {"type": {}}, {"type": "required"}, {"type": "function"}),
                *({"type": "tool", "name": ""}, {"type": "allowed_tools", "tools": [{}]}, {"type": "allowed_tools"}),
            )
        ),
    ],
    # A set of names is shown in another order by each process, and processes that share the tests must agree on names.
    ids=lambda one: "" if isinstance(one, Choice) else repr(one),
)
def test_tool_choice(value: Any, expected: Choice | None) -> None:
    assert choice(value) == expected


def test_tools_that_the_client_runs_are_known_by_their_type() -> None:
    tools = [{"type": "bash_20250124", "name": "bash"}, {"type": "web_search_20250305", "name": "web_search"}, None, 3]
    assert client_tools([*tools, {"type": {}}, {"type": "memory_20250818"}]) == ["bash"]
