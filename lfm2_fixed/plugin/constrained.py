"""Constrained calls: the grammar of this model's own call format, in vLLM's hands."""

from __future__ import annotations

import json
from collections.abc import Callable
from functools import cache
from typing import Any

from .compat import (
    LIMITS_CALLS,
    ResponsesRequest,
    StructuredOutputsParams,
    enforces_calls,
    function_tools,
    structural_tag_registry,
)
from .patches import keep_order_in_responses
from .request import forbids_calls, remember_special_tokens


@cache
def structural_tag_model(dialect: str, sentinels: tuple[tuple[str, int], ...], *, single: bool = False) -> str | None:
    """Register the grammar of ``dialect`` with these token ids and return its name in vLLM's registry.

    vLLM hands a builder no tokenizer, hence a name for each set of ids.  None without xgrammar.
    """
    if structural_tag_registry is None:
        return None
    ids = ",".join(str(number) for _, number in sentinels)
    name = f"{dialect}_fixed[{ids}]" + ("[single]" if single else "")

    def build(
        tools: list[Any], builtin_tools: list[Any], tool_choice: str, reasoning: bool, token_suffix: str = ""
    ) -> Any:
        import xgrammar.structural_tag

        from .. import grammar  # when it is wanted only: it is not small

        formats: Any = xgrammar.structural_tag
        tag = grammar.structural_tag(
            tools,
            tool_choice,
            dialect=dialect,
            token_ids=dict(sentinels),
            parallel=not single,
            reasoning=reasoning,
            counters="max_chars" in formats.AnyTextFormat.model_fields,
        )
        return None if tag is None else formats.StructuralTag.model_validate(tag)

    structural_tag_registry.register_vllm_structural_tag(name)(build)
    return name


def structural_tag(
    base: Callable[..., Any], request: Any, single_call_model: str | None, thought_before: str | None, **options: Any
) -> Any:
    """The structural tag for ``request``, or None.

    Args:
        base: the base class's ``get_structural_tag``, bound.
        request: a Chat or Responses request.
        single_call_model: the registered structural tag for one call.
        thought_before: the dialect, if the answer may begin with a thought that the grammar must let through.
        options: what this version of vLLM passes to ``get_structural_tag``.
    """
    tools = function_tools(request.tools)
    if tools and tools != list(request.tools):
        request = request.model_copy(update={"tools": tools})
    tag = base(request, **options)
    if tag is None:
        return None
    if single_call_model is not None and request.parallel_tool_calls is False:
        options.pop("reasoning", None)
        tag = _registered_tag(single_call_model, request, tool_choice=request.tool_choice, **options)
    if thought_before is not None and request.tool_choice not in ("auto", None):
        # With ``auto`` the grammar lets any text through, and so a thought.
        from ..grammar import after_thought

        tag = type(tag).model_validate(after_thought(tag.model_dump(), thought_before))
    return tag


def show_sentinels(request: Any, single_call_model: str | None) -> None:
    """Let the sentinels reach the parser, and constrain what vLLM's own hooks leave unconstrained.

    Args:
        request: a Chat or Responses request; changed in place.
        single_call_model: the registered structural tag for at most one call, None for no tag.
    """
    if not request.tools or forbids_calls(request):
        return
    remember_special_tokens(request)
    request.skip_special_tokens = False
    if isinstance(request, ResponsesRequest):
        keep_order_in_responses()
    if single_call_model is not None and not LIMITS_CALLS and _is_plain_auto(request):
        tag = _registered_tag(single_call_model, request, tool_choice=None)
        if tag is not None:
            request.structured_outputs = StructuredOutputsParams(structural_tag=json.dumps(tag.model_dump()))


def _registered_tag(model: str, request: Any, *, tool_choice: Any, **options: Any) -> Any:
    return structural_tag_registry.get_model_structural_tag(
        model=model,
        tools=function_tools(request.tools),
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
        and enforces_calls()
    )
