"""The tree: files that can be read in one go, and tests where the code is."""

from __future__ import annotations

from tests.support import ROOT, TESTS

CODE = ("lfm2_fixed", "tests", "scripts", "serve", "benchmarks", "examples")
LINES = 400
"""What a reader keeps in mind of one file; a longer one has a second subject, which wants a file of its own."""


def test_no_file_is_longer_than_a_sitting() -> None:
    """Scripts without a suffix, too; data is no code."""
    files = [path for part in CODE for path in (ROOT / part).rglob("*") if path.suffix in ("", ".py", ".sh", ".mjs")]
    lengths = {path: path.read_bytes().count(b"\n") for path in files if path.is_file()}
    assert len(lengths) > 250
    assert {str(path.relative_to(ROOT)): lines for path, lines in lengths.items() if lines > LINES} == {}


def test_every_package_has_its_tests() -> None:
    """``tests/core`` are the tests of ``lfm2_fixed/core``, and so on."""
    packages = {path.parent.name for path in (ROOT / "lfm2_fixed").glob("*/__init__.py")}
    assert len(packages) > 8
    assert {name for name in packages if not list((TESTS / name).glob("test_*.py"))} == set()
