"""What pyproject.toml cannot say: the README of an index's page, whose links lead to the repository."""

import re
from pathlib import Path

from setuptools import setup

ROOT = Path(__file__).resolve().parent


def index_page() -> str:
    """The README with absolute links: to pages of the repository, and to the raw files where they are pictures."""
    project = (ROOT / "pyproject.toml").read_text(encoding="utf-8")
    repository = re.search(r'^Repository = "(.*)"', project, re.M)[1]
    version = re.search(r'^__version__ = "(.*)"', (ROOT / "lfm2_fixed" / "__init__.py").read_text("utf-8"), re.M)[1]
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    readme = re.sub(r"\]\((?!https?:|#)([^)]+\.svg)\)", rf"]({repository}/raw/v{version}/\1)", readme)
    readme = re.sub(r'src="(?!https?:)([^"]+)"', rf'src="{repository}/raw/v{version}/\1"', readme)
    return re.sub(r"\]\((?!https?:|#)([^)]+)\)", rf"]({repository}/blob/v{version}/\1)", readme)


setup(long_description=index_page(), long_description_content_type="text/markdown")
