"""Which rules of a grammar lead to each other, and how deep."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

from .notation import Rule

_NAME = re.compile(r""""(?:[^"\\]|\\.)*"|\[(?:[^\]\\]|\\.)*\]|(r\d+)""")
"""The name of a rule, and what may hold something that looks like one."""


def names(expression: str) -> list[str]:
    """The rules that an expression names."""
    return [name for name in _NAME.findall(expression) if name]


def circles(onward: Mapping[str, Sequence[str]]) -> list[list[str]]:
    """The names that lead to each other, in groups; each group after all that it leads to (Tarjan's algorithm)."""
    number: dict[str, int] = {}
    lowest: dict[str, int] = {}
    stack: list[str] = []
    found: list[list[str]] = []
    done: set[str] = set()
    for first in onward:
        todo = [(first, iter(onward[first]))] if first not in number else []
        while todo:
            name, others = todo[-1]
            if name not in number:
                number[name] = lowest[name] = len(number)
                stack.append(name)
            for other in others:
                if other not in number:
                    todo.append((other, iter(onward[other])))
                    break
                if other not in done:
                    lowest[name] = min(lowest[name], number[other])
            else:
                todo.pop()
                if todo:
                    lowest[todo[-1][0]] = min(lowest[todo[-1][0]], lowest[name])
                if lowest[name] == number[name]:
                    at = stack.index(name)
                    found.append(stack[: at - 1 if at else None : -1])
                    done.update(found[-1])
                    del stack[at:]
    return found


class Depths:
    """Of each rule: how many rules may be entered, one inside the other, from it on.

    Rules that lead to each other count as all of them: no more are entered before one comes for the second time.
    """

    def __init__(self, rules: Mapping[str, Rule]) -> None:
        self._rules = rules
        self._known: dict[str, int] = {}

    def of(self, expression: str) -> int:
        """The depth of an expression; what it names has to be there."""
        first = names(expression)
        onward: dict[str, list[str]] = {}
        todo = [name for name in first if name not in self._known]
        while todo:
            name = todo.pop()
            if name not in onward:
                rule = self._rules[name]
                onward[name] = [other for text in (*rule.alternatives, rule.also) for other in names(text)]
                todo += [other for other in onward[name] if other not in self._known]
        new = {name: [other for other in others if other in onward] for name, others in onward.items()}
        for circle in circles(new):
            below = (self._known.get(other, 0) for name in circle for other in onward[name])
            depth = len(circle) + max(below, default=0)
            self._known.update(dict.fromkeys(circle, depth))
        return max((self._known[name] for name in first), default=0)
