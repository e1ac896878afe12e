"""The demo's constrained rows: what they accept.  The real servers are in tests/e2e, and in ``./serve.sh --demo``."""

from __future__ import annotations

import json

import pytest
from demo_constrained import ROWS

from lfm2_fixed import parse
from lfm2_fixed.repro.readers import Outcome


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
