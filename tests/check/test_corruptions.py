"""Corruptions as servers make them: each found by its own code, nothing in what is clean."""

from __future__ import annotations

import copy
import json
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lfm2_fixed.check.blame import Fault
from lfm2_fixed.check.model import Beside
from lfm2_fixed.check.replay import Cuttings, read_stream
from lfm2_fixed.check.verdict import Verdict, judge
from lfm2_fixed.gate import Turn, assemble, from_response, validate
from tests.support.answers import TOOLS, chat_chunk, chat_frames, chat_whole, messages_frames, responses_frames, sse

WRITE = ("write", json.dumps({"path": "a.txt", "content": 'He said "no" {1: [2]}\n€'}, ensure_ascii=False))
MOVE = ("move", '{"lat": 10.5, "steps": 3, "mode": "walk", "note": "due north", "via": [{"id": 1}]}')
CALLS = [WRITE, MOVE]
Frames = list[dict[str, Any]]


def entries(frames: Frames) -> list[dict[str, Any]]:
    """The pieces of calls, to be changed in place."""
    return [e for frame in frames for e in frame["choices"][0]["delta"].get("tool_calls", ())]


def rewritten(change: Callable[[dict[str, Any]], None]) -> Callable[[Frames], Frames]:
    def corrupt(frames: Frames) -> Frames:
        for entry in entries(frames):
            change(entry)
        return frames

    return corrupt


def replaced(old: str, new: str, call: int = 1) -> Callable[[Frames], Frames]:
    """The text of one call's arguments changed, which then come in one piece."""

    def corrupt(frames: Frames) -> Frames:
        calls = list(CALLS)
        assert calls[call][1].count(old) == 1
        calls[call] = (calls[call][0], calls[call][1].replace(old, new))
        return chat_frames(calls)

    return corrupt


def merged(frames: Frames) -> Frames:
    """Both calls under one index, the second without its name."""
    for entry in entries(frames):
        if entry["index"] == 1:
            entry["index"] = 0
            entry.pop("id", None)
            entry["function"].pop("name", None)
    return frames


def fused_names(frames: Frames) -> Frames:
    return [*chat_frames([("writemove", WRITE[1])])]


def cut_in_string(frames: Frames) -> Frames:
    whole = WRITE[1]
    return chat_frames([(WRITE[0], whole[: whole.index("said")]), MOVE])


def gap(entry: dict[str, Any]) -> None:
    entry["index"] += entry["index"]


def same_id(entry: dict[str, Any]) -> None:
    if "id" in entry:
        entry["id"] = "same"


def swapped(frames: Frames) -> Frames:
    """Two pieces in the wrong order."""
    pieces = [e for e in entries(frames) if e["index"] == 0]
    first, second = pieces[1]["function"], pieces[2]["function"]
    first["arguments"], second["arguments"] = second["arguments"], first["arguments"]
    return frames


def lost_piece(frames: Frames) -> Frames:
    pieces = [e for e in entries(frames) if e["index"] == 0]
    pieces[-1]["function"]["arguments"] = ""
    return frames


def echoed(frames: Frames) -> Frames:
    return chat_frames([*CALLS, MOVE])


@dataclass(frozen=True)
class Corruption:
    code: str
    make: Callable[[Frames], Frames]
    fault: Fault = Fault.SERVER


CORRUPTIONS = {
    "merged calls": Corruption("ARGUMENTS_NOT_JSON", merged),
    "cut in a string": Corruption("ARGUMENTS_NOT_JSON", cut_in_string),
    "retyped": Corruption("TYPE_MISMATCH", replaced('"steps": 3', '"steps": "3"')),
    "dropped arguments": Corruption("MISSING_REQUIRED", replaced('"lat": 10.5, ', "")),
    "fused names": Corruption("UNKNOWN_TOOL", fused_names),
    "a key twice": Corruption("DUPLICATE_KEY", replaced('"lat": 10.5', '"lat": 10.5, "lat": 10.5')),
    "not a number": Corruption("NON_FINITE", replaced("10.5", "NaN")),
    "infinite": Corruption("NON_FINITE", replaced("10.5", "1e999")),
    "encoded twice": Corruption("ARGUMENTS_NOT_OBJECT", replaced(MOVE[1], json.dumps(MOVE[1]))),
    "a Python literal": Corruption("ARGUMENTS_NOT_JSON", replaced("3", "None")),
    "a lone surrogate": Corruption("ARGUMENTS_NOT_JSON", replaced("€", "\\ud83d", call=0)),
    "an invented argument": Corruption("SCHEMA_VIOLATION", replaced('"steps"', '"speed": 2, "steps"')),
    "another case": Corruption("SCHEMA_VIOLATION", replaced("walk", "Walk")),
    "out of range": Corruption("SCHEMA_VIOLATION", replaced("10.5", "105")),
    "a boolean for a number": Corruption("TYPE_MISMATCH", replaced("3", "true")),
    "an item's member lost": Corruption("MISSING_REQUIRED", replaced('{"id": 1}', "{}")),
    "a lost call": Corruption("CALL_COUNT_MISMATCH", lambda frames: chat_frames([WRITE])),
    "an echoed call": Corruption("CALL_COUNT_MISMATCH", echoed),
    "one id for two calls": Corruption("DUPLICATE_CALL_ID", rewritten(same_id)),
    "an index left out": Corruption("MALFORMED_STREAM", rewritten(gap)),
    "pieces swapped": Corruption("ARGUMENTS_NOT_JSON", swapped),
    "the last piece lost": Corruption("ARGUMENTS_NOT_JSON", lost_piece),
    "cut by a limit": Corruption("INCOMPLETE", lambda f: [*f[:-1], chat_chunk({}, "length")], Fault.MODEL),
    "the server gives up": Corruption(
        "INCOMPLETE", lambda f: [*f[:-1], {"error": {"message": "Invalid diff", "code": 500}}]
    ),
    "the connection cut": Corruption("INCOMPLETE", lambda f: f[:-1], Fault.TRANSPORT),
}
"""Every way named here is tried; the first four are the ones that began it all."""


def made(name: str) -> Frames:
    corrupt = CORRUPTIONS[name].make
    return corrupt(copy.deepcopy(chat_frames(CALLS)))


@pytest.mark.parametrize("name", CORRUPTIONS)
def test_the_gate_finds_each_by_its_own_code_alone(name: str) -> None:
    wanted = CORRUPTIONS[name].code
    expected = 2 if wanted == "CALL_COUNT_MISMATCH" else None
    assert {str(issue.code) for issue in validate(assemble(made(name)), TOOLS, expected_calls=expected)} == {wanted}


def judged(frames: Frames, *, done: bool = True, **beside: Any) -> Verdict:
    return judge(read_stream(sse(frames, done=done)), Cuttings(), None, TOOLS, Beside(**beside))


@pytest.mark.parametrize("name", CORRUPTIONS)
def test_the_verdict_names_who_did_it(name: str) -> None:
    """The whole response has the calls as they should be."""
    corruption = CORRUPTIONS[name]
    whole = {0: from_response(chat_whole(CALLS))}
    expected = 2 if corruption.code == "CALL_COUNT_MISMATCH" else None
    verdict = judged(made(name), done=name != "the connection cut", whole=whole, expected_calls=expected)
    assert not verdict.clean and verdict.fault == corruption.fault, verdict
    codes = {finding.code for finding in verdict.findings}
    assert codes <= {corruption.code, "STREAM_DIFFERS"} and corruption.code in codes
    assert str(corruption.fault) in verdict.summary


@pytest.mark.parametrize("name", ["retyped", "dropped arguments", "another case", "out of range"])
def test_what_the_whole_response_has_as_well_is_the_models(name: str) -> None:
    frames = made(name)
    calls = [(call.name, call.arguments) for call in assemble(frames)]
    verdict = judged(frames, whole={0: from_response(chat_whole(calls))})
    # A parser may do the same to both answers: only what the model itself wrote makes it certain.
    assert verdict.fault == Fault.MODEL and not verdict.findings[0].shown
    assert [finding.code for finding in verdict.findings] == [CORRUPTIONS[name].code]


def test_a_cut_connection_excuses_the_last_call_alone() -> None:
    frames = chat_frames([(WRITE[0], WRITE[1][:30]), (MOVE[0], MOVE[1][:30])], finish=None)
    found = [(f.code, f.call) for f in judged(frames, done=False).findings]
    assert found == [("INCOMPLETE", None), ("ARGUMENTS_NOT_JSON", 0)]


def test_evidence_of_a_value_that_differs() -> None:
    frames = made("retyped")
    data = sse(frames)
    whole = {0: from_response(chat_whole(CALLS))}
    verdict = judge(read_stream(data), Cuttings(), None, TOOLS, Beside(whole=whole))
    (differs,) = [finding for finding in verdict.findings if finding.code == "STREAM_DIFFERS"]
    assert (differs.call, differs.pointer, differs.expected, differs.got) == (1, "/steps", "3", '"3"')
    assert differs.offset is not None and data[differs.offset :].startswith(b"data: ")


def test_a_valid_value_that_differs_is_found_by_comparison_alone() -> None:
    frames = chat_frames([WRITE, (MOVE[0], MOVE[1].replace("10.5", "10.0"))])
    assert judged(frames).clean
    whole = {0: from_response(chat_whole(CALLS))}
    (finding,) = judged(frames, whole=whole).findings
    assert (finding.code, finding.fault, finding.pointer) == ("STREAM_DIFFERS", Fault.SERVER, "/lat")
    assert (finding.expected, finding.got, finding.shown) == ("10.5", "10.0", True)
    unsure = judged(frames, whole=whole, sampled=True)  # chance may have done it
    assert unsure.clean and "set temperature 0" in unsure.notes[0]


def test_the_order_of_keys_and_spaces_are_no_difference_but_the_kind_of_number_is() -> None:
    other = json.dumps(dict(reversed(json.loads(MOVE[1]).items())), separators=(",", ":"))
    whole = {0: from_response(chat_whole(CALLS))}
    assert judged(chat_frames([WRITE, ("move", other)]), whole=whole).clean
    three = chat_frames([WRITE, ("move", MOVE[1].replace("3", "3.0"))])
    assert [finding.pointer for finding in judged(three, whole=whole).findings] == ["/steps"]


def test_a_corrupted_whole_response_is_told_from_a_corrupted_stream() -> None:
    whole = {0: from_response(chat_whole([WRITE, ("move", MOVE[1][:-9])]))}
    (finding,) = judged(chat_frames(CALLS), whole=whole).findings
    assert finding.fault == Fault.SERVER and "the stream is not" in finding.message


RAW = (
    "<|tool_call_start|>[write(path='a.txt', content='He said \"no\" {1: [2]}\\n€'), "
    "move(lat=10.5, steps=3, mode='walk', note='due north', via=[{'id': 1}])]<|tool_call_end|>"
)


def test_the_models_own_text_decides() -> None:
    assert judged(chat_frames(CALLS), raw=RAW).clean
    same_in_both = chat_frames([WRITE])
    verdict = judged(same_in_both, raw=RAW, whole={0: from_response(chat_whole([WRITE]))})
    assert verdict.fault == Fault.SERVER and verdict.findings[0].shown
    assert verdict.findings[0].message.endswith("1 call in place of 2")
    wrong = RAW.replace("steps=3", "steps='3'")
    verdict = judged(made("retyped"), raw=wrong)
    assert verdict.fault == Fault.MODEL and verdict.findings[0].shown
    thought = "Perhaps " + RAW.replace("10.5", "0") + "</think>" + RAW
    assert judged(chat_frames(CALLS), raw=thought).clean


def test_only_the_whole_response_may_be_wrong() -> None:
    whole = {0: from_response(chat_whole([WRITE]))}
    (finding,) = judged(chat_frames(CALLS), raw=RAW, whole=whole).findings
    assert (finding.code, finding.fault, finding.offset) == ("WHOLE_DIFFERS", Fault.SERVER, None)


def test_markup_in_the_text_is_a_call_that_was_not_recognised() -> None:
    verdict = judged(chat_frames([], content="<|tool_call_start|>[f(a=1)]<|tool_call_end|>", finish="stop"))
    assert [(finding.code, finding.fault) for finding in verdict.findings] == [("LEAKED_MARKUP", Fault.SERVER)]
    prose = 'The marker "<|tool_call_start|>" opens a call.'
    said = chat_frames([], content=prose, finish="stop")
    assert not judged(said).clean and judged(said, raw=prose).clean  # the model means it as text


def test_what_the_client_saw_is_compared_and_its_mistake_named() -> None:
    frames = chat_frames(CALLS, cuts=(3, 9, WRITE[1].index(" said"), 60))
    reading = read_stream(sse(frames))
    right = assemble(frames).calls
    assert judge(reading, Cuttings(), None, TOOLS, Beside(seen=right)).clean
    from lfm2_fixed.check.mistakes import MISTAKES

    frames[-2]["choices"][0]["finish_reason"] = "tool_calls"  # so that stopping there loses something
    frames[2]["choices"][0]["delta"]["tool_calls"] += frames.pop(3)["choices"][0]["delta"]["tool_calls"]
    reading = read_stream(sse(frames))
    assert assemble(frames).calls == right
    named = []
    for mistake in MISTAKES:
        seen = mistake.reassemble(event.data for event in reading.events)
        (finding,) = judge(reading, Cuttings(), None, TOOLS, Beside(seen=seen)).findings
        assert finding.fault == Fault.CLIENT and finding.code == "CLIENT_DIFFERS"
        assert mistake.description in finding.message
        named.append(finding.message)
    assert len(set(named)) == len(MISTAKES) == 7


@pytest.mark.parametrize("frames", [chat_frames, responses_frames, messages_frames])
def test_clean_streams_have_no_finding_in_any_protocol(frames: Callable[..., Frames]) -> None:
    kinds = frames(CALLS)
    data = sse(kinds, done=frames is chat_frames, names=frames is not chat_frames)
    verdict = judge(read_stream(data), Cuttings(), None, TOOLS, Beside(expected_calls=2))
    assert verdict.clean and verdict.notes == () and "2 calls" in verdict.summary


# --- properties ---------------------------------------------------------------------------------

TEXT = st.text(st.characters(exclude_categories=["Cs"]), max_size=25)
WRITES = st.builds(lambda path, content: ("write", {"path": path, "content": content}), TEXT, TEXT)
MOVES = st.builds(
    lambda lat, rest: ("move", {"lat": lat, **rest}),
    st.floats(-90, 90) | st.integers(-90, 90),
    st.fixed_dictionaries(
        {},
        optional={
            "steps": st.integers(),
            "mode": st.sampled_from(["walk", "fly"]),
            "note": st.text("abc ", max_size=9),
            "via": st.lists(st.fixed_dictionaries({"id": st.none() | TEXT}), max_size=3),
        },
    ),
)
TURNS = st.lists(WRITES | MOVES | st.just(("ping", {})), min_size=1, max_size=4)
CUTS = st.lists(st.integers(0, 300), max_size=12)
SOME = settings(max_examples=max(50, settings.default.max_examples // 10))
PROTOCOLS = {"chat": chat_frames, "responses": responses_frames, "messages": messages_frames}


def texts(turn: list[tuple[str, Any]], escaped: bool = False) -> list[tuple[str, str]]:
    return [(name, json.dumps(value, ensure_ascii=escaped)) for name, value in turn]


@pytest.mark.parametrize("protocol", PROTOCOLS)
@SOME
@given(turn=TURNS, cuts=CUTS, escaped=st.booleans())
def test_clean_calls_in_any_pieces_have_no_issue(
    protocol: str, turn: list[tuple[str, Any]], cuts: list[int], escaped: bool
) -> None:
    frames = PROTOCOLS[protocol](texts(turn, escaped), cuts=cuts)
    assert validate(assemble(frames), TOOLS, expected_calls=len(turn)) == []
    reading = read_stream(sse(frames, names=protocol != "chat"))
    assert judge(reading, Cuttings(), None, TOOLS, Beside(expected_calls=len(turn))).clean


def found(turn: Turn, **options: Any) -> set[tuple[str, int | None]]:
    return {(str(issue.code), issue.call) for issue in validate(turn, TOOLS, **options)}


@pytest.mark.parametrize("protocol", PROTOCOLS)
@settings(max_examples=max(40, settings.default.max_examples // 40))  # a dozen damages each
@given(data=st.data(), turn=TURNS, cuts=CUTS)
def test_each_kind_of_damage_has_its_code(
    protocol: str, data: st.DataObject, turn: list[tuple[str, Any]], cuts: list[int]
) -> None:
    calls = texts(turn)
    at = data.draw(st.integers(0, len(calls) - 1), "call")
    name, text = calls[at]
    make = PROTOCOLS[protocol]

    def codes(changed: tuple[str, str], **options: Any) -> set[tuple[str, int | None]]:
        return found(assemble(make([*calls[:at], changed, *calls[at + 1 :]], cuts=cuts)), **options)

    cut = data.draw(st.integers(1, len(text) - 1), "cut")
    assert codes((name, text[:cut])) == {("ARGUMENTS_NOT_JSON", at)}
    assert codes((name, text + text)) == {("ARGUMENTS_NOT_JSON", at)}
    assert codes((name, json.dumps(text))) == {("ARGUMENTS_NOT_OBJECT", at)}
    assert codes((name, f"[{text}]")) == {("ARGUMENTS_NOT_OBJECT", at)}
    assert codes((name + name, text)) == {("UNKNOWN_TOOL", at)}
    assert codes((name, text), expected_calls=len(calls) + 1) == {("CALL_COUNT_MISMATCH", None)}
    value = dict(turn[at][1])
    extra = json.dumps({**value, "invented": 1})
    assert codes((name, extra)) == {("SCHEMA_VIOLATION", at)}
    if not value:
        return
    key = data.draw(st.sampled_from(sorted(value)), "key")
    member = f"{json.dumps(key)}: {json.dumps(value[key])}"
    assert codes((name, "{" + member + ", " + text[1:])) == {("DUPLICATE_KEY", at)}
    assert codes((name, json.dumps({**value, key: float("nan")}))) == {("NON_FINITE", at)}
    wrong = "TYPE_MISMATCH" if key != "mode" else "SCHEMA_VIOLATION"
    assert codes((name, json.dumps({**value, key: None}))) == {(wrong, at)}
    required = data.draw(st.sampled_from(["path", "content"] if name == "write" else ["lat"]), "required")
    del value[required]
    assert codes((name, json.dumps(value))) == {("MISSING_REQUIRED", at)}
