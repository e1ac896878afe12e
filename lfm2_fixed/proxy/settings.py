"""What can be set."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

Mode = Literal["auto", "parse", "buffer"]
Reasoning = Literal["split", "open", "keep"]


@dataclass(frozen=True)
class Settings:
    """How the proxy behaves.  All times are in seconds; 0 turns a limit off."""

    upstream: str
    """Base URL of the server: ``http://host:port``, with a path if it lives under one."""
    mode: Mode = "auto"
    """Who reads the calls: we (``parse``), the server (``buffer``), or as the server's kind suggests."""
    dialect: str = "lfm2"
    stream: Literal["delta", "call"] = "delta"
    """In ``parse``: send arguments as they come, or each call whole when it is complete."""
    reasoning: Reasoning = "split"
    """In ``parse``: ``<think>`` becomes ``reasoning_content``; ``open``: a reply begins there; ``keep``: it stays."""
    constrain: Literal["auto", "off"] = "auto"
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

    @property
    def held(self) -> bool:
        """Whether calls are sent whole."""
        return self.gate or self.stream == "call"


LIMIT_OF_AN_EVENT = 64 * 2**20
"""Bytes of one server-sent event from the upstream."""
