"""Chunks that are alike but for their text, as nearly all chunks of a stream are: read and written without the rest.

A server repeats some 200 bytes with every token.  Once a chunk has been read as JSON, with all its checks, the text
before and after its ``content`` is remembered; a chunk that begins and ends with just these says the same but for the
JSON string between them.  That this is so of the text where it was cut is not assumed but tried, with another string
in that place.
"""

from __future__ import annotations

import json
import re
from typing import Any

from ..core.events import ArgumentsDelta, Content
from ..wire.deltas import Piece, as_dict
from ..wire.sse import encode_json
from .chat import CHUNK_HEAD, empty, read_choices

_read = json.JSONDecoder().raw_decode
_CONTENT = re.compile(r'"content"\s*:\s*("(?:[^"\\]|\\.)*")')
_PROBE = "\N{BULLET}in place of the text\N{BULLET}"  # no server says it; where one does, nothing is remembered
_MOST_PATIENCE = 64
"""Chunks to let pass, at most, before remembering is tried again: a stream whose chunks never are alike (with usage
or the time in each) then pays for the attempts, of two chunks' worth, no more than a few per cent."""


def _around(delta: dict[str, Any], *values: object) -> list[bytes]:
    """What is written before, between and after these values of a delta."""
    parts = []
    rest = encode_json(delta)
    for value in values:
        part, _, rest = rest.partition(encode_json(value))
        parts.append(part)
    return [*parts, rest]


# Nearly all events are one of these two, and an encoder of JSON costs more to set up than to use.
_BEFORE_CONTENT, _AFTER_CONTENT = _around({"content": _PROBE}, _PROBE)
_ONE_CALL = {"tool_calls": [as_dict(Piece(0, None, _PROBE))]}
_BEFORE_INDEX, _BEFORE_ARGUMENTS, _AFTER_ARGUMENTS = _around(_ONE_CALL, 0, _PROBE)


class Alike:
    """What the last plain chunk of one stream was like."""

    __slots__ = ("_before", "_after", "_head", "_tail", "_used", "_patience", "_wait", "index")

    def __init__(self) -> None:
        self.index = -1
        """The choice that the chunks belong to; negative while nothing is remembered."""
        self._before = self._after = ""
        self._head = self._tail = b""
        self._used = True
        self._patience = self._wait = 0

    def text(self, data: str) -> str | None:
        """The text of a chunk that is like the one remembered; None: it is another, or is no chunk."""
        before, after = self._before, self._after
        begin = len(before)
        if not before or not data.startswith(before) or not data.endswith(after) or not data.startswith('"', begin):
            return None
        try:
            text: str
            text, end = _read(data, begin)
        except ValueError:
            return None
        if end != len(data) - len(after):
            return None
        self._used = True
        return text

    def event(self, delta: dict[str, Any]) -> bytes:
        """The event that says ``delta`` in such a chunk."""
        return b"".join((self._head, encode_json(delta), self._tail))

    def content(self, event: Content) -> bytes:
        """The event that says just this."""
        text = encode_json(event.text)
        return b"".join((self._head, _BEFORE_CONTENT, text, _AFTER_CONTENT, self._tail))

    def arguments(self, event: ArgumentsDelta) -> bytes:
        """The event that says just this."""
        index, text = b"%d" % event.index, encode_json(event.text)
        return b"".join((self._head, _BEFORE_INDEX, index, _BEFORE_ARGUMENTS, text, _AFTER_ARGUMENTS, self._tail))

    def learn(self, data: str, chunk: dict[str, Any]) -> None:
        """Remember a chunk, which has been read from ``data`` and checked, if its text is all that it says."""
        if self._wait:
            self._wait -= 1
            return
        self._patience = 0 if self._used else min(2 * self._patience + 1, _MOST_PATIENCE)
        self._wait = self._patience
        self.index = -1
        self._before = self._after = ""
        self._used = False
        choices = read_choices(chunk, "delta")
        if len(choices) != 1 or choices[0].reason is not None:
            return
        [choice] = choices
        if not isinstance(choice.said.get("content"), str) or any(
            value is not None for name, value in choice.said.items() if name != "content"
        ):
            return
        others = {name: value for name, value in chunk.items() if name not in CHUNK_HEAD and name != "choices"}
        found = _CONTENT.search(data, max(0, data.find('"delta"')))
        if found is None or not empty(others) or not empty(choice.fields):
            return
        before, after = data[: found.start(1)], data[found.end(1) :]
        other = {**chunk["choices"][0], "delta": {**choice.said, "content": _PROBE}}
        try:
            tried = json.loads(before + json.dumps(_PROBE) + after)
        except ValueError:
            return
        if tried != {**chunk, "choices": [other]}:
            return
        written = {**choice.fields, "index": choice.index, "delta": _PROBE, "finish_reason": None}
        parts = encode_json({**chunk, "choices": [written]}).split(encode_json(_PROBE))
        if len(parts) == 2:
            self._head, self._tail = b"data: " + parts[0], parts[1] + b"\n\n"
            self._before, self._after, self.index = before, after, choice.index
