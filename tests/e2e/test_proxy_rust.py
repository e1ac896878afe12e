"""``lfm2-fixed proxy`` in front of vLLM's Rust front end, which has no parser for these models and loads no plugin."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import httpx
import pytest
from rig import MODEL_NAME, Server, chat_body, read_sse

from benchmarks.constrained import TOOLS as ASKED
from benchmarks.constrained import ask, chat_tools, run
from lfm2_fixed.proxy import Settings
from lfm2_fixed.proxy.background import running
from lfm2_fixed.repro.payloads import PAYLOADS
from lfm2_fixed.repro.turns import TOOLS
from tests.support.turns import END, START, At, at_once, both, check_payload, wanted

LFM2 = [payload for payload in PAYLOADS if payload.dialect == "lfm2"]
CALL = f"{START}[bash(command='cat my\\ file.txt')]{END}"
CALLS = wanted(("bash", {"command": "cat my\\ file.txt"}))
BASH = {"type": "function", "function": {"name": "bash"}}


@pytest.fixture
def front(rust: Server) -> Iterator[At]:
    with running(Settings(rust.url)) as url:
        yield At(url)


@pytest.fixture
def client() -> Iterator[httpx.Client]:
    with httpx.Client(timeout=300, trust_env=False) as client:
        yield client


def post(client: httpx.Client, at: At | Server, body: dict[str, Any]) -> httpx.Response:
    return client.post(at.url + "/v1/chat/completions", json=body)


def test_without_the_proxy_every_request_with_tools_is_refused(rust: Server, client: httpx.Client) -> None:
    """The reason for all of this; where it fails, the front end has learnt to read these models."""
    answer = post(client, rust, chat_body(CALL, TOOLS, tool_choice="auto"))
    assert answer.status_code >= 400 and "tool" in answer.json()["error"]["message"]


def test_every_payload_is_exact_streamed_and_whole(front: At) -> None:
    at_once(lambda payload: check_payload(front, payload), LFM2)


def test_the_model_sees_the_tools_once(front: At, rust: Server, client: httpx.Client) -> None:
    def prompt(at: At | Server, tools: Any, **fields: Any) -> Any:
        answer = post(client, at, chat_body("hi", tools, return_token_ids=True, **fields)).json()
        return answer["prompt_token_ids"]

    # What the chat template makes of the tools as they are in the request.
    template = prompt(rust, None, chat_template_kwargs={"tools": TOOLS})
    assert prompt(front, TOOLS) == template
    assert len(template) > len(prompt(front, None)) + 100
    # Its own way of saying "none" is its own matter, and passes.
    assert prompt(front, TOOLS, tool_choice="none") == prompt(rust, TOOLS, tool_choice="none")


def test_reasoning(front: At) -> None:
    thought = both(front, f"<think>I could [call(it='now')].</think>\n\nhi {CALL}")
    assert (thought.reasoning, thought.content, thought.calls) == ("I could [call(it='now')].", "hi", CALLS)
    assert thought.finish_reason == "tool_calls"


def test_stop_and_length(front: At) -> None:
    stopped = both(front, f"one two {CALL} three", stop=["two"])
    assert (stopped.content, stopped.calls, stopped.finish_reason) == ("one ", [], "stop")
    after = both(front, f"{CALL} three four", stop=["three"])
    assert (after.calls, after.finish_reason) == (CALLS, "tool_calls")
    cut = both(front, f"ab {CALL}", max_tokens=6)
    assert (cut.complete(), cut.finish_reason) == ([], "length")


def test_logprobs_and_usage(front: At, client: httpx.Client) -> None:
    text = f"<think>hm</think>hi {CALL}"
    options = {"include_usage": True, "continuous_usage_stats": True}
    body = chat_body(text, TOOLS, stream=True, stream_options=options, logprobs=True)
    events = read_sse(post(client, front, body).content)
    choices = [choice for event in events for choice in event["choices"] if choice.get("logprobs")]
    tokens = [entry["token"] for choice in choices for entry in choice["logprobs"]["content"]]
    assert "".join(tokens).removesuffix("<|im_end|>") == text
    counts = [event["usage"]["completion_tokens"] for event in events if event.get("usage")]
    assert counts == sorted(counts) and counts[-1] >= len(tokens) and events[-1]["choices"] == []
    whole = post(client, front, chat_body(text, TOOLS, logprobs=True)).json()
    said = "".join(entry["token"] for entry in whole["choices"][0]["logprobs"]["content"])
    assert said.removesuffix("<|im_end|>") == text and whole["usage"]["completion_tokens"] == counts[-1]
    assert "usage" not in read_sse(post(client, front, chat_body(text, TOOLS, stream=True)).content)[-1]


def test_several_choices_are_its_own_to_refuse(front: At, client: httpx.Client) -> None:
    """vLLM 0.32's Rust front end answers with one choice only; the proxy neither hides that nor stands in for it."""
    body = chat_body(CALL, TOOLS, n=2, temperature=1)
    for stream in (False, True):
        refused = post(client, front, body | {"stream": stream})
        assert refused.status_code == 400 and "n=1" in refused.json()["error"]["message"]


@pytest.mark.parametrize("choice", ["required", BASH], ids=["required", "named"])
def test_tool_choices(front: At, choice: Any) -> None:
    """The grammar lets through what the model writes, but for escapes that Python and JSON read differently."""
    call, calls = f"{START}[bash(command='cat my file.txt')]{END}", wanted(("bash", {"command": "cat my file.txt"}))
    assert both(front, call, tool_choice=choice).calls == calls
    only = {"type": "allowed_tools", "allowed_tools": {"mode": "required", "tools": [BASH]}}
    assert both(front, call, tool_choice=only).calls == calls
    none = both(front, f"hi {CALL}", tool_choice="none")
    assert none.calls == [] and "<|" not in none.content and none.finish_reason == "stop"


def test_what_it_has_not_is_said_by_it(front: At, client: httpx.Client) -> None:
    for path in ("/v1/responses", "/v1/messages"):
        assert client.post(front.url + path, json={"model": "tiny", "input": "hi"}).status_code == 404
    models = client.get(front.url + "/v1/models").json()
    assert models["data"][0]["id"] == "tiny"
    raw = client.post(
        front.url + "/v1/completions", json={"model": "tiny", "prompt": "go", "vllm_xargs": {"script": "hello"}}
    )
    assert raw.json()["choices"][0]["text"] == "hello"


def test_many_streams_at_once(front: At, client: httpx.Client) -> None:
    def one(number: int) -> list[tuple[str, str]]:
        return both(front, f"{START}[bash(command='echo {number}')]{END}").calls

    wants = [wanted(("bash", {"command": f"echo {number}"})) for number in range(64)]
    assert at_once(one, range(64), width=32) == wants


def test_special_tokens_on_request(front: At, client: httpx.Client) -> None:
    """They stay then, and the calls are read all the same."""
    body = chat_body(f"hi {CALL}", TOOLS, skip_special_tokens=False)
    message = post(client, front, body).json()["choices"][0]["message"]
    [call] = message["tool_calls"]
    assert json.loads(call["function"]["arguments"]) == {"command": "cat my\\ file.txt"}
    assert message["content"].startswith("hi")


# --- constrained calls: random weights, no script

NOISE: dict[str, Any] = {"vllm_xargs": {"echo": 0}}


def test_required_named_and_single_calls(front: At) -> None:
    found = run(front.url, required=12, named=6, single=6, model=MODEL_NAME, **NOISE)
    assert found["required, whole"] == found["required, streamed"] == 12
    assert all(found[name] for name in ASKED) and found["several calls"], "the test shows less than it should"


def token(client: httpx.Client, at: At | Server, text: str) -> str:
    """The number of the token that ``text`` is."""
    prompt = {"prompt": text, "model": MODEL_NAME, "add_special_tokens": False}
    [number] = client.post(at.url + "/tokenize", json=prompt).json()["tokens"]
    return str(number)


@pytest.mark.parametrize("stream", [False, True], ids=["whole", "streamed"])
def test_strict_tools_with_auto(front: At, client: httpx.Client, stream: bool) -> None:
    """The model is pushed to start a call; in it the schemas hold."""
    bias = {token(client, front, START): 100}
    for n in range(4):
        body = {"tools": chat_tools(strict=True), "parallel_tool_calls": False, "logit_bias": bias}
        assert len(ask(client, front.url, n, model=MODEL_NAME, stream=stream, **body, **NOISE)) == 1


def test_a_thought_before_a_forced_call(rust: Server, client: httpx.Client) -> None:
    """The model is pushed to think, and still more to end its thought."""
    bias = {token(client, rust, "<think>"): 50, token(client, rust, "</think>"): 60}
    choice = {"type": "function", "function": {"name": "now"}}
    body = chat_body("go", chat_tools(), tool_choice=choice, logit_bias=bias, max_tokens=1000, temperature=1, **NOISE)
    with running(Settings(rust.url, reasoning="keep")) as url:
        message = post(client, At(url), body).json()["choices"][0]["message"]
    assert message["content"].strip() == "<think></think>"
    assert [call["function"]["name"] for call in message["tool_calls"]] == ["now"]


@pytest.mark.parametrize("stream", [False, True], ids=["whole", "streamed"])
def test_a_grammar_that_its_engine_does_not_take(
    rust: Server, client: httpx.Client, monkeypatch: pytest.MonkeyPatch, stream: bool
) -> None:
    """It answers nothing then, with status 200: the request is sent again without."""
    monkeypatch.setattr("lfm2_fixed.proxy.constrain.lark", lambda *_, **__: "start: nothing")
    strict = [{"type": "function", "function": {"name": "bash", "strict": True}}]
    with running(Settings(rust.url)) as url:
        for tools, choice in ((TOOLS, "required"), (strict, "auto")):
            answer = post(client, At(url), chat_body(CALL, tools, stream=stream, tool_choice=choice))
            assert answer.status_code == 200 and "bash" in answer.text and "error" not in answer.text


def test_a_grammar_that_its_engine_gives_up(front: At, client: httpx.Client) -> None:
    """llguidance holds 2,000 ways to go on, which shows when they are there: the answer ends inside its call."""
    many = {"type": "object", "properties": {"n": {"enum": list(range(3000))}}}
    tools = [{"type": "function", "function": {"name": "f", "parameters": many}}]
    body = chat_body(f"{START}[f(n=2999)]{END}", tools, tool_choice="required")
    [call] = post(client, front, body).json()["choices"][0]["message"]["tool_calls"]
    assert json.loads(call["function"]["arguments"]) == {"n": 2999}
