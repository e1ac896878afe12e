"""``lfm2-fixed proxy`` in front of a vLLM with its own parser, and of one with the plugin."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import anthropic
import httpx
import openai
import pytest
from rig import Server, chat_body, read_sse

from lfm2_fixed import parse
from lfm2_fixed.proxy import Settings
from lfm2_fixed.proxy.background import running
from lfm2_fixed.repro.payloads import PAYLOADS
from lfm2_fixed.repro.turns import TOOLS

LFM2 = [payload for payload in PAYLOADS if payload.dialect == "lfm2"]
CALL = "<|tool_call_start|>[bash(command='cat my\\ file.txt')]<|tool_call_end|>"


@pytest.fixture(scope="module")
def client() -> Iterator[httpx.Client]:
    with httpx.Client(timeout=300, trust_env=False) as client:
        yield client


def calls_of(message: dict[str, Any]) -> tuple[tuple[str, Any], ...]:
    calls = message.get("tool_calls") or []
    return tuple((call["function"]["name"], json.loads(call["function"]["arguments"])) for call in calls)


def streamed(events: list[Any]) -> dict[int, dict[str, Any]]:
    """A stream's choices, put together."""
    choices: dict[int, dict[str, Any]] = {}
    for event in events:
        for choice in event["choices"]:
            message = choices.setdefault(choice["index"], {"content": "", "tool_calls": [], "finish_reason": None})
            message["content"] += choice["delta"].get("content") or ""
            for call in choice["delta"].get("tool_calls") or []:
                if call["index"] == len(message["tool_calls"]):
                    message["tool_calls"].append({"function": dict(call["function"])})
                else:
                    known = message["tool_calls"][call["index"]]["function"]
                    known["arguments"] += call["function"]["arguments"]
            message["finish_reason"] = choice["finish_reason"]
    return choices


def test_every_payload_is_exact(stock: Server, client: httpx.Client) -> None:
    assert not wrong_through_the_proxy(stock, client)


def test_the_plugin_behind_it_changes_nothing(lfm2: Server, client: httpx.Client) -> None:
    """The proxy asks for the model's own text, and the plugin hands it out."""
    assert not wrong_through_the_proxy(lfm2, client)


def test_the_models_own_text_for_a_report(lfm2: Server, client: httpx.Client) -> None:
    """``tool_choice`` ``"none"`` with an explicit ``skip_special_tokens: false``: the text as it is."""
    body = chat_body(CALL, TOOLS, tool_choice="none", skip_special_tokens=False)
    text = client.post(lfm2.url + "/v1/chat/completions", json=body).json()["choices"][0]["message"]["content"]
    assert text.removesuffix("<|im_end|>") == CALL
    (call,) = parse(text, tools=TOOLS).calls
    assert json.loads(call.arguments) == {"command": "cat my\\ file.txt"}


def wrong_through_the_proxy(server: Server, client: httpx.Client) -> dict[str, Any]:
    """What arrives of the payloads that do not arrive right, streamed and whole in turns."""
    wrong = {}
    with running(Settings(server.url)) as url:
        for number, payload in enumerate(LFM2[::2]):
            stream = number % 2 == 0
            body = chat_body(payload.text, TOOLS, stream=stream)
            answer = client.post(url + "/v1/chat/completions", json=body)
            message = streamed(read_sse(answer.content))[0] if stream else answer.json()["choices"][0]["message"]
            if (calls_of(message), message["content"] or "") != (payload.calls, payload.content):
                wrong[payload.id] = message
    return wrong


def test_the_prompt_is_the_same(stock: Server, client: httpx.Client) -> None:
    with running(Settings(stock.url)) as url:
        used = [
            client.post(base + "/v1/chat/completions", json=chat_body("hi", TOOLS)).json()["usage"]["prompt_tokens"]
            for base in (stock.url, url)
        ]
        bare = client.post(url + "/v1/chat/completions", json=chat_body("hi", None)).json()["usage"]["prompt_tokens"]
    assert used[0] == used[1] > bare


def test_choices_usage_and_logprobs(stock: Server, client: httpx.Client) -> None:
    text = "<think>hm</think>\n\nhi " + CALL
    with running(Settings(stock.url)) as url:
        options = {"include_usage": True, "continuous_usage_stats": True}
        body = chat_body(
            text, TOOLS, stream=True, stream_options=options, n=2, temperature=1, logprobs=True, max_tokens=200
        )
        events = read_sse(client.post(url + "/v1/chat/completions", json=body).content)
        for message in streamed(events).values():
            assert calls_of(message) == (("bash", {"command": "cat my\\ file.txt"}),) and message["content"] == "hi"
            assert message["finish_reason"] == "tool_calls"
        tokens = [
            entry["token"]
            for event in events
            for choice in event["choices"]
            if choice["index"] == 0 and choice.get("logprobs")
            for entry in choice["logprobs"]["content"]
        ]
        assert "".join(tokens).removesuffix("<|im_end|>") == text
        assert events[-1]["choices"] == [] and events[-1]["usage"]["completion_tokens"] >= 2 * len(tokens) - 2


def test_tool_choices(stock: Server, client: httpx.Client) -> None:
    named = {"type": "function", "function": {"name": "bash"}}
    with running(Settings(stock.url, constrain="off")) as url:  # the scripts break what a grammar would hold
        for choice, text, status in (
            ("required", CALL, 200),
            ("required", "no", 502),
            (named, CALL, 200),
            (named, "no", 502),
            ("none", CALL, 200),
        ):
            body = chat_body(text, TOOLS, tool_choice=choice)
            answer = client.post(url + "/v1/chat/completions", json=body)
            assert answer.status_code == status, answer.text
            if status == 200:
                message = answer.json()["choices"][0]["message"]
                assert len(calls_of(message)) == (choice != "none") and "<|" not in (message["content"] or "")


def test_other_endpoints_and_clients(stock: Server) -> None:
    script = {"extra_body": {"vllm_xargs": {"script": "hello"}}}
    with running(Settings(stock.url)) as url:
        official = openai.OpenAI(base_url=url + "/v1", api_key="k", max_retries=0)
        assert official.responses.create(model="tiny", input="go", **script).output_text == "hello"
        assert official.completions.create(model="tiny", prompt="go", **script).choices[0].text == "hello"
        body = chat_body("hi " + CALL, TOOLS)
        extra = {"extra_body": {"vllm_xargs": body.pop("vllm_xargs")}}
        del body["stream"]
        with official.chat.completions.stream(**body, **extra) as stream:
            final = stream.get_final_completion().choices[0]
        assert json.loads(final.message.tool_calls[0].function.arguments) == {"command": "cat my\\ file.txt"}
        messages = [{"role": "user", "content": "go"}]
        other = anthropic.Anthropic(base_url=url, api_key="k", max_retries=0)
        with other.messages.stream(model="tiny", max_tokens=50, messages=messages, **script) as turn:
            assert turn.get_final_message().content[0].text == "hello"
