"""What is not known to be right is refused: endings, blocks, identities and shapes of other people's streams."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lfm2_fixed.gate import CallsRefused, Code, Gate, Issue, Turn, assemble, from_response, validate
from tests.support.answers import TOOLS, chat_chunk, chat_frames, chat_whole, messages_frames, responses_frames

MOVE = ("move", '{"lat": 1.5}')
CALLS = [MOVE, ("ping", "{}")]


def codes(turn: Turn, tools: Any = TOOLS) -> list[tuple[str, int | None]]:
    return [(str(issue.code), issue.call) for issue in validate(turn, tools)]


# --- how a turn ends ----------------------------------------------------------------------------


def ended(protocol: str, reason: Any) -> Turn:
    if protocol == "chat":
        return assemble(chat_frames(CALLS, finish=reason))
    if protocol == "messages":
        frames = messages_frames(CALLS)
        frames[-2]["delta"]["stop_reason"] = reason
        return assemble(frames)
    frames = responses_frames(CALLS)
    return assemble([*frames[:-1], {**frames[-1], "type": f"response.{reason}"}])


@pytest.mark.parametrize(
    ("protocol", "reasons"),
    [
        ("chat", ["stop", "tool_calls", "function_call"]),
        ("messages", ["end_turn", "tool_use", "stop_sequence"]),
        ("responses", ["completed"]),
    ],
)
def test_these_reasons_alone_end_a_turn_well(protocol: str, reasons: list[str]) -> None:
    for reason in reasons:
        assert codes(ended(protocol, reason)) == []


@pytest.mark.parametrize(
    ("protocol", "reason"),
    [
        *(("chat", reason) for reason in (
            "length", "content_filter", "abort", "error", "repetition", "max_tokens", "network_error", "model_length",
            "eos", "Stop", "tool_use", "completed", "a word of tomorrow", "", None,
        )),
        *(("messages", reason) for reason in (
            "max_tokens", "pause_turn", "refusal", "model_context_window_exceeded", "stop", "tool_calls", "x", "", None,
        )),
        *(("responses", reason) for reason in ("incomplete", "failed", "cancelled", "in_progress", "x")),
    ],
)  # fmt: skip
def test_every_other_reason_refuses_the_turn(protocol: str, reason: Any) -> None:
    assert codes(ended(protocol, reason)) == [("INCOMPLETE", None)]


def test_an_empty_reason_on_every_chunk_is_none() -> None:
    frames = chat_frames(CALLS)
    for frame in frames[:-1]:
        frame["choices"][0]["finish_reason"] = ""
    assert codes(assemble(frames)) == []
    cut = next(i for i, f in enumerate(frames) if "ping" in str(f))  # before the second call
    assert codes(assemble(frames[:cut])) == [("INCOMPLETE", None)]


@pytest.mark.parametrize("reasons", [("length", "stop"), ("stop", "length"), ("abort", "tool_calls")])
def test_of_two_reasons_the_bad_one_counts(reasons: tuple[str, str]) -> None:
    frames = [*chat_frames(CALLS, finish=reasons[0]), chat_chunk({}, reasons[1])]
    assert codes(assemble(frames)) == [("INCOMPLETE", None)]


@pytest.mark.parametrize("reason", ["abort", "", None, "a word of tomorrow"])
def test_whole_answers_end_by_the_same_rule(reason: Any) -> None:
    whole = chat_whole(CALLS)
    whole["choices"][0]["finish_reason"] = reason
    assert codes(from_response(whole)) == [("INCOMPLETE", None)]
    message = {"role": "assistant", "content": [], "stop_reason": reason}
    assert codes(from_response(message)) == [("INCOMPLETE", None)]
    assert codes(from_response({"output": [], "status": reason})) == [("INCOMPLETE", None)]


@pytest.mark.parametrize("nothing", [None, "", {}, False])
def test_an_error_that_is_empty_is_none(nothing: Any) -> None:
    assert codes(assemble([{**frame, "error": nothing} for frame in chat_frames(CALLS)])) == []
    assert codes(from_response({**chat_whole(CALLS), "error": nothing})) == []


# --- Anthropic's blocks -------------------------------------------------------------------------


def blocks(*kinds: Any) -> list[dict[str, Any]]:
    frames: list[dict[str, Any]] = [{"type": "message_start", "message": {}}]
    for index, (kind, name, text) in enumerate(kinds):
        block = {"type": kind, "id": f"t{index}", "name": name, "input": {}}
        frames.append({"type": "content_block_start", "index": index, "content_block": block})
        delta = {"type": "input_json_delta", "partial_json": text}
        frames.append({"type": "content_block_delta", "index": index, "delta": delta})
        frames.append({"type": "content_block_stop", "index": index})
    return [*frames, {"type": "message_delta", "delta": {"stop_reason": "tool_use"}}]


@pytest.mark.parametrize("kind", ["server_tool_use", "mcp_tool_use", "a_block_of_tomorrow"])
def test_the_input_of_other_blocks_is_no_call(kind: str) -> None:
    turn = assemble(blocks((kind, "move", '{"lat": "x'), ("tool_use", *MOVE)))
    assert [(call.name, call.arguments) for call in turn] == [MOVE] and codes(turn) == []
    whole = {"role": "assistant", "stop_reason": "tool_use", "content": [
        {"type": kind, "id": "s", "name": "move", "input": {"lat": "x"}},
        {"type": "tool_use", "id": "t1", "name": "move", "input": {"lat": 1.5}},
    ]}  # fmt: skip
    assert from_response(whole).calls == turn.calls and codes(from_response(whole)) == []


@pytest.mark.parametrize("kind", ["text", "thinking", "redacted_thinking"])
def test_input_under_a_block_that_takes_none_belongs_to_a_lost_call(kind: str) -> None:
    assert codes(assemble(blocks((kind, "move", "{}"), ("tool_use", *MOVE)))) == [("MALFORMED_STREAM", None)]


def test_anthropics_tools() -> None:
    tools = [
        {"type": "custom", "name": "move", "input_schema": {"type": "object", "required": ["lat"]}},
        {"type": "bash_20250124", "name": "bash"},
        {"type": "text_editor_20250728", "name": "str_replace_based_edit_tool"},
        {"type": "computer_20250124", "name": "computer", "display_width_px": 1, "display_height_px": 1},
        {"type": "memory_20250818", "name": "memory"},
        {"type": "web_search_20250305", "name": "web_search"},
    ]
    for name in ("bash", "str_replace_based_edit_tool", "computer", "memory"):
        assert codes(assemble(blocks(("tool_use", name, '{"anything": [1]}'))), tools) == []
        assert codes(assemble(blocks(("tool_use", name, "[1]"))), tools) == [("ARGUMENTS_NOT_OBJECT", 0)]
    assert codes(assemble(blocks(("tool_use", "move", "{}"))), tools) == [("MISSING_REQUIRED", 0)]
    # A built-in tool with a name is no declared function.
    assert codes(assemble(blocks(("tool_use", "web_search", "{}"))), tools) == [("UNKNOWN_TOOL", 0)]


# --- which call is which ------------------------------------------------------------------------


def entry(index: int = 0, identity: Any = "a", name: Any = "ping", arguments: Any = "{}") -> dict[str, Any]:
    return {"index": index, "id": identity, "type": "function", "function": {"name": name, "arguments": arguments}}


def chat(*entries: dict[str, Any]) -> Turn:
    return assemble([*(chat_chunk({"tool_calls": [e]}) for e in entries), chat_chunk({}, "tool_calls")])


@pytest.mark.parametrize(
    "turn",
    [
        chat(entry(), entry(identity="b", arguments="")),  # two ids on one index
        chat(entry(), entry(identity=None, name="move", arguments="")),  # two names
        chat(entry(arguments="{"), entry(arguments="}")),  # everything in every chunk
        chat(entry(arguments="{"), entry(identity=None, arguments="}")),  # the name again
        chat(entry(arguments="{"), entry(name=None, arguments="}")),  # the id again
        chat(entry(identity=None)),
        chat(entry(identity="")),
        chat(entry(name="")),
        chat(entry(identity=3)),
        chat({"index": 0, "id": "a"}),
    ],
)
def test_a_call_without_one_identity_is_a_broken_stream(turn: Turn) -> None:
    found = validate(turn, TOOLS)
    assert (Code.MALFORMED_STREAM, 0) in [(issue.code, issue.call) for issue in found]
    assert not any("pingping" in issue.message or "aa" in issue.message for issue in found)


def test_empty_strings_and_nulls_after_the_first_piece_are_nothing() -> None:
    assert codes(chat(entry(arguments="{"), entry(identity="", name=None, arguments="}"))) == []


def test_a_fault_that_comes_again_in_each_chunk_is_said_once() -> None:
    turn = chat(*(entry(arguments="") for _ in range(5000)), entry(arguments="{}"))
    assert len(turn.problems) == 2
    odd = [chat_chunk({"tool_calls": [entry(index=7 * n)]}) for n in range(1, 2000)]
    assert len(assemble([*odd, chat_chunk({}, "stop")]).problems) <= 100


def test_missing_ids_in_the_other_protocols() -> None:
    frames = json.loads(json.dumps(responses_frames([MOVE])).replace('"call_id": "call_0"', '"call_id": null'))
    assert ("MALFORMED_STREAM", 0) in codes(assemble(frames))
    frames = json.loads(json.dumps(messages_frames([MOVE])).replace('"id": "toolu_0"', '"id": ""'))
    assert codes(assemble(frames)) == [("MALFORMED_STREAM", 0)]


def test_two_turns_in_one_stream_are_a_broken_one() -> None:
    assert ("MALFORMED_STREAM", None) in codes(assemble([*messages_frames([MOVE]), *messages_frames([])]))
    assert ("MALFORMED_STREAM", None) in codes(assemble([*messages_frames([MOVE]), *chat_frames([])]))
    assert ("MALFORMED_STREAM", None) in codes(assemble([*responses_frames([MOVE]), *chat_frames([])]))


def test_arguments_after_the_end_of_a_call() -> None:
    frames = messages_frames([MOVE])
    late = {"type": "content_block_delta", "index": 0, "delta": {"type": "input_json_delta", "partial_json": " "}}
    assert codes(assemble([*frames[:-2], late, *frames[-2:]])) == [("MALFORMED_STREAM", 0)]


def test_a_namespace_is_part_of_a_calls_name() -> None:
    def namespace(name: str, kind: str) -> dict[str, Any]:
        schema = {"type": "object", "properties": {"id": {"type": kind}}, "required": ["id"]}
        return {
            "type": "namespace",
            "name": name,
            "tools": [{"type": "function", "name": "lookup", "parameters": schema}],
        }

    tools = [namespace("crm", "string"), namespace("erp", "integer")]

    def called(arguments: str, **more: Any) -> Turn:
        item = {"type": "function_call", "call_id": "c", "name": "lookup", "arguments": arguments, **more}
        return from_response({"status": "completed", "output": [item]})

    assert codes(called('{"id": "x"}', namespace="crm"), tools) == []
    assert codes(called('{"id": 3}', namespace="erp"), tools) == []
    assert codes(called('{"id": 3}', namespace="crm"), tools) == [("TYPE_MISMATCH", 0)]
    assert codes(called('{"id": 3}', name="erp__lookup"), tools) == []
    assert codes(called('{"id": 3}', namespace="other"), tools) == [("UNKNOWN_TOOL", 0)]
    assert codes(called('{"id": 3}'), tools) == [("UNKNOWN_TOOL", 0)]  # which?
    assert codes(called('{"id": "x"}'), tools[:1]) == []  # only one
    (verified,) = Gate(tools).check(called('{"id": 3}', namespace="erp"))
    assert (verified.namespace, verified.name) == ("erp", "lookup")
    with pytest.raises(CallsRefused) as caught:
        Gate(tools).check(called('{"id": 3}', namespace="crm"))
    assert caught.value.messages()[0]["namespace"] == "crm"


# --- what leaves the gate -----------------------------------------------------------------------

NASTY = "\x1b[2J\x07\r\nINFO all is well\u202e\ud800"


@pytest.mark.parametrize(
    "turn",
    [
        chat(entry(name=f"x{NASTY}")),
        chat(entry(name="move", arguments=json.dumps({"lat": 1, NASTY: 2}))),
        chat(entry(name="move", arguments=json.dumps({"lat": NASTY}))),
        chat(entry(identity=NASTY, name="move")),
        assemble(chat_frames([MOVE], finish=NASTY)),
        assemble([*chat_frames([MOVE]), {"error": {"message": NASTY, "code": NASTY}}]),
        assemble([*chat_frames([("move", "{")], content=NASTY)]),
        assemble(messages_frames([("move", json.dumps({NASTY: NASTY}))])),
        assemble(responses_frames([(NASTY, NASTY)])),
    ],
)
def test_nothing_leaves_a_refusal_raw_or_unsendable(turn: Turn) -> None:
    with pytest.raises(CallsRefused) as caught:
        Gate(TOOLS, show_values=True).check(turn)
    for said in (str(caught.value), repr(caught.value), *map(str, caught.value.issues)):
        assert said.isprintable(), said
    for sent in (caught.value.messages(), caught.value.tool_results()):
        json.dumps(sent, ensure_ascii=False).encode()  # raises for a lone surrogate


def test_ids_that_have_no_utf8_form_still_name_one_call_each() -> None:
    with pytest.raises(CallsRefused) as caught:
        Gate(TOOLS).check(chat(entry(identity="\ud800", name="move"), entry(1, "\ud801", "move")))
    said, *results = caught.value.messages()
    ids = [call["id"] for call in said["tool_calls"]]
    assert len(set(ids)) == 2 and ids == [result["tool_call_id"] for result in results]


def test_a_long_text_of_somebody_else_is_shortened() -> None:
    turn = assemble([{"error": {"message": "x" * 10_000_000}}])
    with pytest.raises(CallsRefused) as caught:
        Gate(TOOLS).check(turn)
    assert len(str(caught.value)) < 1_000
    key = "k" * 100_000
    assert len(str(Issue(Code.DUPLICATE_KEY, 0, f"/{key}", "twice"))) < 1_000


def test_the_answer_to_a_custom_tool_is_of_its_kind() -> None:
    item = {"type": "custom_tool_call", "call_id": "c", "name": "sh", "input": "ls"}
    turn = from_response({"status": "incomplete", "output": [item]})
    with pytest.raises(CallsRefused) as caught:
        Gate([{"type": "custom", "name": "sh"}]).check(turn)
    assert [part["type"] for part in caught.value.messages()] == ["custom_tool_call", "custom_tool_call_output"]


def test_the_models_text_stays_in_the_history() -> None:
    said = {"type": "message", "content": [{"type": "output_text", "text": "I look."}]}
    call = {"type": "function_call", "call_id": "c", "name": "move", "arguments": "{}"}
    with pytest.raises(CallsRefused) as caught:
        Gate(TOOLS).check(from_response({"status": "completed", "output": [said, call]}))
    text, *_ = caught.value.messages()
    assert text == {"type": "message", "role": "assistant", "content": "I look."}


# --- any shape ----------------------------------------------------------------------------------

SCALARS = (
    st.none() | st.booleans() | st.integers(-2, 3) | st.floats() | st.sampled_from(["", "a", "move", NASTY, "\x00"])
)
KEYS = st.sampled_from(["index", "id", "type", "function", "name", "arguments", "text", "delta", "input"])
ANYTHING = st.recursive(SCALARS, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(KEYS, inner, max_size=3))
DEEP: Any = {}
for _ in range(1_000):
    DEEP = {"input": DEEP, "index": [0]}
VALUES = ANYTHING | st.just(DEEP) | st.just([[]])


def places(value: Any, path: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    """Where in a JSON value something can be put in place of what is there."""
    found = [path]
    items = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, inner in items:
        found += places(inner, (*path, key))
    return found


def put(value: Any, path: tuple[Any, ...], new: Any) -> Any:
    if not path:
        return new
    copy = dict(value) if isinstance(value, dict) else list(value)
    copy[path[0]] = put(copy[path[0]], path[1:], new)
    return copy


STREAMS = {
    "chat": chat_frames(CALLS, content="Well"),
    "responses": responses_frames(CALLS),
    "messages": messages_frames(CALLS),
    "legacy": [chat_chunk({"function_call": {"name": "ping", "arguments": "{}"}}), chat_chunk({}, "function_call")],
}
PLACES = {name: [p for p in places(frames) if p] for name, frames in STREAMS.items()}


@settings(max_examples=max(200, settings.default.max_examples // 3))
@given(st.data(), st.sampled_from(sorted(STREAMS)))
def test_any_value_in_any_place_is_judged(data: st.DataObject, name: str) -> None:
    frames = STREAMS[name]
    for _ in range(data.draw(st.integers(1, 3))):
        path = data.draw(st.sampled_from(PLACES[name]))
        try:
            frames = put(frames, path, data.draw(VALUES))
        except (KeyError, IndexError, TypeError):  # an earlier change took the place away
            continue
    gate = Gate(TOOLS)
    for frame in frames:
        gate.feed(frame)
    try:
        calls = gate.calls()
    except CallsRefused as refused:
        assert str(refused).isprintable()
        json.dumps(refused.messages(), ensure_ascii=False).encode()
    else:
        assert all(call.name in ("move", "ping") and isinstance(call.arguments, dict) for call in calls)


@settings(max_examples=max(100, settings.default.max_examples // 6))
@given(st.data(), VALUES)
def test_any_value_in_a_whole_answer_is_judged(data: st.DataObject, value: Any) -> None:
    whole = data.draw(
        st.sampled_from(
            [
                chat_whole(CALLS),
                responses_frames(CALLS)[-1]["response"],
                {"role": "assistant", "stop_reason": "tool_use", "content": [
                    {"type": "text", "text": "a"}, {"type": "tool_use", "id": "t", "name": "ping", "input": {}}]},
            ]
        )
    )  # fmt: skip
    changed = put(whole, data.draw(st.sampled_from(places(whole))), value)
    try:
        turn = from_response(changed)
    except ValueError:
        return
    validate(turn, TOOLS)
