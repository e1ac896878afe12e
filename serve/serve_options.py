"""The command line of serve.sh without a model.

usage: serve_options.py serve|demo [arguments…]     exit status 2 and a sentence if they are wrong

Standard library only, and any Python 3: serve.sh asks before anything is installed.
"""

from __future__ import annotations

import argparse
import difflib
import sys
from typing import NoReturn

PARSERS = ["lfm2_fixed", "llama4_pythonic_fixed", "pythonic_fixed", "olmo3_fixed", "lfm2"]
"""For ``--parser``; the last is vLLM's own."""


class _Parser(argparse.ArgumentParser):
    """Says errors as serve.sh, and what a misspelt option may have meant."""

    def error(self, message: str) -> NoReturn:
        known = [option for action in self._actions for option in action.option_strings] + ["--demo", "--help"]
        for word in message.partition("unrecognized arguments: ")[2].split():
            near = difflib.get_close_matches(word, known, 1)
            meant = f"did you mean {near[0]}?" if near else f"flags for vLLM itself come after --: ./serve.sh -- {word}"
            message = f"there is no option {word}; {meant}"
            break
        sys.stderr.write(f"[serve] error: {message}\n[serve] ./serve.sh --help explains the options\n")
        sys.exit(2)


def _port(text: str) -> int:
    if not text.isdigit() or not 0 < int(text) < 65536:
        raise argparse.ArgumentTypeError(f"{text!r} is no TCP port")
    return int(text)


def server_options(arguments: list[str]) -> argparse.Namespace:
    """``port``, ``parser``, ``log`` and ``flags``: those for vLLM, after ``--``."""
    flags = arguments[arguments.index("--") + 1 :] if "--" in arguments else []
    own = arguments[: arguments.index("--")] if "--" in arguments else arguments
    parser = _Parser(prog="./serve.sh", allow_abbrev=False, add_help=False)
    parser.add_argument("--port", type=_port, default=8000)
    parser.add_argument("--parser", default=PARSERS[0], choices=PARSERS)
    parser.add_argument("--log")
    options = parser.parse_args(own)
    options.flags = flags
    return options


def demo_options(arguments: list[str]) -> argparse.Namespace:
    """``port`` (None: a free one) and ``brief``."""
    parser = _Parser(prog="./serve.sh --demo", allow_abbrev=False, add_help=False)
    parser.add_argument("--port", type=_port)
    parser.add_argument("--brief", action="store_true")
    return parser.parse_args(arguments)


if __name__ == "__main__":
    {"serve": server_options, "demo": demo_options}[sys.argv[1]](sys.argv[2:])
