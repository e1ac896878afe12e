"""A turn of a model, as vLLM's serving layer takes it and hands it on."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any

from tokenizers import AddedToken, Tokenizer, decoders, models, pre_tokenizers
from transformers import PreTrainedTokenizerFast
from vllm.entrypoints.openai.chat_completion.protocol import ChatCompletionRequest
from vllm.entrypoints.openai.responses.protocol import ResponsesRequest
from vllm.parser.parser_manager import ParserManager
from vllm.tool_parsers import ToolParserManager

import lfm2_fixed
from lfm2_fixed.core.dialects import DIALECTS

PLUGIN = Path(lfm2_fixed.__file__).with_name("parser.py")
NAMES = {dialect.name: dialect.parser for dialect in DIALECTS.values()}

S, E = "<|tool_call_start|>", "<|tool_call_end|>"
SPECIAL = {
    "lfm2": ["<|pad|>", "<|startoftext|>", "<|endoftext|>", "<|im_start|>", "<|im_end|>", S, E],
    "llama4": ["<|endoftext|>", "<|eot|>", "<|eom|>", "<|python_start|>", "<|python_end|>", "<|fim_pre|>"],
    "pythonic": ["<|endoftext|>", "<|eot_id|>", "<|eom_id|>", "<|python_tag|>", "<|start_header_id|>"],
    "olmo3": ["<|endoftext|>", "<|im_start|>", "<|im_end|>"],  # its markers are plain text
    "plain": ["<|endoftext|>"],
}
NOT_SPECIAL = ["<think>", "</think>"]  # added, but not special, as in models that reason

ToolCalls = list[tuple[str, str]]


@cache
def tokenizer(kind: str = "lfm2") -> PreTrainedTokenizerFast:
    """A byte-level tokenizer with the special tokens of a dialect."""
    alphabet = sorted(pre_tokenizers.ByteLevel.alphabet())
    backend = Tokenizer(models.BPE(vocab={char: number for number, char in enumerate(alphabet)}, merges=[]))
    backend.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    backend.decoder = decoders.ByteLevel()
    backend.add_special_tokens([AddedToken(text, special=True) for text in SPECIAL[kind]])
    backend.add_tokens([AddedToken(text, special=False) for text in NOT_SPECIAL])
    # As in real tokenizers, not every special token has a role.
    return PreTrainedTokenizerFast(tokenizer_object=backend, eos_token="<|endoftext|>")


@cache
def token_ids(kind: str, text: str) -> list[int]:
    """What a text is encoded as; nobody changes the list."""
    return list(tokenizer(kind).encode(text, add_special_tokens=False))


def tool(name: str, *parameters: str, strict: bool | None = None, **schema: Any) -> dict[str, Any]:
    """A tool of the Chat API, every parameter a string unless ``schema`` has its own properties."""
    properties = {parameter: {"type": "string"} for parameter in parameters}
    function: dict[str, Any] = {
        "name": name,
        "parameters": {"type": "object", "properties": properties, **schema},
    }
    if strict is not None:
        function["strict"] = strict
    return {"type": "function", "function": function}


WEATHER = tool("get_weather", "city", required=["city"])


def chat(tools: Sequence[dict[str, Any]] | None = (WEATHER,), **fields: Any) -> ChatCompletionRequest:
    """A Chat request as the HTTP layer makes it from JSON."""
    body: dict[str, Any] = {"model": "m", "messages": [{"role": "user", "content": "hi"}], **fields}
    if tools is not None:
        body["tools"] = list(tools)
    return ChatCompletionRequest.model_validate(body)


def responses(tools: Sequence[dict[str, Any]] | None = (WEATHER,), **fields: Any) -> ResponsesRequest:
    """The same for the Responses API."""
    flat = [{"type": "function", **one["function"]} if "function" in one else one for one in tools or ()]
    return ResponsesRequest.model_validate({"model": "m", "input": "hi", "tools": flat, **fields})


def load() -> None:
    """Load the plugin as ``--tool-parser-plugin`` does."""
    ToolParserManager.import_tool_parser(str(PLUGIN))


_load_once = cache(load)
"""As a server does: executing the plugin's file takes a third of what a case takes."""


def parser_class(dialect: str = "lfm2", reasoning: str | None = None) -> Any:
    """The class the server would use."""
    _load_once()
    return ParserManager.get_parser(
        tool_parser_name=NAMES[dialect], reasoning_parser_name=reasoning, enable_auto_tools=True
    )


def parser(dialect: str = "lfm2", request: Any = None, reasoning: str | None = None) -> Any:
    """A parser for one request, as the server makes it."""
    return parser_class(dialect, reasoning)(tokenizer(dialect), request.tools if request is not None else None)


def adjusted(request: Any, dialect: str = "lfm2", reasoning: str | None = None) -> Any:
    """The request as it goes to the engine; the parser that adjusts it is thrown away."""
    return parser(dialect, request, reasoning).adjust_request(request)


@dataclass
class Turn:
    """What a client puts together."""

    content: str = ""
    reasoning: str = ""
    calls: ToolCalls = field(default_factory=list)
    ids: list[str] = field(default_factory=list)
    chunks: list[dict[str, Any]] = field(default_factory=list)
    """Every delta as it goes over the wire."""


PROMPT = (0,)
"""The ids of a prompt that says nothing."""


def whole(
    text: str, request: Any, dialect: str = "lfm2", reasoning: str | None = None, *, prompt: Sequence[int] = PROMPT
) -> Turn:
    """Not streamed."""
    one = parser(dialect, request, reasoning)
    # As the Chat endpoint does it: before the answer is generated, and, in newer versions, behind it.
    one.is_reasoning_end(list(prompt))
    if hasattr(one, "set_prompt_token_ids"):
        one.set_prompt_token_ids(list(prompt))
    thoughts, content, calls = one.parse(text, request, enable_auto_tools=True)
    calls = calls or []
    return Turn(
        content=content or "",
        reasoning=thoughts or "",
        calls=[(call.name, call.arguments) for call in calls],
        ids=[call.id for call in calls],
    )


def streamed(
    pieces: Iterable[str],
    request: Any,
    dialect: str = "lfm2",
    reasoning: str | None = None,
    *,
    finish: bool = True,
    prompt: Sequence[int] = PROMPT,
) -> Turn:
    """Streamed; the wire's rules are checked on every delta."""
    one = parser(dialect, request, reasoning)
    pieces = list(pieces) or [""]
    turn = Turn()
    for number, piece in enumerate(pieces):
        last = finish and number == len(pieces) - 1
        # Only reasoning parsers look at the ids.
        ids = token_ids(dialect, piece) if reasoning else [1]
        message = one.parse_delta(piece, ids, request, prompt_token_ids=list(prompt), finished=last)
        if message is not None:
            take(turn, json.loads(message.model_dump_json(exclude_unset=True)))
    return turn


def take(turn: Turn, chunk: dict[str, Any]) -> None:
    """Add one delta to a turn, strictly."""
    turn.chunks.append(chunk)
    assert set(chunk) <= {"content", "reasoning", "tool_calls", "role"}, chunk
    turn.content += chunk.get("content") or ""
    turn.reasoning += chunk.get("reasoning") or ""
    for call in chunk.get("tool_calls", ()):
        if call["index"] == len(turn.calls):
            assert set(call) == {"index", "id", "type", "function"}, call
            assert call["id"].startswith("chatcmpl-tool-") and call["type"] == "function"
            assert set(call["function"]) == {"name", "arguments"}, call
            turn.calls.append((call["function"]["name"], ""))
            turn.ids.append(call["id"])
        else:
            assert call["index"] == len(turn.calls) - 1, "only the last call may go on"
            assert set(call) == {"index", "function"} and set(call["function"]) == {"arguments"}, call
        name, arguments = turn.calls[-1]
        assert call["function"]["arguments"], "an empty delta"
        turn.calls[-1] = (name, arguments + call["function"]["arguments"])
