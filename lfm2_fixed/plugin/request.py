"""What a request asks for, beyond what vLLM's own code remembers of it."""

from __future__ import annotations

from typing import Any

# Whether the client itself asked for special tokens.  An extra field of the request, because the
# parser that adjusts a request is not the one that parses its output: extra fields survive copies
# and serialisation, and both request types allow them.
_ASKED = "lfm2_fixed_special_tokens_asked"


def remember_special_tokens(request: Any) -> None:
    """Remember in the request whether the client asked to see special tokens."""
    if getattr(request, _ASKED, None) is None:
        setattr(request, _ASKED, request.skip_special_tokens is False)


def special_tokens_wanted(request: Any) -> bool:
    """Whether the client asked to see special tokens, whatever the request says by now."""
    asked = getattr(request, _ASKED, None)
    return getattr(request, "skip_special_tokens", True) is False if asked is None else asked is True


def special_tokens_shown(request: Any) -> bool:
    """Whether the detokenizer left special tokens in the text."""
    return getattr(request, "skip_special_tokens", True) is False


def forbids_calls(request: Any) -> bool:
    """Whether no call may come of the answer: ``tool_choice="none"``, vLLM's default without tools, too."""
    return getattr(request, "tool_choice", None) == "none"
