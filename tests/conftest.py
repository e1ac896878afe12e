"""Hypothesis profiles. ``ci`` is the default; ``fuzz`` keeps its database and runs for hours."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

try:
    from hypothesis import HealthCheck, Phase, settings
    from hypothesis.database import DirectoryBasedExampleDatabase
except ImportError:  # the server tests can run without hypothesis
    settings = None  # type: ignore[assignment,misc]


if settings is not None:
    _SLOW = [
        HealthCheck.too_slow,
        HealthCheck.data_too_large,
        HealthCheck.filter_too_much,
        HealthCheck.large_base_example,
    ]
    settings.register_profile("ci", max_examples=3000, deadline=None, derandomize=True, suppress_health_check=_SLOW)
    settings.register_profile("quick", max_examples=150, deadline=None, derandomize=True, suppress_health_check=_SLOW)
    # For the mutation run: the first failure is enough, shrinking it is a waste.
    settings.register_profile(
        "mutate",
        max_examples=120,
        deadline=None,
        derandomize=True,
        suppress_health_check=_SLOW,
        phases=[Phase.generate],
        database=None,
    )
    settings.register_profile(
        "fuzz",
        max_examples=int(os.environ.get("LFM2_FIXED_FUZZ_EXAMPLES", "1000000")),
        deadline=None,
        suppress_health_check=_SLOW,
        database=DirectoryBasedExampleDatabase(Path(__file__).resolve().parent.parent / ".hypothesis" / "fuzz"),
    )
    settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "ci"))


def pytest_report_header(config: pytest.Config) -> list[str]:
    """Say which profile runs."""
    if settings is None:
        return ["hypothesis: not installed"]
    return [f"hypothesis profile: {os.environ.get('HYPOTHESIS_PROFILE', 'ci')}"]
