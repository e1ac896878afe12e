"""Real llama.cpp servers, each with a proxy in front of it per mode."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack

import httpx
import pytest

from lfm2_fixed.proxy import Settings
from lfm2_fixed.proxy.background import running
from tests.support import llama_rig
from tests.support.llama_fronts import Fronts


@pytest.fixture(scope="session", autouse=True)
def rig() -> None:
    """Say how to set the rig up where it is missing."""
    if reason := llama_rig.missing():
        pytest.skip(reason)


@pytest.fixture(scope="module", params=sorted(llama_rig.BUILDS))
def fronts(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Fronts]:
    """A running llama.cpp server of each build."""
    with ExitStack() as stack:
        log = tmp_path_factory.mktemp("llama") / "server.log"
        server = stack.enter_context(llama_rig.LlamaServer(request.param, log=log))
        buffer = stack.enter_context(running(Settings(server.url, mode="buffer")))
        parse = stack.enter_context(running(Settings(server.url)))
        # llama-server closes a connection after an error in a stream, without saying so: never use one again.
        limits = httpx.Limits(max_keepalive_connections=0)
        client = stack.enter_context(httpx.Client(timeout=60, trust_env=False, verify=False, limits=limits))
        yield Fronts(request.param, server.url, buffer, parse, client)
