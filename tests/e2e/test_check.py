"""``lfm2-fixed check --live`` against real servers: vLLM's own parser is found out, ours is clean."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner
from rig import MODEL_NAME, Server, chat_body

from lfm2_fixed.cli.check import check
from lfm2_fixed.repro.payloads import PAYLOADS
from lfm2_fixed.repro.turns import TOOLS

TURNS = {payload.id: payload for payload in PAYLOADS if payload.dialect == "lfm2"}


def checked(
    server: Server, script: str, directory: Path, *arguments: str, **options: Any
) -> tuple[int, dict[str, Any]]:
    """The command's exit status and what it says, for a request that makes the model say ``script``."""
    request = directory / "request.json"
    request.write_text(json.dumps(chat_body(script, TOOLS, **options)))
    where = ["--live", server.url, "--tools", str(request), "--model", MODEL_NAME, "--save", str(directory)]
    result = CliRunner().invoke(check, [*where, "--json", *arguments])
    assert result.exit_code in (0, 1), result.output
    return result.exit_code, json.loads(result.stdout)


@pytest.mark.parametrize("name", TURNS)
def test_every_payload_is_clean_with_our_parser(lfm2: Server, tmp_path: Path, name: str) -> None:
    turn = TURNS[name]
    status, said = checked(lfm2, turn.text, tmp_path, "--dialect", "lfm2", "--expect-calls", str(len(turn.calls)))
    assert status == 0, said["findings"]
    assert said["calls"] == {"0": [call for call, _ in turn.calls]}
    (capture,) = tmp_path.glob("*.sse")
    (text,) = tmp_path.glob("*.txt")
    assert text.read_text().removesuffix("<|im_end|>") == turn.text, "what is saved is a bug report's text"
    assert said["bytes"] == capture.stat().st_size == said["cuttings"]["offsets"]


def test_responses_and_messages_are_checked_as_well(lfm2: Server, tmp_path: Path) -> None:
    functions = [tool["function"] for tool in TOOLS]
    messages = [{"name": f["name"], "input_schema": f["parameters"]} for f in functions]
    xargs = {"vllm_xargs": {"script": TURNS["seed/two-calls"].text}}
    said = [{"role": "user", "content": "go"}]
    for path, request in {
        "/v1/responses": {"input": "go", "tools": [{"type": "function", **f} for f in functions]},
        "/v1/messages": {"messages": said, "max_tokens": 512, "tools": messages},
    }.items():
        file = tmp_path / "request.json"
        file.write_text(json.dumps({**request, **xargs}))
        where = ["--live", lfm2.url + path, "--model", MODEL_NAME, "--save", str(tmp_path / path.strip("/"))]
        result = CliRunner().invoke(check, [*where, "--tools", str(file), "--json", "--expect-calls", "2"])
        assert result.exit_code == 0, result.output
        assert json.loads(result.stdout)["calls"] == {"0": ["write", "bash"]}


def test_a_turn_cut_by_its_limit_is_not_the_parsers_fault(lfm2: Server, tmp_path: Path) -> None:
    script = TURNS["seed/two-calls"].text
    status, said = checked(lfm2, script, tmp_path, "--dialect", "lfm2", max_tokens=12)
    assert status == 1 and said["fault"] == "model or template", said["findings"]
    assert "INCOMPLETE" in {finding["code"] for finding in said["findings"]}


def test_a_retyped_float_is_found(stock: Server, tmp_path: Path) -> None:
    """The streamed 10.5 becomes 10.0; the whole response has it right."""
    status, said = checked(stock, TURNS["num/half"].text, tmp_path)
    assert (status, said["fault"]) == (1, "server's parser")
    (finding,) = said["findings"]
    assert (finding["code"], finding["pointer"]) == ("STREAM_DIFFERS", "/lat")
    assert (finding["expected"], finding["got"]) == ("10.5", "10.0")


def test_a_triple_quoted_string_that_is_lost_is_found(stock: Server, tmp_path: Path) -> None:
    status, said = checked(stock, TURNS["str/triple-quotes"].text, tmp_path)
    assert (status, said["fault"]) == (1, "server's parser")
    assert {finding["code"] for finding in said["findings"]} == {"STREAM_DIFFERS", "ARGUMENTS_NOT_JSON"}


def test_a_second_block_lost_in_both_modes_is_found_in_the_models_own_text(stock: Server, tmp_path: Path) -> None:
    script = TURNS["turn/second-block"].text
    assert checked(stock, script, tmp_path)[0] == 0  # both answers agree
    status, said = checked(stock, script, tmp_path, "--dialect", "lfm2")
    assert (status, said["fault"]) == (1, "server's parser")
    assert said["findings"][0]["message"].endswith("1 call in place of 2") and said["findings"][0]["shown"]
    assert checked(stock, script, tmp_path, "--expect-calls", "2")[0] == 1


def test_what_the_stock_parser_gets_right_is_clean(stock: Server, tmp_path: Path) -> None:
    assert checked(stock, TURNS["seed/two-calls"].text, tmp_path, "--dialect", "lfm2")[0] == 0
