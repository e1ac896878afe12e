"""The demo's constrained rows: what they accept.  The real servers are in tests/e2e, and in ``./serve.sh --demo``."""

from __future__ import annotations

import json
import re

import pytest
from demo_constrained import ROWS

from lfm2_fixed import parse
from lfm2_fixed.gate import validate
from lfm2_fixed.repro.readers import Outcome
from tests.support import ROOT


@pytest.mark.parametrize("row", ROWS, ids=[row.payload.id for row in ROWS])
def test_a_constrained_row_takes_what_fits_and_nothing_else(row) -> None:  # type: ignore[no-untyped-def]
    def said(*arguments: object) -> Outcome:
        return Outcome(tuple(("get_weather", json.dumps(one)) for one in arguments))

    assert said({"city": "Paris", "days": 9}).matches(row.payload)
    for wrong in ({"city": "Paris", "days": 99}, {"city": "Paris"}, {"city": "Paris", "days": "3 days"}):
        assert not said(wrong).matches(row.payload)
    assert not said().matches(row.payload) and not Outcome(error="HTTP 500").matches(row.payload)
    broken = parse(row.payload.text, tools=row.tools).calls
    written = Outcome(tuple((call.name, call.arguments) for call in broken))
    assert not written.matches(row.payload), "unconstrained, the script breaks it"


def test_the_page_shows_the_demos_row() -> None:
    """docs/constrained.md begins with it, as the demo prints it."""
    (row,) = [row for row in ROWS if row.payload.id == "fit/required"]
    page = (ROOT / "docs" / "constrained.md").read_text(encoding="utf-8")
    shown = dict(re.split(r"\s{2,}", line, maxsplit=1) for line in re.findall(r"(?m)^    (\S.*)$", page)[:4])
    properties = row.tools[0]["function"]["parameters"]["properties"]
    assert shown["the schema says"] == json.dumps({"days": properties["days"]})[1:-1]
    assert f"<|tool_call_start|>{shown['the model starts']}<|tool_call_end|>" == row.payload.text
    (call,) = parse(f"<|tool_call_start|>{shown['what it can write']}<|tool_call_end|>").calls
    assert shown["the client gets"] == f"{call.name} {call.arguments}"
    assert not validate([{"name": call.name, "arguments": call.arguments}], row.tools)
