"""The proxy and a scripted server behind it, both real, both on the loopback interface."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from typing import Any

import pytest

from lfm2_fixed.proxy import Settings
from lfm2_fixed.proxy.background import running
from tests.support.pairs import Pair
from tests.support.scripted import Scripted, serving


@pytest.fixture(scope="module")
def start() -> Iterator[Callable[..., Pair]]:
    """A function that starts a pair: ``start(kind="llama.cpp", mode="parse", …)``."""
    stacks: list[ExitStack] = []

    def start(
        kind: str = "llama.cpp",
        *,
        says: dict[str, Any] | None = None,
        tokens: dict[str, int] | None = None,
        **settings: Any,
    ) -> Pair:
        stacks.append(stack := ExitStack())
        upstream = Scripted(kind=kind)
        upstream.says = says or {}
        upstream.tokens = upstream.tokens if tokens is None else tokens
        url = stack.enter_context(serving(upstream))
        settings.setdefault("upstream", url)
        pair = Pair(stack.enter_context(running(Settings(**settings))), upstream)
        stack.callback(pair.client.close)
        return pair

    yield start
    # All at once: a server takes a third of a second to its end, and more where a request still waits.
    with ThreadPoolExecutor(max(1, len(stacks))) as pool:
        list(pool.map(ExitStack.close, stacks))


@pytest.fixture(scope="module")
def parse(start: Callable[..., Pair]) -> Pair:
    """In front of a llama.cpp, so in the mode ``parse``."""
    return start()


@pytest.fixture(scope="module")
def buffer(start: Callable[..., Pair]) -> Pair:
    """In front of a server of unknown kind, so in the mode ``buffer``."""
    return start(kind="unknown", heartbeat=0.2)


@pytest.fixture(scope="module")
def gated(start: Callable[..., Pair]) -> Pair:
    """As ``parse``, and behind the gate."""
    return start(gate=True)
