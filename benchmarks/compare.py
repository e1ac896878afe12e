"""Two source trees of this package against each other, and against CPython: ``python -m benchmarks.compare OLD [NEW]``.

One process for each tree (a package can be imported once), which measure in turns: the same text, the machine alone,
CPU time of the process, and the least of the repetitions, since disturbances only add.  So the ratios hold on a busy
machine too, within a few per cent; the microseconds do not.

- a delta: the turn in deltas of about four characters;
- whole: the turn at once (a non-streaming answer), also as a multiple of what CPython takes for ``ast.parse``,
  ``literal_eval`` and ``json.dumps`` of the same calls.
"""

from __future__ import annotations

import argparse
import ast
import json
import os
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path

from .arguments import holding
from .texts import CUTTINGS, END, SHAPES, START, TOOLS

ROOT = Path(__file__).resolve().parent.parent
SIZES = {"token": 16 * 1024, "whole": 64 * 1024}


def python_reads(text: str) -> str:
    """What a reader takes at least if it reads by CPython: the calls of the turn as JSON."""
    tree = ast.parse(text.removeprefix(START).removesuffix(END), mode="eval").body
    assert isinstance(tree, ast.List)
    return json.dumps(
        [
            {keyword.arg: ast.literal_eval(keyword.value) for keyword in node.keywords}
            for node in tree.elts
            if isinstance(node, ast.Call)
        ],
        ensure_ascii=False,
    )


def cpu(work: Callable[[], object]) -> float:
    """Seconds of CPU."""
    started = time.process_time()
    work()
    return time.process_time() - started


def measure(tree: str) -> None:
    """In a process of its own: for each line ``[shape, cutting]``, seconds of the machine and of CPython."""
    sys.path.insert(0, tree)  # before this file's own tree
    import lfm2_fixed
    from lfm2_fixed import PythonicStream

    assert Path(lfm2_fixed.__file__).is_relative_to(tree), lfm2_fixed.__file__

    for line in sys.stdin:
        name, cutting = json.loads(line)
        shape = SHAPES[name]
        text = shape.make(SIZES[cutting])
        pieces = CUTTINGS[cutting](text)

        def run(dialect: str = shape.dialect, pieces: Sequence[str] = pieces) -> None:
            stream = PythonicStream(dialect, TOOLS)
            for piece in pieces:
                stream.feed(piece)
            stream.finish()

        reads = cutting == "whole" and bool(shape.calls(1024))
        print(
            json.dumps([cpu(run), cpu(lambda text=text: python_reads(text)) if reads else 0, len(pieces)]), flush=True
        )


def start(tree: Path) -> subprocess.Popen[str]:
    """A process that measures the package of ``tree`` with this file."""
    return subprocess.Popen(
        [sys.executable, "-c", f"from benchmarks.compare import measure; measure({str(tree.resolve())!r})"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        cwd=ROOT,
        env={**os.environ, "PYTHONPATH": str(ROOT), "PYTHONHASHSEED": "0"},
    )


def ask(process: subprocess.Popen[str], question: Sequence[str]) -> list[float]:
    """One measurement."""
    assert process.stdin and process.stdout
    process.stdin.write(json.dumps(question) + "\n")
    process.stdin.flush()
    return [float(value) for value in json.loads(process.stdout.readline())]


def main(argv: Sequence[str] | None = None) -> int:
    """Measure in turns, and print."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.compare", description=__doc__.split("\n")[0])
    parser.add_argument("old", type=holding("lfm2_fixed"), help="a source tree: the directory that holds lfm2_fixed/")
    parser.add_argument("new", type=holding("lfm2_fixed"), nargs="?", default=ROOT, help="another (default: this one)")
    parser.add_argument("--repeat", type=int, default=15)
    parser.add_argument("--shape", action="append", choices=list(SHAPES))
    options = parser.parse_args(argv)
    processes = [start(options.old), start(options.new)]
    print(f"{'':10} {'cutting':8} {'old':>11} {'new':>11} {'new/old':>8} {'new/CPython':>12}")
    for shape in options.shape or SHAPES:
        for cutting in SIZES:
            best = [[float("inf")] * 2 for _ in processes]
            number = 1.0
            for _ in range(options.repeat):
                for least, process in zip(best, processes):
                    seconds, python, number = ask(process, (shape, cutting))
                    least[:] = [min(least[0], seconds), min(least[1], python)]
            (old, first), (new, second) = best
            unit = [f"{seconds / number * 1e6:8.2f} µs" for seconds in (old, new)]
            python = min(first, second)
            against = f"{new / python:12.2f}" if python else ""
            print(f"{shape:10} {cutting:8} {unit[0]:>11} {unit[1]:>11} {new / old:8.2f} {against}", flush=True)
    for process in processes:
        assert process.stdin
        process.stdin.close()
        process.wait()
    return 0


if __name__ == "__main__":
    sys.exit(main())
