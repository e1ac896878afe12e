"""What is known beside the stream, and what the model itself wrote, read by the parser of its dialect."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from ..core.dialects import DIALECTS
from ..core.stream import parse
from ..gate.schemas import Tools
from ..wire.turn import Call, Turn


@dataclass(frozen=True)
class Beside:
    """What is known beside the stream.

    ``whole``: the same turns without streaming, by choice; ``whole_error``: one sentence if that request failed,
    ``whole_status``: with which HTTP status, if the server answered at all.
    ``raw``: what the model itself wrote, to be read in ``dialect``; ``raw_of_whole``: it wrote it for the whole
    response, not for the stream.  ``seen``: what the user's client made of it.
    ``expected_calls``: how many calls there must be.  ``sampled``: two answers may differ by chance.
    """

    whole: Mapping[int, Turn] = field(default_factory=dict)
    whole_error: str | None = None
    raw: str | None = None
    dialect: str = "lfm2"
    seen: Sequence[Call] | None = None
    expected_calls: int | None = None
    sampled: bool = False
    whole_status: int | None = None
    raw_of_whole: bool = False


THOUGHTS_BEGIN, THOUGHTS_END = "<think>", "</think>"
"""The tags of the models whose dialects are known here."""


def model_turns(beside: Beside, tools: Tools) -> list[Turn]:
    """The readings of the model's text that cannot be told apart; none if the text is not known.

    Templates may open ``<think>`` in the prompt, so that the text begins inside the thoughts without saying so.
    Then the first ``</think>`` ends them, or it is a text in an argument.  Where the opening tag stands in the text,
    there is one reading.
    """
    if beside.raw is None:
        return []
    before, tag, after = beside.raw.partition(THOUGHTS_END)
    if THOUGHTS_BEGIN in before and not before.partition(THOUGHTS_BEGIN)[0].strip():
        answers = [after if tag else ""]
    else:
        answers = [after, beside.raw] if tag else [beside.raw]
    return [_turn(answer, beside.dialect, tools) for answer in answers]


def _turn(answer: str, dialect: str, tools: Tools) -> Turn:
    result = parse(answer, dialect, tools.given)
    return Turn(tuple(Call(call.name, call.arguments) for call in result.calls), result.content)


_BARE = next(name for name, dialect in DIALECTS.items() if dialect.bare_lists)
"""A dialect whose lists need no markers; which one makes no difference to a text that is nothing but a list."""


def bare_calls(text: str, tools: Tools) -> bool:
    """Whether a text is nothing but a list of calls of declared tools, written without any markup."""
    answer = text.strip()
    if not answer.startswith("["):
        return False
    found = parse(answer, _BARE, tools.given)
    return bool(found.calls) and not found.content.strip() and all(call.name in tools for call in found.calls)
