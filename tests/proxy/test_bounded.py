"""Crafted bodies: what they take is bounded by what they are long."""

from __future__ import annotations

import json
import tracemalloc
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lfm2_fixed.proxy import bounded
from lfm2_fixed.proxy.bounded import BadJSON, TooDeep, TooManyValues, read_json
from tests.support.examples import SOME
from tests.support.pairs import TOOLS, Pair, body

SIZE = 2**22
"""Bytes: beyond what any text may hold without being counted, by far."""

CRAFTED: dict[str, Callable[[int], str]] = {
    "lists": lambda n: "[" + "[]," * (n // 3) + "1]",
    "objects": lambda n: "[" + "{}," * (n // 3) + "1]",
    "pairs": lambda n: "[" + '{"":0},' * (n // 7) + "1]",
    "numbers": lambda n: "[" + "1000," * (n // 5) + "1]",
    "texts": lambda n: "[" + '"ab",' * (n // 5) + "1]",
    "keys": lambda n: "{" + ",".join(f'"{i}":1' for i in range(n // 10)) + "}",
    "lists in lists": lambda n: "[" + "[[],[]]," * (n // 8) + "1]",
}
ORDINARY: dict[str, Callable[[int], str]] = {
    "prose": lambda n: json.dumps(["It was, as {they} said, [so]: \"no\"\\, " * (n // 40)]),
    "escapes": lambda n: '["' + r"\\\"\\," * (n // 8) + '"]',
    "many texts": lambda n: json.dumps(["x" * 90] * (n // 100)),
    "one emoji": lambda n: '["' + "a" * n + "\U0001f600" + '"]',
    "a bias for each token": lambda n: json.dumps({"logit_bias": {str(i): -100 for i in range(128_000)}}),
    "sparse": lambda n: "[" + "[]                                                                 ," * (n // 68) + "1]",
}  # fmt: skip


def peak(text: bytes) -> float:
    """Bytes taken at most for each byte of the text, which stays."""
    tracemalloc.start()
    try:
        read_json(text)
    except BadJSON:
        pass
    finally:
        taken = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
    return taken / len(text)


@pytest.mark.parametrize("name", [*CRAFTED, *ORDINARY])
def test_memory_is_bounded_by_the_length(name: str) -> None:
    text = {**CRAFTED, **ORDINARY}[name](SIZE).encode()
    assert peak(text) < 10 + (30 * 2**20) / len(text)


@pytest.mark.parametrize("name", CRAFTED)
def test_crafted_texts_are_refused_and_short_ones_are_not(name: str) -> None:
    with pytest.raises(TooManyValues):
        read_json(CRAFTED[name](SIZE).encode())
    short = CRAFTED[name](90_000)
    assert read_json(short.encode()) == json.loads(short)


@pytest.mark.parametrize("name", ORDINARY)
def test_ordinary_texts_are_read(name: str) -> None:
    text = ORDINARY[name](SIZE)
    assert read_json(text.encode()) == json.loads(text)


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(st.sampled_from('a\\",[{:é\u2028'), max_size=8),
    lambda values: st.lists(values, max_size=5) | st.dictionaries(st.text(max_size=3), values, max_size=5),
    max_leaves=20,
)


@SOME
@given(JSON)
def test_no_value_is_overlooked(value: Any) -> None:
    """Counted marks are never fewer than the values, whatever strings hold, and at most three times as many."""

    def count(value: Any) -> int:
        inner = value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()
        return 1 + sum(map(count, inner))

    text = json.dumps(value, ensure_ascii=False).encode()

    def refused(most: int) -> bool:
        try:
            bounded._check(text, most)
        except TooManyValues:
            return True
        return False

    values = count(value)
    assert refused(values - 2), "the outermost value has no comma, and may have no mark at all"
    assert not refused(3 * values)


@pytest.mark.parametrize(
    "text", [b"", b"{", b'["', b'{"a": tru}', b"\xff", b'"' + b"," * 400_000, b"[" + b'"\\' * 300_000]
)
def test_what_is_no_json(text: bytes) -> None:
    with pytest.raises(BadJSON):
        read_json(text)


@pytest.mark.parametrize("encoding", ["utf-8-sig", "utf-16", "utf-16-be", "utf-32-le"])
def test_every_encoding_that_servers_read(encoding: str) -> None:
    assert read_json('{"a\\"": ["é\U0001f600"]}'.encode(encoding)) == {'a"': ["é\U0001f600"]}
    with pytest.raises(TooManyValues):
        read_json(CRAFTED["texts"](SIZE).encode(encoding))


@pytest.mark.parametrize("end", ['"', '"\\', "x", ""])
def test_crafted_texts_that_are_no_json(end: str) -> None:
    with pytest.raises(TooManyValues):
        read_json(("[" + "[]," * (SIZE // 3) + end).encode())


def test_what_is_too_deep() -> None:
    with pytest.raises(TooDeep):
        read_json(b"[" * 100_000)


def test_a_crafted_request_is_refused(parse: Pair, buffer: Pair) -> None:
    request = json.dumps({**body("Hi"), "tools": [*TOOLS, 0]}).replace(", 0]", f", {CRAFTED['lists'](SIZE)}]")
    for pair in (parse, buffer):
        before = len(pair.upstream.requests)
        answer = pair.client.post("/v1/chat/completions", content=request)
        assert answer.status_code == 413 and "too many values" in answer.json()["error"]["message"]
        assert len(pair.upstream.requests) == before


def test_a_large_ordinary_request_is_answered(parse: Pair) -> None:
    picture = {"type": "image_url", "image_url": {"url": "data:image/png;base64," + "A" * SIZE}}
    request = body("Hi")
    request["messages"].insert(0, {"role": "user", "content": [picture]})
    assert parse.client.post("/v1/chat/completions", json=request).json()["choices"][0]["message"]["content"] == "Hi"


def test_a_body_in_tiny_pieces(parse: Pair) -> None:
    content = json.dumps(body("Hi")).encode()
    answer = parse.client.post("/v1/chat/completions", content=iter([content[i : i + 1] for i in range(len(content))]))
    assert answer.json()["choices"][0]["message"]["content"] == "Hi"


@pytest.mark.parametrize(
    ("text", "marks"),
    [
        (b' ["a,b,c,d"]', 2),
        (b'"a,b,c,d"', 1),
        (b'{"a,b":[1,"c,d"]}', 5),
        (rb'["\\", ",\"[,"]', 4),
        (b'[1,"a,b', 3),
    ],
)
def test_marks_are_counted_exactly(text: bytes, marks: int) -> None:
    """An opening bracket, a comma and a string are one each, and what is in a string is none."""
    bounded._check(text, marks)
    with pytest.raises(bounded.TooManyValues):
        bounded._check(text, marks - 1)
