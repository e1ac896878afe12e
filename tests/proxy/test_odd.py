"""Chunks, replies and requests with anything anywhere: they are read or refused, and nothing else happens."""

from __future__ import annotations

import copy
import json
import random
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lfm2_fixed.proxy import Settings, as_stream
from lfm2_fixed.proxy.errors import ProxyError, UpstreamError
from lfm2_fixed.proxy.modes import _translate
from lfm2_fixed.proxy.reply import ChunkTranslator, holds_markers, translate_reply
from lfm2_fixed.proxy.request import Request, raw_text_request, read_request, whole_reply_request
from lfm2_fixed.proxy.upstream import UNCERTAIN
from lfm2_fixed.wire.sse import SSEDecoder, encode_event
from tests.support.pairs import TOOLS, chunk

ODD: list[Any] = [
    None, True, False, 0, -1, 1, 1.5, 1e300, "", "x", "stop", "\ud800", [], [None], [[]], {}, {"": None}, {"index": 0},
    [{"index": 0}], {"name": "bash"}, [{"function": None}], {"content": 1},
]  # fmt: skip
CALL = {"index": 0, "id": "a", "type": "function", "function": {"name": "bash", "arguments": '{"command": "ls"}'}}
TEXT = '<think>hm</think>a <|tool_call_start|>[bash(command="ls")]<|tool_call_end|>'
BODY = {
    "model": "m", "messages": [{"role": "user", "content": "Hi"}], "tools": TOOLS, "stream": True, "n": 1,
    "tool_choice": {"type": "function", "function": {"name": "bash"}}, "parallel_tool_calls": False,
    "stream_options": {"include_usage": True},
}  # fmt: skip


def places(value: Any, path: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    """The paths of all values in a value."""
    inner = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    return [path] * bool(path) + [found for key, member in inner for found in places(member, (*path, key))]


def spoiled(value: Any, rng: random.Random) -> Any:
    """The value with some of its values replaced, removed or doubled."""
    value = copy.deepcopy(value)
    for _ in range(rng.choice((0, 1, 1, 2))):
        *path, last = rng.choice(places(value))
        place = value
        for step in path:
            place = place[step]
        if isinstance(place, list) and rng.random() < 0.2:
            place.append(copy.deepcopy(place[last]))
        elif isinstance(place, dict) and rng.random() < 0.2:
            del place[last]
        else:
            place[last] = copy.deepcopy(rng.choice(ODD))
    return value


def request(gate: bool, **fields: Any) -> Request:
    read = read_request(json.dumps({"messages": [], "tools": TOOLS, **fields}).encode(), gate=gate)
    assert read is not None
    return read


REQUESTS = {
    (gate, choice): request(gate, **({"tool_choice": choice} if choice else {}))
    for gate in (False, True)
    for choice in (None, "required", "none")
}
FEW = settings(max_examples=max(200, settings.default.max_examples // 4))
CASES = {"seed": st.integers(0, 2**48), "gate": st.booleans(), "choice": st.sampled_from([None, "required", "none"])}


@FEW
@given(**CASES)
def test_chunks(seed: int, gate: bool, choice: str | None) -> None:
    rng = random.Random(seed)
    chunks = [
        chunk({"role": "assistant", "reasoning_content": "so"}),
        chunk(TEXT[:40]),
        chunk({"tool_calls": [CALL]}),
        chunk(TEXT[40:], logprobs={}),
    ]
    chunks = rng.sample(chunks, 3) + [chunk({}, "stop", stop_reason=7), {"choices": [], "usage": {"total_tokens": 1}}]
    data = b"".join(encode_event(spoiled(event, rng)) for event in chunks) + b"data: [DONE]\n\n"
    translator = ChunkTranslator(REQUESTS[gate, choice], Settings("http://x", gate=gate))
    step = _translate(SSEDecoder().feed(data), translator)
    assert step.done is (step.error is None)
    for event in SSEDecoder().feed(step.data):
        sent = json.loads(event.data)
        for part in sent.get("choices") or []:
            assert isinstance(part["index"], int) and isinstance(part["delta"], dict)
            assert part["finish_reason"] is None or (part["finish_reason"] and isinstance(part["finish_reason"], str))


@FEW
@given(**CASES)
def test_replies(seed: int, gate: bool, choice: str | None) -> None:
    rng = random.Random(seed)
    message = {"role": "assistant", "content": TEXT, "tool_calls": [CALL], "reasoning_content": "hm", "x": 1}
    for key in rng.sample(["tool_calls", "content", "reasoning_content"], rng.randrange(3)):
        del message[key]
    reply = {"id": "r", "choices": [{"index": 0, "message": message, "finish_reason": "stop"}], "usage": {}}
    reply = spoiled(reply, rng)
    asked, known = REQUESTS[gate, choice], Settings("http://x", gate=gate)
    for work in (
        lambda reply: translate_reply(reply, asked, known),
        lambda reply: (holds_markers(reply, known), translate_reply(reply, asked, known, marked=True)),
        lambda reply: as_stream.check_reply(reply, asked),
        lambda reply: list(map(encode_event, as_stream.chunks(reply, asked))),
    ):
        try:
            work(copy.deepcopy(reply))
        except ProxyError as error:
            assert error.status == 502 and error.body()["error"]


@FEW
@given(seed=st.integers(0, 2**48), gate=st.booleans())
def test_requests(seed: int, gate: bool) -> None:
    raw = json.dumps(spoiled(BODY, random.Random(seed))).encode()
    try:
        read = read_request(raw, gate=gate)
    except ProxyError as error:
        assert error.status == 400
        return
    if read is not None:
        for kind in (UNCERTAIN,):
            assert json.loads(raw_text_request(read, kind, {}))["tool_choice"] == "none"
        assert json.loads(whole_reply_request(read))["stream"] is False
        ChunkTranslator(read, Settings("http://x", gate=gate)).translate(chunk(TEXT[:30]))


@pytest.mark.parametrize("said", [*ODD, *({"error": value} for value in ODD), {"message": "m"}], ids=repr)
def test_an_error_says_something(said: Any) -> None:
    assert UpstreamError(said).body()["error"]
    assert UpstreamError({"message": "m"}).body() == {"error": {"message": "m"}}


@pytest.mark.parametrize("value", ODD, ids=repr)
def test_an_event_that_is_one_odd_value(value: Any) -> None:
    translator = ChunkTranslator(REQUESTS[False, None], Settings("http://x"))
    _translate(SSEDecoder().feed(encode_event(value)), translator)
    assert not translator.complete
