"""What the mask allows the matcher takes, and the other way round: a difference is an error in the engine."""

from __future__ import annotations

import random
from typing import Any

import pytest

xgr = pytest.importorskip("xgrammar", reason="the grammar needs xgrammar, which comes with vLLM")

from lfm2_fixed.core.dialects import DIALECTS  # noqa: E402
from lfm2_fixed.grammar import charsets, rules, structural_tag  # noqa: E402
from tests.support import tags  # noqa: E402
from tests.support.tags import END, IDS, START, VOCABULARY, accepts, compiled, tag_for, tool  # noqa: E402

SCRIPTS = "한국어 하하 \ud7a3\ud7ff\ue000 Ω中文 かな العربية हिन्दी 😀🇳🇴 \U0010ffff é"


def string_grammar(**limits: Any) -> Any:
    schema = {"type": "object", "properties": {"x": {"type": "string", **limits}}, "required": ["x"]}
    return compiled(tag_for([tool(schema)]))


def masks_agree(grammar: Any, text: str) -> bool:
    """Whether ``text`` is accepted; fails where mask and matcher differ about one of its tokens."""
    return masks_agree_on(grammar, tags.tokens_of(text))


def masks_agree_on(grammar: Any, tokens: list[int]) -> bool:
    """Whether these tokens are a whole answer; fails where mask and matcher differ about one of them."""
    return taken(grammar, [*tokens, IDS[tags.STOP]]) > len(tokens)


def taken(grammar: Any, tokens: list[int]) -> int:
    """How many of ``tokens`` are accepted; fails where mask and matcher differ about one of them."""
    matcher = xgr.GrammarMatcher(grammar)
    mask = xgr.allocate_token_bitmask(1, len(VOCABULARY))
    for at, token in enumerate(tokens):
        matcher.fill_next_token_bitmask(mask)
        allowed = bool(int(mask[0][token // 32]) >> (token % 32) & 1)
        accepted = matcher.accept_token(token)
        assert allowed == accepted, (tokens[:at], VOCABULARY[token])
        if not accepted:
            return at
    return len(tokens)


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


@pytest.mark.parametrize("quote", "\"'")
@pytest.mark.parametrize("limits", [{"maxLength": 40}, {"pattern": "^[-a-z<>]{1,12}$"}, {"pattern": "^[a-z]{1,20}$"}])
def test_both_quotes_of_limited_strings(quote: str, limits: dict[str, Any]) -> None:
    """What is one rule for both quotes ends at the one that began it, and behind a ``<`` all tokens are tried."""
    grammar = string_grammar(**limits)
    other = "'" if quote == '"' else '"'
    assert masks_agree(grammar, f"{START}[f(x={quote}abc{quote})]{END}")
    if "a-z]{" not in limits.get("pattern", ""):
        assert masks_agree(grammar, f"{START}[f(x={quote}a<b><<c<{quote})]{END}")
        assert not masks_agree(grammar, f"{START}[f(x={quote}a<|b{quote})]{END}")
    matcher = xgr.GrammarMatcher(grammar)
    mask = xgr.allocate_token_bitmask(1, len(VOCABULARY))
    for token in tags.tokens_of(f"{START}[f(x={quote}ab"):
        assert matcher.accept_token(token)
    matcher.fill_next_token_bitmask(mask)
    for token in range(len(VOCABULARY)):
        taken_ = matcher.accept_token(token)
        assert taken_ == bool(int(mask[0][token // 32]) >> (token % 32) & 1), VOCABULARY[token]
        if taken_:
            matcher.rollback(1)
    assert not masks_agree(grammar, f"{START}[f(x={quote}abc{other})]{END}")


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


# The last and the first characters of each number of bytes and of each kind of first byte, but no control character.
BORDERS = (
    "\x80\u07ff\u0800\u0fff\u1000\ucfff\ud000\ud7a3\ud7ff\ue000\uffff"
    "\U00010000\U0003ffff\U00040000\U000fffff\U00100000\U0010ffff"
)
# Bytes that are no UTF-8, and the first of them that cannot follow those before (Unicode 15, table 3-7).
ILL_FORMED = [
    (b"\xed\xa0\x80", 1),  # U+D800 and other surrogates
    (b"\xed\xad\xbf", 1),
    (b"\xed\xb0\x80", 1),
    (b"\xed\xbf\xbf", 1),
    (b"\xc0\x80", 0),  # longer than they have to be
    (b"\xc1\xbf", 0),
    (b"\xe0\x80\x80", 1),
    (b"\xe0\x9f\xbf", 1),
    (b"\xf0\x80\x80\x80", 1),
    (b"\xf0\x8f\xbf\xbf", 1),
    (b"\xf4\x90\x80\x80", 1),  # beyond U+10FFFF
    (b"\xf5\x80\x80\x80", 0),
    (b"\x80", 0),
    (b"\xe2\x82a", 2),  # unfinished
    (b'\xf0\x9f\x98"', 3),
]


def test_classes_are_cut_where_the_bytes_are() -> None:
    whole = "[\\u0000-\\u007f\\u0080-\\u07ff\\u0800-\\ucfff\\ud000-\\ud7ff\\ue000-\\uffff\\U00010000-\\U0010ffff]"
    surrogates = charsets.charset([(0xD800, 0xDFFF)])
    assert rules.char_class(charsets.ALL) == rules.char_class(charsets.without(charsets.ALL, surrogates)) == whole
    assert rules.char_class(surrogates) is None
    assert rules.char_class(charsets.charset([(0xD900, 0xDA00)])) is None
    assert rules.char_class(charsets.charset([(0x61, 0x7F)])) == "[a-\\u007f]"
    assert rules.char_class(charsets.charset([(0xCFFF, 0xD800)])) == "[\\ucfff\\ud000-\\ud7ff]"
    assert rules.char_class(charsets.charset([(0xDC00, 0xE001), (0xFFFF, 0x10000)])) == (
        "[\\ue000-\\ue001\\uffff\\U00010000]"
    )


def test_a_class_takes_its_characters_and_nothing_else() -> None:
    """Classes with ends at random and at all borders, one character each, as bytes."""
    chance = random.Random(7)
    near = [code + by for code in map(ord, BORDERS) for by in (-1, 0, 1)]
    near = [0x61, 0x7E, *(code for code in near if 0x80 <= code <= 0x10FFFF and not 0xD800 <= code <= 0xDFFF)]
    for _ in range(60):
        ends = sorted(chance.sample(near, 4) if chance.random() < 0.7 else chance.sample(range(0x110000), 4))
        label = charsets.charset([(ends[0], ends[1]), (ends[2], ends[3])])
        written = rules.char_class(label)
        assert written, "surrogates only: choose another seed"
        grammar = tags.compiled_text(f"root ::= {written}")
        for code in near:
            takes = masks_agree_on(grammar, tags.bytes_of(chr(code).encode()))
            assert takes == charsets.contains(label, code), (written, hex(code))
        for ill_formed, _ in ILL_FORMED:
            assert not masks_agree_on(grammar, tags.bytes_of(ill_formed)), (written, ill_formed)


@pytest.mark.parametrize(
    ("limits", "before"),
    [
        ({}, 0),
        ({}, 300),
        ({"maxLength": 10}, 0),
        ({"maxLength": 10}, 9),
        ({"maxLength": 48}, 47),
        ({"maxLength": 129}, 128),
        ({"maxLength": 300}, 0),
        ({"maxLength": 300}, 128),
        ({"maxLength": 300}, 299),
        ({"pattern": "^[^a]+$", "maxLength": 300}, 299),
    ],
)
def test_a_string_is_utf8(limits: dict[str, Any], before: int) -> None:
    """Wherever one more character fits: a character is taken, and anything else refused at its first wrong byte."""
    grammar = string_grammar(**limits)
    start = tags.tokens_of(f'{START}[f(x="' + (SCRIPTS * 20)[:before])
    end = tags.tokens_of(f'")]{END}')
    for c in BORDERS:
        assert masks_agree_on(grammar, [*start, *tags.bytes_of(c.encode()), *end]), hex(ord(c))
    for ill_formed, wrong in ILL_FORMED:
        assert taken(grammar, [*start, *tags.bytes_of(ill_formed)]) == len(start) + wrong, ill_formed


def test_noise_of_bytes_is_text_within_its_limit() -> None:
    """Whatever bytes the masks allow one after the other decode, to no more characters than ``maxLength``."""
    chance = random.Random(3)
    grammar = string_grammar(maxLength=10)
    start = tags.tokens_of(f'{START}[f(x="')
    lengths = set()
    for _ in range(60):
        matcher = xgr.GrammarMatcher(grammar)
        assert all(map(matcher.accept_token, start))
        mask = xgr.allocate_token_bitmask(1, len(VOCABULARY))
        text = b""
        while True:
            matcher.fill_next_token_bitmask(mask)
            allowed = [at for at in tags.HIGH if int(mask[0][at // 32]) >> (at % 32) & 1]
            if not allowed:
                break
            token = chance.choice(allowed)
            assert matcher.accept_token(token)
            text += tags.RAW[token]
        assert matcher.accept_token(IDS['"'])
        lengths.add(len(text.decode("utf-8", "strict")))
    assert lengths == {10}


def test_texts_with_the_end_in_sight() -> None:
    """Near its end a counted string still takes what fits, and nothing more."""
    grammar = string_grammar(maxLength=100)
    for length in range(95, 103):
        assert masks_agree(grammar, f'{START}[f(x="{"ab" * 60}'[: len(START) + 6 + length] + f'")]{END}') == (
            length <= 100
        ), length


@pytest.mark.parametrize("dialect", DIALECTS)
@pytest.mark.parametrize("options", [{}, {"reasoning": True}], ids=["at once", "after a thought"])
def test_before_a_forced_call(dialect: str, options: dict[str, Any]) -> None:
    """Of all that may come before a forced call, also a blank and what only looks like the beginning of a marker."""
    schema = {"type": "object", "properties": {"x": {"type": "integer"}}, "required": ["x"]}
    grammar = compiled(structural_tag([tool(schema)], "required", dialect=dialect, token_ids=IDS, **options))
    thought = [IDS["a"], *tags.tokens_of("</think>")] if options else []
    for before in ("", " ", "\n", "\n\n"):
        for token in range(len(VOCABULARY)):
            taken(grammar, [*thought, *tags.tokens_of(before), token])
