"""Against real llama.cpp servers: what they get wrong, and that the proxy does not."""

from __future__ import annotations

import json
import logging
import re
import time
from pathlib import Path
from typing import Any

import httpx
import openai
import pytest

from lfm2_fixed import parse as parse_text
from lfm2_fixed.proxy import Settings, reply
from lfm2_fixed.proxy.background import running
from lfm2_fixed.repro.payloads import PAYLOADS
from lfm2_fixed.repro.servers import server_readings
from lfm2_fixed.repro.turns import TOOLS, Payload
from tests.support.llama_fronts import Fronts
from tests.support.llama_rig import LlamaServer, chat, script

S, E = "<|tool_call_start|>", "<|tool_call_end|>"


def bash(id: str, text: str, *commands: str, content: str = "") -> Payload:
    """A payload of calls of ``bash``, S and E standing for the markers."""
    text = text.replace("S[", S + "[").replace("]E", "]" + E)
    return Payload(id, text, tuple(("bash", {"command": command}) for command in commands), "", content)


INVALID_DIFF = bash("invalid diff", r"S[bash(command='it\'s')]E", "it's")
BACKSLASH_SPACE = bash("backslash, space", r"S[bash(command='cat my\ file.txt')]E", r"cat my\ file.txt")
HARD = [
    INVALID_DIFF,
    BACKSLASH_SPACE,
    bash("raw newline", 'S[bash(command="a\nb\tc")]E', "a\nb\tc"),
    bash("hexadecimal", r'S[bash(command="\x41\d")]E', r"A\d"),
    bash("slash", r'S[bash(command="a\/b")]E', r"a\/b"),
    bash("triple quotes", 'S[bash(command="""say "hi"\n""")]E', 'say "hi"\n'),
    bash("two blocks", 'S[bash(command="a")]E and S[bash(command="b")]E', "a", "b", content="and"),
    bash("apostrophe", "S[bash(command='It's late')]E", "It's late"),
    bash("text around", 'So: S[bash(command="ls")]E done', "ls", content="So:\ndone"),
]
EVERYTHING = [*HARD, *(payload for payload in PAYLOADS if payload.dialect == "lfm2")]


def ask(client: httpx.Client, url: str, payload: Payload, *, stream: bool, **fields: Any) -> tuple[Any, str]:
    """(calls, content) that a client receives, or (None, the error)."""
    request = chat(payload.text, tools=TOOLS, stream=stream, **fields)
    answer = client.post(url + "/v1/chat/completions", json=request)
    if answer.status_code != 200:
        return None, answer.json()["error"]["message"]
    if not stream:
        message = answer.json()["choices"][0]["message"]
        calls = [(call["function"]["name"], call["function"]["arguments"]) for call in message.get("tool_calls") or []]
        return readable(calls), message["content"] or ""
    content = ""
    streamed: dict[int, list[str]] = {}
    for line in answer.text.split("\n"):
        if not line.startswith(("data: {", "error: ")):
            continue
        event = json.loads(line.partition(": ")[2])
        if "choices" not in event:
            return None, event.get("error", event)["message"]
        for choice in event["choices"]:
            content += choice["delta"].get("content") or ""
            for call in choice["delta"].get("tool_calls") or []:
                entry = streamed.setdefault(call["index"], ["", ""])
                entry[0] += call["function"].get("name") or ""
                entry[1] += call["function"].get("arguments") or ""
    return readable([(name, text) for name, text in streamed.values()]), content


def readable(calls: list[tuple[str, str]]) -> Any:
    """The calls with their arguments read, where they can be."""
    try:
        return tuple((name, json.loads(text)) for name, text in calls)
    except ValueError:
        return calls


@pytest.mark.parametrize("stream", [True, False], ids=["streamed", "whole"])
def test_every_payload_is_exact_through_the_proxy(fronts: Fronts, stream: bool) -> None:
    wrong = {}
    for payload in EVERYTHING if stream else HARD:
        received = ask(fronts.client, fronts.parse, payload, stream=stream)
        if received != (payload.calls, payload.content):
            wrong[payload.id] = received
    assert not wrong


def test_what_the_server_gets_wrong_by_itself(fronts: Fronts) -> None:
    """If this fails, the server was mended, or the rig is not what it seems."""
    client = fronts.client
    calls, error = ask(client, fronts.direct, INVALID_DIFF, stream=True)
    if fronts.build == "b10068":
        assert calls is None and "Invalid diff" in error
    else:
        assert calls == INVALID_DIFF.calls
    assert ask(client, fronts.buffer, INVALID_DIFF, stream=True) == (INVALID_DIFF.calls, "")
    for url in (fronts.direct, fronts.buffer):
        for stream in (True, False):
            assert ask(client, url, BACKSLASH_SPACE, stream=stream)[0] is None
    for payload in HARD[2:8]:
        assert ask(client, fronts.direct, payload, stream=True) != (payload.calls, payload.content), payload.id


def test_the_table_of_a_running_server(fronts: Fronts) -> None:
    """What ``lfm2-fixed repro --llama-url`` shows."""
    payloads = [INVALID_DIFF, BACKSLASH_SPACE]
    readings = server_readings(fronts.direct, payloads, prompt=lambda payload: script(payload.text), max_tokens=100)
    right = {
        name: [outcome.matches(payload) for payload in payloads for outcome in outcomes[payload.id].values()]
        for name, outcomes in readings.items()
    }
    assert right == {
        "direct": [fronts.build != "b10068", True, False, False],
        "buffer": [True, True, False, False],
        "ours: parse": [True, True, True, True],
    }


def test_the_same_through_the_machine(fronts: Fronts) -> None:
    """Whatever the text, also such as is cut off by max_tokens."""
    text = f'Hm [1] {S}[bash(command="a", timeout=1.50), write(path="é😀", content=\'x\')]{E} z'
    for limit in (5, 12, 40, 60, 75, 90, 200):
        request = {**chat(text, tools=TOOLS), "max_tokens": limit}

        def message(url: str, request: dict[str, Any]) -> Any:
            answer = fronts.client.post(url + "/v1/chat/completions", json=request)
            return answer.json()["choices"][0]["message"]

        received = message(fronts.parse, request)
        raw = message(fronts.direct, {**request, "tool_choice": "none"})["content"]
        expected = parse_text(raw, tools=TOOLS)
        calls = [(call["function"]["name"], call["function"]["arguments"]) for call in received.get("tool_calls", [])]
        assert calls == [(call.name, call.arguments) for call in expected.calls]
        assert (received["content"] or "") == expected.content


def test_the_openai_client(fronts: Fronts) -> None:
    client = openai.OpenAI(base_url=fronts.parse + "/v1", api_key="k", max_retries=0)
    text = "<think>hm</think>\n\nLook: " + BACKSLASH_SPACE.text
    with client.chat.completions.stream(**chat(text, tools=TOOLS, stream_options={"include_usage": True})) as stream:
        final = stream.get_final_completion()
    message = final.choices[0].message
    assert json.loads(message.tool_calls[0].function.arguments) == BACKSLASH_SPACE.calls[0][1]
    assert message.content == "Look:" and final.choices[0].finish_reason == "tool_calls" and final.usage.total_tokens
    whole = client.chat.completions.create(**chat(text, tools=TOOLS)).choices[0].message
    assert whole.reasoning_content == "hm" and whole.content == "Look:"
    two = client.chat.completions.create(**chat(text, tools=TOOLS), n=2)
    assert [len(choice.message.tool_calls) for choice in two.choices] == [1, 1]
    with running(Settings(fronts.direct, constrain="off")) as url:
        free = client.with_options(base_url=url + "/v1")
        with pytest.raises(openai.APIError, match="tool_choice requires"):
            list(free.chat.completions.create(**chat("No.", tools=TOOLS), tool_choice="required", stream=True))
    assert client.models.list().data[0].id == "echo"


def test_when_the_client_goes_generation_stops(fronts: Fronts) -> None:
    request = chat("x" * 200, tools=TOOLS, stream=True, ignore_eos=True)
    request["max_tokens"] = 10_000
    url = fronts.parse + "/v1/chat/completions"
    with fronts.client.stream("POST", url, json=request) as answer:
        pieces = answer.iter_bytes()
        assert next(pieces)
        assert any(slot["is_processing"] for slot in fronts.client.get(fronts.direct + "/slots").json())
    for _ in range(500):
        if not any(slot["is_processing"] for slot in fronts.client.get(fronts.direct + "/slots").json()):
            break
        time.sleep(0.02)
    else:
        pytest.fail("the server goes on generating")


def test_a_server_that_strips_sentinels_is_named_once(
    fronts: Fronts, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    template = (Path(__file__).parent / "template.jinja").read_text(encoding="utf-8")
    # Without these words llama-server does not know the model's format, and hides its special tokens.
    plain = template.replace("List of tools: <|tool_list_start|>[", "Tools: [").replace("]<|tool_list_end|>", "]")
    (tmp_path / "plain.jinja").write_text(plain, encoding="utf-8")
    flags = ("--chat-template-file", str(tmp_path / "plain.jinja"))
    payload = bash("", 'S[bash(command="ls")]E', "ls")
    reply._told.clear()
    with caplog.at_level(logging.INFO, "lfm2_fixed.proxy"):
        with LlamaServer(fronts.build, *flags, log=tmp_path / "log") as server, running(Settings(server.url)) as url:
            for stream in (True, False):
                assert ask(fronts.client, url, payload, stream=stream) == ((), '[bash(command="ls")]')
        assert len(re.findall("strips special", caplog.text)) == 1
        # What the warning advises helps.
        with (
            LlamaServer(fronts.build, *flags, "--special", log=tmp_path / "log") as server,
            running(Settings(server.url)) as url,
        ):
            for stream in (True, False):
                assert ask(fronts.client, url, payload, stream=stream) == (payload.calls, "")


def test_a_server_with_a_key(fronts: Fronts, tmp_path: Path) -> None:
    with (
        LlamaServer(fronts.build, "--api-key", "secret", log=tmp_path / "log") as server,
        running(Settings(server.url)) as url,
    ):
        request = chat(BACKSLASH_SPACE.text, tools=TOOLS)
        refused = fronts.client.post(url + "/v1/chat/completions", json=request)
        assert refused.status_code == 401 and "error" in refused.json()
        headers = {"authorization": "Bearer secret"}
        answer = fronts.client.post(url + "/v1/chat/completions", json=request, headers=headers)
        assert answer.json()["choices"][0]["finish_reason"] == "tool_calls"
