"""The contract, its cases and the code that cites it: none names what is not there."""

from __future__ import annotations

import re

from tests.support import ROOT
from tests.support.cases import CASES

CONTRACT = (ROOT / "docs" / "contract.md").read_text(encoding="utf-8")
CLAUSE = re.compile(r"\*\*(\d+(?:\.\d+)+)\b")
CITED = re.compile(r"\bcontract (\d+(?:\.\d+)*)")
CASE = re.compile(r"`([a-z0-9]+/[\w/-]+)`")

# What no single text can show: how deltas are cut, and what the server does with them.
SHOWN_ELSEWHERE = {"2.2", "2.5", *(f"7.{clause}" for clause in range(1, 7))}


def clauses() -> dict[str, str]:
    """Each numbered clause's text, up to the next one."""
    starts = list(CLAUSE.finditer(CONTRACT))
    ends = [match.start() for match in starts[1:]] + [len(CONTRACT)]
    return {match[1]: CONTRACT[match.end() : end] for match, end in zip(starts, ends)}


def test_every_clause_has_an_example() -> None:
    """A rule without a case is a wish."""
    found = clauses()
    assert len(found) > 40
    without = {number for number, text in found.items() if not CASE.search(text)}
    # A clause that only introduces its own parts is shown by them.
    without -= {number for number in without if any(other.startswith(number + ".") for other in found)}
    assert without == SHOWN_ELSEWHERE


def test_every_example_is_a_case() -> None:
    """Ids in the contract name rows of the case file."""
    ids = {case["id"] for case in CASES}
    named = set(CASE.findall(CONTRACT))
    assert len(named) > 80 and named <= ids, named - ids


def test_every_citation_is_a_clause() -> None:
    """Code that decides something the contract says names a clause that exists."""
    known = set(clauses()) | {str(section) for section in range(1, 8)}
    cited = {
        (path.relative_to(ROOT).as_posix(), number)
        for path in (ROOT / "lfm2_fixed").rglob("*.py")
        for number in CITED.findall(path.read_text(encoding="utf-8"))
    }
    assert cited and {number for _, number in cited} <= known, sorted(cited)
