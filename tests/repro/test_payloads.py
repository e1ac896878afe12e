"""The payloads of repro and demo: what they claim, and how they are cut and judged."""

from __future__ import annotations

import ast
import json

import pytest

from lfm2_fixed.core.tools import Declared
from lfm2_fixed.repro.payloads import PAYLOADS
from lfm2_fixed.repro.readers import CUTTINGS, WAYS, EngineFree, Outcome, read, tokens
from lfm2_fixed.repro.turns import TOOLS, Payload

START, END = "<|tool_call_start|>", "<|tool_call_end|>"


def by_id(payload: Payload) -> str:
    return payload.id


@pytest.mark.parametrize("payload", PAYLOADS, ids=by_id)
def test_ours_reads_it_right(payload: Payload) -> None:
    outcomes = read(EngineFree(), payload)
    assert set(outcomes) == set(WAYS)
    wanted = tuple((name, json.dumps(arguments, ensure_ascii=False)) for name, arguments in payload.calls)
    for outcome in outcomes.values():
        assert outcome.matches(payload)
        assert outcome.calls == wanted and outcome.content == payload.content  # to the byte


@pytest.mark.parametrize("payload", PAYLOADS, ids=by_id)
def test_cuttings_lose_nothing(payload: Payload) -> None:
    for name, cut in CUTTINGS.items():
        pieces = cut(payload.text)
        assert "".join(pieces) == payload.text
        assert all(pieces)
        if name.endswith(("char", "chars")):
            longest = int(name.split()[0])
            assert all(len(piece) <= longest or piece.startswith("<|") for piece in pieces)
        assert sum(piece in (START, END) for piece in pieces) == payload.text.count(START) + payload.text.count(END)


@pytest.mark.parametrize("payload", PAYLOADS, ids=by_id)
def test_python_agrees(payload: Payload) -> None:
    """Where CPython reads the turn as a list of calls with literals, the payload says the same."""
    text = payload.text.removeprefix(START).removesuffix(END).strip()
    try:
        tree = ast.parse(text, mode="eval").body
        assert isinstance(tree, ast.List)
        calls = [
            (ast.unparse(call.func), {argument.arg: ast.literal_eval(argument.value) for argument in call.keywords})
            for call in tree.elts
            if isinstance(call, ast.Call) and not call.args
        ]
        read_all = len(calls) == len(tree.elts) and None not in {key for _, items in calls for key in items}
        as_json = json.dumps(calls, allow_nan=False)
    except (SyntaxError, ValueError, TypeError, AssertionError):
        return  # no such list: the contract alone decides
    if read_all:
        assert json.loads(as_json) == json.loads(json.dumps(payload.calls))


def test_most_payloads_have_the_oracle() -> None:
    """The test above must not pass by reading nothing."""
    parsed = 0
    for payload in PAYLOADS:
        try:
            ast.parse(payload.text.removeprefix(START).removesuffix(END).strip(), mode="eval")
        except SyntaxError:
            continue
        parsed += 1
    assert parsed >= 25


def test_ids_and_tools() -> None:
    ids = [payload.id for payload in PAYLOADS]
    assert len(set(ids)) == len(ids)
    declared = Declared(TOOLS)
    for payload in PAYLOADS:
        for name, arguments in payload.calls:
            assert set(arguments) <= set(declared[name])


def test_tokens_look_like_a_model_s() -> None:
    assert tokens(f"{START}[get_weather(city='Paris'), ls()]{END}") == [
        *(START, "[get", "_", "weath", "er", "(city", "='", "Paris", "'),", " ls", "()]", END)
    ]


@pytest.mark.parametrize(
    "outcome, right",
    [
        (Outcome((("move", '{"lat": 10.5}'),)), True),
        (Outcome((("move", '{"lat":10.5}'),), "\n"), True),
        (Outcome((("move", '{"lat": 10.0}'),)), False),
        (Outcome((("move", '{"lat": "10.5"}'),)), False),
        (Outcome((("move", '{"lat": 10.5'),)), False),
        (Outcome((("mov", '{"lat": 10.5}'),)), False),
        (Outcome((("move", '{"lat": 10.5}'),), "x"), False),
        (Outcome((("move", '{"lat": 10.5}'),) * 2), False),
        (Outcome(error="HTTP 500"), False),
        (Outcome(), False),
    ],
)
def test_judgement(outcome: Outcome, right: bool) -> None:
    payload = Payload("x", "[move(lat=10.5)]", (("move", {"lat": 10.5}),), "")
    assert outcome.matches(payload) is right


def test_judgement_tells_integers_from_floats() -> None:
    payload = Payload("x", "[move(lat=1)]", (("move", {"lat": 1}),), "")
    assert not Outcome((("move", '{"lat": 1.0}'),)).matches(payload)
    assert not Outcome((("move", '{"lat": true}'),)).matches(payload)
