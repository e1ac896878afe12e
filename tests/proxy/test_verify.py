"""What a reply must keep to, and which reasons to end let it fall short of that."""

from __future__ import annotations

import json
from typing import Any

import pytest

from lfm2_fixed.proxy.errors import ProxyError
from lfm2_fixed.proxy.request import read_request
from lfm2_fixed.proxy.verify import Verifier, is_whole
from lfm2_fixed.wire.turn import Call

PARAMETERS = {"type": "object", "properties": {"n": {"type": "integer"}}, "required": ["n"]}
TOOLS = [{"type": "function", "function": {"name": name, "parameters": PARAMETERS}} for name in "fg"]


def verifier(*, gate: bool = False, **fields: Any) -> Verifier:
    request = read_request(json.dumps({"messages": [], "tools": TOOLS, **fields}).encode(), gate=gate)
    assert request is not None
    return Verifier(request)


@pytest.mark.parametrize("reason", ["length", "max_tokens", "content_filter"])
def test_a_reply_that_says_that_it_was_cut_may_lack_the_call(reason: str) -> None:
    verifier(tool_choice="required").finish(reason)
    verifier(gate=True).finish(reason, cut=True)


@pytest.mark.parametrize("reason", ["stop", None, "abort"])
def test_any_other_must_have_it(reason: str | None) -> None:
    with pytest.raises(ProxyError, match="completed none") as caught:
        verifier(tool_choice="required").finish(reason)
    assert (caught.value.param, caught.value.code) == ("tool_choice", "not_satisfied")


@pytest.mark.parametrize("reason", ["stop", "tool_calls", "end_turn", "completed", "eos", "EOS_TOKEN", "done", None])
def test_words_that_say_that_the_model_ended_it(reason: str | None) -> None:
    assert is_whole(reason)
    checked = verifier(gate=True)
    checked.start("f")
    checked.finish(reason)


@pytest.mark.parametrize("reason", ["abort", "", "error"])
def test_calls_of_a_reply_that_did_not_end_well_are_refused(reason: str) -> None:
    checked = verifier(gate=True)
    checked.start("f")
    with pytest.raises(ProxyError) as caught:
        checked.finish(reason)
    assert caught.value.code == "INCOMPLETE"


def test_the_call_that_breaks_its_schema_is_named_by_its_place() -> None:
    checked = verifier(gate=True)
    for index in range(3):
        checked.start("f")
        if index < 2:
            checked.complete(Call("f", '{"n": 1}'))
    with pytest.raises(ProxyError, match="in call 2 at /n"):
        checked.complete(Call("f", '{"n": "x"}'))


def test_names_and_numbers_of_calls() -> None:
    named = verifier(tool_choice={"type": "function", "function": {"name": "f"}})
    named.start("f")
    with pytest.raises(ProxyError, match="allows only f"):
        named.start("g")
    single = verifier(parallel_tool_calls=False)
    single.start("g")
    with pytest.raises(ProxyError, match="more than one call"):
        single.start("g")


@pytest.mark.parametrize(
    ("gate", "fields"),
    [
        (True, {}),
        (False, {"tool_choice": "required"}),
        (False, {"tool_choice": "none"}),
        (False, {"tool_choice": {"type": "function", "function": {"name": "f"}}}),
        (False, {"parallel_tool_calls": False}),
    ],
)
def test_calls_that_come_as_they_are_must_have_nothing_asked_of_them(gate: bool, fields: dict[str, Any]) -> None:
    with pytest.raises(ProxyError, match="cannot be checked"):
        verifier(gate=gate, **fields).unchecked()
    verifier().unchecked()
