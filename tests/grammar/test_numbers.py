"""Numbers within limits: exactly those that a validator takes, of all sizes."""

from __future__ import annotations

import json
import math
import random
import struct
from typing import Any

import pytest

pytest.importorskip("xgrammar", reason="the grammar needs xgrammar, which comes with vLLM")
jsonschema = pytest.importorskip("jsonschema")

from tests.support.tags import END, START, accepts, compiled, tag_for, tool  # noqa: E402

pytestmark = pytest.mark.usefixtures("engines")

Number = int | float


def numbers(chance: random.Random, count: int) -> list[Number]:
    """Numbers of all sizes and shapes."""
    found: list[Number] = [
        0, 1, -1, 0.1, 100, 1e15, 1e16, 1e22, 1e23, 1e-5, 5e-324, 2**53 + 1, 2**64 - 1, 1.7976931348623157e308,
        3456789012, 1714501234567, 40.7127281,
    ]  # fmt: skip
    while len(found) < count:
        kind = chance.randrange(5)
        value: Number = (
            struct.unpack("d", struct.pack("Q", chance.getrandbits(64)))[0],
            round(chance.uniform(-1000, 1000), chance.randrange(6)),
            chance.uniform(-1, 1) * 10.0 ** chance.randrange(-10, 25),
            chance.randrange(-(10 ** chance.randrange(1, 40)), 10 ** chance.randrange(1, 40)),
            float(chance.randrange(-(10**6), 10**6)),
        )[kind]
        if math.isfinite(value):
            found.append(value)
    return found


def around(bound: Number) -> list[Number]:
    """The bound, and the numbers beside it."""
    value = float(bound)
    found = [bound, value, math.nextafter(value, math.inf), math.nextafter(value, -math.inf), value / 2, -value]
    if abs(bound) < 1e18:
        found += [value + 1, value - 1, int(bound), int(bound) + 1, int(bound) - 1]
    return found


@pytest.mark.parametrize("seed", range(50))
def test_numbers_within_limits(seed: int) -> None:
    chance = random.Random(seed)
    limits = sorted(numbers(chance, 40)[-2:])
    low, high = chance.choice(["minimum", "exclusiveMinimum"]), chance.choice(["maximum", "exclusiveMaximum"])
    schema: dict[str, Any] = {"type": chance.choice(["number", "number", "integer"])}
    schema |= chance.choice([{low: limits[0]}, {high: limits[1]}, {low: limits[0], high: limits[1]}])
    grammar = compiled(tag_for([tool({"type": "object", "properties": {"x": schema}, "required": ["x"]})]))
    validator = jsonschema.Draft202012Validator(schema)
    checked = 0
    for value in [*around(limits[0]), *around(limits[1]), *numbers(chance, 60)]:
        if not math.isfinite(value) or (isinstance(value, int) and len(str(abs(value))) > 40):
            continue
        if schema["type"] == "integer" and isinstance(value, float):
            continue  # integers are written without a point
        if value == 0:
            value = abs(value)  # a zero with a sign is written where negative numbers are
        text = json.dumps(value)
        assert accepts(grammar, f"{START}[f(x={text})]{END}") == validator.is_valid(value), (schema, text)
        checked += 1
    assert checked >= 15


@pytest.mark.parametrize(
    ("schema", "right", "wrong"),
    [
        ({"type": "number", "minimum": 1}, ["3456789012", "1714501234567", "40.7127281", "1e21"], ["0.5", "1e-7"]),
        ({"type": "number", "exclusiveMinimum": 0}, ["0.0001", "5e-324", "1"], ["0", "0.0", "1e-400", "-1"]),
        ({"type": "number", "exclusiveMaximum": 1}, ["0.9999999999999999"], ["0.99999999999999999", "1.0"]),
        ({"type": "number", "maximum": 2**64 - 1}, [str(2**64 - 1), "1.8e19"], [str(2**64), "1.9e19"]),
        (
            {"type": "number", "minimum": 0.155, "maximum": 120},
            ["1.55e-1", "1.5e1", "1.2e2"],
            ["1.5e-1", "1.3e2", "1.5e2"],
        ),
        ({"type": "number", "multipleOf": 0.5}, ["1", "1.5", "-2.50", "1000000"], ["1.25", "0.1"]),
        ({"type": "number", "multipleOf": 0.25, "minimum": 0, "maximum": 10}, ["0.25", "9.75", "10"], ["10.25", "0.3"]),
        ({"type": "number", "multipleOf": 0.05}, ["0.15", "3.2", "1"], ["0.12", "0.151"]),
        ({"type": "number", "multipleOf": 5}, ["10", "10.0", "-5"], ["11", "10.5"]),
        ({"type": "integer", "multipleOf": 2.5}, ["5", "10"], ["2", "7"]),
        ({"type": "number", "multipleOf": 0.01, "minimum": 0.5, "maximum": 3}, ["0.61", "1.2"], ["0.612", "0.6123"]),
        ({"type": "integer", "multipleOf": 60}, ["60", "120", "6600"], ["66", "6", "606"]),
        ({"type": "integer", "multipleOf": 1440}, ["0", "1440", "-2880", "144000"], ["144", "1441", "10"]),
        (
            {"type": "integer", "multipleOf": 3600, "minimum": 0, "maximum": 86400000},
            ["0", "3600", "86400000"],
            ["-3600", "360", "86403600"],
        ),
        ({"type": "integer", "minimum": 3, "exclusiveMinimum": True}, ["4"], ["3"]),  # as draft 4 has them
        ({"type": "integer", "maximum": 5, "exclusiveMaximum": True}, ["4"], ["5"]),
        ({"type": "integer", "minimum": 3, "maximum": 5, "exclusiveMaximum": False}, ["3", "5"], ["6"]),
        ({"type": "integer", "maximum": 10**400, "minimum": -(10**400)}, ["0", "-99"], ["x"]),
        ({"type": "number", "maximum": 10**400}, ["1.5", "1e300"], ["x"]),
    ],
)
def test_examples(schema: Any, right: list[str], wrong: list[str]) -> None:
    grammar = compiled(tag_for([tool({"type": "object", "properties": {"x": schema}, "required": ["x"]})]))
    for text in right:
        assert accepts(grammar, f"{START}[f(x={text})]{END}"), text
    for text in wrong:
        assert not accepts(grammar, f"{START}[f(x={text})]{END}"), text
