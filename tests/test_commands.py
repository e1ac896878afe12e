"""Every command and every program that a page shows is run by a test, or there is a reason why not."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from lfm2_fixed.repro.turns import TOOLS
from tests.support import ROOT, TESTS
from tests.support.answers import Answer, chat_frames, chat_whole, json_answer, serving, sse
from tests.support.plain import served

PAGES = ["README.md", "CONTRIBUTING.md", *(f"docs/{path.name}" for path in sorted((ROOT / "docs").glob("*.md")))]
PROGRAM = re.compile(r"\./|scripts/|pip |python|\$|lfm2-fixed [a-z]|[A-Z_0-9]+=")
"""How a command begins in a block that may as well be an output."""


@dataclass(frozen=True)
class Command:
    """One command line, without its prompt and comment; or the first line of a program."""

    page: str
    language: str
    line: str


def blocks(page: str) -> Iterator[tuple[str, list[str]]]:
    """The language and the lines of each block of a page: fenced, or indented by four blanks."""
    lines = (ROOT / page).read_text(encoding="utf-8").splitlines()
    at = 0
    while at < len(lines):
        end = at + 1
        if lines[at].startswith("```"):
            while lines[end] != "```":
                end += 1
            yield lines[at][3:], lines[at + 1 : end]
        elif lines[at].startswith("    ") and not lines[at - 1]:
            while end < len(lines) and lines[end].startswith("    "):
                end += 1
            yield "indented", [line[4:] for line in lines[at:end]]
        at = end + (lines[at].startswith("```") if at < len(lines) else 0)


def commands() -> list[Command]:
    found = []
    for page in PAGES:
        for language, lines in blocks(page):
            if language == "python":
                found.append(Command(page, language, lines[0]))
                continue
            for line in re.sub(r"\\\n\s*", "", "\n".join(lines)).splitlines():
                bare = re.sub(r"\s+# .*$|^[$#] ", "", line).strip()
                if language in ("sh", "bash", "console") or PROGRAM.match(bare):
                    found.append(Command(page, language, bare))
    return found


# --- how each is dealt with: the row that a command's line begins with ----------------------------------------------

GPU = "needs a model of gigabytes and a GPU; tests/e2e starts servers with these flags and a tiny model"
MEASURES = "measures for minutes, on an idle machine, and needs vLLM; what it prints is in the page"

BY: dict[str, str] = {
    # a command's or program's beginning: the test that runs it, by its name
    "from lfm2_fixed import": "test_python_examples_run",
    'stream = PythonicStream("lfm2", mode="call")': "test_python_examples_run",
    "text = '<|tool_call_start|>[move(10.5": "test_python_examples_run",
    "assert parse(": "test_python_examples_run",
    "from openai import OpenAI": "test_the_python_example_runs",
    "curl ": "test_the_commands_run_as_they_are_pasted",
    "lfm2-fixed check capture.sse": "test_the_commands_run_as_they_are_pasted",
    'lfm2-fixed check --live "$BASE"': "test_the_commands_run_as_they_are_pasted",
    "from lfm2_fixed.grammar import structural_tag": "test_the_pages_example_compiles",
    "lfm2-fixed proxy": "test_documented_commands_are_understood",
    "./serve.sh LiquidAI/LFM2.5-2.6B": "test_model",
    "pip install .": "test_the_wheel_holds_the_package_alone_and_runs",
    "pip install '": "test_extras_that_pages_name_exist",
    "/opt/lfm2-fixed/bin/pip install": "test_extras_that_pages_name_exist",
    "./test.sh": "test_every_stage_runs_and_failures_are_collected",
    "lfm2-fixed repro": "test_the_commands_for_everybody_run",
    "echo ": "test_the_commands_for_everybody_run",
    "lfm2-fixed check --live http": "test_the_report_of_a_bad_parse",
    "lfm2-fixed parse --tools request.json": "test_the_report_of_a_bad_parse",
    "$python -m pytest": "test_the_tests_that_are_run_by_hand",
    "from lfm2_fixed.proxy import Settings": "test_the_proxys_program_runs",
    "scripts/release": "test_a_release_is_one_command",
}
NOT: dict[str, str] = {
    "vllm serve": GPU,
    "VLLM_USE_RUST_FRONTEND=1 vllm serve": GPU,
    "PLUGIN=": GPU,
    "./serve.sh --demo": "starts two real servers, which takes minutes; tests/e2e asks such servers the same",
    "python=$(scripts/test-venv)": "makes the environment that this test runs in",
    "llama-server": "needs a model of gigabytes; tests/llama starts real ones with a tiny model",
    "python3 -m venv /opt/lfm2-fixed": "for a machine's administrator; tests/proxy verifies the unit",
    "cp examples/proxy/": "for a machine's administrator; tests/proxy verifies the unit",
    "systemctl": "for a machine's administrator; tests/proxy verifies the unit",
    "docker": "needs docker; tests/proxy runs the image's command line",
    "LFM2_FIXED_SERVE_VENV=": MEASURES,
    "python -m benchmarks": MEASURES,
}


def rows(line: str) -> list[str]:
    return [begin for begin in {**BY, **NOT} if line.startswith(begin)]


def test_every_command_is_run_or_has_a_reason() -> None:
    shown = commands()
    assert len(shown) > 40 and {command.page for command in shown} >= {"README.md", "docs/gate.md", "docs/proxy.md"}
    assert [command for command in shown if not rows(command.line)] == []
    idle = [begin for begin in {**BY, **NOT} if not any(command.line.startswith(begin) for command in shown)]
    assert idle == [], "a row for what no page shows"
    sources = [path.read_text(encoding="utf-8") for path in TESTS.rglob("test_*.py")]
    for test in BY.values():
        assert any(f"def {test}(" in source for source in sources), test


# --- those that are run here ----------------------------------------------------------------------------------------


def bash(script: str, where: Path) -> subprocess.CompletedProcess[str]:
    """A block as it is pasted, where ``lfm2-fixed`` is this package's."""
    function = f'set -e\nlfm2-fixed() {{ "{sys.executable}" -m lfm2_fixed "$@"; }}\npython="{sys.executable}"\n'
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    program = ["bash", "-c", function + script]
    return subprocess.run(program, cwd=where, env=environment, capture_output=True, text=True, timeout=300)


def lines_of(test: Callable[..., object]) -> list[str]:
    name = test.__name__
    return [command.line for command in commands() if (found := rows(command.line)) and BY.get(found[-1]) == name]


def test_the_commands_for_everybody_run(tmp_path: Path) -> None:
    for line in dict.fromkeys(lines_of(test_the_commands_for_everybody_run)):
        with served(lambda prompt: "No.") as url:
            done = bash(line.replace("http://127.0.0.1:8099", url), tmp_path)
        assert done.returncode == 0 and done.stdout, (line, done)


def test_the_report_of_a_bad_parse(tmp_path: Path) -> None:
    """README's, with the model's own text from the log probabilities of a server whose parser loses a call."""
    words = ["<|tool_call_start|>", "[move(lat=10.5), ", "write(path='a', content='b')]", "<|tool_call_end|>"]
    whole = chat_whole([("move", '{"lat": 10.5}')])
    whole["choices"][0]["logprobs"] = {"content": [{"token": word, "bytes": list(word.encode())} for word in words]}
    (tmp_path / "request.json").write_text(json.dumps({"model": "m", "messages": [], "tools": TOOLS}))
    check, *parses = lines_of(test_the_report_of_a_bad_parse)
    with serving(Answer(sse(chat_frames([("move", '{"lat": 10.5}')]))), json_answer(whole)) as server:
        verdict = bash(check.replace("http://127.0.0.1:8000", server.url), tmp_path)
    assert verdict.returncode == 1 and verdict.stdout.startswith("Corrupted by the server's parser"), verdict
    outputs = {bash(parse, tmp_path).stdout for parse in parses}
    assert len(parses) == 2 and len(outputs) == 1
    assert [call["name"] for call in json.loads(outputs.pop())["calls"]] == ["move", "write"]


def test_extras_that_pages_name_exist() -> None:
    project = (ROOT / "pyproject.toml").read_text(encoding="utf-8")
    section = project[project.index("[project.optional-dependencies]") : project.index("[project.scripts]")]
    there = set(re.findall(r"^(\w+) = \[", section, re.M))
    named = [re.search(r"'\.\[(.*)\]'$", line) for line in lines_of(test_extras_that_pages_name_exist)]
    assert named and all(found and set(found[1].split(",")) <= there for found in named)


def test_the_tests_that_are_run_by_hand() -> None:
    (line,) = lines_of(test_the_tests_that_are_run_by_hand)
    done = bash(line, ROOT)
    assert done.returncode == 0 and " passed" in done.stdout, done


def test_the_proxys_program_runs() -> None:
    """The page's block as a program: it serves until its end; the client is made, and asks nothing."""
    pytest.importorskip("uvicorn")
    (block,) = [lines for language, lines in blocks("docs/proxy.md") if language == "python"]
    names: dict[str, object] = {}
    exec(compile("\n".join(block), "docs/proxy.md", "exec"), names)
    assert str(names["client"].base_url) == f"{names['url']}/v1/"  # type: ignore[attr-defined]
