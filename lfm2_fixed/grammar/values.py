"""JSON Schema to grammar rules: what a model may write for a call's arguments.

The text is Python's (and the parser's): ``f(city="Oslo", days=3, opts={"wind": True})``.

What a schema says and a grammar cannot is left out there and reported; what is generated is then a
superset of the schema at that place alone.  Choices go the other way: a type that is not stated but
implied by other keywords is taken as stated, and properties that are not declared are written only
where ``additionalProperties`` allows them explicitly or the schema declares no property at all.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from . import dfa as automata
from . import objects, ranges, strings
from .arrays import write as write_array
from .branches import conjunctions
from .constants import BOOLEAN, NULL, constant
from .here import Here, Report
from .instances import satisfies
from .keywords import check, implied, known, not_enforced
from .quotes import string
from .rules import SEPARATOR, Rules, literal
from .schema import ANNOTATIONS, MAX_DEPTH, Schema, canonical, types_of
from .work import LISTED_STEPS, VALUE_STEPS, TooLarge, Work

__all__ = ["Values"]

_IN_NAMES = {"type", "pattern", "format", "minLength", "maxLength", "enum", "const", "description", "title"}
"""Keywords that are understood in ``propertyNames``."""


def _says_more_than_types(schemas: Sequence[Schema]) -> bool:
    return any(not isinstance(schema, Mapping) or schema.keys() - ANNOTATIONS - {"type"} for schema in schemas)


class Values:
    """Rules for the values of one root schema.

    Args:
        rules: where the rules go; shared by all tools.
        work: what building may still take; shared by all tools.
        root: the schema that local references start from.
        report: told what is not enforced.

    Raises:
        SchemaError: from the constructor, if ``root`` is no JSON Schema.
        TooLarge: from the constructor, if it is nested too deeply.
    """

    def __init__(self, rules: Rules, work: Work, root: Schema, report: Report) -> None:
        self._root = root
        self._here = Here("", rules, work, report, self.value)
        text = repr(root)  # twice as quick as JSON, and as good a key
        # What references mean depends on the root: values of different tools are the same only without any.
        self._context = rules.ident(text) if "'$ref'" in text else -1
        self._depth = 0
        self._named: dict[tuple[int, ...], tuple[str, Sequence[Schema]]] = {}
        """Rules by the identity of the schemas, which are kept, so that no other object gets it."""
        check(root, root, "parameters")

    def value(self, schemas: Sequence[Schema], here: Here) -> str | None:
        """The expression for a value that satisfies all ``schemas``; None if there is none."""
        schemas = [schema for schema in schemas if schema is not True and schema != {}]
        if not schemas:
            return self.anything()
        rules = here.rules
        ids = tuple(map(id, schemas))
        if ids in self._named:
            name, new = self._named[ids][0], False
        else:
            name, new = rules.reserve(("value", self._context, repr(schemas)))
            self._named[ids] = name, schemas
        if new:
            spent = here.work.spent
            if not spent:  # types alone are quickly written, and take nothing from other tools
                here.work.charge(VALUE_STEPS)
            self._depth += 1
            try:
                if self._depth > MAX_DEPTH:
                    here.relax("nesting")
                    alternatives = [self.anything()]
                elif spent and _says_more_than_types(schemas):
                    self._here.relax("more than the types of what is left, which takes too much work")
                    alternatives = [str(self.value(self._only_types(schemas), here))]
                else:
                    branches = conjunctions(schemas, self._root, here)
                    alternatives = [text for parts in branches for text in self._branch(parts, here)]
            except TooLarge:  # every keyword gives up for itself; this is for one that forgot to
                here.relax("what takes too much work")
                alternatives = [self.anything()]
            finally:
                self._depth -= 1
            if not alternatives:
                rules.impossible.add(name)
            rules.define(name, alternatives or [literal("\0")])
        return None if name in rules.impossible else name

    def _only_types(self, schemas: Sequence[Schema]) -> list[Schema]:
        """What is left of ``schemas`` where there is no time for more."""
        types = types_of([schema for schema in schemas if isinstance(schema, Mapping)])
        return [{"type": sorted(types)}] if types else []

    def anything(self) -> str:
        """Any literal."""
        rules = self._here.rules
        value, new = rules.reserve("anything")
        if new:
            rules.define(value, [*string(rules, automata.ANY), self._no_string()])
        return value

    def _no_string(self) -> str:
        """Any literal that is no string."""
        rules = self._here.rules
        other, new = rules.reserve("anything but a string")
        if new:
            value = self.anything()
            items, _ = rules.reserve("items of anything")
            members, _ = rules.reserve("members of anything")
            keys = rules.one_of(*string(rules, automata.ANY))
            member = f'{keys} ":" " "? {value}'
            rules.define(items, ['"]"', f"{SEPARATOR} {value} {items}"])
            rules.define(members, ['"}"', f"{SEPARATOR} {member} {members}"])
            number = ranges.write(ranges.Number(), self._here, integer=False)
            rules.define(other, [
                str(number), BOOLEAN, NULL, f'"[" ("]" | {value} {items})', f'"{{" ("}}" | {member} {members})',
            ])  # fmt: skip
        return other

    def arguments(self) -> str | None:
        """A call's arguments and its closing parenthesis; None if nothing satisfies the schema."""
        found: list[str] = []
        for parts in conjunctions([self._root], self._root, self._here):
            types = types_of(parts)
            if types is not None and "object" not in types:
                continue
            self._report(parts, self._here)
            members = self._members(parts, self._here, ")", arguments=True)
            if members is not None:
                found.append(members)
        return self._here.rules.one_of(*found) if found else None

    def describes_object(self) -> bool:
        """Whether the root schema's types allow an object at all."""
        types = [types_of(parts) for parts in conjunctions([self._root], self._root, self._here)]
        return any(kinds is None or "object" in kinds for kinds in types)

    def _branch(self, parts: Sequence[Mapping[str, Any]], here: Here) -> list[str]:
        """The alternatives for a value that satisfies all ``parts``."""
        lists = [[part["const"]] for part in parts if "const" in part] + [
            part["enum"] for part in parts if "enum" in part
        ]
        if lists:
            return self._listed(lists, parts, here)
        self._report(parts, here)
        types = types_of(parts)
        if types is None:
            types = implied(parts)
            if types is None:
                text = known("string", parts, here)
                return [self.anything()] if text == strings.Text() else [*strings.write(text, here), self._no_string()]
        found: list[str | None] = []
        if "string" in types:
            found += strings.write(known("string", parts, here), here)
        if "number" in types or "integer" in types:
            number = known("number", parts, here)
            found.append(ranges.write(number, here, integer="number" not in types))
        if "boolean" in types:
            found.append(BOOLEAN)
        if "null" in types:
            found.append(NULL)
        if "array" in types:
            found.append(write_array(known("array", parts, here), here))
        if "object" in types:
            members = self._members(parts, here, "}", arguments=False)
            found.append(members and f'"{{" {members}')
        return [text for text in found if text]

    def _report(self, parts: Sequence[Mapping[str, Any]], here: Here) -> None:
        for word in not_enforced(parts):
            here.relax(word)

    def _listed(self, lists: Sequence[Sequence[Any]], parts: Sequence[Mapping[str, Any]], here: Here) -> list[str]:
        """The literals of the values that are in all ``lists`` and satisfy all ``parts``."""
        here.work.charge(LISTED_STEPS * sum(map(len, lists)))
        others = [{canonical(value) for value in values} for values in lists[1:]]
        values = {canonical(value): value for value in lists[0]}
        chosen = [value for text, value in values.items() if all(text in texts for texts in others)]
        rest = [{word: part[word] for word in part if word not in ("enum", "const")} for part in parts]
        try:
            chosen = [v for v in chosen if all(satisfies(v, part, self._root, here.work) for part in rest if part)]
        except TooLarge:
            here.relax("what stands beside enum or const")
        return [text for text in (constant(here.rules, value) for value in chosen) if text is not None]

    def _members(self, parts: Sequence[Mapping[str, Any]], here: Here, closing: str, *, arguments: bool) -> str | None:
        obj = known("object", parts, here)
        return objects.Writer(obj, self._names(obj, here), here, arguments=arguments).write(closing)

    def _names(self, obj: objects.Members, here: Here) -> objects.Names | None:
        """What ``propertyNames`` allows."""
        names: objects.Names | None = None
        for schema in obj.names:
            if schema is False:
                return objects.Names(automata.NOTHING, [])
            assert isinstance(schema, Mapping)
            if not schema.keys() <= _IN_NAMES or schema.get("type", "string") != "string":
                here.relax("propertyNames")
                continue
            try:
                found = self._names_of(schema, here)
            except TooLarge:
                here.relax("propertyNames")
                continue
            if names is None:
                names = found
                continue
            listed = [names.listed, found.listed]
            try:
                both = automata.both(here.work, names.dfa, found.dfa)
            except TooLarge:
                here.relax("propertyNames")
                continue
            known_names = next((one for one in listed if one is not None), None)
            names = objects.Names(both, known_names and [name for name in known_names if both.accepts(name)])
        return names

    def _names_of(self, schema: Mapping[str, Any], here: Here) -> objects.Names:
        values = [schema["const"]] if "const" in schema else schema.get("enum")
        if values is not None:
            listed = [v for v in values if isinstance(v, str) and satisfies(v, schema, self._root, here.work)]
            return objects.Names(automata.one_of(here.work, listed), listed)
        text = known("string", [schema], here)
        return objects.Names(strings.limited(here.work, text.automaton(here), text.low, text.high))
