"""Streamed chunks put together into tool calls, as the official clients do it.

Three protocols, recognised by what arrives: OpenAI Chat Completions chunks, OpenAI Responses events,
Anthropic Messages events; each as dicts or as the objects of the ``openai`` and ``anthropic`` packages.
Whole responses of the same three are read by ``from_response``.

Nothing is repaired here, and nothing raises: what no official client could put together is kept as a ``Problem``.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from .chat import Choice
from .messages import Message
from .responses import Response
from .turn import Problem, Problems, Turn, error_message, is_error, is_index, plain

_FOREIGN = ("jsonrpc", "candidates")
"""Members that belong to other protocols (MCP's JSON-RPC, Gemini): an ``error`` beside one is theirs, too."""


def _foreign(document: Mapping[str, Any]) -> bool:
    return "choices" not in document and any(member in document for member in _FOREIGN)


def assemble(chunks: Iterable[Any], *, choice: int = 0) -> Turn:
    """Put the chunks of one streamed turn together.  ``choice``: which one, where ``n`` was above 1."""
    assembler = Assembler()
    for chunk in chunks:
        assembler.feed(chunk)
    return assembler.result(choice)


class Assembler:
    """The same, chunk by chunk."""

    def __init__(self) -> None:
        self._choices: dict[int, Choice] = {}
        self._response: Response | None = None
        self._message: Message | None = None
        self._problems = Problems()

    @property
    def choices(self) -> tuple[int, ...]:
        """The choices seen so far; always ``(0,)`` outside Chat Completions."""
        return tuple(sorted(self._choices)) or (0,)

    def feed(self, chunk: Any, offset: int | None = None) -> None:
        """Take the next chunk.  ``offset``: where it was found, in any unit; given back as evidence."""
        event = plain(chunk)
        if not isinstance(event, Mapping):
            self._problems.malformed("a chunk is not an object", None, offset)
            return
        kind = event.get("type")
        if _foreign(event):
            self._problems.add("unknown", "an event belongs to another protocol", None, offset)
        elif is_error(event):
            self._problems.add("error", error_message(event), None, offset)
        elif "choices" in event:
            self._feed_chat(event["choices"], offset)
        elif kind == "chunk" and "chunk" in event:  # the stream helper of the openai package
            self.feed(event["chunk"], offset)
        elif isinstance(kind, str) and kind.startswith("response."):
            self._response = self._response or Response(self._problems)
            self._response.feed(kind, event, offset)
        elif isinstance(kind, str):
            # Both vendors say: ignore the types that you do not know.
            self._message = self._message or Message(self._problems)
            self._message.feed(kind, event, offset)
        elif isinstance(event.get("usage"), Mapping):
            pass  # a report of usage that carries no choice
        else:
            self._problems.add("unknown", "an event has neither choices nor a type", None, offset)

    def result(self, choice: int = 0) -> Turn:
        """What has come together so far."""
        found = [self._choices or None, self._response, self._message if self._begun() else None]
        if sum(part is not None for part in found) > 1:
            self._problems.malformed("events of several protocols come in one stream")
        if self._choices:
            return self._choices.get(choice, Choice()).result(self._problems)
        if self._response is not None:
            return self._response.result()
        if self._message is not None and self._message.begun:
            return self._message.result()
        return Turn(problems=self._problems.all())

    def _begun(self) -> bool:
        return self._message is not None and self._message.begun

    def _feed_chat(self, choices: Any, offset: int | None) -> None:
        if not isinstance(choices, list):
            if choices is not None:
                self._problems.malformed("choices is not a list", None, offset)
            return
        for entry in choices:
            index = entry.get("index", 0) if isinstance(entry, Mapping) else None
            if not is_index(index):
                self._problems.malformed("a choice is no object with an integer index", None, offset)
                continue
            if index not in self._choices:
                self._choices[index] = Choice()
            self._choices[index].feed(entry, offset)


def from_response(response: Any, *, choice: int = 0) -> Turn:
    """The calls of a whole (not streamed) response of any of the three protocols.

    Raises ValueError if it is none of them.
    """
    whole = plain(response)
    if not isinstance(whole, Mapping):
        raise ValueError("a response must be an object")
    if _foreign(whole):
        raise ValueError("a response of another protocol")
    if is_error(whole) and not whole.get("choices"):
        return Turn(problems=(Problem("error", error_message(whole)),))
    problems = Problems()
    if isinstance(whole.get("choices"), list):
        found = [c for c in map(plain, whole["choices"]) if isinstance(c, Mapping) and c.get("index", 0) == choice]
        if not found:
            raise ValueError(f"the response has no choice {choice}")
        if not isinstance(found[0].get("message"), Mapping):
            raise ValueError("the choice has no message")
        chat = Choice()
        chat.whole(found[0])
        return chat.result(problems)
    if isinstance(whole.get("output"), list):
        responses = Response(problems)
        responses.whole(whole)
        return responses.result()
    if isinstance(whole.get("content"), list) and whole.get("role") == "assistant":
        message = Message(problems)
        message.whole(whole)
        return message.result()
    raise ValueError("no response of Chat Completions (choices), Responses (output) or Messages (content)")
