"""The tables of ``docs/quality.md``: ``python -m benchmarks.quality.report FILE``, from ``--by row --json FILE``."""

from __future__ import annotations

import argparse
import json
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from ..arguments import file

Row = dict[str, Any]
_COUNTS = ("turns", "exact", "given_back", "wrong", "python", "siblings", "siblings_kept")


def added(rows: Sequence[Row]) -> Row:
    """The sum of several rows."""
    return {name: sum(row[name] for row in rows) for name in _COUNTS}


def grouped(rows: Sequence[Row], key: Callable[[Row], str]) -> dict[str, Row]:
    """Sums by what ``key`` says, in the order of first appearance."""
    groups: dict[str, list[Row]] = {}
    for row in rows:
        groups.setdefault(key(row), []).append(row)
    return {name: added(members) for name, members in groups.items()}


def percent(part: int, whole: int) -> str:
    """One decimal, but never 100 or 0 where it is not all or nothing."""
    if not whole:
        return ""
    if part in (0, whole):
        return "100 %" if part else "0 %"
    return f"{min(max(part / whole * 100, 0.01), 99.99):.{1 if 1 <= part / whole * 100 <= 99 else 2}f} %"


def line(name: str, row: Row, columns: Sequence[str]) -> str:
    """One line of a table."""
    cells = [percent(row[column], row["siblings"] if column == "siblings_kept" else row["turns"]) for column in columns]
    return f"| {name} | {row['turns']:,} | {' | '.join(cells)} |"


def table(title: str, rows: dict[str, Row], columns: Sequence[str]) -> Iterator[str]:
    """A table in Markdown."""
    names = {"given_back": "given back", "python": "as Python reads it", "siblings_kept": "siblings kept"}
    yield f"| {title} | turns | {' | '.join(names.get(column, column) for column in columns)} |"
    yield "|---|---:|" + "---:|" * len(columns)
    for name, row in rows.items():
        yield line(name, row, columns)
    yield ""


def tables(found: Sequence[Row]) -> Iterator[str]:
    """All of them."""
    rows = [row for row in found if row["row"] != "all"]
    raw = [row for row in rows if row["corpus"] == "raw"]
    columns = ("exact", "given_back", "wrong", "python", "siblings_kept")
    unescaped = [row for row in raw if row["row"].startswith("raw")]
    escaped = [row for row in raw if not row["row"].startswith("raw")]
    if raw:
        yield from table("texts as values, nothing escaped", grouped(unescaped, lambda row: row["parser"]), columns)
        yield from table("the same texts by escaping writers", grouped(escaped, lambda row: row["parser"]), columns)
        mine = [row for row in unescaped if row["parser"] == raw[0]["parser"]]
        yield from table("this parser, nothing escaped", grouped(mine, lambda row: row["row"].split("|")[1]), columns)
    for corpus in ("slips", "expressions"):
        some = [row for row in rows if row["corpus"] == corpus]
        if some:
            shown = ("wrong", "siblings_kept")
            yield from table(corpus, grouped(some, lambda row: row["parser"]), shown)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(prog="python -m benchmarks.quality.report", description=__doc__)
    parser.add_argument("file", type=file)
    print("\n".join(tables(json.loads(parser.parse_args().file.read_text(encoding="utf-8")))))
