"""Tools as public servers declare them (``tools.jsonl``, made after their shapes): what is valid is accepted, what is
not is refused or was reported as relaxed."""

from __future__ import annotations

import json
import logging
import random
from functools import cache
from typing import Any

import pytest

pytest.importorskip("xgrammar", reason="the grammar needs xgrammar, which comes with vLLM")
pytest.importorskip("jsonschema")

from lfm2_fixed.grammar import relaxed as reports
from tests.support import DATA, sampling
from tests.support.tags import END, START, Writer, accepts, calls_of, compiled, tag_for, tool

pytestmark = pytest.mark.usefixtures("engines")

TOOLS = [json.loads(line) for line in (DATA / "tools.jsonl").read_text(encoding="utf-8").splitlines()]


@cache
def grammar_of(name: str, engine: str) -> tuple[Any, Any, bool]:
    """A tool's schema, its grammar, and whether something was relaxed."""
    [schema] = [known["parameters"] for known in TOOLS if known["name"] == name]
    records: list[logging.LogRecord] = []
    handler = logging.Handler()
    handler.emit = records.append  # type: ignore[method-assign]
    log = logging.getLogger("lfm2_fixed.grammar")
    log.addHandler(handler)
    reports.forget()
    try:
        return schema, compiled(tag_for([tool(schema, name)])), bool(records)
    finally:
        log.removeHandler(handler)


def written(name: str, arguments: Any, chance: random.Random) -> str:
    return f"{START}[{Writer(chance).call(name, arguments)}]{END}"


@pytest.mark.parametrize("name", [known["name"] for known in TOOLS])
def test_valid_calls_are_accepted_and_others_refused(name: str, engines: str) -> None:
    schema, grammar, relaxed = grammar_of(name, engines)
    validator = sampling.validator(schema)
    chance = random.Random(name)
    valid = invalid = 0
    for _ in range(25):
        arguments = sampling.sample(schema, chance, schema)
        if not validator.is_valid(arguments):
            continue
        valid += 1
        text = written(name, arguments, chance)
        assert accepts(grammar, text), text
        assert calls_of(text, [tool(schema, name)]) == [(name, arguments)]
        for _ in range(3):
            other = sampling.damaged(arguments, chance)
            if isinstance(other, dict) and not validator.is_valid(other):
                invalid += 1
                assert relaxed or not accepts(grammar, written(name, other, chance)), other
    assert valid > 10
    assert invalid > 10 or not schema["properties"]


def test_few_of_them_are_relaxed(engines: str) -> None:
    relaxed = [known["name"] for known in TOOLS if grammar_of(known["name"], engines)[2]]
    # A format that there is not; and a text of up to 4,000 characters, where each of them would be a state.
    assert relaxed == (["post_page", "post_message"] if engines == "llama.cpp" else ["post_page"])
