"""Deterministic automata: which strings are meant by the keywords that limit a string or a member's name.

An automaton says which *values* are meant, not how they are escaped.  Patterns, lengths and excluded names are
all automata, so that any of them can be combined exactly.  Everything that builds one counts its steps
(``work.Work``) and gives up with ``TooLarge``.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from operator import itemgetter

from .charsets import ALL, CharSet, chars, charset, complement, contains, intersection
from .work import TooLarge, Work

MAX_STATES = 600
"""Larger automata are given up: xgrammar compiles a token mask for each state, which takes 0.3 ms (few characters
are possible) to 20 ms (nearly all are), and the constraint is not worth seconds."""
_ROUNDS = 24
"""Rounds of minimisation.  What needs more is a chain (it came from a length limit), and as good as minimal."""
_COMPARED = 8
"""Pairs that are compared for each state, all together, before two states count as different: a chain needs one for
each, and most pairs differ at once."""

Edges = Sequence[tuple[CharSet, int]]


@dataclass(frozen=True)
class Dfa:
    """State 0 is the start.  A character without an edge is refused.  No dead states."""

    edges: tuple[tuple[tuple[CharSet, int], ...], ...]
    accepting: tuple[bool, ...]

    def __hash__(self) -> int:
        return self._hash

    @cached_property
    def _hash(self) -> int:
        return hash((self.edges, self.accepting))  # it is asked for at every string

    @property
    def empty(self) -> bool:
        """Whether no string is accepted."""
        return not any(self.accepting)

    @property
    def is_run(self) -> bool:
        """Whether it accepts any number of characters of one set."""
        return len(self.edges) == 1 and bool(self.edges[0])

    def accepts(self, text: str) -> bool:
        """Whether ``text`` is accepted."""
        state = 0
        for c in text:
            for label, target in self.edges[state]:
                if contains(label, ord(c)):
                    state = target
                    break
            else:
                return False
        return self.accepting[state]

    def includes(self, larger: int, smaller: int) -> bool:
        """Whether what is accepted from the state ``larger`` is known to include all that is from ``smaller``."""
        if (larger, smaller) not in self._included:
            self._compare((larger, smaller))
        return self._included[larger, smaller]

    @cached_property
    def _included(self) -> dict[tuple[int, int], bool]:
        """What :meth:`includes` has found."""
        return {}

    def _compare(self, asked: tuple[int, int]) -> None:
        """Find whether ``asked`` holds.  A pair of states holds unless it leads to one that does not."""
        known = self._included
        most = _COMPARED * max(len(self.edges), 32)  # all pairs of a small one
        sources: dict[tuple[int, int], list[tuple[int, int]]] = {asked: []}
        todo = [asked]
        for pair in todo:
            ahead = self._ahead(*pair) if len(known) + len(sources) <= most else None
            for other in ahead or ():
                if other not in known and other not in sources:
                    todo.append(other)
                    sources[other] = []
                if other in sources:
                    sources[other].append(pair)
            if ahead is None or not all(known.get(other, True) for other in ahead):
                wrong = [pair]
                for failed in wrong:
                    if known.get(failed, True):
                        known[failed] = False
                        wrong += sources[failed]
                if asked in known:
                    return
        known.update((pair, True) for pair in todo if pair not in known)

    def _ahead(self, larger: int, smaller: int) -> set[tuple[int, int]] | None:
        """The pairs to which a pair leads with each character; None if it does not hold itself."""
        if self.accepting[smaller] and not self.accepting[larger]:
            return None
        found: set[tuple[int, int]] = set()
        ranges, at = self._ranges[larger], 0
        for low, high, to_smaller in self._ranges[smaller]:
            while at < len(ranges) and ranges[at][1] < low:
                at += 1
            while low <= high:
                if at == len(ranges) or ranges[at][0] > low:
                    return None
                _, end, to_larger = ranges[at]
                if to_larger != to_smaller:
                    found.add((to_larger, to_smaller))
                low = end + 1
                if low <= high:
                    at += 1
        return found

    @cached_property
    def _ranges(self) -> list[list[tuple[int, int, int]]]:
        """The edges of each state as ranges in their order: from, to, target."""
        return [sorted((low, high, target) for label, target in edges for low, high in label) for edges in self.edges]

    def futures(self, number: Callable[[object], int]) -> list[int]:
        """For each state a number: states with one number accept the same from there on, in all automata.

        ``number`` gives equal things one number.  The ends of chains and of words get theirs, and what goes on freely;
        states of longer cycles are known to be the same in equal automata only.
        """
        found = [-1] * len(self.edges)
        missing = [0] * len(self.edges)
        sources: list[list[int]] = [[] for _ in self.edges]
        for state, edges in enumerate(self.edges):
            for _, target in edges:
                if target != state:
                    missing[state] += 1
                    sources[target].append(state)
        todo = [state for state, waits in enumerate(missing) if not waits]
        for state in todo:  # grows: a state comes after all to which it leads
            ahead = tuple((label, -1 if target == state else found[target]) for label, target in self.edges[state])
            found[state] = number(("future", self.accepting[state], ahead))
            for source in sources[state]:
                missing[source] -= 1
                if not missing[source]:
                    todo.append(source)
        if len(todo) < len(found):
            whole = number(self)
            found = [number(("state", whole, at)) if future < 0 else future for at, future in enumerate(found)]
        return found

    def ends_anywhere_after(self, length: int) -> bool:
        """Whether every string of ``length`` characters or more that can still be accepted is accepted as it is."""
        reached = {0}
        for _ in range(min(length, len(self.edges))):
            reached = {target for state in reached for _, target in self.edges[state]}
        if length > len(self.edges):  # then all these states lie behind a loop: what follows them may come late
            todo = list(reached)
            while todo:
                for _, target in self.edges[todo.pop()]:
                    if target not in reached:
                        reached.add(target)
                        todo.append(target)
            return all(self.accepting[state] for state in reached)
        seen: set[frozenset[int]] = set()
        while frozenset(reached) not in seen:
            if not all(self.accepting[state] for state in reached):
                return False
            seen.add(frozenset(reached))
            if len(seen) > len(self.edges):
                return False  # not worth more work: "no" is always safe
            reached = {target for state in reached for _, target in self.edges[state]}
        return True


NOTHING = Dfa(((),), (False,))
ANY = Dfa((((ALL, 0),),), (True,))


def repeated(label: CharSet) -> Dfa:
    """Strings of any number of characters of ``label``."""
    return Dfa((((label, 0),) if label else (),), (True,))


def of_length(work: Work, label: CharSet, low: int, high: int | None) -> Dfa:
    """Strings of ``low`` to ``high`` characters of ``label`` (None: no limit)."""
    last = low if high is None else high
    if last >= MAX_STATES:
        raise TooLarge(f"{last} characters")
    work.spend(last + 1)
    edges: list[tuple[tuple[CharSet, int], ...]] = [((label, n + 1),) for n in range(last)]
    edges.append(((label, last),) if high is None else ())
    return Dfa(tuple(edges), tuple(n >= low for n in range(last + 1)))


def has_length(work: Work, dfa: Dfa, low: int, high: int | None) -> bool:
    """Whether a string of ``low`` to ``high`` characters is accepted."""
    reached, length = {0}, 0
    # Without a limit: behind ``low``, a state that accepts is no more states away than there are.
    while reached and length <= (low + len(dfa.edges) if high is None else high):
        if length >= low and any(dfa.accepting[state] for state in reached):
            return True
        work.spend(len(reached))
        reached = {target for state in reached for _, target in dfa.edges[state]}
        length += 1
    return False


def one_of(work: Work, words: Iterable[str]) -> Dfa:
    """Exactly these strings, without a state more than they need."""
    trie: list[dict[str, int]] = [{}]
    final = [False]
    for word in words:
        work.spend(len(word) + 1)
        state = 0
        for c in word:
            if c not in trie[state]:
                trie[state][c] = len(trie)
                trie.append({})
                final.append(False)
            state = trie[state][c]
        final[state] = True
    if not any(final):
        return NOTHING
    # From the leaves up (what follows a state has a higher number): states with equal futures become one.
    same: dict[tuple[bool, tuple[tuple[str, int], ...]], int] = {}
    joined = [0] * len(trie)
    for state in reversed(range(len(trie))):
        future = tuple(sorted((c, joined[target]) for c, target in trie[state].items()))
        joined[state] = same.setdefault((final[state], future), state)
    return _numbered(trie, joined, final)


def _numbered(trie: list[dict[str, int]], joined: list[int], final: list[bool]) -> Dfa:
    """The joined states of :func:`one_of`, numbered from the start on."""
    order = {joined[0]: 0}
    todo = [joined[0]]
    edges: list[tuple[tuple[CharSet, int], ...]] = []
    for state in todo:
        by_target: dict[int, str] = {}
        for c, target in trie[state].items():
            by_target[joined[target]] = by_target.get(joined[target], "") + c
        for target in by_target:
            if target not in order:
                order[target] = len(order)
                todo.append(target)
        edges.append(tuple((chars(text), order[target]) for target, text in by_target.items()))
        if len(todo) > MAX_STATES:
            raise TooLarge("too many states")
    return Dfa(tuple(edges), tuple(final[state] for state in todo))


def none_of(work: Work, words: Iterable[str], most: int) -> Dfa:
    """All strings but these; it has a state more than :func:`one_of` makes of them, and needs no joining.

    The words end somewhere: so no state of theirs takes everything or nothing, and those that differed still do.

    Raises:
        TooLarge: the words take more than ``most`` states.
    """
    listed = one_of(work, words)
    if len(listed.edges) > most:
        raise TooLarge("too many words")
    # The state for all that is none of the words is numbered where it is reached from the start, as everywhere.
    sink = 1 + len({target for _, target in listed.edges[0]})
    edges: list[tuple[tuple[CharSet, int], ...]] = []
    for state in listed.edges:
        work.spend(1 + len(state))
        out = [(label, target + (target >= sink)) for label, target in state]
        out.append((complement(charset(r for label, _ in state for r in label)), sink))
        edges.append(tuple(sorted(out, key=itemgetter(1))))
    edges.insert(sink, ((ALL, sink),))
    accepting = [not yes for yes in listed.accepting]
    accepting.insert(sink, True)
    return Dfa(tuple(edges), tuple(accepting))


def both(work: Work, a: Dfa, b: Dfa) -> Dfa:
    """The strings of ``a`` that are also in ``b``."""
    if a == ANY:
        return b
    if b == ANY:
        return a
    return _product(work, a, b, lambda x, y: x and y)


def but_not(work: Work, a: Dfa, b: Dfa) -> Dfa:
    """The strings of ``a`` that are not in ``b``."""
    edges = [list(state) for state in b.edges]
    sink = len(edges)
    for state in edges:
        rest = complement(charset(r for label, _ in state for r in label))
        if rest:
            state.append((rest, sink))
    edges.append([(ALL, sink)])
    full = Dfa(tuple(map(tuple, edges)), (*b.accepting, False))
    return _product(work, a, full, lambda x, y: x and not y)


def _product(work: Work, a: Dfa, b: Dfa, accept: Callable[[bool, bool], bool]) -> Dfa:
    numbers = {(0, 0): 0}
    todo = [(0, 0)]
    edges: list[list[tuple[CharSet, int]]] = []
    accepting: list[bool] = []
    for x, y in todo:
        out: list[tuple[CharSet, int]] = []
        work.spend(1 + len(a.edges[x]) * len(b.edges[y]))
        for label_a, to_a in a.edges[x]:
            for label_b, to_b in b.edges[y]:
                label = intersection(label_a, label_b)
                if label:
                    work.spend(len(label))
                    target = (to_a, to_b)
                    if target not in numbers:
                        numbers[target] = len(numbers)
                        todo.append(target)
                        if len(todo) > 4 * MAX_STATES:  # some of them may turn out dead or equal
                            raise TooLarge("too many states")
                    out.append((label, numbers[target]))
        edges.append(out)
        accepting.append(accept(a.accepting[x], b.accepting[y]))
    return tidy(work, edges, accepting)


def tidy(work: Work, edges: Sequence[Edges], accepting: Sequence[bool]) -> Dfa:
    """The same automaton without dead states, and with equal states joined (Moore's algorithm)."""
    alive = _alive(edges, accepting)
    if 0 not in alive:
        return NOTHING
    group = [int(yes) for yes in accepting]
    count = 0
    size = sum(len(label) for state in alive for label, _ in edges[state])
    for _ in range(_ROUNDS):
        work.spend(len(alive) + size)
        keys: dict[object, int] = {}
        new = [-1] * len(edges)
        for state in sorted(alive):
            new[state] = keys.setdefault((group[state], _grouped(edges[state], group, alive)), len(keys))
        group = new
        if len(keys) == count:
            break
        count = len(keys)
        if count == len(alive):
            break
    else:
        group = list(range(len(edges)))
    # Number the groups from the start state on.
    first: dict[int, int] = {}
    for state in sorted(alive, reverse=True):
        first[group[state]] = state
    order: dict[int, int] = {group[0]: 0}
    picked = [0]
    result: list[tuple[tuple[CharSet, int], ...]] = []
    for state in picked:
        out_edges: list[tuple[CharSet, int]] = []
        for target_group, label in _grouped(edges[state], group, alive):
            if target_group not in order:
                order[target_group] = len(order)
                picked.append(first[target_group])
            out_edges.append((label, order[target_group]))
        result.append(tuple(out_edges))
    if len(result) > MAX_STATES:
        raise TooLarge("too many states")
    return Dfa(tuple(result), tuple(accepting[state] for state in picked))


def _alive(edges: Sequence[Edges], accepting: Sequence[bool]) -> set[int]:
    """The states from which an accepting one is reached."""
    sources: list[set[int]] = [set() for _ in edges]
    for state, out in enumerate(edges):
        for _, target in out:
            sources[target].add(state)
    alive = {state for state, yes in enumerate(accepting) if yes}
    todo = list(alive)
    while todo:
        for source in sources[todo.pop()] - alive:
            alive.add(source)
            todo.append(source)
    return alive


def _grouped(out: Edges, group: Sequence[int], alive: set[int]) -> tuple[tuple[int, CharSet], ...]:
    labels: dict[int, CharSet] = {}
    joined: set[int] = set()
    for label, target in out:
        if target in alive:
            to = group[target]
            if to in labels:
                joined.add(to)
                label = labels[to] + label
            labels[to] = label
    for to in joined:
        labels[to] = charset(labels[to])
    return tuple(sorted(labels.items()))
