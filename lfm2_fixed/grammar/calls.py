"""The rules of a request's calls: ``name(arguments)``, the arguments by the tools' schemas.

They share what they can: equal schemas, in whatever tools, have one rule.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from ..core.cursor import is_name
from ..core.dialects import DIALECTS
from . import patterns
from .asked import Asked, Function
from .notation import Notation
from .objects import NAME
from .quotes import unquoted
from .relaxed import relaxed
from .rules import SEPARATOR, Rules, literal
from .schema import SchemaError
from .values import Values
from .work import REQUEST_STEPS, TooLarge, Work


class Calls:
    """The calls that a request allows, and the rules for them.

    Raises:
        SchemaError: from the constructor; a schema that holds is no valid JSON Schema of an object.
    """

    def __init__(self, asked: Asked, notation: Notation) -> None:
        self.rules = Rules(DIALECTS[asked.dialect].ends, notation)
        work = Work(REQUEST_STEPS)
        self.arguments = {
            function.name: _arguments(self.rules, work, function, held=asked.holds(function))
            for function in asked.functions
        }
        """Of each name that can be called: the expression for the arguments and the closing parenthesis."""

    def any(self) -> str:
        """The expression for one call of any function."""
        alternatives = [f"{literal(f'{name}(')} {arguments}" for name, arguments in self.arguments.items()]
        return f"({' | '.join(alternatives)})"


def _arguments(rules: Rules, work: Work, function: Function, *, held: bool) -> str:
    """The rule for one function's arguments and the closing parenthesis."""

    def report(place: str, keyword: str) -> None:
        relaxed(function.name, place, keyword)

    if function.parameters is None:
        schema: Any = {}
    else:
        schema = json.loads(function.parameters)
    work.begin_tool()
    if held:
        if schema == {} or schema is False:
            return rules.one_of('")"')
        try:
            values = Values(rules, work, schema, report)
            found = values.arguments()
        except TooLarge:
            report("", "the whole schema, which takes too much work")
            return _free_arguments(rules, work, schema, report)
        if found is not None:
            if not rules.too_deep(found):
                return found
            report("", "the whole schema, which goes too deep for this engine")
            return _free_arguments(rules, work, schema, report)
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
