"""The table: ``python -m benchmarks [--quick] [--vllm-path DIR …]``."""

from __future__ import annotations

import argparse
import importlib.util
import json
import os
import subprocess
import sys
from collections.abc import Callable
from dataclasses import asdict
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, SpinnerColumn, TextColumn, TimeElapsedColumn

from . import arguments as given
from . import report
from .texts import CUTTINGS, SHAPES
from .worker import Cell, Job

ROOT = Path(__file__).resolve().parent.parent
KB = 1024
SIZES = (1 * KB, 4 * KB, 16 * KB, 64 * KB, 256 * KB, 1024 * KB)
QUICK_SIZES = (1 * KB, 4 * KB, 16 * KB)


def arguments(argv: list[str] | None) -> argparse.Namespace:
    """Read the command line."""
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks",
        description="What a delta costs: this parser, vLLM's own, SGLang's, and the floor. Prints ratios "
        "measured in one run.",
    )
    parser.add_argument(
        "--vllm-path",
        action="append",
        type=given.vllm,
        default=[],
        metavar="DIR",
        help="a directory with the Python sources of one vLLM version (repeatable; as unpacked from a wheel, or "
        "made by `pip install --no-deps --target DIR vllm==X`), the first of them measured in full, the others with "
        "fewer texts; default: the vLLM that can be imported",
    )
    parser.add_argument(
        "--python",
        default=sys.executable,
        help="the interpreter to measure with, which needs vLLM's dependencies (default: this one)",
    )
    parser.add_argument(
        "--sglang-path",
        type=given.sglang,
        metavar="DIR",
        help="the same for sglang or llm-router-utils, if not installed",
    )
    parser.add_argument("--quick", action="store_true", help="under a minute: small texts, fewer repetitions")
    parser.add_argument("--shape", action="append", choices=list(SHAPES), help="only these texts (repeatable)")
    parser.add_argument("--cutting", action="append", choices=list(CUTTINGS), help="only these deltas (repeatable)")
    parser.add_argument("--repeat", type=int, help="repetitions, of which the least counts (default 5, quick 3)")
    parser.add_argument("--json", type=Path, default=Path("build/benchmarks.json"), help="where the results go")
    parser.add_argument("--plot", type=Path, default=Path("build/benchmarks.svg"), help="where the plot goes")
    parser.add_argument("--show", type=Path, metavar="JSON", help="measure nothing, show and plot these results")
    return parser.parse_args(argv)


def jobs(options: argparse.Namespace) -> list[tuple[str, Path | None, Job]]:
    """What to measure: a name, what goes on the path, and the job."""
    quick = options.quick
    full: dict[str, Any] = {
        "shapes": options.shape or (["string", "calls", "prose"] if quick else list(SHAPES)),
        "cuttings": options.cutting or (["token", "whole"] if quick else list(CUTTINGS)),
        "sizes": QUICK_SIZES if quick else SIZES,
        "repeat": options.repeat or (3 if quick else 5),
        "budget": 3.0 if quick else 5.0,
        "enough": 0.5 if quick else 2.0,
        "char_limit": 4 * KB if quick else 64 * KB,
        "patience": 3.0 if quick else 120.0,
    }
    fewer = {
        **full,
        "shapes": options.shape or ["string", "calls", "prose"],
        "cuttings": options.cutting or ["token"],
        "sizes": [size for size in full["sizes"] if size <= 64 * KB],
    }
    made: list[tuple[str, Path | None, Job]] = []
    paths: list[Path | None] = list(options.vllm_path) or [None]
    for number, path in enumerate(paths[:1] if quick else paths):
        made.append(("vllm", path, Job(kind="vllm", **(fewer if number else full))))
    if options.sglang_path or _installed("sglang", "llm_router_utils") or not quick:
        made.append(("sglang", options.sglang_path, Job(kind="sglang", **fewer)))
    return made


def _installed(*packages: str) -> bool:
    return any(importlib.util.find_spec(package) is not None for package in packages)


def measure(python: str, path: Path | None, job: Job, tell: Callable[[str, object], None]) -> int:
    """Run a worker; ``tell`` gets every line it says.  Returns its exit status."""
    search = [str(path.resolve())] if path else []
    environment = {
        **os.environ,
        "PYTHONPATH": os.pathsep.join([*search, str(ROOT), *filter(None, [os.environ.get("PYTHONPATH")])]),
        "PYTHONHASHSEED": "0",
    }
    process = subprocess.Popen(
        [python, "-m", "benchmarks.worker"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
        env=environment,
    )
    assert process.stdin and process.stdout
    try:
        process.stdin.write(json.dumps(asdict(job)))
        process.stdin.close()
        for line in process.stdout:
            if line.startswith("{"):
                ((kind, value),) = json.loads(line).items()
                tell(kind, value)
        return process.wait()
    finally:
        if process.poll() is None:
            process.kill()


def groups(job: Job) -> int:
    """How many groups of measurements the job has."""
    return sum(
        len(job.shapes) for size in job.sizes for cutting in job.cuttings if cutting != "char" or size <= job.char_limit
    )


def main(argv: list[str] | None = None) -> int:
    """Measure, show, write."""
    options = arguments(argv)
    console = Console()
    if not console.is_terminal:
        console = Console(width=120)
    if options.show:
        return finish(report.read_json(options.show), options, console, None)
    cells: list[Cell] = []
    notes: list[str] = []
    progress = Progress(
        SpinnerColumn(),
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TimeElapsedColumn(),
        console=Console(stderr=True),
    )
    todo = jobs(options)
    with progress:
        task = progress.add_task("starting", total=sum(groups(job) for _, _, job in todo))
        for name, path, job in todo:
            progress.update(task, description=f"{name}: importing")
            seen = 0

            def tell(kind: str, value: object) -> None:
                nonlocal seen
                if kind == "cell":
                    cells.append(Cell(**value))  # type: ignore[arg-type]
                elif kind == "note":
                    notes.append(str(value))
                elif kind == "step":
                    progress.update(task, description=str(value), advance=1 if seen else 0)
                    seen += 1

            status = measure(options.python, path, job, tell)
            if status:
                notes.append(f"{name} at {path or 'the default path'}: the worker ended with status {status}.")
            progress.update(task, advance=groups(job) - max(0, seen - 1))
    if not cells:
        notes.append("No engine could be measured, so only the machine is.")
        measure(options.python, None, Job(**{**asdict(todo[0][2]), "kind": "machine"}), tell)
    for note in notes:
        console.print(note)
    if not cells:
        return 1
    return finish(report.Results(cells), options, console, notes)


def finish(results: report.Results, options: argparse.Namespace, console: Console, notes: list[str] | None) -> int:
    """Show the results and write the files."""
    report.show(results, console)
    if notes is not None:
        report.write_json(results, options.json, notes)
        console.print(f"Results: {options.json}")
    try:
        report.plot(results, options.plot)
        console.print(f"Plot: {options.plot}")
    except ImportError:
        console.print("No plot: matplotlib is not installed (pip install '.[bench]').")
    return 0


if __name__ == "__main__":
    sys.exit(main())
