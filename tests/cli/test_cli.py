"""The command `lfm2-fixed`, in this process and as a program."""

from __future__ import annotations

import importlib.util
import io
import json
import os
import shlex
import subprocess
import sys
import venv
from dataclasses import dataclass
from pathlib import Path
from unittest import mock

import click
import pytest

from lfm2_fixed import __version__, cli
from lfm2_fixed.cli import LIBRARY
from lfm2_fixed.cli import repro as repro_command
from lfm2_fixed.extras import install
from lfm2_fixed.repro.payloads import PAYLOADS
from lfm2_fixed.repro.readers import EngineFree, Outcome
from tests.support import ROOT

START, END = "<|tool_call_start|>", "<|tool_call_end|>"
TURN = f"Ok.\n{START}[write(path='a', content='it\\'s {{é}}'), ls(n=1.50)]{END}"
TOOLS = [{"type": "function", "function": {"name": "w", "parameters": {"type": "object", "properties": {"city": {}}}}}]


@dataclass
class Result:
    exit_code: int
    output: str


def run(*arguments: str, text: str | bytes = "") -> Result:
    """The command in this process: its status, and what it says on both of its outputs."""
    given = io.TextIOWrapper(io.BytesIO(text if isinstance(text, bytes) else text.encode()))
    said = io.TextIOWrapper(io.BytesIO(), encoding="utf-8", write_through=True)
    with mock.patch.multiple(sys, stdin=given, stdout=said, stderr=said), pytest.raises(SystemExit) as end:
        cli.main(arguments)
    code = end.value.code
    if isinstance(code, str):
        said.write(code + "\n")
        code = 1
    said.flush()
    return Result(code or 0, said.buffer.getvalue().decode())  # type: ignore[attr-defined]


def program(*arguments: str, text: str = "", code: str = "-m lfm2_fixed") -> subprocess.CompletedProcess[str]:
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "PYTHONIOENCODING": "ascii", "COLUMNS": "80"}
    return subprocess.run(
        [sys.executable, *code.split(" ", 1), *arguments],
        input=text,
        encoding="utf-8",
        capture_output=True,
        env=environment,
        timeout=120,
    )


def test_version() -> None:
    assert run("--version").output == f"lfm2-fixed {__version__}\n"
    assert program("--version").stdout == f"lfm2-fixed {__version__}\n"


def test_help_names_the_commands() -> None:
    for help_option in ("-h", "--help"):
        result = program(help_option)
        assert result.returncode == 0
        for name, summary in {
            "parse": "what one model turn says",
            **{c.name: c.summary for c in LIBRARY.values()},
        }.items():
            assert any(line.split()[:1] == [name] and summary in line for line in result.stdout.splitlines()), name
        assert all(len(line) <= 80 for line in result.stdout.splitlines()), "fits a terminal, uncut"
    nothing = run()
    assert nothing.exit_code == 2 and "examples:" in nothing.output
    assert run("repor").exit_code == 2


@pytest.mark.parametrize("name", ["", "parse", *LIBRARY])
def test_every_help_has_examples_that_are_understood(name: str) -> None:
    text = program(*filter(None, [name]), "--help").stdout
    examples = [line.strip() for line in text.partition("xamples:")[2].splitlines() if "lfm2-fixed " in line]
    examples = [example for example in examples if "COMMAND" not in example]
    assert len(examples) >= 2 and all(len(example) < 80 for example in examples)
    for example in examples:
        command, *words = shlex.split(example[example.index("lfm2-fixed ") :].partition(" < ")[0])[1:]
        assert command == (name or command)
        if command == "parse":
            cli.argument_parser().parse_args([command, *words])
            continue
        found = getattr(__import__(f"lfm2_fixed.cli.{command}", fromlist=[command]), command)
        with mock.patch.object(click.Path, "convert", lambda self, value, *_: value):  # the files are the reader's
            assert found.make_context(command, words)


def test_what_needs_no_library(tmp_path: Path) -> None:
    """In an environment with nothing but Python."""
    venv.create(tmp_path / "venv", with_pip=False)
    python = str(tmp_path / "venv" / "bin" / "python")

    def bare(*arguments: str) -> subprocess.CompletedProcess[str]:
        environment = {"PATH": os.environ["PATH"], "PYTHONPATH": str(ROOT)}
        command = [python, "-m", "lfm2_fixed", *arguments]
        return subprocess.run(command, input=TURN, encoding="utf-8", capture_output=True, env=environment, timeout=120)

    assert bare("--version").stdout == f"lfm2-fixed {__version__}\n"
    assert all(name in bare("--help").stdout for name in ("parse", *LIBRARY))
    assert json.loads(bare("parse").stdout)["calls"][1] == {"name": "ls", "arguments": {"n": 1.5}}
    for name, command in LIBRARY.items():
        lacking = bare(name, "--help")
        assert lacking.returncode == 1 and lacking.stdout == ""
        assert lacking.stderr.startswith(f"lfm2-fixed {name}: click is not installed; ")
        assert f"pip install '.[{command.extra}]'" in lacking.stderr and len(lacking.stderr.splitlines()) == 1
    code = "import lfm2_fixed.proxy"
    environment = {"PATH": os.environ["PATH"], "PYTHONPATH": str(ROOT)}
    proxy = subprocess.run([python, "-c", code], capture_output=True, text=True, env=environment)
    last = proxy.stderr.splitlines()[-1]
    assert last.startswith("ImportError: lfm2_fixed.proxy: anyio is not installed; ") and "'.[proxy]'" in last


# --- parse ------------------------------------------------------------------------------------------


@pytest.mark.parametrize("chunk", [(), ("--chunk", "1"), ("--chunk", "7")])
def test_parse(chunk: tuple[str, ...]) -> None:
    result = run("parse", *chunk, text=TURN)
    assert result.exit_code == 0
    assert json.loads(result.output) == {
        "calls": [
            {"name": "write", "arguments": {"path": "a", "content": "it's {é}"}},
            {"name": "ls", "arguments": {"n": 1.5}},
        ],
        "content": "Ok.",
    }


def test_parse_as_a_program_writes_utf8_everywhere() -> None:
    result = program("parse", text=f"{START}[w(a='é 🚀')]{END}")
    assert (result.returncode, result.stderr) == (0, "")
    assert "é 🚀" in result.stdout


def test_parse_a_file(tmp_path: Path) -> None:
    file = tmp_path / "turn.txt"
    file.write_bytes(b"a\r\nb\n")
    assert json.loads(run("parse", str(file)).output) == {"calls": [], "content": "a\r\nb\n"}


def test_parse_nothing() -> None:
    assert json.loads(run("parse", text="").output) == {"calls": [], "content": ""}


def test_parse_dialect() -> None:
    text = "[w(a=1)]<|eom|>"
    assert json.loads(run("parse", "--dialect", "llama4", text=text).output)["calls"] == [
        {"name": "w", "arguments": {"a": 1}}
    ]
    assert json.loads(run("parse", text=text).output)["calls"] == []
    text = "<function_calls>w(a=1)\nw(a=2)</function_calls>"
    assert json.loads(run("parse", "--dialect", "olmo3", text=text).output)["calls"] == [
        {"name": "w", "arguments": {"a": 1}},
        {"name": "w", "arguments": {"a": 2}},
    ]
    wrong = run("parse", "--dialect", "llama3", text=text)
    assert wrong.exit_code == 2 and "llama3" in wrong.output


@pytest.mark.parametrize("tools", [TOOLS, {"model": "m", "tools": TOOLS}, {"w": ["city"]}, [TOOLS[0]["function"]]])
def test_parse_with_tools(tmp_path: Path, tools: object) -> None:
    file = tmp_path / "tools.json"
    file.write_text(json.dumps(tools))
    text = f"{START}[w('Paris')]{END}"
    assert json.loads(run("parse", "--tools", str(file), text=text).output)["calls"] == [
        {"name": "w", "arguments": {"city": "Paris"}}
    ]
    assert json.loads(run("parse", text=text).output) == {"calls": [], "content": "w('Paris')"}


@pytest.mark.parametrize(
    "content, sentence",
    [
        ("{", "is not JSON: "),
        ("[]", "declares no tool"),
        ("3", "declares no tool"),
        ('[{"type": "web_search"}]', "declares no tool"),
        ('{"w": "city"}', "declares no tool"),
    ],
)
def test_parse_with_bad_tools(tmp_path: Path, content: str, sentence: str) -> None:
    file = tmp_path / "tools.json"
    file.write_text(content)
    result = run("parse", "--tools", str(file), text="x")
    assert result.exit_code == 1
    assert result.output.startswith("lfm2-fixed parse: ") and sentence in result.output and str(file) in result.output
    assert "Traceback" not in result.output


def test_parse_with_missing_tools_file() -> None:
    result = run("parse", "--tools", "no-such-file.json", text="x")
    assert result.exit_code == 1 and result.output == (
        "lfm2-fixed parse: no-such-file.json cannot be read: No such file or directory\n"
    )


def test_parse_refuses_what_is_not_utf8() -> None:
    result = run("parse", text=b"ab\xff")
    assert result.exit_code == 1
    assert result.output == "lfm2-fixed parse: the input is not UTF-8 (byte 2)\n"


def test_parse_shows_what_is_unfinished() -> None:
    result = json.loads(run("parse", text=f'{START}[v(b=1), w(a="hello wor').output)
    assert result["calls"] == [{"name": "v", "arguments": {"b": 1}}]
    assert result["unfinished"] == [{"name": "w", "arguments": '{"a": "hello wor', "reason": "cut"}]
    result = json.loads(run("parse", "--chunk", "1", text=f'{START}[w(a="x", b=f())]{END}').output)
    assert result["content"] == 'w(a="x", b=f())'
    assert [call["reason"] for call in result["unfinished"]] == ["malformed"]


def test_parse_events() -> None:
    result = run("parse", "--events", text=f"hi {START}[w(a=1)]{END}")
    events = [json.loads(line) for line in result.output.splitlines()]
    assert [event["event"] for event in events][0] == "Content"
    assert {"event": "CallStart", "index": 0, "name": "w"} in events
    assert events[-1] == {"event": "CallEnd", "index": 0}
    assert "".join(event["text"] for event in events if event["event"] == "ArgumentsDelta") == '{"a": 1}'


def test_parse_stops_when_nobody_reads() -> None:
    code = f"{START}[{', '.join(f'w(a={n})' for n in range(20000))}]{END}"
    command = f"'{sys.executable}' -m lfm2_fixed parse --events | head -n 1"
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    done = subprocess.run(["bash", "-c", command], input=code, text=True, capture_output=True, env=environment)
    assert done.stderr == "" and len(done.stdout.splitlines()) == 1


@pytest.mark.parametrize("number", ["0", "-1", "x"])
def test_parse_refuses_a_wrong_chunk(number: str) -> None:
    assert run("parse", "--chunk", number, text="x").exit_code == 2


# --- repro ------------------------------------------------------------------------------------------


@pytest.fixture
def without_vllm(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(repro_command, "vllm_is_installed", lambda: False)


@pytest.mark.usefixtures("without_vllm")
def test_repro_runs_ours_alone_without_vllm() -> None:
    result = run("repro")
    assert result.exit_code == 0
    assert "vLLM is not installed in this Python: trying ours alone." in result.output
    assert f"ours: {len(PAYLOADS)} of {len(PAYLOADS)} payloads right in every way" in result.output
    assert "stock" not in result.output
    assert all(payload.id in result.output for payload in PAYLOADS)


@pytest.mark.usefixtures("without_vllm")
def test_repro_chooses_payloads() -> None:
    result = run("repro", "num/*", "l4/plain")
    assert "num/half" in result.output and "l4/plain" in result.output
    assert "seed/plain" not in result.output
    assert run("repro", "nothing/*").exit_code == 2


class Wrong(EngineFree):
    """A parser that reads one cutting wrong."""

    def streamed(self, payload, pieces):  # type: ignore[no-untyped-def]
        pieces = list(pieces)
        outcome = super().streamed(payload, pieces)
        return Outcome((("wrong", '{"a": 10.0}'),)) if len(pieces[1]) == 3 else outcome


@pytest.mark.usefixtures("without_vllm")
def test_repro_fails_when_ours_differs(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(repro_command, "EngineFree", Wrong)
    result = run("repro", "num/half")
    assert result.exit_code == 1
    assert 'expected  search {"query": "x=y"}; move {"lat": 10.5}' in result.output
    assert "ours, 3 chars" in result.output
    assert 'got     wrong {"a": 10.0}' in result.output
    assert "ours: 0 of 1 payloads right" in result.output
    brief = run("repro", "--brief", "num/half")
    assert brief.exit_code == 1 and "expected" not in brief.output


def test_repro_with_a_failing_stock_parser_alone_is_fine(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(repro_command, "_readers", lambda say: {"stock (x)": Wrong(), "ours": EngineFree()})
    result = run("repro", "num/half")
    assert result.exit_code == 0
    assert "stock (x): 0 of 1" in result.output and "ours: 1 of 1" in result.output


@pytest.mark.usefixtures("without_vllm")
def test_repro_says_why_vllm_cannot_be_used(monkeypatch: pytest.MonkeyPatch) -> None:
    def unusable() -> None:
        raise ImportError("it is too old")

    monkeypatch.setattr(repro_command, "vllm_is_installed", lambda: True)
    monkeypatch.setattr(repro_command, "vllm_readers", unusable)
    result = run("repro", "num/half")
    assert result.exit_code == 0
    assert "it is too old" in result.output


def test_repro_says_that_a_server_cannot_be_reached() -> None:
    result = run("repro", "--llama-url", "http://127.0.0.1:1")
    assert result.exit_code == 1
    assert result.output.startswith("Error: http://127.0.0.1:1: ")


def test_repro_as_a_program() -> None:
    result = program("repro", "num/*")
    assert result.returncode == 0, result.stderr
    assert "5 of 5 payloads right in every way" in result.stdout
    assert "Traceback" not in result.stderr
    if importlib.util.find_spec("vllm") is None:
        assert result.stderr == ""


def test_without_the_extra() -> None:
    """One sentence instead of a traceback where rich is missing."""
    without_rich = "-c import sys; sys.modules['rich.console'] = None; from lfm2_fixed.cli import main; main()"
    result = program("repro", code=without_rich)
    assert result.returncode == 1
    assert result.stderr == f"Error: rich.console is not installed; {install('cli')}\n"
