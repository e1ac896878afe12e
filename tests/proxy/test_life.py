"""Clients that vanish, upstreams that die, readers that are slow: nothing hangs, nothing is left over."""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import re
import signal
import socket
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import httpx
import pytest

from tests.support import ROOT
from tests.support.pairs import CLIENT, Pair, body, events, merge, open_raw
from tests.support.scripted import Scripted, eventually, serving

CALL = '<|tool_call_start|>[bash(command="{}")]<|tool_call_end|>'


class Command:
    """``lfm2-fixed proxy`` as a process of its own, so that what it holds can be counted."""

    def __init__(self, process: subprocess.Popen[str], url: str) -> None:
        self.process = process
        self.url = url
        self._log: list[str] = []
        # Read all the time: a full pipe would stop the proxy.
        self._reader = threading.Thread(target=lambda: self._log.extend(process.stderr or ()), daemon=True)
        self._reader.start()
        self._proc = Path(f"/proc/{process.pid}")

    def log(self) -> str:
        """The whole log, once it has ended."""
        self.process.wait(30)
        self._reader.join(10)
        return "".join(self._log)

    def active(self) -> int:
        return int(CLIENT.get(self.url + "/health").json()["active"])

    def files(self) -> int:
        """Open files and sockets."""
        return len(os.listdir(self._proc / "fd"))

    def memory(self) -> float:
        """Resident memory in MiB."""
        return int(re.search(r"VmRSS:\s+(\d+)", (self._proc / "status").read_text())[1]) / 1024


@contextmanager
def command(upstream: str, *options: str) -> Iterator[Command]:
    """Start it, on a free port; stop it if it still runs."""
    process = subprocess.Popen(
        [sys.executable, "-c", "from lfm2_fixed.cli.proxy import proxy; proxy()"]
        + ["--upstream", upstream, "--port", "0", *options],
        cwd=ROOT,
        stderr=subprocess.PIPE,
        text=True,
    )
    try:
        assert process.stderr is not None
        lines = []
        for line in process.stderr:
            lines.append(line)
            if listening := re.search(r"listening on (\S+)", line):
                break
        else:
            pytest.fail("".join(lines))
        url = listening[1]

        def up() -> bool:
            with contextlib.suppress(httpx.TransportError):
                return CLIENT.get(url + "/health").status_code == 200
            return False

        running = Command(process, url)
        eventually(up, "the proxy is up")
        yield running
    finally:
        process.kill()
        process.wait()


@pytest.fixture(scope="module")
def scripted() -> Iterator[tuple[Scripted, str]]:
    upstream = Scripted(kind="llama.cpp")
    with serving(upstream) as url:
        yield upstream, url


HANG = {"turns": [["a", "b"]], "hang": 2}


@pytest.mark.parametrize(
    "script, fields, mode",
    [
        (HANG, {"stream": True}, "parse"),
        ({"turns": [["a"]], "wait": 3600}, {"stream": False}, "parse"),
        ({"turns": [["a"]], "wait": 3600}, {"stream": True}, "buffer"),
        (HANG, {"stream": True, "tools": []}, "parse"),
        ({"turns": [["a"]], "wait": 3600}, {"stream": True}, "parse"),
    ],
    ids=["stream", "whole", "buffer", "passing", "before the answer"],
)
def test_when_the_client_goes_the_upstream_stops(
    start: Callable[..., Pair], script: dict[str, Any], fields: dict[str, Any], mode: str
) -> None:
    pair = start(mode=mode)
    for reset in (False, True):
        gone = pair.upstream.gone
        raw = open_raw(pair.url, script, **fields)
        eventually(lambda: pair.upstream.active == 1, "the request arrives")
        if "hang" in script:
            assert b"200 OK" in raw.recv(1000)
        if reset:
            raw.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b"\1\0\0\0\0\0\0\0")
        raw.close()
        # The upstream writes nothing meanwhile: the proxy must have noticed by itself.
        eventually(lambda gone=gone: pair.upstream.gone == gone + 1, "the upstream's client goes")
        eventually(lambda: pair.client.get("/health").json()["active"] == 0, "the proxy's request ends")


def test_one_hundred_streams_at_once(parse: Pair) -> None:
    async def one(client: httpx.AsyncClient, number: int) -> tuple[int, list[Any]]:
        text = f"<think>{number}</think>t{number} " + CALL.format(f"echo {number} " * 5)
        pieces = [text[at : at + 5] for at in range(0, len(text), 5)]
        received = b""
        async with client.stream(
            "POST", "/v1/chat/completions", json=body({"turns": [pieces], "pause": 0.001}, stream=True)
        ) as answer:
            async for piece in answer.aiter_raw(64):
                received += piece
                if number % 10 == 0 and len(received) < 2000:
                    await asyncio.sleep(0.02)  # a slow reader
        return number, list(events(received))

    async def all_of_them() -> list[tuple[int, list[Any]]]:
        limits = httpx.Limits(max_connections=None)
        async with httpx.AsyncClient(base_url=parse.url, timeout=60, limits=limits, verify=False) as client:
            return await asyncio.gather(*(one(client, number) for number in range(100)))

    for number, received in asyncio.run(all_of_them()):
        merged = merge(received)[0]
        assert merged["reasoning"] == str(number) and merged["content"] == f"t{number}"
        assert merged["calls"] == [("bash", json.dumps({"command": f"echo {number} " * 5}))]
    assert parse.upstream.active == 0


@pytest.mark.skipif(not Path("/proc/self/fd").exists(), reason="counts what /proc shows")
def test_nothing_is_left_over(scripted: tuple[Scripted, str]) -> None:
    upstream, url = scripted

    def round_of_everything(proxy: Command) -> None:
        sockets = []
        for number in range(60):
            script: dict[str, Any] = {"turns": [list("text " + CALL.format("x" * 50))], "pause": 0.001}
            if number % 3 == 1:
                script["die"] = 10
            if number % 3 == 2:
                script = {"turns": [["a"] * 50], "hang": 20}
            sockets.append(open_raw(proxy.url, script, stream=number % 2 == 0 or number % 3 == 2))
        for number, raw in enumerate(sockets):
            if number % 3 == 2:
                raw.recv(100)
                raw.close()  # in the middle
        for number, raw in enumerate(sockets):
            if number % 3 != 2:
                raw.shutdown(socket.SHUT_WR) if number % 5 == 0 else None
                with contextlib.suppress(ConnectionResetError):
                    while raw.recv(100_000):
                        pass
                raw.close()
        eventually(lambda: proxy.active() == 0, "every request ends")
        eventually(lambda: upstream.active == 0, "every upstream request ends")

    with command(url, "--quiet") as proxy:
        round_of_everything(proxy)
        eventually(lambda: proxy.files() < 40, "the connections are closed")
        files, memory = proxy.files(), proxy.memory()
        for _ in range(5):
            round_of_everything(proxy)
        eventually(lambda: proxy.files() <= files + 2, "the connections are closed")
        assert proxy.memory() < memory + 8, "300 requests may not keep 8 MiB"


@pytest.mark.skipif(not Path("/proc/self/fd").exists(), reason="counts what /proc shows")
def test_a_reader_that_does_not_read_holds_the_upstream_back(scripted: tuple[Scripted, str]) -> None:
    upstream, url = scripted
    script = {"turns": [["x" * 20_000]], "repeat": 5000}  # 100 MB
    with command(url, "--quiet", "--client-timeout", "0") as proxy:
        before = proxy.memory()
        for fields in ({"stream": True}, {"stream": True, "tools": []}):
            gone = upstream.gone
            upstream.chunks = 0
            raw = open_raw(proxy.url, script, receive_buffer=4096, **fields)
            eventually(lambda: upstream.chunks > 10, "the stream begins")
            last = -1

            def stands() -> bool:
                nonlocal last
                before, last = last, upstream.chunks
                return before == last

            def stands_for_long() -> bool:
                return all(stands() and not asyncio.run(asyncio.sleep(0.05)) for _ in range(10))

            eventually(stands_for_long, "the upstream is held back")
            assert upstream.chunks < 2500  # what fits into the sockets' buffers
            assert proxy.memory() < before + 32
            raw.close()
            eventually(lambda gone=gone: upstream.gone == gone + 1, "the upstream's client goes")


@pytest.mark.skipif(not hasattr(socket, "TCP_USER_TIMEOUT"), reason="needs a kernel that times senders out (Linux)")
def test_a_reader_that_takes_nothing_for_too_long_is_dropped(start: Callable[..., Pair]) -> None:
    pair = start(client_timeout=1.0)
    raw = open_raw(pair.url, {"turns": [["x" * 20_000]], "repeat": 5000}, receive_buffer=4096, stream=True)
    eventually(lambda: pair.upstream.gone == 1, "the upstream's client goes")
    eventually(lambda: pair.client.get("/health").json()["active"] == 0, "the proxy's request ends")
    raw.close()


def test_a_request_that_does_not_come_to_its_end(start: Callable[..., Pair]) -> None:
    pair = start(client_timeout=0.5)
    host = urlsplit(pair.url)
    for path in (b"/v1/chat/completions", b"/v1/other"):
        with socket.create_connection((host.hostname, host.port), timeout=30) as raw:
            raw.sendall(b"POST %b HTTP/1.1\r\nhost: x\r\ncontent-length: 100\r\n\r\nhalf" % path)
            assert raw.recv(1000).startswith(b"HTTP/1.1 408")
        with socket.create_connection((host.hostname, host.port), timeout=30) as raw:
            raw.sendall(b"POST %b HTTP/1.1\r\nhost: x\r\ncontent-length: 100\r\n\r\nhalf" % path)
        eventually(lambda: pair.client.get("/health").json()["active"] == 0, "the proxy's request ends")


def test_too_many_requests_at_once(start: Callable[..., Pair]) -> None:
    pair = start(max_requests=1)
    raw = open_raw(pair.url, HANG, stream=True)
    eventually(lambda: pair.upstream.active == 1, "the request arrives")
    busy = pair.ask("x")
    assert busy.status_code == 503 and busy.headers["retry-after"] == "1" and "error" in busy.json()
    raw.close()
    eventually(lambda: pair.ask("x").status_code == 200, "there is room again")


@pytest.mark.parametrize("patience, whole", [("30", True), ("0.5", False)])
def test_shutting_down(scripted: tuple[Scripted, str], patience: str, whole: bool) -> None:
    _, url = scripted
    script = {"turns": [list(CALL.format("x" * 40))], "pause": 0.02 if whole else 3600}
    with command(url, "--shutdown-timeout", patience) as proxy:
        raw = open_raw(proxy.url, script, stream=True)
        received = raw.recv(1000)
        proxy.process.send_signal(signal.SIGTERM)
        while data := raw.recv(100_000):
            received += data
        assert (b"[DONE]" in received) == whole
        log = proxy.log()
        assert proxy.process.returncode in (0, -signal.SIGTERM)
        assert "Traceback" not in log
        with pytest.raises(OSError):
            open_raw(proxy.url, script)
        raw.close()


def test_the_access_log_has_no_contents(scripted: tuple[Scripted, str]) -> None:
    _, url = scripted
    with command(url) as proxy:
        CLIENT.post(proxy.url + "/v1/chat/completions?key=SECRET", json=body(CALL.format("SECRET"), stream=True))
        CLIENT.post(proxy.url + "/v1/x%0Ay", content=b"SECRET", headers={"authorization": "SECRET"})
        proxy.process.send_signal(signal.SIGTERM)
        log = proxy.log()
    assert re.search(r"127\.0\.0\.1 POST /v1/chat/completions 200 \d+ bytes [\d.]+ s parse calls=1\n", log)
    assert re.search(r"127\.0\.0\.1 POST /v1/x%0Ay 200 6 bytes", log)
    assert "SECRET" not in log and "llama.cpp b1-test, mode parse" in log
