"""``lfm2-fixed check --live`` on real llama.cpp servers: theirs is found out, ours is clean, and the text is kept."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from lfm2_fixed import parse
from lfm2_fixed.cli.check import check
from lfm2_fixed.repro.turns import TOOLS
from tests.support.llama_fronts import Fronts
from tests.support.llama_rig import script

TURN = "<|tool_call_start|>[bash(command='cat my\\ file.txt')]<|tool_call_end|>"


def checked(url: str, text: str, directory: Path) -> tuple[int, dict[str, Any]]:
    messages = [{"role": "user", "content": script(text)}]
    request = {"model": "m", "messages": messages, "tools": TOOLS, "temperature": 0, "max_tokens": 200}
    file = directory / "request.json"
    file.write_text(json.dumps(request))
    arguments = ["--live", f"{url}/v1", "--tools", str(file), "--dialect", "lfm2", "--save", str(directory), "--json"]
    result = CliRunner().invoke(check, arguments)
    assert result.exit_code in (0, 1), result.output
    return result.exit_code, json.loads(result.stdout)


@pytest.mark.parametrize("ours", [True, False], ids=["through the proxy", "the server by itself"])
def test_who_corrupts_a_turn(fronts: Fronts, tmp_path: Path, ours: bool) -> None:
    status, said = checked(fronts.parse if ours else fronts.direct, TURN, tmp_path)
    assert (status, said["fault"]) == ((0, None) if ours else (1, "server's parser")), said
    if ours:  # by itself the server refuses the whole response, and with it the log probabilities
        (text,) = tmp_path.glob("*.txt")
        (call,) = parse(text.read_text(), tools=TOOLS).calls
        assert json.loads(call.arguments) == {"command": "cat my\\ file.txt"}, "the model's own text is kept"
