"""The commands that are documented, and the example files."""

from __future__ import annotations

import json
import re
import shlex
import shutil
import socket
import subprocess
from pathlib import Path

import click
import pytest
from click.testing import CliRunner

from lfm2_fixed.cli.proxy import proxy
from tests.support import ROOT

EXAMPLES = ROOT / "examples" / "proxy"
UNIT = EXAMPLES / "lfm2-fixed-proxy.service"


def documented() -> list[str]:
    """Every command line of the proxy that a reader may copy."""
    lines = (ROOT / "docs" / "proxy.md").read_text(encoding="utf-8").splitlines()
    commands = [line.removeprefix("$ ") for line in lines if line.startswith("$ lfm2-fixed proxy")]
    started = re.search(r"^ExecStart=\S+/(lfm2-fixed proxy .*)$", UNIT.read_text(encoding="utf-8"), re.M)
    assert started and len(commands) > 4
    commands.append(started[1].replace("${PORT}", "8100"))
    dockerfile = (EXAMPLES / "Dockerfile").read_text(encoding="utf-8")
    entry, arguments = (json.loads(found) for found in re.findall(r"^(?:ENTRYPOINT|CMD) (\[.*\])$", dockerfile, re.M))
    return [*commands, shlex.join([*entry, *arguments])]


@pytest.mark.parametrize("command", documented())
def test_documented_commands_are_understood(command: str) -> None:
    program, name, *arguments = shlex.split(command)
    assert (program, name) == ("lfm2-fixed", "proxy")
    context = proxy.make_context("proxy", arguments)
    assert context.params["upstream"]


def test_every_option_is_explained() -> None:
    result = CliRunner().invoke(proxy, ["--help"])
    assert result.exit_code == 0
    for option in proxy.params:
        assert isinstance(option, click.Option) and (option.help or option.name == "help"), option.name
    for mode in ("auto", "parse", "buffer"):
        assert re.search(rf"^  {mode}  ", result.output, re.M)


@pytest.mark.parametrize(
    "url",
    [
        "127.0.0.1:8080",
        "http://h:abc",
        "http://h:99999",
        "http://h:-1",
        "http://h:0",
        "http://[::1",
        "http://[x]:80",
        "http://a b",
        "http://a\nb:80/",
        "http://",
        "",
        "ftp://h",
        "http://u:p@h",
        "http://h/?q",
    ],
)
def test_a_wrong_upstream_is_one_sentence(url: str) -> None:
    result = CliRunner().invoke(proxy, ["--upstream", url])
    assert result.exit_code == 2
    (line,) = result.output.splitlines()
    assert line.startswith("Error: The upstream") and line.endswith(".")


def test_a_missing_extra_is_one_sentence(monkeypatch: pytest.MonkeyPatch) -> None:
    import sys

    for name in [name for name in sys.modules if name.startswith("lfm2_fixed.proxy.") or name == "lfm2_fixed.proxy"]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, "starlette", None)
    monkeypatch.setitem(sys.modules, "starlette.applications", None)
    result = CliRunner().invoke(proxy, ["--upstream", "http://127.0.0.1:1"])
    assert result.exit_code == 1 and "pip install '.[proxy]'" in result.output


@pytest.mark.skipif(shutil.which("systemd-analyze") is None, reason="no systemd-analyze")
def test_the_unit_is_valid(tmp_path: Path) -> None:
    program = tmp_path / "lfm2-fixed"
    program.write_text("#!/bin/sh\n")
    program.chmod(0o755)
    unit = tmp_path / UNIT.name
    unit.write_text(UNIT.read_text(encoding="utf-8").replace("/opt/lfm2-fixed/bin/lfm2-fixed", str(program)))
    result = subprocess.run(["systemd-analyze", "verify", "--man=no", str(unit)], capture_output=True, text=True)
    ours = [line for line in (result.stdout + result.stderr).splitlines() if UNIT.name in line]
    assert not ours, ours


def test_an_address_that_is_not_to_be_had_is_a_sentence() -> None:
    with socket.create_server(("127.0.0.1", 0)) as other:
        number = other.getsockname()[1]
        taken = CliRunner().invoke(proxy, ["--upstream", "http://127.0.0.1:9", "--port", str(number)])
    assert taken.exit_code == 2
    assert (
        taken.output == f"Error: Port {number} of 127.0.0.1 is taken by another program: stop it, or choose another.\n"
    )
    foreign = CliRunner().invoke(
        proxy, ["--upstream", "http://127.0.0.1:9", "--host", "192.0.2.1"]
    )  # nobody's: an address for documentation
    assert foreign.exit_code == 2 and foreign.output.startswith("Error: 192.0.2.1, port 8100, cannot be listened on: ")
