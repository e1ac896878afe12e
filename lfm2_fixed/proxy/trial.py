"""Whether an upstream takes a grammar, where its status is not the last word.

vLLM's front ends pass grammars on to an engine.  What that refuses is an error in the stream, behind the chunk with
the role; behind the front end in Rust it is an answer that is over before anything was said.  So the beginning of a
stream is held until it says something.  What that engine finds too large only later ends inside a call.
"""

from __future__ import annotations

from typing import Any

from ..wire.sse import NotAChunk, SSEvent, read_chunk
from .chat import Choice, empty, read_choices, stopped
from .errors import ProxyError, UpstreamError
from .request import Request
from .upstream import Kind

SURE, DOUBTFUL, NO_EVIDENCE = 2, 1, 0
"""How much an answer says about the next request with the same grammar."""


class Refused(Exception):
    """The upstream does not take a grammar.  ``said``: in these words.  ``evidence``: one of the above."""

    def __init__(self, said: str, evidence: int) -> None:
        super().__init__(said)
        self.said = said
        self.evidence = evidence


class Trial:
    """Watches how the answer to one request with a grammar begins."""

    def __init__(self, request: Request, kind: Kind) -> None:
        # Other engines say what they do not take; there an empty answer is an answer.
        self._silent = kind.rust
        # A model may say nothing where no call is forced.
        self._evidence = DOUBTFUL if request.choice.required else NO_EVIDENCE
        self._held: list[SSEvent] = []
        self.over = False
        """The client has got what came first."""

    def stream(self, events: list[SSEvent]) -> list[SSEvent]:
        """The events that can be translated after these have come: all so far, or none yet.  Raises Refused."""
        if self.over:
            return events
        self._held += events
        if not any(map(self._decides, events)):
            return []
        return self.rest()

    def rest(self) -> list[SSEvent]:
        """What is held, when no more comes."""
        self.over = True
        held, self._held = self._held, []
        return held

    def _decides(self, event: SSEvent) -> bool:
        if event.comment:
            return False
        if event.done:
            self._ended()
            return True
        try:
            chunk = read_chunk(event)
            if chunk.get("error") or chunk.get("object") == "error":
                # It may as well speak of something else that happened just then.
                raise Refused(UpstreamError(chunk).message, DOUBTFUL)
            choices = read_choices(chunk, "delta")
        except (NotAChunk, RecursionError, ProxyError):
            return True  # who translates it will say so
        if any(map(_says_something, choices)):
            return True
        if any(choice.reason is not None for choice in choices):
            self._ended()
            return True
        return False

    def whole(self, reply: dict[str, Any]) -> None:
        """See a whole reply.  Raises Refused, and ProxyError for what is no reply."""
        if not any(map(_says_something, read_choices(reply, "message"))):
            self._ended()

    def cut(self) -> None:
        """The answer ended inside a call, where no grammar lets it.  Raises Refused if that is the engine's doing."""
        if self._silent:
            raise Refused("its answer ended inside a call", SURE)

    def _ended(self) -> None:
        if self._silent:
            raise Refused("its answer was empty", self._evidence)


def _says_something(choice: Choice) -> bool:
    """Whether there is a text, a call, or a reason to end without either."""
    return stopped(choice.reason, choice.fields) or not empty({**choice.said, "role": None})
