"""What is patched in vLLM is what ``PATCHES`` says, and other parsers are served as before."""

from __future__ import annotations

import importlib
import re
from pathlib import Path
from types import MethodType
from typing import Any

import pytest
from vllm.parser.abstract_parser import DelegatingParser, Parser
from vllm.parser.parser_manager import ParserManager

from tests.support import served

served.load()

from lfm2_fixed.plugin import patches  # noqa: E402


def resolved(target: str) -> Any:
    """The function of that name in this vLLM."""
    module, _, name = target.rpartition(".")
    try:
        return getattr(importlib.import_module(module), name)
    except ModuleNotFoundError:
        module, _, class_name = module.rpartition(".")
        return getattr(getattr(importlib.import_module(module), class_name), name)


@pytest.mark.parametrize("patch", patches.PATCHES, ids=[patch.target.rpartition(".")[2] for patch in patches.PATCHES])
def test_every_patch_is_there(patch: patches.Patch) -> None:
    assert patch.why and patch.until
    if patch.target.startswith("vllm.entrypoints.openai.responses"):
        return  # test_responses: the module cannot be imported without an engine
    if not patch.target.startswith("vllm.parser."):
        return  # test_beside: they wait for their modules
    if patch.target.endswith("set_prompt_token_ids"):
        # Where somebody tells the prompt, it arrives (test_reasoning_parser); where nobody does, nothing is added.
        assert hasattr(DelegatingParser, "set_prompt_token_ids") == hasattr(Parser, "set_prompt_token_ids")
        return
    function = resolved(patch.target)
    assert function.__module__ == "vllm.parser.abstract_parser" and function.__wrapped__ is not None
    assert function.__code__.co_filename == patches.__file__


def test_no_other_module_patches() -> None:
    """Nothing of vLLM's is assigned to elsewhere."""
    plugin = Path(patches.__file__).parent
    for file in [*plugin.glob("*.py"), plugin.parent / "parser.py"]:
        for line in file.read_text(encoding="utf-8").splitlines():
            assigned = re.match(
                r"\s*((DelegatingParser|Parser|ToolParser|serving|tool_utils|abstract_parser)\.\w+) = ", line
            )
            assert assigned is None or file.name == "patches.py", (file.name, line)


def without_ids(text: str | None) -> str:
    return re.sub(r'"id":"[^"]+"', "", text or "")


@pytest.mark.parametrize("reasoning", [None, "qwen3", "deepseek_r1"])
def test_other_parsers_are_served_as_before(reasoning: str | None) -> None:
    """vLLM's own ``pythonic``, through its own methods and through the patched ones: the same."""

    def own(name: str) -> Any:
        return getattr(DelegatingParser, name).__wrapped__

    parser = ParserManager.get_parser(
        tool_parser_name="pythonic", reasoning_parser_name=reasoning, enable_auto_tools=True
    )
    assert parser is not None
    plain = type(
        "Plain", (parser,), {name: own(name) for name in ("adjust_request", "parse_delta", "extract_tool_calls")}
    )
    text = "<think>hm</think>[get_weather(city='Paris')]"
    said: list[Any] = []
    for kind in (parser, plain):
        request = kind(served.tokenizer("lfm2"), None).adjust_request(served.chat())
        one = kind(served.tokenizer("lfm2"), request.tools)
        reasons, content, calls = one.parse(text, request, enable_auto_tools=True)
        stream = kind(served.tokenizer("lfm2"), request.tools)
        deltas = [
            stream.parse_delta(
                piece, served.tokenizer("lfm2").encode(piece), request, prompt_token_ids=[0], finished=number == 3
            )
            for number, piece in enumerate(["<think>", "hm", "</think>", text.removeprefix("<think>hm</think>")])
        ]
        found = [(call.name, call.arguments) for call in calls or ()]
        wire = [delta and delta.model_dump_json(exclude_unset=True) for delta in deltas]
        adjusted = (request.skip_special_tokens, request.structured_outputs, request.response_format)
        said.append((adjusted, reasons, content, found, [without_ids(one) for one in wire]))
    assert said[0] == said[1]


def test_a_stream_goes_past_the_patch_after_its_first_delta() -> None:
    request = served.adjusted(served.chat())
    parser = served.parser(request=request)
    parser.parse_delta("a", [1], request, prompt_token_ids=[0], finished=False)
    assert isinstance(parser.parse_delta, MethodType)
    assert parser.parse_delta.__func__ is DelegatingParser.parse_delta.__wrapped__
