"""The ways to satisfy schemas: conjunctions without references and unions.

A value is described by several schemas at once (``allOf``, references with siblings, members that are declared
twice), and by one branch of each union.  Everything that writes values gets one such conjunction.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from operator import itemgetter
from typing import Any, NamedTuple

from .here import Here
from .schema import ANNOTATIONS, Schema, is_of_type, resolve, says_nothing, types_of
from .work import BRANCH_STEPS, TooLarge

MOST = 512
"""Conjunctions for one value: unions beside each other multiply, and each conjunction is written apart."""
_STEPS = 1024
"""Branches that are looked at for one value: 8 ms."""

_JOINING = ("$ref", "allOf", "anyOf", "oneOf", "$defs", "definitions")

_EXPANDED = frozenset([*_JOINING, "if", "not"])
"""Keywords that are read here; the others are left to who writes the values."""

Part = Mapping[str, Any]
Place = tuple[int, ...]
"""Where a schema stands in what is read: sorted, these are the order in which a reader sees them.  Members are written
in it, also those of a union that stands in an earlier part of an ``allOf``."""
_BEFORE, _OWN, _AFTER = range(3)


class _Union(NamedTuple):
    """A union whose branch is still to be chosen."""

    branches: Sequence[Schema]
    through: frozenset[str]
    """The references that led to it."""
    place: Place


class _Todo(NamedTuple):
    """A schema that holds."""

    schema: Schema
    through: frozenset[str]
    """The references that led here."""
    place: Place
    closed: frozenset[str] = frozenset()
    """Those of them that lead through a union: behind one of these the union begins again, with nothing new."""


def conjunctions(schemas: Sequence[Schema], root: Schema, here: Here) -> list[list[Part]]:
    """The ways to satisfy all ``schemas``.

    Unions that would make too many are left out and reported; the rest still holds.
    """
    if all(isinstance(schema, Mapping) and schema.keys().isdisjoint(_EXPANDED) for schema in schemas):
        return [[schema for schema in schemas if isinstance(schema, Mapping)]]  # most values: there is one way
    try:
        if here.work.spent:
            raise TooLarge("too much work")
        found = _Expansion(root, here, unions=True).all(schemas)
    except TooLarge:
        here.work.charge(_STEPS)  # one such value does not take the unions from all others
        here.relax("anyOf/oneOf (too many branches)")
        found = _Expansion(root, here, unions=False).all(schemas)
    here.work.charge(BRANCH_STEPS * len(found))
    return found


class _Expansion:
    def __init__(self, root: Schema, here: Here, *, unions: bool) -> None:
        self._root = root
        self._here = here
        self._unions = unions
        self._found: list[list[Part]] = []
        self._steps = 0

    def all(self, schemas: Sequence[Schema]) -> list[list[Part]]:
        self._expand([_Todo(schema, frozenset(), (at,)) for at, schema in enumerate(schemas)], [], [], frozenset())
        return self._found

    def _expand(
        self, todo: list[_Todo], parts: list[tuple[Place, Part]], unions: list[_Union], seen: frozenset[str]
    ) -> None:
        """``seen``: the references that hold already."""
        self._steps += 1
        if self._steps > _STEPS:
            raise TooLarge("too many branches")
        todo, parts, unions = list(todo), list(parts), list(unions)
        while todo:
            item = todo.pop(0)
            schema = item.schema
            if schema is True:
                continue
            if schema is False:
                return
            assert isinstance(schema, Mapping)
            if "not" in schema and says_nothing(schema["not"]):
                return  # how some libraries write a value that is never there: {"not": {}}
            reference = schema.get("$ref")
            if reference in item.closed:
                return  # a union that contains itself
            parts.append(((*item.place, _OWN), {k: v for k, v in schema.items() if k not in _JOINING}))
            todo[:0] = self._joined(item, schema, seen)
            if reference is not None:
                seen |= {reference}
            for keyword in ("anyOf", "oneOf"):
                if keyword not in schema:
                    continue
                place = (*item.place, _AFTER, len(schema))  # a union mostly says more about what is declared beside it
                if not self._unions:
                    parts.append((place, _types(schema[keyword])))
                    continue
                unions.append(_Union(joined_constants(schema[keyword]), item.through, place))
                if keyword == "oneOf" and not self._disjoint(schema[keyword]):
                    self._here.relax("oneOf (more than one branch may hold)")
        if not unions:
            if len(self._found) >= MOST:
                raise TooLarge("too many branches")
            self._found.append([part for _, part in sorted(parts, key=itemgetter(0))])
            return
        first, *rest = unions
        for branch in first.branches:
            self._expand([_Todo(branch, first.through, first.place, first.through)], parts, rest, seen)

    def _joined(self, item: _Todo, schema: Part, seen: frozenset[str]) -> list[_Todo]:
        """What ``$ref`` and ``allOf`` add."""
        found: list[_Todo] = []
        for word, value in schema.items():
            if word == "allOf":
                place = _place(item, schema, word)
                found += [item._replace(schema=inner, place=(*place, at)) for at, inner in enumerate(value)]
            elif word == "if" and (value is False or says_nothing(value)):
                chosen = schema.get("else" if value is False else "then", True)
                found.append(item._replace(schema=chosen, place=_place(item, schema, word)))
            elif word == "$ref" and value not in seen:
                target = resolve(self._root, value)
                if target is None:
                    self._here.relax("$ref")
                else:
                    place = _place(item, schema, word)
                    found.append(item._replace(schema=target, through=item.through | {value}, place=place))
        return found

    def _disjoint(self, branches: Sequence[Schema]) -> bool:
        """Whether it is certain that no value satisfies two of ``branches``."""
        seen: set[str] = set()
        for branch in branches:
            marks = self._marks(branch)
            if marks is None or not marks.isdisjoint(seen):
                return False
            seen |= marks
        return True

    def _marks(self, schema: Schema) -> set[str] | None:
        """A set of marks such that schemas with disjoint sets have no value in common."""
        if isinstance(schema, Mapping) and "$ref" in schema:
            schema = resolve(self._root, schema["$ref"]) or True
        if not isinstance(schema, Mapping):
            return None
        values = [schema["const"]] if "const" in schema else schema.get("enum")
        if values is not None:
            return {f"={value}" for value in values} if all(isinstance(v, str) for v in values) else None
        types = types_of([schema])
        if types is None:
            return None
        if types == {"object"}:
            for key in schema.get("required", ()):
                member = schema.get("properties", {}).get(key)
                if isinstance(member, Mapping) and ("const" in member or "enum" in member):
                    marks = self._marks(member)
                    return marks and {f"{key}{mark}" for mark in marks}
        return {"number" if kind == "integer" else kind for kind in types}


def _place(item: _Todo, schema: Part, word: str) -> Place:
    """The place of a keyword's schemas: before or behind the members that ``schema`` itself lists."""
    words = list(schema)
    own = min((words.index(listing) for listing in ("properties", "required") if listing in schema), default=len(words))
    return (*item.place, _BEFORE if words.index(word) < own else _AFTER, words.index(word))


def _types(branches: Sequence[Schema]) -> Part:
    """What is left of a union that is left out: its types, if all branches state theirs."""
    kinds = [types_of([branch]) if isinstance(branch, Mapping) else None for branch in branches]
    if any(kind is None for kind in kinds):
        return {}
    return {"type": sorted({word for kind in kinds if kind for word in kind})}


def joined_constants(branches: Sequence[Schema]) -> list[Schema]:
    """The same union, with all branches that are nothing but constants as one ``enum``."""
    values: list[Any] = []
    found: list[Schema] = []
    at = -1
    for branch in branches:
        if not isinstance(branch, Mapping) or not branch.keys() - ANNOTATIONS <= {"const", "enum", "type"}:
            found.append(branch)
            continue
        listed = [branch["const"]] if "const" in branch else branch.get("enum")
        if listed is None or ("const" in branch and "enum" in branch):
            found.append(branch)
            continue
        if at < 0:
            at = len(found)
            found.append(True)  # its place
        kinds = types_of([branch])
        values += [value for value in listed if kinds is None or is_of_type(value, kinds)]
    if at >= 0:
        found[at] = {"enum": values}
    return found
