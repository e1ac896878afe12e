"""Whose fault it is: a captured stream, what is known beside it, and a verdict in words.

The rule: a verdict is certain (``shown``) only where the capture, together with what was given beside it, leaves no
other explanation.  What merely makes somebody likely is said so, and what may be chance is a note.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any

from ..gate.schemas import Tools, compiled_tools
from ..gate.validate import Code, validate
from ..wire.turn import CALLS_PROMISED, ENDED_WELL, Turn
from .blame import Fault, Finding, from_issue, from_transport, leaked, located, swallowed
from .compare import Difference, counted, difference
from .model import Beside, model_turns
from .replay import Cuttings, Reading
from .seen import seen_by_client


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
        """For machines."""
        return {
            "clean": self.clean,
            "fault": self.fault,
            "summary": self.summary,
            "findings": [asdict(finding) for finding in self.findings],
            "notes": list(self.notes),
        }


def judge(reading: Reading, cuttings: Cuttings, cut: str | None, declared: Sequence[Any], beside: Beside) -> Verdict:
    """Weigh everything.  ``cut``: what the capture's compression lacks, in words, or None."""
    notes: list[str] = []
    tools = compiled_tools(declared)
    findings = from_transport(reading, cut, notes)
    broken = bool(findings)
    for choice, turn in reading.turns.items():
        findings += _choice(choice, turn, tools, beside, notes, broken, bool(reading.bad_frames))
    if not any(reading.turns.values()) and beside.expected_calls is None and beside.raw is None:
        notes.append("No call was made. --expect-calls says how many there must be.")
    _whole_failed(beside, findings, notes)
    if beside.seen is not None:
        findings += seen_by_client(reading, cuttings, beside.seen)
    return Verdict(tuple(findings), tuple(dict.fromkeys(notes)), _summary(reading, findings, beside))


def _whole_failed(beside: Beside, findings: list[Finding], notes: list[str]) -> None:
    if beside.whole_error is None:
        return
    message = f"the same request, not streamed, fails: {beside.whole_error}"
    if beside.whole_status == 500:
        # The server failed on the very answer that it streamed.  Every other failure may be the network's, the
        # load's or the request's, and says nothing about the answer.
        findings.append(Finding(Fault.SERVER, "WHOLE_FAILS", message, True))
    else:
        notes.append(f"There is nothing to compare with: {message}")


def _summary(reading: Reading, findings: list[Finding], beside: Beside) -> str:
    calls = sum(len(turn) for turn in reading.turns.values())
    if not findings:
        more = (
            ""
            if beside.seen is not None
            else (" If an agent saw anything else, its client's reassembly broke it: --seen FILE compares.")
        )
        return f"Clean: {counted(calls)}, nothing corrupted.{more}"
    first = sorted(findings, key=lambda finding: not finding.shown)[0]
    certainty = "Corrupted by" if first.shown else "Not clean, most likely by"
    return f"{certainty} the {first.fault}: {first.message}."


def _choice(
    choice: int, turn: Turn, tools: Tools, beside: Beside, notes: list[str], transport_broken: bool, holed: bool
) -> list[Finding]:
    whole = beside.whole.get(choice)
    models = model_turns(beside, tools) if choice == 0 else []
    if whole is not None and not whole.ended_well:
        notes.append(
            f"Choice {choice}: the whole response did not end well itself "
            f"(finish reason {whole.finish_reason!r}); the stream is not compared with it."
        )
        whole = None
    findings: list[Finding] = []
    told: Turn | None = None
    if not transport_broken:
        findings, told = _differences(choice, turn, whole, models, tools, beside, notes)
    agreed = told is not None and not findings
    model = told if models and told in models else None
    expected = beside.expected_calls if choice == 0 else None
    issues = validate(turn, tools, expected_calls=expected, show_values=True)
    if transport_broken:  # its consequences are no faults of their own
        issues = [
            issue
            for issue in issues
            if issue.code is not Code.INCOMPLETE
            and not (issue.code is Code.ARGUMENTS_NOT_JSON and issue.call == len(turn) - 1)
        ]
    if turn.finish_reason == "pause_turn":
        notes.append(f"Choice {choice}: the server paused the turn (pause_turn): it goes on in the next answer.")
        issues = [issue for issue in issues if issue.code is not Code.INCOMPLETE]
    for issue in issues:
        found = from_issue(issue, choice, turn, agreed, model is not None, told is not None)
        # An event that was lost in the middle explains whatever is wrong with the rest.
        findings.append(replace(found, fault=Fault.TRANSPORT, shown=False) if holed else found)
    findings += leaked(choice, turn, whole, model, tools) or swallowed(choice, turn, notes)
    _note_ending(choice, turn, notes)
    if whole is not None and agreed and not beside.sampled and whole.content.strip() != turn.content.strip():
        notes.append(f"Choice {choice}: the text beside the calls differs between the stream and the whole response.")
    return findings


def _note_ending(choice: int, turn: Turn, notes: list[str]) -> None:
    if not len(turn) or turn.protocol not in ("chat", "messages"):
        return
    if turn.finish_reason in ENDED_WELL[turn.protocol] - CALLS_PROMISED:
        notes.append(
            f"Choice {choice}: calls were made, but the finish reason is {turn.finish_reason!r}: clients that look "
            "only at that do not run them."
        )


def _differences(
    choice: int,
    turn: Turn,
    whole: Turn | None,
    models: list[Turn],
    tools: Tools,
    beside: Beside,
    notes: list[str],
) -> tuple[list[Finding], Turn | None]:
    """The stream against what the model wrote, or else against the whole response; at most one finding.

    Also what the stream was compared with; None if nothing could decide.
    """
    by_chance = beside.sampled and (not models or beside.raw_of_whole)
    if by_chance:
        # Two samples: that they differ says nothing, and that they agree says that neither is wrong by itself.
        other = models or ([whole] if whole is not None else [])
        differs = _nearest(other, turn, same_wire=not models)[1] if other else None
        if differs is not None:
            notes.append(
                f"The stream and the whole response differ ({differs.message}), but the request samples, so chance "
                "may have done it: set temperature 0 to compare."
            )
        told = whole if whole is not None and differs is None and not models else None
        return _whole_against_model(choice, whole, models), told
    if not models and whole is None:
        return [], None
    told, differs = _nearest(models or [whole], turn, same_wire=not models)  # type: ignore[list-item]
    source = "what the model wrote" if models else "the whole response"
    if differs is not None:
        message = f"the stream says something else than {source}: {differs.message}"
        if not models and not validate(turn, tools) and validate(told, tools):
            message = f"the whole response is corrupted, the stream is not: {differs.message}"
        return [located(turn, differs, choice, Fault.SERVER, "STREAM_DIFFERS", message, True)], told
    return _whole_against_model(choice, whole, [told] if models else []), told


def _whole_against_model(choice: int, whole: Turn | None, models: list[Turn]) -> list[Finding]:
    if whole is None or not models:
        return []
    _, differs = _nearest(models, whole, same_wire=False)
    if differs is None:
        return []
    message = f"the whole response, not the stream, says something else than what the model wrote: {differs.message}"
    return [located(Turn(), differs, choice, Fault.SERVER, "WHOLE_DIFFERS", message, True)]


def _nearest(told: list[Turn], turn: Turn, *, same_wire: bool) -> tuple[Turn, Difference | None]:
    """The first of several readings that agrees with a turn, and None; else the first, and how the turn differs.

    Of a turn that was cut off, whole answers leave out the unfinished call; streams have begun it.
    """
    first: tuple[Turn, Difference | None] | None = None
    for each in told:
        calls = turn.calls[: len(each)] if turn.cut else turn.calls
        differs = difference(each.calls, calls, same_wire=same_wire)
        if differs is None:
            return each, None
        first = first or (each, differs)
    assert first is not None
    return first
