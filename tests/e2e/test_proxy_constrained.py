"""The proxy constrains calls on a vLLM that knows nothing of this package: random weights, no script."""

from __future__ import annotations

from typing import Any

import httpx
import pytest
from rig import MODEL_NAME, Server

from benchmarks.constrained import TOOLS, ask, chat_tools, run
from lfm2_fixed.proxy import Settings
from lfm2_fixed.proxy.background import running

NOISE: dict[str, Any] = {"vllm_xargs": {"echo": 0}}


def test_required_named_and_single_calls(stock: Server) -> None:
    with running(Settings(stock.url)) as url:
        found = run(url, required=12, named=6, single=6, model=MODEL_NAME, **NOISE)
    assert found["required, whole"] == found["required, streamed"] == 12
    assert all(found[name] for name in TOOLS) and found["several calls"], "the test shows less than it should"


@pytest.mark.parametrize("stream", [False, True], ids=["whole", "streamed"])
def test_strict_tools_with_auto(stock: Server, stream: bool) -> None:
    """The model is pushed to start a call; in it the schemas hold."""
    start = {"prompt": "<|tool_call_start|>", "model": MODEL_NAME, "add_special_tokens": False}
    with running(Settings(stock.url)) as url, httpx.Client(timeout=300, trust_env=False) as client:
        [marker] = client.post(stock.url + "/tokenize", json=start).json()["tokens"]
        for n in range(4):
            body = {"tools": chat_tools(strict=True), "parallel_tool_calls": False, "logit_bias": {str(marker): 100}}
            assert len(ask(client, url, n, model=MODEL_NAME, stream=stream, **body, **NOISE)) == 1


def test_after_a_thought(stock: Server) -> None:
    """The model is pushed to think, and still more to end its thought."""
    with running(Settings(stock.url, reasoning="keep")) as url, httpx.Client(timeout=300, trust_env=False) as client:
        bias = {}
        for text, weight in (("<think>", 50), ("</think>", 60)):
            prompt = {"prompt": text, "model": MODEL_NAME, "add_special_tokens": False}
            [number] = client.post(stock.url + "/tokenize", json=prompt).json()["tokens"]
            bias[str(number)] = weight
        body = {
            "model": MODEL_NAME,
            "messages": [{"role": "user", "content": "go"}],
            "max_tokens": 1000,
            "temperature": 1,
            "tools": chat_tools(),
            "tool_choice": {"type": "function", "function": {"name": "now"}},
            "logit_bias": bias,
            **NOISE,
        }
        message = client.post(url + "/v1/chat/completions", json=body).json()["choices"][0]["message"]
        assert message["content"].strip() == "<think></think>"
        assert [call["function"]["name"] for call in message["tool_calls"]] == ["now"]
