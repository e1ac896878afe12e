"""What the upstream is: who says it, how often it is asked, and what happens while nobody knows."""

from __future__ import annotations

import json
import logging
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import pytest

from lfm2_fixed.proxy import Settings, reply
from lfm2_fixed.proxy.background import running
from tests.support.pairs import CLIENT, TOOLS, Pair, body, open_raw, sse
from tests.support.scripted import Scripted, eventually, serving

CALL = '<|tool_call_start|>[bash(command="ls")]<|tool_call_end|>'
LS = [("bash", '{"command": "ls"}')]
NOT_FOUND: tuple[int, dict[str, Any]] = (404, {})


@contextmanager
def pair(upstream: Scripted, **settings: Any) -> Iterator[Pair]:
    """A proxy in front of this upstream."""
    with serving(upstream) as url, running(Settings(url, **settings)) as front:
        made = Pair(front, upstream)
        yield made
        made.client.close()


def mode_of(pair: Pair, **fields: Any) -> str:
    """The mode in which a request is answered now."""
    assert pair.ask(CALL, **fields).status_code == 200
    return "parse" if json.loads(pair.upstream.requests[-1]["body"]).get("tool_choice") == "none" else "buffer"


@pytest.mark.parametrize("status", [401, 403, 405, 429, 500, 502, 503])
@pytest.mark.parametrize("kind", ["llama.cpp", "vllm"])
def test_only_a_definite_answer_decides(kind: str, status: int) -> None:
    upstream = Scripted(kind=kind)
    upstream.says = {path: (status, {"error": "an ingress"}) for path in ("/props", "/version")}
    with pair(upstream) as proxy:
        for _ in range(2):
            # Calls are read meanwhile, too: what the server leaves in the text, we take.
            assert mode_of(proxy) == "buffer" and proxy.merged(CALL)[0]["calls"] == LS
        upstream.says = {}
        assert mode_of(proxy) == "parse"
        asked = len(upstream.asked)
        assert mode_of(proxy) == "parse" and len(upstream.asked) == asked


def test_llama_cpp_names_itself_while_it_loads() -> None:
    upstream = Scripted(kind="llama.cpp")
    upstream.says = {"/props": (503, {"error": "Loading model"})}
    upstream.name = b"llama.cpp"
    with serving(upstream, server_header=False) as url, running(Settings(url)) as front:
        assert mode_of(Pair(front, upstream)) == "parse"
    assert upstream.asked == ["/props"]


def test_one_definite_answer_is_not_both() -> None:
    upstream = Scripted(kind="vllm")
    upstream.says = {"/props": NOT_FOUND, "/version": (503, {})}
    with pair(upstream) as proxy:
        assert mode_of(proxy) == "buffer"
        upstream.says = {"/props": (503, {}), "/version": NOT_FOUND}
        assert mode_of(proxy) == "buffer"
        upstream.says = {"/props": (503, {})}  # whatever it is, it is vLLM
        assert mode_of(proxy) == "parse"


@pytest.mark.parametrize("answer", [NOT_FOUND, (200, {}), (200, {"version": 3})])
def test_an_unknown_server_is_asked_once(answer: tuple[int, dict[str, Any]]) -> None:
    upstream = Scripted(kind="unknown")
    upstream.says = dict.fromkeys(("/props", "/version"), answer)
    with pair(upstream) as proxy:
        for _ in range(3):
            assert mode_of(proxy) == "buffer"
    assert upstream.asked == ["/props", "/version"]


def test_one_question_serves_all_who_wait() -> None:
    upstream = Scripted(kind="vllm")
    upstream.thinks = 0.5
    results: list[int] = []
    with pair(upstream) as proxy:
        threads = [
            threading.Thread(
                target=lambda: results.append(
                    CLIENT.post(proxy.url + "/v1/chat/completions", json=body(CALL)).status_code
                )
            )
            for _ in range(20)
        ]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(30)
    assert results == [200] * 20
    assert upstream.asked == ["/props", "/version"]


def introduced(caplog: pytest.LogCaptureFixture) -> None:
    """Wait until the proxy has its answer to the question it asks at its start: a request would wait for that, too."""
    eventually(lambda: "upstream http" in caplog.text, "the introduction")


def test_another_asks_when_the_first_has_gone(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO, "lfm2_fixed.proxy")
    upstream = Scripted(kind="vllm")
    upstream.says = {path: (503, {}) for path in ("/props", "/version")}
    with pair(upstream) as proxy:
        introduced(caplog)
        upstream.thinks, upstream.says = 1.0, {}
        proxy.upstream.asked.clear()
        first = open_raw(proxy.url, {"turns": [[CALL]]})
        eventually(lambda: len(upstream.asked) == 1, "the first asks")
        answers: list[str] = []
        second = threading.Thread(target=lambda: answers.append(mode_of(proxy)))
        second.start()
        time.sleep(0.2)  # it waits with the first
        first.close()
        second.join(30)
        assert answers == ["parse"] and upstream.asked == ["/props", "/props", "/version"]


def test_the_clients_key_is_shown_to_who_asks_for_one(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO, "lfm2_fixed.proxy")
    seen: list[str] = []

    class Locked(Scripted):
        async def __call__(self, scope: dict[str, Any], receive: Any, send: Any) -> None:
            headers = dict(scope.get("headers") or [])
            if scope["type"] == "http" and scope["path"] in ("/props", "/version"):
                seen.append(headers.get(b"authorization", b"").decode())
                self.says = {} if seen[-1] == "Bearer k" else {path: (401, {}) for path in ("/props", "/version")}
            await super().__call__(scope, receive, send)

    with pair(Locked(kind="vllm")) as proxy:
        introduced(caplog)
        answer = proxy.client.post(
            "/v1/chat/completions", json=body(CALL), headers={"authorization": "Bearer k"}
        ).json()
    assert seen == ["", "", "Bearer k", "Bearer k"] and answer["choices"][0]["message"]["tool_calls"]


def test_an_explicit_mode_depends_on_no_answer(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("lfm2_fixed.proxy.upstream._DETECTION_TIMEOUT", 3600)  # far more than the client waits
    upstream = Scripted(kind="vllm")
    upstream.says = {path: (503, {}) for path in ("/props", "/version")}
    with pair(upstream, mode="buffer") as proxy:
        assert mode_of(proxy) == "buffer" and not upstream.asked
    with pair(upstream, mode="parse") as proxy:
        assert proxy.merged(CALL)[0]["calls"] == LS
        asked = json.loads(upstream.requests[-1]["body"])  # right for either of the two that need a word
        assert asked["skip_special_tokens"] is False and asked["reasoning_format"] == "none"
    upstream.thinks = 3600
    with pair(upstream, mode="parse") as proxy:
        assert proxy.merged(CALL)[0]["calls"] == LS


def test_markers_in_a_buffered_reply_are_read_and_logged_once(
    start: Callable[..., Pair], caplog: pytest.LogCaptureFixture
) -> None:
    reply._told.clear()
    proxy = start(kind="unknown")
    with caplog.at_level(logging.WARNING, "lfm2_fixed.proxy"):
        for _ in range(2):
            merged = proxy.merged(f"Look: {CALL}")[0]
            assert (merged["content"], merged["calls"], merged["finish_reason"]) == ("Look:", LS, "tool_calls")
            choice = proxy.ask(f"Look: {CALL}").json()["choices"][0]
            assert choice["message"]["content"] == "Look:" and len(choice["message"]["tool_calls"]) == 1
            assert choice["finish_reason"] == "tool_calls"
    told = [record.getMessage() for record in caplog.records if "in its text" in record.getMessage()]
    assert len(told) == 1
    # What the server read itself stays as it is, and so does what nobody wanted read.
    call = {"id": "a", "type": "function", "function": {"name": "bash", "arguments": "{}"}}
    both = {"turns": [[f"`{CALL}`"]], "message": {"tool_calls": [call]}}
    assert proxy.merged(both)[0]["calls"] == [("bash", "{}")]
    assert proxy.ask(both).json()["choices"][0]["message"]["content"] == f"`{CALL}`"
    assert CALL in proxy.ask(CALL, tool_choice="none").text.replace('\\"', '"')
    gated = start(kind="unknown", gate=True)
    assert gated.ask("<|tool_call_start|>[rm(a=1)]<|tool_call_end|>").json()["error"]["code"] == "UNKNOWN_TOOL"


def test_a_stream_that_was_not_asked_for_is_no_reply(start: Callable[..., Pair]) -> None:
    for kind in ("unknown", "llama.cpp"):
        answer = start(kind=kind).ask(sse({"choices": []}))
        assert answer.status_code == 502 and "answered 200" in answer.json()["error"]["message"]


def test_the_rust_front_end_gets_the_tools_for_its_template() -> None:
    """Its 0.32 leaves them out of the prompt under ``"none"``: the model would answer as if it had no tools."""

    def asked(**fields: Any) -> Any:
        proxy.ask(CALL, **fields)
        sent = json.loads(proxy.upstream.requests[-1]["body"])
        assert sent["tool_choice"] == "none" and sent["tools"] == TOOLS and sent["skip_special_tokens"] is False
        assert ("structured_outputs" in sent) == (fields.get("tool_choice") == "required")
        return sent.get("chat_template_kwargs")

    with pair(Scripted(kind="vllm-rs")) as proxy:
        assert asked() == asked(tool_choice="required") == {"tools": TOOLS}
        own = {"enable_thinking": False}
        assert asked(chat_template_kwargs=own, stream=True) == {"tools": TOOLS, **own}
        assert asked(chat_template_kwargs={"tools": None}) == {"tools": None}
        assert asked(chat_template_kwargs="odd") == "odd"
        assert asked(tool_choice="none") is None  # what the model sees then is the server's matter
    with pair(Scripted(kind="vllm")) as proxy:
        assert asked() is None  # the Python server keeps them in the prompt
