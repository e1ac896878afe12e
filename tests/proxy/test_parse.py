"""Mode parse: the upstream's raw text becomes an OpenAI answer."""

from __future__ import annotations

import importlib
import json
import logging
import threading
from collections.abc import Callable
from typing import Any

import pytest

from lfm2_fixed.core.dialects import DIALECTS
from lfm2_fixed.proxy import reply
from tests.support.pairs import TOOLS, Pair, merge

CALL = '<|tool_call_start|>[bash(command="ls -l")]<|tool_call_end|>'
NAMED_ADD = {"type": "function", "function": {"name": "add"}}
NAMED_BASH = {"type": "function", "function": {"name": "bash"}}


def error_of(received: list[Any]) -> dict[str, Any]:
    """The error at a stream's end: nothing follows, not even [DONE]."""
    assert "error" in received[-1], received[-1]
    return received[-1]["error"]


def test_the_upstream_is_asked_for_its_raw_text(parse: Pair, start: Callable[..., Pair]) -> None:
    parse.ask(CALL, stream=True, tool_choice="required", temperature=0.5)
    asked = json.loads(parse.upstream.requests[-1]["body"])
    assert asked["tool_choice"] == "none" and asked["tools"] == TOOLS and asked["temperature"] == 0.5
    assert asked["reasoning_format"] == "none" and "skip_special_tokens" not in asked
    vllm = start(kind="vllm")
    vllm.ask(CALL)
    asked = json.loads(vllm.upstream.requests[-1]["body"])
    assert asked["tool_choice"] == "none" and asked["skip_special_tokens"] is False and "reasoning_format" not in asked
    unknown = start(kind="unknown", mode="parse")
    unknown.ask(CALL)
    asked = json.loads(unknown.upstream.requests[-1]["body"])
    assert asked["tool_choice"] == "none" and not {"skip_special_tokens", "reasoning_format"} & asked.keys()


def test_the_chunks_of_a_call(parse: Pair) -> None:
    pieces = ["Look: <|tool_", "call_start|>[bash(comm", 'and="ls', " -", 'l")]', "<|tool_call_end|>"]
    received = parse.stream({"turns": [pieces]})
    deltas = [chunk["choices"][0]["delta"] for chunk in received[:-1]]
    identity = deltas[2]["tool_calls"][0].pop("id")
    assert identity.startswith("chatcmpl-tool-") and len(identity) > 30
    first = {"name": "bash", "arguments": '{"command": "ls'}
    assert deltas == [
        {"role": "assistant", "content": ""},
        {"content": "Look:"},
        {"tool_calls": [{"index": 0, "type": "function", "function": first}]},
        {"tool_calls": [{"index": 0, "function": {"arguments": " -"}}]},
        {"tool_calls": [{"index": 0, "function": {"arguments": 'l"}'}}]},
        {},
    ]
    reasons = [chunk["choices"][0]["finish_reason"] for chunk in received[:-1]]
    assert reasons == [None] * 5 + ["tool_calls"] and received[-1] == "[DONE]"
    assert {(chunk["id"], chunk["model"], chunk["created"]) for chunk in received[:-1]} == {
        ("chatcmpl-1", "scripted", 1)
    }


def test_a_whole_answer(parse: Pair) -> None:
    answer = parse.ask("Look: " + CALL + CALL).json()
    choice = answer["choices"][0]
    calls = choice["message"].pop("tool_calls")
    assert [call["function"] for call in calls] == [{"name": "bash", "arguments": '{"command": "ls -l"}'}] * 2
    assert len({call["id"] for call in calls}) == 2 and all(call.keys() == {"id", "type", "function"} for call in calls)
    assert choice == {
        "index": 0,
        "message": {"role": "assistant", "content": "Look:"},
        "finish_reason": "tool_calls",
    }
    assert answer["usage"]["total_tokens"] == 3 and answer["object"] == "chat.completion"
    assert parse.ask(CALL).json()["choices"][0]["message"]["content"] is None
    assert parse.ask("Hello").json()["choices"][0] == {
        "index": 0,
        "message": {"role": "assistant", "content": "Hello"},
        "finish_reason": "stop",
    }


def test_several_choices(parse: Pair) -> None:
    script = {"turns": [["a", CALL], [CALL[:30], CALL[30:], CALL], ["c"]]}
    merged = parse.merged(script, n=3)
    assert [(merged[i]["content"], len(merged[i]["calls"]), merged[i]["finish_reason"]) for i in range(3)] == [
        ("a", 1, "tool_calls"),
        ("", 2, "tool_calls"),
        ("c", 0, "stop"),
    ]
    whole = parse.ask(script, n=3).json()["choices"]
    assert [len(choice["message"].get("tool_calls", [])) for choice in whole] == [1, 2, 0]


def test_usage_only_when_asked(parse: Pair) -> None:
    assert all(chunk == "[DONE]" or chunk["choices"] for chunk in parse.stream(CALL))
    *_, usage, done = parse.stream(CALL, stream_options={"include_usage": True})
    assert usage["choices"] == [] and usage["usage"]["total_tokens"] == 3 and done == "[DONE]"
    unasked = {"raw": [f"data: {json.dumps({'choices': [], 'usage': {}})}\n\n", "data: [DONE]\n\n"]}
    assert parse.stream({**unasked, "headers": {"content-type": "text/event-stream"}}) == ["[DONE]"]


@pytest.mark.parametrize("reason", ["length", "content_filter"])
def test_an_answer_that_was_cut_off_says_so(parse: Pair, reason: str) -> None:
    for text, calls in ((CALL[:40], 0), (CALL, 1)):
        merged = parse.merged({"turns": [[text]], "reason": reason}, tool_choice="required")[0]
        assert merged["finish_reason"] == reason
        whole = parse.ask({"turns": [[text]], "reason": reason}).json()["choices"][0]
        assert whole["finish_reason"] == reason and len(whole["message"].get("tool_calls", [])) == calls


def test_reasoning_in_the_text_is_split_off(parse: Pair, start: Callable[..., Pair]) -> None:
    text = "<think>\nIs [bash(x=1)] right?\n</think>\n\nYes. " + CALL
    for pieces in ([text], list(text)):
        merged = parse.merged({"turns": [pieces]})[0]
        assert merged["reasoning"] == "Is [bash(x=1)] right?" and merged["content"] == "Yes."
        assert merged["calls"] == [("bash", '{"command": "ls -l"}')]
    message = parse.ask(text).json()["choices"][0]["message"]
    assert message["reasoning_content"] == "Is [bash(x=1)] right?" and message["content"] == "Yes."
    kept = parse.merged(text, reasoning_format="none")[0]
    assert kept["content"].startswith("<think>") and kept["reasoning"] == ""
    inside = start(reasoning="open").merged(text.removeprefix("<think>"))[0]
    assert inside["reasoning"] == "Is [bash(x=1)] right?" and len(inside["calls"]) == 1


def test_reasoning_of_the_upstream_passes(parse: Pair) -> None:
    received = parse.stream({"turns": [[{"reasoning_content": "hm"}, {"reasoning": "so"}, CALL]]})
    deltas = [chunk["choices"][0]["delta"] for chunk in received[:-1]]
    assert {"reasoning_content": "hm"} in deltas and {"reasoning": "so"} in deltas


def test_content_that_is_no_text_passes(parse: Pair) -> None:
    part = {"content": [{"type": "text", "text": "hm"}]}
    received = parse.stream({"turns": [[part, CALL]]})
    assert received[1]["choices"][0]["delta"] == part and received[-2]["choices"][0]["finish_reason"] == "tool_calls"


def test_fields_that_nobody_knows_pass(parse: Pair) -> None:
    script = {
        "turns": [["a"]],
        "choice": {"x": 1, "logprobs": {"content": [1]}},
        "message": {"y": 2},
        "reply": {"z": 3},
    }
    answer = parse.ask(script).json()
    assert answer["z"] == 3 and answer["choices"][0]["x"] == 1 and answer["choices"][0]["message"]["y"] == 2
    in_one = {"index": 0, "delta": {"content": "a"}, "logprobs": {"content": [1]}, "finish_reason": "stop"}
    raw = [f"data: {json.dumps({'object': 'chat.completion.chunk', 'choices': [in_one]})}\n\n"]
    *told, done = parse.stream({"raw": raw, "headers": {"content-type": "text/event-stream"}})
    assert [chunk["choices"][0]["logprobs"] for chunk in told] == [{"content": [1]}, None]
    held = parse.stream({"turns": [["<|tool_call"]], "choice": {"logprobs": {"content": [1]}}})
    assert [chunk["choices"][0].get("logprobs") for chunk in held[:-1]].count({"content": [1]}) == 1


def test_choices_are_checked(parse: Pair) -> None:
    assert parse.merged(CALL, tool_choice="required")[0]["finish_reason"] == "tool_calls"
    assert parse.merged(CALL, tool_choice=NAMED_BASH)[0]["calls"]
    for fields, text, param in (
        ({"tool_choice": "required"}, "No.", "tool_choice"),
        ({"tool_choice": "required"}, "<|tool_call_start|>[bash(command=foo())]<|tool_call_end|>", "tool_choice"),
        ({"tool_choice": NAMED_ADD}, CALL, "tool_choice"),
        ({"tool_choice": NAMED_ADD}, "No.", "tool_choice"),
        ({"parallel_tool_calls": False}, CALL + CALL, "parallel_tool_calls"),
        (
            {"tool_choice": {"type": "allowed_tools", "allowed_tools": {"mode": "auto", "tools": [NAMED_ADD]}}},
            CALL,
            "tool_choice",
        ),
    ):
        received = parse.stream(text, **fields)
        assert error_of(received)["param"] == param
        delivered = [call for choice in merge(received[:-1]).values() for call in choice["calls"]]
        assert len(delivered) <= (1 if param == "parallel_tool_calls" else 0)
        answer = parse.ask(text, **fields)
        assert answer.status_code == 502 and answer.json()["error"]["param"] == param
    unknown = parse.ask(CALL, tool_choice={"type": "function", "function": {"name": "rm"}})
    assert unknown.status_code == 400 and "'rm'" in unknown.json()["error"]["message"]


def test_no_calls_when_none_are_wanted(parse: Pair) -> None:
    merged = parse.merged(CALL, tool_choice="none")[0]
    assert merged["calls"] == [] and merged["content"] == '[bash(command="ls -l")]'
    message = parse.ask(CALL, tool_choice="none").json()["choices"][0]["message"]
    assert message == {"role": "assistant", "content": '[bash(command="ls -l")]'}


def test_special_tokens_show_only_if_asked_for(parse: Pair) -> None:
    text = CALL + "bye<|im_end|>"
    assert parse.merged(text)[0]["content"] == "bye"
    assert parse.merged(text, skip_special_tokens=False)[0]["content"] == "bye<|im_end|>"


def test_calls_without_sentinels_are_logged_once(parse: Pair, caplog: pytest.LogCaptureFixture) -> None:
    reply._told.clear()
    with caplog.at_level(logging.WARNING, "lfm2_fixed.proxy"):
        for _ in range(3):
            merged = parse.merged('[bash(command="SECRET")]')[0]
            assert merged["content"] == '[bash(command="SECRET")]' and not merged["calls"]
            parse.ask("an [other(list)]")
    warnings = [record.getMessage() for record in caplog.records if "strips special" in record.getMessage()]
    assert len(warnings) == 1 and "SECRET" not in caplog.text
    named = warnings[0].partition("--dialect ")[2].split()[0]
    assert DIALECTS[named].bare_lists, "it names a dialect that reads this"


@pytest.mark.parametrize("dialect", [row.name for row in DIALECTS.values() if row.bare_lists])
def test_lists_without_markers(start: Callable[..., Pair], dialect: str, caplog: pytest.LogCaptureFixture) -> None:
    reply._told.clear()
    pair = start(dialect=dialect)
    assert pair.merged("[add(a=1, b=2)]")[0]["calls"] == [("add", '{"a": 1, "b": 2}')]
    assert pair.merged("See [add](https://x) or a[add(x)].")[0]["calls"] == []
    assert "strips special" not in caplog.text


def test_markers_of_text(start: Callable[..., Pair], caplog: pytest.LogCaptureFixture) -> None:
    """OLMo 3: no server strips its markers, so none is said to."""
    reply._told.clear()
    pair = start(dialect="olmo3")
    text = "<function_calls>add(a=1, b=2)\nbash(command='ls')</function_calls>"
    assert pair.merged(text)[0]["calls"] == [("add", '{"a": 1, "b": 2}'), ("bash", '{"command": "ls"}')]
    assert pair.merged("[add(a=1, b=2)]")[0]["content"] == "[add(a=1, b=2)]"
    assert "strips special" not in caplog.text


def test_errors_in_a_stream_end_it(parse: Pair) -> None:
    head = {"headers": {"content-type": "text/event-stream"}}
    said = {"error": {"code": 500, "message": "Invalid diff"}}
    for event in (f"data: {json.dumps(said)}\n\n", f"error: {json.dumps(said['error'])}\n\n"):
        received = parse.stream({"raw": [event, "data: [DONE]\n\n"], **head})
        assert received == [said]
    assert error_of(parse.stream({"raw": ["data: {\n\n"], **head}))["type"] == "upstream_error"
    assert error_of(parse.stream({"raw": ['data: {"choices": [1]}\n\n'], **head}))["type"] == "upstream_error"
    assert "too early" in error_of(parse.stream({"raw": [": hello\n\n"], **head}))["message"]
    died = parse.stream({"turns": [["Look: ", CALL]], "die": 2})
    assert merge(died[:-1])[0]["content"] == "Look:" and "closed the connection" in error_of(died)["message"]


def test_upstream_errors_keep_status_and_body(parse: Pair) -> None:
    for stream in (True, False):
        script = {"raw": ['{"error": ', '"full"}'], "status": 429, "headers": {"retry-after": "7"}}
        answer = parse.ask(script, stream=stream)
        assert (answer.status_code, answer.text) == (429, '{"error": "full"}') and answer.headers["retry-after"] == "7"


def test_any_line_ends_and_comments(parse: Pair) -> None:
    def chunk(delta: dict[str, Any], reason: str | None = None) -> str:
        choice = {"index": 0, "delta": delta, "finish_reason": reason}
        return json.dumps({"object": "chat.completion.chunk", "choices": [choice]}, ensure_ascii=False)

    first, last = chunk({"content": CALL + "\u2028"}), chunk({}, "stop")
    text = f": ping\r\n\r\nevent: x\r\ndata:{first}\r\n\r\ndata: {last}\n\nid: 3\ndata: [DONE]"
    received = parse.stream({"raw": list(text), "headers": {"content-type": "text/event-stream; charset=utf-8"}})
    assert received[0] == b": ping" and received[-1] == "[DONE]"
    merged = merge(received)[0]
    assert len(merged["calls"]) == 1 and merged["content"] == "\u2028" and merged["finish_reason"] == "tool_calls"


def test_an_answer_that_is_complete_without_done(parse: Pair) -> None:
    head = {"object": "chat.completion.chunk"}
    chunks = [
        {**head, "choices": [{"index": index, "delta": delta, "finish_reason": reason}]}
        for index, delta, reason in ((0, {"content": CALL}, None), (1, {}, "stop"), (0, {}, "stop"))
    ]
    script = {"headers": {"content-type": "text/event-stream"}}
    raw = [f"data: {json.dumps(chunk)}\n\n" for chunk in chunks]
    received = parse.stream({**script, "raw": raw})
    assert received[-1] == "[DONE]" and merge(received)[0]["finish_reason"] == "tool_calls"
    assert error_of(parse.stream({**script, "raw": raw[:2]}))["type"] == "upstream_error"


def test_whole_calls(start: Callable[..., Pair]) -> None:
    received = start(stream="call").stream({"turns": [list(CALL)]})
    calls = [chunk for chunk in received[:-1] if chunk["choices"][0]["delta"].get("tool_calls")]
    assert len(calls) == 1


def test_the_gate(start: Callable[..., Pair]) -> None:
    pair = start(gate=True)
    good = "<|tool_call_start|>[add(a=1, b=2)]<|tool_call_end|>"
    bad = '<|tool_call_start|>[add(a=1, b="SECRET")]<|tool_call_end|>'
    assert pair.merged({"turns": [list(good)]})[0]["calls"] == [("add", '{"a": 1, "b": 2}')]
    received = pair.stream(good + bad)
    assert error_of(received)["code"] == "TYPE_MISMATCH" and "SECRET" not in json.dumps(received)
    assert merge(received[:-1])[0]["calls"] in ([], [("add", '{"a": 1, "b": 2}')])
    answer = pair.ask(bad)
    assert answer.status_code == 502 and answer.json()["error"]["code"] == "TYPE_MISMATCH"
    assert pair.ask("<|tool_call_start|>[rm(a=1)]<|tool_call_end|>").json()["error"]["code"] == "UNKNOWN_TOOL"


@pytest.mark.parametrize("kind", ["llama.cpp", "unknown"])
def test_validation_does_not_hold_up_other_requests(
    start: Callable[..., Pair], monkeypatch: pytest.MonkeyPatch, kind: str
) -> None:
    """However long it takes: it is done in threads of its own, and so is the compiling of schemas."""
    schemas, validate = (importlib.import_module(f"lfm2_fixed.gate.{name}") for name in ("schemas", "validate"))
    threads: list[str] = []

    def watched(work: Callable[..., Any]) -> Callable[..., Any]:
        def call(*arguments: Any, **options: Any) -> Any:
            threads.append(threading.current_thread().name)
            return work(*arguments, **options)

        return call

    monkeypatch.setattr(validate, "validate", watched(validate.validate))
    monkeypatch.setattr(schemas, "compiled_tools", watched(schemas.compiled_tools))
    pair = start(kind=kind, gate=True)
    for stream in (True, False):
        assert pair.ask(CALL, stream=stream).status_code == 200
    assert len(threads) >= 4 and not [name for name in threads if "proxy" in name]
