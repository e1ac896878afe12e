"""Turns as models write them, and worse: loose calls, stray markers, damage.  Functions of a seed."""

from __future__ import annotations

import json
import random
from collections.abc import Callable

from tests.support.python_writer import PythonWriter
from tests.support.words import ATOMS, LLAMA_ATOMS, NAMES, ODD_NAMES, PARAMETERS, PYTHON_END, PYTHON_START, WORDS, E, S


def template_string(rng: random.Random) -> str:
    """A string as a template writes it: single quotes, nothing escaped."""
    return "'" + "".join(rng.choice(WORDS) for _ in range(rng.randrange(1, 4))) + "'"


MALFORMED_VALUES = [
    "foo()", "foo(1, b=[2, 3])", "1 + 2", "x[0]", 'b"x"', "1j", "--5", "-True", 'f"{x}"', "1e999", "x", "x.y",
    "NaN", "-Infinity", "lambda: 0", "1 if x else 2", "[x for x in y]", "{**{}}", "(y := 1)", "1__0", "12abc",
    "...", "not x", "{'k': 1, 'k': 2}", "[1, foo()]", "{'a': [1, x]}", "'a' + 'b'", "'a'.upper()", "'%s' % x",
    "2024-01-15", "10:30", "[1,,2]", "", "*[1]", "0x", "(1 2)", "{[1]: 2}",
]  # fmt: skip


def json_object(rng: random.Random) -> str:
    """Arguments as an object, by two writers."""
    values = (rng.choice(WORDS), 1, None, [rng.choice(WORDS), 2], {"k": rng.choice(WORDS)})
    items = {rng.choice(PARAMETERS): rng.choice(values) for _ in range(rng.randrange(3))}
    return json.dumps(items, ensure_ascii=rng.random() < 0.3) if rng.random() < 0.7 else str(items)


def json_call(rng: random.Random, name: str) -> str:
    """The JSON form, in the shapes that models write: keys in any order, aliases, OpenAI's own, and what is none."""
    arguments = json_object(rng)
    if rng.random() < 0.15:
        arguments = json.dumps(rng.choice((arguments, "a=1", "")))
    key = rng.choice(("arguments", "arguments", "parameters", "args", "params", "kwargs", "input", "x"))
    items = [f'"{rng.choice(("name", "name", "name", "id"))}": "{name}"', f'"{key}": {arguments}']
    if rng.random() < 0.2:
        items.append(rng.choice(('"type": "function"', '"id": 1', '"id": {"a": 1}', '"name": "f"', '"args": {}')))
    rng.shuffle(items)
    text = "{" + ", ".join(items) + "}"
    return f'{{"type": "function", "function": {text}}}' if rng.random() < 0.15 else text


def loose_call(rng: random.Random, writer: PythonWriter) -> str:
    """A call as models write them: some templates do not escape, some values have no JSON form."""
    kind = rng.random()
    if kind < 0.4:
        return writer.call()
    name = rng.choice(NAMES + ODD_NAMES)
    if kind < 0.5:
        return json_call(rng, name)
    if kind < 0.55:
        return f"{name}({json_object(rng)})"
    arguments = []
    for parameter in rng.sample(PARAMETERS, rng.randrange(4)):
        pick = rng.random()
        if pick < 0.45:
            value = template_string(rng)
        elif pick < 0.55:
            value = "[" + ", ".join(template_string(rng) for _ in range(3)) + "]"
        elif pick < 0.65:
            value = "{" + ", ".join(f"'{rng.choice(WORDS)}': {template_string(rng)}" for _ in range(2)) + "}"
        elif pick < 0.75:
            value = rng.choice(MALFORMED_VALUES)
        elif pick < 0.8:
            value = rng.choice(("07", "0777", "1_", "- 5", "00.5", "1e400"))
        else:
            value = writer.value()
        arguments.append(f"{parameter}={value}" if rng.random() < 0.95 else value)
    return f"{name}({', '.join(arguments)})"


PLAIN_NUMBERS = [
    "1", "-2", "0", "10", "3.5", "-7.25", "2.50", "1e3", "3e-9", "0.0001", "0.00001", "007", "-0", "-0.0", "1_0",
    "123456789012345.5", "12345678901234567.5", "0x1f", "1e999",
]  # fmt: skip
PLAIN_TEXTS = ["", "abc", "it", "x y", "é", "a, b", "k: 1", "(1)", "]", "\\n", "\\\\", "\\'", '\\"', "\\v", "\\x41"]


def plain_value(rng: random.Random, depth: int = 0) -> str:
    """A value as most calls have it: what is taken at once, and what is only nearly that."""
    kind = rng.random()
    if kind < 0.25:
        return rng.choice(PLAIN_NUMBERS)
    if kind < 0.5:
        quote = rng.choice("'\"")
        return quote + rng.choice([*PLAIN_TEXTS, "'" if quote == '"' else '"']) + quote
    if kind < 0.6:
        return rng.choice(("True", "False", "None", "true", "null"))
    comma = rng.choice((", ", ", ", ", ", ",", " ,", ",  "))
    count = 0 if depth > 3 else rng.choice((0, 1, 2, 3))
    values = [plain_value(rng, depth + 1) for _ in range(count)]
    if kind < 0.8:
        return f"[{comma.join(values)}{rng.choice(('', '', '', comma))}]"
    colon = rng.choice((": ", ": ", ":", " : "))
    keys = [rng.choice(("'a'", '"a"', "'b'", '"c"', "'d'", '"e"', "'\\n'", "1")) for _ in values]
    return "{" + comma.join(key + colon + value for key, value in zip(keys, values)) + "}"


def plain_call(rng: random.Random) -> str:
    """A call with plain values; names may come twice, or be missing."""
    if rng.random() < 0.1:
        arguments = "{" + f'"{rng.choice(PARAMETERS)}": {plain_value(rng)}' + "}"
        return f'{{"name": "{rng.choice(NAMES)}", "{rng.choice(("arguments", "parameters"))}": {arguments}}}'
    comma = rng.choice((", ", ", ", ",", " , "))
    names = [rng.choice(PARAMETERS) + "=" if rng.random() < 0.9 else "" for _ in range(rng.choice((0, 1, 2, 2, 3)))]
    return f"{rng.choice(NAMES)}({comma.join(name + plain_value(rng) for name in names)})"


def make_block(rng: random.Random) -> str:
    """What stands between the markers."""
    if rng.random() < 0.3:
        calls = rng.choice((", ", ",", "; ", "\n")).join(plain_call(rng) for _ in range(rng.choice((1, 1, 2, 3))))
        return f"[{calls}]" if rng.random() < 0.8 else calls
    writer = PythonWriter(rng, odd=rng.random() < 0.3)
    calls = [loose_call(rng, writer) for _ in range(rng.choice((1, 1, 2, 3)))]
    if rng.random() < 0.75:
        text = "[" + rng.choice((", ", ",", ",\n", "\n", ", ")).join(calls) + "]"
        if rng.random() < 0.1:
            text += rng.choice((", ", "; ", "\n")) + "[" + loose_call(rng, writer) + "]"
        return text
    return rng.choice((", ", "; ", "\n", "")).join(calls)


def make_turn(rng: random.Random, dialect: str) -> str:
    """A whole turn: prose, blocks, echoes, stray markers."""
    start, end = (S, E) if dialect == "lfm2" else (PYTHON_START, PYTHON_END)
    parts: list[str] = []
    if dialect == "llama4" and rng.random() < 0.1:
        answers = [json_call(rng, rng.choice(NAMES)) for _ in range(rng.choice((1, 1, 2)))]
        text = rng.choice((", ", "; ", "\n", " ")).join(answers)
        parts.append(rng.choice(("", "", "\n", "So: ")) + (f"[{text}]" if rng.random() < 0.3 else text))
    elif dialect == "llama4" and rng.random() < 0.6:
        writer = PythonWriter(rng)
        parts.append(
            rng.choice(("", "", "\n", " ", "Let me check.\n", "So: "))
            + writer.calls()
            + rng.choice(("", "", "\n", "<|eom|>", "<|eot|>", " ok", "\nDone."))
        )
    for _ in range(rng.choice((0, 1, 1, 1, 2, 3)) if parts or dialect == "llama4" else rng.choice((1, 1, 1, 2, 3))):
        if rng.random() < 0.4:
            parts.append(
                rng.choice(("", "\n", " ")) + "".join(rng.choice(WORDS) for _ in range(2)) + rng.choice(("", "\n", " "))
            )
        block = make_block(rng)
        parts.append(
            start + rng.choice(("", "", "", "\n", " ")) + block + rng.choice((end, end, end, end, "", "\n" + end))
        )
        if rng.random() < 0.15:
            parts.append(rng.choice(("", "\n")) + block + rng.choice((end, end, "")))
        if rng.random() < 0.1:
            parts.append(rng.choice((end, start, start + " ", "<|im_end|>", start[:9], "<")))
    if rng.random() < 0.3:
        parts.append(
            rng.choice(("\n", "")) + rng.choice(("Done.", "[Note] ok", "<b>", " ", "<|im_end|>", "\n\nIs that all?\n"))
        )
    return "".join(parts)


def damage(rng: random.Random, text: str, other: Callable[[], str], dialect: str) -> str:
    """``text`` cut, spliced, doubled, or with characters deleted, inserted, changed or swapped."""
    atoms = ATOMS if dialect == "lfm2" else LLAMA_ATOMS
    for _ in range(rng.choice((1, 1, 1, 2, 3, 6))):
        at = rng.randrange(len(text) + 1)
        to = min(len(text), at + rng.choice((1, 1, 1, 2, 5, 20)))
        kind = rng.randrange(9)
        if kind == 0:
            text = text[:at]
        elif kind == 1:
            text = text[:at] + text[to:]
        elif kind == 2:
            text = text[:at] + rng.choice(atoms) + text[at:]
        elif kind == 3:
            text = text[:at] + rng.choice(atoms) + text[to:]
        elif kind == 4:
            text = text[:at] + text[at:to][::-1] + text[to:]
        elif kind == 5:
            text = text[:at] + text[at:to] * 2 + text[to:]
        elif kind == 6:
            second = other()
            text = text[:at] + second[rng.randrange(len(second) + 1) :]
        elif kind == 7:
            text = text[at:]
        else:
            quotes = [i for i, char in enumerate(text) if char in "'\"\\,()[]{}="]
            if quotes:
                at = rng.choice(quotes)
                text = text[:at] + rng.choice(("", "'", '"', "\\", ",", ")", "]", "(", "[")) + text[at + 1 :]
    return text
