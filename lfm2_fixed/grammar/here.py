"""What every keyword's function is told beside the keyword's value: where it stands, and where its rules go."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from .rules import Rules
from .schema import Schema
from .work import Work

Report = Callable[[str, str], None]
"""Called with the place in the schema and the keyword that is not enforced there."""


@dataclass(frozen=True)
class Here:
    """A place in one tool's schema, and what its rules are made with."""

    place: str
    """Names and brackets from the tool's parameters down: ``filter.tags[]``.  Empty at the top."""
    rules: Rules
    """Where the rules go: shared by all tools of a request."""
    work: Work
    """What the request may still take."""
    report: Report
    value: Callable[[Sequence[Schema], Here], str | None]
    """The expression for a value that satisfies all of some schemas (None if there is none): arrays and objects
    write what is in them with it."""

    def relax(self, keyword: str) -> None:
        """Report that ``keyword`` is not enforced here: the grammar then takes more than the schema says."""
        self.report(self.place, keyword)

    def member(self, name: str) -> Here:
        """The place of a member."""
        place = f"{self.place}.{name}" if self.place else name
        return Here(place, self.rules, self.work, self.report, self.value)  # there are thousands: replace() is slow

    def items(self) -> Here:
        """The place of an array's items."""
        return replace(self, place=f"{self.place}[]")
