"""What the mask allows the matcher takes, and the other way round: a difference is an error in the engine."""

from __future__ import annotations

from typing import Any

import pytest

xgr = pytest.importorskip("xgrammar", reason="the grammar needs xgrammar, which comes with vLLM")

from lfm2_fixed.grammar import charsets, rules  # noqa: E402

from . import support  # noqa: E402
from .support import END, IDS, START, VOCABULARY, accepts, compiled, tag_for, tool  # noqa: E402

SCRIPTS = "한국어 하하 \ud7a3\ud7ff\ue000 Ω中文 かな العربية हिन्दी 😀🇳🇴 \U0010ffff é"


def string_grammar(**limits: Any) -> Any:
    schema = {"type": "object", "properties": {"x": {"type": "string", **limits}}, "required": ["x"]}
    return compiled(tag_for([tool(schema)]))


def masks_agree(grammar: Any, text: str) -> bool:
    """Whether ``text`` is accepted; fails where mask and matcher differ about one of its tokens."""
    matcher = xgr.GrammarMatcher(grammar)
    mask = xgr.allocate_token_bitmask(1, len(VOCABULARY))
    for token in support.tokens_of(text):
        matcher.fill_next_token_bitmask(mask)
        allowed = bool(int(mask[0][token // 32]) >> (token % 32) & 1)
        accepted = matcher.accept_token(token)
        assert allowed == accepted, (text, VOCABULARY[token])
        if not accepted:
            return False
    return bool(matcher.accept_token(IDS[support.STOP]))


@pytest.mark.parametrize("low", [0, 1, 47, 48, 49, 64])
@pytest.mark.parametrize("high", [None, 64, 127, 128, 129, 200, 300])
def test_limits_of_all_lengths(low: int, high: int | None) -> None:
    grammar = string_grammar(minLength=low, **({} if high is None else {"maxLength": high}))
    most = 320 if high is None else high
    for length in sorted({low - 1, low, (low + most) // 2, most, most + 1}):
        text = (SCRIPTS * 20)[: max(length, 0)]
        fits = low <= length <= most or (high is None and length >= low)
        if length >= 0:
            assert masks_agree(grammar, f'{START}[f(x="{text}")]{END}') == fits, length


def test_a_long_lower_limit_is_relaxed_and_takes_everything() -> None:
    for low in (100, 200, 2**40):
        grammar = string_grammar(minLength=low)
        for text in ("a" * 300, "it's\\n" * 60, "a | b" * 60, "\\u00e9<" * 60, '\\"' * 200):
            assert masks_agree(grammar, f'{START}[f(x="{text}")]{END}'), (low, text)
        assert not masks_agree(grammar, f'{START}[f(x="short")]{END}')


def test_scripts_of_all_planes() -> None:
    grammar = string_grammar()
    for text in (SCRIPTS, *SCRIPTS.split()):
        assert masks_agree(grammar, f'{START}[f(x="{text}")]{END}')
    free = compiled(tag_for([tool({"type": "object", "properties": {"x": {}}, "required": ["x"]})]))
    assert accepts(free, f"{START}[f(x={{'{SCRIPTS}': '{SCRIPTS}'}})]{END}")


def test_no_class_has_a_gap_at_the_surrogates() -> None:
    without = charsets.without(charsets.ALL, charsets.charset([(0xD800, 0xDFFF)]))
    assert rules.char_class(without) == rules.char_class(charsets.ALL)
    assert rules.char_class(charsets.charset([(0xD800, 0xDBFF)])) is None
    assert rules.char_class(charsets.charset([(0x61, 0xD7FF)])) == "[a-\\udfff]"
    assert rules.char_class(charsets.charset([(0xDC00, 0xE001)])) == "[\\ue000-\\ue001]"


def test_texts_with_the_end_in_sight() -> None:
    """Near its end a counted string still takes what fits, and nothing more."""
    grammar = string_grammar(maxLength=100)
    for length in range(95, 103):
        assert masks_agree(grammar, f'{START}[f(x="{"ab" * 60}'[: len(START) + 6 + length] + f'")]{END}') == (
            length <= 100
        ), length
