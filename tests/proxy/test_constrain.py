"""The grammar that goes to the upstream with a request: when, which, and what becomes of one that is refused."""

from __future__ import annotations

import json
import logging
from collections.abc import Callable
from typing import Any

import pytest

from lfm2_fixed.proxy import reply
from tests.support.pairs import TOOLS, Pair, chunk, error_of, merge, sse

CALL = '<|tool_call_start|>[bash(command="ls -l")]<|tool_call_end|>'
NAMED = {"type": "function", "function": {"name": "bash"}}
ALLOWED = {"type": "allowed_tools", "allowed_tools": {"mode": "auto", "tools": [NAMED]}}
STRICT = [{"type": "function", "function": {**tool["function"], "strict": True}} for tool in TOOLS]
ASKS: list[dict[str, Any]] = [
    {"tool_choice": "required"},
    {"tool_choice": NAMED},
    {"tool_choice": ALLOWED},
    {"parallel_tool_calls": False},
    {"tools": STRICT},
]
FIELDS = {"llama.cpp": "grammar", "vllm": "structured_outputs", "vllm-rs": "structured_outputs"}


@pytest.fixture(scope="module", params=sorted(FIELDS))
def pair(request: pytest.FixtureRequest, start: Callable[..., Pair]) -> Pair:
    """In front of a server that takes grammars, each kind in turn."""
    return start(kind=request.param)


def sent(pair: Pair, **fields: Any) -> Any:
    """The constraint that goes to the upstream with a request."""
    answer = pair.ask(CALL, **fields)
    assert answer.status_code == 200, answer.text
    asked = json.loads(pair.upstream.requests[-1]["body"])
    assert asked["tool_choice"] == "none"
    return asked.get(FIELDS[pair.upstream.kind])


def joined(constraint: Any) -> str:
    """A constraint as text, with the characters together that Lark has one by one."""
    return json.dumps(constraint).replace('\\" \\"', "")


@pytest.mark.parametrize("fields", ASKS, ids=["required", "named", "allowed", "single", "strict"])
def test_what_asks_for_it_is_constrained(pair: Pair, fields: dict[str, Any]) -> None:
    constraint = sent(pair, **fields)
    if pair.upstream.kind == "vllm":
        tag = json.loads(constraint["structural_tag"])
        assert tag["type"] == "structural_tag"
        constraint = json.dumps(tag)
    if pair.upstream.kind == "vllm-rs":
        # guidance reads no structural tag, and no text stands for a special token.
        constraint = constraint["grammar"]
        assert constraint.startswith("start: ") and "<[10]>" in constraint and "<[11]>" in constraint
    constraint = joined(constraint)
    assert "bash(" in constraint
    assert ("add(" in constraint) == (fields.get("tool_choice") not in (NAMED, ALLOWED))


def test_what_does_not_ask_is_not(pair: Pair) -> None:
    for fields in ({}, {"tool_choice": "auto"}, {"tool_choice": "none"}, {"parallel_tool_calls": True}):
        assert sent(pair, **fields) is None


ANY = {"type": "any"}
CUSTOM = [{"type": "custom", "custom": {"name": "bash"}}, *TOOLS[1:]]


@pytest.mark.parametrize(
    ("forces", "fields"),
    [
        (True, {"tool_choice": ANY}),
        (True, {"tool_choice": {**ANY, "disable_parallel_tool_use": True}}),
        (False, {"tool_choice": {"type": "auto", "disable_parallel_tool_use": True}}),
        (False, {"tool_choice": {"type": "auto"}, "tools": STRICT}),
        (True, {"tool_choice": {"type": "tool", "name": "bash"}}),
        (False, {"tool_choice": {"type": "allowed_tools", "tools": [NAMED]}}),
        (False, {"tool_choice": {"type": "allowed_tools", "mode": "any", "tools": [NAMED]}}),
        (True, {"tool_choice": {"type": "allowed_tools", "mode": "required", "tools": [CUSTOM[0]]}, "tools": CUSTOM}),
    ],
    ids=["any", "any-single", "auto-single", "auto-strict", "tool", "allowed", "allowed-odd-mode", "allowed-custom"],
)
def test_every_shape_of_the_choice_is_read_as_the_check_reads_it(
    pair: Pair, forces: bool, fields: dict[str, Any]
) -> None:
    """The grammar forces a call exactly where a reply without one is refused."""
    constraint = joined(sent(pair, **fields))
    free = joined(sent(pair, **{**fields, "tool_choice": "auto", "parallel_tool_calls": False}))
    assert "bash(" in constraint
    assert pair.ask("No.", **fields).status_code == (502 if forces else 200)
    assert ("<think>" in constraint) == forces and "<think>" not in free


@pytest.mark.parametrize("settings", [{"constrain": "off"}, {"mode": "parse", "kind": "unknown"}, {"mode": "buffer"}])
def test_where_nobody_is_asked_for_it(start: Callable[..., Pair], settings: dict[str, Any]) -> None:
    pair = start(**settings)
    assert pair.ask(CALL, tool_choice="required").status_code in (200, 502)
    assert not {"grammar", "structured_outputs"} & json.loads(pair.upstream.requests[-1]["body"]).keys()


def test_a_thought_may_come_first(start: Callable[..., Pair]) -> None:
    for kind in FIELDS:
        split, opened = (
            joined(sent(start(kind=kind, reasoning=how), tool_choice="required")) for how in ("split", "open")
        )
        assert "<think>" in split and "<think>" not in opened  # that one is in the prompt already


def test_the_requests_own_form_of_the_answer_stays(pair: Pair) -> None:
    form = {"type": "json_object"}
    own = FIELDS[pair.upstream.kind]
    value = {"grammar": "root ::= x", "structured_outputs": {"regex": "a+"}}[own]
    before = len(pair.upstream.requests)
    for name, given in (("response_format", form), (own, value)):
        refused = pair.ask(CALL, tool_choice="required", **{name: given})
        assert refused.status_code == 400
        assert refused.json()["error"]["param"] == name and "cannot have both" in refused.json()["error"]["message"]
    assert len(pair.upstream.requests) == before
    assert sent(pair, tools=STRICT, response_format=form) is None
    assert sent(pair, tools=STRICT, **{own: value}) == value
    assert sent(pair, tool_choice="required", response_format={"type": "text"})


def test_tools_that_no_grammar_can_be_made_of(pair: Pair) -> None:
    for parameters in ({"type": "array"}, {"properties": {"a": {"type": "strin"}}}):
        tools = [{"type": "function", "function": {"name": "bash", "parameters": parameters}}]
        answer = pair.ask(CALL, tools=tools, tool_choice="required")
        assert answer.status_code == 400 and answer.json()["error"]["param"] == "tools", answer.text
        assert pair.ask(CALL, tools=tools).status_code == 200


@pytest.mark.parametrize("stream", [False, True], ids=["whole", "streamed"])
@pytest.mark.parametrize("status", [400, 422, 500])
def test_a_grammar_that_is_refused(
    start: Callable[..., Pair], stream: bool, status: int, caplog: pytest.LogCaptureFixture
) -> None:
    """The request goes on without, the refusal is logged once, and this grammar is not sent again.

    (After the second time, where the status may have had other reasons.)
    """
    pair = start()
    pair.upstream.refuses = {"grammar": status}
    tries = 2 if status == 500 else 1
    with caplog.at_level(logging.WARNING, "lfm2_fixed.proxy"):
        for _ in range(tries + 1):
            answer = pair.ask(CALL, tool_choice="required", stream=stream)
            assert answer.status_code == 200 and "bash" in answer.text
        assert pair.ask(CALL, tool_choice=NAMED).status_code == 200
    assert with_grammar(pair) == [*[True, False] * tries, False, True, False]
    assert caplog.text.count("refused a grammar") == 1 and "no grammars here" in caplog.text
    # The check of the reply is what is left.
    assert pair.ask("No.", tool_choice="required").status_code == 502


def test_a_grammar_that_the_engine_refuses_behind_its_front_end(start: Callable[..., Pair]) -> None:
    """The stream has begun by then; the client does not see that."""
    pair = start(kind="vllm")
    pair.upstream.refuses = {"structured_outputs": 200}
    for _ in range(3):
        [merged] = pair.merged(CALL, tool_choice="required").values()
        assert merged["calls"] == [("bash", '{"command": "ls -l"}')] and merged["role"] == "assistant"
    assert with_grammar(pair) == [True, False] * 2 + [False]


@pytest.mark.parametrize("status", [500, 200])
def test_a_failure_that_passes_is_forgotten(start: Callable[..., Pair], status: int) -> None:
    """A server that fails once while it is asked with a grammar need not have failed for it."""
    pair = start(kind="vllm")
    for refuses in (True, False, True, False):
        pair.upstream.refuses = {"structured_outputs": status} if refuses else {}
        [merged] = pair.merged(CALL, tool_choice="required").values()
        assert len(merged["calls"]) == 1
    assert with_grammar(pair) == [True, False, True] * 2


ROLE = {"role": "assistant", "content": ""}
PING = ": ping"
ERROR = 'data: {"error": {"message": "no such grammar"}}'


@pytest.mark.parametrize("before", [[PING], [PING, chunk(ROLE)], [chunk(ROLE), PING, PING]])
def test_comments_and_the_role_are_no_answer(start: Callable[..., Pair], before: list[Any]) -> None:
    """The refusal may come behind them."""
    pair = start(kind="vllm")
    refusal = sse(*before, ERROR, done=False, pause=0.01)
    received = pair.stream(refusal, tool_choice="required")
    assert received[-1]["error"]["message"] == "no such grammar"  # the stand-in has no other answer
    assert with_grammar(pair) == [True, False]
    # Once something was said it is an error as any other.
    assert pair.stream(sse(*before, chunk("x"), ERROR, done=False), tool_choice="required")[-1]["error"]
    assert with_grammar(pair) == [True, False, True]
    good = pair.stream(sse(*before, chunk(CALL), chunk("", "stop"), pause=0.01), tool_choice="required")
    assert merge(good)[0]["calls"] and [one for one in good if isinstance(one, bytes)] == [
        one.encode() for one in before if isinstance(one, str)
    ]


def test_an_engine_that_fails_on_its_way_is_not_asked_that_for_ever(start: Callable[..., Pair]) -> None:
    """What was said cannot be taken back; but with the same tools it would fail each time."""
    pair = start(kind="vllm-rs")
    fails = sse(chunk(ROLE), chunk("\n"), ERROR, done=False)
    for _ in range(3):
        assert pair.stream(fails, tool_choice="required")[-1]["error"]["message"] == "no such grammar"
    assert with_grammar(pair) == [True, True, False]


# --- vLLM's Rust front end: its engine answers nothing to a grammar that it does not take

EMPTY: dict[str, Any] = {"turns": [[]], "choice": {"stop_reason": None}}


@pytest.mark.parametrize("stream", [False, True], ids=["whole", "streamed"])
def test_an_answer_that_is_empty(start: Callable[..., Pair], stream: bool, caplog: pytest.LogCaptureFixture) -> None:
    pair = start(kind="vllm-rs")
    pair.upstream.mutes = "structured_outputs"
    with caplog.at_level(logging.WARNING, "lfm2_fixed.proxy"):
        for _ in range(3):
            answer = pair.ask(CALL, tool_choice="required", stream=stream)
            assert answer.status_code == 200 and "bash" in answer.text and "error" not in answer.text
    assert with_grammar(pair) == [True, False] * 2 + [False]
    assert "its answer was empty" in caplog.text
    # No call need be there: a model may say nothing, so nothing is remembered.
    for _ in range(3):
        assert "bash" in pair.ask(CALL, tools=STRICT, stream=stream).text
    assert with_grammar(pair)[5:] == [True, False] * 3


@pytest.mark.parametrize("stream", [False, True], ids=["whole", "streamed"])
def test_an_answer_that_is_empty_for_a_reason(start: Callable[..., Pair], stream: bool) -> None:
    """It was cut, or the client stopped it; and other engines say what they do not take."""
    pair = start(kind="vllm-rs")
    for script in ({**EMPTY, "reason": "length"}, {**EMPTY, "ends": {"stop_reason": "["}}):
        pair.ask(script, tools=STRICT, stream=stream)
    assert with_grammar(pair) == [True, True]
    for kind in ("vllm", "llama.cpp"):
        other = start(kind=kind)
        other.ask(EMPTY, tools=STRICT, stream=stream)
        assert with_grammar(other) == [True]


CUT = {"turns": [[CALL[:40]]]}


def test_a_grammar_that_the_engine_gives_up_on_its_way(start: Callable[..., Pair]) -> None:
    """The answer ends inside a call then, as if the model had ended it."""
    pair = start(kind="vllm-rs")
    whole = pair.ask(CUT, tool_choice="required")
    assert (
        whole.status_code == 502 and whole.json()["error"]["type"] == "tool_choice_error"
    )  # that of the second answer
    assert with_grammar(pair) == [True, False]
    streamed = pair.stream(CUT, tool_choice=NAMED)  # another grammar
    assert "gave up the grammar" in error_of(streamed)["message"]
    assert "gave up" not in error_of(pair.stream(CUT, tool_choice=NAMED))["message"]
    assert with_grammar(pair)[2:] == [True, False]


@pytest.mark.parametrize("stream", [False, True], ids=["whole", "streamed"])
def test_a_call_that_something_else_cuts(start: Callable[..., Pair], stream: bool) -> None:
    pair = start(kind="vllm-rs")
    for script in ({**CUT, "reason": "length"}, {**CUT, "ends": {"stop_reason": 5}}, {**CUT, "reason": "abort"}):
        assert "gave up" not in pair.ask(script, tools=STRICT, stream=stream).text
    assert with_grammar(pair) == [True] * 3
    other = start(kind="vllm")
    other.ask(CUT, tools=STRICT, stream=stream)
    assert with_grammar(other) == [True]


def test_what_is_a_token_there(start: Callable[..., Pair]) -> None:
    pair = start(kind="vllm-rs")
    assert '"<" "t" "h" "i" "n" "k" ">"' in sent(pair, tool_choice="required")["grammar"]
    pair = start(kind="vllm-rs", tokens={"<think>": 20, "</think>": 21})
    grammar = sent(pair, tool_choice="required")["grammar"]
    assert "<[20]>" in grammar and "<[21]>" in grammar and "<[10]>" not in grammar
    assert pair.upstream.asked.count("/tokenize") == 4


@pytest.mark.parametrize("status", [404, 503])
def test_where_it_does_not_say_what_is_a_token(
    start: Callable[..., Pair], status: int, caplog: pytest.LogCaptureFixture
) -> None:
    """No grammar can be written then; a server that may yet say it is asked again."""
    reply._told.clear()
    pair = start(kind="vllm-rs", says={"/tokenize": (status, {})})
    with caplog.at_level(logging.WARNING, "lfm2_fixed.proxy"):
        for _ in range(2):
            assert sent(pair, tool_choice="required") is None
    assert caplog.text.count("does not answer /tokenize") == 1
    pair.upstream.says = {}
    assert (sent(pair, tool_choice="required") is None) == (status == 404)


def with_grammar(pair: Pair) -> list[bool]:
    """Of each request at the upstream: whether it was constrained."""
    return [FIELDS[pair.upstream.kind] in json.loads(seen["body"]) for seen in pair.upstream.requests]


def test_what_is_refused_without_a_grammar_too_is_the_clients(start: Callable[..., Pair]) -> None:
    pair = start()
    script = {"turns": [["x"]], "status": 400}
    assert pair.ask(script, tool_choice="required").status_code == 400
    assert sent(pair, tool_choice="required"), "it was not the grammar's fault"
    for status in (401, 429, 503):
        before = len(pair.upstream.requests)
        assert pair.ask({"turns": [["x"]], "status": status}, tool_choice="required").status_code == status
        assert len(pair.upstream.requests) == before + 1
