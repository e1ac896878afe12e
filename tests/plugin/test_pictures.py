"""The picture of ``lfm2-fixed repro`` is what the command says with the vLLM that it names."""

from __future__ import annotations

import pictures
import pytest
import vllm

from lfm2_fixed.plugin.versions import NEWEST


@pytest.mark.skipif(vllm.__version__ != NEWEST, reason=f"the picture shows vLLM {NEWEST}")
def test_the_picture_is_the_output() -> None:
    assert pictures.stale() == [], "draw it again: scripts/pictures.py"
