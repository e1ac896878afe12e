"""The table of dialects: how each model family marks its tool calls."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Dialect:
    """How a model family marks tool calls."""

    name: str
    start: str
    """The sentinel that opens a block."""
    ends: tuple[str, ...]
    """The sentinels that end one; the first is the one the model pairs with ``start``."""
    special_tokens: tuple[str, ...]
    """Other special tokens of the family's tokenizers."""
    parser: str
    """The name of the tool parser for vLLM's ``--tool-call-parser``."""
    bare_lists: bool = False
    """A list may stand without sentinels."""
    echoes: bool = False
    """The model may repeat a block after its end."""


DIALECTS = {
    "lfm2": Dialect(
        "lfm2",
        "<|tool_call_start|>",
        ("<|tool_call_end|>",),
        (
            "<|pad|>", "<|startoftext|>", "<|endoftext|>", "<|fim_pre|>", "<|fim_mid|>", "<|fim_suf|>",
            "<|im_start|>", "<|im_end|>", "<|tool_list_start|>", "<|tool_list_end|>",
            "<|tool_response_start|>", "<|tool_response_end|>",
        ),
        "lfm2_fixed",
        echoes=True,
    ),
    "llama4": Dialect(
        "llama4",
        "<|python_start|>",
        ("<|python_end|>", "<|eom|>", "<|eot|>"),
        (
            "<|begin_of_text|>", "<|end_of_text|>", "<|header_start|>", "<|header_end|>", "<|step|>",
            "<|finetune_right_pad|>", "<|fim_prefix|>", "<|fim_middle|>", "<|fim_suffix|>",
        ),
        "llama4_pythonic_fixed",
        bare_lists=True,
    ),
}  # fmt: skip
