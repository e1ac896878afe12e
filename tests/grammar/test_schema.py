"""Where a ``$ref`` points to (JSON Pointer, RFC 6901, in a URI's fragment)."""

from __future__ import annotations

from typing import Any

import pytest

from lfm2_fixed.grammar.schema import SchemaError, resolve

ROOT: Any = {
    "$defs": {
        "v0": {"title": "v0"},
        "a~b": {"title": "tilde"},
        "a/b": {"title": "slash"},
        "~1": {"title": "both"},
        "a b": {"title": "blank"},
        "no": True,
        "text": "no schema",
    },
    "allOf": [{"title": "first"}, {"title": "second"}],
}


@pytest.mark.parametrize(
    ("reference", "found"),
    [
        ("#", ROOT),
        ("#/$defs/v0", {"title": "v0"}),
        ("#/$defs/a~0b", {"title": "tilde"}),
        ("#/$defs/a~1b", {"title": "slash"}),
        ("#/$defs/~01", {"title": "both"}),
        ("#/$defs/a%20b", {"title": "blank"}),
        ("#/$defs/no", True),
        ("#/allOf/1", {"title": "second"}),
        ("#anchor", None),
        ("https://example.org/x", None),
    ],
)
def test_what_a_reference_points_to(reference: str, found: Any) -> None:
    assert resolve(ROOT, reference) == found


@pytest.mark.parametrize("reference", ["#/$defs/v1", "#/$defs/v0/x", "#/allOf/2", "#/allOf/x", "#/$defs/text"])
def test_what_points_to_no_schema(reference: str) -> None:
    with pytest.raises(SchemaError, match="point"):
        resolve(ROOT, reference)
