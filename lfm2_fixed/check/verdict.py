"""Whose fault it is: a captured stream, what is known beside it, and a verdict in words."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from enum import Enum
from typing import Any, Literal

from ..core.dialects import DIALECTS
from ..core.stream import parse
from ..gate.schemas import Tools
from ..gate.validate import Code, Issue, validate
from ..wire.assemble import Assembled, Call
from ..wire.strict_json import pointer, read
from .mistakes import MISTAKES
from .replay import Cuttings, Reading


class Fault(str, Enum):
    """Where calls were broken, in the order in which they pass through."""

    MODEL = "model or template"
    SERVER = "server's parser"
    TRANSPORT = "transport"
    CLIENT = "client's reassembly"

    def __str__(self) -> str:
        return self.value


@dataclass(frozen=True)
class Finding:
    """One thing that is wrong.

    ``fault``: whose it is; ``shown``: True if the evidence leaves no other, False if it is only likely.
    ``code``: a ``Code`` of the gate, or ``STREAM_DIFFERS``, ``WHOLE_DIFFERS``, ``WHOLE_FAILS``,
    ``LEAKED_MARKUP``, ``TRANSPORT``, ``CLIENT_DIFFERS``, ``CUT_DEPENDENT``.
    ``choice``, ``call``: indexes, None where it is no single call.  ``pointer``: into the arguments.
    ``offset``: byte offset in the stream (after gzip) of the first event concerned.
    ``expected`` and ``got``: JSON or text, shortened around the first difference.
    """

    fault: Fault
    code: str
    message: str
    shown: bool
    choice: int = 0
    call: int | None = None
    offset: int | None = None
    pointer: str = ""
    expected: str | None = None
    got: str | None = None


@dataclass(frozen=True)
class Verdict:
    """``findings``: none if the stream is clean.  ``notes``: what is odd or left open, but breaks no call."""

    findings: tuple[Finding, ...]
    notes: tuple[str, ...]
    summary: str

    @property
    def clean(self) -> bool:
        """Whether no call was corrupted."""
        return not self.findings

    @property
    def fault(self) -> Fault | None:
        """Whose fault it is first of all: shown before likely, then as the findings stand."""
        ranked = sorted(self.findings, key=lambda finding: not finding.shown)
        return ranked[0].fault if ranked else None

    def as_json(self) -> dict[str, Any]:
        """The verdict for machines."""
        return {
            "clean": self.clean,
            "fault": None if self.fault is None else str(self.fault),
            "summary": self.summary,
            "findings": [{**asdict(f), "fault": str(f.fault), "code": str(f.code)} for f in self.findings],
            "notes": list(self.notes),
        }


@dataclass(frozen=True)
class Beside:
    """What is known beside the stream.

    ``whole``: the same request's non-streaming response, by choice.  ``whole_error``: why there is none, if
    the server failed to give it.  ``raw``: what the model itself wrote, in this ``dialect``.  ``seen``: the
    calls that the user's client made of the stream.
    ``expected_calls``: how many there must be.  ``sampled``: whether the request leaves room for chance.
    """

    whole: Mapping[int, Assembled] = field(default_factory=dict)
    whole_error: str | None = None
    raw: str | None = None
    dialect: Literal["lfm2", "llama4"] = "lfm2"
    seen: Sequence[Call] | None = None
    expected_calls: int | None = None
    sampled: bool = False


def judge(reading: Reading, cuttings: Cuttings, cut: str | None, declared: Sequence[Any], beside: Beside) -> Verdict:
    """Weigh everything.  ``cut``: what the capture's compression lacks, in words, or None."""
    findings: list[Finding] = []
    notes: list[str] = []
    tools = Tools(declared)
    findings += _transport(reading, cut, notes)
    broken = bool(findings)
    for choice, turn in reading.turns.items():
        findings += _choice(choice, turn, tools, beside, notes, broken)
    if not any(reading.turns.values()) and beside.expected_calls is None and beside.raw is None:
        notes.append("No call was made. --expect-calls says how many there must be.")
    if beside.whole_error is not None:
        message = f"the same request, not streamed, fails: {beside.whole_error}"
        findings.append(Finding(Fault.SERVER, "WHOLE_FAILS", message, True))
    if beside.seen is not None:
        findings += _seen(reading, beside.seen)
    findings += [
        Finding(
            Fault.CLIENT,
            "CUT_DEPENDENT",
            "the reassembly gives something else when the stream is cut here",
            True,
            offset=disagreement.offset,
            expected=disagreement.expected,
            got=disagreement.got,
        )
        for disagreement in cuttings.disagreements[:3]
    ]
    return Verdict(tuple(findings), tuple(dict.fromkeys(notes)), _summary(reading, findings, beside))


def _summary(reading: Reading, findings: list[Finding], beside: Beside) -> str:
    calls = sum(len(turn) for turn in reading.turns.values())
    if not findings:
        more = (
            ""
            if beside.seen is not None
            else (" If an agent saw anything else, its client's reassembly broke it: --seen FILE compares.")
        )
        return f"Clean: {_counted(calls)}, nothing corrupted, however the stream is cut.{more}"
    first = sorted(findings, key=lambda finding: not finding.shown)[0]
    certainty = "Corrupted by" if first.shown else "Corrupted, most likely by"
    return f"{certainty} the {first.fault}: {first.message}."


def _transport(reading: Reading, cut: str | None, notes: list[str]) -> list[Finding]:
    findings = []
    if cut is not None:
        findings.append(Finding(Fault.TRANSPORT, "TRANSPORT", cut, True, offset=reading.events[-1].end))
    for frame in reading.bad_frames:
        message = f"an event cannot be read: {frame.message}"
        findings.append(Finding(Fault.TRANSPORT, "TRANSPORT", message, True, offset=frame.offset))
    turns = list(reading.turns.values())
    failed = any(problem.kind == "error" for turn in turns for problem in turn.problems)
    unended = [choice for choice, turn in reading.turns.items() if turn.finish_reason is None]
    if unended and not failed and not reading.done:
        end = reading.unfinished.start if reading.unfinished else reading.events[-1].end
        message = "the stream breaks off before any finish reason: the connection was cut"
        findings.append(Finding(Fault.TRANSPORT, str(Code.INCOMPLETE), message, True, unended[0], offset=end))
    elif reading.unfinished is not None:
        notes.append(
            f"The last event (byte {reading.unfinished.start}) is not closed by an empty line: clients drop it."
        )
    if not reading.done and any(turn.protocol == "chat" and turn.finish_reason for turn in turns):
        notes.append("The stream ends without [DONE]; the finish reason came, so no call is affected.")
    return findings


def _choice(
    choice: int, turn: Assembled, tools: Tools, beside: Beside, notes: list[str], transport_broken: bool
) -> list[Finding]:
    whole = beside.whole.get(choice)
    model = _model_turn(beside, tools) if choice == 0 else None
    findings = [] if transport_broken else _differences(choice, turn, whole, model, tools, beside, notes)
    compared = not transport_broken and (model is not None or whole is not None)
    agreed = compared and not findings
    expected = beside.expected_calls if choice == 0 else None
    issues = validate(turn, tools, expected_calls=expected, show_values=True)
    if transport_broken:  # its consequences are no faults of their own
        issues = [issue for issue in issues if issue.code is not Code.INCOMPLETE and not _cut_short(issue, turn)]
    for issue in issues:
        findings.append(_from_issue(issue, choice, turn, agreed, model is not None, compared))
    findings += _leak(choice, turn, whole, model)
    if whole is not None and agreed and not beside.sampled and whole.content.strip() != turn.content.strip():
        notes.append(f"Choice {choice}: the text beside the calls differs between the stream and the whole response.")
    return findings


def _differences(
    choice: int,
    turn: Assembled,
    whole: Assembled | None,
    model: Assembled | None,
    tools: Tools,
    beside: Beside,
    notes: list[str],
) -> list[Finding]:
    """The stream against what the model wrote, or else against the whole response; at most one finding."""
    told = model if model is not None else whole
    if told is None:
        return []
    source = "the whole response" if model is None else "what the model wrote"
    # Of a turn that was cut off, whole answers leave out the unfinished call; streams have begun it.
    calls = turn.calls[: len(told)] if turn.cut else turn.calls
    differs = difference(told.calls, calls)
    if differs is not None:
        chance = model is None and beside.sampled
        if chance:
            notes.append("The request samples, so two answers may differ by chance: set temperature 0.")
        message = f"the stream says something else than {source}: {differs.message}"
        if model is None and not validate(turn, tools) and validate(told, tools):
            message = f"the whole response is corrupted, the stream is not: {differs.message}"
        return [_located(turn, differs, choice, Fault.SERVER, "STREAM_DIFFERS", message, not chance)]
    other = None if model is None or whole is None else difference(model.calls, whole.calls)
    if other is not None:
        message = f"the whole response, not the stream, says something else than {source}: {other.message}"
        return [_located(Assembled(), other, choice, Fault.SERVER, "WHOLE_DIFFERS", message, True)]
    return []


def _leak(choice: int, turn: Assembled, whole: Assembled | None, model: Assembled | None) -> list[Finding]:
    """Markup of calls in the text, unless the model means it as text."""
    for source, answer in (("", turn), (" of the whole response", whole or Assembled())):
        for marker in MARKERS:
            if marker in answer.content and (model is None or marker not in model.content):
                message = f"markup of tool calls ({marker}) stands in the text{source}: a call was not recognised"
                got = _around(answer.content, answer.content.index(marker))
                return [Finding(Fault.SERVER, "LEAKED_MARKUP", message, False, choice, got=got)]
    return []


MARKERS = tuple(
    dict.fromkeys(
        [
            *(dialect.start for dialect in DIALECTS.values()),
            *(end for dialect in DIALECTS.values() for end in dialect.ends),
            *(
                "<tool_call>",
                "</tool_call>",
                "[TOOL_CALLS]",
                "<|python_tag|>",
                "<|tool_calls_section_begin|>",
            ),
            *("<｜tool▁calls▁begin｜>", "<function_call>", "<|tool_call|>"),
        ]
    )
)
"""Texts that announce a tool call in the formats of common models; never part of an answer's prose."""


def _cut_short(issue: Issue, turn: Assembled) -> bool:
    return issue.code is Code.ARGUMENTS_NOT_JSON and issue.call == len(turn) - 1


def _from_issue(issue: Issue, choice: int, turn: Assembled, agreed: bool, model_known: bool, compared: bool) -> Finding:
    """An issue of the gate, and who is to blame for it."""
    server = {
        Code.ARGUMENTS_NOT_JSON,
        Code.ARGUMENTS_NOT_OBJECT,
        Code.DUPLICATE_KEY,
        Code.NON_FINITE,
        Code.DUPLICATE_CALL_ID,
        Code.MALFORMED_STREAM,
    }
    protocol = {Code.DUPLICATE_CALL_ID, Code.MALFORMED_STREAM}
    failed = any(problem.kind == "error" for problem in turn.problems)
    fault, shown = Fault.MODEL, False
    if issue.code is Code.INCOMPLETE:
        if turn.cut and not failed:
            fault, shown = Fault.MODEL, True  # a limit of the request, or a filter
        else:
            fault, shown = Fault.SERVER, failed
    elif issue.code in protocol:
        fault, shown = Fault.SERVER, True
    elif issue.code is Code.CALL_COUNT_MISMATCH:
        lost = turn.finish_reason in ("tool_calls", "function_call", "tool_use") and not len(turn)
        fault, shown = (Fault.SERVER, True) if lost else (Fault.MODEL, agreed and model_known)
    elif compared and not agreed:
        fault = Fault.SERVER
    elif agreed and (model_known or issue.code not in server):
        fault, shown = Fault.MODEL, True
    elif issue.code in server:
        fault = Fault.SERVER  # it promises JSON; only the model's own text could excuse it
    call = turn[issue.call] if issue.call is not None and issue.call < len(turn) else None
    offset = _offset(call, issue.text_offset or 0) if call else _problem_offset(issue, turn)
    got = None
    if call is not None:
        got = _around(call.arguments, issue.text_offset or 0)
    return Finding(fault, str(issue.code), issue.message, shown, choice, issue.call, offset, issue.pointer, None, got)


def _problem_offset(issue: Issue, turn: Assembled) -> int | None:
    return next((p.offset for p in turn.problems if p.message in issue.message), None)


def _model_turn(beside: Beside, tools: Tools) -> Assembled | None:
    """What the model's own text says."""
    if beside.raw is None:
        return None
    answer = beside.raw.partition("</think>")[2] or beside.raw  # what is thought is not called
    result = parse(answer, beside.dialect, tools.parameters)
    calls = tuple(Call(call.name, call.arguments) for call in result.calls)
    return Assembled(calls, result.content)


def _seen(reading: Reading, seen: Sequence[Call]) -> list[Finding]:
    """What the user's client made of it, against what was sent."""
    turn = reading.turns.get(0) or Assembled()
    differs = difference(turn.calls, seen)
    if differs is None:
        return []
    message = f"the client has something else than was sent: {differs.message}"
    for mistake in MISTAKES:
        if difference(mistake.reassemble(event.data for event in reading.events), seen) is None:
            message += f". It has what a client gets that {mistake.description}"
            break
    return [_located(turn, differs, 0, Fault.CLIENT, "CLIENT_DIFFERS", message, True)]


@dataclass(frozen=True)
class Difference:
    """The first difference between two lists of calls; ``at``: in the text of the call's arguments."""

    call: int
    message: str
    expected: str
    got: str
    pointer: str = ""
    at: int = 0


def difference(expected: Sequence[Call], got: Sequence[Call]) -> Difference | None:
    """How ``got`` differs: in count, names or values.

    Spacing and the order of keys are no difference; 3 and 3.0 are one.
    """
    for index, (one, other) in enumerate(zip(expected, got)):
        if one.name != other.name:
            return Difference(index, "another name", one.name, other.name)
        if one.arguments == other.arguments:
            continue
        left, right = read(one.arguments), read(other.arguments)
        at = _first_difference(one.arguments, other.arguments)
        if left.faults or right.faults:
            return Difference(
                index, "other arguments", _around(one.arguments, at), _around(other.arguments, at), "", at
            )
        where = _unequal(left.value, right.value)
        if where is not None:
            path, wanted, found = where
            return Difference(index, "another value", wanted, found, path, at)
    if len(expected) != len(got):
        index = min(len(expected), len(got))
        message = f"{_counted(len(got))} in place of {len(expected)}"
        return Difference(index, message, _call(expected, index), _call(got, index))
    return None


def _counted(calls: int) -> str:
    return "1 call" if calls == 1 else f"{calls} calls"


def _call(calls: Sequence[Call], index: int) -> str:
    return f"{calls[index].name} {_around(calls[index].arguments, 0)}" if index < len(calls) else "no such call"


def _unequal(left: Any, right: Any) -> tuple[str, str, str] | None:
    """Where two JSON values differ first: a pointer, and both values there."""
    todo = [("", left, right)]
    while todo:
        where, one, other = todo.pop()
        if isinstance(one, dict) and isinstance(other, dict):
            for key in {**one, **other}:
                at = where + pointer(key)
                if key not in one or key not in other:
                    return at, _json(one, key), _json(other, key)
            todo += [(where + pointer(key), one[key], other[key]) for key in reversed(one)]
        elif isinstance(one, list) and isinstance(other, list) and len(one) == len(other):
            todo += [(f"{where}/{i}", one[i], other[i]) for i in range(len(one) - 1, -1, -1)]
        elif type(one) is not type(other) or one != other:
            left_text, right_text = json.dumps(one, ensure_ascii=False), json.dumps(other, ensure_ascii=False)
            at_character = _first_difference(left_text, right_text)
            return where, _around(left_text, at_character), _around(right_text, at_character)
    return None


def _json(mapping: dict[str, Any], key: str) -> str:
    return _around(json.dumps(mapping[key], ensure_ascii=False), 0) if key in mapping else "nothing"


def _first_difference(one: str, other: str) -> int:
    pairs: Iterable[tuple[str, str]] = zip(one, other)
    return next((i for i, (a, b) in enumerate(pairs) if a != b), min(len(one), len(other)))


def _around(text: str, at: int) -> str:
    """At most 120 characters around a place."""
    begin = max(0, at - 60)
    end = begin + 120
    return ("…" if begin else "") + text[begin:end] + ("…" if end < len(text) else "")


def _offset(call: Call, at: int) -> int | None:
    """The byte offset of the event that brought a character of a call's arguments."""
    for length, offset in call.trace:
        if length > at:
            return offset
    return call.trace[-1][1] if call.trace else None


def _located(
    turn: Assembled, differs: Difference, choice: int, fault: Fault, code: str, message: str, shown: bool
) -> Finding:
    call = turn[differs.call] if differs.call < len(turn) else None
    offset = _offset(call, differs.at) if call is not None else None
    return Finding(
        fault,
        code,
        message,
        shown,
        choice,
        differs.call,
        offset,
        differs.pointer,
        differs.expected,
        differs.got,
    )
