"""What an upstream's chunks and replies hold, checked once: everything behind this may rely on the types."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from .errors import bad_chunk

CHUNK_HEAD = frozenset(["id", "object", "created", "model", "system_fingerprint", "service_tier"])
"""Fields that every chunk of a stream repeats."""


@dataclass(frozen=True)
class Choice:
    """One choice of a chunk or a reply.

    ``said``: its ``delta`` or ``message``.  ``reason``: its finish reason; None where there is none, as an empty
    one says (some servers send ``""`` on every chunk).  ``fields``: all others, as they came.
    """

    index: int
    said: dict[str, Any]
    reason: str | None
    fields: dict[str, Any]
    _source: dict[str, Any]

    def set_reason(self, reason: str) -> None:
        """Write another finish reason into the reply that this choice was read from."""
        self._source["finish_reason"] = reason


def read_choices(reply: dict[str, Any], key: str) -> list[Choice]:
    """The choices of a chunk (``key`` is ``"delta"``) or a whole reply (``"message"``).

    Raises ProxyError (502) for anything that the protocol does not allow.
    """
    given = reply.get("choices")
    if given is None:
        return []
    if not isinstance(given, list):
        raise bad_chunk()
    choices = []
    for position, choice in enumerate(given):
        if not isinstance(choice, dict):
            raise bad_chunk()
        index = choice.get("index")
        if index is None:
            index = position
        said = choice.get(key)
        reason = choice.get("finish_reason")
        calls = said.get("tool_calls") if isinstance(said, dict) else None
        thought = said.get("reasoning_content") if isinstance(said, dict) else None  # ours may be added to it
        if (
            not isinstance(index, int)
            or isinstance(index, bool)
            or index < 0
            or not isinstance(said, (dict, type(None)))
            or (reason and not isinstance(reason, str))
            or not isinstance(thought, (str, type(None)))
            or (calls and not (isinstance(calls, list) and all(map(_is_call, calls))))
        ):
            raise bad_chunk()
        if said is None:
            said = {}
        fields = {name: value for name, value in choice.items() if name not in ("index", key, "finish_reason")}
        choices.append(Choice(index, said, reason or None, fields, choice))
    return choices


def stopped(reason: str | None, fields: Mapping[str, Any]) -> bool:
    """Whether a choice ended for a reason outside of the model: a limit, an error, or what the client stops at."""
    return reason not in (None, "stop") or fields.get("stop_reason") is not None


def _is_call(value: Any) -> bool:
    return isinstance(value, dict) and isinstance(value.get("function"), (dict, type(None)))


def empty(value: Any) -> bool:
    """Whether a field says nothing: null, an empty text, or a list or an object that holds nothing else."""
    if isinstance(value, dict):
        return all(map(empty, value.values()))
    return value is None or value == "" or (isinstance(value, list) and not value)
