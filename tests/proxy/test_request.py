"""Which requests are read, and which are refused before the upstream sees them."""

from __future__ import annotations

import json
from typing import Any

import pytest

from lfm2_fixed.proxy.errors import ProxyError
from lfm2_fixed.proxy.request import Request, read_request

TOOLS = [{"type": "function", "function": {"name": "f", "parameters": {"type": "object"}}}]


def read(gate: bool = False, **fields: Any) -> Request | None:
    return read_request(json.dumps({"messages": [], "tools": TOOLS, **fields}).encode(), gate=gate)


@pytest.mark.parametrize(
    "choice",
    [
        {"type": "function", "function": {"name": "g"}},
        {"type": "allowed_tools", "allowed_tools": {"mode": "auto", "tools": [{"type": "function", "name": "g"}]}},
    ],
    ids=lambda choice: choice["type"],
)
def test_a_choice_of_what_is_not_declared_is_refused(choice: Any) -> None:
    with pytest.raises(ProxyError, match="'g'") as caught:
        read(tool_choice=choice)
    assert (caught.value.status, caught.value.param) == (400, "tool_choice")


def test_a_choice_of_what_is_declared() -> None:
    request = read(tool_choice={"type": "function", "function": {"name": "f"}})
    assert request is not None and request.choice.names == {"f"}


@pytest.mark.parametrize("fields", [{"tools": []}, {"tools": None}, {"tools": {}}, {"messages": "x"}], ids=str)
def test_what_has_no_tools_is_not_read(fields: Any) -> None:
    assert read(**fields) is None and read(gate=True, **fields) is None


def test_a_choice_of_no_known_form() -> None:
    assert read(tool_choice=3) is None
    with pytest.raises(ProxyError) as caught:
        read(gate=True, tool_choice=3)
    assert (caught.value.status, caught.value.param) == (400, "tool_choice")
