"""The rows of ``cases.jsonl``, each a text of a model with the calls and the content that are right for it."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tests.support import TESTS
from tests.support.harness import Tools, json_text

# Not splitlines: U+2028 and the like, which JSON does not escape, end no row.
CASES: list[dict[str, Any]] = [
    json.loads(line) for line in (TESTS / "cases.jsonl").read_text(encoding="utf-8").split("\n") if line
]


def each(cases: list[dict[str, Any]]) -> pytest.MarkDecorator:
    """A test item for each of these cases, named by its id."""
    return pytest.mark.parametrize("case", cases, ids=[case["id"] for case in cases])


def tools_of(case: dict[str, Any]) -> Tools | None:
    """The declared tools as the machine takes them."""
    return case.get("tools")


def expected(case: dict[str, Any]) -> tuple[list[tuple[str, str]], str]:
    """The case's completed calls with their argument text, and its content."""
    return [(call["name"], json_text(call["arguments"])) for call in case["calls"]], case["content"]
