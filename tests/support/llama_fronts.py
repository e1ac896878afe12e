"""A llama-server and what stands in front of it."""

from __future__ import annotations

from dataclasses import dataclass

import httpx


@dataclass
class Fronts:
    """One llama-server and its proxies: base URLs."""

    build: str
    direct: str
    buffer: str
    parse: str
    client: httpx.Client
