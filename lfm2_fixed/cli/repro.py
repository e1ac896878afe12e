"""The command ``lfm2-fixed repro``."""

from __future__ import annotations

import io
import logging
import sys
from collections.abc import Callable, Mapping, Sequence
from fnmatch import fnmatch

import click

from ..extras import missing
from ..repro.payloads import PAYLOADS
from ..repro.readers import EngineFree, Outcome, Reader, read, vllm_is_installed, vllm_readers
from ..repro.turns import Payload


@click.command(context_settings={"help_option_names": ["-h", "--help"]})
@click.argument("patterns", metavar="[PAYLOAD]...", nargs=-1)
@click.option("--brief", is_flag=True, help="Only the table and the sums, without expected and got.")
@click.option(
    "--url",
    "--llama-url",
    metavar="URL",
    help="Try a running OpenAI-compatible server (llama-server, vLLM …) instead: directly, and through the proxy.",
)
@click.option("--api-key", envvar="LFM2_FIXED_API_KEY", metavar="KEY", help="With --url.")
def repro(patterns: Sequence[str], brief: bool, url: str | None, api_key: str | None) -> None:
    """Show what vLLM's own parsers and ours make of model output.

    Every payload is streamed in deltas of 1, 3 and 7 characters and as tokens, and read whole.
    PAYLOAD: an id, or a pattern such as 'num/*'; all of them by default.  Needs no GPU, engine or
    model; without vLLM in this Python, ours alone is tried.

    With --url a real model is asked to write the calls.  Where it writes something else, the row
    shows "-": that says nothing about any parser.

    \b
    Examples:
      lfm2-fixed repro
      lfm2-fixed repro --brief 'num/*' 'str/*'
      lfm2-fixed repro --url http://127.0.0.1:8099

    Exit status: 0 if ours is right everywhere, 1 if not, 2 for a wrong command line.
    """
    try:
        from rich.console import Console

        from ..repro.report import all_right, print_report
    except ImportError as error:
        raise click.ClickException(missing(error, "cli")) from None
    # A real model is asked to write the calls: what it writes by itself is its own choice.
    patterns = patterns or (("seed/*",) if url else ("*",))
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
    if url:
        parsers = _server_readings(url, payloads, api_key, say)
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
        say("(In a checkout, ./serve.sh --demo brings a vLLM to compare with.)")
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
