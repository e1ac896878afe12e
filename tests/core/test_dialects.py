"""What people write on command lines and what models' tokenizers hold, written out once more."""

from __future__ import annotations

from lfm2_fixed.core.dialects import DIALECTS

NAMES = {
    "lfm2": ("lfm2_fixed", "lfm2"),
    "llama4": ("llama4_pythonic_fixed", "llama4_pythonic"),
    "pythonic": ("pythonic_fixed", "pythonic"),
    "olmo3": ("olmo3_fixed", "olmo3"),
}
"""By dialect: our parser and vLLM's own, as ``--tool-call-parser`` knows them."""
MARKERS = {
    "lfm2": ("<|tool_call_start|>", "<|tool_call_end|>"),
    "llama4": ("<|python_start|>", "<|python_end|>", "<|eom|>", "<|eot|>"),
    "pythonic": ("<|python_tag|>", "<|eom_id|>", "<|eot_id|>"),
    "olmo3": ("<function_calls>", "</function_calls>"),
}
SPECIAL = {
    "lfm2": """pad startoftext endoftext fim_pre fim_mid fim_suf im_start im_end tool_list_start tool_list_end
        tool_response_start tool_response_end""",
    "llama4": """begin_of_text end_of_text header_start header_end step finetune_right_pad fim_prefix fim_middle
        fim_suffix""",
    "pythonic": """begin_of_text end_of_text start_header_id end_header_id step_id finetune_right_pad_id im_start
        im_end""",
    "olmo3": "endoftext im_start im_end pad endofprompt fim_prefix fim_middle fim_suffix",
}
"""The tokens that never reach the content (contract 6.10), without the signs around them."""


def test_parsers() -> None:
    """A name that changes is a server that does not start."""
    assert {name: (row.parser, row.stock) for name, row in DIALECTS.items()} == NAMES


def test_markers() -> None:
    """They are the model's, letter by letter."""
    assert {name: row.markers for name, row in DIALECTS.items()} == MARKERS


def test_special_tokens() -> None:
    """So are these."""
    written = {name: {f"<|{word}|>" for word in words.split()} for name, words in SPECIAL.items()}
    assert {name: set(row.special_tokens) for name, row in DIALECTS.items()} == written
