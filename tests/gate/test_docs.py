"""What docs/gate.md and the examples say is run."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import openai
import pytest

from lfm2_fixed.check.clients import CLIENTS
from lfm2_fixed.gate import Code, budget
from lfm2_fixed.wire.turn import ENDED_WELL
from tests.support import ROOT
from tests.support.answers import TOOLS, Answer, chat_frames, chat_whole, json_answer, serving, sse

PAGE = (ROOT / "docs" / "gate.md").read_text(encoding="utf-8")
BLOCKS = re.findall(r"^```(\w+)\n(.*?)^```$", PAGE, re.M | re.S)
MOVE = ("move", '{"lat": 1.5}')
SECTIONS: dict[str, str] = dict(re.findall(r"^##+ ([^\n]+)\n(.*?)(?=^##|\Z)", PAGE, re.M | re.S))


def test_the_python_example_runs() -> None:
    (source,) = [text for kind, text in BLOCKS if kind == "python"]
    streams = [Answer(sse(chat_frames([("move", "{}")]))), Answer(sse(chat_frames([MOVE])))]
    with serving(*streams) as server:
        names: dict[str, Any] = {
            "client": openai.OpenAI(base_url=f"{server.url}/v1", api_key="k", max_retries=0),
            **{"model": "m", "messages": [{"role": "user", "content": "x"}], "tools": TOOLS},
        }
        exec(compile(source, "docs/gate.md", "exec"), names)  # refused
        assert [m["role"] for m in names["messages"]] == ["user", "assistant", "tool"]
        exec(compile(source, "docs/gate.md", "exec"), names)
    assert [(call.name, call.arguments) for call in names["calls"]] == [("move", {"lat": 1.5})]
    assert len(server.requests[1][1]["messages"]) == 3


def test_the_commands_run_as_they_are_pasted(tmp_path: Path) -> None:
    captured, live = [text for kind, text in BLOCKS if kind == "bash"]
    request = {"model": "m", "temperature": 0, "messages": [], "tools": TOOLS}
    (tmp_path / "request.json").write_text(json.dumps({**request, "stream": True}))
    (tmp_path / "request-whole.json").write_text(json.dumps(request))
    command = f'lfm2-fixed() {{ "{sys.executable}" -m lfm2_fixed "$@"; }}\nset -e\n'
    for script in (captured, live):
        with serving(Answer(sse(chat_frames([MOVE]))), json_answer(chat_whole([MOVE]))) as server:
            environment = {**os.environ, "PYTHONPATH": str(ROOT), "BASE": f"{server.url}/v1", "MODEL": "m"}
            program = ["bash", "-c", command + script]
            done = subprocess.run(program, cwd=tmp_path, env=environment, capture_output=True, text=True, timeout=120)
        assert done.returncode == 0 and done.stdout.startswith("Clean: 1 call"), done
        assert [path for path, _ in server.requests] == ["/v1/chat/completions"] * 2
        assert all(headers["content-type"] == "application/json" for headers in server.headers)


def test_the_page_names_every_code_reason_and_bound() -> None:
    assert set(re.findall(r"^\| `([A-Z_]+)` \|", SECTIONS["Codes"], re.M)) == {str(code) for code in Code}
    first = next(line for line in SECTIONS["What is refused"].split("\n") if "A finish reason other than" in line)
    allowed = set(re.findall(r"`([a-z_]+)`", first.split("):")[0] + first.split("(Messages)")[0]))
    assert allowed == set().union(*ENDED_WELL.values())
    said = SECTIONS["What a check may cost"]
    for bound in (budget.BASE, budget.MOST, budget.TOOLS):
        assert f"{bound:,}" in said
    assert f"and {budget.PER_CHARACTER} for each character" in said
    assert any(client.why.split(".")[0] in SECTIONS["Cut at every byte offset"] for client in CLIENTS)
    assert "seven" in SECTIONS["Cut at every byte offset"] and len(CLIENTS) == 7


def example(name: str, *arguments: str, path: str = str(ROOT)) -> subprocess.CompletedProcess[str]:
    program = [sys.executable, str(ROOT / "examples" / f"{name}.py"), *arguments]
    environment = {**os.environ, "PYTHONPATH": path}
    return subprocess.run(program, capture_output=True, text=True, timeout=60, env=environment)


EXAMPLES = ["gate_openai", "gate_openai_async", "gate_plain"]


@pytest.mark.parametrize("name", EXAMPLES)
def test_an_example_without_arguments_prints_its_usage(name: str) -> None:
    done = example(name)
    assert done.returncode == 1 and f"usage: {name}.py" in done.stderr and "Traceback" not in done.stderr


@pytest.mark.parametrize("name", EXAMPLES[:2])
def test_an_example_without_its_client_package_says_what_it_needs(name: str, tmp_path: Path) -> None:
    (tmp_path / "openai.py").write_text("raise ModuleNotFoundError('No module named openai')")
    done = example(name, "http://127.0.0.1:1/v1", "m", "Weather?", path=f"{tmp_path}{os.pathsep}{ROOT}")
    assert done.returncode == 1 and "needs the package openai" in done.stderr and "Traceback" not in done.stderr


@pytest.mark.parametrize("name", EXAMPLES)
def test_an_example_without_a_server_says_so_in_a_line(name: str) -> None:
    done = example(name, "http://127.0.0.1:1/v1", "m", "Weather?")  # nobody may listen on port 1
    assert done.returncode == 1 and done.stdout == ""
    assert re.fullmatch(r"http://127.0.0.1:1/v1: .*\n", done.stderr), done.stderr
