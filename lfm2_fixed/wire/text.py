"""Text that somebody else wrote, made fit for where it goes: a terminal, a log, a request.

Names, keys, error messages and whole arguments come from models and servers.  Two things about them are
dangerous beside what they say: control characters move a terminal's cursor or forge lines of a log, and a
lone surrogate has no UTF-8 form, so that the request that carries it cannot be sent.
"""

from __future__ import annotations

import re
from enum import Enum
from typing import Any

SHOWN = 300
"""Characters of somebody else's text that one message quotes: a sentence or two, not a page."""

_LONE = re.compile("[\ud800-\udfff]")


class StrEnum(str, Enum):
    """Words that are printed as they are: :class:`enum.StrEnum`, which Python has from 3.11 on."""

    def __str__(self) -> str:
        return str(self.value)


def printable(text: str) -> str:
    """The text with escapes in place of whatever ``str.isprintable`` refuses.

    That is control characters, line ends, lone surrogates, and the marks that turn the direction of writing.
    """
    if text.isprintable():
        return text
    return "".join(c if c.isprintable() else c.encode("unicode_escape", "surrogatepass").decode() for c in text)


def shortened(text: str, limit: int = SHOWN) -> str:
    """At most ``limit`` characters of the text, with ``…`` where it goes on."""
    return text if len(text) <= limit else text[:limit] + "…"


def sendable(value: Any) -> Any:
    """A JSON value with U+FFFD in place of each lone surrogate, in keys and strings at any depth.

    What it returns can be written as UTF-8.  Only what has to change is made anew.
    """
    if isinstance(value, str):
        return value if value.isascii() else _LONE.sub("\ufffd", value)
    if isinstance(value, dict):
        return {sendable(key): sendable(member) for key, member in value.items()}
    if isinstance(value, list):
        return [sendable(item) for item in value]
    return value
