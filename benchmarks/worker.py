"""One process of measurements: one vLLM version, or SGLang, or the machine alone.

``python -m benchmarks.worker`` reads a job from standard input and prints one JSON object a line:
``{"cell": …}`` for each result, ``{"step": text}`` before each group, ``{"note": text}`` for what
cannot be measured here.  CPU time of the process; the subjects take turns, and the least of the
repetitions counts (what disturbs a measurement only adds to it).
"""

from __future__ import annotations

import gc
import json
import logging
import math
import sys
import time
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from . import subjects
from .texts import CUTTINGS, SHAPES, Shape

_GROWTH = 2.3  # assumed exponent at most, when the next size's cost is foreseen
_SHORT = 0.05  # seconds of CPU: what takes less is repeated more often
_MORE = 3
_SLOWEST_AT_MOST = 64 * 1024  # characters, for looking at every delta


@dataclass
class Job:
    """What to measure."""

    kind: str
    """``vllm``, ``sglang`` or ``machine``."""
    shapes: Sequence[str]
    cuttings: Sequence[str]
    sizes: Sequence[int]
    """Characters, ascending."""
    repeat: int
    budget: float
    """Seconds of CPU a subject may take for one text; longer ones are left out."""
    enough: float
    """Seconds of CPU after which a subject is not run on the same text again (but twice at least, if it can be)."""
    char_limit: int
    """No larger texts in deltas of one character."""
    patience: float
    """The same as ``budget`` for the stock parser on one long string of 16 KB, the headline."""


HEADLINE = ("string", "token", 16 * 1024)


@dataclass
class Cell:
    """One result."""

    engine: str
    shape: str
    cutting: str
    size: int
    """Characters asked for; ``characters`` is what there were."""
    characters: int
    deltas: int
    subject: str
    seconds: float
    """CPU time for the whole text, the least of ``runs``."""
    runs: int
    worst: float | None = None
    """CPU seconds of the slowest delta, where that was measured."""
    right: bool | None = None
    """Whether calls and content are those CPython reads, where that was checked."""


def say(**line: Any) -> None:
    """Tell the parent process."""
    print(json.dumps(line), flush=True)


def run(subject: subjects.Subject, shape: Shape, pieces: Iterable[str]) -> float:
    """CPU seconds for one stream, from its making to its end.

    Raises whatever the parser raises.
    """
    gc.collect()
    begin = time.process_time()
    feed, finish = subject(shape)
    for piece in pieces:
        feed(piece)
    finish()
    return time.process_time() - begin


def slowest(subject: subjects.Subject, shape: Shape, pieces: Sequence[str], repeat: int) -> float:
    """CPU seconds of the delta that is slowest even at its best of ``repeat`` runs."""
    least: list[float] = []
    clock = time.process_time
    for _ in range(repeat):
        feed, finish = subject(shape)
        taken = []
        for piece in pieces:
            begin = clock()
            feed(piece)
            taken.append(clock() - begin)
        finish()
        least = [min(pair) for pair in zip(least, taken)] if least else taken
    return max(least)


def is_right(subject: subjects.Subject, shape: Shape, size: int, pieces: Iterable[str]) -> bool:
    """Whether the stream says what CPython reads in the text."""
    collected = subjects.Collected()
    feed, finish = subject(shape)
    for piece in pieces:
        collected.add(feed(piece))
    collected.add(finish())
    expected = shape.calls(size)
    content = "" if expected else shape.make(size)
    try:
        calls = [(name, json.loads(arguments)) for name, arguments in collected.calls]
    except ValueError:
        return False
    return calls == [(name, json.loads(arguments)) for name, arguments in expected] and (
        collected.content.strip() == content.strip()
    )


class Measuring:
    """Runs a job's groups: all subjects on the same text, taking turns."""

    def __init__(self, job: Job, engine: str, available: dict[str, subjects.Subject]) -> None:
        self._job = job
        self._engine = engine
        self._available = available
        self._seen: dict[tuple[str, str, str], list[tuple[int, float]]] = {}
        self._failed: set[tuple[str, str, str]] = set()

    def group(self, shape: Shape, cutting: str, size: int) -> None:
        """Measure one text in one cutting."""
        text = shape.make(size)
        pieces = CUTTINGS[cutting](text)
        names = [name for name in self._available if self._applies(name, shape, cutting)]
        repeats = {name: self._repeats(name, shape, cutting, size) for name in names}
        right = {
            name: self._check(name, shape, cutting, size, pieces)
            for name in names
            if size == self._job.sizes[0] and name in ("ours", "stock", "sglang", "machine")
        }
        seconds: dict[str, list[float]] = {name: [] for name in names}
        for turn in range(_MORE * self._job.repeat):
            for name in names:
                if turn < repeats[name] and (name, shape.name, cutting) not in self._failed:
                    seconds[name].append(run(self._available[name], shape, pieces))
                    if turn == 0:
                        repeats[name] = self._affordable(seconds[name][0])
        for name, values in seconds.items():
            if values:
                self._seen.setdefault((name, shape.name, cutting), []).append((size, min(values)))
                cell = Cell(
                    self._engine, shape.name, cutting, size, len(text), len(pieces), name, min(values), len(values)
                )
                cell.right = right.get(name)
                if name == "ours" and cutting == "token" and size <= _SLOWEST_AT_MOST:
                    cell.worst = slowest(self._available[name], shape, pieces, min(3, self._job.repeat))
                say(cell=asdict(cell))

    def _applies(self, name: str, shape: Shape, cutting: str) -> bool:
        if name == "text" and shape.name != "prose":
            return False
        return cutting != "whole" or name not in ("floor", "unvalidated", "ready", "text")

    def _check(self, name: str, shape: Shape, cutting: str, size: int, pieces: list[str]) -> bool:
        try:
            return is_right(self._available[name], shape, size, pieces)
        except Exception as error:
            self._failed.add((name, shape.name, cutting))
            say(note=f"{self._engine}: {name} raises {type(error).__name__} on {shape.name}/{cutting}; not measured.")
            return False

    def _repeats(self, name: str, shape: Shape, cutting: str, size: int) -> int:
        """How often to run; 0 if the cost foreseen is over the budget."""
        seen = self._seen.get((name, shape.name, cutting), [])
        if not seen:
            # Never measured at a smaller size: either this is the first, or those were too expensive.
            return 1 if size == self._job.sizes[0] else 0
        foreseen = foresee(seen, size)
        headline = name == "stock" and (shape.name, cutting, size) == HEADLINE
        if foreseen > (self._job.patience if headline else self._job.budget):
            return 0
        return self._affordable(foreseen)

    def _affordable(self, seconds: float) -> int:
        repeat = self._job.repeat * (_MORE if seconds < _SHORT else 1)
        least = 2 if seconds < self._job.budget / 2 else 1
        return max(least, min(repeat, int(self._job.enough / max(seconds, 1e-9))))


def foresee(seen: Sequence[tuple[int, float]], size: int) -> float:
    """CPU seconds for ``size`` characters, from results at smaller sizes: as the last ones grew."""
    last_size, last = seen[-1]
    exponent = 2.0
    if len(seen) > 1:
        before_size, before = seen[-2]
        exponent = math.log(max(last / before, 1.0)) / math.log(last_size / before_size)
        exponent = min(max(exponent, 1.0), _GROWTH)
    return float(last * (size / last_size) ** exponent)


def available(kind: str) -> tuple[str, dict[str, subjects.Subject]]:
    """The name of what is measured against, and the subjects.  Raises ImportError if it is not there."""
    if kind == "vllm":
        serving = subjects.Serving()
        return f"vLLM {serving.version}", {**serving.subjects(), "machine": subjects.machine()}
    if kind == "sglang":
        name, detectors = subjects.sglang()
        return name, {"sglang": detectors, "machine": subjects.machine()}
    return "no engine", {"machine": subjects.machine()}


def main() -> None:
    """Do the job on standard input."""
    job = Job(**json.load(sys.stdin))
    logging.getLogger("lfm2_fixed").setLevel(logging.ERROR)
    try:
        engine, subject_by_name = available(job.kind)
    except Exception as error:  # whatever a broken installation raises, the other engines are measured
        say(note=f"{job.kind} was skipped: it cannot be imported here ({type(error).__name__}: {error}).")
        return
    logging.disable(logging.CRITICAL)
    gc.collect()
    gc.freeze()  # as vLLM's server does once it has started
    measuring = Measuring(job, engine, subject_by_name)
    for size in job.sizes:
        for shape in job.shapes:
            for cutting in job.cuttings:
                if cutting == "char" and size > job.char_limit:
                    continue
                say(step=f"{engine}: {shape}, {cutting}, {size // 1024} KB")
                measuring.group(SHAPES[shape], cutting, size)


if __name__ == "__main__":
    main()
