"""Results as tables, targets, JSON and a plot."""

from __future__ import annotations

import json
import platform
from collections.abc import Iterable, Sequence
from datetime import datetime, timezone
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.table import Table

from .texts import SHAPES
from .worker import Cell, foresee

KB = 1024
Key = tuple[str, str, str, str]  # engine, shape, cutting, subject


class Results:
    """Cells, looked up by what they measured; larger sizes foreseen where they were not."""

    def __init__(self, cells: Iterable[Cell]) -> None:
        self.cells = list(cells)
        self._by_key: dict[Key, dict[int, Cell]] = {}
        for cell in self.cells:
            key = (cell.engine, cell.shape, cell.cutting, cell.subject)
            self._by_key.setdefault(key, {})[cell.size] = cell

    @property
    def engines(self) -> list[str]:
        """In the order they were measured."""
        return list(dict.fromkeys(cell.engine for cell in self.cells))

    @property
    def vllm(self) -> list[str]:
        """The vLLM versions, newest first."""
        versions = [engine for engine in self.engines if engine.startswith("vLLM ")]
        return sorted(versions, key=_version, reverse=True)

    @property
    def sizes(self) -> list[int]:
        """All sizes, ascending."""
        return sorted({cell.size for cell in self.cells})

    def groups(self, engine: str) -> list[tuple[str, str]]:
        """Shapes and cuttings measured with an engine."""
        return list(dict.fromkeys((cell.shape, cell.cutting) for cell in self.cells if cell.engine == engine))

    def cell(self, key: Key, size: int) -> Cell | None:
        """The result, if it was measured."""
        return self._by_key.get(key, {}).get(size)

    def right(self, key: Key) -> bool | None:
        """Whether the subject read the text right, where that was checked."""
        return next((cell.right for cell in self._by_key.get(key, {}).values() if cell.right is not None), None)

    def seconds(self, key: Key, size: int) -> tuple[float, bool] | None:
        """CPU seconds for a text, and whether they were measured rather than extrapolated."""
        sizes = self._by_key.get(key, {})
        if size in sizes:
            return sizes[size].seconds, True
        seen = sorted((known, cell.seconds) for known, cell in sizes.items() if known < size)
        return (foresee(seen, size), False) if len(seen) > 1 else None

    def ratio(self, over: Key, under: Key, size: int) -> tuple[float, bool] | None:
        """How many times more ``over`` costs than ``under`` on the same text."""
        above, below = self.seconds(over, size), self.seconds(under, size)
        if above is None or below is None or not below[1]:
            return None
        return above[0] / max(below[0], 1e-9), above[1]

    def per_delta(self, key: Key, size: int) -> float | None:
        """Microseconds a delta, measured."""
        cell = self.cell(key, size)
        return cell.seconds / cell.deltas * 1e6 if cell else None


def _version(engine: str) -> tuple[int, ...]:
    digits = engine.split()[-1].split(".")
    return tuple(int(part) if part.isdigit() else 0 for part in digits)


def label(size: int) -> str:
    """A size in words."""
    return f"{size // KB} KB" if size < KB * KB else f"{size // KB // KB} MB"


def _ratio_text(ratio: tuple[float, bool] | None) -> str:
    if ratio is None:
        return "-"
    value, measured = ratio
    text = f"{value:,.0f}" if value >= 10 else f"{value:.2f}"
    return text if measured else f"~{text}"


def tables(results: Results) -> list[Table]:
    """All tables: stock against ours, ours against the floor, SGLang against the machine."""
    made = []
    for engine in results.vllm:
        made.append(_table(results, engine, f"{engine}: how many times more CPU its own parser takes", "stock", "ours"))
    for engine in results.vllm[:1]:
        made.append(_table(results, engine, f"{engine}: this parser against the floor", "ours", "floor"))
    for engine in results.engines:
        if any(cell.engine == engine and cell.subject == "sglang" for cell in results.cells):
            made.append(
                _table(results, engine, f"SGLang's detector ({engine}) against the machine alone", "sglang", "machine")
            )
    for engine in (results.vllm or results.engines)[:1]:
        made.append(_micros(results, engine))
    return made


def _table(results: Results, engine: str, title: str, over: str, under: str) -> Table:
    table = Table(title=title, title_justify="left")
    table.add_column("text")
    table.add_column("deltas")
    for size in results.sizes:
        table.add_column(label(size), justify="right")
    table.add_column("read right")
    for shape, cutting in results.groups(engine):
        above = "text" if over == "floor" and shape == "prose" else over
        below = "text" if under == "floor" and shape == "prose" else under
        row = [
            _ratio_text(results.ratio((engine, shape, cutting, above), (engine, shape, cutting, below), size))
            for size in results.sizes
        ]
        if set(row) != {"-"}:
            right = results.right((engine, shape, cutting, above))
            table.add_row(SHAPES[shape].title, cutting, *row, {True: "yes", False: "NO", None: ""}[right])
    return table


def _micros(results: Results, engine: str) -> Table:
    table = Table(title=f"{engine}: microseconds of CPU a delta (not comparable between runs)", title_justify="left")
    for column in ("text", "deltas", "subject"):
        table.add_column(column)
    for size in results.sizes:
        table.add_column(label(size), justify="right")
    for shape, cutting in results.groups(engine):
        if cutting == "whole":
            continue
        for subject in ("stock", "ours", "machine", "floor", "unvalidated", "text", "ready"):
            values = [results.per_delta((engine, shape, cutting, subject), size) for size in results.sizes]
            if any(value is not None for value in values):
                cells = ["-" if value is None else f"{value:,.1f}" for value in values]
                table.add_row(SHAPES[shape].title, cutting, subject, *cells)
    return table


# ---- targets -----------------------------------------------------------------------------------


def targets(results: Results) -> list[tuple[str, str, bool | None]]:
    """What is aimed at, what was measured, and whether it was met (None: not measured)."""
    newest = results.vllm[0] if results.vllm else ""
    oldest = results.vllm[-1] if len(results.vllm) > 1 else ""
    size = 16 * KB
    rows: list[tuple[str, str, bool | None]] = []

    def add(what: str, ratio: tuple[float, bool] | None, limit: float, *, least: bool = False, unit: str = "") -> None:
        aim = f"{what}: {'at least' if least else 'at most'} {limit:g}{unit}"
        if ratio is None:
            rows.append((aim, "not measured", None))
            return
        met = ratio[0] >= limit if least else ratio[0] <= limit
        rows.append((aim, f"{_ratio_text(ratio)}{unit}", met))

    def key(engine: str, shape: str, cutting: str, subject: str) -> Key:
        return engine, shape, cutting, subject

    def measured(value: float | None) -> tuple[float, bool] | None:
        return None if value is None else (value, True)

    for engine, limit in ((newest, 300.0), (oldest, 10.0)):
        if engine:
            stock, ours = key(engine, "string", "token", "stock"), key(engine, "string", "token", "ours")
            add(f"16 KB string, {engine}'s parser ÷ ours", results.ratio(stock, ours, size), limit, least=True)
    ours = key(newest, "string", "token", "ours")
    add("A delta in a string ÷ the floor", results.ratio(ours, key(newest, "string", "token", "floor"), size), 1.35)
    unvalidated = key(newest, "string", "token", "unvalidated")
    add("A delta in a string ÷ an answer made without validation", results.ratio(ours, unvalidated, size), 1.2)
    machine_engine = newest or (results.engines[0] if results.engines else "")
    machine = key(machine_engine, "string", "token", "machine")
    add("The machine alone, a delta in a string", measured(results.per_delta(machine, size)), 1.5, unit=" µs")
    last_size = results.sizes[-1]
    floor = key(newest, "string", "token", "floor")
    first, last = results.ratio(ours, floor, 4 * KB), results.ratio(ours, floor, last_size)
    flat = (last[0] / first[0], last[1]) if first and last else None
    add(f"Flat: a delta at {label(last_size)} ÷ one at 4 KB, each against the floor", flat, 1.3)
    early, late = results.per_delta(ours, 4 * KB), results.per_delta(ours, last_size)
    add(f"Flat: a delta at {label(last_size)} ÷ one at 4 KB", measured(late / early if early and late else None), 1.3)
    worst = [cell.worst * 1000 for cell in results.cells if cell.worst is not None and cell.engine == newest]
    add("The slowest token-sized delta of all", measured(max(worst, default=None)), 5, unit=" ms")
    for shape in dict.fromkeys(cell.shape for cell in results.cells if cell.cutting == "whole"):
        cell = results.cell(key(machine_engine, shape, "whole", "machine"), KB * KB)
        add(f"1 MB in one delta, {SHAPES[shape].title}", measured(cell.seconds if cell else None), 0.5, unit=" s")
    prose, text = key(newest, "prose", "token", "ours"), key(newest, "prose", "token", "text")
    add("A delta of prose ÷ passing it through", results.ratio(prose, text, size), 1.15)
    return rows


def show(results: Results, console: Console) -> None:
    """Print everything."""
    for table in tables(results):
        console.print(table)
    table = Table(title="Targets", title_justify="left")
    for column in ("target", "measured", "met"):
        table.add_column(column)
    for target, measured, met in targets(results):
        table.add_row(target, measured, {True: "yes", False: "NO", None: "-"}[met])
    console.print(table)
    console.print(
        "CPU time of the process; the subjects take turns on the same text and the least of the repetitions "
        "counts. ~ is extrapolated: as the two sizes before it grew."
    )


# ---- files -------------------------------------------------------------------------------------


def write_json(results: Results, path: Path, notes: Sequence[str]) -> None:
    """Everything that was measured, with the ratios' raw material."""
    data: dict[str, Any] = {
        "date": datetime.now(timezone.utc).date().isoformat(),
        "python": platform.python_version(),
        "machine": platform.machine(),
        "notes": list(notes),
        "targets": [{"target": target, "measured": measured, "met": met} for target, measured, met in targets(results)],
        "cells": [vars(cell) for cell in results.cells],
    }
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(data, indent=1) + "\n", encoding="utf-8")


def read_json(path: Path) -> Results:
    """The results that :func:`write_json` wrote."""
    return Results(Cell(**cell) for cell in json.loads(path.read_text(encoding="utf-8"))["cells"])


def _draw_ratio(axes: Any, results: Results, engine: str) -> None:
    """An arrow from ours up to the stock parser, with the ratio, where both were measured with the longest text."""
    above, below = ((engine, "string", "token", subject) for subject in ("stock", "ours"))
    for size in reversed(results.sizes):
        high, low = results.per_delta(above, size), results.per_delta(below, size)
        if high and low:
            axes.annotate("", (size, high), (size, low), arrowprops={"arrowstyle": "->", "color": "tab:blue"})
            # In the middle of the arrow, as a logarithmic axis sees it.
            axes.annotate(f" {high / low:.0f}×", (size, (high * low) ** 0.5), color="tab:blue", weight="bold")
            return


def plot(results: Results, path: Path) -> None:
    """Draw cost against length, both logarithmic: one string argument in token-sized deltas.

    Raises ImportError without matplotlib.
    """
    import matplotlib

    matplotlib.use("Agg")
    matplotlib.rcParams["svg.hashsalt"] = "lfm2-fixed"
    from matplotlib import pyplot

    figure, axes = pyplot.subplots(figsize=(8, 4.8), layout="constrained")
    newest = results.vllm[0] if results.vllm else ""
    lines: list[tuple[str, Key, dict[str, Any]]] = [
        (f"{engine}'s own parser", (engine, "string", "token", "stock"), {"marker": "o"}) for engine in results.vllm
    ]
    lines += [
        (f"SGLang's detector ({cell.engine})", (cell.engine, "string", "token", "sglang"), {"marker": "^"})
        for cell in {cell.engine: cell for cell in results.cells if cell.subject == "sglang"}.values()
    ]
    if newest:
        lines.append(
            (f"lfm2_fixed in {newest}", (newest, "string", "token", "ours"), {"marker": "s", "color": "black"})
        )
        lines.append(
            ("floor: no parsing at all", (newest, "string", "token", "floor"), {"linestyle": ":", "color": "gray"})
        )
    lines.append(
        (
            "lfm2_fixed without vLLM",
            (newest or results.engines[0], "string", "token", "machine"),
            {"marker": "s", "color": "black", "markerfacecolor": "white", "linewidth": 1},
        )
    )
    for name, key, style in lines:
        known = [(size, value) for size in results.sizes if (value := results.per_delta(key, size)) is not None]
        if known:
            sizes, values = zip(*known)
            axes.plot(sizes, values, label=name, **style)
    _draw_ratio(axes, results, newest)
    axes.set_xscale("log", base=2)
    axes.set_yscale("log")
    axes.set_xticks(results.sizes, [label(size) for size in results.sizes])
    axes.set_xlabel("length of the answer: one string argument, deltas of about four characters")
    axes.set_ylabel("CPU for a delta, µs")
    axes.grid(True, which="major", alpha=0.3)
    axes.legend(fontsize="small", loc="upper right")
    path.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(path, metadata={"Date": None} if path.suffix == ".svg" else None, dpi=150)
    pyplot.close(figure)
