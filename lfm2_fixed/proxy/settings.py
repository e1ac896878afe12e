"""What can be set."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, get_args

from ..core.dialects import DIALECTS

Mode = Literal["auto", "parse", "buffer"]
Stream = Literal["delta", "call"]
Reasoning = Literal["split", "open", "keep"]
Constrain = Literal["auto", "off"]


@dataclass(frozen=True)
class Settings:
    """How the proxy behaves.  All times are in seconds; 0 turns a limit off.

    Raises ValueError for a word that has no meaning here.
    """

    upstream: str
    """Base URL of the server: ``http://host:port``, with a path if it lives under one."""
    mode: Mode = "auto"
    """Who reads the calls: we (``parse``), the server (``buffer``), or as the server's kind suggests."""
    dialect: str = "lfm2"
    stream: Stream = "delta"
    """In ``parse``: send arguments as they come, or each call whole when it is complete."""
    reasoning: Reasoning = "split"
    """In ``parse``: ``<think>`` becomes ``reasoning_content``; ``open``: a reply begins there; ``keep``: it stays."""
    constrain: Constrain = "auto"
    """In ``parse``: hold the upstream's model to what a request asks of its calls, by a grammar where it takes one."""
    gate: bool = False
    """Hold calls back until they pass validation against the request's tools."""
    heartbeat: float = 10.0
    """Pause after which a stream says that it lives, in an SSE comment."""
    connect_timeout: float = 10.0
    read_timeout: float = 600.0
    """The longest silence of the upstream."""
    client_timeout: float = 120.0
    """The longest time a client may take to send, or to take, the next bytes."""
    max_requests: int = 1000
    """Requests at once; more are answered with 503."""
    max_body: int = 64 * 2**20
    """Bytes of a request body; larger ones are answered with 413."""
    ca_file: str | None = None
    """Certificates to trust in place of the system's, for an ``https`` upstream."""

    def __post_init__(self) -> None:
        words = {"mode": Mode, "stream": Stream, "reasoning": Reasoning, "constrain": Constrain}
        known = {"dialect": tuple(DIALECTS), **{name: get_args(kind) for name, kind in words.items()}}
        for name, meant in known.items():
            if getattr(self, name) not in meant:
                raise ValueError(f"{name} must be one of {', '.join(meant)}, not {getattr(self, name)!r}.")

    @property
    def held(self) -> bool:
        """Whether calls are sent whole."""
        return self.gate or self.stream == "call"


LIMIT_OF_AN_EVENT = 64 * 2**20
"""Bytes of one server-sent event from the upstream."""
