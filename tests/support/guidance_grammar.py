"""llguidance's own matcher, which vLLM's *guidance* backend uses, over the vocabulary of the tests."""

from __future__ import annotations

from functools import lru_cache
from typing import Any

from llguidance import LLMatcher, LLTokenizer
from llguidance._tokenizer import TokenizerWrapper
from llguidance.numpy import allocate_token_bitmask, fill_next_token_bitmask

_BETWEEN_MASKS = 500
"""Tokens."""


class _Vocabulary:
    """What llguidance asks of a tokenizer."""

    bos_token_id = None

    def __init__(self, pieces: tuple[bytes, ...], special: tuple[int, ...], stop: int) -> None:
        self.tokens = list(pieces)
        self.special_token_ids = special
        self.eos_token_id = stop

    def __call__(self, text: bytes) -> list[int]:
        return [self.tokens.index(bytes([byte])) for byte in text]


@lru_cache
def _tokenizer(pieces: tuple[bytes, ...], special: tuple[int, ...], stop: int) -> Any:
    """Made once, as in an engine: it takes longer than most grammars."""
    return LLTokenizer(TokenizerWrapper(_Vocabulary(pieces, special, stop)))


class Text:
    """A grammar in Lark.  Raises ValueError with what llguidance says of one that it refuses."""

    def __init__(self, text: str, pieces: tuple[bytes, ...], special: tuple[int, ...], stop: int) -> None:
        self.size, self.stop = len(pieces), stop
        self._matcher = LLMatcher(_tokenizer(pieces, special, stop), text, log_level=0)
        if self._matcher.is_error():
            raise ValueError(self._matcher.get_error()[:2000])

    def begin(self) -> Any:
        """The matcher at the beginning of an answer."""
        return self._matcher.deep_copy()

    def accepts(self, tokens: list[int]) -> bool:
        """Whether these are a whole answer."""
        state = self.begin()
        taken = True
        # An engine asks for a mask before each token; llguidance may do so much between two of them, and fails then.
        for at in range(0, len(tokens), _BETWEEN_MASKS):
            self.allowed(state)
            some = tokens[at : at + _BETWEEN_MASKS]
            if state.try_consume_tokens(some) < len(some):
                taken = False
                break
        assert "limit" not in state.get_error() and "too many" not in state.get_error(), state.get_error()
        return taken and bool(state.is_accepting())

    def allowed(self, state: Any) -> list[int]:
        """What may come next."""
        mask = allocate_token_bitmask(1, self.size)
        fill_next_token_bitmask(state, mask, 0)
        assert not state.is_error(), state.get_error()
        words = [word & 0xFFFFFFFF for word in mask[0].tolist()]
        return [at for at in range(self.size) if words[at // 32] >> (at % 32) & 1]
