"""serve.sh, its venv and the servers it starts: what is said and done when something is wrong.

The servers here are stand-ins that start at once; the real ones are in tests/e2e.
"""

from __future__ import annotations

import json
import os
import re
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import rig
from rig import Server, ServerError, read_sse
from serve_options import PARSERS, demo_options, server_options

from lfm2_fixed import parse
from lfm2_fixed.core.dialects import DIALECTS
from tests.support import ROOT
from tests.support.standins import script

SERVE = ROOT / "serve"


def run(*command: str | Path, **environment: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [str(word) for word in command],
        env={**os.environ, **environment},
        capture_output=True,
        text=True,
        timeout=300,
    )


# --- a model ----------------------------------------------------------------------------------------


@pytest.fixture
def vllm(tmp_path: Path) -> Path:
    """A `vllm` command that prints its arguments, one a line, and the python beside it."""
    script(tmp_path / "bin" / "python3", "#!/bin/bash\necho 0.33.0+cu130\n")
    return script(tmp_path / "bin" / "vllm", '#!/bin/bash\nprintf "ARG %s\\n" "$@"\n')


def flags(vllm: Path, *arguments: str) -> list[str]:
    result = run(ROOT / "serve.sh", *arguments, VLLM=str(vllm))
    assert result.returncode == 0, result.stderr
    return [line[4:] for line in result.stdout.splitlines() if line.startswith("ARG ")]


def test_help() -> None:
    for option in ("--help", "-h"):
        result = run(ROOT / "serve.sh", option)
        assert result.returncode == 0
        assert (
            "--demo" in result.stdout
            and "lfm2: vLLM's own parser" in result.stdout
            and "LFM2_FIXED_TORCH" in result.stdout
        )


def test_model(vllm: Path) -> None:
    assert flags(vllm, "LiquidAI/LFM2.5-2.6B", "--port", "1", "--x", "a b") == [
        *("serve", "LiquidAI/LFM2.5-2.6B", "--enable-auto-tool-choice"),
        *("--tool-parser-plugin", str(ROOT / "lfm2_fixed" / "parser.py"), "--tool-call-parser", "lfm2_fixed"),
        *("--reasoning-parser", "lfm2_fixed", "--reasoning-parser-plugin", str(ROOT / "lfm2_fixed" / "parser.py")),
        *("--port", "1", "--x", "a b"),
    ]


@pytest.mark.parametrize(
    "model, parser",
    [
        ("LiquidAI/LFM2.5-8B-A1B", "lfm2_fixed"),
        ("LiquidAI/LFM2.5-1.2B-Thinking", "lfm2_fixed"),
        ("LiquidAI/LFM2.5-1.2B-Instruct", "lfm2_fixed"),
        ("LiquidAI/LFM2-1.2B", "lfm2_fixed"),
        ("someone/LFM2-1.2B-ToolACE", "lfm2_fixed"),
        ("someone/unknown", "lfm2_fixed"),
        ("meta-llama/Llama-4-Scout-17B-16E-Instruct", "llama4_pythonic_fixed"),
        ("meta-llama/Llama-3.2-3B-Instruct", "pythonic_fixed"),
        ("Team-ACE/ToolACE-2-Llama-3.1-8B", "pythonic_fixed"),
        ("allenai/Olmo-3-7B-Instruct", "olmo3_fixed"),
        ("allenai/Olmo-3.1-32B-Think", "olmo3_fixed"),
    ],
)
def test_parser_for_model(vllm: Path, model: str, parser: str) -> None:
    given = flags(vllm, model)
    assert given[given.index("--tool-call-parser") + 1] == parser
    # Ours is right for LFM2 whether it reasons or not; the other families have none.
    assert given[given.index(parser) + 1 :][:2] == (["--reasoning-parser", parser] if parser == "lfm2_fixed" else [])


@pytest.mark.parametrize(
    "config, parser",
    [
        ({"model_type": "llama4", "text_config": {"model_type": "llama4_text"}}, "llama4_pythonic_fixed"),
        ({"architectures": ["Llama4ForConditionalGeneration"]}, "llama4_pythonic_fixed"),
        ({"model_type": "lfm2"}, "lfm2_fixed"),
        ({"model_type": "lfm2_moe"}, "lfm2_fixed"),
        ({"architectures": ["Olmo3ForCausalLM"], "model_type": "olmo3"}, "olmo3_fixed"),
        ({"architectures": ["LlamaForCausalLM"], "model_type": "llama"}, "pythonic_fixed"),
    ],
)
def test_parser_for_directory(vllm: Path, tmp_path: Path, config: dict[str, Any], parser: str) -> None:
    """By what its configuration says, whatever it is called."""
    model = tmp_path / "Llama-4 or Olmo-3"
    model.mkdir()
    for indent in (None, 2):
        (model / "config.json").write_text(json.dumps(config, indent=indent))
        given = flags(vllm, str(model))
        assert given[given.index("--tool-call-parser") + 1] == parser


def test_every_parser_of_the_table_can_be_chosen() -> None:
    ours = {dialect.parser for dialect in DIALECTS.values()}
    assert set(PARSERS) == {*ours, DIALECTS["lfm2"].stock}
    said = run(ROOT / "serve.sh", "--help").stdout
    assert all(parser in said for parser in ours)
    serve = (ROOT / "serve.sh").read_text()
    chosen = serve[serve.index("parser_for() {") : serve.index("serve() {")]
    assert ours == set(re.findall(r"echo (\w+)", chosen))


def test_reasoning_can_be_chosen(vllm: Path) -> None:
    given = flags(vllm, "LiquidAI/LFM2.5-2.6B", "--no-reasoning")
    assert not any("reasoning" in flag for flag in given)
    given = flags(vllm, "LiquidAI/LFM2.5-2.6B", "--reasoning-parser", "other")
    assert given[-2:] == ["--reasoning-parser", "other"] and given.count("--reasoning-parser") == 1


def test_no_vllm(tmp_path: Path) -> None:
    result = run(ROOT / "serve.sh", "LiquidAI/LFM2.5-2.6B", VLLM=str(tmp_path / "vllm"))
    assert result.returncode == 2
    assert "there is no `vllm` command here" in result.stderr


@pytest.mark.parametrize("version", ["0.25.1", "0.9.2+cu128"])
def test_old_vllm(vllm: Path, version: str) -> None:
    script(vllm.parent / "python3", f"#!/bin/bash\necho {version}\n")
    result = run(ROOT / "serve.sh", "LiquidAI/LFM2.5-2.6B", VLLM=str(vllm))
    assert result.returncode == 2
    assert f"vLLM {version} is too old" in result.stderr


# --- options ----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "arguments, said",
    [
        (["--dmeo"], "there is no option --dmeo; did you mean --demo?"),
        (["--demo", "--breif"], "there is no option --breif; did you mean --brief?"),
        (["--prot", "8001"], "there is no option --prot; did you mean --port?"),
        (["--stream-interval", "5"], "flags for vLLM itself come after --: ./serve.sh -- --stream-interval"),
        (["--port", "many"], "'many' is no TCP port"),
        (["--parser", "lfm3"], "invalid choice: 'lfm3'"),
    ],
)
def test_wrong_options_are_refused_before_anything_is_installed(
    tmp_path: Path, arguments: list[str], said: str
) -> None:
    result = run(ROOT / "serve.sh", *arguments, LFM2_FIXED_SERVE_VENV=str(tmp_path / "venv"))
    assert result.returncode == 2
    assert "[serve] error: " in result.stderr and said in result.stderr
    assert result.stdout == "" and not (tmp_path / "venv").exists()


def test_options() -> None:
    options = server_options(["--port", "81", "--parser", "lfm2", "--", "--port", "9", "--x"])
    assert (options.port, options.parser, options.flags) == (81, "lfm2", ["--port", "9", "--x"])
    assert (server_options([]).port, demo_options([]).port, demo_options(["--brief"]).brief) == (8000, None, True)


def test_the_printed_curl_can_be_pasted(tmp_path: Path) -> None:
    """What is printed goes through bash as it is, and what curl is given is the request."""
    script(tmp_path / "curl", '#!/bin/bash\nprintf "%s\\n" "$@" >"$OUT/arguments"\ncat >"$OUT/body"\n')
    result = subprocess.run(
        ["bash"],
        input=rig.EXAMPLE.format(url="http://127.0.0.1:8000"),
        env={**os.environ, "PATH": f"{tmp_path}:{os.environ['PATH']}", "OUT": str(tmp_path)},
        capture_output=True,
        text=True,
    )
    assert (result.returncode, result.stdout, result.stderr) == (0, "", "")
    arguments = (tmp_path / "arguments").read_text().splitlines()
    assert arguments[:2] == ["-N", "http://127.0.0.1:8000/v1/chat/completions"]
    body = json.loads((tmp_path / "body").read_text())
    assert parse(body["messages"][0]["content"], tools=body["tools"]).calls[0].arguments == json.dumps(
        {"path": "a.json", "content": '{"a": [1, 2.5]}'}
    )


# --- the server -------------------------------------------------------------------------------------

# Answers its health check; starts a child that ignores polite signals.
STAND_IN = """
import http.server, subprocess, sys
child = subprocess.Popen([sys.executable, "-c", '''
import signal, sys, time
signal.signal(signal.SIGINT, signal.SIG_IGN)
signal.signal(signal.SIGTERM, signal.SIG_IGN)
time.sleep(600)
'''])
print("child", child.pid, flush=True)
class Handler(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        self.send_response(200); self.end_headers()
http.server.HTTPServer(("127.0.0.1", int(sys.argv[-1])), Handler).serve_forever()
"""


@pytest.fixture
def said() -> list[str]:
    return []


def stand_in(code: str, tmp_path: Path, said: list[str], port: int | None = None) -> Server:
    return Server(command=[sys.executable, "-c", code], log=tmp_path / "log", say=said.append, port=port)


def alive(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except FileNotFoundError:
        return False


def gone(pid: int) -> bool:
    for _ in range(100):
        if not alive(pid):
            return True
        time.sleep(0.1)
    return False


def child_in(log: Path) -> int:
    return int(log.read_text().split("child ", 1)[1].split()[0])


@pytest.fixture
def taken() -> Iterator[int]:
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        listener.listen()
        yield listener.getsockname()[1]


def test_server_stops_with_its_children(tmp_path: Path, said: list[str]) -> None:
    with stand_in(STAND_IN, tmp_path, said) as server:
        assert server.healthy() and server.running()
        child = child_in(tmp_path / "log")
        assert alive(child)
    assert not server.running() and gone(child)
    assert "up after" in said[-1]


def test_server_stops_when_the_block_raises(tmp_path: Path, said: list[str]) -> None:
    with pytest.raises(KeyError), stand_in(STAND_IN, tmp_path, said) as server:
        raise KeyError
    assert not server.running() and gone(child_in(tmp_path / "log"))


def test_server_that_dies(tmp_path: Path, said: list[str]) -> None:
    code = "import sys; print('loading'); sys.exit('ValueError: no such parser')"
    with pytest.raises(ServerError, match=r"(?s)ended with status 1\..*ValueError: no such parser"):
        stand_in(code, tmp_path, said).__enter__()


@pytest.mark.parametrize("name, reason", [("SIGILL", "built for another processor"), ("SIGKILL", "the memory")])
def test_server_that_dies_by_a_signal(tmp_path: Path, said: list[str], name: str, reason: str) -> None:
    code = f"import os, signal; os.kill(os.getpid(), signal.{name})"
    with pytest.raises(ServerError, match=f"died by {name}.*{reason}"):
        stand_in(code, tmp_path, said).__enter__()


def test_server_that_never_gets_up(tmp_path: Path, said: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rig, "START_TIMEOUT", 1.0)
    code = STAND_IN.replace("200", "503")
    with pytest.raises(ServerError, match="was not up after"):
        stand_in(code, tmp_path, said).__enter__()
    assert gone(child_in(tmp_path / "log"))


def test_taken_port(tmp_path: Path, said: list[str], taken: int) -> None:
    with pytest.raises(ServerError, match=f"Port {taken} is taken by another program"):
        stand_in(STAND_IN, tmp_path, said, port=taken).__enter__()
    assert not (tmp_path / "log").exists(), "nothing may be started"
    result = run(sys.executable, SERVE / "rig.py", "--port", str(taken), LFM2_FIXED_SERVE_VENV=str(tmp_path))
    assert result.returncode == 1
    assert f"[serve] error: Port {taken} is taken by another program" in result.stdout


def test_missing_venv(tmp_path: Path) -> None:
    command = [sys.executable, SERVE / "rig.py", "--port", str(rig.free_port())]
    result = run(*command, LFM2_FIXED_SERVE_VENV=str(tmp_path / "none"))
    assert result.returncode == 1
    assert "run serve/setup_venv.sh first" in result.stdout


@pytest.mark.skipif(sys.platform != "linux", reason="the signal at the parent's end is Linux's")
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGKILL])
def test_server_goes_with_its_starter(tmp_path: Path, number: signal.Signals) -> None:
    """Ctrl-C, TERM, and even KILL leave no server behind."""
    starter = f"""
import signal, sys, time
signal.signal(signal.SIGINT, signal.default_int_handler)  # a shell's background jobs ignore it
sys.path.insert(0, {str(SERVE)!r})
from pathlib import Path
from rig import Server
with Server(command=[sys.executable, "-c", {STAND_IN!r}], log=Path({str(tmp_path / "log")!r})) as server:
    print("pid", server._process.pid, flush=True)
    time.sleep(600)
"""
    process = subprocess.Popen([sys.executable, "-c", starter], stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    pid = int(next(line for line in process.stdout if line.startswith("pid ")).split()[1])
    child = child_in(tmp_path / "log")
    assert alive(pid)
    process.send_signal(number)
    process.wait(timeout=60)
    process.stdout.close()
    assert gone(pid)
    if number == signal.SIGINT:
        assert gone(child)
    elif alive(child):  # a stand-in's child that ignores signals; vLLM's see to it themselves
        os.kill(child, signal.SIGKILL)


def test_read_sse() -> None:
    assert read_sse(b'data: {"a": 1}\n\ndata: {"b": 2}\n\ndata: [DONE]\n\n') == [{"a": 1}, {"b": 2}]
    for cut in (b'data: {"a": 1}\n\n', b""):
        with pytest.raises(ValueError, match="does not end"):
            read_sse(cut)
