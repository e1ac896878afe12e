"""What ``curl -N`` wrote: the bytes of a stream, with what else a file may have around them taken off."""

from __future__ import annotations

import re
import zlib
from dataclasses import dataclass


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
