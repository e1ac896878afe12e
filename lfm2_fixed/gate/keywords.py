"""JSON Schema by the ``jsonschema`` library, with every keyword's work counted.

The library decides what a schema means: drafts, references, combinations.  Replaced is what it does at no bounded cost:
``uniqueItems`` compares each item with each, ``pattern`` backtracks, ``unevaluatedProperties`` collects lists
that double with each reference, and each error quotes the whole value in its message.  The messages are
not used here (they quote what the model wrote), so errors are made without one.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator, Mapping
from functools import lru_cache
from typing import TYPE_CHECKING, Any

from ..extras import install
from ..wire.strict_json import pointer
from ..wire.text import shortened
from .budget import size, spend
from .patterns import compiled, found

if TYPE_CHECKING:
    from jsonschema.exceptions import ValidationError
    from jsonschema.protocols import Validator

    Keyword = Callable[[Any, Any, Any, Any], Iterator[ValidationError]]

_INSTALL = (
    "Checking tool calls against their schemas needs the package jsonschema: "
    f"pip install jsonschema ({install('tools')})."
)


class BadSchema(ValueError):
    """A schema that is none; the message says why."""


def compile_schema(schema: Any) -> Validator:
    """A validator for a schema (a mapping or a boolean), by the draft that it names.

    Reading the schema takes steps of the open budget.  Raises BadSchema, OverBudget, and ImportError without
    ``jsonschema``.
    """
    try:
        import jsonschema
        from jsonschema_specifications import REGISTRY  # type: ignore[import-untyped, unused-ignore]
    except ImportError as error:
        raise ImportError(_INSTALL) from error
    definition: Any = schema
    draft = jsonschema.validators.validator_for(definition, default=jsonschema.Draft202012Validator)
    counting = _counting(draft)
    checker = counting(draft.META_SCHEMA, registry=REGISTRY, format_checker=_patterns_checker())
    try:
        wrong = next(checker.iter_errors(definition), None)
    except RecursionError:
        raise BadSchema("nested too deep") from None
    if wrong is not None:
        limit = shortened(json.dumps(wrong.validator_value, default=str), 200)
        where = pointer(*wrong.absolute_path)
        raise BadSchema(f"{wrong.validator} {limit} is not fulfilled (at {where!r})")
    # An explicit registry: without one the library fetches references over the network.
    validator: Validator = counting(definition, registry=REGISTRY)
    return validator


@lru_cache(maxsize=1)
def _patterns_checker() -> Any:
    import jsonschema

    def is_pattern(value: object) -> bool:
        return not isinstance(value, str) or compiled(value) is not None

    checker = jsonschema.FormatChecker(formats=())
    checker.checks("regex", raises=(re.error, RecursionError, OverflowError))(is_pattern)
    return checker


@lru_cache(maxsize=16)
def _counting(draft: Any) -> Any:
    """The draft's validator class with counted keywords."""
    import attrs
    import jsonschema

    newest = jsonschema.Draft202012Validator.VALIDATORS
    own = _keywords()
    replaced = {}
    for keyword, function in draft.VALIDATORS.items():
        # A keyword that another draft reads otherwise (``items`` before 2020, say) stays that draft's.
        same = function is newest.get(keyword) or keyword.startswith("unevaluated")
        replaced[keyword] = _counted(own[keyword] if same and keyword in own else function)
    cls = jsonschema.validators.extend(draft, validators=replaced)
    fields = [(field.name, field.alias) for field in attrs.fields(cls) if field.init]

    def evolve(self: Any, **changes: Any) -> Any:
        # The library's own goes over to another draft's class at a nested "$schema", and with it to keywords
        # that are not counted.
        spend()
        for name, alias in fields:
            changes.setdefault(alias, getattr(self, name))
        return cls(**changes)

    cls.evolve = evolve
    return cls


def _counted(function: Any) -> Keyword:
    """A keyword that pays for itself, and for the value that the library's own errors quote."""

    def keyword(validator: Any, value: Any, instance: Any, schema: Any) -> Iterator[ValidationError]:
        spend(1 + (len(value) if isinstance(value, (list, dict)) else 0))
        for error in function(validator, value, instance, schema) or ():
            # An error from a keyword further down has a name already; a new one has none, or no message.
            new = not isinstance(error.validator, str)
            spend(1 + (size(instance) if new and error.message else 0))
            yield error

    return keyword


def _keywords() -> dict[str, Keyword]:
    """Keywords that are replaced, by name.  What they take for equal, and so on, is what the library does."""
    from jsonschema.exceptions import ValidationError

    def broken(**more: Any) -> ValidationError:
        return ValidationError("", **more)

    def limit(kind: str, breaks: Callable[[Any, Any], Any]) -> Keyword:
        def keyword(validator: Any, value: Any, instance: Any, schema: Any) -> Iterator[ValidationError]:
            if validator.is_type(instance, kind) and breaks(instance, value):
                yield broken()

        return keyword

    def type_(validator: Any, value: Any, instance: Any, schema: Any) -> Iterator[ValidationError]:
        if not any(validator.is_type(instance, kind) for kind in ([value] if isinstance(value, str) else value)):
            yield broken()

    def enum(validator: Any, value: Any, instance: Any, schema: Any) -> Iterator[ValidationError]:
        if isinstance(instance, str):  # by far the most frequent, and comparing is enough
            allowed = instance in value
        else:
            wanted = _canonical(instance)
            allowed = any(_canonical(each) == wanted for each in value)
        if not allowed:
            yield broken()

    def const(validator: Any, value: Any, instance: Any, schema: Any) -> Iterator[ValidationError]:
        if _canonical(instance) != _canonical(value):
            yield broken()

    def unique_items(validator: Any, value: Any, instance: Any, schema: Any) -> Iterator[ValidationError]:
        if value and validator.is_type(instance, "array") and len({*map(_canonical, instance)}) != len(instance):
            yield broken()

    def pattern(validator: Any, value: Any, instance: Any, schema: Any) -> Iterator[ValidationError]:
        if validator.is_type(instance, "string") and not found(value, instance):
            yield broken()

    def pattern_properties(validator: Any, value: Any, instance: Any, schema: Any) -> Iterator[ValidationError]:
        if not validator.is_type(instance, "object"):
            return
        for expression, subschema in value.items():
            for key, member in instance.items():
                if found(expression, key):
                    yield from validator.descend(member, subschema, path=key, schema_path=expression)

    def additional_properties(validator: Any, value: Any, instance: Any, schema: Any) -> Iterator[ValidationError]:
        if not validator.is_type(instance, "object"):
            return
        extras = undeclared(instance, schema)
        if value is False:
            if extras:
                yield broken()
        else:
            for extra in extras:
                yield from validator.descend(instance[extra], value, path=extra)

    def required(validator: Any, value: Any, instance: Any, schema: Any) -> Iterator[ValidationError]:
        # One error for all that are missing: the violations are told from it.
        if validator.is_type(instance, "object") and any(name not in instance for name in value):
            yield broken()

    def contains(validator: Any, value: Any, instance: Any, schema: Any) -> Iterator[ValidationError]:
        if not validator.is_type(instance, "array"):
            return
        inner = validator.evolve(schema=value)
        matches = sum(inner.is_valid(item) for item in instance)
        most, least = schema.get("maxContains"), schema.get("minContains", 1)
        if most is not None and matches > most:
            yield broken(validator="maxContains", validator_value=most)
        if matches < least:
            yield broken(validator="minContains" if "minContains" in schema else "contains", validator_value=least)

    def not_(validator: Any, value: Any, instance: Any, schema: Any) -> Iterator[ValidationError]:
        if validator.evolve(schema=value).is_valid(instance):
            yield broken()

    def any_of(validator: Any, value: Any, instance: Any, schema: Any) -> Iterator[ValidationError]:
        errors: list[ValidationError] = []
        for index, subschema in enumerate(value):
            own = list(validator.descend(instance, subschema, schema_path=index))
            if not own:
                return
            errors += own
        yield broken(context=errors)

    def one_of(validator: Any, value: Any, instance: Any, schema: Any) -> Iterator[ValidationError]:
        errors: list[ValidationError] = []
        fitting = 0
        for index, subschema in enumerate(value):
            own = list(validator.descend(instance, subschema, schema_path=index))
            fitting += not own
            errors += own
        if fitting != 1:
            yield broken(context=errors if not fitting else [])

    def dependent_required(validator: Any, value: Any, instance: Any, schema: Any) -> Iterator[ValidationError]:
        if validator.is_type(instance, "object"):
            for key, names in value.items():
                if key in instance:
                    spend(len(names))
                    if any(name not in instance for name in names):
                        yield broken()

    def unevaluated_properties(validator: Any, value: Any, instance: Any, schema: Any) -> Iterator[ValidationError]:
        if validator.is_type(instance, "object"):
            known = _evaluated(validator, instance, schema)
            for key, member in instance.items():
                if key not in known and not validator.evolve(schema=value).is_valid(member):
                    yield broken()
                    return

    def unevaluated_items(validator: Any, value: Any, instance: Any, schema: Any) -> Iterator[ValidationError]:
        if validator.is_type(instance, "array"):
            known = _evaluated(validator, instance, schema)
            for index, item in enumerate(instance):
                if index not in known and not validator.evolve(schema=value).is_valid(item):
                    yield broken()
                    return

    return {
        "type": type_,
        "enum": enum,
        "const": const,
        "uniqueItems": unique_items,
        "pattern": pattern,
        "patternProperties": pattern_properties,
        "additionalProperties": additional_properties,
        "required": required,
        "contains": contains,
        "not": not_,
        "anyOf": any_of,
        "oneOf": one_of,
        "dependentRequired": dependent_required,
        "unevaluatedProperties": unevaluated_properties,
        "unevaluatedItems": unevaluated_items,
        "minimum": limit("number", lambda instance, value: instance < value),
        "maximum": limit("number", lambda instance, value: instance > value),
        "exclusiveMinimum": limit("number", lambda instance, value: instance <= value),
        "exclusiveMaximum": limit("number", lambda instance, value: instance >= value),
        "minItems": limit("array", lambda instance, value: len(instance) < value),
        "maxItems": limit("array", lambda instance, value: len(instance) > value),
        "minLength": limit("string", lambda instance, value: len(instance) < value),
        "maxLength": limit("string", lambda instance, value: len(instance) > value),
        "minProperties": limit("object", lambda instance, value: len(instance) < value),
        "maxProperties": limit("object", lambda instance, value: len(instance) > value),
    }


def undeclared(instance: Mapping[str, Any], schema: Any) -> list[str]:
    """The members of an object that neither ``properties`` nor ``patternProperties`` name."""
    declared = schema.get("properties", {})
    patterns = list(schema.get("patternProperties", {}))
    spend(len(instance) * (1 + len(patterns)))
    return [name for name in instance if name not in declared and not any(found(pattern, name) for pattern in patterns)]


def _canonical(value: Any) -> str:
    """A text that two JSON values share if JSON Schema calls them equal: 1 and 1.0 are, 1 and ``true`` are not.

    Texts, since their hashes cannot be chosen by whoever writes the values; those of numbers can.
    """
    spend(size(value))
    return json.dumps(_same_numbers(value), sort_keys=True)


def _same_numbers(value: Any) -> Any:
    if isinstance(value, float) and value.is_integer():
        return int(value)
    if isinstance(value, dict):
        return {key: _same_numbers(member) for key, member in value.items()}
    if isinstance(value, list):
        return [_same_numbers(item) for item in value]
    return value


_IN_PLACE = ("allOf", "anyOf", "oneOf")


def _evaluated(validator: Any, instance: Any, schema: Any) -> set[Any]:
    """The keys or indexes of ``instance`` that a schema evaluates, itself or by what it applies in place.

    JSON Schema 2020-12, core, sections 11.2 and 11.3; ``items`` as a list is 2019-09's ``prefixItems``.
    """
    if not isinstance(schema, Mapping):
        return set()
    spend(1 + len(instance))
    everything = set(instance) if isinstance(instance, dict) else set(range(len(instance)))
    known: set[Any] = set()
    if isinstance(instance, dict):
        known |= {key for key in instance if key in schema.get("properties", {})}
        known |= {key for key in instance if any(found(p, key) for p in schema.get("patternProperties", {}))}
        for keyword in ("additionalProperties", "unevaluatedProperties"):
            if keyword in schema:
                known |= _valid(validator, schema[keyword], {key: instance[key] for key in everything - known})
    else:
        for keyword in ("prefixItems", "items"):
            if isinstance(schema.get(keyword), list):
                known |= set(range(min(len(schema[keyword]), len(instance))))
        for keyword in ("items", "additionalItems", "unevaluatedItems"):
            if isinstance(schema.get(keyword), (Mapping, bool)):
                known |= _valid(validator, schema[keyword], {index: instance[index] for index in everything - known})
        if "contains" in schema and "prefixItems" in validator.VALIDATORS:  # not before 2020-12
            known |= _valid(validator, schema["contains"], dict(enumerate(instance)))
    for keyword in ("$ref", "$dynamicRef", "$recursiveRef"):
        if isinstance(schema.get(keyword), str):
            if keyword == "$recursiveRef":  # 2019-09
                from referencing.jsonschema import lookup_recursive_ref

                target = lookup_recursive_ref(validator._resolver)
            else:
                target = validator._resolver.lookup(schema[keyword])
            inner = validator.evolve(schema=target.contents, _resolver=target.resolver)
            known |= _evaluated(inner, instance, target.contents)
    applied = [part for keyword in _IN_PLACE for part in schema.get(keyword, ())]
    if isinstance(instance, dict):
        applied += [part for key, part in schema.get("dependentSchemas", {}).items() if key in instance]
    if "if" in schema:
        fits = validator.evolve(schema=schema["if"]).is_valid(instance)
        applied += [schema["if"]] if fits else []
        applied += [schema[key] for key in ("then" if fits else "else",) if key in schema]
    for part in applied:
        inner = validator.evolve(schema=part)
        if inner.is_valid(instance):
            known |= _evaluated(inner, instance, part)
    return known


def _valid(validator: Any, schema: Any, members: Mapping[Any, Any]) -> set[Any]:
    inner = validator.evolve(schema=schema)
    return {key for key, member in members.items() if inner.is_valid(member)}
