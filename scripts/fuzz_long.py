"""The laws on a generator of its own: ``scripts/fuzz --long``.

It shares nothing with the strategies of the tests, so that what those never write is written here: exhaustive bodies
of a few symbols in eight contexts, mutants of valid turns, splices of two turns, and turns of the kinds that readers
get wrong.  Every text is fed in single characters and in other cuttings, and

- L1: after every piece the events so far are those of the single characters up to there, and so at the end;
- L2: completed calls and content are those of the whole text;
- L3: where CPython reads the one block as a list of literal calls, they are its calls;
- L4: every prefix of arguments can be read by ``partial_json_parser`` as an object;
- L5: content is made of the text's own characters, in their order;
- L6: completed arguments are one valid JSON object.

A text that breaks a law is made small and printed, once for each law and kind of text.
"""

from __future__ import annotations

import argparse
import itertools
import json
import logging
import multiprocessing
import random
import sys
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
sys.path[:0] = [str(ROOT), str(ROOT / "scripts")]

import partial_json_parser  # type: ignore[import-untyped]  # noqa: E402
from fuzz_long_texts import TOOLS, Case, kinds  # noqa: E402

from lfm2_fixed import ArgumentsDelta, CallEnd, CallStart, Content, PythonicStream, parse  # noqa: E402
from tests.support.oracle import read as read_by_python  # noqa: E402

S, E = "<|tool_call_start|>", "<|tool_call_end|>"
PARAMETERS = {
    tool["function"]["name"]: list(tool["function"]["parameters"]["properties"]) for tool in TOOLS
}  # for the reference, which knows names only


class Broken(Exception):
    """A law is broken; the first argument names it."""


class Log:
    """Everything a stream said, as one text that only grows: equal texts are equal streams."""

    def __init__(self) -> None:
        self.parts: list[str] = []
        self.length = 0
        self.last = ""
        self.arguments: list[str] = []
        self.names: list[str] = []
        self.complete: list[int] = []
        self.content: list[str] = []
        self.prefixes: list[tuple[int, int]] = []  # (call, length of its arguments) after each delta

    def add(self, events: Sequence[Any]) -> None:
        """Take events in."""
        for event in events:
            if isinstance(event, Content):
                self._put(event.text if self.last == "content" else "\x1dC" + event.text, "content")
                self.content.append(event.text)
            elif isinstance(event, ArgumentsDelta):
                self._put(event.text, "arguments")
                self.arguments[-1] += event.text
                self.prefixes.append((len(self.arguments) - 1, len(self.arguments[-1])))
            elif isinstance(event, CallStart):
                self._put(f"\x1dS{event.index} {event.name}\x1e", "start")
                self.names.append(event.name)
                self.arguments.append("")
            elif isinstance(event, CallEnd):
                self._put("\x1dE", "end")
                self.complete.append(event.index)
            else:
                self._put("\x1dA" + event.reason, "end")

    def _put(self, text: str, kind: str) -> None:
        self.parts.append(text)
        self.length += len(text)
        self.last = kind

    @property
    def text(self) -> str:
        """All of it."""
        return "".join(self.parts)

    @property
    def result(self) -> tuple[list[tuple[str, str]], str]:
        """Completed calls and content."""
        return [(self.names[i], self.arguments[i]) for i in self.complete], "".join(self.content)


def run(case: Case, pieces: Sequence[str]) -> tuple[Log, list[int]]:
    """Feed the pieces; what was said, and how much of it after each piece."""
    stream = PythonicStream(case.dialect, TOOLS if case.declared else None)
    log = Log()
    lengths = []
    for piece in pieces:
        log.add(stream.feed(piece))
        lengths.append(log.length)
    log.add(stream.finish())
    return log, lengths


def cuttings(text: str, rng: random.Random, many: bool) -> Iterator[list[str]]:
    """Ways to cut the text: whole, all two-part cuttings of short ones, pieces of one size, random ones, empties."""
    yield [text]
    if many and len(text) <= 90:
        for at in range(1, len(text)):
            yield [text[:at], text[at:]]
    elif len(text) > 1:
        at = rng.randrange(1, len(text))
        yield [text[:at], text[at:]]
    for size in (2, 3, 5, 11) if many else (rng.choice((2, 3, 4, 5, 7, 11, 16)),):
        yield [text[at : at + size] for at in range(0, len(text), size)]
    for _ in range(3 if many else 1):
        pieces, at = [], 0
        while at < len(text):
            size = rng.choice((0, 1, 1, 2, 3, 6, 12, 30))
            pieces.append(text[at : at + size])
            at += size
        yield pieces


def strict_object(text: str) -> None:
    """L6.  Raises where ``text`` is no valid JSON object."""

    def pairs(items: list[tuple[str, Any]]) -> dict[str, Any]:
        if len({key for key, _ in items}) < len(items):
            raise Broken("L6", f"repeated key in {text!r}")
        return dict(items)

    def constant(name: str) -> Any:
        raise Broken("L6", f"{name} in {text!r}")

    try:
        value = json.loads(text, object_pairs_hook=pairs, parse_constant=constant, parse_int=str)
        text.encode("utf-8")
    except ValueError as error:
        raise Broken("L6", f"{text!r}: {error}") from error
    if not isinstance(value, dict):
        raise Broken("L6", f"no object: {text!r}")


def check(case: Case, seed: int, many: bool = True) -> int:
    """Check the laws on one text; how many cuttings were compared.  Raises Broken."""
    rng = random.Random(seed)
    text = case.text
    reference, lengths = run(case, text)
    said = reference.text
    at_cut = [0, *lengths]
    number = 1
    for pieces in cuttings(text, rng, many):
        number += 1
        log, mine = run(case, pieces)
        if log.text != said:
            raise Broken("L1", f"in pieces {pieces!r}: {log.text!r}, in characters {said!r}")
        offset = 0
        for piece, length in zip(pieces, mine):
            offset += len(piece)
            if length != at_cut[offset]:
                raise Broken(
                    "L1 at a cut",
                    f"{pieces!r} after {offset}: {said[:length]!r}, in characters {said[: at_cut[offset]]!r}",
                )
    whole = parse(text, case.dialect, TOOLS if case.declared else None)
    if ([(call.name, call.arguments) for call in whole.calls], whole.content) != reference.result:
        raise Broken("L2", f"whole {whole!r}, streamed {reference.result!r}")
    prefixes = list(dict.fromkeys(reference.prefixes))
    for call, length in prefixes if len(prefixes) <= 12 else rng.sample(prefixes, 12):
        prefix = reference.arguments[call][:length]
        try:
            read = partial_json_parser.loads(prefix)
        except Exception as error:
            raise Broken("L4", f"{prefix!r}: {error!r}") from error
        if not isinstance(read, dict):
            raise Broken("L4", f"{prefix!r} is no object")
    source = iter(text)
    if not all(char in source for char in whole.content if not char.isspace()):
        raise Broken("L5", f"content {whole.content!r}")
    for _, arguments in reference.result[0]:
        strict_object(arguments)
    if case.dialect == "lfm2" and text.startswith(S) and text.endswith(E) and text.count("<|") == 2:
        python = read_by_python(text[len(S) : -len(E)], PARAMETERS if case.declared else None)
        if python is not None and not case.lone_object and python != reference.result[0]:
            raise Broken("L3", f"CPython {python!r}, arrived {reference.result[0]!r}")
    return number


def smallest(case: Case, law: str, seed: int) -> Case:
    """A short text that breaks the same law, found by deleting ever smaller pieces."""

    def fails(text: str) -> bool:
        try:
            check(case.with_text(text), seed)
        except Broken as broken:
            return str(broken.args[0]) == law
        except Exception as error:
            return type(error).__name__ == law
        return False

    text = case.text
    size = max(1, len(text) // 2)
    while size:
        at, shrunk = 0, False
        while at < len(text):
            shorter = text[:at] + text[at + size :]
            if fails(shorter):
                text, shrunk = shorter, True
            else:
                at += size
        if not shrunk:
            size //= 2
    return case.with_text(text)


@dataclass
class Report:
    """What a process did."""

    texts: dict[str, int] = field(default_factory=dict)
    cuttings: int = 0
    broken: dict[tuple[str, str], list[str]] = field(default_factory=dict)


def work(options: argparse.Namespace, process: int) -> Report:
    """Check texts until the time is over (or all kinds have run out)."""
    logging.getLogger("lfm2_fixed").setLevel(logging.ERROR)
    report = Report()
    ends = time.monotonic() + options.minutes * 60
    sources = kinds(options.seed * 1000 + process, options.length, process, options.processes)
    running = {name: source for name, source in sources.items() if not options.kind or name in options.kind}
    count = 0
    while running and time.monotonic() < ends:
        for name, source in list(running.items()):
            # The exhaustive kind has short texts and very many of them: it takes the same share of time.
            for case in itertools.islice(source, 200 if name == "exhaustive" else 25):
                count += 1
                report.texts[name] = report.texts.get(name, 0) + 1
                try:
                    report.cuttings += check(case, count, many=count % 8 == 0)
                except Exception as error:
                    law = str(error.args[0]) if isinstance(error, Broken) else type(error).__name__
                    found = report.broken.setdefault((law, name), [])
                    if len(found) < options.keep:
                        small = smallest(case, law, count)
                        try:
                            check(small, count)
                            why = error
                        except Exception as again:
                            why = again
                        found.append(f"{small.text!r} {case.dialect} declared={case.declared}\n    {why!r}")
                    else:
                        report.broken[law, name] = [*found[: options.keep], "and more"]
                if options.texts and count >= options.texts:
                    return report
            else:
                if next(source, None) is None:
                    del running[name]
    return report


def main() -> int:
    """Run, report; 1 where a law is broken."""
    parser = argparse.ArgumentParser(prog="scripts/fuzz --long", description=__doc__.split("\n")[0])
    parser.add_argument("--minutes", type=float, default=60)
    parser.add_argument("--texts", type=int, help="stop after this many texts of a process")
    parser.add_argument("--processes", type=int, default=1)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--length", type=int, default=5, help="symbols of an exhaustive body, at most")
    parser.add_argument("--kind", action="append", help="only these kinds of texts (repeatable)")
    parser.add_argument("--keep", type=int, default=3, help="failing texts shown for each law and kind")
    options = parser.parse_args()
    started = time.monotonic()
    if options.processes == 1:
        reports = [work(options, 0)]
    else:
        with multiprocessing.Pool(options.processes) as pool:
            reports = pool.starmap(work, [(options, process) for process in range(options.processes)])
    broken: dict[tuple[str, str], list[str]] = {}
    for report in reports:
        for key, found in report.broken.items():
            broken.setdefault(key, []).extend(found)
    for (law, kind), found in sorted(broken.items()):
        print(f"\n{law} broken by {kind}:")
        for line in found:
            print(f"  {line}")
    names = sorted({name for report in reports for name in report.texts})
    counts = {name: sum(report.texts.get(name, 0) for report in reports) for name in names}
    print(
        f"\n{sum(counts.values()):,} texts ({', '.join(f'{name} {count:,}' for name, count in counts.items())}), "
        f"{sum(report.cuttings for report in reports):,} cuttings, {(time.monotonic() - started) / 60:.1f} minutes, "
        f"{len(broken)} kinds of failures"
    )
    return 1 if broken else 0


if __name__ == "__main__":
    sys.exit(main())
