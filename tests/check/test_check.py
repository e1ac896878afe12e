"""The command: captures in files, and a live server; its words, its JSON and its exit status."""

from __future__ import annotations

import gzip
import json
import os
import random
import socket
import subprocess
import sys
from typing import Any

import pytest
from click.testing import Result

from tests.support import ROOT
from tests.support.answers import (
    TOOLS,
    Answer,
    chat_chunk,
    chat_frames,
    chat_whole,
    json_answer,
    messages_frames,
    responses_frames,
    serving,
    sse,
)
from tests.support.bench import REQUEST, Bench

CALLS = [("write", '{"path": "a", "content": "é 😀 \\n"}'), ("move", '{"lat": 10.5}')]
RETYPED = [CALLS[0], ("move", '{"lat": 10.0}')]


@pytest.mark.parametrize("newline", ["\n", "\r\n", "\r"])
def test_a_clean_capture(bench: Bench, newline: str) -> None:
    whole = bench.file("whole.json", chat_whole(CALLS))
    stream = sse(chat_frames(CALLS), newline=newline)
    for content in (stream, gzip.compress(stream), b"\xef\xbb\xbf" + stream):
        result = bench.capture(content, "--whole", whole, "--expect-calls", "2")
        assert (result.exit_code, result.stderr) == (0, "")
        assert result.stdout.startswith("Clean: 2 calls")
        unpacked = gzip.decompress(content) if content[:2] == b"\x1f\x8b" else content
        assert f"cut at each of {len(unpacked):,} byte offsets" in result.stdout


def test_a_corrupted_capture_with_its_evidence(bench: Bench) -> None:
    whole = bench.file("whole.json", chat_whole(CALLS))
    stream = sse(chat_frames(RETYPED))
    result = bench.capture(stream, "--whole", whole)
    assert result.exit_code == 1
    assert result.stdout.startswith("Corrupted by the server's parser: ")
    assert "STREAM_DIFFERS in call 1, at /lat, byte " in result.stdout
    assert "expected: 10.5\n" in result.stdout and "got:      10.0\n" in result.stdout
    as_json = json.loads(bench.capture(stream, "--whole", whole, "--json").stdout)
    assert as_json["clean"] is False and as_json["fault"] == "server's parser"
    assert as_json["findings"][0]["expected"] == "10.5" and as_json["bytes"] == len(stream)
    assert as_json["cuttings"]["offsets"] == len(stream)


def test_json_of_a_clean_capture(bench: Bench) -> None:
    result = bench.capture(sse(chat_frames(CALLS)), "--json", "--random", "3", "--seed", "7")
    said = json.loads(result.stdout)
    assert result.exit_code == 0 and said["clean"] is True and said["fault"] is None
    assert said["calls"] == {"0": ["write", "move"]}
    assert said["cuttings"]["random"] == 3 and said["cuttings"]["seed"] == 7


def test_standard_input_and_a_list_of_tools(bench: Bench) -> None:
    bench.file("tools.json", TOOLS)
    result = bench.run("-", tools="tools.json", stdin=sse(chat_frames(CALLS)))
    assert result.exit_code == 0


@pytest.mark.parametrize("frames", [responses_frames, messages_frames])
def test_other_protocols(bench: Bench, frames: Any) -> None:
    assert bench.capture(sse(frames(CALLS), names=True, done=False)).exit_code == 0
    result = bench.capture(sse(frames([("move", '{"lat": "1"}')]), names=True, done=False))
    assert result.exit_code == 1 and "TYPE_MISMATCH in call 0, at /lat" in result.stdout


def test_no_text_of_the_model_reaches_the_terminal_raw(bench: Bench) -> None:
    frames = chat_frames([("move", '{"lat": "\x1b[2J\ud800')])
    result = bench.capture(sse([json.dumps(frame) for frame in frames]))
    assert result.exit_code == 1
    assert "\x1b" not in result.output and r"\x1b[2J\ud800" in result.stdout


def test_every_choice_is_checked(bench: Bench) -> None:
    frames = [*chat_frames(CALLS), *chat_frames([("move", "{}")], choice=1)]
    result = bench.capture(sse(frames))
    assert result.exit_code == 1 and "MISSING_REQUIRED in call 0, choice 1, at /lat" in result.stdout


def test_what_the_client_saw(bench: Bench) -> None:
    stream = sse(chat_frames(CALLS))
    calls = [{"name": name, "arguments": arguments} for name, arguments in CALLS]
    message = chat_whole(CALLS)["choices"][0]["message"]
    for right in (calls, {"calls": calls}, message, chat_whole(CALLS)):
        assert bench.capture(stream, "--seen", bench.file("seen.json", right)).exit_code == 0
    result = bench.capture(stream, "--seen", bench.file("seen.json", [*calls, calls[0]]))
    assert result.exit_code == 1 and result.stdout.startswith("Corrupted by the client's reassembly")


def test_the_models_own_text(bench: Bench) -> None:
    raw = bench.file("raw.txt", b"<|tool_call_start|>[ping(), move(lat=10.5)]<|tool_call_end|>")
    both = [("ping", "{}"), ("move", '{"lat": 10.5}')]
    assert bench.capture(sse(chat_frames(both)), "--raw", raw, "--dialect", "lfm2").exit_code == 0
    result = bench.capture(sse(chat_frames(both[:1])), "--raw", raw, "--dialect", "lfm2")
    assert result.exit_code == 1 and "1 call in place of 2" in result.stdout
    for dialect, text in (
        ("pythonic", b"[ping(), move(lat=10.5)]"),
        ("olmo3", b"<function_calls>ping()\nmove(lat=10.5)</function_calls>"),
    ):
        own = bench.file("own.txt", text)
        assert bench.capture(sse(chat_frames(both)), "--raw", own, "--dialect", dialect).exit_code == 0
        assert bench.capture(sse(chat_frames(both[:1])), "--raw", own, "--dialect", dialect).exit_code == 1
    assert bench.capture(sse(chat_frames(both)), "--raw", raw).exit_code == 2
    result = bench.capture(sse(chat_frames(both)), "--dialect", "lfm2")
    assert result.exit_code == 0 and "no log probabilities" in result.stdout


@pytest.mark.parametrize(
    ("stream", "fault", "word"),
    [
        (sse(chat_frames(CALLS, finish=None), done=False), "transport", "breaks off"),
        (sse(chat_frames(CALLS))[:-300], "transport", "breaks off"),
        (sse(chat_frames(CALLS)).replace("é".encode(), b"\xe9"), "transport", "UTF-8"),
        (sse([*chat_frames(CALLS), "{cut"]), "transport", "not JSON"),
        (gzip.compress(sse(chat_frames([("write", json.dumps({"x": random.Random(1).randbytes(3000).hex()}))])))[:-900],
         "transport", "gzip"),
        (sse([*chat_frames(CALLS)[:4], {"error": {"message": "Invalid diff", "code": 500}}], done=False),
         "server's parser", "Invalid diff"),
        (sse(chat_frames(CALLS, finish="length")), "model or template", "cut off"),
    ],
)  # fmt: skip
def test_what_broke_on_the_way(bench: Bench, stream: bytes, fault: str, word: str) -> None:
    result = bench.capture(stream, "--json")
    said = json.loads(result.stdout)
    assert (result.exit_code, said["fault"]) == (1, fault), said
    assert word in said["findings"][0]["message"]


@pytest.mark.parametrize("done", [True, False])
def test_a_missing_done_or_blank_line_breaks_no_call(bench: Bench, done: bool) -> None:
    stream = sse(chat_frames(CALLS), done=done).removesuffix(b"\n")
    result = bench.capture(stream)
    assert result.exit_code == (0 if done else 1), result.stdout  # the finish reason is in that last event


def test_a_missing_done_is_noted(bench: Bench) -> None:
    result = bench.capture(sse(chat_frames(CALLS), done=False))
    assert result.exit_code == 0 and "Note: The stream ends without [DONE]" in result.stdout


@pytest.mark.parametrize(
    ("content", "word"),
    [
        (b"", "empty"),
        (b'{"choices": []}', "--whole"),
        (b"<html></html>", "HTML"),
        (b"HTTP/1.1 500 Oh\r\n\r\nx", "500"),
        (b"hello\n\n", "no server-sent event"),
        (b"data: hello\n\n", "None of the capture's 1 events"),
        (b'data: {"type": "ping"}\n\n', "None of the capture's 1 events"),
    ],
)
def test_unusable_captures(bench: Bench, content: bytes, word: str) -> None:
    result = bench.capture(content)
    assert (result.exit_code, result.stdout) == (2, "")
    assert word in result.stderr and result.stderr.count("\n") == 1
    said = bench.capture(content, "--json")
    assert said.exit_code == 2 and word in json.loads(said.stdout)["error"]


def test_other_unusable_input(bench: Bench) -> None:
    stream = bench.file("s.sse", sse(chat_frames(CALLS)))
    bench.file("none.json", {"tools": []})
    bench.file("bad.json", b"{")
    bench.file("schema.json", [{"type": "function", "function": {"name": "f", "parameters": {"type": 3}}}])
    for tools, word in [("none.json", "no tools"), ("bad.json", "not JSON"), ("schema.json", "no JSON Schema")]:
        result = bench.run(stream, tools=tools)
        assert result.exit_code == 2 and word in result.stderr
    for content in (b"{", b"3", {"choices": []}, {"error": {"message": "x"}}, {"choices": [{"index": 0}]}):
        result = bench.run(stream, "--whole", bench.file("w.json", content))
        assert result.exit_code == 2 and "whole response" in result.stderr
    for content in (b"{", b"3", ["ping"], {"role": "assistant"}):
        result = bench.run(stream, "--seen", bench.file("w.json", content))
        assert result.exit_code == 2 and "w.json" in result.stderr
    assert bench.run(stream, tools="missing.json").exit_code == 2
    assert bench.run().exit_code == 2
    assert bench.run(stream, "--live", "http://127.0.0.1:1").exit_code == 2


@pytest.mark.parametrize(
    ("missing", "arguments"), [("jsonschema", ["s.sse"]), ("httpx", ["--live", "http://127.0.0.1:9"])]
)
def test_without_the_extra_it_says_what_to_install(bench: Bench, missing: str, arguments: list[str]) -> None:
    bench.file("s.sse", sse(chat_frames(CALLS)))
    program = f"""
import sys
class Missing:
    def find_spec(self, name, path=None, target=None):
        if name.split(".")[0] == "{missing}":
            raise ImportError(name)
sys.meta_path.insert(0, Missing())
from lfm2_fixed.cli.check import check
check()
"""
    done = subprocess.run(
        [sys.executable, "-c", program, *arguments, "--tools", "request.json"],
        capture_output=True, text=True, cwd=bench.directory, timeout=60, env={**os.environ, "PYTHONPATH": str(ROOT)},
    )  # fmt: skip
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.count("\n") == 1 and missing in done.stderr and "pip install '.[tools]'" in done.stderr


# --- live ---------------------------------------------------------------------------------------


def live(bench: Bench, url: str, *arguments: str) -> Result:
    return bench.run("--live", url, "--save", str(bench.directory / "kept"), *arguments)


def test_live_sends_both_requests_and_keeps_both_answers(bench: Bench) -> None:
    stream = sse(chat_frames(CALLS))
    with serving(Answer(stream), json_answer(chat_whole(CALLS))) as server:
        result = live(bench, server.url, "--model", "other", "--api-key", "secret")
    assert result.exit_code == 0, result.output
    (path, first), (_, second) = server.requests
    assert path == "/v1/chat/completions"
    assert first.pop("stream") is True and second.pop("stream") is False
    assert first == second == {**REQUEST, "model": "other"}
    assert server.headers[0]["authorization"] == "Bearer secret"
    kept = {path.suffix: path.read_bytes() for path in (bench.directory / "kept").iterdir()}
    assert kept == {".sse": stream, ".json": json.dumps(chat_whole(CALLS)).encode()}
    assert "Saved: " in result.stderr and "secret" not in result.output


def test_live_finds_a_difference(bench: Bench) -> None:
    with serving(Answer(sse(chat_frames(RETYPED))), json_answer(chat_whole(CALLS))) as server:
        result = live(bench, f"{server.url}/v1")
    assert result.exit_code == 1 and "expected: 10.5" in result.stdout


def test_live_reads_the_models_own_text_from_the_log_probabilities(bench: Bench) -> None:
    whole = chat_whole([("ping", "{}")])
    words = ["<|tool_call_start|>", "[ping(), move(", "lat=10.5", ")]", "<|tool_call_end|>"]
    whole["choices"][0]["logprobs"] = {"content": [{"token": w, "bytes": list(w.encode())} for w in words]}
    with serving(Answer(sse(chat_frames([("ping", "{}")]))), json_answer(whole)) as server:
        result = live(bench, server.url, "--dialect", "lfm2")
    # llama.cpp refuses them together with tools and streaming.
    assert "logprobs" not in server.requests[0][1] and server.requests[1][1]["logprobs"] is True
    assert result.exit_code == 1 and "than what the model wrote: 1 call in place of 2" in result.stdout
    (text,) = (bench.directory / "kept").glob("*.txt")
    assert text.read_text() == "".join(words) and text.name in result.stderr, "for `lfm2-fixed parse`"


def test_live_on_other_endpoints(bench: Bench) -> None:
    bench.file("request.json", {"model": "m", "input": "x", "tools": TOOLS})
    whole = responses_frames(CALLS)[-1]["response"]
    with serving(Answer(sse(responses_frames(CALLS), names=True, done=False)), json_answer(whole)) as server:
        assert live(bench, server.url).exit_code == 0
    assert server.requests[0][0] == "/v1/responses"
    tools = [{"name": "ping", "input_schema": {"type": "object"}}]
    bench.file("request.json", {**REQUEST, "tools": tools})
    message = {"role": "assistant", "stop_reason": "tool_use", "content": [
        {"type": "tool_use", "id": "t", "name": "ping", "input": {}}]}  # fmt: skip
    stream = sse(messages_frames([("ping", "{}")]), names=True, done=False)
    with serving(Answer(stream), json_answer(message)) as server:
        assert live(bench, server.url).exit_code == 0
    assert server.requests[0][0] == "/v1/messages" and server.headers[0]["anthropic-version"]


def test_two_samples_accuse_nobody(bench: Bench) -> None:
    bench.file("request.json", {**REQUEST, "temperature": 0.7})
    with serving(Answer(sse(chat_frames(RETYPED))), json_answer(chat_whole(CALLS))) as server:
        result = live(bench, server.url)
    assert result.exit_code == 0 and "Corrupted" not in result.stdout
    assert "chance may have done it: set temperature 0" in result.stdout


@pytest.mark.parametrize(
    ("answer", "words"),
    [
        (json_answer({"error": {"message": "bad key"}}, 401), ["401", "--api-key", "bad key"]),
        (json_answer({"error": "no such model"}, 404), ["404", "no such model"]),
        (json_answer({"error": {"message": "tools?"}}, 400), ["400", "tools?"]),
        (json_answer({"detail": "x"}, 422), ["422"]),
        (Answer(b"<h1>Bad Gateway</h1>", status=502, kind="text/html"), ["502", "the server failed"]),
        (json_answer({"choices": []}), ["one JSON document"]),
        (Answer(b""), ["empty"]),
        (Answer(b"", declare=100, hang=60), ["sent nothing for 0.3 s"]),
    ],
)
def test_live_servers_that_give_no_stream(bench: Bench, answer: Answer, words: list[str]) -> None:
    with serving(answer) as server:
        result = live(bench, server.url, "--timeout", "0.3")
    assert result.exit_code == 2, result.output
    last = result.stderr.splitlines()[-1]
    assert all(word in last for word in words), last


def test_live_where_nobody_listens(bench: Bench) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        result = live(bench, f"http://127.0.0.1:{taken.getsockname()[1]}")
    assert result.exit_code == 2 and "Nothing answers" in result.stderr
    assert live(bench, "localhost:8000").exit_code == 2
    assert live(bench, "http://[").exit_code == 2


def test_a_request_without_messages_or_model_cannot_be_sent(bench: Bench) -> None:
    bench.file("request.json", {"model": "m", "tools": TOOLS})
    assert "whole request" in live(bench, "http://127.0.0.1:9").stderr
    bench.file("request.json", {**REQUEST, "model": ""})
    assert "--model" in live(bench, "http://127.0.0.1:9").stderr


def test_a_connection_that_breaks_is_the_transports_fault(bench: Bench) -> None:
    part = sse(chat_frames(CALLS))[:700]
    for answer in (Answer(part, declare=5000), Answer(part, declare=5000, hang=60)):
        with serving(answer, json_answer(chat_whole(CALLS))) as server:
            result = live(bench, server.url, "--json", "--timeout", "2")
        said = json.loads(result.stdout)
        assert result.exit_code == 1 and said["fault"] == "transport", said


def test_a_server_that_fails_only_without_streaming(bench: Bench) -> None:
    failure = json_answer({"error": {"message": "Internal Server Error"}}, 500)
    with serving(Answer(sse(chat_frames(CALLS))), failure) as server:
        result = live(bench, server.url)
    assert result.exit_code == 1 and "WHOLE_FAILS" in result.stdout


def test_a_long_capture(bench: Bench) -> None:
    """Two megabytes of many small events and a few long ones; the time is measured elsewhere."""
    source = random.Random(3)
    text = "".join(source.choice(["the ", "é", '"', "\\", "{", "\n", "😀"]) for _ in range(60_000))
    arguments = json.dumps({"path": "a", "content": text})
    frames = chat_frames([("write", arguments)], cuts=range(0, len(arguments), 11))
    frames.insert(1, chat_chunk({"content": "x" * 50_000}))
    stream = sse(frames)
    assert len(stream) > 2_000_000
    result = bench.capture(stream, "--json")
    said = json.loads(result.stdout)
    assert result.exit_code == 0 and said["cuttings"]["offsets"] == len(stream)
    assert 10 < said["cuttings"]["kinds"] < 1_000
