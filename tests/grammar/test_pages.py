"""What docs/constrained.md shows for Python is run, with a vocabulary of single bytes."""

from __future__ import annotations

import re
from types import SimpleNamespace

import xgrammar

from tests.support import ROOT

START, END = "<|tool_call_start|>", "<|tool_call_end|>"


def test_the_pages_example_compiles() -> None:
    (block,) = re.findall(r"^```python\n(.*?)^```$", (ROOT / "docs" / "constrained.md").read_text("utf-8"), re.M | re.S)
    words = [*(chr(code) for code in range(32, 127)), "\n", "<|im_end|>", START, END]
    function = {"name": "f", "parameters": {"type": "object", "properties": {"a": {"type": "integer"}}}}
    names = {
        "tools": [{"type": "function", "function": function}],
        "tokenizer": SimpleNamespace(get_vocab=lambda: {word: number for number, word in enumerate(words)}),
        "tokenizer_info": xgrammar.TokenizerInfo(words, stop_token_ids=[words.index("<|im_end|>")]),
        "xgrammar": xgrammar,
    }
    exec(compile(block.rstrip() + "\n", "docs/constrained.md", "exec"), names)
    grammar = xgrammar.GrammarCompiler(names["tokenizer_info"]).compile_structural_tag(names["tag"])
    matcher = xgrammar.GrammarMatcher(grammar)
    assert all(matcher.accept_token(words.index(word)) for word in [START, *"[f(a=1)]", END])
    assert not xgrammar.GrammarMatcher(grammar).accept_token(words.index("x"))
