"""Checking calls against what the request asked for, where the upstream was not told to."""

from __future__ import annotations

from dataclasses import replace

from ..core.stream import ToolCall
from .errors import ProxyError
from .request import Request

_FINISHED = ("stop", "tool_calls")


class Verifier:
    """Watches one reply's calls.  Each method raises ProxyError where the reply breaks the request.

    The proxy cannot make a model obey; it makes sure that a client never takes a wrong answer for
    a right one.
    """

    def __init__(self, request: Request) -> None:
        self._request = request
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
        index = self._completed
        self._completed += 1
        if self._request.gate is None:
            return
        from ..gate.validate import validate  # here: it needs jsonschema, which only the gate does

        issues = validate([{"name": call.name, "arguments": call.arguments}], self._request.gate)
        if issues:
            found = "; ".join(str(replace(issue, call=index)) for issue in issues)
            raise ProxyError(
                502,
                f"The model's calls do not fit the request's tools: {found}.",
                kind="invalid_tool_call",
                code=str(issues[0].code),
                param="tools",
            )

    def finish(self, reason: str | None) -> None:
        """The reply is over, for ``reason``.  A reply that was cut off says so itself."""
        if self._request.choice.required and not self._completed and reason in _FINISHED:
            raise _broken("tool_choice", "tool_choice requires a call; the model completed none.")


def _broken(param: str, message: str) -> ProxyError:
    return ProxyError(
        502,
        message + " The upstream cannot enforce it; ask again, or use a server that can.",
        kind="tool_choice_error",
        code="not_satisfied",
        param=param,
    )
