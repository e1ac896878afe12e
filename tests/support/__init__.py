"""What the tests of several packages need: readers, writers of texts, servers that act as told."""

from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
"""The checkout."""

TESTS = ROOT / "tests"

DATA = TESTS / "data"
"""Files that are no code."""
