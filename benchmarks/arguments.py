"""What the programs here are given by name, looked at before anything is measured."""

from __future__ import annotations

import argparse
from collections.abc import Callable
from pathlib import Path


def file(text: str) -> Path:
    """For ``type=``: a file that is there."""
    if not Path(text).is_file():
        raise argparse.ArgumentTypeError(f"there is no file {text}")
    return Path(text)


def holding(*names: str) -> Callable[[str], Path]:
    """For ``type=``: a directory that holds one of these packages."""

    def directory(text: str) -> Path:
        if not any((Path(text) / name).is_dir() for name in names):
            raise argparse.ArgumentTypeError(f"there is no {text}/{names[0]}")
        return Path(text)

    return directory


vllm = holding("vllm")
"""For ``--vllm-path``; `scripts/vllm-sources` makes such directories."""
sglang = holding("sglang", "llm_router_utils")
"""For ``--sglang-path``."""
