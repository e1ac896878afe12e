"""The supported versions of vLLM: which there are, and where the range is written.

``lfm2_fixed/plugin/versions.py`` has it; README's line follows it, and ``scripts/matrix --newest`` moves both.
Standard library only.
"""

from __future__ import annotations

import re
import runpy
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
VERSIONS = Path("lfm2_fixed") / "plugin" / "versions.py"
README = Path("README.md")
LINE = re.compile(r"(?m)^\| vLLM \| (\S+) to ([^\s;]+)")


def supported(root: Path = ROOT) -> tuple[str, str]:
    """The oldest and the newest."""
    values = runpy.run_path(str(root / VERSIONS))
    return values["OLDEST"], values["NEWEST"]


def said_in_readme(root: Path = ROOT) -> tuple[str, str]:
    """The same, as README says it."""
    found = LINE.search((root / README).read_text(encoding="utf-8"))
    assert found is not None, "README has no line that begins with “| vLLM | ”"
    return found[1], found[2]


def write_newest(version: str, root: Path = ROOT) -> None:
    """Make this the newest supported version, in both places."""
    path = root / VERSIONS
    text = path.read_text(encoding="utf-8")
    path.write_text(re.sub(r'(?m)^NEWEST = ".*"', f'NEWEST = "{version}"', text), encoding="utf-8")
    path = root / README
    oldest = supported(root)[0]
    path.write_text(
        LINE.sub(f"| vLLM | {oldest} to {version}", path.read_text(encoding="utf-8"), count=1), encoding="utf-8"
    )


def number(version: str) -> tuple[int, ...]:
    """What versions are ordered by."""
    return tuple(map(int, re.findall(r"\d+", version)))


def released(since: str) -> list[str]:
    """The released versions of vLLM from this one on, oldest first, as the registry names them (no pre-releases).

    Raises ``RuntimeError`` where the registry does not answer.
    """
    command = [sys.executable, "-m", "pip", "--disable-pip-version-check", "index", "versions", "vllm"]
    asked = subprocess.run(command, capture_output=True, text=True, check=False)
    found = re.search(r"Available versions: (.*)", asked.stdout)
    if not found:
        raise RuntimeError(f"the registry does not say which vLLM there is: {asked.stderr.strip()[-300:]}")
    versions = [version.strip() for version in found[1].split(",")]
    return sorted((one for one in versions if number(one) >= number(since)), key=number)
