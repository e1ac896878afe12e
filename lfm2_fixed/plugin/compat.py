"""The one place that knows vLLM, and that its versions differ (0.26.0 and newer).

Importing this module imports vLLM's tool-parser base classes.  What differs between versions is
found by looking for the feature, never by comparing version numbers.
"""

from __future__ import annotations

import json
import logging
import sys
import weakref
from collections.abc import Callable, Sequence
from functools import cache, wraps
from typing import Any, NamedTuple

from ..core.dialects import DIALECTS

OLDEST = "0.26.0"


def _unusable(error: ImportError | None) -> ImportError:
    """One sentence that says why this vLLM cannot be used and what to do about it."""
    try:
        import vllm
    except ModuleNotFoundError as missing:
        if missing.name != "vllm":
            return missing
        return ImportError(
            "lfm2_fixed.parser is a plugin for vLLM, which is not installed here: "
            f"install vllm {OLDEST} or newer, or use the engine-free API, `from lfm2_fixed import parse`."
        )
    version = getattr(vllm, "__version__", "of an unknown version")
    reason = f" ({error})" if error is not None else ""
    return ImportError(
        f"lfm2_fixed needs vLLM {OLDEST} or newer, complete with its dependencies, but this vLLM "
        f"({version}) lacks something{reason}: upgrade or reinstall vLLM."
    )


try:
    import vllm.envs as envs
    from openai.types.responses import FunctionTool
    from vllm.entrypoints.openai.responses.protocol import ResponsesRequest
    from vllm.parser.abstract_parser import DelegatingParser
    from vllm.sampling_params import StructuredOutputsParams
    from vllm.tool_parsers import utils as tool_utils
    from vllm.tool_parsers.abstract_tool_parser import (
        DeltaMessage,
        ExtractedToolCallInformation,
        ToolParser,
        ToolParserManager,
    )
    from vllm.tool_parsers.utils import DeltaFunctionCall, DeltaToolCall, FunctionCall, ToolCall
except ImportError as error:
    raise _unusable(error) from error
if not hasattr(ToolParser, "engine_based_streaming"):
    raise _unusable(None)

__all__ = [
    "DeltaMessage",
    "DeltaToolCall",
    "ExtractedToolCallInformation",
    "FunctionCall",
    "ToolCall",
    "ToolParser",
    "ToolParserManager",
    "Vocabulary",
    "arguments_delta",
    "content_delta",
    "declared_tools",
    "delta",
    "first_delta",
    "remember_first",
    "show_log",
    "show_sentinels",
    "special_tokens_shown",
    "special_tokens_wanted",
    "structural_tag",
    "structural_tag_model",
    "vocabulary",
]


# --- messages -------------------------------------------------------------------------------------


def _factory(model: Any) -> Callable[[dict[str, Any], set[str]], Any]:
    """A constructor of ``model`` from values that need no validation.

    Building and validating three nested models is most of what a delta costs, so the instance is
    filled directly, as pydantic's ``model_construct`` does it, less its loop over the fields.
    Fields that are not in ``fields`` count as unset and are left out of the JSON.
    """
    empty = model.model_construct()
    defaults = {**dict.fromkeys(model.model_fields), **empty.__dict__}
    extra, private = empty.__pydantic_extra__, empty.__pydantic_private__
    new, assign = model.__new__, object.__setattr__

    def build(values: dict[str, Any], fields: set[str]) -> Any:
        instance = new(model)
        assign(instance, "__pydantic_fields_set__", fields)
        assign(instance, "__pydantic_extra__", None if extra is None else {})
        assign(instance, "__pydantic_private__", None if private is None else dict(private))
        assign(instance, "__dict__", {**defaults, **values})
        return instance

    return build


_delta_message = _factory(DeltaMessage)
_delta_tool_call = _factory(DeltaToolCall)
_delta_function_call = _factory(DeltaFunctionCall)


def content_delta(text: str) -> DeltaMessage:
    """A delta with content alone."""
    return _delta_message({"content": text, "tool_calls": []}, {"content"})


def delta(content: str, calls: list[DeltaToolCall]) -> DeltaMessage:
    """A delta with pieces of calls, and with content unless ``content`` is empty."""
    if content:
        return _delta_message({"content": content, "tool_calls": calls}, {"content", "tool_calls"})
    return _delta_message({"tool_calls": calls}, {"tool_calls"})


def first_delta(index: int, call_id: str, name: str, arguments: str) -> DeltaToolCall:
    """The delta that opens a call."""
    function = _delta_function_call({"name": name, "arguments": arguments}, {"name", "arguments"})
    return _delta_tool_call(
        {"id": call_id, "type": "function", "index": index, "function": function},
        {"id", "type", "index", "function"},
    )


def arguments_delta(index: int, arguments: str) -> DeltaToolCall:
    """A later delta of a call: id, type and name are unset rather than null."""
    function = _delta_function_call({"arguments": arguments}, {"arguments"})
    return _delta_tool_call({"index": index, "function": function}, {"index", "function"})


# --- the tokenizer --------------------------------------------------------------------------------


class Vocabulary(NamedTuple):
    """What a parser needs to know of a tokenizer."""

    sentinels: tuple[tuple[str, int], ...]
    """The dialect's structural sentinels that are tokens, with their ids."""
    special: tuple[str, ...]
    """The texts of its other special tokens, and those that the dialect is known to have."""


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
    special.update(dialect_texts.special_tokens)
    special.difference_update(structural, ("",))
    return Vocabulary(
        sentinels=tuple((text, ids[text]) for text in structural if text in ids),
        special=tuple(sorted(special)),
    )


# --- the request ----------------------------------------------------------------------------------

# Whether the client itself asked for special tokens.  An extra field of the request, because the
# parser that adjusts a request is not the one that parses its output: extra fields survive copies
# and serialisation, and both request types allow them.
_ASKED = "lfm2_fixed_special_tokens_asked"


def remember_special_tokens(request: Any) -> None:
    """Remember in the request whether the client asked to see special tokens."""
    if getattr(request, _ASKED, None) is None:
        setattr(request, _ASKED, request.skip_special_tokens is False)


def remember_first(parser: type[ToolParser]) -> None:
    """Let requests for ``parser`` be remembered before any other parser changes them.

    vLLM asks a reasoning parser first, and it may switch ``skip_special_tokens`` off itself, for
    requests without tools too.
    """
    adjust = DelegatingParser.adjust_request

    @wraps(adjust)
    def adjust_request(self: Any, request: Any) -> Any:
        if isinstance(self.tool_parser, parser):
            remember_special_tokens(request)
        return adjust(self, request)

    DelegatingParser.adjust_request = adjust_request


def show_sentinels(request: Any, single_call_model: str | None) -> None:
    """Let the sentinels reach the parser, and constrain what vLLM's own hooks leave unconstrained.

    Args:
        request: a Chat or Responses request; changed in place.
        single_call_model: the registered structural tag for at most one call, None for no tag.
    """
    if not request.tools or request.tool_choice == "none":
        return
    remember_special_tokens(request)
    request.skip_special_tokens = False
    if isinstance(request, ResponsesRequest):
        _keep_order_in_responses()
    if single_call_model is not None and not _LIMITS_CALLS and _is_plain_auto(request):
        _set_structural_tag(request, _registered_tag(single_call_model, request, tool_choice=None))


def special_tokens_wanted(request: Any) -> bool:
    """Whether the client asked to see special tokens, whatever the request says by now."""
    asked = getattr(request, _ASKED, None)
    return getattr(request, "skip_special_tokens", True) is False if asked is None else asked is True


def special_tokens_shown(request: Any) -> bool:
    """Whether the detokenizer left special tokens in the text."""
    return getattr(request, "skip_special_tokens", True) is False


def declared_tools(tools: Sequence[Any] | None) -> list[Any]:
    """The function tools the model is shown: namespaces flattened, built-in tools left out."""
    if not tools:
        return []
    if (flatten := getattr(tool_utils, "get_function_tools", None)) is not None:
        return list(flatten(tools))
    functions: list[Any] = []
    for tool in tools:
        kind = getattr(tool, "type", None)
        if kind == "function":
            functions.append(tool)
        elif kind == "namespace":
            for inner in tool.tools:
                if inner.type == "function":
                    name = tool_utils.flat_namespace_tool_name(tool.name, inner.name)
                    fields = {**inner.model_dump(by_alias=True), "name": name}
                    functions.append(FunctionTool.model_validate(fields))
    return functions


# --- constrained calls ----------------------------------------------------------------------------

try:
    from vllm.tool_parsers import structural_tag_registry as _registry
except ImportError:  # a platform without xgrammar
    _registry = None
_LIMITS_CALLS = hasattr(_registry, "limit_to_single_tool_call")  # 0.32: parallel_tool_calls=false


@cache
def structural_tag_model(
    dialect: str, sentinels: tuple[tuple[str, int], ...], *, single: bool = False
) -> str | None:
    """Register the grammar of ``dialect`` with these token ids and return its name in vLLM's registry.

    vLLM hands a builder no tokenizer, hence a name for each set of ids.  None without xgrammar.
    """
    if _registry is None:
        return None
    ids = ",".join(str(number) for _, number in sentinels)
    name = f"{dialect}_fixed[{ids}]" + ("[single]" if single else "")

    def build(
        tools: list[Any], builtin_tools: list[Any], tool_choice: str, reasoning: bool, token_suffix: str = ""
    ) -> Any:
        from .. import grammar  # when it is wanted only: it is not small

        return grammar.structural_tag(
            tools,
            tool_choice,
            dialect=dialect,
            token_ids=dict(sentinels),
            parallel=not single,
            reasoning=reasoning,
        )

    _registry.register_vllm_structural_tag(name)(build)
    return name


def structural_tag(base: Callable[..., Any], request: Any, single_call_model: str | None, **options: Any) -> Any:
    """The structural tag for ``request``, or None.

    Args:
        base: the base class's ``get_structural_tag``, bound.
        request: a Chat or Responses request.
        single_call_model: the registered structural tag for one call.
        options: what this version of vLLM passes to ``get_structural_tag``.
    """
    tools = declared_tools(request.tools)
    if tools and tools != list(request.tools):
        request = request.model_copy(update={"tools": tools})
    tag = base(request, **options)
    if tag is None or single_call_model is None or request.parallel_tool_calls is not False:
        return tag
    options.pop("reasoning", None)
    return _registered_tag(single_call_model, request, tool_choice=request.tool_choice, **options)


def _registered_tag(model: str, request: Any, *, tool_choice: Any, **options: Any) -> Any:
    return _registry.get_model_structural_tag(
        model=model,
        tools=declared_tools(request.tools),
        tool_choice=tool_choice,
        reasoning=False,
        **options,
    )


def _is_plain_auto(request: Any) -> bool:
    """Whether at most one call is wanted, and nothing else constrains the request so far."""
    if request.parallel_tool_calls is not False or request.tool_choice not in ("auto", None):
        return False
    text = getattr(request, "text", None)  # Responses
    output_format = getattr(request, "response_format", None) or getattr(text, "format", None)
    return (
        getattr(request, "structured_outputs", None) is None
        and getattr(output_format, "type", "text") == "text"
        and envs.VLLM_ENFORCE_STRICT_TOOL_CALLING
    )


def _set_structural_tag(request: Any, tag: Any) -> None:
    if tag is not None:
        request.structured_outputs = StructuredOutputsParams(structural_tag=json.dumps(tag.model_dump()))


# --- the Responses endpoint -----------------------------------------------------------------------


def _keep_order_in_responses() -> None:
    """Let the Responses endpoint finish an open call before the content that follows it.

    Its ``split_delta`` puts a delta's content before its calls.  Where one delta holds the end of
    a call that is already open and then text, that would close the call too early and then open
    another without a name.
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


# --- the log --------------------------------------------------------------------------------------


class _WhereVllmLogs(logging.Handler):
    """Hands records to the handlers of vLLM's logger, which may be configured later than this."""

    def emit(self, record: logging.LogRecord) -> None:
        handlers = logging.getLogger("vllm").handlers
        if not handlers and not logging.getLogger().handlers and logging.lastResort is not None:
            handlers = [logging.lastResort]
        for handler in handlers:
            if record.levelno >= handler.level:
                handler.handle(record)


def show_log() -> None:
    """Send the package's log where vLLM's goes; vLLM configures its own loggers only."""
    ours = logging.getLogger("lfm2_fixed")
    if not ours.handlers:
        ours.addHandler(_WhereVllmLogs())
