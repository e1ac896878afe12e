"""The laws of the contract as properties. The profile (``HYPOTHESIS_PROFILE``) sets the number of examples."""

from __future__ import annotations

import ast
import json
import random
import warnings
from typing import Any

import partial_json_parser  # type: ignore[import-untyped]
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from lfm2_fixed.core.dialects import DIALECTS
from tests.support.harness import Tools, Turn, every, json_text, random_cut, read_object, stream, whole, with_empties
from tests.support.oracle import read
from tests.support.strategies import (
    MALFORMED_VALUES,
    NAMES,
    PARAMETERS,
    WORDS,
    E,
    PythonWriter,
    S,
    any_input,
    check,
    damage,
    dialects,
    from_seed,
    make_tools,
    python_lists,
    quote_turns,
    seeds,
    token_texts,
)

Input = tuple[str, str, "dict[str, Any] | None"]


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


# ------------------------------------------------------------------ L4


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

    def __init__(self, rng: random.Random) -> None:
        self.rng = rng
        self.text = S + "["
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
        self.put(E)


@given(seeds)
def test_l4_prompt(seed: int) -> None:
    """What is certain is sent with the delta that made it so, and not a delta later."""
    prompt = Prompt(random.Random(seed))
    prompt.calls()
    got: dict[int, list[str]] = {}
    fed = 0

    def watch(turn: Turn, events: list[Any], piece: str) -> None:
        nonlocal fed
        fed += len(piece)
        got[fed] = [call.arguments for call in turn.started]

    turn = stream(every(prompt.text, 1), watch=watch)
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


# ------------------------------------------------------------------ L5, L8


def test_l5_text_is_content_exactly() -> None:
    """Without a marker there is nothing but content."""
    rng = random.Random(5)
    for _ in range(1500):
        text = "".join(rng.choice(WORDS) for _ in range(rng.randrange(8)))
        if S in text or E in text:
            continue
        assert whole(text) == ([], text)
        assert stream(random_cut(text, rng)).completed == ([], text)


class Siblings:
    """A block of good and malformed calls, with what must come of each."""

    def __init__(self, rng: random.Random) -> None:
        self.rng = rng
        self.writer = PythonWriter(rng, blanks=False)
        self.calls: list[tuple[str, str]] = []
        self.segments: list[str] = []

    def block(self) -> str:
        """The block's text between the markers."""
        parts = []
        for _ in range(self.rng.choice((1, 2, 3, 4))):
            if self.rng.random() < 0.5:
                parts.append(self.good())
            else:
                parts.append(self.bad())
        if self.rng.random() < 0.7:
            return "[" + self.rng.choice((", ", ",", ",\n")).join(parts) + "]"
        return self.rng.choice(("; ", "\n", ";")).join(parts)

    def good(self) -> str:
        """A call that Python reads."""
        while True:
            text = self.writer.call()
            read_back = read(f"[{text}]")
            if read_back is not None and E not in text and S not in text:
                self.calls += read_back
                return text

    def bad(self) -> str:
        """A call with one value that has no JSON form, anywhere among its arguments."""
        rng = self.rng
        arguments = []
        for parameter in rng.sample(PARAMETERS, rng.randrange(3)):
            value = self.writer.value(3)
            while "\n" in value or read(f"[f(x={value})]") is None or S in value or E in value:
                value = self.writer.value(3)
            arguments.append(f"{parameter}={value}")
        arguments.insert(rng.randrange(len(arguments) + 1), f"bad={rng.choice(MALFORMED_VALUES)}")
        text = f"{rng.choice(NAMES)}({', '.join(arguments)})"
        self.segments.append(text)
        return text


@given(seeds)
def test_l8_one_bad_call_stays_one(seed: int) -> None:
    """Siblings of a malformed call survive, and the call itself is given back as it was written."""
    rng = random.Random(seed)
    siblings = Siblings(rng)
    text = "".join(S + siblings.block() + E for _ in range(rng.choice((1, 1, 2))))
    expected = (siblings.calls, "\n".join(siblings.segments))
    assert whole(text) == expected, text
    turn = stream(random_cut(text, rng))
    assert turn.completed == expected, text
    assert all(call.state in ("complete", "malformed") for call in turn.started)


@given(seeds)
def test_l5_turns_of_known_parts(seed: int) -> None:
    """A turn of prose and blocks: every part comes back as what it is."""
    rng = random.Random(seed)
    siblings = Siblings(rng)
    text = ""
    for i in range(rng.choice((1, 2, 3))):
        prose = "".join(rng.choice(WORDS) for _ in range(rng.randrange(3)))
        prose = "".join(char for char in prose if char.isprintable() and not char.isspace()).replace(E, "")
        if prose.endswith("<") or S in prose:
            prose += "."
        if prose:
            text += rng.choice(("", "\n", " ", "\n\n")) * bool(i) + prose + rng.choice(("", "\n", " "))
            siblings.segments.append(prose)
        text += S + rng.choice(("", "\n", " ")) + siblings.block() + rng.choice(("", "\n", " ")) + E
    calls, content = siblings.calls, "\n".join(siblings.segments)
    assert whole(text) == (calls, content), text
    assert stream(random_cut(text, rng)).completed == (calls, content), text


@given(any_input())
def test_l5_nothing_invented(given_input: Input) -> None:
    """Content is made of the text's own characters, in their order; only the joining newlines are new."""
    dialect, text, tools = given_input

    def law(text: str) -> None:
        _, content = whole(text, dialect, tools)
        source = iter(text)
        assert all(char in source for char in content if not char.isspace())

    check(text, law, (dialect, tools))


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
