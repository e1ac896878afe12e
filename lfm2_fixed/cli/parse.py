"""The command ``lfm2-fixed parse``.  Standard library only."""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ..core.dialects import DIALECTS
from ..core.events import ArgumentsDelta, CallAborted, CallStart, Event
from ..core.stream import PythonicStream, collect
from ..core.tools import Declared

if TYPE_CHECKING:
    Commands = argparse._SubParsersAction[argparse.ArgumentParser]

DESCRIPTION = """\
Read one model turn from FILE (default: standard input) and print what it says as JSON.

The input is the text exactly as the model wrote it, markers included.  The output has "calls", "content"
and, where a call was cut off or is malformed, its beginning under "unfinished"."""

EPILOG = """\
examples:
  echo '<|tool_call_start|>[move(lat=10.5)]<|tool_call_end|>' | lfm2-fixed parse
  lfm2-fixed parse --tools request.json --chunk 1 model-output.txt
  echo '[get_weather(city="Paris")]' | lfm2-fixed parse --dialect llama4 --events

Exit status: 0; 1 for an input that cannot be read; 2 for a wrong command line."""


class Unreadable(Exception):
    """An input that cannot be used; the message is one sentence."""


def add_to(commands: Commands) -> None:
    """Add the command to those of the program."""
    parser = commands.add_parser(
        "parse",
        help="what one model turn says, as JSON",
        description=DESCRIPTION,
        epilog=EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("file", metavar="FILE", nargs="?", default="-", help="the model's text (default: -)")
    parser.add_argument(
        "--dialect", choices=sorted(DIALECTS), default="lfm2", help="how the model writes (default: lfm2)"
    )
    parser.add_argument("--tools", metavar="FILE", help="the request's tools, or the whole request, as JSON")
    parser.add_argument("--chunk", type=_size, metavar="N", help="feed N characters at a time (default: all)")
    parser.add_argument("--events", action="store_true", help="the events, one JSON object a line, not the result")
    parser.set_defaults(run=run)


def run(options: argparse.Namespace) -> int:
    """Print what the turn says; the exit status."""
    try:
        tools = _tools(options.tools) if options.tools else None
        text = _text(options.file, "the input")
    except Unreadable as error:
        sys.stderr.write(f"lfm2-fixed parse: {error}\n")
        return 1
    stream = PythonicStream(options.dialect, tools)
    size = options.chunk or max(len(text), 1)
    seen: list[Event] = []
    for begin in range(0, len(text), size):
        seen += stream.feed(text[begin : begin + size])
    seen += stream.finish()
    if options.events:
        for event in seen:
            _print({"event": type(event).__name__, **asdict(event)})
    else:
        _print(_result(seen), indent=2)
    return 0


def _size(text: str) -> int:
    if not text.isdecimal() or int(text) < 1:
        raise argparse.ArgumentTypeError(f"{text!r} is no number of characters")
    return int(text)


def _result(events: Sequence[Event]) -> dict[str, Any]:
    result = collect(events)
    output: dict[str, Any] = {
        "calls": [{"name": call.name, "arguments": json.loads(call.arguments)} for call in result.calls],
        "content": result.content,
    }
    names = {event.index: event.name for event in events if isinstance(event, CallStart)}
    unfinished = [
        {
            "name": names[aborted.index],
            "arguments": "".join(
                event.text for event in events if isinstance(event, ArgumentsDelta) and event.index == aborted.index
            ),
            "reason": aborted.reason,
        }
        for aborted in events
        if isinstance(aborted, CallAborted)
    ]
    return output | ({"unfinished": unfinished} if unfinished else {})


def _print(value: Any, indent: int | None = None) -> None:
    # As bytes: the output is UTF-8 wherever it goes.
    sys.stdout.buffer.write(json.dumps(value, ensure_ascii=False, indent=indent).encode() + b"\n")
    sys.stdout.buffer.flush()


def _text(name: str, what: str) -> str:
    """A file's text.  Raises Unreadable."""
    try:
        if name == "-" and sys.stdin.isatty():
            sys.stderr.write("Reading the model's text from the terminal; Ctrl-D at the beginning of a line ends it.\n")
        return (sys.stdin.buffer.read() if name == "-" else Path(name).read_bytes()).decode("utf-8")
    except OSError as error:
        raise Unreadable(f"{name} cannot be read: {error.strerror}") from None
    except UnicodeDecodeError as error:
        raise Unreadable(f"{what} is not UTF-8 (byte {error.start})") from None


def _tools(name: str) -> Any:
    """The tools in a JSON file: a list, a request that holds one, or parameter names by tool name."""
    try:
        value = json.loads(_text(name, name))
    except ValueError as error:
        raise Unreadable(f"{name} is not JSON: {error}") from None
    except RecursionError:
        raise Unreadable(f"{name} is nested too deep") from None
    if isinstance(value, dict) and isinstance(value.get("tools"), list):
        value = value["tools"]
    names_only = isinstance(value, dict) and all(
        isinstance(names, list) and all(isinstance(name, str) for name in names) for names in value.values()
    )
    if not (names_only or isinstance(value, list)) or not Declared(value):
        raise Unreadable(
            f'{name} declares no tool: give a list of OpenAI tools, a request with "tools", or '
            '{"tool": ["parameter", …]}'
        )
    return value
