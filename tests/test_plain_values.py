"""What the shortcuts pass on as it is reads the same in JSON; and they are taken where they should be."""

from __future__ import annotations

import ast
import json
import re

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from lfm2_fixed.core import plain_values
from lfm2_fixed.core.escapes import SAME_ESCAPE, unescape
from lfm2_fixed.core.numbers import number_json

digits = st.text("0123456789", max_size=9)


@given(st.sampled_from(["", "-"]), digits, st.sampled_from(["", ".", ".0"]), digits)
@example("", "0", ".", "0001")
@example("-", "0", ".", "0")
@example("", "123456789012", ".", "345")
@example("-", "1" + "0" * 99, "", "")
def test_same_numbers(sign: str, before: str, point: str, after: str) -> None:
    """Numbers that pass unchanged are what the number's reader writes, and what CPython writes."""
    token = sign + before + point + after
    if plain_values._SAME_NUMBER.fullmatch(token):
        assert number_json(token.lstrip("-"), token[0]) == token
        assert json.dumps(ast.literal_eval(token)) == token


@pytest.mark.parametrize("token", ["0.00001", "1.50", "01", "-0", "1.", ".5", "1e5", "123456789012.3456", "1_0", "٣"])
def test_other_numbers(token: str) -> None:
    """Numbers that JSON writes differently are not among them."""
    assert not plain_values._SAME_NUMBER.fullmatch(token)


def bodies(quote: str, escapes: str) -> st.SearchStrategy[str]:
    """What may stand between the quotes."""
    characters = [*" ab09/:,[](){}<|#=\x7f\u0085\u2028\ufffd\U0001f600é", "'" if quote == '"' else '"']
    return st.lists(st.sampled_from(characters + [f"\\{escape}" for escape in escapes])).map("".join)


@given(bodies('"', '\\"bfnrt'))
@example("\\\\\\n\\t\\b\\f\\r\\\"/'\x7f\u2028\U0001f600")
def test_same_strings(body: str) -> None:
    """Strings that pass unchanged mean the same in Python and in JSON, and are as ``json.dumps`` writes them."""
    assert re.fullmatch(plain_values.body('"', SAME_ESCAPE), body)
    value = ast.literal_eval(f'"{body}"')
    assert json.dumps(value, ensure_ascii=False) == f'"{body}"'


@given(bodies("'", "\\'\"abfnrtv"))
@example("\\a\\v\\'\\\"\\\\n")
def test_plain_strings(body: str) -> None:
    """Plain strings are decoded as CPython decodes them."""
    assert re.fullmatch(plain_values.body("'"), body)
    assert unescape(body) == ast.literal_eval(f"'{body}'")


@pytest.mark.parametrize(
    "text, name, arguments",
    [
        ("f()]", "f", "{}"),
        ("a.b(x=1, y='it\\'s'),", "a.b", '{"x": 1, "y": "it\'s"}'),
        ("f(1, b=[1,2, 3e2, {}]) ;", "f", '{"a": 1, "b": [1, 2, 300.0, {}]}'),
        ("f(x={'k': {\"n\": [None, [True]]}, 'm' : ''})\n", "f", '{"x": {"k": {"n": [null, [true]]}, "m": ""}}'),
        ('{"name": "f", "arguments": {"a": [0.5]}}, ', "f", '{"a": [0.5]}'),
    ],
)
def test_plain_calls(text: str, name: str, arguments: str) -> None:
    """Calls that are plain are read at once, up to where the list goes on."""
    pieces: list[str] = []
    found, pos = plain_values.call(text, 0, {"f": ["a", "b"]}, pieces)
    assert (found, "".join(pieces), text[pos:].strip(" ")) == (name, arguments, text.strip(" ")[-1])


@pytest.mark.parametrize(
    "text, at",
    [
        ("", 0),
        ("f", 0),
        ("f(a=1", 5),
        ("f(a=1)", 6),
        ("f(a=1) g", 6),
        ("f(a=1, a=2)]", 7),
        ("f(b=1, 2)]", 7),
        ("f(a=1,)]", 6),
        ("f(, a=1)]", 2),
        ("f(a=x)]", 2),
        ("f(a=1x)]", 2),
        ("f(a=[1, x])]", 8),
        ("f(a=[1, 2}]", 10),
        ("f(a={'k': 1, \"k\": 2})]", 13),
        ("f(a=(1))]", 2),
        ("f(a='x' 'y')]", 7),
        ("f(a='\\x41')]", 2),
        ("f(a='x\ny')]", 2),
        ("f(a=[" + "[" * 300 + "]" * 300 + "])]", 204),
        ('{"name": "", "arguments": {}}]', 28),
        ('{"name": "f", "id": 1, "arguments": {}}]', 0),
    ],
)
def test_what_is_not_plain(text: str, at: int) -> None:
    """All else is left to the readers, from a position that is not tried again."""
    found, pos = plain_values.call(text, 0, {"f": ["a"]}, [])
    assert (found, ~pos) == ("", at)
