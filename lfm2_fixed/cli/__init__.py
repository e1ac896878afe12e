"""The command ``lfm2-fixed``: ``parse`` (one model turn), ``repro`` (payloads through parsers), ``check``, ``proxy``.

``python -m lfm2_fixed`` is the same command.  ``--version``, ``--help`` and ``parse`` need nothing but Python: whoever
reports a bad parse can do so wherever the package is.  The others are click's, and say which extra brings what they
need.
"""

from __future__ import annotations

import argparse
import importlib
import os
import sys
from collections.abc import Sequence
from dataclasses import dataclass

from .. import __version__
from ..extras import missing
from . import parse

PROGRAM = "lfm2-fixed"


@dataclass(frozen=True)
class LibraryCommand:
    """A command of click's.  ``name``: its module here, and the command in it.  ``extra``: brings what it needs."""

    name: str
    summary: str
    extra: str


LIBRARY = {
    command.name: command
    for command in (
        LibraryCommand("repro", "vLLM's own parsers and ours on the same model output", "cli"),
        LibraryCommand("check", "were the calls of a stream corrupted, and by whom?", "tools"),
        LibraryCommand("proxy", "right tool calls in front of any OpenAI-compatible server", "proxy"),
    )
}

EPILOG = """\
examples:
  lfm2-fixed parse --tools tools.json < model-output.txt
  lfm2-fixed repro 'num/*'
  lfm2-fixed check --live http://127.0.0.1:8000/v1 --tools request.json
  lfm2-fixed proxy --upstream http://127.0.0.1:8099

lfm2-fixed COMMAND --help explains each of them."""


def main(arguments: Sequence[str] | None = None) -> None:
    """Run the command with these arguments (default: the program's own).

    Raises SystemExit: 2 for a wrong command line, and whatever a command ends with.
    """
    words = list(sys.argv[1:] if arguments is None else arguments)
    if words and words[0] in LIBRARY:
        _with_click(LIBRARY[words[0]], words[1:])
        return
    parser = argument_parser()
    options = parser.parse_args(words)
    if not hasattr(options, "run"):
        parser.print_help()
        raise SystemExit(2)
    try:
        raise SystemExit(options.run(options))
    except KeyboardInterrupt:
        raise SystemExit(130) from None
    except BrokenPipeError:  # the reader, such as `head`, has had enough; at its exit Python would write again
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        raise SystemExit(1) from None


def argument_parser() -> argparse.ArgumentParser:
    """What needs no library, and the names of what does."""
    parser = argparse.ArgumentParser(
        prog=PROGRAM,
        description="Tool calls that LFM2, LFM2.5 and Llama 4 write as Python.",
        epilog=EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--version", action="version", version=f"{PROGRAM} {__version__}")
    commands = parser.add_subparsers(metavar="COMMAND", title="commands")
    parse.add_to(commands)
    for command in LIBRARY.values():
        commands.add_parser(command.name, help=command.summary)
    return parser


def _with_click(command: LibraryCommand, words: list[str]) -> None:
    try:
        module = importlib.import_module(f"{__name__}.{command.name}")
    except ImportError as error:
        raise SystemExit(f"{PROGRAM} {command.name}: {missing(error, command.extra)}") from None
    getattr(module, command.name).main(words, prog_name=f"{PROGRAM} {command.name}")
