"""Values for a schema: valid ones, drawn from its keywords, and ones with a thing changed."""

from __future__ import annotations

import random
import string
import uuid
from collections.abc import Mapping
from decimal import Decimal
from typing import Any

from lfm2_fixed.grammar.schema import resolve

_TEXTS = [
    "", "main", "src/app.py", "it's a \"test\"", "line one\nline two\n", "a < b | c", "한국어 하하", "C:\\Users\\x",
    "日本 😀",
    "SELECT * FROM t WHERE a = 'x';", "if (a <= b) {\n\treturn `x`;\n}", "x" * 90, "é", "#tag", "{\"a\": [1]}", "100%",
]  # fmt: skip
_FORMATS = {
    "date-time": ["2024-02-29T10:00:00Z", "1999-12-31T23:59:59.123+02:00"],
    "uri": ["https://example.org/a?b=c#d", "http://[::1]:8080/it's", "mailto:o'brien@x.ie"],
    "email": ["o'brien@x.ie", "root@localhost", "a.b+c@d.example"],
    "uuid": [str(uuid.UUID(int=n**9)) for n in (3, 77)],
}
_PATTERNS = {
    "^[0-9a-f]{40}$": ["0123456789abcdef0123456789abcdef01234567"],
    "^[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?$": ["a", "my-pod-1", "x" * 63],
    "^[CDG][A-Z0-9]{8,}$": ["C01234567", "D0123ABCDE"],
    "^\\d{10}\\.\\d{6}$": ["1714501234.567890"],
    "^[a-z0-9_+-]{1,255}$": ["thumbsup", "+1", "x" * 200],
    "^[A-Z]{3}$": ["EUR", "NOK"],
    "([A-Za-z0-9][-A-Za-z0-9_./]*)?": ["app=web", ""],
    "^[a-z][a-z0-9.-]{0,30}$": ["app", "app.kubernetes.io-name"],
}


def validator(schema: Any) -> Any:
    """A validator of ``schema`` that reads ``multipleOf`` in decimals (jsonschema's own divides floats: 0.15 is no
    multiple of 0.05 there)."""
    import jsonschema

    def multiple_of(validator: Any, step: Any, instance: Any, schema: Any) -> Any:
        if validator.is_type(instance, "number") and Decimal(repr(instance)) % Decimal(repr(step)):
            yield jsonschema.ValidationError(f"{instance} is no multiple of {step}")

    return jsonschema.validators.extend(jsonschema.Draft202012Validator, {"multipleOf": multiple_of})(schema)


def sample(schema: Any, chance: random.Random, root: Any, depth: int = 0) -> Any:
    """A value of ``schema``; a caller checks that it is valid (some keywords are left to luck)."""
    if not isinstance(schema, Mapping) or not schema:
        return chance.choice([None, True, 3, 0.5, "x", [1], {"a": 1}])
    if "$ref" in schema:
        return sample(resolve(root, schema["$ref"]), chance, root, depth + 1)
    if "const" in schema:
        return schema["const"]
    if "enum" in schema:
        return chance.choice(schema["enum"])
    for word in ("anyOf", "oneOf", "allOf"):
        if word in schema:
            choices = schema[word] if depth < 4 else schema[word][:1]
            return sample(chance.choice(choices), chance, root, depth + 1)
    kinds = schema.get("type", "object")
    kind = chance.choice(kinds) if isinstance(kinds, list) else kinds
    if kind == "string":
        return _string(schema, chance)
    if kind in ("number", "integer"):
        return _number(schema, chance, kind)
    if kind == "array":
        low, high = schema.get("minItems", 0), min(schema.get("maxItems", 4), 4)
        count = chance.randint(low, max(low, high if depth < 4 else low))
        return [sample(schema.get("items", {}), chance, root, depth + 1) for _ in range(count)]
    if kind == "object":
        return _object(schema, chance, root, depth)
    return None if kind == "null" else chance.random() < 0.5


def _string(schema: Mapping[str, Any], chance: random.Random) -> str:
    if "pattern" in schema:
        return chance.choice(_PATTERNS[schema["pattern"]])
    if schema.get("format") in _FORMATS:
        return chance.choice(_FORMATS[schema["format"]])
    text = chance.choice(_TEXTS) or "a" * schema.get("minLength", 0)
    return text[: schema.get("maxLength", 100)]


def _number(schema: Mapping[str, Any], chance: random.Random, kind: str) -> Any:
    low = schema.get("minimum", schema.get("exclusiveMinimum", -1000))
    high = schema.get("maximum", schema.get("exclusiveMaximum", low + chance.choice([10, 10**6, 10**10])))
    step = schema.get("multipleOf")
    if kind == "integer" or (step is None and chance.random() < 0.4):
        value = chance.randint(int(low), int(high))
        return value - value % step if step else value
    if step is not None:
        return round(chance.randint(int(low / step), int(high / step)) * step, 2)
    return chance.choice([chance.uniform(low, high), round(chance.uniform(low, high), 3)])


def _object(schema: Mapping[str, Any], chance: random.Random, root: Any, depth: int) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for name, inner in schema.get("properties", {}).items():
        if name in schema.get("required", ()) or (depth < 3 and chance.random() < 0.5):
            found[name] = sample(inner, chance, root, depth + 1)
    more = schema.get("additionalProperties", not schema.get("properties") and depth > 0)
    if more is not False and (schema.get("minProperties") or chance.random() < 0.5):
        for name in chance.sample(["app", "tier", "env.name"], chance.randint(1, 2)):
            found[name] = sample(more if isinstance(more, Mapping) else {}, chance, root, depth + 2)
    return found


def damaged(value: Any, chance: random.Random) -> Any:
    """The value with one thing in it changed: often no longer valid."""
    if isinstance(value, dict) and value and chance.random() < 0.8:
        key = chance.choice(list(value))
        if chance.random() < 0.2:
            return {name: member for name, member in value.items() if name != key}
        return {**value, key: damaged(value[key], chance)}
    if isinstance(value, list) and value and chance.random() < 0.8:
        at = chance.randrange(len(value))
        return [*value[:at], damaged(value[at], chance), *value[at + 1 :]]
    if isinstance(value, str) and chance.random() < 0.4:
        return value + chance.choice(["!", "\n", "0", string.ascii_letters * 5])
    if isinstance(value, (int, float)) and not isinstance(value, bool) and chance.random() < 0.4:
        return chance.choice([-value - 1, value + 0.001, value * 1e9, value + 10**6, 0])
    return chance.choice([None, True, -1, 0.001, "", "zz", [], [None], {}, {"zz": None}, "x" * 5000])
