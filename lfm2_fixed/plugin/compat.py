"""All that the parsers use of vLLM, in the one place that knows that its versions differ (0.26.0 and newer).

Importing this module imports vLLM's base classes of parsers.  What differs between versions is found by
looking for the feature, never by comparing version numbers.  A name that moves is changed here and nowhere else.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from types import SimpleNamespace
from typing import Any

from .versions import unusable

try:
    import vllm.envs as envs
    from openai.types.responses import FunctionTool
    from vllm.entrypoints.openai.responses.protocol import ResponsesRequest
    from vllm.parser import abstract_parser
    from vllm.parser.abstract_parser import DelegatingParser, Parser
    from vllm.reasoning import ReasoningParser, ReasoningParserManager
    from vllm.sampling_params import StructuredOutputsParams
    from vllm.tool_parsers import utils as tool_utils

    # Their home moved in 0.29, from vllm.entrypoints.openai.engine.protocol to vllm.entrypoints.generate.base.protocol;
    # these two modules have always had them.
    from vllm.tool_parsers.abstract_tool_parser import (
        DeltaMessage,
        ExtractedToolCallInformation,
        ToolParser,
        ToolParserManager,
    )
    from vllm.tool_parsers.utils import DeltaFunctionCall, DeltaToolCall, FunctionCall, ToolCall
except ImportError as error:
    raise unusable(error) from error
if not hasattr(ToolParser, "engine_based_streaming"):
    raise unusable(None)

try:
    from vllm.tool_parsers import structural_tag_registry
except ImportError:  # a platform without xgrammar
    structural_tag_registry = None

__all__ = [
    "DelegatingParser",
    "DeltaFunctionCall",
    "DeltaMessage",
    "DeltaToolCall",
    "ExtractedToolCallInformation",
    "FunctionCall",
    "LIMITS_CALLS",
    "PASSES_PROMPT_ON",
    "ReasoningParser",
    "ReasoningParserManager",
    "ResponsesRequest",
    "StructuredOutputsParams",
    "TELLS_WHERE_A_STREAM_BEGINS",
    "ToolCall",
    "ToolParser",
    "ToolParserManager",
    "enforces_calls",
    "function_tools",
    "keeps_content",
    "structural_tag_registry",
]

LIMITS_CALLS = hasattr(structural_tag_registry, "limit_to_single_tool_call")
"""vLLM itself constrains ``parallel_tool_calls=false``, also with plain ``auto`` (0.32)."""

PASSES_PROMPT_ON = "set_prompt_token_ids" in vars(DelegatingParser) or not hasattr(Parser, "set_prompt_token_ids")
"""A reasoning parser is told the prompt before a whole answer is parsed (0.33), or there is nobody who tells (0.26).
In between the parser around it is told, and keeps it to itself."""

TELLS_WHERE_A_STREAM_BEGINS = {"prompt_reasoning_checked", "reasoning_ended"} <= set(
    getattr(getattr(abstract_parser, "StreamState", None), "__dataclass_fields__", ())
)
"""The state of a stream (``Parser._stream_state``) can be told whether its text may begin with a thought."""


def enforces_calls() -> bool:
    """Whether grammars of calls are allowed (``VLLM_ENFORCE_STRICT_TOOL_CALLING``)."""
    return bool(envs.VLLM_ENFORCE_STRICT_TOOL_CALLING)


def function_tools(tools: Sequence[Any] | None) -> list[Any]:
    """vLLM's function tools among its ``tools``: namespaces flattened, built-in tools left out.

    For vLLM's own functions, which take its objects only.  What the parsers need to know of tools they read
    themselves, in any shape (``core.tools``).
    """
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


@cache
def keeps_content(engine_based: bool) -> bool:
    """Whether the content that a tool parser found without any call is what the client gets.

    Versions before 0.33 give the raw text instead, markup and all, unless ``tools_called`` is True; later ones do so
    where a parser of the old kind takes part (``engine_based`` is False).  Found out by trying: vLLM's own code is
    given a tool parser that found the text "content" in the text "raw".
    """
    try:
        parser = _Trial.__new__(_Trial)
        parser._tool_parser = SimpleNamespace(supports_required_and_named=False)
        parser._engine_based = engine_based
        request = SimpleNamespace(tool_choice="auto", tools=[])
        _, content = parser._extract_tool_calls("raw", request, enable_auto_tools=True)
    except Exception:  # a version that is built in another way: the answer that loses nothing
        return False
    return bool(content == "content")


class _Trial(DelegatingParser):  # type: ignore[misc]
    def extract_tool_calls(self, model_output: str, request: Any) -> ExtractedToolCallInformation:
        return ExtractedToolCallInformation(tools_called=False, tool_calls=[], content="content")
