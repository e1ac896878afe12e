"""The gate in an agent's loop, with real clients against a real server."""

from __future__ import annotations

import asyncio
import json
import subprocess
import sys
from collections.abc import AsyncIterator
from typing import Any

import openai
import pytest

from lfm2_fixed.gate import CallsRefused, Code, Gate, assemble, from_response
from tests.support import ROOT
from tests.support.answers import TOOLS, Answer, chat_frames, messages_frames, responses_frames, serving, sse

sys.path.insert(0, str(ROOT / "examples"))

RIGHT = ("move", '{"lat": 1.5, "steps": 3}')
WRONG = ("move", '{"lat": "1.5"}')
CUT = ("write", '{"path": "a')


def test_right_calls_pass_exactly_as_they_are() -> None:
    gate = Gate(TOOLS)
    for _ in range(2):
        assert list(gate.through(chat_frames([RIGHT, ("ping", "{}")]))) == chat_frames([RIGHT, ("ping", "{}")])
        first, second = gate.calls(expected_calls=2)
        assert (first.name, first.arguments, first.text) == ("move", {"lat": 1.5, "steps": 3}, RIGHT[1])
        assert isinstance(first.arguments["steps"], int)
        assert (second.id, second.arguments) == ("call-0-1", {})
    gate.reset()
    with pytest.raises(CallsRefused):  # nothing came: no answer is not an empty answer
        gate.calls()


def test_an_answer_in_words_has_no_calls() -> None:
    gate = Gate(TOOLS)
    list(gate.through(chat_frames([], content="Hello", finish="stop")))
    assert gate.calls() == [] and gate.turn().content == "Hello"


def test_one_wrong_call_refuses_the_turn_with_all_reasons() -> None:
    gate = Gate(TOOLS)
    list(gate.through(chat_frames([RIGHT, WRONG, CUT])))
    with pytest.raises(CallsRefused) as caught:
        gate.calls()
    assert [(issue.code, issue.call) for issue in caught.value.issues] == [
        (Code.TYPE_MISMATCH, 1),
        (Code.ARGUMENTS_NOT_JSON, 2),
    ]
    assert "TYPE_MISMATCH in call 1 at /lat" in str(caught.value)


def test_an_asynchronous_stream() -> None:
    async def frames() -> AsyncIterator[dict[str, Any]]:
        for frame in chat_frames([RIGHT]):
            yield frame

    async def run() -> None:
        gate = Gate(TOOLS)
        assert [frame async for frame in gate.athrough(frames())] == chat_frames([RIGHT])
        assert [call.name for call in gate.calls()] == ["move"]

    asyncio.run(run())


def refused(turn: Any, **options: Any) -> CallsRefused:
    with pytest.raises(CallsRefused) as caught:
        Gate(TOOLS).check(turn, **options)
    return caught.value


def test_results_for_chat_completions() -> None:
    error = refused(assemble(chat_frames([RIGHT, WRONG, CUT], content="So:")))
    said, *results = error.messages()
    assert said["role"] == "assistant" and said["content"] == "So:"
    assert [c["function"]["arguments"] for c in said["tool_calls"]] == [RIGHT[1], WRONG[1], "{}"]
    assert [r["tool_call_id"] for r in results] == [c["id"] for c in said["tool_calls"]]
    assert "another call" in results[0]["content"]
    assert "TYPE_MISMATCH at /lat: expected number, found string" in results[1]["content"]
    assert "ARGUMENTS_NOT_JSON" in results[2]["content"]
    assert results == error.tool_results()


def test_results_for_responses_and_messages() -> None:
    call, result = refused(assemble(responses_frames([WRONG]))).messages()
    assert call == {"type": "function_call", "call_id": "call_0", "name": "move", "arguments": WRONG[1]}
    assert result["type"] == "function_call_output" and result["call_id"] == "call_0"
    said, told = refused(assemble(messages_frames([WRONG, CUT]))).messages()
    assert [block["input"] for block in said["content"]] == [{"lat": "1.5"}, {}]
    assert [(b["type"], b["tool_use_id"], b["is_error"]) for b in told["content"]] == [
        ("tool_result", "toolu_0", True),
        ("tool_result", "toolu_1", True),
    ]


def test_each_result_names_one_call_also_where_the_ids_do_not() -> None:
    frames = chat_frames([WRONG, WRONG, WRONG])
    for frame in frames:
        for entry in frame["choices"][0]["delta"].get("tool_calls", []):
            if "id" in entry:
                entry["id"] = "" if entry["index"] == 2 else "same"
    said, *results = refused(assemble(frames)).messages()
    ids = [entry["id"] for entry in said["tool_calls"]]
    assert len(set(ids)) == 3 and ids == [result["tool_call_id"] for result in results]


def test_without_a_call_the_model_is_told_in_a_message() -> None:
    (message,) = refused(assemble(chat_frames([], finish="length"))).messages()
    assert message["role"] == "user" and "INCOMPLETE" in message["content"]
    (message,) = refused(assemble(chat_frames([], finish="stop")), expected_calls=1).messages()
    assert "CALL_COUNT_MISMATCH" in message["content"]


def test_whole_answers_pass_the_same_gate() -> None:
    whole = {"choices": [{"index": 0, "message": {"tool_calls": [
        {"id": "a", "type": "function", "function": {"name": "move", "arguments": RIGHT[1]}}]},
        "finish_reason": "tool_calls"}]}  # fmt: skip
    assert Gate(TOOLS).check(from_response(whole))[0].arguments == {"lat": 1.5, "steps": 3}


WEATHER = ("get_weather", '{"city": "Oslo", "days": 2}')
TURNS = [
    Answer(sse(chat_frames([("get_weather", '{"city": "Oslo", "days": "2"}')]))),  # retyped: must not run
    Answer(sse(chat_frames([WEATHER]))),
    Answer(sse(chat_frames([], content="Clear skies.", finish="stop"))),
]


def check_conversation(requests: list[tuple[str, dict[str, Any]]]) -> None:
    """The refused call was answered with its reasons, the right one with the tool's result."""
    assert len(requests) == 3
    refusal, result = requests[1][1]["messages"][-1], requests[2][1]["messages"][-1]
    assert refusal["role"] == "tool" and "TYPE_MISMATCH at /days" in refusal["content"]
    assert json.loads(result["content"]) == {"city": "Oslo", "days": 2, "sky": "clear"}


def test_the_example_for_the_openai_client(capsys: pytest.CaptureFixture[str]) -> None:
    from gate_openai import answer

    with serving(*TURNS) as server:
        client = openai.OpenAI(base_url=f"{server.url}/v1", api_key="k", max_retries=0)
        assert answer(client, "m", "Weather?") == "Clear skies."
    check_conversation(server.requests)
    assert capsys.readouterr().out == "Clear skies."


def test_the_example_for_the_asynchronous_client() -> None:
    from gate_openai_async import answer

    async def run(url: str) -> str:
        async with openai.AsyncOpenAI(base_url=f"{url}/v1", api_key="k", max_retries=0) as client:
            return await answer(client, "m", "Weather?")

    with serving(*TURNS) as server:
        assert asyncio.run(run(server.url)) == "Clear skies."
    check_conversation(server.requests)


def test_the_example_of_a_plain_loop_as_a_program() -> None:
    with serving(*TURNS) as server:
        program = [sys.executable, str(ROOT / "examples" / "gate_plain.py"), f"{server.url}/v1/chat/completions"]
        done = subprocess.run(
            [*program, "m", "Weather?"], capture_output=True, text=True, timeout=120, cwd=ROOT,
            env={"PYTHONPATH": str(ROOT)},
        )  # fmt: skip
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout == 'get_weather {"city": "Oslo", "days": 2}\n'
    assert "TYPE_MISMATCH" in server.requests[1][1]["messages"][-1]["content"]


def test_the_gate_needs_neither_an_engine_nor_jsonschema_until_it_validates() -> None:
    """In a Python where these cannot be imported: everything but the schemas works, and those say what to do."""
    program = """
import sys
class Missing:
    def find_spec(self, name, path=None, target=None):
        if name.split(".")[0] in {"vllm", "torch", "jsonschema", "openai", "pydantic", "httpx", "click"}:
            raise ImportError(name)
sys.meta_path.insert(0, Missing())
from lfm2_fixed.gate import Gate, assemble
assert assemble([{"choices": []}]).calls == ()
try:
    Gate([{"type": "function", "function": {"name": "f"}}])
except ImportError as error:
    print(error)
"""
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, cwd=ROOT, check=True, timeout=60
    )
    assert done.stdout.count("\n") == 1 and "pip install '.[tools]'" in done.stdout
