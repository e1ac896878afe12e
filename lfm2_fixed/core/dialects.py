"""The table of dialects: how each model family writes its tool calls.  Nothing else knows a family.

A new one is a row here.  The language inside a block is the same for all of them: calls as Python,
or the JSON form, separated by ``,`` ``;`` or newlines (contract 5 and 6).
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Dialect:
    """How a model family marks tool calls."""

    name: str
    parser: str
    """What vLLM's ``--tool-call-parser`` calls our parser for it."""
    stock: str
    """And vLLM's own, which ours is compared with."""
    start: str
    """The marker that opens a block."""
    ends: tuple[str, ...]
    """The markers that end one; the first is the one the model pairs with ``start``."""
    special_tokens: tuple[str, ...]
    """Other special tokens of the family's tokenizers: they are left out of content."""
    markers_are_tokens: bool = True
    """The markers are special tokens, which an engine leaves out of the text unless it is told not to."""
    bare_lists: bool = False
    """A list may stand without markers: at the start, or behind a blank where it names a declared tool."""
    json_answers: bool = False
    """A turn that begins with the JSON form of a declared tool's call is one, without markers."""
    newline_ends: bool = False
    """Behind a list without an end marker, a newline shows that it has ended (contract 4.7.5)."""
    echoes: bool = False
    """The model may repeat a block after its end (contract 6.6)."""
    opener: str = "["
    separator: str = ", "
    closer: str = "]"
    """How the model itself writes its calls in a block: around and between them."""

    @property
    def markers(self) -> tuple[str, ...]:
        """All of them."""
        return (self.start, *self.ends)

    @property
    def needs_markers(self) -> bool:
        """Whether there is no call without a marker before it."""
        return not self.bare_lists


_ALL = (
    Dialect(
        "lfm2",
        "lfm2_fixed",
        "lfm2",
        "<|tool_call_start|>",
        ("<|tool_call_end|>",),
        (
            "<|pad|>", "<|startoftext|>", "<|endoftext|>", "<|fim_pre|>", "<|fim_mid|>", "<|fim_suf|>",
            "<|im_start|>", "<|im_end|>", "<|tool_list_start|>", "<|tool_list_end|>",
            "<|tool_response_start|>", "<|tool_response_end|>",
        ),
        echoes=True,
    ),
    Dialect(
        "llama4",
        "llama4_pythonic_fixed",
        "llama4_pythonic",
        "<|python_start|>",
        ("<|python_end|>", "<|eom|>", "<|eot|>"),
        (
            "<|begin_of_text|>", "<|end_of_text|>", "<|header_start|>", "<|header_end|>", "<|step|>",
            "<|finetune_right_pad|>", "<|fim_prefix|>", "<|fim_middle|>", "<|fim_suffix|>",
        ),
        bare_lists=True,
        json_answers=True,
        newline_ends=True,
    ),
    # Llama 3.1 and 3.2, ToolACE and others that write bare lists; also LFM2 behind servers that strip its markers.
    Dialect(
        "pythonic",
        "pythonic_fixed",
        "pythonic",
        "<|python_tag|>",
        ("<|eom_id|>", "<|eot_id|>"),
        (
            "<|begin_of_text|>", "<|end_of_text|>", "<|start_header_id|>", "<|end_header_id|>", "<|step_id|>",
            "<|finetune_right_pad_id|>", "<|im_start|>", "<|im_end|>",
        ),
        bare_lists=True,
        json_answers=True,
        newline_ends=True,
    ),
    Dialect(
        "olmo3",
        "olmo3_fixed",
        "olmo3",
        "<function_calls>",
        ("</function_calls>",),
        (
            "<|endoftext|>", "<|im_start|>", "<|im_end|>", "<|pad|>", "<|endofprompt|>",
            "<|fim_prefix|>", "<|fim_middle|>", "<|fim_suffix|>",
        ),
        markers_are_tokens=False,
        opener="",
        separator="\n",
        closer="",
    ),
)  # fmt: skip

DIALECTS = {dialect.name: dialect for dialect in _ALL}
