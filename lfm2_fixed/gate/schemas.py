"""The tools a request declares, and what their JSON Schemas say about arguments.

JSON Schema 2020-12 in full, by the ``jsonschema`` library; a schema that names another draft with
``$schema`` is read by that draft.  As the standard has it, ``format`` is an annotation and is not checked.
References are resolved inside the schema and to the drafts' own metaschemas; nothing is ever fetched.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

from ..wire.assemble import plain
from ..wire.strict_json import pointer

if TYPE_CHECKING:
    from jsonschema.exceptions import ValidationError
    from jsonschema.protocols import Validator

SchemaCode = Literal["MISSING_REQUIRED", "TYPE_MISMATCH", "SCHEMA_VIOLATION"]


class ToolsError(ValueError):
    """The declared tools themselves cannot be used; the message says which one and why."""


@dataclass(frozen=True)
class Violation:
    """One place where arguments break their schema.  ``value`` is what is there, for who asks to see it."""

    code: SchemaCode
    pointer: str
    message: str
    value: Any = None


class Tools:
    """Declared tools by name, their schemas compiled once.

    ``tools``: a list as Chat Completions, Responses or Messages take it, of dicts or the clients' objects.
    Tools that the server runs itself (web search and the like) are passed over.  Raises ToolsError for a tool
    without a name, a name given twice, and a schema that is none; ImportError without ``jsonschema``.
    """

    def __init__(self, tools: Iterable[Any]) -> None:
        self._validators: dict[str, Validator | None] = {}
        self._parameters: dict[str, tuple[str, ...]] = {}
        for position, tool in enumerate(tools):
            self._declare(plain(tool), f"tool {position}")

    def __contains__(self, name: str) -> bool:
        return name in self._validators

    @property
    def names(self) -> tuple[str, ...]:
        """The declared names, in order."""
        return tuple(self._validators)

    @property
    def parameters(self) -> dict[str, tuple[str, ...]]:
        """The declared functions' parameters by the functions' names, in order."""
        return dict(self._parameters)

    def takes_text(self, name: str) -> bool:
        """Whether this is a ``custom`` tool: it takes free text, no JSON."""
        return name in self._validators and self._validators[name] is None

    def violations(self, name: str, arguments: dict[str, Any]) -> list[Violation]:
        """Everything that is wrong with the arguments of a call of a declared function."""
        validator = self._validators[name]
        if validator is None:
            return []
        found: list[Violation] = []
        try:
            for error in validator.iter_errors(arguments):
                found.extend(_violations(error))
        except Exception as error:
            # A reference to nowhere, a pattern that is none, arithmetic or a stack that overflows: what could
            # not be checked is not accepted.
            message = f"could not be checked against the schema ({type(error).__name__})"
            found.append(Violation("SCHEMA_VIOLATION", "", message))
        return list({(v.code, v.pointer, v.message): v for v in found}.values())

    def _declare(self, tool: Any, where: str) -> None:
        if not isinstance(tool, Mapping):
            raise ToolsError(f"{where} is not an object")
        kind = tool.get("type", "function")
        if kind == "namespace":
            for position, member in enumerate(tool.get("tools") or ()):
                self._declare(plain(member), f"{where}, tool {position} of the namespace")
            return
        if kind not in ("function", "custom") and "input_schema" not in tool:
            return
        inner = tool.get(kind)
        declared = inner if isinstance(inner, Mapping) else tool
        name = declared.get("name")
        if not isinstance(name, str) or not name:
            raise ToolsError(f"{where} has no name")
        if name in self._validators:
            raise ToolsError(f"{where}: the name {name!r} is declared twice")
        schema = declared.get("parameters", declared.get("input_schema"))
        self._validators[name] = None if kind == "custom" else _validator(name, schema)
        properties = schema.get("properties") if isinstance(schema, Mapping) else None
        self._parameters[name] = tuple(properties) if isinstance(properties, Mapping) else ()


def _validator(name: str, schema: Any) -> Validator:
    try:
        import jsonschema
        from jsonschema_specifications import REGISTRY  # type: ignore[import-untyped, unused-ignore]
    except ImportError as error:
        raise ImportError(
            "Checking tool calls against their schemas needs the package jsonschema: "
            "pip install 'lfm2-fixed[tools]' (or: pip install jsonschema)."
        ) from error
    if schema is None:
        # "Omitting parameters defines a function with an empty parameter list."
        schema = {"type": "object", "properties": {}, "additionalProperties": False}
    if not isinstance(schema, (Mapping, bool)):
        raise ToolsError(f"the parameters of {name!r} are no JSON Schema: neither an object nor a boolean")
    definition: Any = schema
    kind = jsonschema.validators.validator_for(definition, default=jsonschema.Draft202012Validator)
    try:
        kind.check_schema(definition)
    except jsonschema.SchemaError as error:
        where = pointer(*error.absolute_path)
        raise ToolsError(f"the parameters of {name!r} are no JSON Schema: {error.message} (at {where!r})") from error
    # An explicit registry: without one the library fetches references over the network.
    validator: Validator = kind(definition, registry=REGISTRY)
    return validator


def _violations(error: ValidationError) -> Iterator[Violation]:
    where = pointer(*error.absolute_path)
    keyword = error.validator
    limit: Any = error.validator_value
    value: Any = error.instance
    if keyword == "type":
        yield Violation("TYPE_MISMATCH", where, f"expected {_types(limit)}, found {type_name(value)}", value)
    elif keyword == "required":
        for name in limit:
            if name not in value:
                yield Violation("MISSING_REQUIRED", where + pointer(name), "required, but not given")
    elif keyword in ("anyOf", "oneOf") and error.context:
        yield from _of_branches(error, where)
    elif keyword == "additionalProperties" and limit is False:
        for name in _undeclared(value, error.schema):
            message = "the schema has no such property, and allows no others"
            yield Violation("SCHEMA_VIOLATION", where + pointer(name), message, value[name])
    else:
        yield Violation("SCHEMA_VIOLATION", where, _broken(str(keyword), limit), value)


def _of_branches(error: ValidationError, where: str) -> Iterator[Violation]:
    """A union: told by the one branch whose type fits, if there is exactly one."""
    branches: dict[Any, list[ValidationError]] = {}
    for inner in error.context or ():
        branches.setdefault(inner.schema_path[0], []).append(inner)
    fitting = [
        errors
        for errors in branches.values()
        if not any(inner.validator == "type" and not inner.relative_path for inner in errors)
    ]
    if not fitting:
        expected = [inner.validator_value for errors in branches.values() for inner in errors[:1]]
        names = list(dict.fromkeys(_types(limit) for limit in expected))
        message = f"expected {' or '.join(names)}, found {type_name(error.instance)}"
        yield Violation("TYPE_MISMATCH", where, message, error.instance)
    elif len(fitting) == 1:
        for inner in fitting[0]:
            yield from _violations(inner)
    else:
        message = f"fits none of the {len(branches)} schemas of {error.validator}"
        yield Violation("SCHEMA_VIOLATION", where, message, error.instance)


def _undeclared(value: Mapping[str, Any], schema: Any) -> list[str]:
    import re

    declared = schema.get("properties", {})
    patterns = list(schema.get("patternProperties", {}))
    return [
        name for name in value if name not in declared and not any(re.search(pattern, name) for pattern in patterns)
    ]


def _types(limit: Any) -> str:
    return " or ".join(map(str, limit)) if isinstance(limit, list) else str(limit)


def type_name(value: Any) -> str:
    """The JSON type of a value, with an article-free name; integers told from other numbers."""
    kinds = {bool: "boolean", int: "integer", float: "number", str: "string", list: "array", dict: "object"}
    return "null" if value is None else kinds.get(type(value), type(value).__name__)


_SENTENCES = {
    "enum": "not one of the allowed values {}",
    "const": "not the only allowed value {}",
    "minimum": "less than the minimum {}",
    "maximum": "more than the maximum {}",
    "exclusiveMinimum": "not more than {}",
    "exclusiveMaximum": "not less than {}",
    "multipleOf": "not a multiple of {}",
    "minLength": "shorter than {} characters",
    "maxLength": "longer than {} characters",
    "pattern": "does not match the pattern {}",
    "minItems": "fewer than {} items",
    "maxItems": "more than {} items",
    "minProperties": "fewer than {} properties",
    "maxProperties": "more than {} properties",
    "uniqueItems": "the items are not unique",
    "None": "nothing is allowed here",
}


def _broken(keyword: str, limit: Any) -> str:
    """What the schema wants, in words; the schema is the caller's own, so its limits may be shown."""
    shown = json.dumps(limit, ensure_ascii=False, default=str)
    shown = shown if len(shown) <= 200 else shown[:200] + "…"
    return _SENTENCES.get(keyword, f"breaks {keyword} {{}}").replace("{}", shown)
