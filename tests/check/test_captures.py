"""Captures of every provider: accepted and cleared where they are right, refused in a sentence where they are foreign,
and, damaged by one byte, never passed and never blamed on somebody who had no part in it."""

from __future__ import annotations

import json
import random
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result
from hypothesis import given, settings
from hypothesis import strategies as st

from lfm2_fixed.check.blame import Fault
from lfm2_fixed.check.compare import difference
from lfm2_fixed.check.model import Beside
from lfm2_fixed.check.replay import Cuttings, read_stream
from lfm2_fixed.check.verdict import Verdict, judge
from lfm2_fixed.cli.check import check
from lfm2_fixed.gate import CallsRefused, Gate, Turn, from_response
from tests.support.answers import chat_whole
from tests.support.captures import HEALTHY, Capture
from tests.support.foreign import FOREIGN


def run(directory: Path, stream: bytes, tools: list[Any], *arguments: str) -> Result:
    request = directory / "request.json"
    request.write_text(json.dumps({"temperature": 0, "tools": tools}))
    capture = directory / "capture"
    capture.write_bytes(stream)
    result = CliRunner().invoke(check, [str(capture), "--tools", str(request), *arguments])
    assert result.exception is None or isinstance(result.exception, SystemExit), result.exception
    return result


@pytest.mark.parametrize("name", HEALTHY)
def test_a_healthy_capture_is_accused_of_nothing(tmp_path: Path, name: str) -> None:
    capture = HEALTHY[name]
    expect = ["--expect-calls", str(len(capture.calls))]
    result = run(tmp_path, capture.stream, capture.declared, "--json", *expect)
    said = json.loads(result.stdout)
    assert result.exit_code == 0 and said["findings"] == [], said
    assert said["calls"]["0"] == [call for call, _ in capture.calls]


@pytest.mark.parametrize("name", HEALTHY)
def test_the_gate_hands_over_the_calls_of_a_healthy_capture(name: str) -> None:
    capture = HEALTHY[name]
    gate = Gate(capture.declared)
    list(gate.through(capture.events))
    if gate.turn().finish_reason == "pause_turn":  # no call, and the turn goes on
        with pytest.raises(CallsRefused):
            gate.calls()
        return
    verified = gate.calls(expected_calls=len(capture.calls))
    assert [(call.name, call.text) for call in verified] == list(capture.calls)
    if capture.namespaces:
        assert tuple(call.namespace for call in verified) == capture.namespaces


def whole_of(capture: Capture) -> Any:
    """The same turn without streaming, of a Messages or Responses capture; else None."""
    if capture.events[0]["type"] == "message_start":
        blocks: dict[int, Any] = {}
        for event in capture.events:
            if event["type"] == "content_block_start":
                blocks[event["index"]] = {**event["content_block"], "_": ""}
            elif event["type"] == "content_block_delta":
                for key in ("text", "partial_json", "thinking"):
                    blocks[event["index"]]["_"] += event["delta"].get(key, "")
        content = []
        for block in blocks.values():
            text = block.pop("_")
            if "input" in block:
                try:
                    block["input"] = json.loads(text or "{}")
                except ValueError:
                    block["input"] = {}
            elif block["type"] in ("text", "thinking"):
                block[block["type"]] = text
            content.append(block)
        reason = capture.events[-2]["delta"]["stop_reason"]
        return {"type": "message", "role": "assistant", "content": content, "stop_reason": reason}
    return capture.events[-1]["response"]


@pytest.mark.parametrize("name", [name for name in HEALTHY if HEALTHY[name].names])
def test_the_whole_answer_is_read_like_the_stream(name: str) -> None:
    capture = HEALTHY[name]
    gate = Gate(capture.declared)
    list(gate.through(capture.events))
    streamed, whole = gate.turn(), from_response(whole_of(capture))
    assert difference(whole.calls, streamed.calls, same_wire=True) is None and whole.problems == streamed.problems == ()
    assert [(c.id, c.namespace) for c in whole] == [(c.id, c.namespace) for c in streamed]
    assert (whole.content, whole.finish_reason) == (streamed.content, streamed.finish_reason)


@pytest.mark.parametrize("name", FOREIGN)
def test_another_protocol_is_unusable_not_corrupted(tmp_path: Path, name: str) -> None:
    stream, word = FOREIGN[name]
    result = run(tmp_path, stream, HEALTHY["vllm"].declared)
    assert (result.exit_code, result.stdout) == (2, ""), result.output
    assert word in result.stderr and result.stderr.count("\n") == 1


# --- one byte -----------------------------------------------------------------------------------

WHOLE = {
    name: {0: from_response(whole_of(capture) if capture.names else chat_whole(capture.calls))}
    for name, capture in HEALTHY.items()
    if capture.calls
}
STREAMS = {name: HEALTHY[name].stream for name in WHOLE}


def damaged(stream: bytes, how: str, at: int) -> bytes:
    if how == "dropped":
        return stream[:at] + stream[at + 1 :]
    if how == "doubled":
        return stream[: at + 1] + stream[at:]
    if how == "swapped":
        return stream[:at] + stream[at + 1 : at + 2] + stream[at : at + 1] + stream[at + 2 :]
    if how == "cut":
        return stream[:at]
    return stream[:at] + bytes([stream[at] ^ 1]) + stream[at + 1 :]


def judged(name: str, stream: bytes, *, whole: bool) -> tuple[Turn, Verdict] | None:
    reading = read_stream(stream)
    if not any(turn.protocol for turn in reading.turns.values()):
        return None  # nothing is left of it: unusable
    beside = Beside(whole=WHOLE[name] if whole else {})
    verdict = judge(reading, Cuttings(), None, HEALTHY[name].declared, beside)
    return reading.turns.get(0, Turn()), verdict


def hold_to_the_law(name: str, how: str, at: int) -> None:
    stream = damaged(STREAMS[name], how, at)
    told = judged(name, stream, whole=True)
    if told is None:
        return
    turn, verdict = told
    if difference(WHOLE[name][0].calls, turn.calls, same_wire=True) is not None:
        assert not verdict.clean, "a changed call passes"
    for finding in verdict.findings:
        # The bytes were changed behind the model and before the client.
        assert finding.fault in (Fault.TRANSPORT, Fault.SERVER), finding
    alone = judged(name, stream, whole=False)
    assert alone is not None
    for finding in alone[1].findings:
        # Alone, a capture cannot clear the model; but nothing in it convicts the model either.
        assert finding.fault in (Fault.TRANSPORT, Fault.SERVER) or not finding.shown, finding
    try:
        calls = Gate(HEALTHY[name].declared).check(turn)
    except CallsRefused as refused:
        str(refused), json.dumps(refused.messages(), ensure_ascii=False).encode()
    else:
        assert len(calls) == len(turn)


@pytest.mark.parametrize("how", ["dropped", "doubled", "swapped", "cut", "flipped"])
@settings(max_examples=max(60, settings.default.max_examples // 5))
@given(name=st.sampled_from(sorted(STREAMS)), where=st.floats(0, 1, exclude_max=True))
def test_one_damaged_byte_is_never_passed_and_never_blamed_on_the_wrong_party(
    how: str, name: str, where: float
) -> None:
    hold_to_the_law(name, how, int(where * len(STREAMS[name])))


@pytest.mark.parametrize("how", ["dropped", "doubled", "swapped", "cut"])
def test_every_byte_of_the_arguments_counts(how: str) -> None:
    stream = STREAMS["vllm"]
    begin, end = stream.index(b"chatcmpl-tool"), stream.index(b'tool_calls"', stream.rindex(b"arguments"))
    for at in random.Random(1).sample(range(begin, end), 150):
        hold_to_the_law("vllm", how, at)


@pytest.mark.parametrize("whole", [True, False])
def test_an_event_that_was_lost_explains_what_its_call_lacks(whole: bool) -> None:
    """All deltas of a call are lost: what is left of it lacks arguments, which is no fault of the model."""
    stream = STREAMS["anthropic, server tools"]
    at = stream.rindex(b'"delta": {"type": "input_json_delta"')
    told = judged("anthropic, server tools", stream[:at] + stream[at + 1 :], whole=whole)
    assert told is not None
    assert {(f.fault, f.code, f.shown) for f in told[1].findings} == {
        (Fault.TRANSPORT, "TRANSPORT", True),
        (Fault.TRANSPORT, "MISSING_REQUIRED", False),
    }
