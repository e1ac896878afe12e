"""The engines that grammars are made for."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from lfm2_fixed.grammar import relaxed


@pytest.fixture(scope="module", params=["xgrammar", "llama.cpp", "llguidance"])
def engines(request: pytest.FixtureRequest) -> Iterator[str]:
    """Each engine in turn: what the tests write about a schema holds for its grammar."""
    from tests.support import llama_rig, tags  # here: they need what the tests without an engine have not

    if request.param == "llama.cpp" and (reason := llama_rig.missing()):
        pytest.skip(reason)
    tags.engine = request.param
    yield request.param
    tags.engine = "xgrammar"


@pytest.fixture(autouse=True)
def _nothing_said(monkeypatch: pytest.MonkeyPatch) -> None:
    """What is not held is logged once in a process: here, once in a test."""
    monkeypatch.setattr(relaxed, "_said", set())
