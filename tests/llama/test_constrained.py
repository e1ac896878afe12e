"""The proxy constrains calls on real llama.cpp servers: random weights, so that whatever is right a grammar made."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack

import httpx
import pytest

from benchmarks.constrained import TOOLS, ask, chat_tools, run
from lfm2_fixed.proxy import Settings
from lfm2_fixed.proxy.background import running
from tests.support import llama_rig


@pytest.fixture(scope="module", params=sorted(llama_rig.BUILDS))
def noise(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """A llama.cpp server of each build, with the model of noise."""
    with ExitStack() as stack:
        log = tmp_path_factory.mktemp("noise") / "server.log"
        yield stack.enter_context(llama_rig.LlamaServer(request.param, log=log, model="noise")).url


def test_required_named_and_single_calls(noise: str) -> None:
    with running(Settings(noise)) as url:
        found = run(url, required=30, named=9, single=9, model="noise")
    assert found["required, whole"] == found["required, streamed"] == 30
    assert all(found[name] for name in TOOLS) and found["several calls"], "the test shows less than it should"


@pytest.mark.parametrize("stream", [False, True], ids=["whole", "streamed"])
def test_strict_tools_with_auto(noise: str, stream: bool) -> None:
    """The model is pushed to start a call; in it the schemas hold."""
    with running(Settings(noise)) as url, httpx.Client(timeout=60, trust_env=False) as client:
        marker = client.post(noise + "/tokenize", json={"content": "<|tool_call_start|>", "parse_special": True})
        [token] = marker.json()["tokens"]
        for n in range(5):
            body = {"tools": chat_tools(strict=True), "parallel_tool_calls": False, "logit_bias": {str(token): 100}}
            assert len(ask(client, url, n, model="noise", stream=stream, **body)) == 1


def test_without_a_grammar_noise_is_no_call(noise: str) -> None:
    """If this fails, the other tests show nothing."""
    with running(Settings(noise, constrain="off")) as url, httpx.Client(timeout=60, trust_env=False) as client:
        request = {
            "model": "noise",
            "messages": [{"role": "user", "content": "go"}],
            "tools": chat_tools(),
            "tool_choice": "required",
            "max_tokens": 200,
            "temperature": 1,
            "logit_bias": {},
        }
        answer = client.post(url + "/v1/chat/completions", json=request)
        broken = answer.status_code == 502 and answer.json()["error"]["type"] == "tool_choice_error"
        assert broken or answer.json()["choices"][0]["finish_reason"] == "length"
