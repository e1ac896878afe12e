"""vLLM's tool parsers: what the serving layer asks for, answered by :class:`PythonicStream`.

There is one for each dialect of the table.  A parser instance serves one stream.  ``extract_tool_calls`` keeps
nothing, since vLLM may reuse an instance for several whole texts.  Importing this module needs vLLM.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from typing import Any, Literal, cast

from ..core.dialects import DIALECTS, Dialect
from ..core.events import Content, Event
from ..core.sentinels import PlainText
from ..core.stream import PythonicStream, parse
from . import class_name, patches
from .compat import (
    DeltaMessage,
    ExtractedToolCallInformation,
    FunctionCall,
    ToolCall,
    ToolParser,
)
from .constrained import show_sentinels, structural_tag, structural_tag_model
from .log import announce, show_log
from .messages import message
from .request import forbids_calls, special_tokens_shown, special_tokens_wanted
from .vocabulary import vocabulary

STREAM_VARIABLE = "LFM2_FIXED_STREAM"
"""The environment variable that says when calls are sent: ``delta`` (default) or ``call``."""

show_log()


def _stream_mode() -> Literal["delta", "call"]:
    mode = os.environ.get(STREAM_VARIABLE) or "delta"
    if mode not in ("delta", "call"):
        raise ValueError(
            f"The environment variable {STREAM_VARIABLE} is {mode!r}: set it to 'delta' (arguments are "
            "streamed as they are generated) or 'call' (each call is sent whole), or unset it."
        )
    return cast(Literal["delta", "call"], mode)


class PythonicToolParser(ToolParser):  # type: ignore[misc]
    """What all dialects share."""

    engine_based_streaming = True  # the only way to be told that a stream ends
    supports_required_and_named = False  # native calls there too, no forced JSON

    dialect: str
    needs_sentinels: bool
    _thought_before: str | None = None
    """The dialect, if answers may begin with a thought that a reasoning parser of this package reads."""

    def __init__(self, tokenizer: Any, tools: Sequence[Any] | None = None) -> None:
        super().__init__(tokenizer, tools)
        announce()
        patches.prepare_beside()
        dialect = DIALECTS[self.dialect]
        known = vocabulary(tokenizer, self.dialect)
        found = dict(known.sentinels)
        if self.needs_sentinels and not (dialect.start in found and any(end in found for end in dialect.ends)):
            raise RuntimeError(
                f"The tokenizer has no {dialect.start} and {' or '.join(dialect.ends)} tokens, so its model "
                f"cannot write calls in the {self.dialect} format: choose the --tool-call-parser made for it."
            )
        self._mode = _stream_mode()
        self._special = known.special
        self._declared = tools  # in any shape; vLLM's own attribute has those of its classes only
        self.structural_tag_model = structural_tag_model(self.dialect, known.sentinels)
        self._single_call_model = structural_tag_model(self.dialect, known.sentinels, single=True)
        self._reset()

    # --- before generation

    def follows(self, reasoning_parser: Any) -> None:
        """The text comes from this reasoning parser (None: from the model), which may find a thought first."""
        self._thought_before = self.dialect if getattr(reasoning_parser, "may_begin_with_thought", False) else None

    def adjust_request(self, request: Any) -> Any:
        """Make the sentinels visible to this parser.  Never forces JSON on the model."""
        show_sentinels(request, self._single_call_model)
        return request

    def get_structural_tag(self, request: Any, **options: Any) -> Any:
        """The grammar of this model's own call format, where the request asks for constrained calls."""
        base = super().get_structural_tag
        return structural_tag(base, request, self._single_call_model, self._thought_before, **options)

    # --- whole texts

    def extract_tool_calls(self, model_output: str, request: Any) -> ExtractedToolCallInformation:
        """The calls and the content of a whole text."""
        if forbids_calls(request):
            text = self._plain_text(request)
            content = text.feed(model_output) + text.finish()
            return ExtractedToolCallInformation(tools_called=False, tool_calls=[], content=content)
        result = parse(model_output, self.dialect, self._tools(request), special_tokens=self._special_tokens(request))
        calls = [
            ToolCall(type="function", function=FunctionCall(name=call.name, arguments=call.arguments))
            for call in result.calls
        ]
        return ExtractedToolCallInformation(
            tools_called=bool(calls),
            tool_calls=calls,
            content=result.content or None,
        )

    # --- streams

    def extract_tool_calls_streaming(
        self,
        previous_text: str,
        current_text: str,
        delta_text: str,
        previous_token_ids: Sequence[int],
        current_token_ids: Sequence[int],
        delta_token_ids: Sequence[int],
        request: Any,
    ) -> DeltaMessage | None:
        """What the next piece of text makes certain; None if nothing."""
        feed = self._feed
        if feed is None:
            feed = self._start(request)
        events = feed(delta_text)
        return message(events) if events else None

    def finish_streaming(self) -> DeltaMessage | None:
        """What the end of the stream makes certain; None if nothing."""
        stream = self._stream
        self._reset()
        return None if stream is None else message(stream.finish())

    def _reset(self) -> None:
        self._stream: PythonicStream | _TextStream | None = None
        self._feed: Callable[[str], list[Event]] | None = None

    def _start(self, request: Any) -> Callable[[str], list[Event]]:
        """Begin a stream: choose what reads it."""
        if forbids_calls(request):
            self._stream = _TextStream(self._plain_text(request))
        else:
            self._stream = PythonicStream(
                self.dialect,
                self._tools(request),
                mode=self._mode,
                special_tokens=self._special_tokens(request),
            )
        self._feed = self._stream.feed
        return self._feed

    # --- what both need to know of the request

    def _plain_text(self, request: Any) -> PlainText:
        """The text of an answer without calls: contract 7.3."""
        if special_tokens_wanted(request):
            return PlainText(())  # whoever asks for special tokens in so many words gets the markers, too
        dialect = DIALECTS[self.dialect]
        # Special tokens are in the text if another parser let them through; as ordinary text they stay.
        special = self._special if special_tokens_shown(request) else ()
        return PlainText(special, dialect.markers)

    def _tools(self, request: Any) -> Any:
        return self._declared or getattr(request, "tools", None)

    def _special_tokens(self, request: Any) -> tuple[str, ...]:
        return () if special_tokens_wanted(request) else self._special


class _TextStream:
    """A turn that no call may come of, read as :class:`PythonicStream` reads the others."""

    def __init__(self, text: PlainText) -> None:
        self._text = text

    def feed(self, piece: str) -> list[Event]:
        return self._events(self._text.feed(piece))

    def finish(self) -> list[Event]:
        return self._events(self._text.finish())

    def _events(self, certain: str) -> list[Event]:
        return [Content(certain)] if certain else []


patches.apply(tool_parser=PythonicToolParser)
patches.prepare_beside()


def _for(dialect: Dialect) -> type[PythonicToolParser]:
    fields = {
        "__doc__": f"The tool parser ``{dialect.parser}``.",
        "__module__": __name__,
        "dialect": dialect.name,
        # Bare lists need none, and markers that are plain text are in no vocabulary.
        "needs_sentinels": dialect.needs_markers and dialect.markers_are_tokens,
    }
    return type(class_name(dialect.parser), (PythonicToolParser,), fields)


PARSERS = {dialect.parser: _for(dialect) for dialect in DIALECTS.values()}
"""The classes by the names for ``--tool-call-parser``."""

# vLLM looks for the classes in this module by their names.
globals().update({parser.__name__: parser for parser in PARSERS.values()})
announce()
