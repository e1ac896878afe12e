"""Tests through vLLM's own serving layer, without a server: any vLLM on the path will do."""

from __future__ import annotations

import importlib.util
import os

import pytest

if importlib.util.find_spec("vllm") is None:
    raise pytest.UsageError("tests/plugin need vLLM's Python sources on the path: run ./test.sh or scripts/matrix")

os.environ.setdefault("VLLM_LOGGING_LEVEL", "WARNING")

import vllm


def pytest_report_header(config: pytest.Config) -> list[str]:
    """Say which vLLM is under test."""
    return [f"vLLM {vllm.__version__} at {os.path.dirname(vllm.__file__)}"]
