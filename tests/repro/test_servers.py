"""``lfm2-fixed repro --url``: a server whose model does as it is told, and one whose model does not."""

from __future__ import annotations

import pytest
from click.testing import CliRunner

from lfm2_fixed.cli.repro import repro
from lfm2_fixed.repro.payloads import PAYLOADS
from lfm2_fixed.repro.readers import EngineFree, Outcome
from lfm2_fixed.repro.servers import DISOBEYED, instruction, wrote
from tests.support.plain import served

PAYLOAD = next(payload for payload in PAYLOADS if payload.id == "seed/two-calls")


@pytest.mark.parametrize("option", ["--url", "--llama-url"])
def test_a_model_that_obeys_is_judged(option: str) -> None:
    def say(prompt: str) -> str:
        return PAYLOAD.text if prompt == instruction(PAYLOAD) else "No."

    with served(say) as url:
        result = CliRunner().invoke(repro, [option, url, PAYLOAD.id, "seed/plain"])
    assert result.exit_code == 0, result.output
    assert "ours: parse: 1 of 1 payloads right in every way; 1 not judged (-)" in result.output
    assert "direct: 0 of 1 payloads right" in result.output, "it parses nothing"
    assert DISOBEYED in result.output


def test_a_model_that_does_not_obey_is_no_fault_of_ours() -> None:
    with served(lambda prompt: "I would rather not.") as url:
        result = CliRunner().invoke(repro, ["--url", url])
    assert result.exit_code == 0, result.output
    assert "NO" not in result.output.replace("NO: not", "") and f"-: {DISOBEYED}" in result.output
    rows = [line.split() for line in result.output.splitlines() if line.startswith("seed/")]
    assert rows and all(row[1:] == ["-"] * 6 for row in rows if not row[-1].endswith("…"))


def test_what_the_model_wrote_is_read_by_cpython(monkeypatch: pytest.MonkeyPatch) -> None:
    """So that a call which our parser loses is not taken for one that the model never wrote."""
    for payload in PAYLOADS:
        if payload.dialect == "lfm2":
            assert wrote(payload.text, payload), payload.id
    monkeypatch.setattr(EngineFree, "whole", lambda self, payload: Outcome())  # ours, broken
    assert wrote(PAYLOAD.text, PAYLOAD)
    assert not wrote(PAYLOAD.text.replace("(", "(x=1, ", 1), PAYLOAD)
    assert not wrote("I would rather not.", PAYLOAD) and not wrote("", PAYLOAD)
