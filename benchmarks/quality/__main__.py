"""The table: ``python -m benchmarks.quality --corpus raw --count 500 --show 5``."""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from .. import arguments as given
from . import expressions, raw, slips
from .example import Call, Example, Tally
from .parsers import PARSERS

ROOT = Path(__file__).resolve().parent.parent.parent
CORPORA = ("raw", "slips", "expressions")
COUNTS = {"raw": 700, "slips": 4000, "expressions": 4000}
DECLARED = {"yes": True, "no": False, "half": None}


def arguments(argv: Sequence[str] | None) -> argparse.Namespace:
    """Read the command line."""
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.quality",
        description="How many calls arrive exactly, given back as text, or wrong: this parser, vLLM's own, SGLang's.",
    )
    parser.add_argument("--corpus", action="append", choices=CORPORA, help="only these (repeatable)")
    parser.add_argument("--count", type=int, help="texts of the corpus; raw writes each in six ways")
    parser.add_argument("--seed", type=int, default=0, help="another seed gives other texts")
    parser.add_argument("--declared", choices=list(DECLARED), default="half", help="whether requests declare the tools")
    parser.add_argument("--writer", action="append", choices=list(raw.WRITERS), help="raw: only these ways of writing")
    parser.add_argument("--by", choices=("writer", "kind", "place", "row"), default="writer", help="raw: the rows")
    parser.add_argument("--show", type=int, default=0, metavar="N", help="show N turns that did not come out exactly")
    parser.add_argument("--only", choices=("wrong", "given back"), help="show only these")
    parser.add_argument(
        "--vllm-path",
        action="append",
        type=given.vllm,
        default=[],
        metavar="DIR",
        help="a directory with the Python sources of one vLLM version, whose parser takes part (repeatable)",
    )
    parser.add_argument(
        "--sglang-path", type=given.sglang, metavar="DIR", help="the same for sglang or llm-router-utils"
    )
    parser.add_argument("--json", type=Path, metavar="FILE", help="write the counts there")
    parser.add_argument("--answer", choices=list(PARSERS), help=argparse.SUPPRESS)  # a process of ours
    return parser.parse_args(argv)


def make(corpus: str, options: argparse.Namespace) -> Iterator[Example]:
    """The turns of one corpus."""
    count = options.count or COUNTS[corpus]
    declared = DECLARED[options.declared]
    if corpus == "raw":
        return raw.examples(count, options.seed, declared, tuple(options.writer or ()))
    return (slips if corpus == "slips" else expressions).examples(count, options.seed, declared)


@dataclass
class Table:
    """One parser's tallies of one corpus, by row."""

    parser: str
    corpus: str
    rows: dict[str, Tally] = field(default_factory=dict)

    def add(self, row: str, example: Example, calls: list[Call]) -> None:
        """Count one answer in its row and in the sum."""
        for name in (row, "all"):
            self.rows.setdefault(name, Tally()).add(example, calls)

    def lines(self) -> Iterator[str]:
        """The table as text."""
        width = max(24, *(len(row) for row in self.rows))
        yield f"\n{self.corpus}: {self.parser}"
        yield f"{'':{width}}  {'turns':>6} {'exact':>8} {'given b.':>8} {'wrong':>8} {'Python':>8} {'siblings':>9}"
        for row, tally in sorted(self.rows.items(), key=lambda item: (item[0] == "all", item[0])):
            rates = [tally.exact, tally.given_back, tally.wrong, tally.python]
            cells = " ".join(f"{count / max(1, tally.total):8.2%}" for count in rates)
            kept = f"{tally.siblings_kept / tally.siblings:9.2%}" if tally.siblings else f"{'-':>9}"
            yield f"{row:{width}}  {tally.total:6} {cells} {kept}"


def row_of(corpus: str, example: Example, by: str) -> str:
    """The row an example belongs to."""
    parts = example.row.split("|")
    if corpus != "raw":
        return parts[0]
    return {"writer": parts[0], "kind": parts[1], "place": parts[2], "row": example.row}[by]


def answer(name: str) -> None:
    """In a process of its own: read turns as JSON lines, answer with calls as JSON lines."""
    title, read = PARSERS[name]()
    print(json.dumps(title), flush=True)
    for line in sys.stdin:
        text, declared = json.loads(line)
        try:
            calls = read(Example(text, "", None, (), declared))
        except Exception as error:  # a peer's failure is its answer: no call
            print(json.dumps({"error": repr(error)}), flush=True)
            continue
        print(json.dumps(calls), flush=True)


class Process:
    """A parser in a process of its own, with ``path`` in front of what it imports."""

    def __init__(self, name: str, path: Path | None) -> None:
        search = [str(path.resolve())] if path else []
        environment = {
            **os.environ,
            "PYTHONPATH": os.pathsep.join([*search, str(ROOT), *filter(None, [os.environ.get("PYTHONPATH")])]),
        }
        self.process = subprocess.Popen(
            [sys.executable, "-m", "benchmarks.quality", "--answer", name],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
            env=environment,
        )
        self.title = str(self._line())

    def _line(self) -> object:
        assert self.process.stdout
        line = self.process.stdout.readline()
        while line and line[0] not in '"[{':  # what an import prints
            line = self.process.stdout.readline()
        if not line:
            raise ImportError("cannot be imported")
        return json.loads(line)

    def read(self, example: Example) -> list[Call]:
        """The calls of one turn."""
        assert self.process.stdin
        self.process.stdin.write(json.dumps([example.text, example.declared]) + "\n")
        self.process.stdin.flush()
        calls = self._line()
        return [(str(name), str(arguments)) for name, arguments in calls] if isinstance(calls, list) else []

    def close(self) -> None:
        """End it."""
        assert self.process.stdin
        self.process.stdin.close()
        self.process.wait()


def show(table: Table, count: int, only: str | None) -> None:
    """Print turns that did not come out exactly, short ones first."""
    failed = [one for one in table.rows["all"].failed if only in (None, one[0])] if "all" in table.rows else []
    for verdict, example, calls in sorted(failed, key=lambda one: len(one[1].text))[:count]:
        print(f"\n--- {verdict} ({example.row}, {'declared' if example.declared else 'undeclared'})")
        print(f"text     {example.text!r}")
        print(f"meant    {example.target}")
        missing = [call for call in example.siblings if call not in calls]
        if missing:
            print(f"missing  {missing}")
        print(f"arrived  {[call for call in calls if call not in example.siblings]}")


def main(argv: Sequence[str] | None = None) -> int:
    """Measure and show."""
    options = arguments(argv)
    if options.answer:
        answer(options.answer)
        return 0
    title, read = PARSERS["ours"]()
    readers = [(title, read)]
    peers: list[Process] = []
    for name, path in [("vllm", path) for path in options.vllm_path] + (
        [("sglang", options.sglang_path)] if options.sglang_path else []
    ):
        try:
            peers.append(Process(name, path))
        except ImportError as error:
            print(f"{name} {path}: {error}", file=sys.stderr)
    readers += [(peer.title, peer.read) for peer in peers]
    tables = []
    for corpus in options.corpus or CORPORA:
        mine = [Table(title, corpus) for title, _ in readers]
        for example in make(corpus, options):
            for table, (_, reader) in zip(mine, readers):
                table.add(row_of(corpus, example, options.by), example, reader(example))
        for table in mine:
            print("\n".join(table.lines()))
        show(mine[0], options.show, options.only)
        tables += mine
    for peer in peers:
        peer.close()
    if options.json:
        options.json.parent.mkdir(parents=True, exist_ok=True)
        counts = [
            {"parser": table.parser, "corpus": table.corpus, "row": row, "turns": tally.total, "exact": tally.exact}
            | {"given_back": tally.given_back, "wrong": tally.wrong, "python": tally.python}
            | {"siblings": tally.siblings, "siblings_kept": tally.siblings_kept}
            for table in tables
            for row, tally in table.rows.items()
        ]
        options.json.write_text(json.dumps(counts, indent=1) + "\n", encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
