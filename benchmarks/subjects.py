"""What is measured: one stream, as a function that takes a delta.

A subject is made for each stream: ``feed, finish = subject(shape)``.  What ``feed`` and ``finish``
answer can be put together by ``Collected`` where the result is checked; when time is measured it
is dropped.
"""

from __future__ import annotations

import importlib
import logging
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

from lfm2_fixed.core.dialects import DIALECTS, Dialect

from .texts import END, START, TOOLS, Shape

Feed = Callable[[str], Any]


class Stream(NamedTuple):
    """One stream under measurement."""

    feed: Feed
    finish: Callable[[], Any]


Subject = Callable[[Shape], Stream]


class Collected:
    """Calls and content put together from the answers of a stream."""

    def __init__(self) -> None:
        self.names: dict[int, str] = {}
        self.arguments: dict[int, str] = {}
        self.content = ""

    def add(self, answer: Any) -> None:
        """A vLLM delta, a list of machine events, or an SGLang result."""
        if answer is None:
            return
        if isinstance(answer, list):
            for event in answer:
                self._add_event(event)
        elif hasattr(answer, "normal_text"):
            self.content += answer.normal_text or ""
            for call in answer.calls:
                self._add_call(call.tool_index, call.name, call.parameters)
        else:
            self.content += answer.content or ""
            for call in answer.tool_calls or ():
                self._add_call(call.index, call.function.name, call.function.arguments)

    def _add_event(self, event: Any) -> None:
        kind = type(event).__name__
        if kind == "Content":
            self.content += event.text
        elif kind == "CallStart":
            self._add_call(event.index, event.name, "")
        elif kind == "ArgumentsDelta":
            self._add_call(event.index, None, event.text)

    def _add_call(self, index: int, name: str | None, arguments: str | None) -> None:
        if name:
            self.names[index] = name
        self.arguments[index] = self.arguments.get(index, "") + (arguments or "")

    @property
    def calls(self) -> list[tuple[str, str]]:
        """Name and argument text of each call, in order."""
        return [(self.names.get(index, ""), self.arguments[index]) for index in sorted(self.arguments)]


def machine() -> Subject:
    """The engine-free machine alone."""
    from lfm2_fixed import PythonicStream

    def start(shape: Shape) -> Stream:
        stream = PythonicStream(shape.dialect, TOOLS)
        return Stream(stream.feed, stream.finish)

    return start


# ---- SGLang ------------------------------------------------------------------------------------

_SGLANG = ("sglang.srt", "llm_router_utils.sglang.srt")
_DETECTORS = {"lfm2": ("lfm2_detector", "Lfm2Detector"), "llama4": ("pythonic_detector", "PythonicDetector")}


def sglang_parts() -> tuple[str, dict[str, Any], Any]:
    """The package SGLang's detectors come from, the detectors by dialect, and its class of a declared tool.

    Raises ImportError, with a reason, where neither ``sglang`` nor ``llm-router-utils`` can be imported.
    """
    reasons = []
    for package in _SGLANG:
        name = package.split(".")[0]
        try:
            detectors = {
                dialect: getattr(importlib.import_module(f"{package}.function_call.{module}"), detector)
                for dialect, (module, detector) in _DETECTORS.items()
            }
            tool = importlib.import_module(f"{package}.entrypoints.openai.protocol").Tool
        except Exception as error:  # what a half-installed package raises is up to it
            reasons.append(f"{name}: {error}")
            continue
        return name.replace("_", "-"), detectors, tool
    raise ImportError("; ".join(reasons))


def sglang() -> tuple[str, Subject]:
    """SGLang's detectors as subjects, and the package they come from.  Raises ImportError without it."""
    name, detectors, tool = sglang_parts()
    return name, _sglang_subject(detectors, [tool.model_validate(one) for one in TOOLS])


def _sglang_subject(detectors: dict[str, Any], tools: list[Any]) -> Subject:
    def start(shape: Shape) -> Stream:
        detector = detectors[shape.dialect]()
        return Stream(lambda text: detector.parse_streaming_increment(text, tools), lambda: None)

    return start


# ---- vLLM --------------------------------------------------------------------------------------


class Serving:
    """vLLM's serving layer: its ``parse_delta`` around any registered tool parser."""

    def __init__(self) -> None:
        os.environ.setdefault("VLLM_LOGGING_LEVEL", "ERROR")
        import vllm
        from vllm.tool_parsers import ToolParserManager

        import lfm2_fixed

        self.version = str(getattr(vllm, "__version__", "unknown"))
        self._tokenizer = _tokenizer()
        ToolParserManager.import_tool_parser(str(Path(lfm2_fixed.__file__).with_name("parser.py")))
        _register_floors()
        logging.getLogger("vllm").setLevel(logging.CRITICAL)  # stock parsers log a traceback a delta
        self._request = _request()

    def subjects(self) -> dict[str, Subject]:
        """The subjects by name."""
        return {
            "ours": self._subject(lambda dialect: dialect.parser),
            "stock": self._subject(lambda dialect: dialect.stock),
            "floor": self._subject(lambda _: "floor_built"),
            "unvalidated": self._subject(lambda _: "floor_unvalidated"),
            "ready": self._subject(lambda _: "floor_ready"),
            "text": self._subject(lambda _: "floor_text"),
        }

    def _subject(self, parser_of: Callable[[Dialect], str]) -> Subject:
        """``parser_of``: what ``--tool-call-parser`` calls the parser of a dialect."""
        from vllm.parser.parser_manager import ParserManager

        request = self._request
        # All of them now: no import of vLLM's is to fall into a measurement.
        classes = {
            name: ParserManager.get_parser(tool_parser_name=parser_of(dialect), enable_auto_tools=True)
            for name, dialect in DIALECTS.items()
        }
        vocabulary = self._tokenizer.get_vocab()

        def start(shape: Shape) -> Stream:
            parser = classes[shape.dialect](self._tokenizer, request.tools)
            parse_delta = parser.parse_delta
            sentinels = {text: [vocabulary[text]] for text in (START, END)}
            other = [vocabulary["a"]]

            def feed(text: str) -> Any:
                return parse_delta(text, sentinels.get(text, other), request, [0], finished=False)

            return Stream(feed, lambda: parse_delta("", [], request, [0], finished=True))

        return start


def _tokenizer() -> Any:
    from tokenizers import (  # type: ignore[import-not-found,unused-ignore]
        AddedToken,
        Tokenizer,
        decoders,
        models,
        pre_tokenizers,
    )
    from transformers import PreTrainedTokenizerFast

    alphabet = sorted(pre_tokenizers.ByteLevel.alphabet())
    backend = Tokenizer(models.BPE(vocab={char: number for number, char in enumerate(alphabet)}, merges=[]))
    backend.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    backend.decoder = decoders.ByteLevel()
    special = ["<|im_end|>", START, END, "<|python_start|>", "<|python_end|>", "<|eom|>", "<|eot|>"]
    backend.add_special_tokens([AddedToken(text, special=True) for text in special])
    return PreTrainedTokenizerFast(tokenizer_object=backend, eos_token="<|im_end|>")


def _request() -> Any:
    from vllm.entrypoints.openai.chat_completion.protocol import ChatCompletionRequest

    return ChatCompletionRequest.model_validate(
        {"model": "m", "messages": [{"role": "user", "content": "x"}], "tools": TOOLS, "tool_choice": "auto"}
    )


def _register_floors() -> None:
    """Parsers that parse nothing: what a delta costs at least."""
    from vllm.tool_parsers.abstract_tool_parser import DeltaMessage, ToolParser, ToolParserManager
    from vllm.tool_parsers.utils import DeltaFunctionCall, DeltaToolCall

    from lfm2_fixed.plugin.messages import arguments_delta, delta

    def call() -> Any:
        return DeltaMessage(tool_calls=[DeltaToolCall(index=0, function=DeltaFunctionCall(arguments="abcd"))])

    class Built(ToolParser):  # type: ignore[misc]
        """The same call delta every time, made with pydantic as vLLM's own parsers make it."""

        engine_based_streaming = True

        def extract_tool_calls_streaming(self, *arguments: Any) -> Any:
            return call()

        def finish_streaming(self) -> Any:
            return None

    class Unvalidated(Built):
        """The same call delta every time, made as this package makes its own: what is left is the parsing."""

        def extract_tool_calls_streaming(self, *arguments: Any) -> Any:
            return delta("", [arguments_delta(0, "abcd")])

    class Ready(Built):
        """The same object every time: what ``parse_delta`` costs by itself."""

        answer = call()

        def extract_tool_calls_streaming(self, *arguments: Any) -> Any:
            return self.answer

    class Text(Built):
        """The delta passed through as content."""

        def extract_tool_calls_streaming(self, previous: str, current: str, text: str, *others: Any) -> Any:
            return DeltaMessage(content=text)

    for name, parser in (("built", Built), ("unvalidated", Unvalidated), ("ready", Ready), ("text", Text)):
        ToolParserManager.register_module(f"floor_{name}", force=True, module=parser)
