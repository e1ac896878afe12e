"""The rules of a request's calls: ``name(arguments)``, the arguments by the tools' schemas.

They share what they can: equal schemas, in whatever tools, have one rule.
"""

from __future__ import annotations

import json
import logging
from collections.abc import Mapping
from typing import Any

from ..core.cursor import is_name
from ..core.dialects import DIALECTS
from . import patterns
from .asked import Asked, Function
from .notation import Notation
from .objects import NAME
from .rules import SEPARATOR, Rules, literal
from .schema import SchemaError
from .strings import unquoted
from .values import Values
from .work import REQUEST_STEPS, TooLarge, Work

_log = logging.getLogger("lfm2_fixed.grammar")

_reported: set[tuple[str, str, str]] = set()
_MAX_REPORTED = 10_000


class Calls:
    """The calls that a request allows, and the rules for them.

    Raises:
        SchemaError: from the constructor; a schema that holds is no valid JSON Schema of an object.
        ValueError: from the constructor; no tool can be called.
    """

    def __init__(self, asked: Asked, notation: Notation) -> None:
        self.rules = Rules(DIALECTS[asked.dialect].ends, notation)
        self.arguments: dict[str, str] = {}
        """Of each name that can be called: the expression for the arguments and the closing parenthesis."""
        work = Work(REQUEST_STEPS)
        for function in asked.functions:
            if is_name(function.name):
                self.arguments[function.name] = _arguments(self.rules, work, function, held=asked.holds(function))
            else:
                _report(function.name, "", "the name, which has no form in a call list; this tool cannot be called")
        if not self.arguments:
            raise ValueError("tool_choice requires a call, but no tool has a name that can be called")

    def any(self) -> str:
        """The expression for one call of any function."""
        alternatives = [f"{literal(f'{name}(')} {arguments}" for name, arguments in self.arguments.items()]
        return f"({' | '.join(alternatives)})"


def _arguments(rules: Rules, work: Work, function: Function, *, held: bool) -> str:
    """The rule for one function's arguments and the closing parenthesis."""

    def report(place: str, keyword: str) -> None:
        _report(function.name, place, keyword)

    if function.parameters is None:
        schema: Any = {}
    else:
        schema = json.loads(function.parameters)
    if held:
        values = Values(rules, work, schema, report)
        if not schema:
            return rules.one_of('")"')
        try:
            found = values.arguments()
        except TooLarge:
            report("", "the whole schema, which takes too much work")
            return _free_arguments(rules, work, schema, report)
        if found is not None:
            return found
        if not values.describes_object():
            raise SchemaError(f"the parameters of {function.name!r} describe no object")
        report("", "the whole schema, which nothing satisfies")
    return _free_arguments(rules, work, schema, report)


def _free_arguments(rules: Rules, work: Work, schema: Any, report: Any) -> str:
    """Any literals as arguments, by any names."""
    anything = Values(rules, work, {}, report).anything()
    plain = patterns.match(NAME)
    names = [unquoted(rules, plain, "=")]
    properties = schema.get("properties") if isinstance(schema, Mapping) else None
    if isinstance(properties, Mapping):
        odd = [name for name in properties if is_name(name) and not plain.accepts(name)]
        names += [literal(name + "=") for name in odd]
    argument = f"{rules.one_of(*names)} {anything}"
    more, new = rules.reserve(("free arguments", argument))
    if new:
        rules.define(more, ['")"', f"{SEPARATOR} {argument} {more}"])
    return rules.one_of('")"', f"{argument} {more}")


def _report(function: str, place: str, keyword: str) -> None:
    """Log once what is not enforced."""
    what = (function, place, keyword)
    if what in _reported or len(_reported) >= _MAX_REPORTED:
        return
    _reported.add(what)
    where = f"argument {place!r} of tool {function!r}" if place else f"tool {function!r}"
    _log.warning("%s: not enforced in constrained calls: %s", where, keyword)
