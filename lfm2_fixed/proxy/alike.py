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

from ..wire.sse import encode_json, parse_json
from .chat import CHUNK_HEAD, empty, read_choices

_CONTENT = re.compile(r'"content"\s*:\s*("(?:[^"\\]|\\.)*")')
_PROBE = "\N{BULLET}in place of the text\N{BULLET}"  # no server says it; where one does, nothing is remembered
_MOST_PATIENCE = 64
"""Chunks to let pass, at most, before remembering is tried again: a stream whose chunks never are alike (with usage
or the time in each) then pays for the attempts, of two chunks' worth, no more than a few per cent."""


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
        begin, end = len(self._before), len(data) - len(self._after)
        if begin >= end or not data.startswith(self._before) or not data.endswith(self._after):
            return None
        try:
            text = parse_json(data[begin:end])
        except (ValueError, RecursionError):
            return None
        if not isinstance(text, str):
            return None
        self._used = True
        return text

    def event(self, delta: dict[str, Any]) -> bytes:
        """The event that says ``delta`` in such a chunk."""
        return b"".join((self._head, encode_json(delta), self._tail))

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
