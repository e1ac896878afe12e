"""The venv of serve.sh: what is said before anything is downloaded, and that a stop leaves nothing.

Python and pip are stand-ins; the real ones are in the stage that makes the venv.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from tests.support import ROOT
from tests.support.standins import script

SETUP = ROOT / "serve" / "setup_venv.sh"

PYTHON = """#!/bin/bash
case "$*" in
  -V) echo "Python ${VERSION:-3.12.1}" ;;
  *"-m venv"*) mkdir -p "${@: -1}/bin" && cp "$0" "${@: -1}/bin/python" ;;
  *sys.version_info*) [ "${VERSION:-3.12.1}" = 3.12.1 ] ;;
  *--dry-run*) echo "$PLAN" ;;
  *" install "*) echo "$$ $*" >>"$CALLS"; [ -z "${PIP_SAYS:-}" ] || { echo "$PIP_SAYS"; exit 1; }; sleep "${NAP:-0}" ;;
esac
"""
CPU, CUDA = '{"version": "2.13.0+cpu"}', '{"version": "2.13.0"}'


@pytest.fixture
def environment(tmp_path: Path) -> dict[str, str]:
    """With stand-ins for Python, and for ``df`` and ``uname`` where a test names what they say."""
    script(tmp_path / "bin" / "df", '#!/bin/bash\necho header\necho "/dev/x 1 1 ${FREE:-99999} 1% /"\n')
    script(tmp_path / "bin" / "uname", '#!/bin/bash\necho "${SYSTEM:-Linux}"\n')
    return {
        **os.environ,
        "PATH": f"{tmp_path / 'bin'}:{os.environ['PATH']}",
        "PYTHON": str(script(tmp_path / "python", PYTHON)),
        "CALLS": str(tmp_path / "calls"),
        "PLAN": CPU,
        "LFM2_FIXED_TORCH": "torch==2.13.0",
    }


def setup(tmp_path: Path, environment: dict[str, str], **more: str) -> subprocess.CompletedProcess[str]:
    command = ["bash", str(SETUP), str(tmp_path / "venv")]
    return subprocess.run(command, env={**environment, **more}, capture_output=True, text=True, timeout=120)


def installed(tmp_path: Path) -> int:
    calls = tmp_path / "calls"
    return len(calls.read_text().splitlines()) if calls.exists() else 0


def test_a_complete_venv_is_recognised(tmp_path: Path, environment: dict[str, str]) -> None:
    first = setup(tmp_path, environment)
    assert first.returncode == 0, first.stderr
    assert first.stderr.startswith(f"[venv] vLLM's CPU build goes into {tmp_path / 'venv'}, once: 2 GB or 5.7 GB")
    assert installed(tmp_path) == 3 and "is ready" in first.stderr and "still at it" not in first.stderr
    second = setup(tmp_path, environment, PYTHON="/no/python")
    assert (second.returncode, second.stderr) == (0, f"[venv] {tmp_path / 'venv'} is ready\n")
    assert setup(tmp_path, environment, PYTHON="/no/python", LFM2_FIXED_TORCH="torch==1").returncode == 1


@pytest.mark.parametrize("plan, free, needed", [(CPU, 2900, 3000), (CUDA, 6900, 7000), ("", 6900, 7000)])
def test_the_disk_is_looked_at_before_the_download(
    tmp_path: Path, environment: dict[str, str], plan: str, free: int, needed: int
) -> None:
    """By what pip would take: the CPU build is a fifteenth of the other."""
    result = setup(tmp_path, environment, PLAN=plan, FREE=str(free))
    assert result.returncode == 1 and installed(tmp_path) == 0
    assert f"needs {needed} MB of disk" in result.stderr and f"{free} MB are free" in result.stderr
    assert setup(tmp_path, environment, PLAN=plan, FREE=str(needed)).returncode == 0


def test_another_system_is_refused_before_anything_is_made(tmp_path: Path, environment: dict[str, str]) -> None:
    result = setup(tmp_path, environment, SYSTEM="Darwin")
    assert result.returncode == 1 and "is for Linux, and this is Darwin" in result.stderr
    assert not (tmp_path / "venv").exists()


def test_an_old_python(tmp_path: Path, environment: dict[str, str]) -> None:
    result = setup(tmp_path, environment, VERSION="3.9.1")
    assert result.returncode == 1 and not (tmp_path / "venv").exists()
    assert "is Python 3.9.1; the CPU build of vLLM needs Python 3.11 to 3.14" in result.stderr


def test_what_pip_says_is_shown(tmp_path: Path, environment: dict[str, str]) -> None:
    for number in (1, 2):  # again: it continues, and does not take the venv for complete
        result = setup(tmp_path, environment, PIP_SAYS="ERROR: no such torch")
        assert result.returncode == 1 and installed(tmp_path) == number
        assert "[venv]   ERROR: no such torch" in result.stderr and "failed (full log: " in result.stderr


def test_a_missing_network_is_named(tmp_path: Path, environment: dict[str, str]) -> None:
    """pip says that the package has no such version."""
    says = "ERROR: Could not find a version that satisfies the requirement torch==1 (from versions: none)"
    result = setup(tmp_path, environment, PLAN="", PIP_SAYS=says)
    assert result.returncode == 1 and "[venv] PyTorch: no build; 7000 MB" in result.stderr
    assert "is there a network" in result.stderr.splitlines()[-2]
    assert "is there a network" not in setup(tmp_path, environment, PIP_SAYS="ERROR: other").stderr


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_stop_leaves_nothing_running(tmp_path: Path, environment: dict[str, str], number: signal.Signals) -> None:
    starter = f"""
import os, signal
signal.signal(signal.SIGINT, signal.SIG_DFL)  # a shell's background jobs ignore it
os.execvp("bash", ["bash", {str(SETUP)!r}, {str(tmp_path / "venv")!r}])
"""
    command = [sys.executable, "-c", starter]
    process = subprocess.Popen(
        command, env={**environment, "NAP": "600"}, stderr=subprocess.PIPE, text=True, start_new_session=True
    )
    for _ in range(600):
        if installed(tmp_path):
            break
        time.sleep(0.1)
    pid = int((tmp_path / "calls").read_text().split()[0])
    process.send_signal(number)
    assert "stopped; run it again to continue" in process.communicate(timeout=60)[1]
    for _ in range(100):
        if not runs(pid):
            return
        time.sleep(0.1)
    raise AssertionError("pip is still there")


def runs(pid: int) -> bool:
    """Whether the process is there, and not only its exit status, which whoever adopted it has not taken yet."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False
