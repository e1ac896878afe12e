"""Servers out of a process that has imported vLLM already: up in five seconds, where an ordinary start takes eighteen,
sixteen of them for the imports of two processes.

``multiprocessing``'s fork server imports vLLM's API server, and nothing of this package; each server is a child of it
that runs the same module with the same flags as ``python -m`` would.  Its engine is a fork of that child, as vLLM has
it on GPUs (its CPU platform starts a new interpreter), so it holds whatever the server has loaded.  What is about the
engine's own loading of the plugin, or about the command line, needs an ordinary ``Server``.
"""

from __future__ import annotations

import multiprocessing
import os
import runpy
import signal
import subprocess
import sys
from collections.abc import Sequence
from multiprocessing import forkserver
from multiprocessing.process import BaseProcess
from typing import Any, BinaryIO
from unittest.mock import patch

from rig import ROOT, Server, end_with_parent

MODULE = "vllm.entrypoints.openai.api_server"
_context = multiprocessing.get_context("forkserver")
_context.set_forkserver_preload(["tests.support.preloaded"])


class PreparedServer(Server):
    """A ``Server`` that need not import vLLM."""

    def _start(self, command: Sequence[str], log: BinaryIO) -> Any:
        _python, _option, module, *flags = command
        assert module == MODULE
        # The fork server begins with the first of them, in its environment: threads are counted when torch is imported.
        with patch.dict(os.environ, self._env()):
            process = _context.Process(target=_serve, args=(flags, self._env(), log.name))
            process.start()
        return _Popen(process)


class _Popen:
    """What ``Server`` asks of ``subprocess.Popen``."""

    def __init__(self, process: BaseProcess) -> None:
        self._process = process
        self.pid = process.pid or 0

    @property
    def returncode(self) -> int | None:
        return self._process.exitcode

    def poll(self) -> int | None:
        return self._process.exitcode

    def wait(self, timeout: float | None = None) -> int:
        self._process.join(timeout)
        if self._process.exitcode is None:
            raise subprocess.TimeoutExpired(MODULE, timeout or 0)
        return self._process.exitcode

    def send_signal(self, number: signal.Signals) -> None:
        os.kill(self.pid, number)


def _serve(flags: list[str], environment: dict[str, str], log: str) -> None:
    """In the child: what ``python -m`` would do."""
    end_with_parent()
    os.setsid()
    os.chdir(ROOT)
    os.environ.clear()
    os.environ.update(environment)
    for number in (1, 2):
        os.dup2(os.open(log, os.O_WRONLY | os.O_APPEND), number)
    assert "tests.support.preloaded" in sys.modules  # the fork server does not say what it could not import
    assert not any(name.split(".")[0] == "lfm2_fixed" for name in sys.modules)
    for name, module in list(sys.modules.items()):
        if name.startswith("vllm.") and hasattr(module, "get_mp_context"):
            module.get_mp_context = _fork  # type: ignore[attr-defined]
    sys.argv = [MODULE, *flags]
    runpy.run_module(MODULE, run_name="__main__", alter_sys=True)


def _fork() -> Any:
    return multiprocessing.get_context("fork")


def end() -> None:
    """End the fork server and wait for it: what its servers cost is then counted with the tests."""
    forkserver._forkserver._stop()  # type: ignore[attr-defined]
