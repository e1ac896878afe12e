"""Checking calls against what the request asked for, where the upstream was not told to; and how a reply ended."""

from __future__ import annotations

from dataclasses import replace

from ..wire.turn import CALLS_PROMISED, ENDED_WELL, Call
from .errors import ProxyError
from .request import Request

_WELL: frozenset[str] = frozenset().union(
    *ENDED_WELL.values(),
    # Servers that pass on what their engine calls it (TGI, Transformers, MLX, gateways).  The gate does not take
    # these words; the proxy does because it gives its client the protocol's own in their place.
    ["complete", "done", "end", "eos", "eos_token", "end_of_turn", "finished", "tool_call"],
)
_CUT = frozenset(["length", "max_tokens", "content_filter"])
"""Words by which clients know that a reply was cut off."""


def is_whole(reason: str | None) -> bool:
    """Whether this finish reason says that the model ended the reply itself.

    None: the upstream gave no reason, only the end of the answer (``[DONE]``, or the body of a whole reply).
    Words that are not known are not trusted: they may say "aborted".
    """
    return reason is None or reason.lower() in _WELL


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

    def complete(self, call: Call) -> None:
        """A call is complete."""
        index = self._completed
        self._completed += 1
        if self._request.gate is None:
            return
        from ..gate.validate import validate  # here: it needs jsonschema, which only the gate does

        issues = validate([call], self._request.gate)
        if issues:
            found = "; ".join(str(replace(issue, call=index)) for issue in issues)
            raise _refused(f"The model's calls do not fit the request's tools: {found}.", str(issues[0].code))

    def unchecked(self) -> None:
        """The upstream sends calls of its own, which come in pieces that nobody here reads."""
        choice = self._request.choice
        if self._request.gate is not None or choice.required or choice.none or choice.names or self._request.single:
            raise ProxyError(
                502,
                "The upstream sent tool calls although told not to read any; what the request asks of them cannot be "
                "checked. Use --mode buffer.",
                kind="upstream_error",
            )

    def finish(self, reason: str | None, *, cut: bool = False) -> None:
        """The reply is over, for ``reason``; ``cut``: inside a call.

        A reply that was cut off for a reason that clients know says so itself.
        """
        if reason in _CUT:
            return
        if self._request.gate is not None:
            if cut:
                raise _refused("The model's answer ends inside a call.", "INCOMPLETE")
            if reason in CALLS_PROMISED and not self._started:
                message = f"The finish reason is {reason!r}, but the answer has no call."
                raise _refused(message, "CALL_COUNT_MISMATCH")
            if self._started and not is_whole(reason):
                raise _refused(f"The answer has calls, and ended for the reason {str(reason)[:40]!r}.", "INCOMPLETE")
        if self._request.choice.required and not self._completed:
            raise _broken("tool_choice", "tool_choice requires a call; the model completed none.")


def _refused(message: str, code: str) -> ProxyError:
    return ProxyError(502, message, kind="invalid_tool_call", code=code, param="tools")


def _broken(param: str, message: str) -> ProxyError:
    return ProxyError(
        502,
        message + " The upstream cannot enforce it; ask again, or use a server that can.",
        kind="tool_choice_error",
        code="not_satisfied",
        param=param,
    )
