"""The official clients, and such as are careless, work unchanged, and notice what broke."""

from __future__ import annotations

import asyncio
import json
from typing import Any

import httpx
import pytest

from tests.support.pairs import TOOLS, Pair, body, chunk, sse

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
        for part in client.chat.completions.create(**request(), stream=True):
            delta = part.choices[0].delta
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


# ---- what broke, as the clients see it

MESSAGE = [
    {"type": "message_start",
     "message": {"id": "m", "type": "message", "role": "assistant", "content": [], "model": "m", "stop_reason": None,
                 "stop_sequence": None, "usage": {"input_tokens": 1, "output_tokens": 1}}},
    {"type": "content_block_start", "index": 0,
     "content_block": {"type": "tool_use", "id": "t", "name": "bash", "input": {}}},
    *({"type": "content_block_delta", "index": 0, "delta": {"type": "input_json_delta", "partial_json": part}}
      for part in ('{"command": ', '"rm -r /tmp', '/x"}')),
    {"type": "content_block_stop", "index": 0},
    {"type": "message_delta", "delta": {"stop_reason": "tool_use", "stop_sequence": None},
     "usage": {"output_tokens": 9}},
    {"type": "message_stop"},
]  # fmt: skip


def messages(upto: int, **script: Any) -> dict[str, Any]:
    """A request to Anthropic's client, answered with the first events of a message."""
    lines = [f"event: {event['type']}\ndata: {json.dumps(event)}\n\n" for event in MESSAGE[:upto]]
    script = {"raw": lines, "headers": {"content-type": "text/event-stream"}, **script}
    return {"model": "m", "max_tokens": 9, "messages": [{"role": "user", "content": json.dumps(script)}]}


def test_anthropics_client_notices_a_stream_that_broke(parse: Pair, start: Any) -> None:
    anthropic = pytest.importorskip("anthropic", reason="needs the anthropic client")

    def read(pair: Pair, request: dict[str, Any]) -> Any:
        client = anthropic.Anthropic(base_url=pair.url, api_key="k", max_retries=0)
        with client.messages.stream(**request) as stream:
            return stream.get_final_message()

    message = read(parse, messages(len(MESSAGE)))
    assert message.content[0].input == {"command": "rm -r /tmp/x"} and message.stop_reason == "tool_use"
    silent = start(read_timeout=0.5)
    for upto in range(len(MESSAGE)):
        for pair, request in ((parse, messages(upto, die=1)), (silent, hanging(upto))):
            with pytest.raises(Exception, match="incomplete chunked read") as caught:
                read(pair, request)
            assert type(caught.value).__name__ == "RemoteProtocolError"  # of httpx or its successor


def hanging(upto: int) -> dict[str, Any]:
    """The same events, and then silence."""
    request = messages(upto)
    script = json.loads(request["messages"][0]["content"])
    script = {**script, "raw": ["".join(script["raw"]), "never"], "pause": 3600}
    return {**request, "messages": [{"role": "user", "content": json.dumps(script)}]}


def test_openais_client_notices_a_stream_that_broke(parse: Pair) -> None:
    text = "Look: <|tool_call_start|>[bash(command='ls')]<|tool_call_end|>"
    chunks = [chunk({"role": "assistant", "content": ""}), *(chunk(text[at : at + 9]) for at in range(0, len(text), 9))]
    client = openai.OpenAI(base_url=parse.url + "/v1", api_key="k", max_retries=0)
    for tools in (TOOLS, openai.NOT_GIVEN):
        for upto in range(len(chunks) + 1):
            for die in ({"die": 1}, {}) if tools is TOOLS else ({"die": 1},):
                script = sse(*chunks[:upto], done=False, **die)
                sent = {**body(script), "tools": tools}
                with pytest.raises((openai.APIError, httpx.TransportError)):
                    list(client.chat.completions.create(**sent, stream=True))
                with (
                    pytest.raises((openai.APIError, httpx.TransportError)),
                    client.chat.completions.stream(**sent) as stream,
                ):
                    stream.get_final_completion()


def test_openais_client_finishes_what_the_upstream_only_ended(parse: Pair) -> None:
    client = openai.OpenAI(base_url=parse.url + "/v1", api_key="k", max_retries=0)
    for reason in (None, "", "eos"):
        script = sse(*(chunk(text, reason if reason == "" else None) for text in TEXT), chunk({}, reason))
        with client.chat.completions.stream(**body(script)) as stream:
            choice = stream.get_final_completion().choices[0]
        assert choice.finish_reason == "tool_calls" and calls_of(choice.message) == CALLS
