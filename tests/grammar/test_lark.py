"""Grammars in Lark, where llguidance's lexer could make a difference, and its special tokens do."""

from __future__ import annotations

import json
import re
from typing import Any

import pytest

pytest.importorskip("llguidance", reason="llguidance comes with vLLM")

from lfm2_fixed.grammar import lark
from lfm2_fixed.grammar.graphs import circles, names
from tests.support.guidance_grammar import Text
from tests.support.tags import (
    END,
    IDS,
    RAW,
    SPECIAL,
    START,
    STOP,
    VOCABULARY,
    accepts,
    block,
    calls_of,
    compiled,
    tokens_of,
    tool,
)

INTEGER = {"type": "object", "properties": {"a": {"type": "integer"}}, "required": ["a"]}
STRICT = [tool(INTEGER, strict=True), tool(None, "g")]


def grammar(schema: Any, **options: Any) -> Text:
    return compiled(
        lark([tool({"properties": {"s": schema}, "required": ["s"]})], "required", token_ids=IDS, **options)
    )


@pytest.mark.parametrize(
    "schema, values",
    [
        ({"anyOf": [{"const": "12x"}, {"type": "string", "pattern": "^[0-9]+$"}]}, ["12x", "1", "123"]),
        ({"anyOf": [{"const": "a<b"}, {"type": "string", "pattern": "^a*$"}]}, ["a<b", "aaa"]),
        ({"enum": ["a", "ab", "abc", "b\"'\n", 1, 12, 1.5, None, [1], [1, "a"]]}, ["abc", "b\"'\n", 12, [1, "a"]]),
        ({"anyOf": [{"type": "array", "items": {"type": "integer"}}, {"const": [1, "x"]}]}, [[1, 2], [1, "x"], []]),
        ({"type": "object", "properties": {"n": {}, "na": {}}, "additionalProperties": True}, [{"na": 1, "nam": 2}]),
        ({"type": ["number", "null"], "minimum": -1}, [-1, 12, 0.25, 1e30, None]),
    ],
)
def test_what_begins_alike_does_not_hide_what_follows(schema: Any, values: list[Any]) -> None:
    """A lexer takes the longest match, and would forget the others."""
    found = grammar(schema)
    for value in values:
        for text in (repr(value), json.dumps(value)):
            assert accepts(found, block(f"f(s={text})")), text
    assert not accepts(found, block("f(s='12y')")) and not accepts(found, block('f(s="a<c)'))


def test_long_answers() -> None:
    """llguidance gives up where 2,000 items of a rule are open."""
    many = 2500
    assert accepts(grammar({"type": "string"}), block(f"f(s={'a<b' * many!r})"))
    assert accepts(grammar({"type": "string", "pattern": "^([a-z]+<)*$"}), block(f"f(s={'ab<' * many!r})"))
    assert accepts(grammar({"type": "array", "items": {"type": "integer"}}), block(f"f(s={[1] * many!r})"))
    assert accepts(grammar({"type": "object"}), block(f"f(s={dict.fromkeys(map(str, range(many)), [])!r})"))
    assert accepts(answer("auto"), "text, " * many + block("f(a=1)") + "<b>" * many)
    assert accepts(answer("auto"), block("f(a=1)") * many)
    assert accepts(answer("required"), block(", ".join(["g()"] * many)))


@pytest.mark.parametrize("low, high", [(0, 0), (0, 3), (2, 3), (4, None), (100, 300), (1500, 10_000)])
def test_lengths_are_exact(low: int, high: int | None) -> None:
    """Counted is the value's characters, however each is written."""
    found = grammar({"type": "string", "minLength": low} | ({} if high is None else {"maxLength": high}))
    letters = grammar({"type": "string", "pattern": f"^[a-z<|]{{{low},{'' if high is None else high}}}$"})
    top = low if high is None else high
    for size in {low - 1, low, low + 1, top - 1, top, top + 1} - {-1}:
        fits = low <= size and (high is None or size <= high)
        kinds = ["a", "é", "😀", "<", "\\n", "\\u00e9", "\\ud83d\\ude00", '\\"', "\\'"]
        mixed = "".join((kinds * size)[:size])
        for body in (mixed, *(kind * size for kind in kinds)) if size < 500 else (mixed,):
            for quote in "\"'":
                assert accepts(found, block(f"f(s={quote}{body}{quote})")) == fits, (size, body)
        for body in ("a" * size, ("a<b" * size)[:size]):
            assert accepts(letters, block(f"f(s='{body}')")) == fits, (size, body)
    assert not accepts(found, block(f"f(s='{'a' * low}<|b')"))
    assert not accepts(letters, block(f"f(s='{'A' * low}')")) or not low


def test_a_length_beside_a_pattern(caplog: pytest.LogCaptureFixture) -> None:
    found = grammar({"type": "string", "pattern": "^(ab)*$", "minLength": 3, "maxLength": 901})
    for count, fits in ((1, False), (2, True), (450, True), (451, False)):
        for quote in "\"'":
            assert accepts(found, block(f"f(s={quote}{'ab' * count}{quote})")) == fits, count
    assert not accepts(found, block("f(s='abax')"))
    sparse = grammar({"type": "string", "pattern": "^(abcde)*$", "minLength": 6})
    assert accepts(sparse, block("f(s='abcdeabcde')")) and not accepts(sparse, block("f(s='abcde')"))
    for nothing in ({"pattern": "^(ab)*$", "minLength": 3, "maxLength": 3}, {"pattern": "^abc$", "minLength": 4}):
        either = grammar({"anyOf": [{"type": "string", **nothing}, {"type": "null"}]})
        assert accepts(either, block("f(s=None)")) and not accepts(either, block("f(s='abc')"))
    assert not caplog.text


def test_a_length_that_cannot_be_measured_is_none() -> None:
    for schema in ({"maxLength": 10_001}, {"maxLength": 10**6, "minLength": 3}):
        found = grammar({"type": "string", **schema})
        assert accepts(found, block(f"f(s='{'abc ' * 3000}')"))
        assert accepts(found, block("f(s='ab')")) == ("minLength" not in schema)


def test_what_goes_too_deep_is_left_out(caplog: pytest.LogCaptureFixture) -> None:
    """llguidance follows rules by recursion, and takes its process with it."""

    def flags(count: int) -> Any:
        return {"type": "object", "properties": {f"k{n}": {"type": "boolean"} for n in range(count)}}

    wide = compiled(lark([tool(flags(400)), tool(INTEGER, "g")], "required", token_ids=IDS))
    assert accepts(wide, block("f(any=[1])")) and "too deep" in caplog.text
    assert accepts(wide, block("g(a=1)")) and not accepts(wide, block("g(a='x')"))
    caplog.clear()
    narrow = compiled(lark([tool(flags(140))], "required", token_ids=IDS))
    assert accepts(narrow, block("f(k0=True, k139=False)")) and not accepts(narrow, block("f(any=[1])"))
    assert not caplog.text


# --- what is a token, and what is text

THINKS = {"<think>": len(VOCABULARY), "</think>": len(VOCABULARY) + 1}
"""Tokens that a vocabulary may have, too."""


def answer(choice: str, *, tokens: bool = False, **options: Any) -> Text:
    """The grammar of an answer; ``tokens``: where ``<think>`` and ``</think>`` are tokens."""
    if not tokens:
        return compiled(lark(STRICT, choice, token_ids=IDS, **options))
    pieces = (*RAW, *(tag.encode() for tag in THINKS))
    text = lark(STRICT, choice, token_ids={**IDS, **THINKS}, **options)
    return Text(str(text), pieces, (*SPECIAL, *THINKS.values()), IDS[STOP])


def takes(grammar: Text, text: str, *, tokens: bool = False) -> bool:
    """Whether ``text`` is a whole answer, spelled with a token for each tag if it has ``tokens``.  ``~`` is no text:
    behind it a tag is spelled out all the same."""
    found: list[int] = []
    for piece in re.split("(~?</?think>)", text):
        found += [THINKS[piece]] if tokens and piece in THINKS else tokens_of(piece.removeprefix("~"))
    return grammar.accepts(found)


both = pytest.mark.parametrize("tokens", [False, True], ids=["tags are text", "tags are tokens"])


@both
def test_text_with_calls(tokens: bool) -> None:
    found = answer("auto", tokens=tokens)
    one = block("f(a=1)")
    for text in (
        *("", "see [1]\n<think>f(a='x')</think>", f"So: {one}", f"{one}{one} and {block('f(a=1), g(b=[2])')}\n"),
        *(f"<think>hm</think>\n{one}", f"<think>{one}</think>", f"</think>{one}<think><think>", "a ~<think>b~</think>"),
    ):
        assert takes(found, text, tokens=tokens), text
    for text in (block("f(a='x')"), f"So: {block('f()')}", START, f"{START}[g()]", END, f"{one}{END}"):
        assert not takes(found, text, tokens=tokens), text
    single = answer("auto", tokens=tokens, parallel=False)
    for text in ("", "no", f"So: {one}", f"<think>hm</think>{one}"):
        assert takes(single, text, tokens=tokens), text
    assert not takes(single, one * 2, tokens=tokens) and not takes(single, block("f(a=1), g()"), tokens=tokens)


def test_a_marker_that_is_spelled_out_is_not_written() -> None:
    """Who reads the text would see a call begin that no grammar holds."""
    for choice, options in (("auto", {}), ("auto", {"parallel": False})):
        found = answer(choice, **options)
        assert found.accepts(spelled("<|tool_call_star")) and not found.accepts(spelled(START))
    thought = answer("required", thought="possible")
    call = tokens_of(block("f(a=1)"))
    assert thought.accepts(spelled("<think> <|tool </think>") + call)


def spelled(text: str) -> list[int]:
    return [token for c in text for token in tokens_of(c)]


@both
def test_a_thought_before_a_forced_call(tokens: bool) -> None:
    one = block("f(a=1)")
    possible = answer("required", tokens=tokens, thought="possible")
    for text in (one, "\n\n" + one, f"<think>I [f(a='x')] <b></think>\n\n{one}", f"<think></think>{one}"):
        assert takes(possible, text, tokens=tokens), text
    for text in ("<think>", f"<think>{one}", f"hm {one}", f"<think></think>hm{one}", f"<think></think>{block('h()')}"):
        assert not takes(possible, text, tokens=tokens), text
    opened = answer("required", tokens=tokens, thought="open")
    assert takes(opened, f"so</think>{one}", tokens=tokens) and not takes(opened, one, tokens=tokens)
    assert not takes(answer("required", tokens=tokens), f"<think></think>{one}", tokens=tokens)
    if tokens:  # for who reads the text a thought ends where its end is spelled out
        assert not takes(possible, f"<think>~</think>hm</think>{one}", tokens=True)


@both
@pytest.mark.parametrize(
    "dialect, call", [("llama4", "[f(a=1), g()]"), ("olmo3", "<function_calls>f(a=1)\ng()</function_calls>")]
)
def test_families_whose_markers_are_text(dialect: str, call: str, tokens: bool) -> None:
    found = answer("required", tokens=tokens, dialect=dialect, thought="possible")
    assert takes(found, call) and takes(found, f"<think>so</think>\n{call}", tokens=tokens)
    assert not takes(found, call.replace("a=1", "b=1")) and not takes(found, f"so {call}")
    assert calls_of(call, STRICT, dialect) == [("f", {"a": 1}), ("g", {})]
    for parallel in (True, False):
        single = call if parallel else call.replace(", g()", "").replace("\ng()", "")
        text = answer("auto", tokens=tokens, dialect=dialect, parallel=parallel)
        for words in ("", "a < b and [f] or </f", f"So: {single}", "[<" * 3000, f"<think>so</think>{single}"):
            assert takes(text, words, tokens=tokens), words
        for words in (f"So: {single.replace('a=1', 'b=1')}", f"<think>so</think>{single.replace('a=1', 'b=1')}"):
            assert not takes(text, words, tokens=tokens), words
        for between in (" done ", "<think>", "</think>"):
            assert takes(text, f"{single}{between}{single}", tokens=tokens) == parallel, between
    if dialect == "olmo3":  # a call in a thought, which no grammar would hold
        assert not takes(found, f"<think>{call}</think>{call}", tokens=tokens)


def test_circles() -> None:
    assert circles({"a": ["b", "c"], "b": ["a"], "c": ["d"], "d": ["d", "e"], "e": []}) == [
        ["e"],
        ["d"],
        ["c"],
        ["b", "a"],
    ]


def test_names() -> None:
    assert names(r'"r1" r2 ("\"r3" | [\]r4] r5)* r6{1,2} rest "a"') == ["r2", "r5", "r6"]
