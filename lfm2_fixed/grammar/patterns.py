"""Patterns as automata: Thompson's construction, then sets of states."""

from __future__ import annotations

from collections.abc import Iterable

from . import regex
from .charsets import ALL, CharSet, charset, contains
from .dfa import MAX_STATES, Dfa, tidy
from .regex import Choice, Edge, Node, Repeat, Sequence, Set
from .work import KEYWORD_STEPS, TooLarge, Work

_LOOSE = 16
"""Up to here the repetitions of a pattern are counted that is too large with all its counts."""


def search(work: Work, pattern: str) -> Dfa:
    """Strings in which ``pattern`` is found (JSON Schema's ``pattern`` is not anchored).

    Raises:
        NotRegular: see ``regex.read``.
        TooLarge: too many states, or too much work.
    """
    return work.once(("search", pattern), lambda inner: _dfa(inner, regex.read(pattern), anywhere=True))


def search_loosely(work: Work, pattern: str) -> Dfa:
    """The same without the large counts of repetitions: a superset, for a pattern that is too large."""
    return work.once(
        ("search loosely", pattern),
        lambda inner: _dfa(inner, regex.loosened(regex.read(pattern), _LOOSE), anywhere=True),
    )


def match(work: Work, pattern: str) -> Dfa:
    """Strings that match ``pattern`` from beginning to end: one of our own, which may take more than a schema's."""
    return work.once(
        ("match", pattern), lambda inner: _dfa(inner, regex.read(pattern), anywhere=False), 4 * KEYWORD_STEPS
    )


def _dfa(work: Work, node: Node, *, anywhere: bool) -> Dfa:
    thompson = _Thompson(work)
    first, last = thompson.build(node)
    if anywhere and not _anchored(node, Edge(True)):
        first = thompson.loop_before(first)
    if anywhere and not _anchored(node, Edge(False)):
        last = thompson.loop_after(last)
    return thompson.determined(first, last)


def _anchored(node: Node, edge: Edge) -> bool:
    """Whether ``node`` can only begin at the text's beginning (end at its end): then no loop is needed there."""
    if isinstance(node, Edge):
        return node == edge
    if isinstance(node, Sequence):
        return bool(node.nodes) and _anchored(node.nodes[0 if edge.start else -1], edge)
    return isinstance(node, Choice) and all(_anchored(choice, edge) for choice in node.choices)


class _Thompson:
    """An automaton whose states have edges without a character, too."""

    def __init__(self, work: Work) -> None:
        self._work = work
        self._free: list[list[int]] = []  # edges without a character
        self._starts: list[list[int]] = []  # ... taken at the text's beginning only
        self._ends: list[list[int]] = []  # ... at its end only
        self._moves: list[tuple[CharSet, int] | None] = []
        self._everything = -1
        """The state from which every text is accepted, if there is one."""
        self._closures: dict[int, frozenset[int]] = {}

    def _state(self) -> int:
        self._work.spend(1)
        self._free.append([])
        self._starts.append([])
        self._ends.append([])
        self._moves.append(None)
        return len(self._free) - 1

    def build(self, node: Node) -> tuple[int, int]:
        """The first and the last state of ``node``."""
        first = self._state()
        if isinstance(node, Sequence):
            last = first
            for inner in node.nodes:
                begin, end = self.build(inner)
                self._free[last].append(begin)
                last = end
            return first, last
        if isinstance(node, Repeat):
            return first, self._repeat(node, first)
        last = self._state()
        if isinstance(node, Set):
            self._moves[first] = (node.label, last)
        elif isinstance(node, Edge):
            (self._starts if node.start else self._ends)[first].append(last)
        else:
            for choice in node.choices:
                begin, end = self.build(choice)
                self._free[first].append(begin)
                self._free[end].append(last)
        return first, last

    def _repeat(self, node: Repeat, first: int) -> int:
        last = first
        for _ in range(node.least):
            begin, last_of_copy = self.build(node.node)
            self._free[last].append(begin)
            last = last_of_copy
        final = self._state()
        if node.most is None:
            begin, end = self.build(node.node)
            self._free[last] += [begin, final]
            self._free[end] += [begin, final]
            return final
        # Each copy may be the last one: an edge to the end from every copy, rather than from copy to copy, which
        # would make the closure of each state as long as the count.
        self._free[last].append(final)
        for _ in range(node.most - node.least):
            begin, end = self.build(node.node)
            self._free[last].append(begin)
            self._free[end].append(final)
            last = end
        return final

    def loop_before(self, first: int) -> int:
        before = self._state()
        again = self._state()
        self._free[before] += [again, first]
        self._moves[again] = (ALL, before)
        return before

    def loop_after(self, last: int) -> int:
        self._everything = after = self._state()
        self._moves[after] = (ALL, after)
        self._free[last].append(after)
        return after

    def _closure(self, states: Iterable[int], *, start: bool = False, end: bool = False) -> set[int]:
        found = set(states)
        todo = list(found)
        while todo:
            state = todo.pop()
            for target in (
                *self._free[state],
                *(self._starts[state] if start else ()),
                *(self._ends[state] if end else ()),
            ):
                if target not in found:
                    found.add(target)
                    todo.append(target)
        self._work.spend(len(found))
        return found

    def _after(self, state: int) -> frozenset[int]:
        """The closure of one state."""
        if state not in self._closures:
            self._closures[state] = frozenset(self._closure([state]))
        return self._closures[state]

    def determined(self, first: int, last: int) -> Dfa:
        """The deterministic automaton.

        Raises:
            TooLarge: too many states.
        """
        atoms, parts = _atoms(self._work, {move[0] for move in self._moves if move})
        numbers: dict[frozenset[int], int] = {}
        # State 0 knows that the text has just begun; nothing comes back to it.  The text's beginning is also its
        # end when it is empty: hence both in one closure.
        todo: list[set[int] | frozenset[int]] = [self._closure([first], start=True)]
        edges: list[list[tuple[CharSet, int]]] = []
        accepting: list[bool] = []
        for states in todo:
            accepting.append(last in self._closure(states, start=not edges, end=True))
            reached: dict[int, set[int]] = {}
            for state in states:
                move = self._moves[state]
                if move is not None:
                    after = self._after(move[1])
                    self._work.spend(len(parts[move[0]]) + len(after) // 8)
                    for atom in parts[move[0]]:
                        reached.setdefault(atom, set()).update(after)
            labels: dict[frozenset[int], list[tuple[int, int]]] = {}
            for atom, targets in reached.items():
                key = frozenset([self._everything]) if self._everything in targets else frozenset(targets)
                labels.setdefault(key, []).extend(atoms[atom])
            out: list[tuple[CharSet, int]] = []
            for key, ranges in labels.items():
                if key not in numbers:
                    numbers[key] = len(todo)
                    todo.append(key)
                    if len(todo) > 4 * MAX_STATES:
                        raise TooLarge("too many states")
                out.append((charset(ranges), numbers[key]))
            edges.append(out)
        return tidy(self._work, edges, accepting)


def _atoms(work: Work, labels: set[CharSet]) -> tuple[list[list[tuple[int, int]]], dict[CharSet, list[int]]]:
    """The coarsest disjoint sets of which all ``labels`` are made, and of which ones each is made."""
    ordered = sorted(labels)
    bounds = sorted({bound for label in ordered for low, high in label for bound in (low, high + 1)})
    work.spend(len(bounds) * len(ordered))
    numbers: dict[tuple[int, ...], int] = {}
    atoms: list[list[tuple[int, int]]] = []
    parts: dict[CharSet, list[int]] = {label: [] for label in ordered}
    for low, after in zip(bounds, bounds[1:]):
        within = tuple(at for at, label in enumerate(ordered) if contains(label, low))
        if not within:
            continue
        if within not in numbers:
            numbers[within] = len(atoms)
            atoms.append([])
            for at in within:
                parts[ordered[at]].append(numbers[within])
        atoms[numbers[within]].append((low, after - 1))
    return atoms, parts
