"""Laws L1, L2, L3 and L6 of the contract as properties; the others: ``test_laws_*.py``.

The profile (``HYPOTHESIS_PROFILE``) sets the number of examples.
"""

from __future__ import annotations

import ast
import json
import random
import warnings

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from lfm2_fixed.core.dialects import DIALECTS
from tests.support.harness import Tools, Turn, every, random_cut, read_object, stream, whole, with_empties
from tests.support.oracle import read
from tests.support.python_writer import PythonWriter, make_tools
from tests.support.smallest import check
from tests.support.strategies import (
    Input,
    any_input,
    dialects,
    from_seed,
    python_lists,
    quote_turns,
    seeds,
    token_texts,
)
from tests.support.turn_writer import damage
from tests.support.words import E, S


def in_block(dialect: str, text: str) -> str:
    """``text`` between the dialect's markers."""
    return DIALECTS[dialect].start + text + DIALECTS[dialect].ends[0]


def same(left: Turn, right: Turn) -> None:
    """Both streams said the same: calls, unfinished ones included, and content."""
    assert left.started == right.started
    assert left.content == right.content


# ------------------------------------------------------------------ L1, L2


@given(quote_turns(), seeds)
def test_l1_l2_where_strings_end(given_input: Input, seed: int) -> None:
    """Both laws where quotes may or may not close: what a look-ahead saw must not depend on where the text was cut.

    It comes first since it finds such faults in the least time (``scripts/plant``).
    """
    dialect, text, tools = given_input

    def law(text: str) -> None:
        reference = stream([text], dialect, tools)
        same(stream(every(text, 1), dialect, tools), reference)
        same(stream(random_cut(text, random.Random(seed)), dialect, tools), reference)
        assert whole(text, dialect, tools) == reference.completed

    check(text, law, (dialect, tools))


@given(any_input(), seeds)
@example(("lfm2", S + "[f(x='\ud83d\ude00')]" + E, None), 0)
def test_l1_chunk_invariance(given_input: Input, seed: int) -> None:
    """However the text is cut, the streamed result is the same."""
    dialect, text, tools = given_input

    def law(text: str) -> None:
        rng = random.Random(seed)
        reference = stream([text], dialect, tools)
        for pieces in (every(text, 1), random_cut(text, rng), with_empties(random_cut(text, rng))):
            same(stream(pieces, dialect, tools), reference)

    check(text, law, (dialect, tools))


@given(any_input(), seeds)
def test_l2_stream_equals_whole(given_input: Input, seed: int) -> None:
    """Completed calls and content are equal in both modes, and with whole calls (``mode="call"``)."""
    dialect, text, tools = given_input

    def law(text: str) -> None:
        pieces = random_cut(text, random.Random(seed))
        expected = whole(text, dialect, tools)
        assert stream(pieces, dialect, tools).completed == expected
        by_call = stream(pieces, dialect, tools, mode="call")
        assert by_call.completed == expected
        assert all(call.state == "complete" for call in by_call.started)

    check(text, law, (dialect, tools))


@pytest.mark.parametrize("turn", token_texts(), ids=[name for name, _ in token_texts()])
@pytest.mark.parametrize("dialect", DIALECTS)
def test_real_tokenisations(turn: tuple[str, list[str]], dialect: str) -> None:
    """Recorded tokens of a real tokenizer: the pieces as they are, joined in runs, whole and in characters."""
    pieces = turn[1]
    text = "".join(pieces)
    reference = stream([text], dialect)
    assert reference.completed == whole(text, dialect)
    for size in range(1, 7):
        same(stream(("".join(pieces[i : i + size]) for i in range(0, len(pieces), size)), dialect), reference)
    for end in range(len(pieces)):
        cut = stream(pieces[:end], dialect)
        same(cut, stream(["".join(pieces[:end])], dialect))
        assert cut.completed == whole("".join(pieces[:end]), dialect)
    if dialect == "lfm2" and S in text:
        block = text[text.index(S) + len(S) : text.index(E)]
        assert reference.calls == read(block)
        assert reference.content == text[: text.index(S)].rstrip()
    elif dialect == "lfm2":
        assert reference.completed == ([], text)


@given(from_seed(lambda rng: rng), st.integers(0, len(token_texts()) - 1), dialects)
def test_damaged_tokenisations(rng: random.Random, number: int, dialect: str) -> None:
    """Tokens lost, doubled and swapped: still one result for every cutting."""
    pieces = list(token_texts()[number][1])[-40:]
    state = rng.getstate()

    def law(text: str) -> None:
        same(stream(every(text, 1), dialect), stream([text], dialect))
        assert stream(random_cut(text, random.Random(1)), dialect).completed == whole(text, dialect)

    rng.setstate(state)
    for _ in range(rng.randrange(1, 4)):
        i, j = rng.randrange(len(pieces)), rng.randrange(len(pieces))
        action = rng.randrange(3)
        if action == 0 and len(pieces) > 1:
            del pieces[i]
        elif action == 1:
            pieces.insert(i, pieces[j])
        else:
            pieces[i], pieces[j] = pieces[j], pieces[i]
    same(stream(pieces, dialect), stream(["".join(pieces)], dialect))
    check("".join(pieces), law, (dialect,))


# ------------------------------------------------------------------ L3


def compare_with_python(dialect: str, text: str, tools: Tools | None, seed: int) -> None:
    """The calls are what ``ast`` says they are, where it has an opinion."""
    expected = read(text, tools)
    row = DIALECTS[dialect]
    if expected is None or any(mark in text for mark in row.ends):
        return
    for turn in (in_block(dialect, text), row.start + text):
        assert whole(turn, dialect, tools) == (expected, "")
        pieces = random_cut(turn, random.Random(seed))
        assert stream(pieces, dialect, tools).completed == (expected, "")
    if row.bare_lists and expected and _certain(text):
        assert stream(random_cut(text, random.Random(seed)), dialect, tools).completed == (expected, "")


def _certain(text: str) -> bool:
    """Whether the first call begins ``[name(name=``: then a bare list is one for Llama 4."""
    call = ast.parse(text.strip(" \t\n"), mode="eval").body.elts[0]  # type: ignore[attr-defined]
    return not call.args and bool(call.keywords) and text.lstrip(" \t\n").startswith("[" + ast.unparse(call.func) + "(")


@given(python_lists(), seeds)
def test_l3_python_is_the_reference(given_input: Input, seed: int) -> None:
    """What CPython's ``ast`` reads as calls with literal arguments is read the same, byte for byte."""
    dialect, text, tools = given_input
    check(text, lambda text: compare_with_python(dialect, text, tools, seed), (dialect, tools))


@given(python_lists(), seeds)
def test_l3_damaged(given_input: Input, seed: int) -> None:
    """The same for damaged lists, where Python still reads them."""
    dialect, text, tools = given_input
    rng = random.Random(seed)
    damaged = damage(rng, text, lambda: PythonWriter(rng).calls(tools), "lfm2").replace(S, "")
    check(damaged, lambda text: compare_with_python(dialect, text, tools, seed), (dialect, tools))


def test_the_oracle_has_an_opinion() -> None:
    """Nine of ten generated lists are compared, so L3 is no empty promise."""
    opinions = 0
    for seed in range(600):
        rng = random.Random(seed)
        tools = make_tools(rng)
        opinions += read(PythonWriter(rng).calls(tools), tools) is not None
    assert opinions > 530


@given(python_lists(), seeds)
def test_l3_unparsed(given_input: Input, seed: int) -> None:
    """The same calls as ``ast.unparse`` prints them."""
    dialect, text, tools = given_input
    expected = read(text, tools)
    if expected is None or any(mark in text for mark in (E, "\\N{LATIN SMALL LETTER")):
        return
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        printed = ast.unparse(ast.parse(text.strip(" \t\n"), mode="eval"))
    check(printed, lambda printed: compare_with_python(dialect, printed, tools, seed), (dialect, tools))


# ------------------------------------------------------------------ L6


@given(any_input())
def test_l6_completed_is_valid_json(given_input: Input) -> None:
    """Completed arguments are one valid JSON object, written as ``json.dumps`` writes it."""
    dialect, text, tools = given_input

    def law(text: str) -> None:
        calls, _ = whole(text, dialect, tools)
        for name, arguments in calls:
            assert name
            read_object(arguments)
            if len(arguments) < 4000:
                assert json.dumps(json.loads(arguments), ensure_ascii=False) == arguments

    check(text, law, (dialect, tools))
