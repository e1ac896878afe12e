"""What passes through untouched, and what is refused."""

from __future__ import annotations

import gzip
import http.client
import json
import socket
from collections.abc import Callable
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import httpx
import pytest
import trustme

from lfm2_fixed.proxy import Settings, create_app
from lfm2_fixed.proxy.background import running
from tests.support.pairs import CLIENT, Pair, body, events
from tests.support.scripted import Scripted, serving


@pytest.mark.parametrize("method", ["GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS", "PURGE"])
def test_requests_arrive_as_they_were_sent(parse: Pair, method: str) -> None:
    host = urlsplit(parse.url)
    connection = http.client.HTTPConnection(host.hostname or "", host.port, timeout=30)
    target = "/v1/a%2Fb%20c//d/../e;x?q=%2F&empty=&q=2"
    content = b"\x00\xff{" if method not in ("GET", "HEAD") else None
    connection.request(
        method,
        target,
        content,
        {
            "Authorization": "Bearer secret",
            "X-Custom": "1",
            "Connection": "x-named",
            "X-Named": "hop",
            "TE": "trailers",
            "Proxy-Authorization": "no",
            "Accept-Encoding": "gzip",
            "User-Agent": "me",
        },
    )
    answer = connection.getresponse()
    assert answer.status == 200 and answer.read() == (content or b"")
    seen = parse.upstream.requests[-1]
    assert seen["method"] == method and f"{seen['path']}?{seen['query']}" == target
    headers = dict(seen["headers"])
    assert headers["authorization"] == "Bearer secret" and headers["x-custom"] == "1" and headers["user-agent"] == "me"
    assert headers["accept-encoding"] == "gzip" and headers["host"] != host.netloc
    assert not {"x-named", "te", "proxy-authorization"} & headers.keys()
    assert answer.headers.get_all("x-echo") == ["1", "2"]
    connection.close()


def test_requests_without_tools_pass_as_they_are(parse: Pair) -> None:
    script = json.dumps({"turns": [["<|tool_call_start|>[f(a=1)]<|tool_call_end|>"]]})
    raw = f'{{"stream":true,  "messages":[{{"content":{json.dumps(script)}}}]}}'.encode()
    answer = parse.client.post("/v1/chat/completions", content=raw, headers={"content-type": "application/json"})
    assert parse.upstream.requests[-1]["body"] == raw
    assert "<|tool_call_start|>" in answer.text and answer.headers["x-upstream"] == "yes"


@pytest.mark.parametrize("content", [b"no json", b"[]", b"{}", b'{"tools": 1, "messages": []}', b"\xff"])
def test_what_is_no_request_is_for_the_upstream_to_refuse(parse: Pair, content: bytes) -> None:
    before = len(parse.upstream.requests)
    parse.client.post("/v1/chat/completions", content=content)
    assert parse.upstream.requests[before]["body"] == content


def test_a_compressed_answer_stays_compressed(parse: Pair) -> None:
    packed = gzip.compress(b"x" * 1000)
    answer = parse.client.post("/v1/echo", content=packed)
    assert answer.content == packed


def test_a_body_streams_both_ways(parse: Pair) -> None:
    def pieces():
        for _ in range(100):
            yield b"x" * 100_000

    answer = parse.client.post("/v1/echo", content=pieces())
    assert len(answer.content) == 10_000_000


def test_redirects_and_errors_are_the_clients_business(parse: Pair) -> None:
    for status, headers in ((307, {"location": "/elsewhere"}), (404, {}), (500, {}), (418, {"set-cookie": "a=b"})):
        answer = parse.ask({"raw": ["said"], "status": status, "headers": headers}, tools=[])
        assert (answer.status_code, answer.text) == (status, "said")
        assert headers.items() <= dict(answer.headers).items()
    assert "cookie" not in dict(parse.upstream.requests[-1]["headers"])


def read_until_broken(pair: Pair, script: dict[str, Any], **fields: Any) -> bytes:
    """What arrives of an answer whose body is never completed."""
    received = b""
    with (
        pytest.raises(httpx.RemoteProtocolError, match="incomplete"),
        pair.client.stream("POST", "/v1/chat/completions", json=body(script, **fields)) as answer,
    ):
        for piece in answer.iter_raw():
            received += piece
    return received


def test_a_stream_that_passes_breaks_where_the_upstream_broke_it(parse: Pair) -> None:
    received = list(events(read_until_broken(parse, {"turns": [["a", "b"]], "die": 2}, tools=[], stream=True)))
    assert len(received) == 2 and all("choices" in chunk for chunk in received)


def test_other_answers_that_break_off_are_not_taken_for_whole(parse: Pair) -> None:
    with pytest.raises(httpx.RemoteProtocolError):
        parse.ask({"raw": ["half"], "die": 1}, tools=[])


def test_a_body_that_is_too_large(start: Callable[..., Pair]) -> None:
    pair = start(max_body=10_000)
    assert pair.ask("x" * 100).status_code == 200
    for content in (b"x" * 10_001, iter([b"x" * 6000, b"x" * 6000])):
        for path in ("/v1/chat/completions", "/v1/other"):
            answer = pair.client.post(path, content=content)
            assert answer.status_code == 413 and answer.json()["error"]["code"] == 413
            content = iter([b"x" * 6000, b"x" * 6000])
    assert pair.ask("x" * 100).status_code == 200


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def test_no_upstream() -> None:
    port = free_port()
    with running(Settings(f"http://127.0.0.1:{port}")) as url:
        for path in ("/v1/chat/completions", "/v1/models"):
            answer = CLIENT.post(url + path, json=body("x"))
            assert answer.status_code == 502 and answer.json()["error"]["type"] == "upstream_unreachable"
        assert CLIENT.get(url + "/health").status_code == 503


def test_a_silent_upstream() -> None:
    with (
        socket.create_server(("127.0.0.1", 0)) as silent,
        running(Settings(f"http://127.0.0.1:{silent.getsockname()[1]}", mode="buffer", read_timeout=0.3)) as url,
    ):
        answer = CLIENT.get(url + "/v1/models")
        assert answer.status_code == 504 and answer.json()["error"]["type"] == "upstream_timeout"


def test_a_stream_that_falls_silent(start: Callable[..., Pair]) -> None:
    pair = start(read_timeout=0.5)
    script = {"turns": [["a", "b"]], "hang": 2}
    received = pair.stream(script)
    assert received[-1]["error"]["type"] == "upstream_timeout" and len(received) == 3
    assert len(list(events(read_until_broken(pair, script, tools=[], stream=True)))) == 2


def test_the_kind_is_asked_again_after_the_upstream_was_lost() -> None:
    port = free_port()
    with running(Settings(f"http://127.0.0.1:{port}")) as url:
        assert CLIENT.post(url + "/v1/chat/completions", json=body("x")).status_code == 502
        for kind in ("llama.cpp", "vllm"):
            upstream = Scripted(kind=kind)
            with serving(upstream, on=port):
                assert CLIENT.post(url + "/v1/chat/completions", json=body("x")).status_code == 200
            asked = json.loads(upstream.requests[-1]["body"])
            assert ("reasoning_format" in asked) == (kind == "llama.cpp")
            CLIENT.post(url + "/v1/chat/completions", json=body("x"))


def test_health(parse: Pair) -> None:
    assert parse.client.get("/health").json() == {"status": "ok", "active": 0}


def test_an_upstream_under_a_path(start: Callable[..., Pair]) -> None:
    pair = start()
    for suffix in ("/base", "/base/", "/base/v1", "/v1", "/"):
        with running(Settings(f"{pair.url}{suffix}", mode="buffer")) as url:
            CLIENT.get(url + "/v1/x?y=1")
            expected = "/base/v1/x" if "base" in suffix else "/v1/x"
            assert pair.upstream.requests[-1]["path"] == expected


@pytest.mark.parametrize("url", ["127.0.0.1:8080", "ftp://x", "http://", "http://h/?q=1", "http://u:p@h"])
def test_an_upstream_that_is_no_url(url: str) -> None:
    with pytest.raises(ValueError, match="upstream"):
        create_app(Settings(url))


@pytest.mark.parametrize("name", ["mode", "dialect", "stream", "reasoning", "constrain"])
def test_a_word_without_a_meaning(name: str) -> None:
    with pytest.raises(ValueError, match=f"{name} must be one of .*, not 'odd'"):
        Settings("http://h", **{name: "odd"})


def test_certificates_are_verified(tmp_path: Path) -> None:
    authority = trustme.CA()
    authority.cert_pem.write_to_path(tmp_path / "ca.pem")
    certificate = authority.issue_cert("127.0.0.1")
    certificate.private_key_and_cert_chain_pem.write_to_path(tmp_path / "server.pem")
    with serving(Scripted(kind="llama.cpp"), ssl_certfile=str(tmp_path / "server.pem")) as upstream:
        assert upstream.startswith("https:")
        with running(Settings(upstream)) as url:
            answer = CLIENT.post(url + "/v1/chat/completions", json=body("x"))
            assert answer.status_code == 502 and "certificate" in answer.text.lower()
        with running(Settings(upstream, ca_file=str(tmp_path / "ca.pem"))) as url:
            assert CLIENT.post(url + "/v1/chat/completions", json=body("x")).status_code == 200
        wrong = upstream.replace("127.0.0.1", "localhost")
        with running(Settings(wrong, ca_file=str(tmp_path / "ca.pem"))) as url:
            assert CLIENT.post(url + "/v1/chat/completions", json=body("x")).status_code == 502
