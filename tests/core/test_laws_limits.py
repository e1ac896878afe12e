"""Law L7: no input raises; what is nested too deep or has too many digits is malformed, and nothing worse."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lfm2_fixed import parse
from tests.support.harness import every, read_object, stream, whole
from tests.support.words import E, S

pytestmark = pytest.mark.usefixtures("no_log")

DEEP, DIGITS = 200, 4000


@pytest.mark.parametrize("opener, closer", ["[]", "()", "{}"] + [("{'k': ", "}"), ("[(", ")]"), ("[1, ", "]")])
def test_depth(opener: str, closer: str) -> None:
    """Deep nesting is read below the limit, and malformed, not fatal, above it."""
    for levels, fine in ((DEEP - 10, True), (DEEP + 10, False), (5000, False)):
        count = levels // (2 if opener == "[(" else 1)
        inner = "1, 2" if opener in "({" else "1"  # `((1))` is a number, not nested arrays
        value = opener * count + inner + closer * count
        text = f"{S}[u(a=1), w(x={value}), v(b=2)]{E}"
        calls, content = whole(text)
        names = [name for name, _ in calls]
        if fine:
            assert names == ["u", "w", "v"] and content == ""
            read_object(calls[1][1])
        else:
            assert names == ["u", "v"] and content == f"w(x={value})"
        if levels < 1000:
            assert stream(every(text, 1)).completed == (calls, content)


def test_depth_of_parentheses() -> None:
    """Parentheses around a value nest too."""
    text = f"{S}[w(x={'(' * 5000}1{')' * 5000}), v(b=2)]{E}"
    assert whole(text)[0] == [("v", '{"b": 2}')]
    assert whole(text.replace("(" * 5000, "(" * 150).replace(")" * 5000, ")" * 150))[0][0] == ("w", '{"x": 1}')


@pytest.mark.parametrize("depth", [500, 20000])
def test_deep_and_cut(depth: int) -> None:
    """Cut or closed wrongly at any depth: nothing raises."""
    for text in (
        S + "[w(x=" + "[" * depth,
        S + "[w(x=" + "[" * depth + "]" * (depth - 3) + E,
        S + "[" * depth,
        S + "[w(" + "f(" * depth,
    ):
        assert stream(every(text, 997)).completed == whole(text)


@pytest.mark.parametrize("sign", ["", "-", "+"])
def test_long_numbers(sign: str) -> None:
    """4,000 digits are a number, more are malformed; nothing raises, whatever the base."""
    for count, fine in ((DIGITS - 1, True), (DIGITS, True), (DIGITS + 1, False), (50_000, False)):
        text = f"{S}[w(x={sign}{'7' * count}), v(b=2)]{E}"
        calls, content = whole(text)
        if fine:
            assert calls[0] == ("w", f'{{"x": {sign.strip("+")}{"7" * count}}}') and content == ""
        else:
            assert calls == [("v", '{"b": 2}')] and content == f"w(x={sign}{'7' * count})"
        assert stream(every(text, 501)).completed == (calls, content)


@pytest.mark.parametrize(
    "form",
    ["0x{}", "0o{}", "0b{}", "0{}", "1_{}", "1.{}", "1e{}", ".{}", "{}e1", "{}.5", "1e-{}", "{{{}: 1}}", "[{}]", "{}j"],
)
@pytest.mark.parametrize("count", [3000, 4001, 20_000])
def test_long_numbers_of_every_form(form: str, count: int) -> None:
    """Long numbers in every form: one result in every cutting, valid JSON, siblings survive."""
    text = f"{S}[w(x={form.format('1' * count)}), v(b=2)]{E}"
    calls, content = whole(text)
    assert calls[-1] == ("v", '{"b": 2}')
    assert len(calls) == 2 or content == text[len(S) + 1 : text.index(", v(")]
    for _, arguments in calls:
        read_object(arguments)
    assert stream(every(text, 333)).completed == (calls, content)


@given(st.text(max_size=60), st.text(max_size=60))
def test_never_raises_on_names(name: str, parameter: str) -> None:
    """Declared names may be any text."""
    stream([f"{S}[{name}({parameter}=1)]{E}"], "lfm2", {name: [parameter]})
    parse(f"[{name}({parameter}=1)]", "llama4", {name: [parameter]})
