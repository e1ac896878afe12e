"""JSON read strictly, with Python's own reader as the oracle where both must agree."""

from __future__ import annotations

import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lfm2_fixed.wire.strict_json import MAX_DEPTH, MAX_DIGITS, pointer, read

SCALARS = (
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(st.characters(exclude_categories=["Cs"]))
)  # fmt: skip
VALUES = st.recursive(
    SCALARS,
    lambda inner: (
        st.lists(inner, max_size=4)
        | st.dictionaries(st.text(st.characters(exclude_categories=["Cs"]), max_size=6), inner, max_size=4)
    ),
    max_leaves=20,
)

SOME = settings(max_examples=max(100, settings.default.max_examples // 10))


def kinds(text: str) -> list[tuple[str, str]]:
    return [(fault.kind, fault.pointer) for fault in read(text).faults]


@SOME
@given(VALUES, st.booleans(), st.sampled_from([None, 2]))
def test_what_json_writes_is_read_without_a_fault(value: object, escaped: bool, indent: int | None) -> None:
    reading = read(json.dumps(value, ensure_ascii=escaped, indent=indent))
    assert reading.faults == ()
    assert repr(reading.value) == repr(value)  # types too: 1 is not 1.0


@given(st.text(max_size=30) | st.text('{}[]",:0123456789.eE+-tfnul\\ \ud800', max_size=30))
def test_no_text_raises_and_what_is_accepted_json_accepts(text: str) -> None:
    reading = read(text)
    if not reading.faults:
        assert json.loads(text) == reading.value
    else:
        assert all(fault.message for fault in reading.faults)


@SOME
@given(VALUES, st.data())
def test_every_cut_inside_an_object_is_a_syntax_fault(value: object, data: st.DataObject) -> None:
    text = json.dumps({"k": value})
    cut = data.draw(st.integers(0, len(text) - 1))
    assert kinds(text[:cut]) == [("syntax", "")]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("NaN", [("non-finite", "")]),
        ('{"a": [1, -Infinity, {"b/c~": Infinity}]}', [("non-finite", "/a/1"), ("non-finite", "/a/2/b~1c~0")]),
        ("1e999", [("non-finite", "")]),
        ('{"a": -1e400}', [("non-finite", "/a")]),
        ('{"a": 1, "a": 1}', [("duplicate key", "/a")]),
        ('{"a": 1, "\\u0061": 2}', [("duplicate key", "/a")]),
        ('{"a": 1, "a": 2, "a": 3}', [("duplicate key", "/a")] * 2),
        ('[[{"x": {"y": 0, "y": 0}}]]', [("duplicate key", "/0/0/x/y")]),
        ('{"a": 1, "A": 1}', []),
        ('{"": 1, "": 1}', [("duplicate key", "/")]),
        ('"\\ud800"', [("syntax", "")]),
        ('{"a": "\\udc00\\ud800"}', [("syntax", "/a")]),
        ('{"a": "\ud800"}', [("syntax", "/a")]),
        ('{"\\ud800": 1}', [("syntax", "")]),
        ('"\\ud83d\\ude00"', []),
        ("", [("syntax", "")]),
        (" \n", [("syntax", "")]),
        ("\ufeff{}", [("syntax", "")]),
        ("{'a': 1}", [("syntax", "")]),
        ('{"a": 1,}', [("syntax", "")]),
        ('{"a": 01}', [("syntax", "")]),
        ('{"a": .5}', [("syntax", "")]),
        ('{"a": +5}', [("syntax", "")]),
        ('{"a": 0x5}', [("syntax", "")]),
        ('{"a": "\n"}', [("syntax", "")]),
        ('{"a": "\\x41"}', [("syntax", "")]),
        ('{"a": True}', [("syntax", "")]),
        ('{"a": 1} // no', [("syntax", "")]),
        ('{"a": 1}{"b": 2}', [("syntax", "")]),
        ('{"a": 1}\xa0', [("syntax", "")]),
        ("9" * MAX_DIGITS, []),
        ("9" * (MAX_DIGITS + 1), [("syntax", "")]),
        ("0." + "9" * MAX_DIGITS, [("syntax", "")]),
        ("1e400", [("non-finite", "")]),
        ("1e-400", []),
        ("[" * MAX_DEPTH + "]" * MAX_DEPTH, []),
        ("[" * (MAX_DEPTH + 1) + "]" * (MAX_DEPTH + 1), [("syntax", "")]),
        ('{"a":' * 100_000, [("syntax", "")]),
        (json.dumps("[" * 10_000), []),
        (json.dumps(['"[', "{" * 500]), []),
        (json.dumps([[]] * 500), []),
    ],
    ids=lambda value: repr(value)[:40],
)
def test_decided_edges(text: str, expected: list[tuple[str, str]]) -> None:
    assert kinds(text) == expected


def test_integers_are_exact_at_any_size() -> None:
    assert read("18446744073709551617").value == 2**64 + 1
    assert read("9" * MAX_DIGITS).value == 10**MAX_DIGITS - 1


@pytest.mark.parametrize("value", [None, b"{}", {"a": 1}, 3])
def test_what_is_no_text_is_a_fault(value: object) -> None:
    assert [fault.kind for fault in read(value).faults] == ["syntax"]


def test_faults_say_where_and_quote_nothing() -> None:
    (fault,) = read('{"secret": "hunter2" "x"}').faults
    assert fault.offset == 21
    assert "hunter2" not in fault.message and "secret" not in fault.message


def test_pointers_follow_rfc_6901() -> None:
    assert pointer() == ""
    assert pointer("a/b", 0, "m~n", "") == "/a~1b/0/m~0n/"
