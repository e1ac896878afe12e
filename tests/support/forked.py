"""Processes that have imported vLLM already: what a scenario of loading the plugin needs, without the seven seconds
that each import of vLLM takes.

One process imports vLLM and not this package, then waits.  For every scenario it forks a child, which has its own
working directory, environment and ``sys.path``, and dies after it.
"""

from __future__ import annotations

import atexit
import json
import os
import subprocess
import sys
from collections.abc import Mapping, Sequence
from functools import cache
from pathlib import Path

IMPORTED = [
    "vllm.parser.parser_manager",
    "vllm.plugins",
    "vllm.reasoning",
    "vllm.tool_parsers",
    "vllm.entrypoints.openai.chat_completion.protocol",
    "vllm.entrypoints.openai.responses.protocol",
]


def run(code: str, path: Sequence[Path], cwd: Path, environment: Mapping[str, str]) -> subprocess.CompletedProcess[str]:
    """Run ``code`` as a program would that has just imported vLLM, with ``path`` before its ``sys.path``."""
    process = _waiting()
    out = cwd / f"forked-{os.urandom(4).hex()}"
    order = {"code": code, "path": list(map(str, path)), "cwd": str(cwd), "env": dict(environment), "out": str(out)}
    assert process.stdin is not None and process.stdout is not None
    process.stdin.write(json.dumps(order) + "\n")
    process.stdin.flush()
    line = process.stdout.readline()
    assert line, "the process that has imported vLLM is gone"
    said = [Path(f"{out}.{stream}").read_text() for stream in ("stdout", "stderr")]
    return subprocess.CompletedProcess(code, int(line), *said)


@cache
def _waiting() -> subprocess.Popen[str]:
    command = [sys.executable, __file__]
    process = subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True
    )
    atexit.register(process.kill)
    return process


def _serve() -> None:
    import importlib

    sys.path.remove(str(Path(__file__).parent))
    orders, answers = sys.stdin, os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)  # what vLLM says while it is imported
    for name in IMPORTED:
        importlib.import_module(name)
    assert not any(name.split(".")[0] == "lfm2_fixed" for name in sys.modules)
    for line in orders:
        order = json.loads(line)
        child = os.fork()
        if not child:
            _scenario(order)
        _, status = os.waitpid(child, 0)
        answers.write(f"{os.waitstatus_to_exitcode(status)}\n")
        answers.flush()


def _scenario(order: dict[str, object]) -> None:
    """In the child: to the end, whatever happens."""
    import traceback

    status = 1
    try:
        for number, stream in ((1, "stdout"), (2, "stderr")):
            os.dup2(os.open(f"{order['out']}.{stream}", os.O_WRONLY | os.O_CREAT, 0o600), number)
        os.chdir(str(order["cwd"]))
        os.environ.update(order["env"])  # type: ignore[call-overload]
        sys.path[:0] = ["", *order["path"]]  # type: ignore[misc]
        sys.path_importer_cache.clear()
        for directory in order["path"]:  # type: ignore[attr-defined]
            start = Path(directory) / "sitecustomize.py"
            if start.exists():
                exec(compile(start.read_text(), str(start), "exec"), {})
        exec(compile(str(order["code"]), "<scenario>", "exec"), {"__name__": "__main__"})
        status = 0
    except SystemExit as error:
        status = error.code if isinstance(error.code, int) else 1
    except BaseException:
        traceback.print_exc()
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(status)


if __name__ == "__main__":
    _serve()
