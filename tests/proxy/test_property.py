"""What comes out of the proxy is what the machine says of the same text, however it is cut."""

from __future__ import annotations

import json
import random
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lfm2_fixed.core.dialects import DIALECTS
from tests.support.harness import random_cut, stream, whole
from tests.support.pairs import Pair
from tests.support.python_writer import make_tools
from tests.support.strategies import dialects, kin, translated
from tests.support.turn_writer import damage, make_turn
from tests.support.words import ATOMS, LLAMA_ATOMS

EXAMPLES = 150 if settings().max_examples < 10_000 else settings().max_examples // 100


@pytest.fixture(scope="module")
def pairs(start: Callable[..., Pair]) -> dict[str, Pair]:
    return {dialect: start(dialect=dialect) for dialect in DIALECTS}


def declared(tools: dict[str, list[str]] | None) -> list[dict[str, Any]]:
    """The tools as a request has them; without any, one that no text names."""
    return [
        {"type": "function", "function": {"name": name, "parameters": {"properties": dict.fromkeys(names, {})}}}
        for name, names in (tools or {"no such tool": []}).items()
    ]


@given(
    seed=st.integers(0, 2**48),
    dialect=dialects,
    kind=st.sampled_from(["turn", "damaged", "soup"]),
    thought=st.sampled_from([None, "", "hm", "<a> `<|tool_call_start|>`[f(x=1)]", "</thin"]),
)
@settings(max_examples=EXAMPLES)
def test_through_the_proxy_as_through_the_machine(
    pairs: dict[str, Pair], seed: int, dialect: str, kind: str, thought: str | None
) -> None:
    rng = random.Random(seed)
    tools = make_tools(rng)
    if kind == "soup":
        text = "".join(rng.choices(ATOMS if kin(dialect) == "lfm2" else LLAMA_ATOMS, k=rng.randrange(40)))
    else:
        text = make_turn(rng, kin(dialect))
        if kind == "damaged":
            text = damage(rng, text, lambda: make_turn(rng, kin(dialect)), kin(dialect))
    text = translated(dialect, text)
    text = json.loads(json.dumps(text))  # surrogate pairs are characters on the wire
    said = text
    if thought is not None:
        text = text.lstrip()
        said = f" <think>\n{thought}\n</think>\n\n{text}"
    pieces = random_cut(said, rng)

    received = pairs[dialect].merged({"turns": [pieces]}, tools=declared(tools))[0]
    declared_names = tools or {"no such tool": []}
    expected = stream([text], dialect, declared_names)
    assert received["calls"] == [(call.name, call.arguments) for call in expected.started]
    assert received["content"] == expected.content
    assert received["reasoning"] == (thought or "")
    assert received["finish_reason"] == ("tool_calls" if expected.calls else "stop")

    message = pairs[dialect].ask({"turns": [[said]]}, tools=declared(tools)).json()["choices"][0]["message"]
    calls = [(call["function"]["name"], call["function"]["arguments"]) for call in message.get("tool_calls", [])]
    assert (calls, message["content"] or "") == whole(text, dialect, declared_names)
    assert message.get("reasoning_content", "") == (thought or "")
