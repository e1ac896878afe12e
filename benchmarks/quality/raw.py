"""The corpus of texts as values: how they are written, and where they stand."""

from __future__ import annotations

import json
import random
from collections.abc import Callable, Iterator
from typing import Any

from .example import END, START, Example, dump
from .python import read_by_python
from .sources import texts

Writer = Callable[[str], str]


def _quoted(quote: str) -> Writer:
    """Quotes around, nothing escaped: the templates of LFM2.5-8B-A1B and LFM2.5-VL."""
    return lambda text: quote + text + quote


def _single_escaped(text: str) -> str:
    """Backslashes, apostrophes and newlines escaped, always in single quotes: the newer templates."""
    return "'" + text.replace("\\", "\\\\").replace("'", "\\'").replace("\n", "\\n") + "'"


def _triple(text: str) -> str:
    """Triple quotes, newlines as they are."""
    text = text.replace("\\", "\\\\")
    if '"""' in text or text.endswith('"'):
        text = text.replace('"', '\\"')
    return '"""' + text + '"""'


WRITERS: dict[str, Writer] = {
    "raw '": _quoted("'"),
    'raw "': _quoted('"'),
    "repr": repr,
    "json.dumps": json.dumps,
    "escaped '": _single_escaped,
    "triple": _triple,
}
RAW = ("raw '", 'raw "')

# Calls that stand before and behind the one in question, as models write them.
_SIBLINGS: list[tuple[str, str, dict[str, Any]]] = [
    ("bash(command='ls -la')", "bash", {"command": "ls -la"}),
    ('bash(command="echo hi", timeout=5)', "bash", {"command": "echo hi", "timeout": 5}),
    ("get_weather(city='Paris', metric=True)", "get_weather", {"city": "Paris", "metric": True}),
    ("move(x=1.5, y=-2)", "move", {"x": 1.5, "y": -2}),
    ('search(pattern="TODO", paths=["a", "b"])', "search", {"pattern": "TODO", "paths": ["a", "b"]}),
]


def _argument(source: str, text: str, rng: random.Random) -> tuple[str, str, dict[str, Any]]:
    """The value as an argument: the last, in the middle, or the only one."""
    place = rng.randrange(3)
    if place == 0:
        return f"write_file(path='a.py', content={source})", "write_file", {"path": "a.py", "content": text}
    if place == 1:
        return f"write_file(content={source}, mode='w')", "write_file", {"content": text, "mode": "w"}
    return f"bash(command={source})", "bash", {"command": text}


def _in_list(source: str, text: str, rng: random.Random) -> tuple[str, str, dict[str, Any]]:
    """The value in a list: alone, first, in the middle, last."""
    before = ["'x'"] * rng.randrange(2)
    behind = ["'y z'"] * rng.randrange(2)
    listed = ", ".join([*before, source, *behind])
    value = [*["x"] * len(before), text, *["y z"] * len(behind)]
    return f"edit(path='a', edits=[{listed}], count=1)", "edit", {"path": "a", "edits": value, "count": 1}


def _in_dict(source: str, text: str, rng: random.Random) -> tuple[str, str, dict[str, Any]]:
    """The value in a dict: the only one, first, or last."""
    place = rng.randrange(3)
    if place == 0:
        return f"save(title='t', meta={{'text': {source}}})", "save", {"title": "t", "meta": {"text": text}}
    if place == 1:
        return (
            f'save(meta={{"text": {source}, "n": 1}}, title="t")',
            "save",
            {"meta": {"text": text, "n": 1}, "title": "t"},
        )
    return f"save(meta={{'n': 'a', 'text': {source}}})", "save", {"meta": {"n": "a", "text": text}}


PLACES = {"argument": _argument, "list": _in_list, "dict": _in_dict}


def examples(count: int, seed: int, declared: bool | None, writers: tuple[str, ...] = ()) -> Iterator[Example]:
    """``count`` texts by every writer, each in a place of its own, with a call before, behind, both or none.

    ``declared``: whether the request declares the tools; None: half of them.
    """
    for number, (kind, text) in enumerate(texts(count, seed)):
        rng = random.Random(f"{seed} {number} {kind}")
        place = rng.choice(("argument", "argument", "list", "dict"))
        state = rng.getstate()
        for name in writers or tuple(WRITERS):
            rng.setstate(state)  # the same place and siblings for every writer
            source, tool, arguments = PLACES[place](WRITERS[name](text), text, rng)
            target = (tool, dump(arguments))
            around = rng.choice(("", "b", "a", "ab"))
            before = [rng.choice(_SIBLINGS)] if "b" in around else []
            behind = [rng.choice(_SIBLINGS)] if "a" in around else []
            block = "[" + ", ".join([one[0] for one in before] + [source] + [one[0] for one in behind]) + "]"
            yield Example(
                text=START + block + END,
                row=f"{name}|{kind}|{place}",
                target=target,
                siblings=tuple((sibling, dump(value)) for _, sibling, value in before + behind),
                declared=rng.random() < 0.5 if declared is None else declared,
                python=tuple(read_by_python(f"[{source}]") or ()),
            )
