"""Automata against sets: all strings of two letters, up to a length, are accepted or not as the sets say."""

from __future__ import annotations

import itertools
import random

import pytest

from lfm2_fixed.grammar.charsets import ALL, chars
from lfm2_fixed.grammar.dfa import (
    ANY,
    MAX_STATES,
    NOTHING,
    Dfa,
    both,
    but_not,
    of_length,
    one_of,
    repeated,
    tidy,
)
from lfm2_fixed.grammar.work import REQUEST_STEPS, TooLarge, Work

TEXTS = ["".join(text) for length in range(6) for text in itertools.product("ab", repeat=length)]
"""All there are: what an automaton with few states takes beyond them follows."""


def work() -> Work:
    return Work(REQUEST_STEPS)


def taken(dfa: Dfa) -> set[str]:
    return {text for text in TEXTS if dfa.accepts(text)}


def samples() -> list[tuple[Dfa, set[str]]]:
    """Automata of each kind, and what they must take."""
    rng = random.Random(3)
    found = [
        (ANY, set(TEXTS)),
        (NOTHING, set()),
        (repeated(chars("a")), {"a" * count for count in range(6)}),
        (repeated(()), {""}),
        (of_length(work(), ALL, 2, 3), {text for text in TEXTS if 2 <= len(text) <= 3}),
        (of_length(work(), chars("b"), 1, None), {"b" * count for count in range(1, 6)}),
        (one_of(work(), []), set()),
    ]
    for count in (1, 2, 5, 12):
        words = set(rng.sample(TEXTS, count))
        found.append((one_of(work(), words), words))
    return found


def test_each_kind() -> None:
    for dfa, wanted in samples():
        assert taken(dfa) == wanted
        assert dfa.empty == (not wanted)


def test_together() -> None:
    for (a, in_a), (b, in_b) in itertools.product(samples(), repeat=2):
        for dfa, wanted in ((both(work(), a, b), in_a & in_b), (but_not(work(), a, b), in_a - in_b)):
            assert taken(dfa) == wanted
            assert len(tidy(work(), dfa.edges, dfa.accepting).edges) == len(dfa.edges), "not one state more than needed"


def test_with_all_strings_nothing_is_worked_out() -> None:
    """It is the commonest case, and costs no step."""
    dfa = one_of(work(), ["ab", "b"])
    none = Work(0)
    assert both(none, ANY, dfa) is dfa and both(none, dfa, ANY) is dfa


def test_words_have_no_state_too_many() -> None:
    for words in (["ab", "bb"], ["a", "ab", "abb"], ["aab", "bab", "ab"]):
        dfa = one_of(work(), words)
        assert len(tidy(work(), dfa.edges, dfa.accepting).edges) == len(dfa.edges)


def test_inclusion_is_never_claimed_falsely() -> None:
    claimed = 0
    for dfa, _ in samples():
        states = range(len(dfa.edges))
        after = {state: taken(started(dfa, state)) for state in states}
        for larger, smaller in itertools.product(states, repeat=2):
            if dfa.includes(larger, smaller):
                claimed += larger != smaller
                assert after[larger] >= after[smaller]
            else:
                assert not after[larger] >= after[smaller]
    assert claimed


def started(dfa: Dfa, state: int) -> Dfa:
    """The automaton from another state on."""
    swapped = {0: state, state: 0}
    edges = [[(label, swapped.get(target, target)) for label, target in out] for out in dfa.edges]
    accepting = list(dfa.accepting)
    edges[0], edges[state] = edges[state], edges[0]
    accepting[0], accepting[state] = accepting[state], accepting[0]
    return Dfa(tuple(map(tuple, edges)), tuple(accepting))


def test_states_of_one_future_accept_the_same() -> None:
    """In whichever automata they are; and the ends of chains and words are found to be the same."""
    numbers: dict[object, int] = {}

    def number(thing: object) -> int:
        return numbers.setdefault(thing, len(numbers))

    by_future: dict[int, set[str]] = {}
    found = [of_length(work(), chars("a"), 0, 1)]  # its end gets the number 0, which is no state's own
    found += [dfa for dfa, _ in samples()] + [
        of_length(work(), ALL, low, high) for low in (0, 2) for high in (3, 5, None)
    ]
    found += [of_length(work(), chars("a"), 0, None), both(work(), repeated(chars("a")), of_length(work(), ALL, 0, 4))]
    for dfa in found:
        for state, future in enumerate(dfa.futures(number)):
            assert by_future.setdefault(future, taken(started(dfa, state))) == taken(started(dfa, state))
    long, short = (of_length(work(), ALL, 0, high).futures(number) for high in (9, 4))
    assert long[-5:] == short and len(set(long)) == len(long)
    ends = [one_of(work(), [word]).futures(number) for word in ("aab", "bbb")]
    assert ends[0][1] != ends[1][1] and ends[0][2:] == ends[1][2:]


@pytest.mark.parametrize("length", range(4))
def test_ending_anywhere(length: int) -> None:
    """Whether all that is accepted, or goes on to be, is accepted from a length on."""
    for dfa, wanted in samples():
        begun = {word[:end] for word in wanted for end in range(len(word) + 1) if end >= length}
        if dfa.ends_anywhere_after(length):
            assert begun <= wanted, (dfa, length)
    assert ANY.ends_anywhere_after(length) and repeated(chars("a")).ends_anywhere_after(length)
    assert of_length(work(), ALL, 2, None).ends_anywhere_after(length) == (length >= 2)
    assert one_of(work(), ["ab"]).ends_anywhere_after(length) == (length >= 2)


def test_what_has_too_many_states_is_given_up() -> None:
    assert len(of_length(work(), ALL, 0, MAX_STATES - 1).edges) == MAX_STATES
    with pytest.raises(TooLarge):
        of_length(work(), ALL, 0, MAX_STATES)
    words = ["a" * (MAX_STATES - 1)]
    assert len(one_of(work(), words).edges) == MAX_STATES
    with pytest.raises(TooLarge):
        one_of(work(), ["a" * MAX_STATES])
