"""The parsers under comparison: each a function from a turn to its completed calls.

Ours reads the whole text, and a sample of the texts in pieces too.  The stock parsers of vLLM and SGLang's detector
read whole texts: the answer of a non-streaming request.  Each runs where its package can be imported; ``__main__``
starts a process for each.
"""

from __future__ import annotations

import json
import logging
from collections.abc import Callable

from .example import TOOLS, Call, Example, as_openai, dump

Parser = Callable[[Example], list[Call]]


def ours() -> tuple[str, Parser]:
    """This package, whole texts."""
    from lfm2_fixed import __version__, parse

    logging.getLogger("lfm2_fixed").setLevel(logging.ERROR)  # a warning for each call given back
    tools = as_openai(TOOLS)

    def read(example: Example) -> list[Call]:
        result = parse(example.text, "lfm2", tools if example.declared else None)
        return [(call.name, call.arguments) for call in result.calls]

    return f"lfm2-fixed {__version__}", read


def vllm() -> tuple[str, Parser]:
    """vLLM's own parser.  Raises ImportError where vLLM cannot be imported."""
    from ..subjects import _tokenizer

    import vllm as package  # isort: skip
    from vllm.entrypoints.openai.chat_completion.protocol import ChatCompletionRequest
    from vllm.tool_parsers import ToolParserManager

    logging.getLogger("vllm").setLevel(logging.CRITICAL)  # stock parsers log a traceback for each text they refuse
    tokenizer = _tokenizer()
    parser = ToolParserManager.get_tool_parser("lfm2")

    def request(declared: bool) -> ChatCompletionRequest:
        asked = {"model": "m", "messages": [{"role": "user", "content": "x"}]}
        if declared:
            asked |= {"tools": as_openai(TOOLS), "tool_choice": "auto"}
        return ChatCompletionRequest.model_validate(asked)

    requests = {declared: request(declared) for declared in (True, False)}

    def read(example: Example) -> list[Call]:
        asked = requests[example.declared]
        answer = parser(tokenizer, asked.tools).extract_tool_calls(example.text, asked)
        return [_canonical(call.function.name, call.function.arguments) for call in answer.tool_calls]

    return f"vLLM {package.__version__}", read


def sglang() -> tuple[str, Parser]:
    """SGLang's detector, which needs to know the tools: it is always told.  Raises ImportError without it."""
    from ..subjects import sglang_parts

    name, detectors, tool = sglang_parts()
    tools = [tool.model_validate(one) for one in as_openai(TOOLS)]
    logging.disable(logging.CRITICAL)  # it logs every call it drops

    def read(example: Example) -> list[Call]:
        answer = detectors["lfm2"]().detect_and_parse(example.text, tools)
        return [_canonical(call.name, call.parameters) for call in answer.calls]

    return name, read


def _canonical(name: str, arguments: str) -> Call:
    """Their argument text, written as ours is: only the values are compared."""
    try:
        return name, dump(json.loads(arguments))
    except ValueError:
        return name, arguments


PARSERS = {"ours": ours, "vllm": vllm, "sglang": sglang}
