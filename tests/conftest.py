"""Hypothesis profiles. ``ci`` is the default; ``fuzz`` keeps its database and runs for hours."""

from __future__ import annotations

import os
import socket
from collections.abc import Iterator
from contextlib import ExitStack, suppress
from typing import Any

import pytest

from tests.support import ROOT

try:
    from hypothesis import HealthCheck, Phase, settings
    from hypothesis.database import DirectoryBasedExampleDatabase
except ImportError:  # the server tests can run without hypothesis
    settings = None  # type: ignore[assignment,misc]


if settings is not None:
    _COMMON: dict[str, Any] = {
        "deadline": None,
        # Failing texts are made small by the tests themselves, which is much faster.
        "phases": [Phase.explicit, Phase.reuse, Phase.generate],
        "suppress_health_check": [
            HealthCheck.too_slow,
            HealthCheck.data_too_large,
            HealthCheck.filter_too_much,
            HealthCheck.large_base_example,
        ],
    }
    _KEPT = ROOT / ".hypothesis" / "fuzz"
    settings.register_profile("ci", max_examples=3000, derandomize=True, **_COMMON)
    settings.register_profile("quick", max_examples=200, derandomize=True, **_COMMON)
    settings.register_profile("mutate", max_examples=120, derandomize=True, **_COMMON)
    settings.register_profile(
        "fuzz",
        max_examples=int(os.environ.get("LFM2_FIXED_FUZZ_EXAMPLES", "1000000")),
        database=DirectoryBasedExampleDatabase(_KEPT),
        **_COMMON,
    )
    settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "ci"))


@pytest.fixture(scope="session", autouse=True)
def default_ports_are_taken() -> Iterator[None]:
    """As where a server runs already (8000: vLLM's; 8100: the proxy's), which is where people try this."""
    with ExitStack() as stack:
        for port in (8000, 8100):
            with suppress(OSError):  # by a server indeed, or by another worker
                stack.enter_context(socket.create_server(("127.0.0.1", port)))
        yield


def pytest_report_header(config: pytest.Config) -> list[str]:
    """Say which profile runs."""
    if settings is None:
        return ["hypothesis: not installed"]
    return [f"hypothesis profile: {os.environ.get('HYPOTHESIS_PROFILE', 'ci')}"]
