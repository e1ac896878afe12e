"""Real servers for the tests: one at a time, started when a test first needs it, always stopped.

Run by tests/e2e/run.sh, inside the serve venv.
"""

from __future__ import annotations

import importlib.util
import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support import ROOT, prepared

if importlib.util.find_spec("vllm") is None:
    raise pytest.UsageError("tests/e2e need the serve venv: run tests/e2e/run.sh")

from rig import PLUGIN, Server, ServerError, serve_venv, tail
from serve_processes import how_it_ended

from lfm2_fixed.core.dialects import DIALECTS
from tests.support.prepared import PreparedServer

FAMILIES = ("llama4", "pythonic", "olmo3")
"""The servers that are named like a dialect: its parser and a Llama model."""

KINDS = ("lfm2", "reasoning", "thoughts", *FAMILIES, "stock", "rust")
"""The servers, in the order in which they run; each is also the name of the fixture that gives it."""


def make_server(kind: str, log: Path) -> Server:
    """The server of this kind, not started."""
    if kind == "lfm2":
        # Through the script that users run: it hands its flags on.
        command = [str(ROOT / "serve.sh"), "--log", str(log)]
        return Server(command=command, log=log.with_suffix(".serve.log"))
    if kind == "reasoning":
        # The plugin by its module's name; several tokens in one delta.
        flags = ["--reasoning-parser", "qwen3", "--stream-interval", "5"]
        return PreparedServer("lfm2_fixed", plugin="lfm2_fixed.parser", flags=flags, log=log)
    if kind == "thoughts":
        # Both of the package's parsers, from a checkout: the engine's process needs the plugin for the second one.
        flags = ["--reasoning-parser", "lfm2_fixed", "--reasoning-parser-plugin", str(PLUGIN), "--stream-interval", "3"]
        return Server("lfm2_fixed", flags=flags, log=log)
    if kind in FAMILIES:
        return PreparedServer(DIALECTS[kind].parser, architecture="llama", log=log)
    if kind == "rust":
        return Server(rust=True, log=log)
    return PreparedServer("lfm2", plugin=None, log=log)


class Servers:
    """At most one running server."""

    def __init__(self) -> None:
        self.running: Server | None = None
        self.log: Path | None = None
        self._kind = ""
        self._broken: dict[str, ServerError] = {}

    def get(self, kind: str) -> Server:
        """The running server of this kind, started if need be; another one is stopped first."""
        if self._kind == kind and self.running is not None and self.running.running():
            return self.running
        if kind in self._broken:  # not for every test again
            raise self._broken[kind]
        self.stop()
        logs = serve_venv() / "logs"
        logs.mkdir(exist_ok=True)
        self.log = logs / f"{kind}.log"
        self.log.unlink(missing_ok=True)
        server = make_server(kind, self.log)
        try:
            server.__enter__()
        except ServerError as error:
            self._broken[kind] = error
            raise
        self.running, self._kind = server, kind
        return server

    def stop(self) -> None:
        """Stop the running server."""
        if self.running is not None:
            self.running.stop()
        self.running = None


_servers = Servers()


@pytest.fixture(scope="session", autouse=True)
def _stop_servers() -> Iterator[None]:
    yield
    _servers.stop()
    prepared.end()


@pytest.fixture
def lfm2() -> Server:
    """LFM2 with ``lfm2_fixed``, started by serve.sh."""
    return _servers.get("lfm2")


@pytest.fixture
def reasoning() -> Server:
    """LFM2 with ``lfm2_fixed``, ``--reasoning-parser qwen3`` and ``--stream-interval 5``."""
    return _servers.get("reasoning")


@pytest.fixture
def thoughts() -> Server:
    """LFM2 with ``lfm2_fixed`` as its tool parser and its reasoning parser, and ``--stream-interval 3``."""
    return _servers.get("thoughts")


@pytest.fixture
def llama4() -> Server:
    """A Llama model with ``llama4_pythonic_fixed``."""
    return _servers.get("llama4")


@pytest.fixture
def pythonic() -> Server:
    """A Llama model with ``pythonic_fixed``; its tokenizer knows the family's markers as text only."""
    return _servers.get("pythonic")


@pytest.fixture
def olmo3() -> Server:
    """A Llama model with ``olmo3_fixed``, whose markers are text."""
    return _servers.get("olmo3")


@pytest.fixture
def stock() -> Server:
    """LFM2 with vLLM's own parser: a server that knows nothing of this package."""
    return _servers.get("stock")


@pytest.fixture
def rust() -> Server:
    """LFM2 behind vLLM's front end in Rust, which has no parser for it and loads no plugin."""
    return _servers.get("rust")


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Tests of one server together, so that each server is started once."""

    def rank(item: pytest.Item) -> int:
        names = getattr(item, "fixturenames", ())
        return next((number for number, kind in enumerate(KINDS) if kind in names), len(KINDS))

    items.sort(key=rank)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: pytest.Item, call: pytest.CallInfo[None]):  # type: ignore[no-untyped-def]
    """Show the end of the server's log with a failed test."""
    report = yield
    if report.failed and _servers.running is not None and not _servers.running.running():
        report.sections.append(("the server", f"it {how_it_ended(_servers.running.wait())}"))
    if report.failed and _servers.log is not None:
        report.sections.append((f"the end of {os.fspath(_servers.log)}", tail(_servers.log, 40)))
    return report
