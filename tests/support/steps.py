"""Work counted without a clock: steps of the machine and bytes it allocates.

A step is an executed line of the package (every iteration of a one-line loop is one), or sixteen
characters that a regular expression went over.  Work that neither of these shows, long strings
copied by C code, shows in the bytes.  Both are the same on every run and every machine.

The package is loaded a second time for this, so that its regular expressions can be counted and
the copy that other tests use stays as it is.
"""

from __future__ import annotations

import importlib
import logging
import re
import sys
import tracemalloc
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from types import FrameType, ModuleType
from typing import Any, NamedTuple

PACKAGE = "lfm2_fixed"
_RUN = 16  # characters a regular expression goes over in a step


class Case(NamedTuple):
    """A text of any length: ``head``, then ``unit`` again and again, then ``tail``."""

    head: str
    unit: str
    tail: str = ""
    dialect: str = "lfm2"
    tools: Any = None
    least: int = 0
    """The smallest size that behaves like the larger ones."""

    def text(self, repeats: int) -> str:
        """The text with its unit as many times."""
        return self.head + self.unit * repeats + self.tail


def cut(text: str, step: int) -> list[str]:
    """``text`` in deltas of ``step`` characters; 0: in one."""
    return [text[at : at + step] for at in range(0, len(text), step)] if step else [text]


class _Counter:
    """One object, not a class's own attributes: writing those costs the interpreter its caches, at every line."""

    __slots__ = ("lines", "runs")
    lines: int
    runs: int
    """Of ``_RUN`` characters each, that regular expressions went over."""

    def __init__(self) -> None:
        self.reset()

    def reset(self) -> None:
        self.lines = self.runs = 0

    def steps(self) -> int:
        return self.lines + self.runs


_counter = _Counter()


def _counted(method: Callable[..., Any]) -> Callable[..., Any]:
    name = method.__name__

    def call(*arguments: Any) -> Any:
        result = method(*arguments)
        text = arguments[1 if name in ("sub", "subn") else 0]
        bounds = arguments[1:] if name in ("match", "fullmatch", "search") else ()
        start = bounds[0] if bounds else 0
        end = bounds[1] if len(bounds) > 1 else len(text)
        if isinstance(result, re.Match):
            _counter.runs += (result.end() - start) // _RUN
        elif name not in ("match", "fullmatch"):  # where these fail, they do so early
            _counter.runs += max(0, end - start) // _RUN
        return result

    return call


class _Pattern:
    """A compiled pattern that counts what it goes over."""

    def __init__(self, pattern: re.Pattern[str]) -> None:
        self._pattern = pattern
        for name in ("match", "fullmatch", "search", "sub", "subn", "split", "findall"):
            setattr(self, name, _counted(getattr(pattern, name)))

    def __getattr__(self, name: str) -> Any:
        return getattr(self._pattern, name)


class _Re(ModuleType):
    """The module ``re``, compiling to patterns that count."""

    def __getattr__(self, name: str) -> Any:
        return getattr(re, name)

    def compile(self, pattern: str, flags: int = 0) -> Any:
        return _Pattern(re.compile(pattern, flags))


def _load() -> dict[str, ModuleType]:
    """The modules of a second copy of the package, with counting patterns."""

    def ours() -> list[str]:
        return [name for name in sys.modules if name.split(".")[0] == PACKAGE]

    importlib.import_module(PACKAGE)
    saved = {name: sys.modules.pop(name) for name in ours()}
    sys.modules["re"] = _Re("re")
    try:
        importlib.import_module(PACKAGE)
        return {name: sys.modules[name] for name in ours()}
    finally:
        sys.modules["re"] = re
        for name in ours():
            del sys.modules[name]
        sys.modules.update(saved)


_modules = _load()
_package = _modules[PACKAGE]


def uncounted_patterns() -> list[str]:
    """Where the counted copy of the package keeps patterns, or methods of them, that do not count.

    They are looked for in everything that its modules hold: dicts, sequences, objects, classes, closures.
    """
    found: list[str] = []
    seen: set[int] = set()

    def look(value: Any, where: str) -> None:
        if id(value) in seen or isinstance(value, (str, bytes, int, float, ModuleType, _Pattern, type(None))):
            return
        seen.add(id(value))
        if isinstance(value, re.Pattern) or isinstance(getattr(value, "__self__", None), re.Pattern):
            found.append(where)
        elif isinstance(value, dict):
            for key, one in value.items():
                look(key, where)
                look(one, f"{where}[{key!r}]")
        elif isinstance(value, (list, tuple, set, frozenset)):
            for one in value:
                look(one, where)
        elif str(getattr(value, "__module__", getattr(type(value), "__module__", ""))).split(".")[0] == PACKAGE:
            for cell in getattr(value, "__closure__", None) or ():
                look(cell.cell_contents, where)
            look(getattr(value, "__defaults__", None), where)
            look(getattr(value, "__wrapped__", None), where)
            look(dict(getattr(value, "__dict__", {})), where)
            for name in getattr(type(value), "__slots__", ()):
                look(getattr(value, name, None), f"{where}.{name}")

    for name, module in _modules.items():
        look(dict(vars(module)), name)
    return found


_OURS = frozenset(vars(module)["__package__"] for module in _modules.values())


def _trace(frame: FrameType, event: str, argument: Any) -> Any:
    if frame.f_globals.get("__package__") not in _OURS:
        return None
    _counter.lines += 1
    return _trace_inside


def _trace_inside(frame: FrameType, event: str, argument: Any) -> Any:
    """Where a frame is the package's, so is its next line."""
    _counter.lines += 1
    return _trace_inside


@contextmanager
def _silent() -> Iterator[None]:
    """Formatting and keeping log records is no work of the machine's."""
    logger = logging.getLogger(PACKAGE)
    disabled = logger.disabled
    logger.disabled = True
    try:
        yield
    finally:
        logger.disabled = disabled


def count_steps(pieces: Iterable[str], dialect: str = "lfm2", tools: Any = None, **options: Any) -> int:
    """The steps that a stream of ``pieces`` takes, from its making to its end."""
    before = sys.gettrace()
    _counter.reset()
    fed = 0
    with _silent():
        sys.settrace(_trace)
        try:
            stream = _package.PythonicStream(dialect, tools, **options)
            for piece in pieces:
                stream.feed(piece)
                fed += 1
            stream.finish()
        finally:
            sys.settrace(before)
    # Every call of feed and finish is a line of the package at least: where there are fewer, nothing was counted.
    assert _counter.lines > fed, "the counter sees nothing of the package"
    return _counter.steps()


def steps_of_each(pieces: Iterable[str], dialect: str = "lfm2", tools: Any = None, *, after: str = "") -> list[int]:
    """The steps that each piece takes; what comes before them is not counted."""
    before = sys.gettrace()
    counts = []
    with _silent():
        stream = _package.PythonicStream(dialect, tools)
        stream.feed(after)
        sys.settrace(_trace)
        try:
            for piece in pieces:
                _counter.reset()
                stream.feed(piece)
                counts.append(_counter.steps())
        finally:
            sys.settrace(before)
    assert all(counts), "the counter sees nothing of the package"
    return counts


def count_bytes(pieces: Sequence[str], dialect: str = "lfm2", tools: Any = None) -> int:
    """The sum, over the deltas, of the bytes each one had allocated at its peak beyond what it found."""
    from lfm2_fixed import PythonicStream

    total = 0
    with _silent():
        tracemalloc.start()
        try:
            stream = PythonicStream(dialect, tools)
            for piece in [*pieces, None]:
                found = tracemalloc.get_traced_memory()[0]
                tracemalloc.reset_peak()
                if piece is None:
                    stream.finish()
                else:
                    stream.feed(piece)
                total += tracemalloc.get_traced_memory()[1] - found
        finally:
            tracemalloc.stop()
    return total


SCALES = (1, 3, 5)


def growth(work: Callable[[str], int], case: Case, size: int) -> tuple[float, float]:
    """Work a character, between one size and three times as much, and between that and five times as much.

    Equal where work is linear (what does not depend on the length cancels); twice as much where it is
    quadratic.  ``size``: characters of the smallest text.  The unit is repeated an odd multiple of three times,
    so that what depends on a count being even, or a multiple of three, stays the same.
    """
    repeats = max(case.least, size) // len(case.unit) // 6 * 6 + 3
    texts = [case.text(repeats * scale) for scale in SCALES]
    done = [work(text) for text in texts]
    lengths = [len(text) for text in texts]
    first, second = ((done[i + 1] - done[i]) / (lengths[i + 1] - lengths[i]) for i in (0, 1))
    return first, second


def lines_run(work: Callable[[], Any]) -> int:
    """Lines of Python that run while something is done: a measure of work that no clock disturbs."""
    count = 0

    def trace(frame: Any, event: str, argument: Any) -> Any:
        nonlocal count
        count += 1
        return trace

    before = sys.gettrace()
    sys.settrace(trace)
    try:
        work()
    finally:
        sys.settrace(before)
    assert count > 10  # it did count
    return count
