"""``make_valid_python``: what it returns is Python, and begins with what it was given."""

from __future__ import annotations

import ast
import random
import warnings

from hypothesis import given
from hypothesis import strategies as st

from lfm2_fixed import make_valid_python
from tests.support.examples import SOME
from tests.support.oracle import read
from tests.support.strategies import python_lists, seeds
from tests.support.words import ATOMS

Input = tuple[str, str, "dict[str, list[str]] | None"]


@SOME
@given(python_lists(), seeds)
def test_make_valid_python(given_input: Input, seed: int) -> None:
    """For every prefix of a valid call list: nothing, or Python that begins with the prefix."""
    _, text, _ = given_input
    if read(text) is None:
        return
    rng = random.Random(seed)
    for end in {len(text), *(rng.randrange(1, len(text) + 1) for _ in range(8))}:
        prefix = text[:end]
        result = make_valid_python(prefix)
        if result is None:
            continue
        completed, added = result
        assert completed.endswith(added)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            ast.parse(completed)
        kept = completed[: len(completed) - len(added)]
        assert prefix.startswith(kept)
        assert prefix[len(kept) :].strip(" \t\n\f\\,") == "", (prefix, completed)
    assert make_valid_python(text) == (text, "")


@SOME
@given(st.one_of(st.text(), st.lists(st.sampled_from(ATOMS), max_size=30).map("".join)))
def test_make_valid_python_never_raises(text: str) -> None:
    """Any text: a pair that Python reads, or ``None``."""
    result = make_valid_python(text)
    if result is not None:
        completed, added = result
        assert completed.endswith(added)
        compile(completed, "", "eval", flags=0x400)  # ast only
