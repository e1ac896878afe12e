"""The official clients, and such as are careless, work unchanged."""

from __future__ import annotations

import asyncio
import json
from typing import Any

import pytest
from pairs import TOOLS, Pair, body

openai = pytest.importorskip("openai", reason="needs the openai client")

TEXT = "<think>hm</think>Look: <|tool_call_start|>[bash(command='it\\'s'), add(a=1, b=2)]<|tool_call_end|>"
CALLS = [("bash", {"command": "it's"}), ("add", {"a": 1, "b": 2})]


def request(text: str = TEXT, **fields: Any) -> dict[str, Any]:
    return {**body({"turns": [list(text)]}), **fields}


def calls_of(message: Any) -> list[tuple[str, Any]]:
    return [(call.function.name, json.loads(call.function.arguments)) for call in message.tool_calls]


def test_the_openai_client(parse: Pair, buffer: Pair) -> None:
    client = openai.OpenAI(base_url=parse.url + "/v1", api_key="k", max_retries=0)
    message = client.chat.completions.create(**request()).choices[0].message
    assert calls_of(message) == CALLS and message.content == "Look:" and message.reasoning_content == "hm"
    # The stream helper puts the chunks together by itself, and is strict about their form.
    with client.chat.completions.stream(**request(stream_options={"include_usage": True})) as stream:
        names = [event.name for event in stream if event.type == "tool_calls.function.arguments.done"]
        final = stream.get_final_completion()
    assert names == ["bash", "add"] and calls_of(final.choices[0].message) == CALLS
    assert final.choices[0].finish_reason == "tool_calls" and final.usage.total_tokens == 3
    buffered = openai.OpenAI(base_url=buffer.url + "/v1", api_key="k", max_retries=0)
    with buffered.chat.completions.stream(**request("Hello")) as stream:
        assert stream.get_final_completion().choices[0].message.content == "Hello"


def test_the_async_openai_client(parse: Pair) -> None:
    async def run() -> list[Any]:
        async with openai.AsyncOpenAI(base_url=parse.url + "/v1", api_key="k", max_retries=0) as client:

            async def one() -> Any:
                async with client.chat.completions.stream(**request()) as stream:
                    return (await stream.get_final_completion()).choices[0].message

            return await asyncio.gather(*(one() for _ in range(8)))

    assert [calls_of(message) for message in asyncio.run(run())] == [CALLS] * 8


def test_a_client_that_reads_the_first_choice_unguarded(parse: Pair, buffer: Pair) -> None:
    for pair in (parse, buffer):
        client = openai.OpenAI(base_url=pair.url + "/v1", api_key="k", max_retries=0)
        content, arguments = "", ""
        for chunk in client.chat.completions.create(**request(), stream=True):
            delta = chunk.choices[0].delta
            if delta.tool_calls:
                arguments += delta.tool_calls[0].function.arguments
            else:
                content += delta.content or ""
        assert content and arguments == '{"command": "it\'s"}{"a": 1, "b": 2}'


def test_errors_are_raised(parse: Pair) -> None:
    client = openai.OpenAI(base_url=parse.url + "/v1", api_key="k", max_retries=0)
    with pytest.raises(openai.InternalServerError, match="tool_choice requires a call"):
        client.chat.completions.create(**request("No.", tool_choice="required"))
    with pytest.raises(openai.APIError, match="tool_choice requires a call"):
        list(client.chat.completions.create(**request("No.", tool_choice="required"), stream=True))
    with pytest.raises(openai.BadRequestError, match="'rm'"):
        choice = {"type": "function", "function": {"name": "rm"}}
        client.chat.completions.create(**request(tools=TOOLS, tool_choice=choice))
