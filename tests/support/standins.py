"""Programs that stand in for others on the path of a script under test."""

from __future__ import annotations

from pathlib import Path


def script(path: Path, text: str) -> Path:
    """Write a program that can be run."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    path.chmod(0o755)
    return path
