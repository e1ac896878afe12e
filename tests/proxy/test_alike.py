"""Chunks like the one before are read and written without the rest: what is sent is what reading all would send."""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lfm2_fixed.proxy import Settings, reply
from lfm2_fixed.proxy.alike import Alike
from lfm2_fixed.proxy.errors import ProxyError
from lfm2_fixed.proxy.modes import _translate
from lfm2_fixed.proxy.reply import ChunkTranslator
from lfm2_fixed.proxy.request import read_request
from lfm2_fixed.wire.sse import SSEDecoder, encode_event, read_chunk
from tests.support.pairs import TOOLS

SETTINGS = Settings("http://127.0.0.1:1", mode="parse")
HEAD = {"id": "c-1", "object": "chat.completion.chunk", "created": 1, "model": "m"}
TEXT = (
    "<think>a b</think>hi <|tool_call_start|>[bash(command='ls \\\\ é\\n'), bash(command='x y')]<|tool_call_end|>"
    ' bye \ud83d {}"\\'
)


def translator() -> ChunkTranslator:
    request = read_request(json.dumps({"messages": [{"role": "user", "content": "x"}], "tools": TOOLS}).encode())
    assert request is not None
    return ChunkTranslator(request, SETTINGS)


def plain(text: str, **fields: Any) -> dict[str, Any]:
    return {
        **HEAD,
        "choices": [{"index": 0, "delta": {"content": text}, "logprobs": None, "finish_reason": None}],
        **fields,
    }


def without_ids(events: Iterable[bytes]) -> list[Any]:
    """What the events say, less the calls' ids, which are drawn."""
    values = [read_chunk(event) for data in events for event in SSEDecoder().feed(data)]
    for value in values:
        for choice in value["choices"]:
            for call in choice["delta"].get("tool_calls", ()):
                call.pop("id", None)
    return values


def check(texts: list[str]) -> None:
    """What is sent for these events is what is sent where each is read as a whole."""
    quick, slow = translator(), translator()
    for text in texts:
        event = SSEDecoder().feed(b"data: %b\n\n" % text.encode())
        step = _translate(event, quick)
        try:
            wanted = [encode_event(sent) for sent in slow.translate(read_chunk(event[0]))]
        except ProxyError as error:
            assert step.error is not None and step.error.message == error.message
            return
        assert step.error is None
        assert without_ids([step.data]) == without_ids(wanted)


@pytest.mark.parametrize("value, code", [('"ls"', None), ("5", "TYPE_MISMATCH")])
def test_what_is_known_again_is_checked_all_the_same(value: str, code: str | None) -> None:
    """The gate gets the arguments whole, however they were read."""
    fields = {"messages": [{"role": "user", "content": "x"}], "tools": TOOLS}
    request = read_request(json.dumps(fields).encode(), gate=True)
    assert request is not None
    quick = ChunkTranslator(request, Settings("http://127.0.0.1:1", mode="parse", gate=True))
    refused = None
    for character in f"<|tool_call_start|>[bash(command={value})]<|tool_call_end|>":
        [event] = SSEDecoder().feed(encode_event(plain(character)))
        step = _translate([event], quick)
        refused = refused or (step.error and step.error.code)
    assert refused == code
    assert quick.calls == (code is None)


def test_what_is_known_again_may_be_a_call_without_its_markers(caplog: pytest.LogCaptureFixture) -> None:
    reply._told.clear()
    quick = translator()
    for character in '[bash(command="ls")]':
        _translate(SSEDecoder().feed(encode_event(plain(character))), quick)
    assert quick.again(json.dumps(plain("."), ensure_ascii=False, separators=(",", ":"))) is not None, "known by now"
    quick.translate(OTHERS["the end"](""))
    assert "strips special" in caplog.text


def test_tokens_are_known_again() -> None:
    """Of a stream as servers write it, all but the first few are read without the rest, and none of those as JSON."""
    read: list[str] = []
    quick = translator()
    texts = [json.dumps(plain(character), separators=(",", ":")) for character in TEXT.replace("\ud83d", "")]
    for text in texts:
        if quick.again(text) is None:
            read.append(text)
            chunk = json.loads(text)
            quick.translate(chunk)
            quick.learn(text, chunk)
    assert len(read) <= 2


OTHERS = {
    "usage in each": lambda text: plain(text, usage={"prompt_tokens": 1}),
    "no usage": lambda text: plain(text, usage=None),
    "another time": lambda text: plain(text, created=2),
    "another choice": lambda text: {**HEAD, "choices": [{"index": 1, "delta": {"content": text}}]},
    "two choices": lambda text: {
        **HEAD,
        "choices": [{"index": index, "delta": {"content": text}, "finish_reason": None} for index in (0, 1)],
    },
    "logprobs": lambda text: {
        **HEAD,
        "choices": [{"index": 0, "delta": {"content": text}, "logprobs": {"content": [{"token": text}]}}],
    },
    "a role": lambda text: {**HEAD, "choices": [{"index": 0, "delta": {"role": "assistant", "content": text}}]},
    "nothing beside": lambda text: {
        **HEAD,
        "choices": [{"index": 0, "delta": {"content": text, "reasoning_content": None, "tool_calls": None}}],
    },
    "thoughts of its own": lambda text: {
        **HEAD,
        "choices": [{"index": 0, "delta": {"reasoning_content": text, "content": text}}],
    },
    "parts": lambda text: {**HEAD, "choices": [{"index": 0, "delta": {"content": [text]}}]},
    "no choice": lambda text: {**HEAD, "choices": []},
    "the end": lambda text: {**HEAD, "choices": [{"index": 0, "delta": {"content": text}, "finish_reason": "stop"}]},
    "an empty reason": lambda text: {
        **HEAD,
        "choices": [{"index": 0, "delta": {"content": text}, "finish_reason": ""}],
    },
    "fields that look alike": lambda text: plain(text, model='"delta":{"content":"x"}', id="\N{BULLET}in place"),
    "the probe": lambda text: plain(text, model="\N{BULLET}in place of the text\N{BULLET}"),
    "a delta elsewhere": lambda text: {"delta": {"content": "x"}, **plain(text)},
}
WRITERS = [
    lambda value: json.dumps(value, separators=(",", ":")),
    lambda value: json.dumps(value),
    lambda value: json.dumps(value, ensure_ascii=False, separators=(",", ":")),
    lambda value: " " + json.dumps(value, indent=1).replace("\n", ""),
]


@settings(max_examples=max(50, settings.default.max_examples // 10))
@given(st.data())
def test_the_same_is_sent(data: st.DataObject) -> None:
    kinds = [plain, plain, plain, *OTHERS.values()]
    write = data.draw(st.sampled_from(WRITERS))
    kind = data.draw(st.sampled_from(kinds))
    texts = []
    at = 0
    while at < len(TEXT) and len(texts) < 60:
        length = data.draw(st.integers(0, 6))
        if data.draw(st.integers(0, 4)) == 0:
            kind = data.draw(st.sampled_from(kinds))
            write = data.draw(st.sampled_from(WRITERS))
        texts.append(write(kind(TEXT[at : at + length])).replace("\ud83d", "\\ud83d"))
        at += length
    check(texts)


@pytest.mark.parametrize(
    "between",
    [
        '"a","delta":"b"',
        '"a"},"finish_reason":"stop","x":{"y":"b"',
        "null",
        "1",
        '["a"]',
        '{"a":"b"}',
        '"a" "b"',
        '"a',
        'a"',
        "",
        ' "a" ',
        '"a\\"',
        '"\\ud83d"',
        '"a\x01"',
    ],
)
def test_what_is_no_string_is_read_as_a_whole(between: str) -> None:
    quick, slow = translator(), translator()
    frame = json.dumps(plain("TEXT"), separators=(",", ":"))
    for text in ("h", "i"):
        data = frame.replace("TEXT", text)
        for one in (quick, slow):
            one.translate(json.loads(data))
        quick.learn(data, json.loads(data))
    assert quick._alike.text(frame.replace("TEXT", "x")) == "x"
    odd = frame.replace('"TEXT"', between)
    [event] = SSEDecoder().feed(b"data: %b\n\n" % odd.encode())
    step = _translate([event], quick)
    try:
        wanted = b"".join(map(encode_event, slow.translate(read_chunk(event))))
    except (ValueError, ProxyError):
        assert step.error is not None
    else:
        assert (step.data, step.error) == (wanted, None)


def test_while_nothing_is_remembered_nothing_is_known_again() -> None:
    assert Alike().text('"x"') is None


def test_after_the_end_of_a_choice_nothing_is_known_again() -> None:
    quick = translator()
    data = json.dumps(plain("x"))
    for _ in range(3):
        quick.translate(json.loads(data))
        quick.learn(data, json.loads(data))
    assert quick.again(data) is not None
    quick.translate(OTHERS["the end"]("y"))
    assert quick.again(data) is None
    with pytest.raises(ProxyError):
        quick.translate(json.loads(data))
