"""Requests that are strange as HTTP or as JSON: answered right or with an error in JSON, never with a traceback."""

from __future__ import annotations

import gzip
import json
import logging
import socket
from collections.abc import Callable
from typing import Any

import pytest

from lfm2_fixed.proxy.exchange import origin_form
from tests.support.pairs import TOOLS, Pair, body


@pytest.fixture(autouse=True)
def no_traceback(caplog: pytest.LogCaptureFixture) -> Any:
    yield
    assert not [record for record in caplog.records if record.exc_info or "Exception in ASGI" in record.getMessage()]


def raw(pair: Pair, request: bytes) -> tuple[int, bytes]:
    """The status and the body of the answer to these bytes."""
    host, port = pair.url.removeprefix("http://").split(":")
    with socket.create_connection((host, int(port)), timeout=20) as connection:
        connection.sendall(request)
        received = b""
        while data := connection.recv(100_000):
            received += data
    head, _, rest = received.partition(b"\r\n\r\n")
    return int(head.split(b" ")[1]), rest


CLOSE = b"host: x\r\nconnection: close\r\n\r\n"


@pytest.mark.parametrize(
    "target, path",
    [
        (b"http://x/v1/models?a=%2F&b", "/v1/models?a=%2F&b"),
        (b"HTTPS://x:1/v1/a%2Fb//c", "/v1/a%2Fb//c"),
        (b"http://x", "/?"),
        (b"http://x?q=1", "/?q=1"),
    ],
)
def test_absolute_targets(parse: Pair, target: bytes, path: str) -> None:
    assert raw(parse, b"GET %b HTTP/1.1\r\n%b" % (target, CLOSE))[0] == 200
    seen = parse.upstream.requests[-1]
    assert f"{seen['path']}?{seen['query']}".removesuffix("?") == path.removesuffix("?")


def test_our_own_paths_in_absolute_form(parse: Pair) -> None:
    status, answer = raw(parse, b"GET http://x/health HTTP/1.1\r\n" + CLOSE)
    assert status == 200 and json.loads(answer)["status"] == "ok"
    content = json.dumps(body('<|tool_call_start|>[bash(command="ls")]<|tool_call_end|>')).encode()
    head = b"POST http://x/v1/chat/completions HTTP/1.1\r\ncontent-length: %d\r\n" % len(content)
    status, answer = raw(parse, head + CLOSE + content)
    assert status == 200 and json.loads(answer)["choices"][0]["message"]["tool_calls"]


@pytest.mark.parametrize(
    "request_line, more, status",
    [
        (b"CONNECT x:443 HTTP/1.1", b"", 501),
        (b"PRI * HTTP/2.0", b"", 400),
        (b"OPTIONS * HTTP/1.1", b"", 400),
        (b"GET v1/models HTTP/1.1", b"", 400),
        (b"GET ftp://x/y HTTP/1.1", b"", 400),
        (b"GET", b"", 400),
        (b"\x16\x03\x01\x02", b"", 400),
        (b"POST /v1/x HTTP/1.1", b"content-length: 5\r\ntransfer-encoding: chunked\r\n", 400),
        (b"POST /v1/chat/completions HTTP/1.1", b"transfer-encoding: chunked\r\ncontent-length: 0\r\n", 400),
        (b"POST /v1/x HTTP/1.1", b"content-length: 5\r\ncontent-length: 6\r\n", 400),
        (b"POST /v1/x HTTP/1.1", b"content-length: -1\r\n", 400),
        (b"POST /v1/x HTTP/1.1", b"transfer-encoding: gzip, chunked\r\n", 400),
        (b"GET /v1/x HTTP/1.1", b"a b: y\r\n", 400),
    ],
)
def test_requests_that_are_none(parse: Pair, request_line: bytes, more: bytes, status: int) -> None:
    before = len(parse.upstream.requests)
    answered, answer = raw(parse, request_line + b"\r\n" + more + CLOSE + b"0\r\n\r\n")
    assert answered == status and json.loads(answer)["error"]["message"]
    assert len(parse.upstream.requests) == before, "nothing of it reaches the upstream"


def test_origin_form() -> None:
    assert origin_form(b"/http://x/") == b"/http://x/"
    assert origin_form(b"http://x#y") == b"/#y"
    assert origin_form(b"*") == b"*"


def deep(levels: int) -> str:
    """A request whose tools are nested."""
    return json.dumps({**body("Hi"), "tools": [*TOOLS, "deep"]}).replace('"deep"', "[" * levels + "]" * levels)


def python_follows(levels: int) -> bool:
    """Whether this Python's reader does: 1,000 levels at most before 3.12, some thousands since."""
    try:
        json.loads("[" * levels + "]" * levels)
    except RecursionError:
        return False
    return True


@pytest.mark.parametrize("levels", [100, 900, *range(930, 1000, 6), 1000, 5000, 100_000])
def test_nested_requests(parse: Pair, buffer: Pair, gated: Pair, levels: int) -> None:
    for pair in (parse, buffer, gated):
        answer = pair.client.post("/v1/chat/completions", content=deep(levels))
        assert answer.status_code in ((200, 400) if levels < 1000 or python_follows(levels) else (400,))
        if answer.status_code == 400:
            assert answer.json()["error"]["message"]


ODD: list[Any] = [None, True, 0, -1, 1e300, "", "x", [], [None], [[]], {}, {"a": None}, {"type": "function"}]


@pytest.mark.parametrize(
    "path",
    [
        ["tools"], ["tools", 0], ["tools", 0, "type"], ["tools", 0, "function"], ["tools", 0, "function", "name"],
        ["tools", 0, "function", "parameters"], ["tools", 0, "function", "parameters", "properties"],
        ["tool_choice"], ["stream"], ["stream_options"], ["parallel_tool_calls"], ["messages"], ["n"],
    ],
    ids=lambda path: "/".join(map(str, path)),
)  # fmt: skip
def test_requests_of_no_known_form(parse: Pair, gated: Pair, path: list[Any]) -> None:
    for pair in (parse, gated):
        for odd in ODD:
            request = json.loads(json.dumps(body("Hi")))
            place = request
            for step in path[:-1]:
                place = place[step]
            place[path[-1]] = odd
            answer = pair.client.post("/v1/chat/completions", json=request)
            if "messages" in path:
                continue  # for the upstream to refuse
            assert answer.status_code in (200, 400), (odd, answer.text)
            assert answer.status_code == 200 or answer.json()["error"]["message"]


def test_a_namespace_of_no_known_form(parse: Pair) -> None:
    for odd in ODD:
        answer = parse.ask("Hi", tools=[*TOOLS, {"type": "namespace", "name": "n", "tools": odd}])
        assert answer.status_code in (200, 400), (odd, answer.text)


@pytest.mark.parametrize("content", [b"no json", b'{"tools": [', json.dumps(body("Hi")).encode() + b",", b"\xff"])
def test_what_cannot_be_read_does_not_go_round_the_gate(gated: Pair, content: bytes) -> None:
    before = len(gated.upstream.requests)
    answer = gated.client.post("/v1/chat/completions", content=content)
    assert answer.status_code == 400 and "cannot be read" in answer.json()["error"]["message"]
    assert len(gated.upstream.requests) == before


def test_a_packed_request_does_not_go_round_the_gate(gated: Pair, parse: Pair) -> None:
    sent = {"content": gzip.compress(json.dumps(body("Hi")).encode()), "headers": {"content-encoding": "gzip"}}
    assert gated.client.post("/v1/chat/completions", **sent).status_code == 415
    parse.client.post("/v1/other", **sent)
    assert parse.upstream.requests[-1]["body"] == sent["content"]


def test_a_request_in_utf_16_is_one(gated: Pair) -> None:
    content = json.dumps(body("<|tool_call_start|>[rm(a=1)]<|tool_call_end|>")).encode("utf-16")
    answer = gated.client.post("/v1/chat/completions", content=content)
    assert answer.json()["error"]["code"] == "UNKNOWN_TOOL"


def test_an_unknown_choice_does_not_go_round_the_gate(gated: Pair, parse: Pair) -> None:
    answer = gated.ask("Hi", tool_choice="any")
    assert answer.status_code == 400 and answer.json()["error"]["param"] == "tool_choice"
    parse.ask("Hi", tool_choice="any")
    assert json.loads(parse.upstream.requests[-1]["body"])["tool_choice"] == "any"


def test_a_status_that_is_none(parse: Pair) -> None:
    for status in (999, 600, 299):
        answer = parse.ask({"raw": ["x"], "status": status}, tools=[])
        assert answer.status_code in (status, 502)


def test_a_fault_of_ours_is_an_answer_and_a_report(
    start: Callable[..., Pair], monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def fail(*_: Any, **__: Any) -> None:
        raise KeyError("SECRET"[:0])

    pair = start()
    monkeypatch.setattr("lfm2_fixed.proxy.app.read_request", fail)
    with caplog.at_level(logging.ERROR):
        answer = pair.ask("Hi")
    assert answer.status_code == 500 and answer.json()["error"]["type"] == "internal_error"
    assert [record.getMessage() for record in caplog.records if record.exc_info] == [
        "A request failed; please report this."
    ]
    caplog.clear()
