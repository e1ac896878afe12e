"""While the upstream is silent; and the headers of answers: the upstream's, ours, and what browsers need."""

from __future__ import annotations

import socket
from collections.abc import Callable
from typing import Any

import pytest

from lfm2_fixed.proxy import Settings
from lfm2_fixed.proxy.background import running
from tests.support.pairs import CLIENT, Pair, body, chunk, error_of, events, merge, sse
from tests.support.scripted import Scripted, serving

CALL = '<|tool_call_start|>[bash(command="ls")]<|tool_call_end|>'
LS = [("bash", '{"command": "ls"}')]
BEAT = b": heartbeat"
ORIGIN = {"origin": "https://page.example"}
ALLOWED = {"access-control-allow-origin": "*", "x-request-id": "r1", "content-type": "text/event-stream"}


@pytest.fixture(scope="module")
def lively(start: Callable[..., Pair]) -> Pair:
    """In parse, with frequent heartbeats."""
    return start(heartbeat=0.1)


@pytest.mark.parametrize("where", ["wait", "silent", "pause"])
def test_a_silent_upstream_does_not_make_a_silent_stream(lively: Pair, where: str) -> None:
    script = sse(chunk({"role": "assistant"}), chunk(CALL), chunk("", "stop"), **{where: 0.5})
    received = lively.stream(script)
    beats = [position for position, event in enumerate(received) if event == BEAT]
    assert len(beats) >= 3 and (where == "pause" or beats[0] == 0)
    assert merge(received)[0]["calls"] == LS and received[-1] == "[DONE]"


def test_heartbeats_stop_at_the_end_and_can_be_off(lively: Pair, start: Callable[..., Pair]) -> None:
    assert BEAT not in lively.stream(CALL)
    quiet = start(heartbeat=0).stream({"turns": [[CALL]], "wait": 0.3})
    assert BEAT not in quiet and merge(quiet)[0]["calls"] == LS


def test_an_upstream_that_refuses_late_is_an_error_event(lively: Pair) -> None:
    full = {"raw": ['{"error": {"message": "full"}}'], "status": 503, "headers": {"retry-after": "7"}}
    early = lively.ask(full, stream=True)
    assert early.status_code == 503 and early.json() == {"error": {"message": "full"}}
    received = lively.stream({**full, "wait": 0.4})
    assert received[0] == BEAT and error_of(received) == {"message": "full"}
    page = lively.stream({"raw": ["<html>"], "status": 502, "wait": 0.4})
    assert "<html>" in error_of(page)["message"]


def test_nothing_is_written_into_an_answer_that_passes(start: Callable[..., Pair]) -> None:
    pair = start(heartbeat=0.5, mode="parse")
    answer = pair.ask({"raw": ["ref", "used"], "status": 400, "pause": 1.2}, stream=True)
    assert (answer.status_code, answer.text) == (400, "refused")


@pytest.mark.parametrize("mode", ["parse", "buffer"])
@pytest.mark.parametrize("wait", [0, 0.4])
def test_headers_of_a_stream(start: Callable[..., Pair], mode: str, wait: float) -> None:
    pair = start(mode=mode, heartbeat=0.1)
    assert pair.client.post("/v1/chat/completions", json=body(sse(headers=ALLOWED), tools=[]), headers=ORIGIN)
    script = {"turns": [[CALL]], "wait": wait, "headers": {"x-request-id": "r1", "access-control-allow-origin": "*"}}
    answer = pair.client.post("/v1/chat/completions", json=body(script, stream=True), headers=ORIGIN)
    assert answer.status_code == 200 and "[DONE]" in answer.text
    headers = answer.headers
    assert headers["content-type"].startswith("text/event-stream") and "content-length" not in headers
    assert headers.get_list("x-accel-buffering") == ["no"] and headers.get_list("cache-control") == ["no-cache"]
    assert headers.get_list("access-control-allow-origin") == ["*"]
    assert ("x-request-id" in headers) == (not wait)  # a heartbeat cannot know it


def test_headers_of_whole_answers(parse: Pair, buffer: Pair) -> None:
    headers = {"x-request-id": "r1", "access-control-allow-origin": "*"}
    for pair in (parse, buffer):
        answer = pair.ask({"turns": [[CALL]], "headers": headers})
        assert headers.items() <= dict(answer.headers).items() and answer.headers["content-type"] == "application/json"


def test_errors_of_ours_can_be_read_by_pages(start: Callable[..., Pair]) -> None:
    """Where, and as far as, the upstream lets them read its answers."""
    pair = start(max_body=5000)

    def post(script: Any, **headers: str) -> Any:
        return pair.client.post("/v1/chat/completions", json=body(script), headers=headers)

    refused = post("x" * 6000, **ORIGIN)
    assert refused.status_code == 413 and "access-control-allow-origin" not in refused.headers
    exposed = {"access-control-allow-origin": ORIGIN["origin"], "access-control-expose-headers": "x-request-id"}
    post({"turns": [["Hi"]], "headers": {**exposed, "access-control-allow-credentials": "true"}}, **ORIGIN)
    refused = post("x" * 6000, **ORIGIN)
    assert exposed.items() <= dict(refused.headers).items() and refused.headers["vary"] == "Origin"
    assert refused.headers["access-control-allow-credentials"] == "true"
    for other in ({"origin": "https://other.example"}, {}):
        assert "access-control-allow-origin" not in post("x" * 6000, **other).headers
    post({"turns": [["Hi"]], "headers": {"access-control-allow-origin": "*"}}, origin="https://third.example")
    assert post("x" * 6000, origin="https://other.example").headers["access-control-allow-origin"] == "*"


def test_an_error_after_the_upstreams_answer_has_its_headers(parse: Pair) -> None:
    headers = {"x-request-id": "r1", "access-control-allow-origin": "https://page.example"}
    answer = parse.ask({"turns": [["No."]], "headers": headers}, tool_choice="required")
    assert answer.status_code == 502 and headers.items() <= dict(answer.headers).items()


def test_a_preflight_tells_what_an_upstream_that_dies_would_have_said() -> None:
    class Allowing(Scripted):
        async def respond(self, path: str, body: bytes, send: Any) -> None:
            allowed = [(b"access-control-allow-origin", b"*"), (b"access-control-allow-methods", b"POST")]
            await send({"type": "http.response.start", "status": 200, "headers": allowed})
            await send({"type": "http.response.body", "body": b"", "more_body": False})

    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    with running(Settings(f"http://127.0.0.1:{port}")) as url:
        ask = {"url": url + "/v1/chat/completions", "headers": ORIGIN}
        with serving(Allowing(kind="vllm"), on=port):
            assert CLIENT.options(**ask).headers["access-control-allow-methods"] == "POST"
        answer = CLIENT.post(**ask, json=body("x"))
        assert answer.status_code == 502
        assert answer.headers["access-control-allow-origin"] == "*"
        assert "access-control-allow-methods" not in answer.headers


def test_the_client_is_answered_before_the_first_token(start: Callable[..., Pair]) -> None:
    pair = start(heartbeat=0)
    script = sse(chunk(CALL), chunk("", "stop"), silent=1.5)
    with pair.client.stream("POST", "/v1/chat/completions", json=body(script, stream=True), timeout=1.0) as answer:
        assert answer.status_code == 200  # its headers came: the read below is another wait
        with pytest.raises(Exception, match="timed out"):
            answer.read()


def test_events_pass_while_heartbeats_run(lively: Pair) -> None:
    pieces = [CALL[at : at + 2] for at in range(0, len(CALL), 2)]
    data = lively.ask({"turns": [pieces], "pause": 0.03}, stream=True).content
    assert merge(list(events(data)))[0]["calls"] == LS


def test_a_connection_that_sends_no_request_is_closed(start: Callable[..., Pair]) -> None:
    pair = start(client_timeout=0.5)
    host, port = pair.url.removeprefix("http://").split(":")
    half = b"GET /v1/models HTTP/1.1\r\nhost: x\r\nx-half: "
    for sent, expected in ((b"", b""), (half, b"HTTP/1.1 408 ")):
        with socket.create_connection((host, int(port)), timeout=20) as raw:
            raw.sendall(sent)
            received = b""
            while data := raw.recv(10_000):
                received += data
            assert received.startswith(expected) and (b'{"error":' in received) == bool(expected)
    with socket.create_connection((host, int(port)), timeout=20) as raw:
        raw.settimeout(0.1)
        raw.sendall(b"GET /v1/models HTTP/1.1\r\n")
        with pytest.raises(OSError):  # closed under its drops, not after the last
            for _ in range(200):
                raw.sendall(b"a: b\r\n")
                try:
                    if not raw.recv(10_000):
                        raise OSError
                except TimeoutError:
                    pass
    assert pair.client.get("/health").status_code == 200
