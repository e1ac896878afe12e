"""vLLM's reasoning parser ``lfm2_fixed``: thoughts by :class:`~lfm2_fixed.core.reasoning.ReasoningSplitter`.

It is right for models that think and for those that do not: a turn has a thought if it begins with ``<think>``, or
if the prompt ends inside one, and is content otherwise.  (vLLM's own parsers take a turn without ``</think>`` for a
thought, and the call in it is lost.)

An instance serves one stream; whole texts leave no state behind, but for what is known of the prompt.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import takewhile
from typing import Any

from ..core.dialects import DIALECTS
from ..core.reasoning import CLOSE, OPEN, ReasoningSplitter
from ..core.sentinels import Markup, PlainText, markup
from . import patches
from .compat import TELLS_WHERE_A_STREAM_BEGINS, DeltaMessage, ReasoningParser
from .log import announce, show_log
from .messages import reasoning_delta
from .request import remember_special_tokens, special_tokens_shown, special_tokens_wanted
from .vocabulary import vocabulary

_DIALECT = DIALECTS["lfm2"]
_QUOTES = ('"', "'", "`")

_TAIL = 8
"""Tokens at the end of a prompt in which its tag is looked for where no token begins a message: the tag itself and
the line breaks behind it."""

show_log()


class Lfm2FixedReasoningParser(ReasoningParser):  # type: ignore[misc]
    """The reasoning parser of LFM2 and LFM2.5."""

    engine_based_streaming = True  # the tool parser's streaming needs it, and to be told that a stream ends

    def __init__(self, tokenizer: Any, *args: Any, **kwargs: Any) -> None:
        super().__init__(tokenizer, *args, **kwargs)
        announce()
        self._known = vocabulary(tokenizer, _DIALECT.name)
        self._call = dict(self._known.sentinels).get(_DIALECT.start)
        self._may_think = _may_think(kwargs.get("chat_template_kwargs") or {})
        self._opened: bool | None = None  # what the prompt says: see _opened_by
        self._stream: _Thought | None = None

    # --- texts

    def extract_reasoning(self, model_output: str, request: Any) -> tuple[str | None, str | None]:
        """The thought and the rest of a whole text; None for what is empty."""
        thought = self._thought(request)
        reasoning, said = map("".join, zip(thought.feed(model_output), thought.finish()))
        return reasoning or None, said or None

    def begin(self, prompt_token_ids: Sequence[int] | None, request: Any) -> bool:
        """A stream begins.  Returns whether its thought is over before its first character."""
        if prompt_token_ids is not None:
            self.set_prompt_token_ids(prompt_token_ids)
        self._stream = self._thought(request)
        return self._opened is False

    def extract_reasoning_streaming(
        self,
        previous_text: str,
        current_text: str,
        delta_text: str,
        previous_token_ids: Sequence[int],
        current_token_ids: Sequence[int],
        delta_token_ids: Sequence[int],
    ) -> DeltaMessage | None:
        """What the next piece of text makes certain; None if nothing."""
        if self._stream is None:
            self.begin(None, None)
            assert self._stream is not None
        return reasoning_delta(*self._stream.feed(delta_text))

    def has_engine_confirmed_reasoning_end(self) -> bool:
        """Whether all the text that follows is content."""
        return self._stream is not None and self._stream.ended

    def finish_streaming(self) -> DeltaMessage | None:
        """The thought, or the text, is over: what was held of it."""
        stream, self._stream = self._stream, None
        return None if stream is None else reasoning_delta(*stream.finish())

    def _thought(self, request: Any) -> _Thought:
        hidden = None
        if special_tokens_shown(request) and not special_tokens_wanted(request):
            hidden = markup((_DIALECT.start, *_DIALECT.ends), self._known.special)
        return _Thought(inside=self._opened is True, over=self._opened is False, hidden=hidden)

    # --- requests

    @property
    def may_begin_with_thought(self) -> bool:
        """Whether it is left to the model to begin its answer with a thought."""
        return self._may_think and self._opened is None

    def adjust_request(self, request: Any) -> Any:
        """Let the tags reach this parser, where they are special tokens.  (In LFM2's tokenizers they are not.)"""
        if self._known.hides_thoughts:
            remember_special_tokens(request)
            request.skip_special_tokens = False
        return request

    # --- tokens: what the engine asks, to know where a grammar begins to hold

    @property
    def reasoning_start_str(self) -> str:
        """The tag that begins a thought."""
        return OPEN

    @property
    def reasoning_end_str(self) -> str:
        """The tag that ends it."""
        return CLOSE

    def set_prompt_token_ids(self, prompt_token_ids: Sequence[int]) -> None:
        """Remember whether the prompt ends inside a thought."""
        self._opened = self._opened_by(prompt_token_ids)

    def is_reasoning_end(self, input_ids: Sequence[int]) -> bool:
        """Whether a grammar holds from here on: not if ``input_ids``, a prompt, ends inside a thought.

        Where the prompt says nothing, the model may still begin with a thought.  Grammars of calls let it through
        (``constrained.after_thought``); waiting for its end would leave all the answers of models that do not think
        unconstrained.  Streams are told where they begin by :mod:`.patches`.
        """
        opened = self._opened = self._opened_by(input_ids)
        return not opened if TELLS_WHERE_A_STREAM_BEGINS else opened is False

    def is_reasoning_end_streaming(self, input_ids: Sequence[int], delta_ids: Iterable[int]) -> bool:
        """Whether a thought that is open ends among ``delta_ids``, the last of ``input_ids``."""
        delta = list(delta_ids)
        return self._end_of_thought(delta, input_ids[-len(delta) - 1 : -len(delta)] if delta else ()) is not None

    def extract_content_ids(self, input_ids: list[int]) -> list[int]:
        """The ids behind the thought that ends among ``input_ids``; none if it does not."""
        end = self._end_of_thought(input_ids, ())
        if end is None:
            return []
        return input_ids[end + (input_ids[end] == self._known.close) :]

    def count_reasoning_tokens(self, token_ids: Sequence[int]) -> int:
        """How many of an answer's tokens are its thought's, without the tags."""
        start = 0
        if self._opened is not True:
            if self._known.open is None or self._known.open not in token_ids:
                return 0
            start = list(token_ids).index(self._known.open) + 1
            if self.model_tokenizer.decode(list(token_ids[: start - 1])).strip():
                return 0  # a tag in what is said
        thought = list(token_ids[start:])
        end = self._end_of_thought(thought, ())
        return len(thought) if end is None else end

    def _opened_by(self, prompt: Sequence[int]) -> bool | None:
        """Whether the last message of the prompt, the answer's beginning, opened a thought, or closed it.

        None if it did neither, as in most chats: then the model decides.  Tags in earlier messages, the user's say,
        mean nothing.
        """
        known = self._known
        message = reversed(prompt[-_TAIL:] if known.turn is None else prompt)
        for token in takewhile(lambda token: token != known.turn, message):
            if token in (known.open, known.close):
                return token == known.open
        return None

    def _end_of_thought(self, ids: Sequence[int], before: Sequence[int]) -> int | None:
        """Where in ``ids`` a thought ends, at ``</think>`` or a call; ``before``: the id before them, if any."""
        for position, token in enumerate(ids):
            if token == self._known.close:
                return position
            if token == self._call:
                last = ids[position - 1 : position] if position else before
                # What the splitter does with a quoted marker; what follows it is not known here.
                if not self.model_tokenizer.decode(list(last)).endswith(_QUOTES):
                    return position
        return None


class _Thought:
    """A splitter whose reasoning has no special tokens that nobody asked for."""

    def __init__(self, *, inside: bool, over: bool, hidden: Markup | None) -> None:
        self._splitter = ReasoningSplitter((_DIALECT.start,), inside=inside)
        self._over = over
        self._plain = None if hidden is None else PlainText(hidden)

    @property
    def ended(self) -> bool:
        return self._over or self._splitter.ended

    def feed(self, text: str) -> tuple[str, str]:
        if self._over:
            return "", text
        return self._shown(*self._splitter.feed(text))

    def finish(self) -> tuple[str, str]:
        reasoning, said = self._shown(*self._splitter.finish())
        return reasoning + self._rest(), said

    def _shown(self, reasoning: str, said: str) -> tuple[str, str]:
        if self._plain is not None and reasoning:
            reasoning = self._plain.feed(reasoning)
        if self._splitter.ended:
            reasoning += self._rest()
        return reasoning, said

    def _rest(self) -> str:
        return "" if self._plain is None else self._plain.finish()


def _may_think(options: dict[str, Any]) -> bool:
    """Whether the request leaves it to the model to think, by what it says to the chat template."""
    return (
        options.get("enable_thinking") is not False
        and options.get("thinking") is not False
        and options.get("reasoning_effort") != "none"
    )


patches.apply(reasoning_parser=Lfm2FixedReasoningParser)
announce()
