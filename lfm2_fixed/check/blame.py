"""Findings: what is wrong with a turn, whose fault that is, and whether that is certain."""

from __future__ import annotations

from dataclasses import dataclass

from ..core.dialects import DIALECTS
from ..gate.schemas import Tools
from ..gate.validate import Code, Issue
from ..wire.text import StrEnum
from ..wire.turn import CALLS_PROMISED, Call, Turn
from .compare import Difference, around
from .model import bare_calls
from .replay import Reading


class Fault(StrEnum):
    """Where calls were broken, in the order in which they pass through."""

    MODEL = "model or template"
    SERVER = "server's parser"
    TRANSPORT = "transport"
    CLIENT = "client's reassembly"


@dataclass(frozen=True)
class Finding:
    """One thing that is wrong.

    ``fault``: whose it is; ``shown``: True if the evidence leaves no other, False if it is only likely.
    ``code``: a ``Code`` of the gate, or ``STREAM_DIFFERS``, ``WHOLE_DIFFERS``, ``WHOLE_FAILS``,
    ``LEAKED_MARKUP``, ``SWALLOWED_CALL``, ``TRANSPORT``, ``CLIENT_DIFFERS``.
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


def from_transport(reading: Reading, cut: str | None, notes: list[str]) -> list[Finding]:
    """What shows that bytes were lost or changed on the way.

    Bytes that are lost on the way show in the frames: the stream ends too early, its compression is damaged, an
    event is no UTF-8 or no JSON.  A stream whose frames are all whole has come as it was sent.
    """
    findings = []
    if cut is not None:
        end = reading.events[-1].end if reading.events else 0
        findings.append(Finding(Fault.TRANSPORT, "TRANSPORT", cut, True, offset=end))
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


_PROMISED = frozenset(
    {
        Code.ARGUMENTS_NOT_JSON,
        Code.ARGUMENTS_NOT_OBJECT,
        Code.DUPLICATE_KEY,
        Code.NON_FINITE,
    }
)
"""What a server promises whatever the model wrote: that arguments are one JSON object."""

_PROTOCOL = frozenset({Code.DUPLICATE_CALL_ID, Code.MALFORMED_STREAM})
"""What the server alone writes: indexes, ids, events."""

_SAID_BY_SERVER = frozenset({"error", "failed", "network_error"})
"""Finish reasons with which a server says that it failed."""

_LIMITS = frozenset(
    {
        *("length", "content_filter", "max_tokens", "model_context_window_exceeded", "refusal"),
        *("model_length", "repetition", "incomplete"),
    }
)
"""Finish reasons that say that the model's text was cut: a limit of the request, a filter, a loop that was stopped."""


def from_issue(issue: Issue, choice: int, turn: Turn, agreed: bool, model_known: bool, compared: bool) -> Finding:
    """An issue of the gate, and who is to blame for it.

    ``compared``: the stream was compared with something, ``agreed``: and did not differ from it; ``model_known``:
    that was what the model itself wrote.
    """
    unknown = any(problem.kind == "unknown" and problem.message == issue.message for problem in turn.problems)
    malformed = {problem.call for problem in turn.problems if problem.kind == "malformed"}
    fault, shown = Fault.MODEL, False
    if issue.code is Code.INCOMPLETE:
        fault, shown = _ending(turn)
    elif issue.code in _PROTOCOL:
        fault, shown = Fault.SERVER, not unknown
    elif issue.call is not None and issue.call in malformed:
        # The call was put together from a broken protocol: what it says is not what anybody wrote.
        fault = Fault.SERVER
    elif issue.code is Code.CALL_COUNT_MISMATCH:
        lost = turn.finish_reason in CALLS_PROMISED and not len(turn)
        fault, shown = (Fault.SERVER, True) if lost else (Fault.MODEL, agreed and model_known)
    elif compared and not agreed:
        fault = Fault.SERVER
    elif agreed and model_known:
        fault, shown = Fault.MODEL, True
    elif issue.code in _PROMISED:
        fault = Fault.SERVER  # only the model's own text could excuse it
    call = turn[issue.call] if issue.call is not None and issue.call < len(turn) else None
    offset = _offset(call, issue.text_offset or 0) if call else _problem_offset(issue, turn)
    got = around(call.arguments, issue.text_offset or 0) if call is not None else None
    return Finding(fault, str(issue.code), issue.message, shown, choice, issue.call, offset, issue.pointer, None, got)


def _ending(turn: Turn) -> tuple[Fault, bool]:
    failed = any(problem.kind == "error" for problem in turn.problems) or turn.finish_reason in _SAID_BY_SERVER
    if not failed and turn.finish_reason in _LIMITS:
        return Fault.MODEL, True
    return Fault.SERVER, failed


def leaked(choice: int, turn: Turn, whole: Turn | None, model: Turn | None, tools: Tools) -> list[Finding]:
    """Markup of calls in the text, or a bare list of calls, unless the model means it as text."""
    for source, answer in (("", turn), (" of the whole response", whole or Turn())):
        for marker in MARKERS:
            if marker in answer.content and (model is None or marker not in model.content):
                message = f"markup of tool calls ({marker}) stands in the text{source}: a call was not recognised"
                got = around(answer.content, answer.content.index(marker))
                return [Finding(Fault.SERVER, "LEAKED_MARKUP", message, False, choice, got=got)]
        if (model is None or model.calls) and bare_calls(answer.content, tools):
            message = f"the text{source} is a list of calls of declared tools: they were not recognised"
            return [
                Finding(Fault.SERVER, "LEAKED_MARKUP", message, False, choice, got=around(answer.content, 0))
            ]  # fmt: skip
    return []


def swallowed(choice: int, turn: Turn, notes: list[str]) -> list[Finding]:
    """Markup of calls in the thoughts of a turn that made none.

    A model may think about calls.  But a turn with neither calls nor an answer has said nothing beside its thoughts:
    there the call was taken for one.
    """
    if turn.calls:
        return []
    for marker in MARKERS:
        if marker in turn.reasoning:
            got = around(turn.reasoning, turn.reasoning.index(marker))
            if turn.content.strip():
                notes.append(f"Choice {choice}: markup of tool calls ({marker}) stands in the model's thoughts.")
                return []
            message = f"markup of tool calls ({marker}) stands in the reasoning, and nothing else was answered"
            return [Finding(Fault.SERVER, "SWALLOWED_CALL", message, False, choice, got=got)]
    return []


MARKERS = tuple(
    dict.fromkeys(
        [
            *(dialect.start for dialect in DIALECTS.values()),
            *(end for dialect in DIALECTS.values() for end in dialect.ends),
            *("<tool_call>", "</tool_call>", "[TOOL_CALLS]", "<|tool_calls_section_begin|>"),
            *("<｜tool▁calls▁begin｜>", "<function_call>", "<|tool_call|>"),
        ]
    )
)
"""Texts that announce a tool call in the formats of common models; never part of an answer's prose."""


def located(
    turn: Turn, differs: Difference, choice: int, fault: Fault, code: str, message: str, shown: bool
) -> Finding:
    """A finding about a difference, with the place of the event that brought it."""
    call = turn[differs.call] if differs.call < len(turn) else None
    offset = _offset(call, differs.at) if call is not None else None
    return Finding(
        fault, code, message, shown, choice, differs.call, offset, differs.pointer, differs.expected, differs.got
    )  # fmt: skip


def _offset(call: Call, at: int) -> int | None:
    """The byte offset of the event that brought a character of a call's arguments."""
    for length, offset in call.trace:
        if length > at:
            return offset
    return call.trace[-1][1] if call.trace else None


def _problem_offset(issue: Issue, turn: Turn) -> int | None:
    return next((p.offset for p in turn.problems if p.message in issue.message), None)
