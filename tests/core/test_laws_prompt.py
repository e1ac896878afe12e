"""Law L4: what is streamed is only ever added to, and what is certain is sent at once."""

from __future__ import annotations

import ast
import random
from typing import Any

import partial_json_parser  # type: ignore[import-untyped]
import pytest
from hypothesis import given

from lfm2_fixed import PythonicStream
from lfm2_fixed.core.dialects import DIALECTS
from tests.support.harness import Turn, every, json_text, random_cut, stream
from tests.support.smallest import check
from tests.support.strategies import Input, any_input, dialects, seeds
from tests.support.words import S


@given(any_input(), seeds)
def test_l4_append_only(given_input: Input, seed: int) -> None:
    """Every streamed prefix reads as a partial JSON object, and the whole result extends it."""
    dialect, text, tools = given_input

    def law(text: str) -> None:
        prefixes: dict[int, list[str]] = {}

        def watch(turn: Turn, events: list[Any], piece: str) -> None:
            if turn.started and events:
                prefixes.setdefault(len(turn.started), []).append(turn.started[-1].arguments)

        rng = random.Random(seed)
        pieces = every(text, 1) if len(text) < 120 else random_cut(text, rng)
        turn = stream(pieces, dialect, tools, watch=watch)
        for number, seen in prefixes.items():
            final = turn.started[number - 1].arguments
            for prefix in dict.fromkeys(seen):
                assert prefix and final.startswith(prefix)
                assert isinstance(partial_json_parser.loads(prefix), dict), prefix

    check(text, law, (dialect, tools))


class Prompt:
    """Writes a call list and notes, character by character, how much of the JSON must have been sent."""

    def __init__(self, rng: random.Random, dialect: str) -> None:
        self.rng = rng
        self.dialect = DIALECTS[dialect]
        self.text = self.dialect.start + "["
        self.sent: list[str] = []  # the calls' JSON so far
        self.due: list[tuple[int, list[str]]] = []  # (characters fed, JSON that must be out by then)

    def mark(self) -> None:
        """All JSON written so far is certain with the last character written."""
        self.due.append((len(self.text), list(self.sent)))

    def put(self, text: str, output: str = "") -> None:
        """Source text and the JSON it stands for."""
        self.text += text
        if output:
            self.sent[-1] += output

    def string(self) -> None:
        """A string: every character is due with the delta that brought it."""
        rng = self.rng
        quote = rng.choice("'\"")
        self.put(quote, '"')
        escaping = raw = False  # an escaped quote before, a newline as it is: who writes so does not escape
        for _ in range(rng.choice((1, 3, 30))):
            char = rng.choice("abc xyz.,:;()[]{}=#+-1ü世😀\n\t" if not rng.randrange(4) else "abcdefgh ")
            if rng.random() < 0.1:
                escape, char = rng.choice(
                    (("\\n", "\n"), ("\\x41", "A"), ("\\\\", "\\"), ("\\'", "'"), ("\\u00e9", "é"), ("\\d", "\\d"))
                )
                if raw and escape != "\\" + quote:
                    char = escape
                escaping = escaping or (escape == "\\" + quote and not raw)
                self.put(escape, json_text(char)[1:-1])
            else:
                raw = raw or (char == "\n" and not escaping)
                self.put(char, json_text(char)[1:-1])
            self.mark()
        self.put(quote, '"')

    def value(self, depth: int = 0) -> None:
        """A literal. A number is due with the character that ends it, which the caller writes."""
        rng = self.rng
        kind = rng.random()
        if kind < 0.5 or depth > 3:
            self.string()
        elif kind < 0.7:
            text = rng.choice(("5", "-12", "True", "None", "1.5", "null"))
            self.put(text, json_text(ast.literal_eval(text.replace("null", "None"))))
        elif kind < 0.85:
            self.put("[", "[")
            for i in range(rng.randrange(3)):
                if i:
                    self.put(", ", ", ")
                self.value(depth + 1)
            self.put("]", "]")
        else:
            self.put("{", "{")
            for i in range(rng.randrange(3)):
                if i:
                    self.put(", ", ", ")
                self.put(f"'k{i}': ", f'"k{i}": ')
                self.value(depth + 1)
            self.put("}", "}")

    def calls(self) -> None:
        """One to three calls; each is due, complete, with the character after its parenthesis."""
        count = self.rng.choice((1, 2, 3))
        for i in range(count):
            self.sent.append("{")
            self.put(f"w{i}(")
            for j in range(self.rng.randrange(4)):
                if j:
                    self.put(", ", ", ")
                self.put(f"p{j}=", f'"p{j}": ')
                self.value()
            self.put(")", "}")
            self.put("," if i + 1 < count else "]")
            self.mark()
            if i + 1 < count:
                self.put(" ")
        self.put(self.dialect.ends[0])


@given(dialects, seeds)
def test_l4_prompt(dialect: str, seed: int) -> None:
    """What is certain is sent with the delta that made it so, and not a delta later."""
    prompt = Prompt(random.Random(seed), dialect)
    prompt.calls()
    got: dict[int, list[str]] = {}
    fed = 0

    def watch(turn: Turn, events: list[Any], piece: str) -> None:
        nonlocal fed
        fed += len(piece)
        got[fed] = [call.arguments for call in turn.started]

    turn = stream(every(prompt.text, 1), dialect, watch=watch)
    assert [arguments for _, arguments in turn.calls] == prompt.sent
    for position, due in prompt.due:
        sent = got[position]
        assert len(sent) >= len(due) or not due[-1], (prompt.text[:position], sent, due)
        for mine, theirs in zip(due, sent):
            assert theirs.startswith(mine) or len(theirs) >= len(mine), (prompt.text[:position], sent, due)


@pytest.mark.parametrize("dialect", DIALECTS)
def test_l4_content_is_prompt(dialect: str) -> None:
    """Prose goes out with the delta that brought it; only a possible marker or blanks wait."""
    text = "The quick (brown) fox, 'jumps' over: {the} \"lazy\" dog = 1. Ünï 世界 < 5 <b> end"
    out = ""

    def watch(turn: Turn, events: list[Any], piece: str) -> None:
        nonlocal out
        out += piece
        waiting = out.rstrip(" ")
        if not waiting.endswith("<"):
            assert turn.content.rstrip(" ") == waiting

    assert stream(every(text, 1), dialect, watch=watch).content == text


@pytest.mark.parametrize(
    "text, sent",
    [
        # Behind the comma would be a key: a quote and a newline begin none, whatever comes.
        ("""[f(x={"k": 'a'b', "\n""", """{"x": {"k": "a'b', \\"\\n"""),
    ],
)
def test_l4_quotes_are_prompt(text: str, sent: str) -> None:
    """A quote is text with the character that shows that it does not close."""
    machine, turn = PythonicStream(), Turn()
    for piece in every(S + text, 1):
        turn.add(machine.feed(piece))
    assert turn.started[0].arguments == sent
