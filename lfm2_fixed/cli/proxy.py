"""The command ``lfm2-fixed proxy``."""

from __future__ import annotations

import logging
from typing import Any

import click

from ..core.dialects import DIALECTS
from ..extras import missing


class Unusable(click.ClickException):
    """An option's value that cannot be used: one sentence, and the exit status of a wrong command line."""

    exit_code = 2


@click.command(context_settings={"help_option_names": ["-h", "--help"], "show_default": True})
@click.option("--upstream", required=True, metavar="URL", help="The server to stand in front of.")
@click.option("--host", default="127.0.0.1", help="Address to listen on. There is no access control of its own.")
@click.option("--port", default=8100, type=click.IntRange(0, 65535), help="Port to listen on; 0: any free one.")
@click.option("--mode", type=click.Choice(["auto", "parse", "buffer"]), default="auto", help="See above.")
@click.option("--dialect", type=click.Choice(sorted(DIALECTS)), default="lfm2", help="The model's format of calls.")
@click.option(
    "--stream",
    type=click.Choice(["delta", "call"]),
    default="delta",
    help="parse: send arguments while they are written, or each call whole.",
)
@click.option(
    "--reasoning",
    type=click.Choice(["split", "open", "keep"]),
    default="split",
    help="parse: <think>…</think> at the start of a reply becomes reasoning_content (split); the chat template "
    "writes <think> itself (open); it stays in the text (keep).",
)
@click.option(
    "--constrain",
    type=click.Choice(["auto", "off"]),
    default="auto",
    help="parse: send a grammar with requests that force, limit or restrict calls, where the server takes one.",
)
@click.option(
    "--gate",
    is_flag=True,
    help="Report calls that do not fit the request's tools instead of delivering them.",
)
@click.option(
    "--heartbeat",
    default=10.0,
    type=click.FloatRange(min=0),
    help="Seconds between comments in a silent stream.",
)
@click.option("--connect-timeout", default=10.0, type=click.FloatRange(min=0), help="Seconds to reach the upstream.")
@click.option("--read-timeout", default=600.0, type=click.FloatRange(min=0), help="Seconds the upstream may be silent.")
@click.option(
    "--client-timeout",
    default=120.0,
    type=click.FloatRange(min=0),
    help="Seconds a client may send, or take, nothing.",
)
@click.option(
    "--shutdown-timeout",
    default=30.0,
    type=click.FloatRange(min=0),
    help="Seconds for open streams at the end.",
)
@click.option("--max-requests", default=1000, type=click.IntRange(min=0), help="Requests at once; more get 503.")
@click.option(
    "--max-body",
    default=64 * 2**20,
    type=click.IntRange(min=0),
    metavar="BYTES",
    help="Largest request; larger ones get 413.",
)
@click.option(
    "--ca-file",
    type=click.Path(exists=True, dir_okay=False),
    help="Certificates to trust in place of the system's.",
)
@click.option("--quiet", is_flag=True, help="No access log.")
def proxy(host: str, port: int, shutdown_timeout: float, quiet: bool, **options: Any) -> None:
    """Stand in front of any OpenAI-compatible server and make its tool calls right.

    Chat completions that declare tools are dealt with by --mode:

    \b
    parse   asks the server for the model's own text (tool_choice "none": the tools
            stay in the prompt) and reads the calls here, while they stream.
            "required", named and strict tools go along as a grammar (--constrain), and all
            but the schemas is checked in the reply.
    buffer  asks the server for the whole reply, which it reads itself, and sends it
            on as a short stream: for servers that fail only when they stream.
    auto    parse in front of llama.cpp (it answers /props) and vLLM (/version);
            buffer in front of any other, which may leave the tools out of the
            prompt when told "none".

    Everything else passes through as it is.  0 turns a limit off.

    Clients use http://HOST:PORT/v1 as their base URL.  /health says whether the server behind is well.

    \b
    Examples:
      lfm2-fixed proxy --upstream http://127.0.0.1:8099
      lfm2-fixed proxy --upstream http://127.0.0.1:8099 --port 8000 --gate
      lfm2-fixed proxy --upstream http://127.0.0.1:8099 --dialect llama4
    """
    try:
        from ..proxy import Settings, serve

        if options["gate"]:
            import jsonschema  # noqa: F401
    except ImportError as error:
        extra = "tools" if (error.name or "").startswith("jsonschema") else "proxy"
        raise click.ClickException(missing(error, extra)) from None
    logging.basicConfig(level=logging.INFO, format="%(asctime)s %(levelname)s %(message)s")
    for name in ("httpx", "httpcore"):
        logging.getLogger(name).setLevel(logging.WARNING)
    logging.getLogger("asyncio").setLevel(logging.ERROR)  # it warns of clients that go in the middle of a burst
    if quiet:
        logging.getLogger("lfm2_fixed.proxy.access").setLevel(logging.WARNING)
    try:
        serve(Settings(**options), host=host, port=port, shutdown_timeout=shutdown_timeout)
    except (ValueError, OSError) as error:
        raise Unusable(str(error)) from None
