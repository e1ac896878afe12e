"""The range of supported versions: read in one place, and moved in all."""

from __future__ import annotations

import shutil
import sys
from pathlib import Path

import pytest

from tests.support import ROOT

sys.path.insert(0, str(ROOT / "scripts"))

import vllm_range  # type: ignore[import-not-found]


def test_readme_says_what_the_plugin_says() -> None:
    assert vllm_range.said_in_readme() == vllm_range.supported()


def test_moving_the_range_moves_both(tmp_path: Path) -> None:
    for name in (vllm_range.VERSIONS, vllm_range.README):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(ROOT / name, tmp_path / name)
    oldest, newest = vllm_range.supported()
    vllm_range.write_newest("1.2.3", tmp_path)
    assert vllm_range.supported(tmp_path) == vllm_range.said_in_readme(tmp_path) == (oldest, "1.2.3")
    vllm_range.write_newest(newest, tmp_path)
    for name in (vllm_range.VERSIONS, vllm_range.README):
        assert (tmp_path / name).read_text() == (ROOT / name).read_text(), "nothing else is changed"


def test_released_versions(monkeypatch: pytest.MonkeyPatch) -> None:
    """In order, without those before, and a registry that is silent is named."""

    class Answer:
        stdout = "vllm (0.100.0)\nAvailable versions: 0.100.0, 0.27.1, 0.27.0, 0.26.0, 0.9.2\n"
        stderr = "no route"

    monkeypatch.setattr(vllm_range.subprocess, "run", lambda *a, **k: Answer)
    assert vllm_range.released("0.26.0") == ["0.26.0", "0.27.0", "0.27.1", "0.100.0"]
    monkeypatch.setattr(Answer, "stdout", "")
    with pytest.raises(RuntimeError, match="no route"):
        vllm_range.released("0.26.0")
