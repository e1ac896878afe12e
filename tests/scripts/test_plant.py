"""The faults of ``scripts/plant`` still fit the core: the laws themselves find them when it is run."""

from __future__ import annotations

import subprocess
import sys

from tests.support import ROOT


def test_the_faults_can_be_planted() -> None:
    """Each piece of code that a fault replaces is there, once."""
    script = ROOT / "scripts" / "plant"
    run = subprocess.run([sys.executable, str(script), "--check"], capture_output=True, text=True)
    assert run.returncode == 0, run.stderr
