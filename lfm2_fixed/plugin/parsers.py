"""The two vLLM tool parsers: what the serving layer asks for, answered by :class:`PythonicStream`.

A parser instance serves one stream.  ``extract_tool_calls`` keeps nothing, since vLLM may reuse
an instance for several whole texts.  Importing this module needs vLLM.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from typing import Any, Literal, cast
from uuid import uuid4

from ..core.dialects import DIALECTS
from ..core.events import ArgumentsDelta, CallStart, Content, Event
from ..core.sentinels import PlainText
from ..core.stream import PythonicStream, parse
from .compat import (
    DeltaMessage,
    ExtractedToolCallInformation,
    FunctionCall,
    ToolCall,
    ToolParser,
    arguments_delta,
    content_delta,
    declared_tools,
    delta,
    first_delta,
    remember_first,
    show_log,
    show_sentinels,
    special_tokens_shown,
    special_tokens_wanted,
    structural_tag,
    structural_tag_model,
    vocabulary,
)

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
    """What the two dialects share."""

    engine_based_streaming = True  # the only way to be told that a stream ends
    supports_required_and_named = False  # native calls there too, no forced JSON

    dialect: str
    needs_sentinels: bool

    def __init__(self, tokenizer: Any, tools: Sequence[Any] | None = None) -> None:
        super().__init__(tokenizer, tools)
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
        self._declared = declared_tools(tools)
        self.structural_tag_model = structural_tag_model(self.dialect, known.sentinels)
        self._single_call_model = structural_tag_model(self.dialect, known.sentinels, single=True)
        self._reset()

    # --- before generation

    def adjust_request(self, request: Any) -> Any:
        """Make the sentinels visible to this parser.  Never forces JSON on the model."""
        show_sentinels(request, self._single_call_model)
        return request

    def get_structural_tag(self, request: Any, **options: Any) -> Any:
        """The grammar of this model's own call format, where the request asks for constrained calls."""
        return structural_tag(super().get_structural_tag, request, self._single_call_model, **options)

    # --- whole texts

    def extract_tool_calls(self, model_output: str, request: Any) -> ExtractedToolCallInformation:
        """The calls and the content of a whole text."""
        if _forbids_calls(request):
            text = self._plain_text(request)
            content = text.feed(model_output) + text.finish()
            return ExtractedToolCallInformation(tools_called=False, tool_calls=[], content=content)
        result = parse(
            model_output, self.dialect, self._tools(request), special_tokens=self._special_tokens(request)
        )
        calls = [
            ToolCall(type="function", function=FunctionCall(name=call.name, arguments=call.arguments))
            for call in result.calls
        ]
        return ExtractedToolCallInformation(
            # Where it is False, vLLM may return the raw text in place of the content.
            tools_called=bool(calls) or result.content != model_output,
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
        return feed(delta_text)

    def finish_streaming(self) -> DeltaMessage | None:
        """What the end of the stream makes certain; None if nothing."""
        finish = self._finish
        self._reset()
        return None if finish is None else finish()

    def _reset(self) -> None:
        self._feed: Callable[[str], DeltaMessage | None] | None = None
        self._finish: Callable[[], DeltaMessage | None] | None = None

    def _start(self, request: Any) -> Callable[[str], DeltaMessage | None]:
        """Begin a stream: choose what reads it."""
        if _forbids_calls(request):
            text = self._plain_text(request)

            def feed(piece: str) -> DeltaMessage | None:
                return content_delta(certain) if (certain := text.feed(piece)) else None

            def finish() -> DeltaMessage | None:
                return content_delta(held) if (held := text.finish()) else None

        else:
            stream = PythonicStream(
                self.dialect,
                self._tools(request),
                mode=self._mode,
                special_tokens=self._special_tokens(request),
            )
            read = stream.feed

            def feed(piece: str) -> DeltaMessage | None:
                return _message(events) if (events := read(piece)) else None

            def finish() -> DeltaMessage | None:
                return _message(events) if (events := stream.finish()) else None

        self._feed, self._finish = feed, finish
        return feed

    # --- what both need to know of the request

    def _plain_text(self, request: Any) -> PlainText:
        dialect = DIALECTS[self.dialect]
        # Special tokens are in the text if another parser let them through; as ordinary text they stay.
        special = self._special_tokens(request) if special_tokens_shown(request) else ()
        return PlainText((dialect.start, *dialect.ends, *special))

    def _tools(self, request: Any) -> list[Any]:
        return self._declared or declared_tools(getattr(request, "tools", None))

    def _special_tokens(self, request: Any) -> tuple[str, ...]:
        return () if special_tokens_wanted(request) else self._special


remember_first(PythonicToolParser)


class Lfm2FixedToolParser(PythonicToolParser):
    """LiquidAI LFM2 and LFM2.5: ``<|tool_call_start|>[f(a=1)]<|tool_call_end|>``."""

    dialect = "lfm2"
    needs_sentinels = True


class Llama4PythonicFixedToolParser(PythonicToolParser):
    """Llama 4: ``[f(a=1)]``, or between ``<|python_start|>`` and ``<|python_end|>``."""

    dialect = "llama4"
    needs_sentinels = False  # bare lists need none


def _forbids_calls(request: Any) -> bool:
    # Also every request without tools: that is vLLM's default for them.
    return getattr(request, "tool_choice", None) == "none"


def _message(events: Sequence[Event]) -> DeltaMessage | None:
    """The delta that says what ``events`` say, with one entry for each call; None if nothing."""
    if len(events) == 1:  # nearly always
        event = events[0]
        if type(event) is ArgumentsDelta:
            return delta("", [arguments_delta(event.index, event.text)])
        return content_delta(event.text) if type(event) is Content else None
    content: list[str] = []
    names: dict[int, str] = {}
    arguments: dict[int, list[str]] = {}
    for event in events:
        if type(event) is ArgumentsDelta:
            arguments.setdefault(event.index, []).append(event.text)
        elif type(event) is Content:
            content.append(event.text)
        elif type(event) is CallStart:
            names[event.index] = event.name
    calls = [
        first_delta(index, f"chatcmpl-tool-{uuid4().hex}", names[index], "".join(pieces))
        if index in names
        else arguments_delta(index, "".join(pieces))
        for index, pieces in arguments.items()
    ]
    if calls:
        return delta("".join(content), calls)
    return content_delta("".join(content)) if content else None
