"""What the upstream allows browsers, for the answers that are ours alone."""

from __future__ import annotations

from .upstream import Headers

_MOST_ORIGINS = 64
"""Origins remembered: pages that use one model server are few, and an origin may be anything a client says."""

_ALLOWANCES = frozenset(
    [b"access-control-allow-origin", b"access-control-allow-credentials", b"access-control-expose-headers"]
)


class Origins:
    """Remembers, by origin, the CORS headers of the upstream's answers.

    Without them a browser hides an error of ours (502, 504, 413 …) from the page that asked.  What is allowed is the
    upstream's business, so nothing is said here that it has not said of this origin, or of all.  It has always been
    asked before by the preflight request, which passes through.
    """

    def __init__(self) -> None:
        self._known: dict[bytes, Headers] = {}

    def learn(self, headers: Headers) -> None:
        """Remember what an answer of the upstream says."""
        said = [(name.lower(), value) for name, value in headers if name.lower() in _ALLOWANCES]
        allowed = next((value for name, value in said if name == b"access-control-allow-origin"), None)
        if allowed is None:
            return
        if allowed != b"*":
            said.append((b"vary", b"Origin"))
        self._known.pop(allowed, None)
        self._known[allowed] = said
        if len(self._known) > _MOST_ORIGINS:
            del self._known[next(iter(self._known))]

    def headers(self, origin: bytes) -> Headers:
        """The headers for an answer to ``origin``; none if it is no origin or nothing is known."""
        if not origin:
            return []
        return self._known.get(origin) or self._known.get(b"*") or []
