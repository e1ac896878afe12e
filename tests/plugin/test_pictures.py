"""What README and docs/faults.md show of ``lfm2-fixed repro`` is what it says with the vLLM that they name."""

from __future__ import annotations

import re

import pictures
import pytest
import vllm

from lfm2_fixed.plugin.versions import NEWEST, OLDEST
from lfm2_fixed.repro.payloads import PAYLOADS
from lfm2_fixed.repro.readers import read, vllm_readers
from lfm2_fixed.repro.report import right
from tests.support import ROOT


@pytest.mark.skipif(vllm.__version__ != NEWEST, reason=f"the picture shows vLLM {NEWEST}")
def test_the_picture_is_the_output() -> None:
    assert pictures.stale() == [], "draw it again: scripts/pictures.py"


@pytest.mark.skipif(vllm.__version__ not in (OLDEST, NEWEST), reason=f"the pages name vLLM {OLDEST} and {NEWEST}")
def test_the_sums_on_the_pages_are_right() -> None:
    page = (ROOT / "docs" / "faults.md").read_text(encoding="utf-8")
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    (last,) = re.findall(
        r"^\| \*\*(\d+) payloads.*\*\*(\d+) right\*\* \((\S+): (\d+)\) \| \*\*(\d+) right\*\* \|$", page, re.M
    )
    everything, newest, oldest, of_oldest, ours = last
    assert oldest == OLDEST
    said = (
        f"Of all {everything}, vLLM {NEWEST} has {newest} right however they are streamed and whole, vLLM {OLDEST} has"
    )
    assert f"{said} {of_oldest}, `lfm2_fixed` {ours}" in readme
    counts = [sum(right(payload, read(reader, payload)) for payload in PAYLOADS) for reader in vllm_readers().values()]
    stock = newest if vllm.__version__ == NEWEST else of_oldest
    assert [len(PAYLOADS), *counts] == [int(everything), int(stock), int(ours)]
