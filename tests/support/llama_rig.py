"""A real llama.cpp server on the CPU, with a tiny model whose replies the last user message scripts."""

from __future__ import annotations

import os
import re
import sys
from pathlib import Path
from typing import Any

from rig import Server

from tests.support import ROOT, TESTS

MODELS = ("echo", "noise")
"""See build_model.py."""

BUILDS = {"b10068": "2026.7.10068", "b11549": "2026.10.11549"}
"""The builds of llama.cpp, and the ``xllamacpp`` that holds each: the first has the "Invalid diff" bug."""

_WINDOW = 256  # LOOK_BACK of build_model.py, and the token that is predicted
_SPECIAL = re.compile(
    r"<\|(?:pad|startoftext|endoftext|im_start|im_end|tool_list_start|tool_list_end|tool_call_start|tool_call_end"
    r"|tool_response_start|tool_response_end)\|>|</?think>"
)
_TAIL = "<|im_end|>\n<|im_start|>assistant\n"


def directory() -> Path:
    """Where setup.sh put everything."""
    return Path(os.environ.get("LFM2_FIXED_LLAMA") or ROOT / ".llama")


def wheel(build: str) -> Path:
    """Where the installed wheel of a build is: a directory for PYTHONPATH."""
    return directory() / BUILDS[build]


def missing() -> str | None:
    """One sentence if the rig is not set up."""
    needed = [*(wheel(build) / "xllamacpp" for build in BUILDS), *(directory() / f"{name}.gguf" for name in MODELS)]
    return None if all(path.exists() for path in needed) else "no llama.cpp server: run tests/llama/setup.sh"


def tokens(text: str) -> int:
    """How many tokens the model has for a text: one for a special token, one for any other byte."""
    return len(_SPECIAL.findall(text)) + len(_SPECIAL.sub("", text).encode())


def script(text: str, tail: str = _TAIL) -> str:
    """The user message that makes the model reply exactly ``text``.  Raises ValueError if it is too long."""
    padding = _WINDOW - tokens(text + "<|im_end|>") - tokens(tail)
    if padding < 0:
        raise ValueError(f"the script is {-padding} tokens too long")
    return text + "<|im_end|>" + "<|pad|>" * padding


def chat(text: str, **fields: Any) -> dict[str, Any]:
    """The body of a chat request that will be answered with ``text``."""
    messages = [{"role": "user", "content": script(text)}]
    # Text that a server's own grammar forbids goes astray: there must be an end to it.
    return {"model": "echo", "messages": messages, "temperature": 0, "max_tokens": tokens(text) + 20, **fields}


class LlamaServer(Server):
    """A context manager: started and healthy on entry, stopped on exit."""

    def __init__(self, build: str, *flags: str, log: Path, model: str = "echo") -> None:
        super().__init__(
            command=[
                sys.executable,
                str(TESTS / "llama" / "server.py"),
                "-m",
                str(directory() / f"{model}.gguf"),
                *flags,
            ],
            environment={"PYTHONPATH": str(wheel(build))},
            log=log,
            say=lambda sentence: None,
        )
        self.build = build
