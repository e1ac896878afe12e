"""Planting a fault of ``scripts/mutate`` in a forked child, and finding out what catches it.

The tests are collected once, by pytest in a process that has the package loaded; a child gets the changed code into
the functions that are there.  What runs at import is planted in a child that has loaded nothing of the package.
"""

from __future__ import annotations

import ast
import itertools
import os
import pickle
import random
import resource
import select
import signal
import sys
import threading
import time
from collections.abc import Callable, Iterable
from pathlib import Path
from types import FrameType
from typing import NamedTuple

import pytest
from faulty import Loaded, Planted, functions_of, write_into_functions
from mutations import PACKAGE, Fault, source_of

ROOT = PACKAGE.parent
TESTS = {
    "core": [
        "tests/core",
        # The cases and the steps have had their turn before (core_fails); templates say what the laws say, slower.
        *(f"--ignore=tests/core/test_{name}.py" for name in ("cases", "laws_bounds", "templates", "make_valid")),
    ],
    "wire": ["tests/wire", "tests/gate", "tests/check", "tests/proxy/test_parse.py", "tests/proxy/test_shapes.py"],
    "gate": ["tests/gate"],
    "proxy": ["tests/proxy"],
    "grammar": ["tests/grammar"],
}
"""The tests that guard each of the packages that faults are planted in."""
FEW_EXAMPLES = 12
"""Of each property, to find out what it calls and how long it takes."""

SURVIVED, BY_CASES, BY_STEPS, BY_TESTS, BY_TIME, BROKEN = range(6)
WORDS = {BY_CASES: "cases", BY_STEPS: "steps", BY_TESTS: "tests", BY_TIME: "time limits"}
CASES_SECONDS = 20
"""Of CPU time, for what takes 4 without a fault: one that loops is caught."""
ITEM_SECONDS = (5, 10)
"""Of CPU time for a test: so many, and so many times what it takes without a fault."""
IDLE_SECONDS, IDLE_SHARE = 60, 0.005
"""A child that took less than this share of a processor for so long waits for ever, and is caught.  No test sleeps for
half of it, and a busy machine still gives a child that has something to do more than that."""
WAVES = (0.02, 0.2, 1.0, 5.0)
"""Tests up to so many seconds go before longer ones.  Within a wave a file's tests stay together, for its fixtures."""
BUDGET_SECONDS = 60
"""Of CPU time for the tests of a fault, as they take without it: 300 survivors would be five hours, and are 15."""
MORE_STEPS = 1.02
"""A shortcut that is lost in one case of twenty takes more than a fiftieth of their steps."""


# ------------------------------------------------------------------ what catches a fault


def cases_fail() -> bool:
    """Whether a case comes out differently."""
    from tests.support.cases import CASES, expected, tools_of
    from tests.support.harness import every, random_cut, stream, whole

    for case in CASES:
        text, dialect, tools, want = case["input"], case["format"], tools_of(case), expected(case)
        if whole(text, dialect, tools) != want:
            return True
        turn = stream(every(text, 1), dialect, tools)
        unfinished = [call for call in turn.started if call.state != "complete"]
        if turn.completed != want or (case.get("no_trace") and unfinished):
            return True
        if case.get("stream_incomplete") and [call.state for call in unfinished] != ["cut"]:
            return True
        if stream(random_cut(text, random.Random(len(text))), dialect, tools).started != turn.started:
            return True
        if stream([text], dialect, tools, mode="call").completed != want:
            return True
    return False


def steps_of_cases() -> list[int]:
    """The machine's steps over the cases, twenty at a time, whole and in deltas of four characters."""
    from tests.support.cases import CASES, tools_of
    from tests.support.steps import count_steps, cut

    sums: list[int] = []
    for step in (0, 4):
        for number, case in enumerate(CASES):
            if number % 20 == 0:
                sums.append(0)
            sums[-1] += count_steps(cut(case["input"], step), case["format"], tools_of(case))
    return sums


class Known:
    """What the unchanged code says: the CPU time of each test, which functions it calls, the steps of the cases."""

    def __init__(self) -> None:
        self.seconds: dict[str, float] = {}
        self.calls: dict[str, set[tuple[str, int]]] = {}
        self.steps: list[int] = []
        self.at_import: set[tuple[str, int]] = set()
        self.failed: list[str] = []
        self.budget = BUDGET_SECONDS

    def tests_for(self, fault: Fault, function: tuple[str, int] | None, items: Iterable[pytest.Item]) -> list[str]:
        """The tests that call a function (anything of its module for None), in the order in which they are to run.

        Before them those that were not there when this was measured; after them the others of the module (for None: of
        the package): what a cache keeps is called in the first test alone, and constants are used elsewhere.
        They take ``self.budget`` seconds at most; what is left out makes the score lower, never higher.
        """
        file = source_of(fault.module).relative_to(ROOT).as_posix()
        area = fault.module.partition(".")[0]
        callers = {name for name, called in self.calls.items() if any(one == file for one, _ in called)}
        names = callers if function is not None else self.calls  # what runs at import may be used by others alone

        def rank(name: str) -> tuple[bool, int, int]:
            path = name.partition("::")[0]
            near = 0 if area == "core" and "/test_laws" in path else 1 if f"/{area}/" in path else 2
            return (
                function not in self.calls[name] if function is not None else name not in callers,
                near,
                sum(self.seconds[name] > limit for limit in WAVES),
            )

        ordered = [item.nodeid for item in items if item.nodeid not in self.seconds]
        ordered += sorted(names, key=lambda name: (rank(name), name.partition("::")[0]))
        sums = itertools.accumulate(self.seconds.get(name, 0) for name in ordered)
        return [name for name, total in zip(ordered, sums) if total <= self.budget]


class Recorder:
    """Which functions of the package are called, in any thread."""

    def __init__(self) -> None:
        self.called: set[tuple[str, int]] = set()
        self.prefix = str(PACKAGE)
        self.length = len(str(ROOT)) + 1

    def __call__(self, frame: FrameType, event: str, argument: object) -> None:
        code = frame.f_code
        if code.co_filename.startswith(self.prefix):
            self.called.add((code.co_filename[self.length :], code.co_firstlineno))

    def start(self) -> None:
        """Record from now on."""
        threading.settrace(self)
        sys.settrace(self)

    def stop(self) -> None:
        """No more."""
        sys.settrace(None)
        threading.settrace(None)  # type: ignore[arg-type]

    def take(self) -> set[tuple[str, int]]:
        """What was called since the last time."""
        taken, self.called = self.called, set()
        return taken


def function_of(fault: Fault, tree: ast.Module) -> tuple[str, int]:
    """The innermost function around a fault, as the recorder names it."""
    file = source_of(fault.module)
    old = functions_of(compile(tree, str(file), "exec"))
    new = functions_of(compile(fault.apply(tree), str(file), "exec"))
    differing = [key for key in old if key in new and old[key] != new[key]]
    named = [key for key in differing if not key[-1][0].startswith("<")] or differing
    return file.relative_to(ROOT).as_posix(), named[-1][-1][1] if named else 0


# ------------------------------------------------------------------ children


class Verdict(NamedTuple):
    """What became of a fault: how it was caught (SURVIVED: it was not), by which test, after how much CPU time."""

    result: int
    test: str
    seconds: float


def forked(work: Callable[[int], int]) -> Verdict:
    """Do it in a child, which is told where to write the name of the test that fails."""
    reading, writing = os.pipe()
    os.set_blocking(reading, False)
    process = os.fork()
    if process == 0:
        status = BROKEN
        try:
            with open(os.devnull, "w") as null:
                os.dup2(null.fileno(), 1)
                os.dup2(null.fileno(), 2)
            signal.signal(signal.SIGPROF, signal.SIG_DFL)
            status = work(writing)
        except BaseException:
            status = BY_TESTS
        finally:
            os._exit(status)
    raw, usage = waited_for(process)
    try:
        name = os.read(reading, 1000).decode()
    except BlockingIOError:
        name = ""
    os.close(reading)
    os.close(writing)
    result = BY_TIME if os.WIFSIGNALED(raw) else os.WEXITSTATUS(raw)
    return Verdict(result, name, usage.ru_utime + usage.ru_stime)


def waited_for(process: int) -> tuple[int, resource.struct_rusage]:
    """How a child ended, and what it took; one that does nothing any more is ended."""
    taken, since = 0.0, time.monotonic()
    with open(os.pidfd_open(process)) as ended:
        while not select.select([ended], [], [], 1)[0]:
            fields = Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()
            now = sum(map(int, fields[11:15])) / os.sysconf("SC_CLK_TCK")
            if now - taken > IDLE_SHARE * IDLE_SECONDS:
                taken, since = now, time.monotonic()
            elif time.monotonic() - since > IDLE_SECONDS:
                os.kill(process, signal.SIGKILL)
    return os.wait4(process, 0)[1:]


def core_fails(known: Known) -> int:
    """The quick looks at the core."""
    signal.setitimer(signal.ITIMER_PROF, CASES_SECONDS)
    try:
        if cases_fail():
            return BY_CASES
        signal.setitimer(signal.ITIMER_PROF, CASES_SECONDS)
        steps = steps_of_cases()
    except BaseException:
        return BY_CASES
    more = any(now > before * MORE_STEPS for now, before in zip(steps, known.steps))
    return BY_STEPS if more else SURVIVED


class Tests:
    """The plugin of pytest that has all tests collected and runs them in children."""

    def __init__(self, then: Callable[[Tests, pytest.Session], None]) -> None:
        self.then = then
        self.limits: dict[str, float] = {}
        self.known: Known | None = None
        self.recorder: Recorder | None = None
        self.clock = 0.0
        self.caught = -1

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtestloop(self, session: pytest.Session) -> bool:
        """In place of running them all."""
        self.then(self, session)
        return True

    def run(self, items: Iterable[pytest.Item]) -> None:
        """Run these."""
        chosen = list(items)
        for item, following in zip(chosen, [*chosen[1:], None]):
            if self.recorder is not None:
                self.recorder.start()  # again: some tests trace for themselves and leave no tracer behind
            if limit := self.limits.get(item.nodeid):
                signal.setitimer(signal.ITIMER_PROF, limit)
            item.config.hook.pytest_runtest_protocol(item=item, nextitem=following)

    def judge(self, session: pytest.Session, known: Known, names: list[str], caught: int) -> None:
        """Run these with a fault in the package.  The first that fails ends the process."""
        self.caught = caught
        by_name = {item.nodeid: item for item in session.items}
        self.limits = {name: ITEM_SECONDS[0] + ITEM_SECONDS[1] * known.seconds.get(name, 0) for name in names}
        self.run(by_name[name] for name in names if name in by_name)

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Stop at the first failure; take down what the unchanged code does."""
        if self.recorder is not None and self.known is not None:
            name, now = report.nodeid, time.process_time()
            self.known.seconds[name] = self.known.seconds.get(name, 0) + now - self.clock
            self.clock = now
            self.known.calls[name] = self.known.calls.get(name, set()) | self.recorder.take()
            if report.failed:
                self.known.failed.append(name)
        elif report.failed:
            os.write(self.caught, report.nodeid[:200].encode())
            os._exit(BY_TESTS)


def fewer_examples(item: pytest.Item) -> float:
    """Let a property take FEW_EXAMPLES; how many times as many it takes otherwise."""
    function = getattr(item, "obj", None)
    function = getattr(function, "__func__", function)
    usual = getattr(function, "_hypothesis_internal_use_settings", None)
    if usual is None or usual.max_examples <= FEW_EXAMPLES:
        return 1
    few = type(usual)(usual, max_examples=FEW_EXAMPLES)
    function._hypothesis_internal_use_settings = few  # type: ignore[union-attr]
    return usual.max_examples / FEW_EXAMPLES


def measure(tests: Tests, session: pytest.Session, target: Path) -> int:
    """In a child: what the unchanged code does, into a file."""
    known = tests.known = Known()
    known.steps = steps_of_cases()
    if cases_fail():
        known.failed.append("the cases")
    tests.recorder = Recorder()
    examples = {item.nodeid: fewer_examples(item) for item in session.items}
    tests.recorder.start()
    tests.clock = time.process_time()
    tests.run(session.items)
    tests.recorder.stop()
    for name, times in examples.items():
        known.seconds[name] = known.seconds.get(name, 0) * times
    target.write_bytes(pickle.dumps(known))
    return SURVIVED


def without_a_fault(tests: Tests, session: pytest.Session, known: Known, names: list[str], caught: int) -> int:
    """In a child: the tests that are to judge, on the unchanged code."""
    if cases_fail():
        os.write(caught, b"the cases")
        return BY_CASES
    for item in session.items:
        fewer_examples(item)
    tests.judge(session, known, names, caught)
    return SURVIVED


def in_functions(
    fault: Fault, tree: ast.Module, loaded: Loaded, tests: Tests, session: pytest.Session, known: Known, caught: int
) -> int:
    """In a child that has everything loaded."""
    if not write_into_functions(fault, tree, loaded):
        return BROKEN
    if fault.module.startswith("core.") and (found := core_fails(known)):
        return found
    tests.judge(session, known, known.tests_for(fault, function_of(fault, tree), session.items), caught)
    return SURVIVED


def imported_anew(fault: Fault, tree: ast.Module, known: Known, caught: int) -> int:
    """In a child that has not loaded the package."""
    sys.meta_path.insert(0, Planted(fault.module, fault.apply(tree)))
    if fault.module.startswith("core.") and (found := core_fails(known)):
        return found
    names = known.tests_for(fault, None, ())
    measured = {name.partition("::")[0] for name in known.seconds}

    def then(tests: Tests, session: pytest.Session) -> None:
        tests.judge(session, known, known.tests_for(fault, None, session.items), caught)
        os._exit(SURVIVED)

    area = fault.module.partition(".")[0]
    new = {path.relative_to(ROOT).as_posix() for path in (ROOT / "tests" / area).glob("test_*.py")} - measured
    left_out = [word for word in TESTS[area] if word.startswith("--")]
    collect(then, [*left_out, *sorted({name.partition("::")[0] for name in names} | new)])
    return BY_TESTS  # what cannot be imported or collected


def collect(then: Callable[[Tests, pytest.Session], None], tests: list[str]) -> int:
    """Let pytest import and collect the tests, and then do that."""
    quiet = ["-q", "--capture=no", "-p", "no:cacheprovider", "-p", "no:xdist", "--no-header", "--tb=no", "--no-summary"]
    return int(pytest.main([*quiet, *tests], plugins=[Tests(then)]))
