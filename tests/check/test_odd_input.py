"""Whatever stands in a capture, check ends in a verdict or a sentence: nothing raw on the terminal, and no crash."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from lfm2_fixed.check import verdict as verdicts
from tests.support.answers import (
    TOOLS,
    chat_frames,
    chat_whole,
    sse,
)
from tests.support.bench import REQUEST, Bench

MOVE = ("move", '{"lat": 10.5}')

NASTY = "\x1b[2J\x07\r\nall is well\u202e"


@pytest.mark.parametrize(
    "frames",
    [
        chat_frames([("move", json.dumps({"lat": 1, NASTY: 2}))]),
        chat_frames([("move", json.dumps({NASTY: 2}))]),
        chat_frames([(NASTY, "{")]),
        chat_frames([MOVE], finish=NASTY),
        chat_frames([], content=f"{NASTY}<tool_call>{NASTY}", finish="stop"),
        [*chat_frames([MOVE])[:-1], {"error": {"message": NASTY, "code": NASTY}}],
        chat_frames([("move", json.dumps({"lat": 1, "k" * 5_000: 2}))]),
    ],
)
def test_nothing_that_others_wrote_reaches_the_terminal_raw(bench: Bench, frames: list[Any]) -> None:
    other = bench.file("w.json", chat_whole([("move", json.dumps({NASTY: NASTY}))]))
    for more in ([], ["--whole", other]):
        result = bench.capture(frames, *more)
        assert result.exit_code in (1, 2)
        for line in (result.stdout + result.stderr).split("\n"):
            assert line.isprintable() and len(line) < 2_000, line


def test_a_crash_is_unusable_and_never_corrupted(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    def crash(*arguments: Any) -> None:
        raise ZeroDivisionError("secret")

    monkeypatch.setattr(verdicts, "from_transport", crash)
    result = bench.capture(chat_frames([MOVE]))
    assert (result.exit_code, result.stdout) == (2, "") and result.stderr.count("\n") == 1
    assert "ZeroDivisionError" in result.stderr and "secret" not in result.stderr
    as_json = bench.capture(chat_frames([MOVE]), "--json")
    assert as_json.exit_code == 2 and json.loads(as_json.stdout)["clean"] is None


DEEP = b'{"a":' * 1_000 + b"1" + b"}" * 1_000
DEEP_LIST = b"[" * 1_000 + b"]" * 1_000
SCALARS = st.none() | st.booleans() | st.integers(-2, 3) | st.floats() | st.sampled_from(["", "a", "move", NASTY])
KEYS = st.sampled_from(["index", "id", "type", "function", "name", "arguments", "choices", "delta", "tool_calls"])
ANYTHING = st.recursive(SCALARS, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(KEYS, inner, max_size=3))
HOLE = '"@@"'


def texts(value: Any) -> list[str]:
    """The JSON of a value with a hole in place of each part in turn."""
    found = []

    def walk(node: Any, put: Any) -> None:
        found.append(json.dumps(put("@@")))
        if isinstance(node, dict):
            for key, inner in node.items():
                walk(inner, lambda new, key=key, node=node, put=put: put({**node, key: new}))
        elif isinstance(node, list):
            for at, inner in enumerate(node):
                walk(inner, lambda new, at=at, node=node, put=put: put([*node[:at], new, *node[at + 1 :]]))

    walk(value, lambda new: new)
    return found


CHUNKS = [text for frame in chat_frames([MOVE])[:4] for text in texts(frame)]
FILES = {
    "--whole": texts(chat_whole([MOVE])),
    "--seen": texts({"calls": [{"id": "a", "function": {"name": "move", "arguments": "{}"}}]}),
    "--tools": texts({"temperature": 0, "tools": [TOOLS[1], {"type": "namespace", "name": "n", "tools": [TOOLS[2]]}]}),
}


@settings(
    max_examples=max(60, settings.default.max_examples // 20),
    suppress_health_check=[HealthCheck.function_scoped_fixture, *HealthCheck],
)
@given(data=st.data())
def test_any_value_in_any_place_ends_in_a_verdict_or_a_sentence(bench: Bench, data: st.DataObject) -> None:
    def filled(holes: list[str]) -> bytes:
        value = data.draw(st.sampled_from([DEEP, DEEP_LIST]) | ANYTHING.map(lambda v: json.dumps(v).encode()))
        return data.draw(st.sampled_from(holes)).encode().replace(HOLE.encode(), value)

    where = data.draw(st.sampled_from(["stream", *FILES]))
    stream = sse(chat_frames([MOVE]))
    arguments: list[str] = []
    bench.asked(REQUEST)
    if where == "stream":
        first, rest = stream.split(b"\n\n", 1)
        stream = b"data: " + filled(CHUNKS) + b"\n\n" + data.draw(st.sampled_from([stream, rest, b""]))
        arguments = ["--seen", bench.file("seen.json", [{"name": "move", "arguments": MOVE[1]}])]
    elif where == "--tools":
        bench.file("request.json", filled(FILES["--tools"]))
    else:
        arguments = [where, bench.file("other.json", filled(FILES[where]))]
    result = bench.capture(stream, "--random", "0", *arguments)
    assert result.exit_code in (0, 1, 2) and "The check itself failed" not in result.output, result.output
    if result.exit_code == 2:
        assert result.stdout == "" and result.stderr.count("\n") == 1


@pytest.mark.parametrize(
    "chunk",
    [
        b'{"choices": [{"index": 0, "delta": {"tool_calls": [{"index": [0]}]}}]}',
        b'{"choices": [{"index": {}, "delta": {}}]}',
        b'{"choices": [null]}',
        b'{"choices": null}',
        b'{"type": {}}',
        b'{"type": "response.output_item.added", "output_index": 0, "item": {"type": {}}}',
        b'{"type": "content_block_start", "index": [0], "content_block": {"type": "tool_use"}}',
        b'{"type": "content_block_start", "index": 0, "content_block": null}',
        b'{"type": "message_delta", "delta": null}',
        b'{"error": [[]]}',
        b"null",
        b"[]",
        DEEP,
        b'{"choices": [{"index": 0, "delta": {"tool_calls": [{"index": 0, "function": ' + DEEP + b"}]}}]}",
    ],
    ids=lambda chunk: chunk[:60].decode(),
)
def test_odd_chunks_end_in_a_verdict(bench: Bench, chunk: bytes) -> None:
    seen = bench.file("seen.json", [{"name": "move", "arguments": "{}"}])
    for stream in (b"data: " + chunk + b"\n\n", b"data: " + chunk + b"\n\n" + sse(chat_frames([MOVE]))):
        result = bench.run(bench.file("s.sse", stream), "--seen", seen)
        assert result.exit_code in (1, 2) and "itself failed" not in result.output, result.output
