"""What the parsers need to know of a tokenizer, looked up once for each."""

from __future__ import annotations

import weakref
from typing import Any, NamedTuple

from ..core.dialects import DIALECTS
from ..core.reasoning import CLOSE, OPEN


class Vocabulary(NamedTuple):
    """The tokens of a tokenizer that matter to a dialect."""

    sentinels: tuple[tuple[str, int], ...]
    """The dialect's structural sentinels that are tokens, with their ids."""
    special: tuple[str, ...]
    """The texts of its other special tokens, and those that the dialect is known to have."""
    open: int | None
    """The id of ``<think>``; None if it is no token."""
    close: int | None
    """The id of ``</think>``."""
    hides_thoughts: bool
    """The two tags are special tokens, so that ``skip_special_tokens`` would hide them."""
    turn: int | None
    """The id of the token that begins a message of a chat, ``<|im_start|>``."""


_vocabularies: weakref.WeakKeyDictionary[Any, dict[str, Vocabulary]] = weakref.WeakKeyDictionary()


def vocabulary(tokenizer: Any, dialect: str) -> Vocabulary:
    """The tokens of ``tokenizer`` that matter to ``dialect``; looked up once per tokenizer."""
    try:
        known = _vocabularies.setdefault(tokenizer, {})
    except TypeError:  # neither hashable nor weakly referable
        known = {}
    if dialect not in known:
        known[dialect] = _vocabulary(tokenizer, dialect)
    return known[dialect]


def _vocabulary(tokenizer: Any, dialect: str) -> Vocabulary:
    ids = tokenizer.get_vocab()
    dialect_texts = DIALECTS[dialect]
    structural = (dialect_texts.start, *dialect_texts.ends)
    special = set(getattr(tokenizer, "all_special_tokens", ()))
    for token in getattr(tokenizer, "added_tokens_decoder", {}).values():
        # Not every token that the detokenizer skips is in all_special_tokens.
        if getattr(token, "special", False):
            special.add(str(token))
    hides_thoughts = OPEN in special or CLOSE in special
    special.update(dialect_texts.special_tokens)
    special.difference_update(structural, ("", OPEN, CLOSE))
    return Vocabulary(
        sentinels=tuple((text, ids[text]) for text in structural if text in ids),
        special=tuple(sorted(special)),
        open=ids.get(OPEN),
        close=ids.get(CLOSE),
        hides_thoughts=hides_thoughts,
        turn=ids.get("<|im_start|>"),
    )
