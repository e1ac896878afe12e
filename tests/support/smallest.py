"""Failing texts made small: deleting pieces is much faster than hypothesis' own shrinking of a seed."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any


def smallest(text: str, fails: Callable[[str], bool], tries: int = 400) -> str:
    """A short text that still fails, found by deleting ever smaller pieces."""
    size = max(1, len(text) // 2)
    while size and tries > 0:
        start, shrunk = 0, False
        while start < len(text) and tries > 0:
            shorter = text[:start] + text[start + size :]
            tries -= 1
            if fails(shorter):
                text, shrunk = shorter, True
            else:
                start += size
        if not shrunk or size > 1:
            size = size // 2 if not shrunk or size > 1 else size
        if size == 1 and not shrunk:
            break
    return text


def check(text: str, law: Callable[[str], None], context: Sequence[Any] = ()) -> None:
    """Run ``law`` on ``text``; on failure report the smallest text that breaks it too."""
    try:
        law(text)
        return
    except Exception as error:
        kind = type(error)

    def fails(candidate: str) -> bool:
        try:
            law(candidate)
        except kind:
            return True
        except Exception:
            return False
        return False

    small = smallest(text, fails)
    try:
        law(small)
    except Exception as error:
        raise AssertionError(f"law broken by {small!r} {context!r}: {error!r}") from error
    law(text)
