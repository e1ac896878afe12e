"""What ``curl -N`` wrote: the bytes of a stream, with what else a file may have around them taken off."""

from __future__ import annotations

import json
import re
import zlib
from dataclasses import dataclass
from typing import Any


class UnusableInput(Exception):
    """The input is no stream of tool calls at all; the message is one sentence that says what to do."""


@dataclass(frozen=True)
class Capture:
    """A stream's bytes after HTTP headers (``curl -i``) and gzip are taken off.

    ``cut``: in words, what is missing if the compressed stream ends too early, else None.
    """

    data: bytes
    cut: str | None = None


_HEADERS = re.compile(rb"\AHTTP/[\d.]+ (\d+)[^\n]*\n(?:[^\r\n][^\n]*\n)*\r?\n")


def read_capture(raw: bytes) -> Capture:
    """The stream in a file.  Raises UnusableInput."""
    status = None
    while (headers := _HEADERS.match(raw)) is not None:  # one block for each redirect or proxy
        status = int(headers[1])
        raw = raw[headers.end() :]
    cut = None
    if raw.startswith(b"\x1f\x8b"):
        raw, cut = _gunzip(raw)
    first = raw.lstrip(b"\xef\xbb\xbf \t\r\n")[:64]
    if not first:
        raise UnusableInput("The capture is empty: was curl run with -N, and was the server up?")
    if status is not None and status >= 400:
        raise UnusableInput(f"The server answered with HTTP status {status}, not with a stream: {_glimpse(raw)}")
    if b":event-type" in raw[:1024] or b":message-type" in raw[:1024]:
        raise UnusableInput(
            "The capture is a binary event stream of AWS (Bedrock), which is not checked here: use Bedrock's "
            "OpenAI-compatible endpoint, or Anthropic's."
        )
    other = protocol_of(_first_document(raw)) if first.startswith((b"{", b"[")) else None
    if other:
        raise UnusableInput(f"The capture is a stream of {other}, which is not checked here.")
    if first.startswith((b"{", b"[")):
        raise UnusableInput(
            'The capture is one JSON document, not a stream: send the request with "stream": true (a whole '
            f"response belongs to --whole). It begins: {_glimpse(raw)}"
        )
    if first.startswith(b"<"):
        raise UnusableInput(f"The capture is an HTML or XML page, not a stream. It begins: {_glimpse(raw)}")
    return Capture(raw, cut)


def _gunzip(raw: bytes) -> tuple[bytes, str | None]:
    """All members of a gzip stream, as far as they go."""
    parts = []
    while raw:
        reader = zlib.decompressobj(wbits=31)
        try:
            parts.append(reader.decompress(raw))
        except zlib.error as error:
            if not parts:
                raise UnusableInput(f"The capture begins like gzip but is none ({error}).") from error
            return b"".join(parts), f"the gzip stream is damaged ({error})"
        if not reader.eof:
            return b"".join(parts), "the gzip stream ends in the middle"
        raw = reader.unused_data.lstrip(b"\0")
    return b"".join(parts), None


def _glimpse(raw: bytes) -> str:
    text = raw[:400].decode("utf-8", "replace").strip()
    return text if len(raw) <= 400 else text + " …"


_OTHERS = (
    ({"jsonrpc"}, "MCP (JSON-RPC)"),
    ({"candidates"}, "Gemini's own API (its OpenAI-compatible endpoint can be checked)"),
    ({"messageStart"}, "Bedrock's Converse API"),
    ({"contentBlockStart"}, "Bedrock's Converse API"),
    ({"contentBlockDelta"}, "Bedrock's Converse API"),
    ({"message", "done"}, "Ollama's own API (its /v1 endpoint can be checked)"),
    ({"response", "done"}, "Ollama's own API (its /v1 endpoint can be checked)"),
    ({"content", "stop"}, "llama.cpp's /completion (its /v1 endpoint can be checked)"),
    ({"token", "generated_text"}, "Text Generation Inference's own API (its /v1 endpoint can be checked)"),
)
"""Members by which other protocols' chunks are known, and what to call them."""


def protocol_of(chunk: Any) -> str | None:
    """What protocol a chunk is of, in words, if it is one that is known but not checked here."""
    if not isinstance(chunk, dict) or "choices" in chunk:
        return None
    return next((name for members, name in _OTHERS if members <= chunk.keys()), None)


def _first_document(raw: bytes) -> Any:
    """The first JSON document of a file that holds several, one a line or in a list."""
    text = raw.decode("utf-8-sig", "replace").lstrip().removeprefix("[")
    try:
        return json.JSONDecoder().raw_decode(text.lstrip())[0]
    except (ValueError, RecursionError):
        return None
