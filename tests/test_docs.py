"""What is documented for Python is run."""

from __future__ import annotations

import re

import pytest

from tests.support import ROOT

BLOCK = re.compile(r"^```python\n(.*?)^```$", re.M | re.S)


@pytest.mark.parametrize("page", ["docs/python.md"])
def test_python_examples_run(page: str) -> None:
    """Each page's blocks, one after the other, as a reader would type them."""
    blocks = BLOCK.findall((ROOT / page).read_text(encoding="utf-8"))
    assert blocks
    names: dict[str, object] = {}
    for block in blocks:
        exec(compile(block, page, "exec"), names)


def test_the_map_names_what_is_there() -> None:
    """Every module of the core has its row, and every file that the page names exists."""
    page = (ROOT / "docs" / "architecture.md").read_text(encoding="utf-8")
    core = {path.name for path in (ROOT / "lfm2_fixed" / "core").glob("*.py")} - {"__init__.py"}
    rows = "\n".join(line for line in page.splitlines() if line.startswith("| `"))
    assert set(re.findall(r"`(\w+\.py)`", rows)) == core
    for name in re.findall(r"`(\w+/\w+\.py)`", page):
        assert (ROOT / "lfm2_fixed" / name).is_file(), name
