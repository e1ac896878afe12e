"""Checking calls against what the request asked for, where the upstream was not told to."""

from __future__ import annotations

from collections.abc import Sequence

from ..stream import ToolCall
from .errors import ProxyError
from .plan import Request
from .settings import Settings

_FINISHED = ("stop", "tool_calls")


class Verifier:
    """Watches one reply's calls.  Each method raises ProxyError where the reply breaks the request.

    The proxy cannot make a model obey; it makes sure that a client never takes a wrong answer for
    a right one.
    """

    def __init__(self, request: Request, settings: Settings) -> None:
        self._request = request
        self._gate = settings.gate
        self._started = 0
        self._completed = 0

    def start(self, name: str) -> None:
        """A call begins."""
        choice = self._request.choice
        if choice.names is not None and name not in choice.names:
            allowed = ", ".join(sorted(choice.names))
            raise _broken("tool_choice", f"The model called {name!r}; tool_choice allows only {allowed}.")
        if self._request.single and self._started:
            raise _broken("parallel_tool_calls", "The model wrote more than one call; parallel_tool_calls is false.")
        self._started += 1

    def complete(self, call: ToolCall) -> None:
        """A call is complete."""
        self._completed += 1
        if self._gate:
            check([call], self._request)

    def finish(self, reason: str | None) -> None:
        """The reply is over, for ``reason``.  A reply that was cut off says so itself."""
        if self._request.choice.required and not self._completed and reason in _FINISHED:
            raise _broken("tool_choice", "tool_choice requires a call; the model completed none.")


def check(calls: Sequence[ToolCall], request: Request) -> None:
    """Raises ProxyError for calls that do not fit the request's tools."""
    from ..gate import validate  # here, for its own requirements

    problems = [str(problem) for problem in validate(calls, request.tools)]
    if problems:
        raise ProxyError(
            502,
            "The model's calls do not fit the request's tools: " + "; ".join(problems),
            kind="invalid_tool_call",
            code="gate",
            param="tools",
        )


def _broken(param: str, message: str) -> ProxyError:
    return ProxyError(
        502,
        message + " The upstream cannot enforce it; ask again, or use a server that can.",
        kind="tool_choice_error",
        code="not_satisfied",
        param=param,
    )
