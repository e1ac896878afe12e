"""Simple escapes (a backslash and one character that stand for one character), and JSON's strings."""

from __future__ import annotations

import re
from json.encoder import encode_basestring  # type: ignore[attr-defined]

from .tokens import SIMPLE_ESCAPES

SIMPLE_ESCAPE = rf"\\[{re.escape(''.join(SIMPLE_ESCAPES))}]"
"""A pattern of all of them."""

_ANY = re.compile(r"\\(.)")


def unescape(text: str) -> str:
    """``text``, whose backslashes all begin simple escapes, decoded."""
    return _ANY.sub(_decoded, text) if "\\" in text else text


def _decoded(escape: re.Match[str]) -> str:
    return SIMPLE_ESCAPES[escape[1]]


def json_string(text: str) -> str:
    """``text`` as a JSON string, with quotes; the same as ``json.dumps(text, ensure_ascii=False)``."""
    return str(encode_basestring(text))
