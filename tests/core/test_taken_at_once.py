"""What readers take at once where it is all there is what they read piece by piece, and what CPython reads."""

from __future__ import annotations

import ast
import json
import re

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from lfm2_fixed import PythonicStream
from lfm2_fixed.core.escapes import read_shared, same_json, scan_shared, unescape
from lfm2_fixed.core.numbers import number_json
from lfm2_fixed.core.tokens import PLAIN_BODY, SAME, SAME_NUMBER, SIMPLE_ESCAPES
from tests.support.examples import SOME
from tests.support.harness import every, stream

S, E = "<|tool_call_start|>", "<|tool_call_end|>"
digits = st.text("0123456789", max_size=9)


@SOME
@given(st.sampled_from(["", "-"]), digits, st.sampled_from(["", ".", ".0"]), digits)
@example("", "0", ".", "0001")
@example("-", "0", ".", "0")
@example("", "123456789012", ".", "345")
@example("-", "1" + "0" * 99, "", "")
def test_same_numbers(sign: str, before: str, point: str, after: str) -> None:
    """Numbers that pass unchanged are what the number's reader writes, and what CPython writes."""
    token = sign + before + point + after
    if re.fullmatch(SAME_NUMBER, token):
        assert number_json(token.lstrip("-"), token[0]) == token
        assert json.dumps(ast.literal_eval(token)) == token


@pytest.mark.parametrize("token", ["0.00001", "1.50", "01", "-0", "1.", ".5", "1e5", "123456789012.3456", "1_0", "٣"])
def test_other_numbers(token: str) -> None:
    """Numbers that JSON writes differently are not among them."""
    assert not re.fullmatch(SAME_NUMBER, token)


@SOME
@given(st.text(st.sampled_from([*" ab09/:,[](){}<|#=\x7f\u0085\u2028\ufffd\U0001f600é'"])))
def test_plain_bodies(body: str) -> None:
    """Strings of plain text are the same in Python and as ``json.dumps`` writes them."""
    assert re.fullmatch(PLAIN_BODY['"'], body)
    assert json.dumps(ast.literal_eval(f'"{body}"'), ensure_ascii=False) == f'"{body}"'


@pytest.mark.parametrize("char", ["\\", '"', "\n", "\r", "\0", "\x1f", "\ud800", "\udfff"])
def test_no_plain_bodies(char: str) -> None:
    """What JSON writes otherwise, what ends a literal and what makes it a raw one is no plain text."""
    assert not re.fullmatch(PLAIN_BODY['"'], f"a{char}b")


def test_same_in_both_quotes() -> None:
    """The set that says what it holds is all characters that are plain text between both quotes."""
    bodies = [re.compile(body) for body in PLAIN_BODY.values()]
    same = re.compile(SAME)
    for char in map(chr, range(0x11000)):
        assert bool(same.match(char)) == all(body.fullmatch(char) for body in bodies), hex(ord(char))
    assert same.match("\U0010ffff")


NUMBERS = ["1", "-7.25", "3e-9", "1_0", "0x1F", "1.50", ".5", "+4", "00", "1e999", "True", "'1'", "[2]"]


@SOME
@given(st.lists(st.sampled_from(NUMBERS), min_size=1, max_size=6), st.sampled_from([", ", ",", " , "]))
@example(["1", "3e-9", "1e999", "1"], ", ")
@example(["1", "3e-9", "3e-9"], ", ")
@example(["1", "3e-9", "+4"], ", ")
def test_runs_of_numbers(numbers: list[str], comma: str) -> None:
    """Numbers in a list are the same whether they come at once or in single characters."""
    text = f"{S}[f(a=[{comma.join(numbers)}])]{E}"
    whole, pieces = stream([text]), stream(text)
    assert (whole.calls, whole.content) == (pieces.calls, pieces.content)


@SOME
@given(st.lists(st.sampled_from([*"abn", *(f"\\{escape}" for escape in SIMPLE_ESCAPES)])).map("".join))
@example("\\\\n\\\\\\n\\\\\\\\n")
@example("\\a\\v\\'\\\"\\\\n")
def test_simple_escapes(body: str) -> None:
    """Simple escapes are decoded as CPython decodes them."""
    assert unescape(body) == ast.literal_eval(f"'''{body} '''")[:-1]


SHARED = [*"ab né世😀u0", *(rf"\{escape}" for escape in "\\bfnrt")]
"""Text, and escapes that JSON shares in a literal of either kind.  Quotes are added by the kind."""


@pytest.mark.parametrize("quote", ["'", '"'])
@SOME
@given(st.data())
def test_shared_escapes(quote: str, data: st.DataObject) -> None:
    """What is sent undecoded is what CPython reads and ``json.dumps`` writes."""
    quotes = ["/", rf"\{quote}", "'" if quote == '"' else '"', *([r"\""] if quote == "'" else [])]
    body = data.draw(st.lists(st.sampled_from([*SHARED, *quotes])).map("".join))
    value = ast.literal_eval(f"{quote}{body}{quote}")
    assert f'"{same_json(body, quote)}"' == json.dumps(value, ensure_ascii=False)
    assert read_shared(same_json(body, quote)) == value


@SOME
@given(st.lists(st.sampled_from([*SHARED, r"\"", "'", r"\u00e9", r"\u0022", r"\u0000", r"\u2028"])).map("".join))
def test_scanned_escapes(body: str) -> None:
    """JSON's scanner reads what it reads at all as CPython does, up to the quote or the end of the text."""
    value = ast.literal_eval(f'"{body}"')
    assert scan_shared("x" + body + "and more", 1) == (value + "and more", len(body) + 9)
    assert scan_shared(body + '", b="', 0) == (value, len(body))


@pytest.mark.parametrize("body", ["\\n\\a", "\\n\\'", "\\n\\x41", "\\n\n", "\\n\t", "\\n\\ ", "\\n\\u12", "\\n\\1"])
def test_what_json_does_not_share_is_not_scanned(body: str) -> None:
    """Escapes that are Python's alone, unfinished ones, control characters (a newline may be the sign of a raw
    literal): the string's reader decides about them."""
    assert scan_shared(body + " and more", 0) == ("", 0)
    assert scan_shared(r"a\n\u00e", 0) == ("a\n", 3)  # what may not be all there stays
    assert scan_shared(r"\n\/ab", 0) == ("\n", 2)  # JSON reads a slash there, Python a backslash and a slash


LONG = r"x\n" * 100


@pytest.mark.parametrize(
    "body, value",
    [
        # Behind the sign of a raw literal, a newline, backslashes are text, but not in a literal whose own delimiter
        # was escaped before (contract 4.3).  The delimiter's code is no such sign of a writer who escapes.
        (LONG + "\n" + r"C:\temp", "x\n" * 100 + "\nC:\\temp"),
        (LONG + r"\u0022" + "\n" + r"C:\temp", "x\n" * 100 + '"\nC:\\temp'),
        (LONG + r"\"" + "\n" + r"C:\temp", "x\n" * 100 + '"\nC:\temp'),
        # Halves of a surrogate pair, apart or alone.
        (LONG + r"\ud83d" + LONG + r"\ud83d\ude00", "x\n" * 100 + "\ufffd" + "x\n" * 100 + "\U0001f600"),
        (r"\ud83d\n\ud83d\ude00", "\ufffd\n\U0001f600"),
        (r"\ud83d\ude00\n" * 50 + r"\ud83d", "\U0001f600\n" * 50 + "\ufffd"),
    ],
)
def test_long_escaped_text(body: str, value: str) -> None:
    """However it is cut, and whether a pattern or JSON's scanner reads it."""
    text = f'{S}[f(a="{body}")]{E}'
    for pieces in ([text], every(text, 1), every(text, 7), re.split(r"(?=\\)", text), text.partition("\n")):
        assert [json.loads(arguments) for _, arguments in stream(pieces).calls] == [{"a": value}]


VALUES = [
    "1", "-7.5", "0", "07", "1e3", "None", "true", "Truex", "'x'", '"x"', "'say \"hi\"'", "'it\\'s'", "''", '""',
    "'''x'''", "'x' 'y'", "'a'b'", "r'x'", "[1, 2]", "[1, 'x', -2.5, ]", "{'k': 1}", '{"k": "v", "l": [null]}',
    "{'k' : 'v', 3: 4}", "{'a', 'b'}", "(1, 2)", "'x'.y", "1 + 2", "'x' + 'y'", "'é\\x41'", "'x\ny'",
]  # fmt: skip


@pytest.mark.parametrize("tools", [None, {"f": ["a", "b", "c"]}], ids=["undeclared", "declared"])
@pytest.mark.parametrize("first", VALUES)
def test_at_once_and_piece_by_piece(first: str, tools: dict[str, list[str]] | None) -> None:
    """Two arguments, with and without names, are the same whole (taken) and in single characters (read)."""
    for second in VALUES:
        for call in (f"f(a={first}, b={second})", f"f({first}, {second} , )", f"f({first}, c={second})"):
            same_at_once(call, tools)


@pytest.mark.parametrize("first", VALUES)
def test_json_calls_at_once_and_piece_by_piece(first: str) -> None:
    """The same for calls in JSON form, and for entries of dicts: all there, or with more than scalars."""
    for second in VALUES:
        for call in (
            f'{{"name": "f", "arguments": {{"a": {first}, "b": {second}}}}}',
            f'{{"name": "f", "parameters": {{"a": {first}, \'b\': {second} , }}}} + 1',
            f"f(a={{{first}: {second}, 'k': {first}, \"l\" : {second} }})",
        ):
            same_at_once(call)


def same_at_once(call: str, tools: dict[str, list[str]] | None = None) -> None:
    text = f"{S}[{call}, f(b=1) ]{E}"
    whole, ones = stream([text], tools=tools), stream(every(text, 1), tools=tools)
    assert (whole.started, whole.content) == (ones.started, ones.content), call


@pytest.mark.parametrize("text", ['[f(a=["x\',"\n', '[f(a={\'\':"s""\n', "[f(a={'':''\"\n", '[f(a={\'\':"","\n'])
def test_a_look_ahead_knows_as_much_however_the_text_is_cut(text: str) -> None:
    """A literal that is looked ahead at ends with its line, and no character is waited for behind that."""
    said = []
    for pieces in ([S + text], list(S + text)):
        machine = PythonicStream("lfm2", {"f": ["a"]})
        said.append([event for piece in pieces for event in machine.feed(piece)])
    assert "".join(getattr(event, "text", "") for event in said[0]) == "".join(
        getattr(event, "text", "") for event in said[1]
    )
