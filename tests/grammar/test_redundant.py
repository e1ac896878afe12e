"""Rules that go on with themselves, so that xgrammar settles most tokens at once: they are there, and add no text."""

from __future__ import annotations

import random
import re
from typing import Any

import pytest

xgr = pytest.importorskip("xgrammar", reason="the grammar needs xgrammar, which comes with vLLM")

from lfm2_fixed.grammar import dfa as automata  # noqa: E402
from lfm2_fixed.grammar import patterns  # noqa: E402
from lfm2_fixed.grammar.notation import EBNF  # noqa: E402
from lfm2_fixed.grammar.quotes import quoted, string, unquoted  # noqa: E402
from lfm2_fixed.grammar.rules import Rules  # noqa: E402
from lfm2_fixed.grammar.work import Work  # noqa: E402

# Several characters each, with what is excluded at their beginning, in them and at their end.
VOCABULARY = [
    *map(chr, range(0x20, 0x7F)), "abc", " word", "a1 b", "<b", "<<", "a<", "<|", "|>", "||", "b|", "< |", "x<|y",
    "<a|", "é", "aé", "<é", '",', 'a",', '")', '<",', "<\\u", "\\n", 'b\\"', "://", "a@b", "_x", "--", "9a", "<eos>",
]  # fmt: skip
STOP = len(VOCABULARY) - 1
STRINGS: dict[str, automata.Dfa] = {
    "anything": automata.ANY,
    "one or more": automata.of_length(Work(), automata.ALL, 1, None),
    "six or more": automata.of_length(Work(), automata.ALL, 6, None),
    "at most six": automata.of_length(Work(), automata.ALL, 0, 6),
    "a name": patterns.match("[A-Za-z_][A-Za-z0-9_]*"),
    "an address": patterns.match(r"[^@ ]+@[^@ ]+(\.[^@ ]+)+"),
    "dashes between": patterns.match("[a-z0-9<]+(-+[a-z0-9|]+)*"),
}


def grammar_of(dfa: automata.Dfa, *, with_redundant: bool) -> str:
    rules = Rules()
    rule = quoted(rules, dfa, '"')
    text = rules.text(f'"\\"" {rule} [,)]')
    if with_redundant:
        return text
    without = {name: one._replace(redundant=()) for name, one in rules._rules.items()}
    return EBNF.write(f'"\\"" {rule} [,)]', without)


def allowed(matcher: Any) -> set[int]:
    mask = xgr.allocate_token_bitmask(1, len(VOCABULARY))
    matcher.fill_next_token_bitmask(mask)
    return {at for at in range(len(VOCABULARY)) if int(mask[0][at // 32]) >> (at % 32) & 1}


@pytest.mark.parametrize("name", STRINGS)
def test_they_add_nothing(name: str) -> None:
    """With them and without, the same tokens are allowed, and exactly those are accepted."""
    info = xgr.TokenizerInfo(VOCABULARY, vocab_type=xgr.VocabType.RAW, stop_token_ids=[STOP])
    compiler = xgr.GrammarCompiler(info, max_threads=1, cache_enabled=False)
    grammars = [
        compiler.compile_grammar(grammar_of(STRINGS[name], with_redundant=redundant)) for redundant in (True, False)
    ]
    chance = random.Random(name)
    for _ in range(15):
        ours, plain = map(xgr.GrammarMatcher, grammars)
        for _ in range(12):
            tokens = allowed(ours)
            assert tokens == allowed(plain)
            tokens.discard(STOP)
            if not tokens:
                break
            for other in chance.sample(range(STOP), 8):
                taken = ours.accept_token(other)
                assert taken == (other in tokens), VOCABULARY[other]
                if taken:
                    ours.rollback(1)
            token = chance.choice(sorted(tokens))
            assert ours.accept_token(token)
            assert plain.accept_token(token)


@pytest.mark.parametrize(
    ("name", "rules", "themselves"),
    [
        ("anything", 2, 2),  # what goes on freely, and what does behind a "<"
        ("one or more", 3, 3),
        ("six or more", 13, 13),
        ("at most six", 17, 0),  # what follows is shorter; behind a "<" one class for all places, in three rules
        ("a name", 2, 2),
    ],
)
def test_they_are_there(name: str, rules: int, themselves: int) -> None:
    """Rules that take any letter go on with themselves, unless their text is limited."""
    written = [line.partition(" ::= ") for line in grammar_of(STRINGS[name], with_redundant=True).splitlines()[1:]]
    bodies = {rule: body for rule, _, body in written if rule.startswith("r") and '"u"' not in body}
    assert len(bodies) == rules
    assert sum(bool(re.search(rf"\] {rule}\b", body)) for rule, body in bodies.items()) == themselves


def test_where_there_are_counters_they_cost_and_are_left_out() -> None:
    for counted in (False, True):
        rules = Rules()
        rule = quoted(rules, automata.ANY, '"')
        if counted:
            rules.define(rules.reserve("counted")[0], [rule], max_chars=100)
        before, itself = rules._rules[rule].alternatives, [one.redundant for one in rules._rules.values()]
        assert any(itself)
        written = rules.text(rule)
        assert any(more and more[0] in written for more in itself) != counted
        assert all(alternative in written for alternative in before)


def test_what_includes_what() -> None:
    long = automata.of_length(Work(), automata.ALL, 3, None)
    assert long.includes(3, 0)
    assert long.includes(1, 0)
    assert not long.includes(0, 1)  # two characters are enough from 1 on
    short = automata.of_length(Work(), automata.ALL, 0, 3)
    assert short.includes(0, 1)
    assert not short.includes(1, 0)
    name = patterns.match("[a-z][a-z0-9]*")
    assert name.includes(1, 0)
    assert not name.includes(0, 1)  # empty from 1 on, and digits
    chain = automata.of_length(Work(), automata.ALL, 200, None)
    assert all(chain.includes(state + 1, state) for state in range(200))
    ends = automata.of_length(Work(), automata.ALL, 0, 200)
    assert not any(ends.includes(state + 1, state) for state in range(200))


def test_what_goes_on_with_itself_is_cheap_enough_for_both_quotes() -> None:
    def quotes(low: int, high: int | None) -> int:
        return len(string(Rules(), automata.of_length(Work(), automata.ALL, low, high)))

    assert [quotes(low, None) for low in (0, 1, 3, 8, 64, 300)] == [2, 2, 2, 2, 2, 2]
    assert [quotes(0, high) for high in (1, 6, 48, 99)] == [2, 2, 2, 2]
    assert quotes(0, 200) == 1


def test_equal_states_are_written_once_and_count_once() -> None:
    """A shorter limit is the end of a longer one."""
    rules = Rules()
    string(rules, automata.of_length(Work(), automata.ALL, 0, 48))
    written = rules.size
    for high in (1, 20, 47, 48):
        assert len(string(rules, automata.of_length(Work(), automata.ALL, 0, high))) == 2
    assert rules.size == written
    assert (
        len(string(rules, automata.of_length(Work(), automata.ALL, 40, 88))) == 2
    )  # 40 new states, none of them broad
    assert len(string(rules, automata.repeated(automata.charset([(97, 0xFFFF)])))) == 2
    assert len(string(rules, automata.of_length(Work(), automata.charset([(97, 0xFFFF)]), 0, 60))) == 1


def test_names_without_quotes_go_on_with_themselves() -> None:
    rules = Rules()
    name = unquoted(rules, patterns.match("[a-z][a-z0-9]*"), "=")
    [more] = rules._rules[name].redundant
    assert more.endswith(f" {name}")
