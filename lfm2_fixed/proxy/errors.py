"""Errors as an OpenAI client understands them."""

from __future__ import annotations

from typing import Any


class ProxyError(Exception):
    """A request that cannot be answered as asked.

    ``status``: the HTTP status, where none has been sent yet.  ``kind`` and ``code`` are for programs.
    """

    def __init__(
        self,
        status: int,
        message: str,
        *,
        kind: str = "proxy_error",
        code: str | None = None,
        param: str | None = None,
    ) -> None:
        super().__init__(message)
        self.status = status
        self.message = message
        self.kind = kind
        self.code = code
        self.param = param

    def body(self) -> dict[str, Any]:
        """The JSON body, which is also the SSE event once a stream has begun."""
        return {
            "error": {
                "message": self.message,
                "type": self.kind,
                "param": self.param,
                "code": self.code if self.code is not None else self.status,
            }
        }


class UpstreamError(ProxyError):
    """An error the upstream reported inside its answer; passed on as it said it."""

    def __init__(self, said: Any) -> None:
        inner = said.get("error") if isinstance(said, dict) else None
        message = inner.get("message") if isinstance(inner, dict) else None
        super().__init__(502, str(message or "The upstream reported an error."), kind="upstream_error")
        self._said = said

    def body(self) -> dict[str, Any]:
        """What the upstream said; its ``error`` is never empty, since clients look at nothing else."""
        if isinstance(self._said, dict) and self._said.get("error"):
            return self._said
        if isinstance(self._said, dict) and self._said and "error" not in self._said:
            return {"error": self._said}
        return super().body()


def bad_chunk() -> ProxyError:
    """For an event or a reply that is not what the protocol says."""
    return ProxyError(502, "The upstream sent an event that is no chat completion chunk.", kind="upstream_error")
