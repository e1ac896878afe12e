"""The command ``lfm2-fixed``: ``repro`` (payloads through parsers), ``parse`` (one model turn), ``check``, ``proxy``.

Needs the extra ``[cli]``; ``check`` and ``proxy`` also theirs, ``[tools]`` and ``[proxy]``.
``python -m lfm2_fixed`` is the same command.
"""

from __future__ import annotations

import io
import json
import logging
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict
from fnmatch import fnmatch
from typing import Any, BinaryIO

from ..extras import missing

try:
    import click
except ImportError as error:
    raise SystemExit(f"lfm2-fixed: {missing(error, 'cli')}") from None

from .. import __version__
from ..core.dialects import DIALECTS
from ..core.events import ArgumentsDelta, CallAborted, CallStart, Event
from ..core.stream import PythonicStream, collect
from ..core.tools import Declared
from ..repro.payloads import PAYLOADS
from ..repro.readers import EngineFree, Outcome, Reader, read, vllm_is_installed, vllm_readers
from ..repro.turns import Payload
from .check import check
from .proxy import proxy


@click.group(context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(__version__, prog_name="lfm2-fixed")
def main() -> None:
    """Tool calls that LFM2, LFM2.5 and Llama 4 write as Python."""


main.add_command(check)
main.add_command(proxy)


# --- repro ----------------------------------------------------------------------------------------


@main.command()
@click.argument("patterns", metavar="[PAYLOAD]...", nargs=-1)
@click.option("--brief", is_flag=True, help="Only the table and the sums, without expected and got.")
@click.option(
    "--llama-url",
    metavar="URL",
    help="Try a running OpenAI-compatible server, such as llama-server, instead: directly, and through the proxy.",
)
@click.option("--api-key", envvar="LFM2_FIXED_API_KEY", metavar="KEY", help="With --llama-url.")
def repro(patterns: Sequence[str], brief: bool, llama_url: str | None, api_key: str | None) -> None:
    """Show what vLLM's own parsers and ours make of model output.

    Every payload is streamed in deltas of 1, 3 and 7 characters and as tokens, and read whole.
    PAYLOAD: an id, or a pattern such as 'num/*'; all of them by default.  Needs no GPU, engine or
    model; without vLLM in this Python, ours alone is tried.

    Exit status: 0 if ours is right everywhere, 1 if not, 2 for a wrong command line.
    """
    try:
        from rich.console import Console

        from ..repro.report import all_right, print_report
    except ImportError as error:
        raise click.ClickException(missing(error, "cli")) from None
    # A real model is asked to write the calls: what it writes by itself is its own choice.
    patterns = patterns or (("seed/*",) if llama_url else ("*",))
    payloads = [payload for payload in PAYLOADS if any(fnmatch(payload.id, pattern) for pattern in patterns)]
    if not payloads:
        raise click.UsageError(f"no payload matches; there are: {', '.join(payload.id for payload in PAYLOADS)}")
    if isinstance(sys.stdout, io.TextIOWrapper):
        sys.stdout.reconfigure(errors="backslashreplace")  # a terminal that is not UTF-8 shows the rest
    console = Console(highlight=False)
    logging.disable(logging.CRITICAL)  # the parsers log each payload they fail on; the table says it

    def say(sentence: str) -> None:
        console.print(sentence, soft_wrap=True, markup=False)

    parsers: Mapping[str, Mapping[str, Mapping[str, Outcome]]]
    if llama_url:
        parsers = _server_readings(llama_url, payloads, api_key, say)
    else:
        readers = _readers(say)
        parsers = {
            name: {payload.id: read(reader, payload) for payload in payloads} for name, reader in readers.items()
        }
    print_report(console, payloads, parsers, details=not brief)
    ours = [outcomes for name, outcomes in parsers.items() if name.startswith("ours")]
    sys.exit(0 if all(all_right(payloads, outcomes) for outcomes in ours) else 1)


def _readers(say: Callable[[str], None]) -> dict[str, Reader]:
    """The parsers to try, by name: those of the installed vLLM, or ours alone."""
    if not vllm_is_installed():
        say("vLLM is not installed in this Python: trying ours alone.")
        return {"ours": EngineFree()}
    say("Importing vLLM …")
    try:
        return vllm_readers()
    except Exception as error:  # a broken installation can raise anything
        say(f"vLLM is installed but cannot be used ({error}): trying ours alone.")
        return {"ours": EngineFree()}


def _server_readings(
    url: str, payloads: Sequence[Payload], api_key: str | None, say: Callable[[str], None]
) -> Mapping[str, Mapping[str, Mapping[str, Outcome]]]:
    try:
        import httpx

        from ..repro.servers import server_readings
    except ImportError as error:
        raise click.ClickException(missing(error, "proxy")) from None
    try:
        return server_readings(url, payloads, api_key=api_key, say=say)
    except (OSError, ValueError, httpx.HTTPError) as error:
        raise click.ClickException(f"{url}: {error}") from None


# --- parse ----------------------------------------------------------------------------------------


@main.command()
@click.argument("file", type=click.File("rb"), default="-")
@click.option("--dialect", type=click.Choice(sorted(DIALECTS)), default="lfm2", show_default=True)
@click.option("--tools", "tools_file", type=click.File("rb"), help="The request's tools, or the whole request: JSON.")
@click.option("--chunk", type=click.IntRange(min=1), metavar="N", help="Feed N characters at a time (default: all).")
@click.option("--events", is_flag=True, help="Show the events, one JSON object a line, instead of the result.")
def parse(file: BinaryIO, dialect: str, tools_file: BinaryIO | None, chunk: int | None, events: bool) -> None:
    """Read one model turn from FILE (default: standard input) and print what it says as JSON.

    The input is the text exactly as the model wrote it, markers included.  The output has "calls",
    "content" and, where a call was cut off or is malformed, its beginning under "unfinished".
    """
    text = _text(file, "the input")
    tools = _tools(tools_file) if tools_file else None
    stream = PythonicStream(dialect, tools)
    size = chunk or max(len(text), 1)
    seen: list[Event] = []
    for begin in range(0, len(text), size):
        seen += stream.feed(text[begin : begin + size])
    seen += stream.finish()
    if events:
        for event in seen:
            _print({"event": type(event).__name__, **asdict(event)})
    else:
        _print(_result(seen), indent=2)


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
    click.echo(json.dumps(value, ensure_ascii=False, indent=indent).encode())


def _text(file: BinaryIO, what: str) -> str:
    try:
        return file.read().decode("utf-8")
    except UnicodeDecodeError as error:
        raise click.ClickException(f"{what} is not UTF-8 (byte {error.start})") from None


def _tools(file: BinaryIO) -> Any:
    """The tools in a JSON file: a list, a request that holds one, or parameter names by tool name."""
    try:
        value = json.loads(_text(file, file.name))
    except ValueError as error:
        raise click.ClickException(f"{file.name} is not JSON: {error}") from None
    if isinstance(value, dict) and isinstance(value.get("tools"), list):
        value = value["tools"]
    names_only = isinstance(value, dict) and all(
        isinstance(names, list) and all(isinstance(name, str) for name in names) for names in value.values()
    )
    if not (names_only or isinstance(value, list)) or not Declared(value):
        raise click.ClickException(
            f'{file.name} declares no tool: give a list of OpenAI tools, a request with "tools", '
            'or {"tool": ["parameter", …]}'
        )
    return value


if __name__ == "__main__":
    main()
