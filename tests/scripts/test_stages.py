"""``test.sh``: every stage runs, what fails is collected, and nothing outlives the run."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import textwrap
import time
from pathlib import Path

import pytest

from tests.support import ROOT

SCRIPTS = ROOT / "scripts"


def program(stages: str, tmp_path: Path) -> list[str]:
    """A run of these stages: Python that calls ``stage(name, *commands, …)``."""
    code = f"""
    import sys
    from pathlib import Path
    sys.path.insert(0, {str(SCRIPTS)!r})
    from stages import Run, Stage

    all_stages = []
    def stage(name, *codes, **fields):
        commands = [[sys.executable, "-c", code] if isinstance(code, str) else code for code in codes]
        all_stages.append(Stage(name, commands, **fields))
    """
    return [
        sys.executable,
        "-c",
        textwrap.dedent(code)
        + textwrap.dedent(stages)
        + f"\nsys.exit(Run(all_stages, logs=Path({str(tmp_path / 'logs')!r}), cores=2, cwd=Path({str(tmp_path)!r}))())",
    ]


def rows(output: str) -> dict[str, list[str]]:
    """The table: of each stage its numbers of passed, failed and skipped tests."""
    lines = output.splitlines()
    at = next(number for number, line in enumerate(lines) if line.split()[:2] == ["stage", "passed"])
    return {
        line[: lines[at].index("  passed")].strip(): line.split()[-5:-2]
        for line in lines[at + 1 :]
        if line[:1].strip() and line.split()[-1].isdigit()
    }


def test_every_stage_runs_and_failures_are_collected(tmp_path: Path) -> None:
    (tmp_path / "test_some.py").write_text(
        textwrap.dedent(
            """
            import pytest
            def test_good(): pass
            def test_bad(): assert 1 == 2
            @pytest.mark.skip(reason="the moon is full")
            def test_skipped(): pass
            """
        )
    )
    stages = """
    stage("first", "print('said by the first'); sys.exit(3)".replace("sys", "import sys; sys"), "pass")
    stage("good", "pass", "pass")
    stage("after first", "pass", needs=("first",))
    stage("after good", "pass", needs=("good",))
    stage("signal", "import os, signal; os.kill(os.getpid(), signal.SIGILL)")
    stage("missing", ["./no-such-program"])
    stage("tests", [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "test_some.py"], pytest=True)
    stage("no tests", [sys.executable, "-m", "pytest", "-q", "test_none.py"], pytest=True)
    stage("left out", "pass", left_out="it is Sunday")
    """
    result = subprocess.run(program(stages, tmp_path), capture_output=True, text=True, timeout=120, check=False)
    assert result.returncode == 1, result.stderr
    assert rows(result.stdout) == {
        "first": ["1", "1", "0"],
        "good": ["2", "0", "0"],
        "after first": ["0", "1", "0"],
        "after good": ["1", "0", "0"],
        "signal": ["0", "1", "0"],
        "missing": ["0", "1", "0"],
        "tests": ["1", "1", "1"],
        "no tests": ["0", "1", "0"],
        "left out": ["0", "0", "1"],
    }
    for words in (
        *("said by the first", "ended with status 3", "not run: “first” failed", "died by SIGILL: it was built for"),
        *(
            "No such file",
            "assert 1 == 2",
            "skipped: the moon is full",
            "skipped: it is Sunday",
            "test_some::test_good",
        ),
    ):
        assert words in result.stdout, words
    assert result.stdout.splitlines()[-1] == "5 passed, 6 failed, 2 skipped"


def test_who_waits_for_a_download_sees_it(tmp_path: Path) -> None:
    """The last line of a preparation, with the news; of other stages nothing."""
    stages = """
    import stages
    stages.NEWS_SECONDS = 0.5
    stage("a venv", "import time; print('begun'); print('the tools, 200 MB', flush=True); time.sleep(1.5)", cores=0)
    stage("a check", "import time; print('of no interest', flush=True); time.sleep(1.5)")
    """
    done = subprocess.run(program(stages, tmp_path), capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done
    news = done.stdout.split(" s: a venv (")[1:]
    assert news and all(one.splitlines()[1] == "      the tools, 200 MB" for one in news[:1]), done.stdout
    assert "begun" not in done.stdout and "of no interest" not in done.stdout


def test_all_is_well(tmp_path: Path) -> None:
    result = subprocess.run(program('stage("one", "pass")', tmp_path), capture_output=True, text=True, check=False)
    assert (result.returncode, result.stdout.splitlines()[-1]) == (0, "1 passed, 0 failed, 0 skipped")


def is_alive(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except FileNotFoundError:
        return False


@pytest.mark.skipif(sys.platform != "linux", reason="processes are found in /proc")
@pytest.mark.parametrize("ignored", [False, True], ids=["in front", "in the background"])
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_nothing_survives_a_stop(tmp_path: Path, number: signal.Signals, ignored: bool) -> None:
    """Not what left its group and ignores signals, nor where a shell started the run with Ctrl-C ignored."""
    stages = '''
    stubborn = """
    import os, signal, subprocess, sys, time
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    code = "import os, time; print(os.getpid(), file=open('pid', 'w'), flush=True); time.sleep(600)"
    subprocess.Popen([sys.executable, "-c", code], start_new_session=True)
    """
    import textwrap
    stage("leaves a child", textwrap.dedent(stubborn), "import time; time.sleep(600)")
    '''
    before = signal.signal(signal.SIGINT, signal.SIG_IGN) if ignored else None
    try:
        process = subprocess.Popen(program(stages, tmp_path), stdout=subprocess.PIPE, text=True)
    finally:
        if before is not None:
            signal.signal(signal.SIGINT, before)
    child = tmp_path / "pid"
    for _ in range(600):
        if child.exists() and child.read_text().strip():
            break
        time.sleep(0.1)
    pid = int(child.read_text())
    assert is_alive(pid)
    process.send_signal(number)
    output, _ = process.communicate(timeout=60)
    assert process.returncode == 128 + number and "nothing is left running" in output
    assert not is_alive(pid)


def checks(*arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [str(ROOT / "test.sh"), *arguments],
        env={**os.environ, "PYTHON": sys.executable},
        capture_output=True,
        text=True,
    )


def test_the_command_line() -> None:
    helped = checks("--help")
    assert helped.returncode == 0 and "--quick" in helped.stdout and "at most 2 minutes" in helped.stdout
    assert "tests without an engine" in checks("--list").stdout.splitlines()
    for wrong in (("--quik",), ("--only", "everything")):
        refused = checks(*wrong)
        assert refused.returncode == 2 and refused.stderr.startswith("./test.sh: error: ")
