"""Realistic calls written as the models' chat templates write them, with and without escaped apostrophes.

Escaped, every call must come back exactly.  Unescaped, the text is ambiguous: the rate is measured
and printed, and nothing may come back *wrong* unless Python itself reads the text otherwise.
"""

from __future__ import annotations

import json
import random
import re
from dataclasses import dataclass
from typing import Any

import pytest

from tests.support.examples import QUICK
from tests.support.harness import json_text, random_cut, stream, whole
from tests.support.oracle import read
from tests.support.words import E, S

COUNT = 600 if QUICK else 3000

SHELL = [
    "sed -n '1,9p' src/main.py", "awk -F',' '{print $1, $2}' data.csv | sort -u",
    "grep -rn 'TODO' --include='*.py' .", "echo 'hello world' > out.txt",
    "find . -name '*.log' -mtime +7 -exec rm {} \\;", "git commit -m 'Fix the parser's state'",
    "python -c 'import sys; print(sys.version)'",
    "curl -s -H 'Accept: application/json' 'https://x.io/a?b=1&c=2' | jq '.items[0]'",
    "docker run --rm -e KEY='a b' img sh -c 'ls -la'", "cat '/etc/passwd'", "tr 'a-z' 'A-Z' < in > out",
    "for f in *.txt; do mv \"$f\" \"${f%.txt}.md\"; done", "ps aux | grep '[n]ginx'",
    "psql -c 'SELECT name, \"id\" FROM users WHERE city = ''Paris'''", "printf '%s\\n' \"$HOME\"",
    "perl -pe 's/foo(\\d+)/bar$1/g' f",
]  # fmt: skip
CODE = [
    "def add(a, b):\n    return a + b\n",
    "import matplotlib.pyplot as plt\nx = [0, 1]\nplt.plot(x, x, 'red', label=\"wave\")\nplt.legend(loc='best')\n",
    "const s = `it's ${name}`;\nconsole.log('done', s);\n", "d = {'k': 'v', 'n': [1, 2]}\nprint(d['k'])\n",
    "if x == 'a' or x == \"b\":\n    raise ValueError('bad x')\n",
    "for i, line in enumerate(open('f.txt')):\n    print(f'{i}: {line.strip()}')\n",
    "SELECT * FROM t WHERE name = 'O''Brien' AND n > 5;",
    "#include <stdio.h>\nint main(void) { printf(\"%d\\n\", 'a'); }\n", "text.replace('\\'', '\"')",
    "parts = [p for p in s.split(',') if p]", "class A:\n    '''Doc.'''\n    x: int = 1\n",
    "print('a', end='')", "w = foo(x=1, y='b')", "lambda s: s['key'](1)",
]  # fmt: skip
DOCUMENTS = [
    '{"a": 1, "b": ["x", null, true], "c": {"d": 1.5}}', "{'a': 1, 'b': ['x', None]}",
    '[{"id": 1, "name": "it\'s"}, {"id": 2}]', "name: 'test'\non: [push]\njobs:\n  a: {runs-on: 'ubuntu'}\n",
    "<a href='x.html' class=\"b\">it's</a>", "a,b,c\n'1','2','3'\n",
    "key = 'value'\n[section]\nlist = ['a', 'b']\n", "| a | b |\n|---|---|\n| 'x' | \"y\" |\n",
]  # fmt: skip
PROSE = [
    "It's late, and the dogs' bowls are empty.", "She said \"don't\", didn't she?", "rock 'n' roll",
    "The '90s: a decade's end", "l'été, c'est aujourd'hui", "Paris", "New York, NY", "What's 5 > 3 (and why)?",
    "Dear Ann,\n\nthat's it.\n\nYours, Bob", "計画は今日です 🌤️", "100%", "", "a", "the quote ' alone", "ends with'",
    "'starts", "'quoted'", "x', y", "e.g. f(x) = 1, g(x) = 2", "see [1], (2) and {3}",
    "no quotes here at all, just words",
]  # fmt: skip
PATHS = [
    "/usr/local/bin",
    "C:\\Users\\me\\file.txt",
    "./a b/c's.txt",
    "~/x/*.py",
    "https://x.io/?q='a'&r=[1]",
    "\\\\srv\\share",
    "a/b:c",
]
REGEXES = ["^\\d{3}-\\d{4}$", "['\"](.*?)['\"]", "(?<=')x(?=')", "\\w+@\\w+\\.\\w{2,}", "[^,'\\]]+", "\\\\'", "a|b|(c)"]
FUNCTIONS: dict[str, dict[str, list[Any]]] = {
    "bash": {"command": SHELL, "timeout": [30, 5.5, None], "background": [True, False]},
    "write_file": {"path": PATHS, "content": CODE + DOCUMENTS, "mode": ["w", "a"]},
    "edit": {"path": PATHS, "old": CODE, "new": CODE, "count": [1, -1]},
    "search": {"pattern": REGEXES, "paths": [["a", "b/c"], ["it's"], []], "max-results": [5, 100]},
    "save_note": {
        "title": PROSE,
        "body": PROSE + DOCUMENTS,
        "tags": [["a", "b"], ["don't", "x"], []],
        "meta": [{"k": "v"}, {"n": [1, 2.5, True, None]}, {"who": "Ann's"}, {}],
    },
    "get_weather": {
        "city": ["Paris", "Coeur d'Alene", "N'Djamena", "San José"],
        "unit": ["celsius"],
        "days": [1, 7],
        "lat": [48.85, -0.5],
    },
    "now": {},
}  # fmt: skip


TOOLS = {name: list(parameters) for name, parameters in FUNCTIONS.items()}


@dataclass
class Example:
    """One turn: the source of each call, and the calls meant."""

    sources: list[str]
    calls: list[tuple[str, str]]

    @property
    def text(self) -> str:
        """The model's text."""
        return f"{S}[{', '.join(self.sources)}]{E}"


def string(value: str, escape: bool) -> str:
    """A string as a template prints it: in single quotes; only some templates escape what is inside."""
    return repr_single(value) if escape else f"'{value}'"


def repr_single(value: str) -> str:
    """Backslashes, apostrophes and newlines escaped."""
    return "'" + value.replace("\\", "\\\\").replace("'", "\\'").replace("\n", "\\n") + "'"


def written(value: Any, escape: bool) -> str:
    """Strings in single quotes, mappings as JSON, the rest as ``str()``."""
    if isinstance(value, str):
        return string(value, escape)
    if isinstance(value, dict):
        return json.dumps(value, ensure_ascii=False)
    return str(value)


def example(seed: int, escape: bool, backslashes: bool = True) -> Example:
    """One turn of one to three calls."""
    rng = random.Random(seed)
    calls, sources = [], []
    for _ in range(rng.choice((1, 1, 1, 2, 3))):
        name = rng.choice(list(FUNCTIONS))
        arguments = {
            parameter: rng.choice(values) for parameter, values in FUNCTIONS[name].items() if rng.random() < 0.8
        }
        if not backslashes:
            arguments = {
                key: value.replace("\\", "/") if isinstance(value, str) else value for key, value in arguments.items()
            }
        calls.append((name, json_text(arguments)))
        sources.append(f"{name}({', '.join(f'{key}={written(value, escape)}' for key, value in arguments.items())})")
    return Example(sources, calls)


@pytest.mark.parametrize("tools", [TOOLS, None], ids=["declared", "undeclared"])
def test_escaped_is_exact(tools: dict[str, list[str]] | None) -> None:
    """Templates that escape: every call comes back byte for byte, whole and streamed."""
    for seed in range(COUNT if tools else COUNT // 3):
        turn = example(seed, escape=True)
        assert whole(turn.text, "lfm2", tools) == (turn.calls, ""), turn.text
        pieces = random_cut(turn.text, random.Random(seed))
        assert stream(pieces, "lfm2", tools).completed == (turn.calls, ""), turn.text


_ESCAPE = re.compile(r"\\[\\abfnrtv0-7xuUN]")


def reads_as_escape(value: Any) -> bool:
    """Whether the contract decodes a backslash that this writer meant as one (4, raw literals).

    That is one before the quote (it stays that quote), or a known escape on the first line: a raw newline is what
    shows that the writer escapes nothing.
    """
    return isinstance(value, str) and ("\\'" in value or _ESCAPE.search(value.split("\n")[0]) is not None)


@pytest.mark.parametrize("backslashes", [False, True], ids=["slashes", "backslashes"])
@pytest.mark.parametrize("tools", [TOOLS, None], ids=["declared", "undeclared"])
def test_unescaped(tools: dict[str, list[str]] | None, backslashes: bool, capsys: pytest.CaptureFixture[str]) -> None:
    """Templates that do not escape: exact or given back, never wrong but where Python reads the call otherwise.

    Without declared tools `', name=` inside a string ends it, as nothing says that the name is none.  With backslashes
    a call is wrong, too, where the contract reads one of them as an escape, and nowhere else.
    """
    counts = dict.fromkeys(("exact", "given back", "read as Python reads it", "wrong by an escape", "wrong"), 0)
    wrong: list[tuple[str, str, str]] = []
    for seed in range(COUNT if tools else COUNT // 3):
        turn = example(seed, escape=False, backslashes=backslashes)
        calls, content = whole(turn.text, "lfm2", tools)
        assert stream(random_cut(turn.text, random.Random(seed)), "lfm2", tools).completed == (calls, content)
        got = dict.fromkeys(calls)
        invented = [call for call in calls if call not in turn.calls]
        if not invented and len(calls) < len(turn.calls):
            assert content, turn.text
        for source, call in zip(turn.sources, turn.calls):
            if call in got:
                counts["exact"] += 1
            elif not invented:
                counts["given back"] += 1
            elif read(f"[{source}]", tools) is not None:
                counts["read as Python reads it"] += 1
            elif any(map(reads_as_escape, json.loads(call[1]).values())):
                counts["wrong by an escape"] += 1
            else:
                counts["wrong"] += 1
                wrong += [(source, *call) for call in invented]
    total = sum(counts.values())
    with capsys.disabled():
        rates = ", ".join(f"{count / total:.2%} {what}" for what, count in counts.items())
        kind = f"{'back' if backslashes else ''}slashes"
        print(f"\nunescaped, {kind}, {'declared' if tools else 'undeclared'} tools, {total} calls: {rates}")
    if tools:
        assert not wrong, wrong[:3]
        assert counts["exact"] / total > (0.9 if backslashes else 0.99)
    else:
        assert counts["exact"] / total > (0.85 if backslashes else 0.93)
