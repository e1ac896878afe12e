"""What is written for the keywords of strings, in both quotes."""

from __future__ import annotations

from typing import Any

import pytest

pytest.importorskip("xgrammar", reason="the grammar needs xgrammar, which comes with vLLM")

from tests.support.tags import one

pytestmark = pytest.mark.usefixtures("engines")


def test_strings() -> None:
    one(
        {"type": "string"},
        [
            '""',
            "''",
            '"a\'b"',
            "'a\"b'",
            '"\\n\\u00e9\\\\"',
            "'it\\'s'",
            '"\\ud83d\\ude00"',
            '"<|"'.replace("|", "b|"),
            '"<"',
        ],
        [
            '"<|im_end|>"',
            "'a<|b'",
            '"a\nb"',
            '"\\ud83d"',
            '"\\/"',
            '"\\d"',
            "x",
            '"a" "b"',
            'r"a"',
            'f"a"',
            '"',
            '"<<|"',
            "1",
        ],
    )


def test_string_limits() -> None:
    one(
        {"type": "string", "minLength": 2, "maxLength": 3},
        ['"ab"', '"ab\\n"', '"é😀"', '"\\ud83d\\ude00a"'],
        ['"a"', '"abcd"'],
    )
    one({"type": "string", "minLength": 60}, ['"' + "a" * 60 + '"'], ['"' + "a" * 59 + '"'])
    one({"type": "string", "maxLength": 300}, ['""', '"' + "a" * 300 + '"'], ['"' + "a" * 301 + '"'])
    one({"type": "string", "pattern": "^a+$", "maxLength": 3}, ['"a"', '"aaa"'], ['""', '"aaaa"', '"ab"'])
    one({"type": "string", "pattern": "b"}, ['"abc"', '"b"'], ['"a"', '""'])
    one({"type": "string", "pattern": '^"<|x$'}, ['"\\"<"', '"ax"'], ['"<"'])
    one({"type": "string", "format": "date"}, ['"2024-02-29"', "'1999-12-31'"], ['"2023-02-29"', '"2024-13-01"', '"x"'])
    one(
        {"type": "string", "format": "date-time"},
        ['"2024-02-29T10:00:00Z"'],
        ['"2024-02-29"', '"2024-02-30T10:00:00Z"'],
    )
    one({"pattern": "^x", "allOf": [{"pattern": "y$"}], "type": "string"}, ['"xy"', '"x y"'], ['"x"', '"yx"'])


@pytest.mark.parametrize(
    ("limits", "right", "wrong"),
    [
        ({"maxLength": 1}, ["", "a", "<", "é"], ["ab", "<<", "<|"]),
        (
            {"maxLength": 9},
            ["", "a < b >> c"[:9], "it\\'s < 9", "<<<<<<<<<", "한국어 하하!"],
            ["0123456789", "<|im_end|"],
        ),
        ({"minLength": 3, "maxLength": 5}, ["a<b", "<<<<<", "\\u0041<x"], ["ab", "<<", "a<|b", "abcdef"]),
        ({"minLength": 20}, ["x" * 20, "<" * 30], ["x" * 19]),
        ({"pattern": "^[^/]{1,6}$"}, ["a<b", "<"], ["", "a/b", "abcdefg"]),
        ({"pattern": "^[a-z]([-a-z]*[a-z])?$", "maxLength": 20}, ["a", "ab-c"], ["", "a-", "-a", "a" * 21]),
        ({"pattern": "^[a-z0-9]+$", "maxLength": 63}, ["a", "a" * 63], ["", "A", "a" * 64]),
    ],
)
def test_limited_strings_in_both_quotes(limits: dict[str, Any], right: list[str], wrong: list[str]) -> None:
    def written(texts: list[str]) -> list[str]:
        return [f"{quote}{text}{quote}" for quote in "\"'" for text in texts]

    mixed = [f"\"{right[-1]}'", f"'{right[-1]}\""]
    one({"type": "string", **limits}, written(right), [*written(wrong), *mixed])
