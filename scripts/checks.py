"""usage: ./test.sh [--quick] [--only STAGE …]

Every check of the project, as CI runs it: lint and types; the tests that need no engine; the grammar against
xgrammar; the plugin through the serving layer of the oldest and the newest supported vLLM; real llama.cpp and vLLM
servers.  Every vLLM and every Python: scripts/matrix.

  --quick        at most 2 minutes on two idle cores: no engine or server, only the test tools, fewer examples
  --only STAGE   only this stage, and what it needs; may be given again
  --list         the stages
  --help

It installs what it needs, once: .venv-test (the test tools, 200 MB), .venv-serve (the CPU build of vLLM with torch,
2 GB), .llama (320 MB), and the sources of two vLLM wheels and the Rust front end of a third in ~/.cache/lfm2-fixed
(160 MB; the wheels, 300 MB each, are not kept).  The logs are in .test-logs.  It ends with a table and a line of sums;
the exit status is 1 if anything failed.  Environment: PYTHON (the interpreter), LFM2_FIXED_SERVE_VENV (see
./serve.sh --help).
"""

from __future__ import annotations

import argparse
import os
import sys
from pathlib import Path

from stages import Run, Stage
from vllm_range import ROOT, supported

OLDEST, NEWEST = supported()
SERVE_VENV = Path(os.environ.get("LFM2_FIXED_SERVE_VENV") or ROOT / ".venv-serve")
TEST_PYTHON = str(ROOT / ".venv-test" / "bin" / "python")
SERVE_PYTHON = str(SERVE_VENV / "bin" / "python")
NEITHER = "not with --quick: "


def cache() -> Path:
    """Where scripts/vllm-sources keeps what it unpacks."""
    if given := os.environ.get("LFM2_FIXED_CACHE"):
        return Path(given)
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "lfm2-fixed"


def serving_layer(version: str) -> Stage:
    """The plugin in the serving layer of one vLLM."""
    return Stage(
        f"serving layer of vLLM {version}",
        [[SERVE_PYTHON, "-m", "pytest", "-q", "tests/plugin"]],
        needs=("CPU build of vLLM", f"sources of vLLM {version}"),
        pytest=True,
        environment={"PYTHONPATH": str(cache() / f"vllm-{version}")},
    )


def stages(quick: bool) -> list[Stage]:
    """The stages, in the order in which they begin if they can."""
    pytest = ["-m", "pytest", "-q"]
    # A third worker does what two cores could while tests wait for servers and processes: a sixth of their time.
    workers = ["-n", "3", "--dist", "worksteal"]
    preparation = [
        Stage("test tools", [["scripts/test-venv"]], cores=0),
        Stage("CPU build of vLLM", [["scripts/serve-venv", str(SERVE_VENV)]], cores=0),
        Stage(
            "Rust front end of vLLM",
            [[SERVE_PYTHON, "-c", "import rig; print(rig.rust_front_end())"]],
            needs=("CPU build of vLLM",),
            cores=0,
            environment={"PYTHONPATH": "serve"},
        ),
        Stage("llama.cpp", [["tests/llama/setup.sh", ".llama"]], cores=0),
        *(
            Stage(f"sources of vLLM {version}", [["scripts/vllm-sources", version]], cores=0)
            for version in (OLDEST, NEWEST)
        ),
    ]
    lint = Stage(
        "lint and types",
        [[TEST_PYTHON, "-m", *command] for command in (["ruff", "check", "."], ["mypy"])],
        needs=("test tools",),
    )
    engine_free = Stage(
        "tests without an engine",
        [[TEST_PYTHON, *pytest, *workers, "tests", "--ignore=tests/grammar", "--ignore=tests/llama"]],
        needs=("test tools",),
        # They count as one: it is the longest, and fills what the servers' starts and the venvs leave of both.
        pytest=True,
        environment={"HYPOTHESIS_PROFILE": "quick"} if quick else {},
    )
    real = [
        Stage(
            "real vLLM servers",
            [[SERVE_PYTHON, *pytest, "--confcutdir=tests/e2e", "tests/e2e"]],
            needs=("CPU build of vLLM", "Rust front end of vLLM"),
            pytest=True,
        ),
        Stage(
            "the grammar, against xgrammar and llama.cpp",
            [[SERVE_PYTHON, *pytest, "tests/grammar"]],
            needs=("CPU build of vLLM", "llama.cpp"),
            pytest=True,
        ),
        *map(serving_layer, (OLDEST, NEWEST)),
        Stage(
            "real llama.cpp servers",
            [[TEST_PYTHON, *pytest, "tests/llama"]],
            needs=("test tools", "llama.cpp"),
            pytest=True,
        ),
    ]
    if not quick:
        return [*preparation, lint, *real, engine_free]
    for stage in real:
        why = "needs a server" if "real" in stage.name else "needs torch"
        stage.left_out = f"not with --quick: {why}"
    return [preparation[0], lint, engine_free, *real]


def chosen(every: list[Stage], names: list[str]) -> list[Stage]:
    """The stages of these names and, before them, what they need."""
    by_name = {stage.name: stage for stage in every}
    wanted = set(names)
    for name in names:
        wanted |= set(by_name[name].needs)
    return [stage for stage in every if stage.name in wanted]


def main() -> int:
    """Run the checks."""
    parser = argparse.ArgumentParser(prog="./test.sh", usage=argparse.SUPPRESS, add_help=False, allow_abbrev=False)
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--only", action="append", default=[])
    parser.add_argument("--list", action="store_true")
    parser.add_argument("-h", "--help", action="store_true")
    options = parser.parse_args()
    if options.help:
        print((__doc__ or "").strip())
        return 0
    every = stages(options.quick)
    if options.list:
        print("\n".join(stage.name for stage in every))
        return 0
    names = [stage.name for stage in every]
    if unknown := [name for name in options.only if name not in names]:
        parser.error(f"there is no stage “{unknown[0]}”: ./test.sh --list names them")
    # The tests start some hundred processes, and each would compile again all that it imports.
    os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
    run = Run(
        chosen(every, options.only) if options.only else every,
        logs=ROOT / ".test-logs",
        cores=max(2, len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 2),
        cwd=ROOT,
    )
    return run()


if __name__ == "__main__":
    sys.exit(main())
