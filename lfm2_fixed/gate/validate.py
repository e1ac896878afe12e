"""Whether calls may be run: everything that is wrong with them, each with a code of its own."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from ..wire.strict_json import read
from ..wire.text import StrEnum, printable, shortened
from ..wire.turn import CALLS_PROMISED, Call, Turn, dumped, plain, text_of
from .schemas import Tools, compiled_tools
from .violations import type_name


class Code(StrEnum):
    """What can be wrong with a turn."""

    ARGUMENTS_NOT_JSON = "ARGUMENTS_NOT_JSON"
    ARGUMENTS_NOT_OBJECT = "ARGUMENTS_NOT_OBJECT"
    DUPLICATE_KEY = "DUPLICATE_KEY"
    NON_FINITE = "NON_FINITE"
    UNKNOWN_TOOL = "UNKNOWN_TOOL"
    MISSING_REQUIRED = "MISSING_REQUIRED"
    TYPE_MISMATCH = "TYPE_MISMATCH"
    SCHEMA_VIOLATION = "SCHEMA_VIOLATION"
    OVER_BUDGET = "OVER_BUDGET"
    CALL_COUNT_MISMATCH = "CALL_COUNT_MISMATCH"
    INCOMPLETE = "INCOMPLETE"
    DUPLICATE_CALL_ID = "DUPLICATE_CALL_ID"
    MALFORMED_STREAM = "MALFORMED_STREAM"


@dataclass(frozen=True)
class Issue:
    """One reason not to run a turn's calls.

    ``call``: index of the call, None for the turn as a whole.  ``pointer``: an RFC 6901 JSON pointer into its
    arguments (``""``: the arguments as a whole; for MISSING_REQUIRED: where the value should be).
    ``message``: in words, without any value that the model wrote unless these were asked for.
    ``text_offset``: where in the arguments' text, in characters, if known.

    Pointers hold the model's keys, and messages may quote a server's words, as they were written; ``str`` of
    an issue is fit for a terminal or a log.
    """

    code: Code
    call: int | None
    pointer: str
    message: str
    text_offset: int | None = None

    def __str__(self) -> str:
        where = "the turn" if self.call is None else f"call {self.call}"
        place = f" at {shortened(self.pointer)}" if self.pointer else ""
        return printable(f"{self.code} in {where}{place}: {self.message}")


def validate(
    calls: Iterable[Any],
    tools: Iterable[Any] | Tools,
    *,
    expected_calls: int | None = None,
    show_values: bool = False,
) -> list[Issue]:
    """All that is wrong with a turn's calls; an empty list means that they may be run.

    ``calls``: what ``assemble`` or ``from_response`` gave (then the finish reason and the stream's problems
    count too), or any list of calls: ``Call``, the clients' objects, dicts with ``name`` and ``arguments``.
    ``tools``: as in the request, or compiled ``Tools``.  ``expected_calls``: how many there must be.
    ``show_values``: quote offending values in the messages.  Raises ToolsError if the tools are unusable, and
    ImportError without ``jsonschema``.  Nothing is coerced: ``"3"`` and ``true`` are no integers; ``3.0`` is
    one, as JSON Schema says.
    """
    return examine(calls, tools, expected_calls=expected_calls, show_values=show_values)[0]


def examine(
    calls: Iterable[Any],
    tools: Iterable[Any] | Tools,
    *,
    expected_calls: int | None = None,
    show_values: bool = False,
) -> tuple[list[Issue], list[Any]]:
    """``validate``, with the arguments' values beside the issues: one per call, None where unreadable."""
    declared = compiled_tools(tools)
    turn = calls if isinstance(calls, Turn) else Turn(tuple(map(as_call, calls)))
    issues = _turn_issues(turn, expected_calls, known_end=isinstance(calls, Turn))
    values = []
    seen: dict[str, int] = {}
    for index, call in enumerate(turn):
        if call.id:
            if call.id in seen:
                message = f"the same id as call {seen[call.id]}"
                issues.append(Issue(Code.DUPLICATE_CALL_ID, index, "", message))
            seen.setdefault(call.id, index)
        if not call.complete:
            issues.append(Issue(Code.INCOMPLETE, index, "", "the stream never says that this call is complete"))
        found, value = _call_issues(call, index, declared, show_values)
        issues.extend(found)
        values.append(value)
    return issues, values


def as_call(value: Any) -> Call:
    """One call in any of the usual shapes.  Raises TypeError if it is none."""
    if isinstance(value, Call):
        return value
    given = plain(value)
    if not isinstance(given, Mapping):
        raise TypeError(f"a call must be a Call, a client's object or a dict, not {type(given).__name__}")
    inner = given.get("function") or given.get("custom")
    source = inner if isinstance(inner, Mapping) else given
    custom = isinstance(given.get("custom"), Mapping) or given.get("type") == "custom_tool_call"
    arguments = source.get("arguments", source.get("input"))
    if not isinstance(arguments, str):
        arguments = "" if arguments is None else dumped(arguments)
    return Call(
        text_of(source.get("name")) or "",
        arguments,
        text_of(given.get("call_id")) or text_of(given.get("id")),
        "custom" if custom else "function",
        given.get("status") != "incomplete",
        text_of(given.get("namespace")),
    )


def _turn_issues(turn: Turn, expected: int | None, *, known_end: bool) -> list[Issue]:
    issues = []
    for problem in turn.problems:
        if problem.kind == "error":
            message = f"the server reported an error: {problem.message}"
            issues.append(Issue(Code.INCOMPLETE, problem.call, "", message))
        else:
            issues.append(Issue(Code.MALFORMED_STREAM, problem.call, "", problem.message))
    if known_end and turn.finish_reason is None:
        issues.append(Issue(Code.INCOMPLETE, None, "", "the answer ends without a finish reason"))
    elif turn.cut:
        reason = shortened(turn.finish_reason or "", 60)
        message = f"the answer was cut off, or it is not known to be whole: finish reason {reason!r}"
        issues.append(Issue(Code.INCOMPLETE, None, "", message))
    if expected is not None and len(turn) != expected:
        message = f"{expected} expected, {len(turn)} received"
        issues.append(Issue(Code.CALL_COUNT_MISMATCH, None, "", message))
    elif not len(turn) and turn.finish_reason in CALLS_PROMISED:
        message = f"the finish reason is {turn.finish_reason!r}, but no call was received"
        issues.append(Issue(Code.CALL_COUNT_MISMATCH, None, "", message))
    return issues


_FAULTS = {
    "syntax": Code.ARGUMENTS_NOT_JSON,
    "duplicate key": Code.DUPLICATE_KEY,
    "non-finite": Code.NON_FINITE,
}


def _call_issues(call: Call, index: int, tools: Tools, show_values: bool) -> tuple[list[Issue], Any]:
    issues = []
    tool = tools.find(call)
    if tool is None:
        named = f"no tool named {shortened(_full_name(call))!r} is declared" if call.name else "the call has no name"
        issues.append(Issue(Code.UNKNOWN_TOOL, index, "", named))
        if call.kind == "custom":
            return issues, call.arguments
    elif tool.text or call.kind == "custom":
        if not (tool.text and call.kind == "custom"):
            message = "a function was called as a custom tool, or the other way round"
            issues.append(Issue(Code.TYPE_MISMATCH, index, "", message))
        return issues, call.arguments
    reading = read(call.arguments)
    for fault in reading.faults:
        issues.append(Issue(_FAULTS[fault.kind], index, fault.pointer, fault.message, fault.offset))
    if any(fault.kind == "syntax" and not fault.pointer for fault in reading.faults):
        return issues, None
    if not isinstance(reading.value, dict):
        message = f"the arguments are of type {type_name(reading.value)}, not an object"
        if not reading.faults:
            issues.append(Issue(Code.ARGUMENTS_NOT_OBJECT, index, "", message))
        return issues, None
    if tool is not None:
        refused = {fault.pointer for fault in reading.faults}
        for violation in tools.broken(tool, reading.value, len(call.arguments)):
            if violation.pointer in refused:
                continue  # a value that could not be read is not also of the wrong type
            message = violation.message
            if show_values and violation.code in ("TYPE_MISMATCH", "SCHEMA_VIOLATION"):
                message += f"; got {_shown(violation.value)}"
            issues.append(Issue(Code(violation.code), index, violation.pointer, message))
    return issues, reading.value


def _full_name(call: Call) -> str:
    return f"{call.namespace}.{call.name}" if call.namespace else call.name


def _shown(value: Any) -> str:
    return shortened(json.dumps(value, ensure_ascii=False), 200)
