"""Every program of the tree says with ``--help`` what it does, and does nothing else."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.support import ROOT

MAIN = '__name__ == "__main__"'
READS_A_JOB = ROOT / "benchmarks" / "worker.py"
"""Started by ``python -m benchmarks`` alone, with a job on its standard input."""


def programs() -> list[list[str]]:
    """The command lines that a person may type, without their arguments."""
    scripts = [path for path in (ROOT / "scripts").iterdir() if path.is_file() and os.access(path, os.X_OK)]
    shell = [[str(path)] for path in (*scripts, ROOT / "serve.sh", ROOT / "test.sh", ROOT / "serve" / "setup_venv.sh")]
    modules = [
        ["-m", ".".join(path.relative_to(ROOT).with_suffix("").parts).removesuffix(".__main__")]
        for path in (ROOT / "benchmarks").rglob("*.py")
        if MAIN in path.read_text(encoding="utf-8") and path != READS_A_JOB
    ]
    files = [[str(path)] for path in (ROOT / "scripts").glob("*.py") if MAIN in path.read_text(encoding="utf-8")]
    files.append([str(ROOT / "serve" / "build_model.py")])
    python = [[sys.executable, *words] for words in sorted([*modules, *files])]
    return [*sorted(shell), [str(ROOT / "serve.sh"), "--demo"], [str(ROOT / "serve.sh"), "--port", "8080"], *python]


def test_all_are_found() -> None:
    found = {Path(command[-1]).name for command in programs()}
    assert found > {"serve.sh", "test.sh", "test-venv", "vllm-sources", "pictures.py", "benchmarks", "benchmarks.proxy"}


@pytest.mark.parametrize("command", programs(), ids=lambda command: " ".join(Path(word).name for word in command))
def test_help(command: list[str], tmp_path: Path) -> None:
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "LFM2_FIXED_CACHE": str(tmp_path)}
    done = subprocess.run(
        [*command, "--help"], cwd=tmp_path, env=environment, capture_output=True, text=True, timeout=60
    )
    said = done.stdout + done.stderr
    assert "usage: " in said and "usage: usage:" not in said and "Traceback" not in said, said
    assert "error" not in done.stderr.lower(), said
    assert list(tmp_path.iterdir()) == [], "nothing is made"


WRONG = {
    "benchmarks --vllm-path nothing": "there is no nothing/vllm",
    "benchmarks --sglang-path nothing": "there is no nothing/sglang",
    "benchmarks.quality --vllm-path nothing": "there is no nothing/vllm",
    "benchmarks.quality.report nothing": "there is no file nothing",
    "benchmarks.compare nothing": "there is no nothing/lfm2_fixed",
    "benchmarks.constrained http://127.0.0.1:1": "http://127.0.0.1:1: ",  # nobody may listen there
    "benchmarks.replay much": "invalid float value: 'much'",
}


@pytest.mark.parametrize("words", WRONG)
def test_what_is_not_there_is_a_sentence(words: str, tmp_path: Path) -> None:
    command = [sys.executable, "-m", *words.split()]
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    done = subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True, timeout=60)
    assert done.returncode in (1, 2) and done.stdout == "", done
    assert WRONG[words] in done.stderr.splitlines()[-1] and "Traceback" not in done.stderr, done
