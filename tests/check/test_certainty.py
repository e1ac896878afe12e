"""Certainty is proof: what check may not say, and what it must not overlook."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tests.support.answers import (
    Answer,
    chat_chunk,
    chat_frames,
    chat_whole,
    json_answer,
    messages_frames,
    serving,
    sse,
)
from tests.support.bench import REQUEST, Bench

MOVE = ("move", '{"lat": 10.5}')
OTHER = ("move", '{"lat": 10.0}')
LFM2 = "<|tool_call_start|>[move(lat=10.5)]<|tool_call_end|>"


def faults(said: dict[str, Any]) -> list[tuple[str, str, bool]]:
    return [(finding["fault"], finding["code"], finding["shown"]) for finding in said["findings"]]


# --- what is no proof ---------------------------------------------------------------------------


@pytest.mark.parametrize("temperature", [None, 0.7, 1])
def test_two_samples_are_no_proof(bench: Bench, temperature: Any) -> None:
    bench.asked({**REQUEST, "temperature": temperature})
    result = bench.capture(chat_frames([MOVE]), "--whole", bench.file("w.json", chat_whole([OTHER])))
    assert result.exit_code == 0 and "Corrupted" not in result.stdout
    assert "set temperature 0" in result.stdout


def test_samples_and_the_models_text_of_the_other_sample(bench: Bench) -> None:
    """The log probabilities are those of the whole answer: they judge that one, and not the stream."""
    bench.asked({**REQUEST, "temperature": 1})

    def whole(call: tuple[str, str]) -> str:
        answer = chat_whole([call])
        answer["choices"][0]["logprobs"] = {"content": [{"token": LFM2, "bytes": list(LFM2.encode())}]}
        return bench.file("w.json", answer)

    assert faults(bench.said(chat_frames([OTHER]), "--whole", whole(MOVE), "--dialect", "lfm2")) == []
    lost = bench.said(chat_frames([OTHER]), "--whole", whole(OTHER), "--dialect", "lfm2")
    assert faults(lost) == [("server's parser", "WHOLE_DIFFERS", True)]


@pytest.mark.parametrize(
    "failure",
    [
        json_answer({"error": {"message": "later"}}, 429),
        json_answer({"error": {"message": "later"}}, 503),
        json_answer({"error": {"message": "no"}}, 400),
        json_answer({"type": "error", "error": {"type": "overloaded_error", "message": "x"}}, 529),
        Answer(b"", declare=100, hang=60),
    ],
)
def test_a_whole_answer_that_did_not_come_is_no_proof(bench: Bench, failure: Answer) -> None:
    with serving(Answer(sse(chat_frames([MOVE]))), failure) as server:
        result = bench.run("--live", server.url, "--timeout", "0.3", "--save", str(bench.directory))
    assert result.exit_code == 0 and "There is nothing to compare with" in result.stdout


@pytest.mark.parametrize("finish", ["length", "content_filter", "abort", ""])
def test_a_whole_answer_that_was_cut_is_no_proof(bench: Bench, finish: str) -> None:
    whole = bench.file("w.json", chat_whole([], finish=finish))
    said = bench.said(chat_frames([MOVE]), "--whole", whole)
    assert said["clean"] and "did not end well itself" in said["notes"][0]


@pytest.mark.parametrize(
    "document",
    [
        {"error": {"message": "overloaded", "code": 503}},
        {"error": "overloaded"},
        {"error": "overloaded", "choices": []},
        {"object": "error", "message": "overloaded", "code": 400},
        {"type": "error", "error": {"type": "overloaded_error", "message": "overloaded"}},
        {"status": "failed", "output": [], "error": {"code": "server_error", "message": "overloaded"}},
        {"detail": "overloaded"},
        {"message": "overloaded"},
        {"candidates": []},
        {"jsonrpc": "2.0", "id": 1, "error": {"code": 1, "message": "overloaded"}},
    ],
)
def test_an_error_document_is_no_whole_answer(bench: Bench, document: Any) -> None:
    result = bench.capture(chat_frames([MOVE]), "--whole", bench.file("w.json", document))
    assert (result.exit_code, result.stdout) == (2, "") and result.stderr.count("\n") == 1
    assert "The whole response" in result.stderr


TAGGED = "<|tool_call_start|>[write(path='a', content='a </think> b')]<|tool_call_end|>"
WRITE = ("write", '{"path": "a", "content": "a </think> b"}')


@pytest.mark.parametrize(
    ("raw", "calls"),
    [
        (TAGGED, [WRITE]),
        (f"<think>Hm.</think>{TAGGED}", [WRITE]),
        (f"Hm.</think>{TAGGED}", [WRITE]),
        (f"Hm, {LFM2}?</think>{TAGGED}", [WRITE]),
        (f"<think>Hm, {LFM2}?</think>{TAGGED}", [WRITE]),
        (f"\n<think>\nHm, {LFM2}", []),
    ],
)
def test_a_tag_in_an_argument_does_not_end_the_thoughts(bench: Bench, raw: str, calls: list[tuple[str, str]]) -> None:
    file = bench.file("raw.txt", raw.encode())
    finish = "tool_calls" if calls else "stop"
    assert faults(bench.said(chat_frames(calls, finish=finish), "--raw", file, "--dialect", "lfm2")) == []
    wrong = bench.said(chat_frames([MOVE, MOVE, MOVE]), "--raw", file, "--dialect", "lfm2")
    assert faults(wrong) == [("server's parser", "STREAM_DIFFERS", True)]


def test_what_both_answers_have_is_only_likely_the_models(bench: Bench) -> None:
    wrong = ("move", '{"lat": "10.5"}')
    whole = bench.file("w.json", chat_whole([wrong]))
    said = bench.said(chat_frames([wrong]), "--whole", whole)
    assert faults(said) == [("model or template", "TYPE_MISMATCH", False)]
    assert said["summary"].startswith("Not clean, most likely by the model")
    raw = bench.file("raw.txt", LFM2.replace("10.5", "'10.5'").encode())
    said = bench.said(chat_frames([wrong]), "--raw", raw, "--dialect", "lfm2")
    assert faults(said) == [("model or template", "TYPE_MISMATCH", True)]
    assert said["summary"].startswith("Corrupted by the model")


def test_a_broken_protocol_is_never_the_models(bench: Bench) -> None:
    entry = {"index": 0, "id": "a", "type": "function", "function": {"name": "nosuch", "arguments": "{"}}
    frames = [chat_chunk({"tool_calls": [entry]}), chat_chunk({"tool_calls": [entry]}), chat_chunk({}, "tool_calls")]
    said = bench.said(frames)
    assert {fault for fault, _, _ in faults(said)} == {"server's parser"} and said["fault"] == "server's parser"
    assert "MALFORMED_STREAM" in {code for _, code, _ in faults(said)}


@pytest.mark.parametrize(
    ("finish", "fault", "shown"),
    [
        ("length", "model or template", True),
        ("content_filter", "model or template", True),
        ("repetition", "model or template", True),
        ("error", "server's parser", True),
        ("network_error", "server's parser", True),
        ("abort", "server's parser", False),
        ("a word of tomorrow", "server's parser", False),
    ],
)
def test_who_ended_a_turn(bench: Bench, finish: str, fault: str, shown: bool) -> None:
    assert faults(bench.said(chat_frames([MOVE], finish=finish))) == [(fault, "INCOMPLETE", shown)]


def test_an_event_of_no_known_kind_is_told_and_convicts_nobody(bench: Bench) -> None:
    frames = chat_frames([MOVE])
    assert faults(bench.said([*frames[:3], {"hello": 1}, *frames[3:]])) == [
        ("server's parser", "MALFORMED_STREAM", False)
    ]


@pytest.mark.parametrize("error", [b'error: {"code":500,"message":"Invalid diff"}\n\n', b'error: "Invalid diff"\n\n'])
def test_an_error_line_of_old_llama_server_is_the_servers(bench: Bench, error: bytes) -> None:
    part = sse(chat_frames([MOVE])[:3], done=False)
    result = bench.run(bench.file("s.sse", part + error), "--json")
    said = json.loads(result.stdout)
    assert (result.exit_code, said["fault"]) == (1, "server's parser") and "Invalid diff" in said["summary"]
    assert "INCOMPLETE" in {finding["code"] for finding in said["findings"] if finding["shown"]}


# --- what must not be overlooked ----------------------------------------------------------------


@pytest.mark.parametrize("key", ["reasoning_content", "reasoning"])
def test_a_call_that_was_swallowed_by_the_reasoning(bench: Bench, key: str) -> None:
    thought = chat_chunk({key: f"I go. {LFM2}"})
    assert faults(bench.said([thought, chat_chunk({}, "stop")])) == [("server's parser", "SWALLOWED_CALL", False)]
    answered = bench.said([thought, chat_chunk({"content": "Done."}), chat_chunk({}, "stop")])
    assert answered["clean"] and "thoughts" in answered["notes"][0]
    assert bench.said([thought, *chat_frames([MOVE])])["clean"]


@pytest.mark.parametrize(
    ("content", "leaks"),
    [
        ("[move(lat=10.5)]", True),
        ("\n[move(lat=10.5), ping()]\n", True),
        ("[nosuch(lat=10.5)]", False),
        ("I write [move(lat=10.5)] like this.", False),
        ("[move](https://x) is [1] thing", False),
        ("[1, 2]", False),
    ],
)
def test_a_bare_list_of_calls_in_the_text(bench: Bench, content: str, leaks: bool) -> None:
    said = bench.said(chat_frames([], content=content, finish="stop"))
    assert faults(said) == ([("server's parser", "LEAKED_MARKUP", False)] if leaks else [])
    raw = bench.file("raw.txt", content.encode())
    assert bench.said(chat_frames([], content=content, finish="stop"), "--raw", raw, "--dialect", "lfm2")["clean"]


@pytest.mark.parametrize("reason", ["stop", "end_turn"])
def test_a_finish_reason_that_hides_calls_is_noted(bench: Bench, reason: str) -> None:
    frames = chat_frames([MOVE], finish="stop")
    if reason == "end_turn":
        frames = messages_frames([MOVE])
        frames[-2]["delta"]["stop_reason"] = reason
    said = bench.said(frames)
    assert said["clean"] and any(f"the finish reason is '{reason}'" in note for note in said["notes"])
    assert not any("finish reason is" in note for note in bench.said(chat_frames([MOVE]))["notes"])


# --- clients ------------------------------------------------------------------------------------


def test_the_clients_that_these_bytes_break_are_named(bench: Bench) -> None:
    said = bench.said(chat_frames([("write", '{"path": "é", "content": ""}')]))
    broken = {each["client"]: each for each in said["clients"] if each["breaks"]}
    assert any("json.loads on each read" in name for name in broken)
    assert all(each["why"] and each["when"] and each["expected"] != each["got"] for each in broken.values())
    assert said["clean"]  # it is no fault of the stream
    text = bench.capture(chat_frames([MOVE])).stdout
    assert "These bytes break a client that\n- calls json.loads on each read, if a read brings several events" in text


def test_what_the_client_saw_is_explained_by_the_cut_that_gives_it(bench: Bench) -> None:
    frames = chat_frames([("write", '{"path": "é", "content": "x"}')], cuts=())
    seen = bench.file("seen.json", [{"name": "write", "arguments": '{"path": "\ufffd\ufffd", "content": "x"}'}])
    (finding,) = bench.said(frames, "--seen", seen)["findings"]
    assert finding["code"] == "CLIENT_DIFFERS" and "decodes each read as UTF-8 by itself" in finding["message"]
    assert "when a read ends at byte" in finding["message"] and "incremental" in finding["message"]


def test_the_models_text_is_read_with_the_tools_schemas(bench: Bench) -> None:
    """A lone object is the arguments where the first parameter is no object: the schema says so, not the names."""
    raw = bench.file("raw.txt", b'<|tool_call_start|>[move({"lat": 10.5})]<|tool_call_end|>')
    said = bench.said(chat_frames([MOVE]), "--raw", raw, "--dialect", "lfm2")
    assert faults(said) == [], said
