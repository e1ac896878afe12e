"""Constrained calls over HTTP.  The model has random weights and no script: whatever is right in what it says,
the grammar made."""

from __future__ import annotations

import json
import urllib.error
import urllib.request
from typing import Any

import jsonschema
import pytest
from rig import MODEL_NAME, Server

from benchmarks.constrained import MAX_TOKENS, TOOLS, chat_tools


@pytest.fixture
def noise(lfm2: Server) -> Server:
    """LFM2 with ``lfm2_fixed``; `post` tells it not to echo the prompt."""
    return lfm2


def post(server: Server, path: str, body: dict[str, Any]) -> tuple[int, Any]:
    """The status and the JSON (or the text, for a stream) of the answer."""
    request = urllib.request.Request(
        f"{server.url}{path}",
        data=json.dumps({"model": MODEL_NAME, "vllm_xargs": {"echo": 0}, **body}).encode(),
        headers={"Content-Type": "application/json", "x-api-key": "none", "anthropic-version": "2023-06-01"},
    )
    try:
        with urllib.request.urlopen(request, timeout=300) as answer:
            text, status = answer.read().decode(), answer.status
    except urllib.error.HTTPError as error:
        text, status = error.read().decode(), error.code
    return status, text if body.get("stream") and status == 200 else json.loads(text)


def chat(server: Server, n: int, **body: Any) -> Any:
    """The message of the answer to prompt number ``n``; its temperature follows from the number."""
    status, answer = post(
        server,
        "/v1/chat/completions",
        {
            "messages": [{"role": "user", "content": f"request number {n}, {n * 7919 % 1000}"}],
            "max_tokens": MAX_TOKENS,
            "temperature": 0.7 + (n % 5) * 0.2,  # at 0 noise repeats itself for ever
            "tools": chat_tools(),
            **body,
        },
    )
    assert status == 200, answer
    [choice] = answer["choices"]
    assert choice["finish_reason"] != "length", choice
    return choice["message"]


def calls_of(message: Any) -> list[tuple[str, dict[str, Any]]]:
    """The calls of a message, all of declared tools with valid arguments."""
    functions = [call["function"] for call in message["tool_calls"] or ()]
    calls = [(function["name"], json.loads(function["arguments"])) for function in functions]
    for name, arguments in calls:
        jsonschema.validate(arguments, TOOLS[name])
    return calls


def test_required_gives_valid_calls_every_time(noise: Server) -> None:
    used: set[str] = set()
    several = 0
    for n in range(50):
        message = chat(noise, n, tool_choice="required")
        calls = calls_of(message)
        assert calls
        assert not message["content"]
        used |= {name for name, _ in calls}
        several += len(calls) > 1
    assert used == set(TOOLS), "the model never chose one of the tools: the test shows less than it should"
    assert several, "never more than one call: the test shows less than it should"


@pytest.mark.parametrize("name", TOOLS)
def test_a_named_function_is_called_once(noise: Server, name: str) -> None:
    for n in range(10):
        choice = {"type": "function", "function": {"name": name}}
        assert [called for called, _ in calls_of(chat(noise, n, tool_choice=choice))] == [name]


def test_without_parallel_calls_there_is_one(noise: Server) -> None:
    for n in range(20):
        assert len(calls_of(chat(noise, n, tool_choice="required", parallel_tool_calls=False))) == 1


def test_streamed_and_whole_are_equal(noise: Server) -> None:
    for n in range(5):
        body: dict[str, Any] = {"tool_choice": "required", "parallel_tool_calls": False, "temperature": 0}
        whole = chat(noise, n, **body)
        status, text = post(
            noise,
            "/v1/chat/completions",
            {
                "messages": [{"role": "user", "content": f"request number {n}, {n * 7919 % 1000}"}],
                "max_tokens": MAX_TOKENS,
                "tools": chat_tools(),
                "stream": True,
                **body,
            },
        )
        assert status == 200
        streamed: dict[int, list[str]] = {}
        for line in text.splitlines():
            if line.startswith("data: {"):
                for choice in json.loads(line[6:])["choices"]:
                    assert not choice["delta"].get("content")
                    for call in choice["delta"].get("tool_calls") or ():
                        part = streamed.setdefault(call["index"], ["", ""])
                        part[0] += call["function"].get("name") or ""
                        part[1] += call["function"].get("arguments") or ""
        assert [streamed[index] for index in sorted(streamed)] == [
            [call["function"]["name"], call["function"]["arguments"]] for call in whole["tool_calls"]
        ]


def token(server: Server, text: str) -> int:
    _, answer = post(server, "/tokenize", {"prompt": text, "add_special_tokens": False})
    [number] = answer["tokens"]
    return int(number)


def test_strict_tools_with_auto(noise: Server) -> None:
    """The model is pushed to start a call; in it the schemas hold, and outside it the answer is free."""
    bias = {str(token(noise, "<|tool_call_start|>")): 100}
    for n in range(10):
        message = chat(noise, n, tools=chat_tools(strict=True), parallel_tool_calls=False, logit_bias=bias)
        assert len(calls_of(message)) == 1
    status, answer = post(
        noise,
        "/v1/chat/completions",
        {
            "messages": [{"role": "user", "content": "go"}],
            "max_tokens": 60,
            "temperature": 1,
            "tools": chat_tools(strict=True),
            "logit_bias": {str(token(noise, "<|tool_call_start|>")): -100},
        },
    )
    assert status == 200
    assert not answer["choices"][0]["message"].get("tool_calls")
    assert answer["choices"][0]["message"]["content"]


def test_auto_without_strict_tools_is_free(noise: Server) -> None:
    script = "<|tool_call_start|>[unknown(x=[1, 'a'])]<|tool_call_end|>"
    message = chat(noise, 0, vllm_xargs={"script": script})
    assert [call["function"] for call in message["tool_calls"]] == [{"name": "unknown", "arguments": '{"x": [1, "a"]}'}]


def test_none_is_text(noise: Server) -> None:
    status, answer = post(
        noise,
        "/v1/chat/completions",
        {
            "messages": [{"role": "user", "content": "go"}],
            "max_tokens": 50,
            "tools": chat_tools(strict=True),
            "tool_choice": "none",
        },
    )
    assert status == 200
    assert not answer["choices"][0]["message"].get("tool_calls")


def test_responses_and_anthropic(noise: Server) -> None:
    flat = [{"type": "function", "name": name, "parameters": schema} for name, schema in TOOLS.items()]
    claude = [{"name": name, "input_schema": schema} for name, schema in TOOLS.items()]
    for n in range(5):
        text = f"request number {n}"
        status, answer = post(
            noise,
            "/v1/responses",
            {"input": text, "tools": flat, "tool_choice": "required", "max_output_tokens": MAX_TOKENS},
        )
        assert status == 200, answer
        calls = [item for item in answer["output"] if item["type"] == "function_call"]
        assert calls
        for call in calls:
            jsonschema.validate(json.loads(call["arguments"]), TOOLS[call["name"]])
        status, answer = post(
            noise,
            "/v1/messages",
            {
                "messages": [{"role": "user", "content": text}],
                "tools": claude,
                "tool_choice": {"type": "any"},
                "max_tokens": MAX_TOKENS,
            },
        )
        assert status == 200, answer
        uses = [block for block in answer["content"] if block["type"] == "tool_use"]
        assert uses
        for use in uses:
            jsonschema.validate(use["input"], TOOLS[use["name"]])


@pytest.mark.parametrize(
    "schema",
    [
        {"type": "object", "properties": {"a": {"type": "strin"}}},
        {"type": "object", "properties": {"a": {"$ref": "#/$defs/nothing"}}},
        {"type": "object", "properties": {"a": {"type": "string", "maxLength": "5"}}},
        {"type": "object", "properties": {"a": {"enum": "x"}}},
        {"type": "array"},
    ],
)
def test_an_invalid_schema_is_the_clients_error(noise: Server, schema: dict[str, Any]) -> None:
    tools = [{"type": "function", "function": {"name": "f", "parameters": schema}}]
    status, answer = post(
        noise,
        "/v1/chat/completions",
        {"messages": [{"role": "user", "content": "go"}], "tools": tools, "tool_choice": "required", "max_tokens": 20},
    )
    assert status == 400, answer


def test_two_tools_of_one_name_are_the_clients_error(noise: Server) -> None:
    tools = [{"type": "function", "function": {"name": "f", "parameters": {"type": "object"}}}] * 2
    body = {"messages": [{"role": "user", "content": "go"}], "tools": tools, "tool_choice": "required"}
    status, answer = post(noise, "/v1/chat/completions", {**body, "max_tokens": 20})
    assert status == 400, answer
    assert "two tools" in json.dumps(answer)


def test_what_cannot_be_expressed_is_no_error(noise: Server) -> None:
    schema = {
        "type": "object",
        "properties": {
            "a": {"type": "string", "pattern": r"(?=x)\p{L}", "maxLength": 5},
            "b": {"type": "array", "items": {"type": "integer"}, "uniqueItems": True, "maxItems": 3},
            "c": {"not": {"type": "string"}, "type": ["boolean", "null"]},
        },
        "required": ["a", "b", "c"],
    }
    tools = [{"type": "function", "function": {"name": "f", "parameters": schema}}]
    for n in range(3):
        message = chat(noise, n, tools=tools, tool_choice="required", parallel_tool_calls=False)
        [call] = message["tool_calls"]
        arguments = json.loads(call["function"]["arguments"])
        assert len(arguments["a"]) <= 5
        assert all(isinstance(item, int) for item in arguments["b"])
        assert arguments["c"] in (True, False, None)


def test_after_reasoning(reasoning: Server) -> None:
    """The model is pushed to end its reasoning at once; from there on the grammar holds."""
    bias = {str(token(reasoning, "</think>")): 100}
    for n in range(5):
        message = chat(reasoning, n, tool_choice="required", parallel_tool_calls=False, logit_bias=bias)
        assert len(calls_of(message)) == 1
        assert not message["content"]


def test_llama4(llama4: Server) -> None:
    for n in range(15):
        assert calls_of(chat(llama4, n, tool_choice="required"))
        assert len(calls_of(chat(llama4, n, tool_choice="required", parallel_tool_calls=False))) == 1
    named = {"type": "function", "function": {"name": "now"}}
    assert calls_of(chat(llama4, 1, tool_choice=named)) == [("now", {})]


@pytest.mark.parametrize(
    "choice, script",
    [
        ("required", "I had rather not."),
        ("required", '<|tool_call_start|>[get_weather(city="Paris", days=99)]<|tool_call_end|>'),
        ({"type": "function", "function": {"name": "get_weather"}}, "<|tool_call_start|>[now()]<|tool_call_end|>"),
    ],
    ids=["prose", "out of range", "another function"],
)
def test_what_the_constraint_makes_of_a_script_that_breaks_it(lfm2: Server, choice: Any, script: str) -> None:
    """The script goes on where the grammar allows it again; no error, and a valid call."""
    message = chat(lfm2, 0, tool_choice=choice, temperature=0, vllm_xargs={"script": script})
    calls = calls_of(message)
    assert calls
    if "Paris" in script:
        assert calls[0][1]["city"] == "Paris" and 1 <= calls[0][1]["days"] <= 14
    if isinstance(choice, dict):
        assert [name for name, _ in calls] == ["get_weather"]
