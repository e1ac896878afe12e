"""Over random schemas: what is valid is accepted and read back, what is not is refused, and whatever the grammar
lets a model write is a valid call for the parser."""

from __future__ import annotations

import json
import random
from typing import Any

import pytest
from hypothesis import event, given, settings
from hypothesis import strategies as st

pytest.importorskip("xgrammar", reason="the grammar needs xgrammar, which comes with vLLM")
jsonschema = pytest.importorskip("jsonschema")

from lfm2_fixed import parse  # noqa: E402
from lfm2_fixed.core.dialects import DIALECTS  # noqa: E402
from tests.support import schemas, tags  # noqa: E402

pytestmark = pytest.mark.usefixtures("engines")

# Compiling a grammar takes longer than reading a text: a tenth of the profile's examples.
relaxed = settings(max_examples=max(settings().max_examples // 10, 50), deadline=None)


def valid(schema: dict[str, Any], value: Any) -> bool:
    return bool(jsonschema.Draft202012Validator(schema).is_valid(value))


@relaxed
@given(schemas.parameters(), st.data(), st.randoms(use_true_random=False))
def test_valid_calls_are_accepted_and_read_back(
    pair: tuple[dict[str, Any], st.SearchStrategy[Any]], data: st.DataObject, chance: random.Random
) -> None:
    schema, values = pair
    listed = data.draw(st.lists(values, min_size=1, max_size=3))
    assert all(valid(schema, arguments) for arguments in listed), "the strategy is wrong"
    tools = [tags.tool(schema), tags.tool(None, "g")]
    writer = tags.Writer(chance, quotes='"')
    calls = ", ".join([*(writer.call("f", arguments) for arguments in listed), "g()"])
    text = f"{tags.START}[{calls}]{tags.END}"
    grammar = tags.compiled(tags.tag_for(tools))
    assert tags.accepts(grammar, text)
    assert tags.calls_of(text, tools) == [*(("f", arguments) for arguments in listed), ("g", {})]


@relaxed
@given(schemas.parameters(), st.data(), st.randoms(use_true_random=False))
def test_what_is_not_valid_is_refused(
    pair: tuple[dict[str, Any], st.SearchStrategy[Any]], data: st.DataObject, chance: random.Random
) -> None:
    schema, values = pair
    arguments = schemas.damaged(data.draw(values), chance)
    text = f"{tags.START}[{tags.Writer(chance).call('f', arguments)}]{tags.END}"
    grammar = tags.compiled(tags.tag_for([tags.tool(schema)]))
    accepted = tags.accepts(grammar, text)
    event(f"valid: {valid(schema, arguments)}, accepted: {accepted}")
    if not valid(schema, arguments):
        assert not accepted


@relaxed
@given(schemas.parameters(), st.sampled_from(sorted(DIALECTS)), st.integers(0, 2**32))
def test_whatever_is_generated_is_a_valid_call(
    pair: tuple[dict[str, Any], st.SearchStrategy[Any]], dialect: str, seed: int
) -> None:
    schema, _ = pair
    tools = [tags.tool(schema), tags.tool(None, "g")]
    grammar = tags.compiled(tags.tag_for(tools, dialect=dialect))
    chance = random.Random(seed)
    for _ in range(5):
        text = tags.walk(grammar, chance)
        if text is None:
            event("did not end")
            continue
        if repeats_a_free_name(schema, text):
            continue
        calls = tags.calls_of(text, tools, dialect)
        assert calls
        for name, arguments in calls:
            assert name in ("f", "g")
            assert valid(schema if name == "f" else {"maxProperties": 0}, arguments), text


def repeats_a_free_name(schema: Any, text: str) -> bool:
    """Names that are not declared may come twice: no grammar counts those.  The parser gives such a call back."""
    return '"additionalProperties": {' in json.dumps(schema) and bool(parse(text).content.strip())
