"""Run stages of checks side by side, collect what fails, and end with a table.

``test.sh`` names the stages.  Standard library only, any Python from 3.10: nothing is installed yet when this
starts.  A stage is a list of commands.  Those of one stage run one after the other, those of different stages
side by side as far as the cores go.  Every stage runs, whatever became of the others, unless what it needs has
failed.  When the run ends, by Ctrl-C too, none of the processes it started is left.
"""

from __future__ import annotations

import ctypes
import os
import signal
import subprocess
import sys
import time
import xml.etree.ElementTree as ElementTree
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "serve"))

from serve_processes import how_it_ended

POLITE_SECONDS = 30.0
"""How long the processes have to end by themselves after Ctrl-C: what a vLLM engine takes to shut down."""
NEWS_SECONDS = 20.0
"""Between two lines that say what still runs: often enough that nobody thinks it hangs."""
SHOWN_LINES = 150
"""Of a failed command's output, its end: pytest puts the failures and their summary there."""
SLOWEST = 15


@dataclass
class Stage:
    """Something to run; one row of the table."""

    name: str
    commands: list[list[str]]
    needs: tuple[str, ...] = ()
    """Stages that must have passed before this one begins."""
    cores: int = 1
    """How many it keeps busy; 0 for a preparation, which mostly waits for the network and is no check."""
    environment: dict[str, str] = field(default_factory=dict)
    pytest: bool = False
    """Whether the commands are pytest's: their tests are counted, not the commands."""
    left_out: str = ""
    """Why it is not run at all."""

    passed: int = 0
    failed: int = 0
    skipped: dict[str, int] = field(default_factory=dict)
    """Skipped tests by their reason."""
    reason: str = ""
    """Of a stage that did not run to its end: why."""
    begin: float = 0.0
    seconds: float = 0.0
    cpu_seconds: float = 0.0
    """Of the commands and of what they waited for: what a stage costs also where other programs run beside it."""
    state: str = "waiting"
    """``waiting``, ``running`` or ``done``."""
    tests: list[tuple[float, str]] = field(default_factory=list)
    """Seconds and name of every test."""


def descendants(of: int, *, deep: bool = True) -> list[int]:
    """The processes below this one, or its children alone (Linux; elsewhere none are found)."""
    parents: dict[int, int] = {}
    for entry in Path("/proc").glob("[0-9]*/stat"):
        with suppress(OSError, ValueError):
            # "pid (name) state ppid …"; a name may hold blanks and parentheses.
            parents[int(entry.parent.name)] = int(entry.read_text().rpartition(")")[2].split()[1])
    if not deep:
        return [child for child, its_parent in parents.items() if its_parent == of]
    found = [of]
    for parent in found:
        found += [child for child, its_parent in parents.items() if its_parent == parent]
    return found[1:]


class Run:
    """One run of the stages."""

    def __init__(self, stages: Sequence[Stage], *, logs: Path, cores: int, cwd: Path) -> None:
        self.stages = list(stages)
        self.logs = logs
        self.cores = cores
        self.cwd = cwd
        self._running: dict[str, tuple[subprocess.Popen[bytes], int]] = {}
        """The process of each running stage, and the number of its command."""
        self._signals: list[int] = []
        """Those that asked to stop."""

    def __call__(self) -> int:
        """Run them all; the exit status."""
        self.logs.mkdir(parents=True, exist_ok=True)
        _adopt_orphans()
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
            # Set, not inherited: a background job of a shell is started with Ctrl-C ignored.
            signal.signal(number, self._stop)
        begin = told = time.monotonic()
        for stage in self.stages:
            if stage.left_out:
                stage.state, stage.skipped = "done", {stage.left_out: 1}
        try:
            while any(stage.state != "done" for stage in self.stages) and not self._signals:
                self._look()
                self._start()
                if time.monotonic() - told > NEWS_SECONDS:
                    told = time.monotonic()
                    running = [f"{s.name} ({told - s.begin:.0f} s)" for s in self.stages if s.state == "running"]
                    print(f"   {told - begin:.0f} s: {', '.join(running)}", *self._said(), sep="\n      ", flush=True)
                    self._bury_orphans()
                time.sleep(0.1)
        finally:
            self._end_everything()
        if self._signals:
            print("\nstopped; nothing is left running", flush=True)
            return 128 + self._signals[0]
        return self._report(time.monotonic() - begin)

    def _said(self) -> list[str]:
        """What the preparations that run said last: which download it is that one waits for, and how far it is."""
        logs = [self._log(stage) for stage in self.stages if stage.state == "running" and not stage.cores]
        said = [log.read_text(encoding="utf-8", errors="replace").splitlines() for log in logs]
        return [lines[-1] for lines in said if len(lines) > 1]  # the first is the command itself

    # ------------------------------------------------------------------ one stage

    def _start(self) -> None:
        """Begin what can begin now, in the order given."""
        by_name = {stage.name: stage for stage in self.stages}
        for stage in self.stages:
            if stage.state != "waiting":
                continue
            needed = [by_name[name] for name in stage.needs]
            if broken := [other.name for other in needed if other.state == "done" and other.failed]:
                stage.reason, stage.failed, stage.state = f"not run: “{broken[0]}” failed", 1, "done"
            elif all(other.state == "done" for other in needed):
                busy = sum(other.cores for other in self.stages if other.state == "running")
                # One that needs more cores than there are still runs, alone.
                if stage.cores and busy and busy + stage.cores > self.cores:
                    continue
                stage.state, stage.begin = "running", time.monotonic()
                print(f"== {stage.name} …", flush=True)
                self._spawn(stage, 0)

    def _spawn(self, stage: Stage, number: int) -> None:
        command = stage.commands[number]
        if stage.pytest:
            command = [*command, f"--junitxml={self._results(stage, number)}"]
            self._results(stage, number).unlink(missing_ok=True)
        with self._log(stage).open("ab" if number else "wb") as log:
            log.write(f"$ {' '.join(command)}\n".encode())
            log.flush()
            try:
                process = subprocess.Popen(
                    command,
                    stdin=subprocess.DEVNULL,
                    stdout=log,
                    stderr=subprocess.STDOUT,
                    cwd=self.cwd,
                    env={**os.environ, **stage.environment},
                    start_new_session=True,  # a group of its own, which is ended as a whole
                    preexec_fn=_hear_signals,
                )
            except OSError as error:
                stage.failed, stage.reason = stage.failed + 1, str(error)
                self._done(stage)
                return
        self._running[stage.name] = process, number

    def _look(self) -> None:
        """See which commands have ended."""
        for stage in self.stages:
            if stage.state != "running":
                continue
            process, number = self._running[stage.name]
            pid, raw, usage = os.wait4(process.pid, os.WNOHANG)
            if not pid:
                continue
            status = process.returncode = os.waitstatus_to_exitcode(raw)
            stage.cpu_seconds += usage.ru_utime + usage.ru_stime
            self._count(stage, number, status)
            if number + 1 < len(stage.commands):
                self._spawn(stage, number + 1)
            else:
                self._done(stage)

    def _count(self, stage: Stage, number: int, status: int) -> None:
        """Take in how a command ended.  pytest's status is 1 where tests failed; anything else is not about tests."""
        before = stage.failed
        if not stage.pytest:
            stage.passed += status == 0 and stage.cores > 0
            stage.failed += status != 0
        elif self._results(stage, number).exists():
            self._read_results(stage, self._results(stage, number))
        if stage.pytest and status not in (0, 1) or status == 1 and stage.failed == before:
            stage.failed += 1
        if stage.failed > before and (not stage.pytest or status not in (0, 1)):
            name = " ".join(Path(stage.commands[number][0]).name.split() + stage.commands[number][1:3])
            stage.reason = f"`{name} …` {how_it_ended(status)}"

    def _read_results(self, stage: Stage, path: Path) -> None:
        for case in ElementTree.parse(path).iter("testcase"):
            name = f"{case.get('classname', '').replace('.', '/')}::{case.get('name', '')}"
            stage.tests.append((float(case.get("time", 0)), name))
            skipped = case.find("skipped")
            if case.find("failure") is not None or case.find("error") is not None:
                stage.failed += 1
            elif skipped is not None:
                why = skipped.get("message") or "?"
                stage.skipped[why] = stage.skipped.get(why, 0) + 1
            else:
                stage.passed += 1

    def _done(self, stage: Stage) -> None:
        stage.state, stage.seconds = "done", time.monotonic() - stage.begin
        self._running.pop(stage.name, None)
        if stage.failed:
            lines = self._log(stage).read_text(encoding="utf-8", errors="replace").splitlines()
            print(f"\n== {stage.name}: FAILED (all of it: {self._log(stage)})")
            print("\n".join(lines[-SHOWN_LINES:]), flush=True)
        else:
            print(f"== {stage.name}: ok, {stage.seconds:.0f} s", flush=True)

    def _log(self, stage: Stage) -> Path:
        return self.logs / (_file_name(stage.name) + ".log")

    def _results(self, stage: Stage, number: int) -> Path:
        return self.logs / f"{_file_name(stage.name)}-{number}.xml"

    def _bury_orphans(self) -> None:
        """Take the exit status of adopted processes that have ended, which would stay zombies."""
        own = {process.pid for process, _ in self._running.values()}
        for pid in descendants(os.getpid(), deep=False):
            if pid not in own:
                with suppress(ChildProcessError):
                    os.waitpid(pid, os.WNOHANG)

    # ------------------------------------------------------------------ the end

    def _stop(self, number: int, frame: object) -> None:
        self._signals.append(number)

    def _end_everything(self) -> None:
        """End what still runs: as Ctrl-C does, then by force, with all that it started in other groups."""
        processes = [process for process, _ in self._running.values()]
        for process in processes:
            with suppress(ProcessLookupError, PermissionError):
                os.killpg(process.pid, signal.SIGINT)
        until = time.monotonic() + POLITE_SECONDS
        while time.monotonic() < until and any(process.poll() is None for process in processes):
            time.sleep(0.1)
            if len(self._signals) > 1:  # asked again: no more patience
                break
        for process in processes:
            with suppress(ProcessLookupError, PermissionError):
                os.killpg(process.pid, signal.SIGKILL)
            process.wait()
        while left := descendants(os.getpid()):
            for pid in left:
                with suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGKILL)
            with suppress(ChildProcessError):
                while os.waitpid(-1, 0)[0]:
                    pass

    def _report(self, seconds: float) -> int:
        slow = sorted((test for stage in self.stages for test in stage.tests), reverse=True)[:SLOWEST]
        if slow:
            print("\nThe slowest tests:")
            for took, name in slow:
                print(f"  {took:6.1f} s  {name}")
        width = max(len(stage.name) for stage in self.stages)
        print(f"\n{'stage':{width}}  passed  failed  skipped  seconds  of CPU")
        for stage in self.stages:
            skipped = sum(stage.skipped.values())
            sums = f"{stage.passed:6}  {stage.failed:6}  {skipped:7}"
            print(f"{stage.name:{width}}  {sums}  {stage.seconds:7.0f}  {stage.cpu_seconds:6.0f}")
            if stage.reason:
                print(f"{'':{width}}    {stage.reason}")
            for why, count in stage.skipped.items():
                print(f"{'':{width}}    skipped{f' {count}' if count > 1 else ''}: {why}")
        passed = sum(stage.passed for stage in self.stages)
        failed = sum(stage.failed for stage in self.stages)
        skipped = sum(sum(stage.skipped.values()) for stage in self.stages)
        cpu = sum(stage.cpu_seconds for stage in self.stages)
        print(f"\n{int(seconds) // 60} min {int(seconds) % 60} s; {cpu:.0f} s of CPU on {self.cores} cores")
        print(f"{passed} passed, {failed} failed, {skipped} skipped", flush=True)
        return 1 if failed else 0


def _file_name(name: str) -> str:
    return "".join(char if char.isalnum() or char in ".-" else "-" for char in name)


def _adopt_orphans() -> None:
    """Become the parent of processes whose own parent ends, so that they can be found (Linux)."""
    if sys.platform == "linux":
        pr_set_child_subreaper = 36
        ctypes.CDLL(None).prctl(pr_set_child_subreaper, 1)


def _hear_signals() -> None:
    """In the new process: be stopped by Ctrl-C, also where this program was started with it ignored."""
    signal.signal(signal.SIGINT, signal.SIG_DFL)
