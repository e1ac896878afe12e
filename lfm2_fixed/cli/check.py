"""The command ``lfm2-fixed check``: were the calls of a stream corrupted, and by whom?"""

from __future__ import annotations

import json
import logging
import sys
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import click

from ..check.capture import UnusableInput, protocol_of, read_capture
from ..check.clients import CLIENTS
from ..check.live import Answers
from ..check.model import Beside
from ..check.replay import Cuttings, Reading, cut_everywhere, read_stream
from ..check.report import as_document, as_lines
from ..check.verdict import Verdict, judge
from ..core.dialects import DIALECTS
from ..gate.schemas import ToolsError
from ..gate.validate import as_call
from ..wire.assemble import from_response
from ..wire.text import printable
from ..wire.turn import Turn

CLEAN, CORRUPTED, UNUSABLE = 0, 1, 2
"""The exit statuses."""

_FILE = click.Path(path_type=Path, exists=True, dir_okay=False, allow_dash=True)


@click.command(context_settings={"help_option_names": ["-h", "--help"]})
@click.argument("capture", type=_FILE, required=False)
@click.option(
    "--tools",
    "request_file",
    type=_FILE,
    required=True,
    metavar="REQUEST.JSON",
    help="The request that was sent, or its list of tools alone.",
)
@click.option("--whole", "whole_file", type=_FILE, help="The response to the same request without streaming.")
@click.option("--expect-calls", type=click.IntRange(0), metavar="N", help="How many calls there must be.")
@click.option(
    "--seen",
    "seen_file",
    type=_FILE,
    metavar="CALLS.JSON",
    help="What your client made of the stream: its calls, or the message with them.",
)
@click.option(
    "--dialect",
    type=click.Choice(sorted(DIALECTS)),
    help="How the model writes calls: compare with its own text as well, from the log "
    "probabilities of the whole response or from --raw.",
)
@click.option("--raw", "raw_file", type=_FILE, metavar="TEXT", help="What the model itself wrote.")
@click.option("--live", "url", metavar="URL", help="Send the request to this server, streamed and not.")
@click.option("--model", metavar="M", help="With --live: the model, if not the one in the request.")
@click.option("--api-key", envvar="OPENAI_API_KEY", metavar="KEY", help="With --live; or OPENAI_API_KEY.")
@click.option(
    "--timeout",
    type=click.FloatRange(0, min_open=True),
    default=120.0,
    show_default=True,
    metavar="SECONDS",
    help="With --live: how long to wait for the next byte.",
)
@click.option(
    "--save",
    "directory",
    type=click.Path(path_type=Path, file_okay=False),
    default=Path("."),
    metavar="DIR",
    help="With --live: where to keep both captures and, with --dialect, the model's own text (default: here).",
)
@click.option(
    "--random",
    "random_cuttings",
    type=click.IntRange(0),
    default=4,
    show_default=True,
    metavar="N",
    help="Readings in random pieces.",
)
@click.option("--seed", type=int, default=0, show_default=True, help="For the random pieces.")
@click.option("--json", "as_json", is_flag=True, help="The verdict as JSON.")
def check(
    capture: Path | None,
    request_file: Path,
    whole_file: Path | None,
    expect_calls: int | None,
    seen_file: Path | None,
    dialect: str | None,
    raw_file: Path | None,
    url: str | None,
    model: str | None,
    api_key: str | None,
    timeout: float,
    directory: Path,
    random_cuttings: int,
    seed: int,
    as_json: bool,
) -> None:
    """Find out whether a stream's tool calls were corrupted, and by whom.

    CAPTURE is what `curl -N` wrote (- for standard input); with --live none is needed.  The stream is
    put together, checked against the tools' schemas and compared with whatever else is given; then it is
    read, cut at every byte offset, as clients that people write would read it.

    \b
    Examples:
      lfm2-fixed check capture.sse --tools request.json --whole whole.json
      lfm2-fixed check --live http://127.0.0.1:8000/v1 --tools request.json
      lfm2-fixed check --live URL --tools request.json --dialect lfm2

    Exit status: 0 clean, 1 corrupted, 2 unusable input.
    """
    if (capture is None) == (url is None):
        raise click.UsageError("give either a CAPTURE or --live URL")
    logging.getLogger("lfm2_fixed").addHandler(logging.NullHandler())  # the verdict says it
    if raw_file is not None and dialect is None:
        raise click.UsageError("--raw needs --dialect")
    try:
        request = _request(request_file)
        live: Answers | None = None
        whole: bytes | None = None
        if url is not None:
            live = _live(url, request, model, api_key, timeout, directory, logprobs=dialect is not None, quiet=as_json)
            stream = read_capture(live.stream)
            whole = live.whole
        else:
            assert capture is not None
            stream = read_capture(_bytes(capture))
        # Without --live the request may have been changed by defaults that are not known here; with it there are none.
        sampled = request.get("temperature", None if live is None else 0) != 0
        if whole_file is not None:
            whole = _bytes(whole_file)
        wholes = {} if whole is None else _whole(whole)
        raw = _bytes(raw_file).decode("utf-8", "replace") if raw_file else None
        unread = None
        if dialect is not None and raw is None:
            raw = None if whole is None else model_text(whole)
            if raw is None:
                unread = "What the model itself wrote is not known: the whole response has no log probabilities."
        beside = Beside(
            whole=wholes,
            whole_error=live.whole_error if live else None,
            whole_status=live.whole_status if live else None,
            raw=raw,
            raw_of_whole=raw_file is None,
            dialect=dialect or Beside.dialect,
            seen=None if seen_file is None else _seen(seen_file),
            expected_calls=expect_calls,
            sampled=sampled,
        )
        reading = read_stream(stream.data)
        _usable(reading)
        cuttings = _cut(stream.data, random_cuttings, seed)
        verdict = judge(reading, cuttings, (live.cut if live else None) or stream.cut, request["tools"], beside)
    except UnusableInput as error:
        _unusable(str(error), as_json)
    except ToolsError as error:
        _unusable(f"The declared tools cannot be used: {error}.", as_json)
    except ImportError as error:
        _unusable(str(error), as_json)
    except Exception as error:
        # Exit status 1 means "corrupted", so a fault of this program must not end with it.
        _unusable(
            f"The check itself failed ({type(error).__name__}); nothing is said about the stream. Please report it "
            "with the files.",
            as_json,
        )
    if unread:
        verdict = Verdict(verdict.findings, (*verdict.notes, unread), verdict.summary)
    if as_json:
        click.echo(json.dumps(as_document(verdict, stream.data, reading, cuttings, seed), indent=2))
    else:
        click.echo("\n".join(as_lines(verdict, stream.data, reading, cuttings, seed)))
    sys.exit(CLEAN if verdict.clean else CORRUPTED)


def _unusable(sentence: str, as_json: bool) -> None:
    if as_json:
        click.echo(json.dumps({"clean": None, "error": sentence}))
    click.echo(f"lfm2-fixed check: {printable(sentence)}", err=True)
    sys.exit(UNUSABLE)


def _bytes(path: Path) -> bytes:
    if str(path) == "-":
        return sys.stdin.buffer.read()
    try:
        return path.read_bytes()
    except OSError as error:
        raise UnusableInput(f"{path} cannot be read ({error.strerror}).") from error


def _json(path: Path, what: str) -> Any:
    try:
        return json.loads(_bytes(path))
    except RecursionError as error:
        raise UnusableInput(f"{what} {path} is nested too deep.") from error
    except ValueError as error:
        raise UnusableInput(f"{what} {path} is not JSON ({error}).") from error


def _request(path: Path) -> dict[str, Any]:
    document = _json(path, "The request")
    request = {"tools": document} if isinstance(document, list) else document
    if not isinstance(request, dict) or not isinstance(request.get("tools"), list) or not request["tools"]:
        raise UnusableInput(f"{path} declares no tools: give the request that was sent, or its list of tools.")
    return request


def _whole(raw: bytes) -> dict[int, Turn]:
    try:
        document = json.loads(raw)
        choices = document.get("choices") if isinstance(document, dict) else None
        numbers = [c.get("index", 0) for c in choices if isinstance(c, dict)] if isinstance(choices, list) else [0]
        turns = {number: from_response(document, choice=number) for number in numbers if isinstance(number, int)}
    except RecursionError as error:
        raise UnusableInput("The whole response cannot be used (it is nested too deep).") from error
    except ValueError as error:
        raise UnusableInput(f"The whole response cannot be used ({error}).") from error
    if not turns:
        raise UnusableInput("The whole response cannot be used (it has no choice).")
    for turn in turns.values():
        for problem in turn.problems:
            if problem.kind == "error":
                raise UnusableInput(f"The whole response is an error: {problem.message}.")
    return turns


def model_text(whole: bytes) -> str | None:
    """What the model wrote, token by token, from the log probabilities of a whole chat response."""
    try:
        tokens = json.loads(whole)["choices"][0]["logprobs"]["content"]
        pieces = [bytes(t["bytes"]) if t.get("bytes") else t["token"].encode() for t in tokens]
    except (ValueError, LookupError, TypeError, AttributeError, RecursionError):
        return None
    return b"".join(pieces).decode("utf-8", "replace")


def _seen(path: Path) -> list[Any]:
    """The calls in a list, a message or a response."""
    document = _json(path, "What the client saw,")
    if isinstance(document, dict):
        for key in ("tool_calls", "calls"):
            if isinstance(document.get(key), list):
                document = document[key]
                break
    try:
        if isinstance(document, list):
            return [as_call(call) for call in document]
        return list(from_response(document))
    except (TypeError, ValueError, RecursionError) as error:
        raise UnusableInput(f"{path} holds no calls ({error}).") from error


def _usable(reading: Reading) -> None:
    if not reading.events:
        raise UnusableInput(
            "The capture has no server-sent event (no `data:` line closed by an empty line): was the request "
            'sent with "stream": true, and the output of curl -N kept as it was?'
        )
    turns = reading.turns.values()
    if any(turn.protocol for turn in turns):
        return
    unknown = any(problem.kind == "unknown" for turn in turns for problem in turn.problems)
    if unknown or not any(turn.problems for turn in turns):
        named = next(filter(None, map(protocol_of, reading.chunks)), None)
        belongs = f": they are of {named}" if named else ""
        raise UnusableInput(
            f"None of the capture's {len(reading.events)} events is a chunk of Chat Completions, Responses or "
            f"Messages{belongs}."
        )


def _live(
    url: str,
    request: Mapping[str, Any],
    model: str | None,
    api_key: str | None,
    timeout: float,
    directory: Path,
    *,
    logprobs: bool,
    quiet: bool,
) -> Answers:
    from ..check.live import ask, endpoint, prepared

    address = endpoint(url, request)
    body = prepared(request, model, address=address)
    headers = {}
    if api_key:
        headers["Authorization"] = f"Bearer {api_key}"
    if address.endswith("/messages"):
        headers |= {"anthropic-version": "2023-06-01", **({"x-api-key": api_key} if api_key else {})}
    answers = ask(address, body, headers=headers, timeout=timeout, logprobs=logprobs)
    stamp = time.strftime("check-%Y%m%d-%H%M%S")
    kept = [(directory / f"{stamp}.sse", answers.stream)]
    if answers.whole is not None:
        kept.append((directory / f"{stamp}.json", answers.whole))
        if logprobs and (text := model_text(answers.whole)) is not None:
            kept.append((directory / f"{stamp}.txt", text.encode()))  # for `lfm2-fixed parse`
    try:
        directory.mkdir(parents=True, exist_ok=True)
        for path, content in kept:
            path.write_bytes(content)
    except OSError as error:
        raise UnusableInput(f"The captures cannot be saved in {directory} ({error.strerror}).") from error
    if not quiet:
        click.echo(f"Saved: {', '.join(str(path) for path, _ in kept)}", err=True)
    return answers


def _cut(data: bytes, random_cuttings: int, seed: int) -> Cuttings:
    total = len(data) * (1 + len(CLIENTS))
    if total < 4_000_000 or not sys.stderr.isatty():
        return cut_everywhere(data, random_cuttings=random_cuttings, seed=seed)
    with click.progressbar(length=total, label="Cutting", file=sys.stderr, update_min_steps=total // 200) as bar:
        return cut_everywhere(data, random_cuttings=random_cuttings, seed=seed, progress=bar.update)
