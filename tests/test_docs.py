"""What is documented for Python is run."""

from __future__ import annotations

import re
from pathlib import Path

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


PAGES = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", ROOT / "CHANGELOG.md", *sorted((ROOT / "docs").glob("*.md"))]
LINK = re.compile(r"\]\(([^)\s]+)\)|(?:src|href)=\"([^\"]+)\"")


def anchors(page: Path) -> set[str]:
    """What a page's headings can be linked by, as the hosting names them."""
    headings = re.findall(r"(?m)^#+ (.*)$", page.read_text(encoding="utf-8"))
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_links_lead_somewhere(page: Path) -> None:
    """To a file that is there, and to a heading of it.  What is outside is not asked."""
    text = re.sub(r"(?ms)^```.*?^```", "", page.read_text(encoding="utf-8"))
    links = [one or other for one, other in LINK.findall(text)]
    for link in (link for link in links if "://" not in link):
        name, _, anchor = link.partition("#")
        target = page.parent / name if name else page
        assert target.exists(), link
        assert not anchor or anchor in anchors(target), link


def test_links_are_found() -> None:
    assert len(LINK.findall(PAGES[0].read_text(encoding="utf-8"))) > 15
    assert "vllms-rust-front-end" in anchors(ROOT / "docs" / "proxy.md")
