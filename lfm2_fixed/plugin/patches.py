"""What is patched in vLLM, why, and since which version it need not be: ``PATCHES`` lists it.

Each patch wraps one function and acts for the parsers of this package alone, so other parsers are served as
before; patching again (another copy of the package in the same process) wraps once more and changes nothing.
Two further places where vLLM is helped along need no patch: an extra field of the request, which remembers what
the client asked for (:mod:`.request`), and the grammar of one call where vLLM has none (:mod:`.constrained`).
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from functools import wraps
from types import SimpleNamespace
from typing import Any

from . import beside
from .compat import (
    PASSES_PROMPT_ON,
    TELLS_WHERE_A_STREAM_BEGINS,
    DelegatingParser,
    DeltaMessage,
    ReasoningParser,
    ToolParser,
    keeps_content,
)
from .messages import content_delta, delta
from .request import remember_special_tokens


@dataclass(frozen=True)
class Patch:
    """One function of vLLM's that is wrapped."""

    target: str
    """Its name."""
    why: str
    until: str
    """Since which version of vLLM it need not be wrapped; ``"-"``: the newest known needs it."""


PATCHES = (
    Patch(
        "vllm.parser.abstract_parser.DelegatingParser.adjust_request",
        "A reasoning parser is asked first and may switch skip_special_tokens off, for requests without tools, too; "
        "what the client itself asked must be remembered before.  The tool parser, which makes the grammar, must know "
        "whether a thought may stand before the calls.",
        "-",
    ),
    Patch(
        "vllm.parser.abstract_parser.DelegatingParser.parse_delta",
        "Where the prompt does not say whether the model will think, is_reasoning_end has two right answers: for the "
        "engine True, so that a grammar holds from the first token on; for the stream False, so that the reasoning "
        "parser sees how the text begins.  vLLM asks once for both.  A reasoning parser is not given the request "
        "either, which says whether special tokens are wanted.",
        "-",
    ),
    Patch(
        "vllm.parser.abstract_parser.DelegatingParser.extract_tool_calls",
        "If no tool was called, the raw text is returned in place of the content that the tool parser found, so the "
        "markup of empty, malformed and cut blocks leaks.",
        "0.33.0, unless a reasoning parser of the old kind takes part (deepseek_r1)",
    ),
    Patch(
        "vllm.parser.abstract_parser.DelegatingParser.set_prompt_token_ids",
        "The prompt does not reach the reasoning parser before a whole answer is parsed, so nobody knows whether "
        "the chat template opened the thought.",
        "0.33.0",
    ),
    Patch(
        "vllm.renderers.online_renderer.OnlineRenderer.preprocess_chat",
        "It adjusts the request on the event loop, where the grammar is made: nobody else is served meanwhile, for up "
        "to 0.25 s.  The adjusting is postponed until it is through, and done in a thread (see beside).",
        "-",
    ),
    Patch(
        "vllm.v1.structured_output.backend_xgrammar.validate_xgrammar_grammar",
        "It reads the grammar on the event loop, only to see whether it is one, for up to 0.35 s.  What has been read "
        "in the thread is not read again.",
        "-",
    ),
    Patch(
        "vllm.entrypoints.openai.responses.serving.split_delta",
        "It puts a delta's content before its calls.  Where one delta holds the end of a call that is already open "
        "and then text, that closes the call too early and opens another one without a name.",
        "-",
    ),
)


def apply(tool_parser: type[ToolParser] | None = None, reasoning_parser: type[ReasoningParser] | None = None) -> None:
    """Patch what these parsers need, once for each.  (Two functions wait for their modules: see below.)"""
    if tool_parser is not None:
        _remember_first(tool_parser)
        _keep_content(tool_parser)
    if reasoning_parser is not None:
        _begin_streams(reasoning_parser)
        if not PASSES_PROMPT_ON:
            _pass_prompt_on()


def _remember_first(parser: type[ToolParser]) -> None:
    adjust = DelegatingParser.adjust_request

    @wraps(adjust)
    def adjust_request(self: Any, request: Any) -> Any:
        if not isinstance(self.tool_parser, parser):
            return adjust(self, request)
        remember_special_tokens(request)
        self.tool_parser.follows(self.reasoning_parser)
        if request.tools and beside.postpone(lambda: _read(adjust(self, request))):
            return request  # it is changed in place, and vLLM goes on with it after preprocess_chat
        return adjust(self, request)

    DelegatingParser.adjust_request = adjust_request


def prepare_beside() -> None:
    """Let requests be adjusted beside the event loop.

    Called whenever a parser is made, until the server's module is there: nobody but a server imports it.
    """
    renderer = getattr(sys.modules.get("vllm.renderers.online_renderer"), "OnlineRenderer", None)
    preprocess = getattr(renderer, "preprocess_chat", None)
    if preprocess is None or hasattr(preprocess, "prepares_beside"):
        return

    @wraps(preprocess)
    async def preprocess_chat(self: Any, *args: Any, **options: Any) -> Any:
        return await beside.prepared(preprocess(self, *args, **options))

    preprocess_chat.prepares_beside = True  # type: ignore[attr-defined]
    renderer.preprocess_chat = preprocess_chat  # type: ignore[union-attr]


def _read(request: Any) -> None:
    """Let xgrammar read the request's grammar, so that it need not be read on the loop."""
    outputs = request.structured_outputs
    grammar = getattr(outputs, "structural_tag", None)
    if grammar is None:
        return
    from vllm.v1.structured_output import backend_xgrammar

    validate = backend_xgrammar.validate_xgrammar_grammar
    if not hasattr(validate, "knows"):
        backend_xgrammar.validate_xgrammar_grammar = validate = _knowing(validate)
    with suppress(Exception):  # vLLM tries it again, and answers
        validate(SimpleNamespace(structured_outputs=outputs))


def _knowing(validate: Callable[[Any], None]) -> Callable[[Any], None]:
    """``validate`` (vLLM's ``validate_xgrammar_grammar``), for structural tags that it has not let through before."""

    @wraps(validate)
    def validate_xgrammar_grammar(sampling_params: Any) -> None:
        grammar = getattr(sampling_params.structured_outputs, "structural_tag", None)
        if not isinstance(grammar, str):
            return validate(sampling_params)
        if not beside.is_known(grammar):
            validate(sampling_params)
            beside.remember(grammar)

    validate_xgrammar_grammar.knows = True  # type: ignore[attr-defined]
    return validate_xgrammar_grammar


def _keep_content(parser: type[ToolParser]) -> None:
    extract = DelegatingParser.extract_tool_calls

    @wraps(extract)
    def extract_tool_calls(self: Any, model_output: str, request: Any) -> Any:
        found = extract(self, model_output, request)
        if (
            isinstance(self.tool_parser, parser)
            and not found.tools_called
            and found.content != model_output
            and not keeps_content(self._engine_based)
        ):
            found.tools_called = True  # with no calls: then the content counts
        return found

    DelegatingParser.extract_tool_calls = extract_tool_calls


def _begin_streams(parser: type[ReasoningParser]) -> None:
    parse = DelegatingParser.parse_delta

    @wraps(parse)
    def parse_delta(self: Any, delta_text: str, delta_token_ids: Any, request: Any, *args: Any, **options: Any) -> Any:
        # The first delta of a stream only: the others go straight to vLLM's own method.
        self.parse_delta = parse.__get__(self)
        if isinstance(self.reasoning_parser, parser):
            prompt = args[0] if args else options.get("prompt_token_ids")
            over = self.reasoning_parser.begin(prompt, request)
            if TELLS_WHERE_A_STREAM_BEGINS:
                self._stream_state.prompt_reasoning_checked = True
                self._stream_state.reasoning_ended = over
        return parse(self, delta_text, delta_token_ids, request, *args, **options)

    DelegatingParser.parse_delta = parse_delta


def _pass_prompt_on() -> None:
    def set_prompt_token_ids(self: Any, prompt_token_ids: Any) -> None:
        tell = getattr(self.reasoning_parser, "set_prompt_token_ids", None)
        if tell is not None:
            tell(prompt_token_ids)

    DelegatingParser.set_prompt_token_ids = set_prompt_token_ids


def keep_order_in_responses() -> None:
    """Let the Responses endpoint finish an open call before the content that follows it.

    Called with the first request to the endpoint: its module imports an engine, and is not there before.
    """
    serving = sys.modules.get("vllm.entrypoints.openai.responses.serving")
    split = getattr(serving, "split_delta", None)
    if split is not None and not hasattr(split, "keeps_order"):
        serving.split_delta = in_order(split)  # type: ignore[union-attr]


def in_order(split: Callable[[DeltaMessage], list[DeltaMessage]]) -> Callable[[DeltaMessage], list[DeltaMessage]]:
    """``split`` (vLLM's ``split_delta``), with the pieces of a call that is already open put first."""

    def split_in_order(message: DeltaMessage) -> list[DeltaMessage]:
        calls = message.tool_calls
        if not message.content or message.reasoning or not calls or calls[0].id is not None:
            return split(message)
        opened = [call for call in calls if call.index == calls[0].index]
        rest = [call for call in calls if call.index != calls[0].index]
        return [delta("", opened), *split(delta(message.content, rest) if rest else content_delta(message.content))]

    split_in_order.keeps_order = True  # type: ignore[attr-defined]
    return split_in_order
