"""Random schemas with values for them: everything that the grammar enforces exactly."""

from __future__ import annotations

import random
import string
from typing import Any

from hypothesis import strategies as st

Pair = tuple[dict[str, Any] | bool, st.SearchStrategy[Any]]

# No control characters: they are written with escapes that length limits count differently.
_TEXT = st.text(
    st.characters(min_codepoint=0x20, exclude_categories=["Cs", "Cc"]) | st.sampled_from("\"'\\<|/\n\t"), max_size=12
)
_PATTERNS: list[tuple[str, st.SearchStrategy[str]]] = [
    (r"^[a-z]{2,5}$", st.text(string.ascii_lowercase, min_size=2, max_size=5)),
    (r"^\d{4}-\d\d$", st.from_regex(r"\A[0-9]{4}-[0-9]{2}\Z")),
    (r"^(GET|POST) /[^ ?]*$", st.from_regex(r"\A(GET|POST) /[^ ?\x00-\x1f\x7f]{0,8}\Z")),
    (r"x+", st.from_regex(r"\A[a-c<|\"]{0,3}x[a-c'\\]{0,3}\Z")),
    (r"^<[|a]*>$", st.from_regex(r"\A<[|a]{0,4}>\Z")),
    (r"^$|^#[0-9A-F]{6}$", st.just("") | st.from_regex(r"\A#[0-9A-F]{6}\Z")),
]
_FORMATS = {
    "date": st.dates().map(str),
    "uuid": st.uuids().map(str),
    "ipv4": st.ip_addresses(v=4).map(str),
}
KEYS = st.sampled_from(
    ["a", "b", "city", "max-results", "from", "x.y", "x y", "", "é", "1st", "-n", 'q"uote', "a/b", "<|k|>"]
)


@st.composite
def strings(draw: st.DrawFn) -> Pair:
    kind = draw(st.sampled_from(["any", "length", "long", "pattern", "format", "both"]))
    if kind == "any":
        return {"type": "string"}, _TEXT
    if kind == "length":
        low = draw(st.integers(0, 6))
        high = draw(st.integers(low, 12))
        schema: dict[str, Any] = {"type": "string", "minLength": low, "maxLength": high}
        if draw(st.booleans()):
            del schema["minLength"]
            low = 0
        return schema, _TEXT.map(lambda text: (text * 7 + "abcdef")[: max(low, min(len(text), high))])
    if kind == "long":
        # A counter sees escapes at their written length: leave it room.
        return {"type": "string", "maxLength": 100}, _TEXT.filter(lambda text: "<" not in text and "|" not in text)
    if kind == "format":
        name = draw(st.sampled_from(sorted(_FORMATS)))
        return {"type": "string", "format": name}, _FORMATS[name]
    pattern, values = draw(st.sampled_from(_PATTERNS))
    if kind == "both":
        return {"type": "string", "pattern": pattern, "maxLength": 7}, values.filter(lambda text: len(text) <= 7)
    return {"type": "string", "pattern": pattern}, values


@st.composite
def numbers(draw: st.DrawFn) -> Pair:
    integer = draw(st.booleans())
    kind = "integer" if integer else "number"
    low = draw(st.none() | st.integers(-1200, 1200))
    high = draw(st.none() | st.integers(low if low is not None else -1200, 1300))
    schema: dict[str, Any] = {"type": kind}
    values: st.SearchStrategy[Any]
    if integer:
        if low is not None:
            schema["minimum"] = low
        if high is not None:
            schema["maximum"] = high
        low_value = low if low is not None else (high or 0) - 10**6
        values = st.integers(low_value, high if high is not None else low_value + 10**6)
        factor = draw(st.sampled_from([None, None, 2, 5, 7, 10]))
        if factor:
            schema["multipleOf"] = factor
            values = (
                values.filter(lambda value: value % factor == 0)
                if (high or 2000) - (low or -2000) > 40
                else st.nothing()
            )
            if values.is_empty:
                del schema["multipleOf"]
                values = st.integers(low_value, high if high is not None else low_value + 10**6)
        return schema, values
    shift = draw(st.sampled_from([1, 10, 100]))
    if low is not None:
        schema[draw(st.sampled_from(["minimum", "exclusiveMinimum"]))] = low / shift
    if high is not None:
        high = max(high, (low if low is not None else high) + 2)
        schema[draw(st.sampled_from(["maximum", "exclusiveMaximum"]))] = high / shift
    start = low if low is not None else (high or 0) - 5000
    stop = high if high is not None else start + 5000
    return schema, st.integers(start * 10 + 1, stop * 10 - 1).map(lambda n: n / (10 * shift))


@st.composite
def fixed(draw: st.DrawFn) -> Pair:
    scalars = st.none() | st.booleans() | st.integers(-5, 99) | st.sampled_from([0.5, -2.25]) | _TEXT
    values = draw(
        st.lists(
            scalars | st.lists(scalars, max_size=2) | st.dictionaries(KEYS, scalars, max_size=2), min_size=1, max_size=4
        )
    )
    if draw(st.booleans()):
        return {"enum": values}, st.sampled_from(values)
    return {"const": values[0]}, st.just(values[0])


@st.composite
def arrays(draw: st.DrawFn, depth: int) -> Pair:
    low = draw(st.integers(0, 2))
    high = draw(st.none() | st.integers(low, 4))
    schema: dict[str, Any] = {"type": "array"}
    if low:
        schema["minItems"] = low
    if high is not None:
        schema["maxItems"] = high
    items, values = draw(pairs(depth - 1))
    if draw(st.integers(0, 3)) == 0:
        first, first_values = draw(pairs(depth - 1))
        return {**schema, "prefixItems": [first], "items": items}, st.lists(
            values, min_size=max(low - 1, 0), max_size=max((high if high is not None else 4) - 1, 0)
        ).flatmap(lambda rest: first_values.map(lambda one: [] if high == 0 else [one, *rest]))
    return {**schema, "items": items}, st.lists(values, min_size=low, max_size=high if high is not None else 4)


@st.composite
def objects(draw: st.DrawFn, depth: int, keys: st.SearchStrategy[str] = KEYS) -> Pair:
    names = draw(st.lists(keys, unique=True, max_size=4))
    members = {name: draw(pairs(depth - 1)) for name in names}
    required = [name for name in names if draw(st.booleans())]
    schema: dict[str, Any] = {"type": "object", "properties": {name: pair[0] for name, pair in members.items()}}
    if required:
        schema["required"] = draw(st.permutations(required))
    needed = {name: members[name][1] for name in required}
    others = {name: members[name][1] for name in names if name not in required}
    values: st.SearchStrategy[Any] = st.fixed_dictionaries(needed, optional=others).map(
        lambda value: {name: value[name] for name in names if name in value}
    )
    extra = draw(st.sampled_from([None, None, False, "schema"]))
    if extra is False:
        schema["additionalProperties"] = False
    elif extra == "schema":
        schema["additionalProperties"], more = draw(pairs(0))
        free = st.text(string.ascii_letters, min_size=1, max_size=5).filter(lambda name: name not in names)
        values = st.tuples(values, st.dictionaries(free, more, max_size=2)).map(lambda two: {**two[0], **two[1]})
    elif draw(st.integers(0, 5)) == 0 and names:
        schema["maxProperties"] = most = draw(st.integers(max(len(required), 1), len(names)))
        values = values.filter(lambda value: len(value) <= most)
    return schema, values


@st.composite
def pairs(draw: st.DrawFn, depth: int) -> Pair:
    """A schema, and a strategy of values that satisfy it."""
    leaf = (
        strings()
        | numbers()
        | fixed()
        | st.sampled_from([({"type": "boolean"}, st.booleans()), ({"type": "null"}, st.none())])
    )
    if depth <= 0:
        return draw(leaf)
    kind = draw(st.integers(0, 9))
    if kind < 5:
        return draw(leaf)
    if kind == 5:
        return draw(arrays(depth))
    if kind == 6:
        return draw(objects(depth))
    if kind == 7:
        inner = [draw(pairs(depth - 1)) for _ in range(draw(st.integers(1, 3)))]
        return {"anyOf": [schema for schema, _ in inner]}, st.one_of([values for _, values in inner])
    if kind == 8:
        schema, values = draw(numbers() | strings())
        assert isinstance(schema, dict)
        return {**schema, "type": [schema["type"], "null"]}, values | st.none()
    schema, values = draw(pairs(depth - 1))
    return {"allOf": [schema, {"description": "the same"}], "title": "t"}, values


@st.composite
def parameters(draw: st.DrawFn) -> tuple[dict[str, Any], st.SearchStrategy[Any]]:
    """A tool's parameters, some of them behind a reference, and a strategy of arguments."""
    schema, values = draw(objects(3))
    assert isinstance(schema, dict)
    if draw(st.booleans()) and schema["properties"]:
        name = draw(st.sampled_from(sorted(schema["properties"])))
        schema["$defs"] = {"of a/b": schema["properties"][name]}
        schema["properties"] = {**schema["properties"], name: {"$ref": "#/$defs/of%20a~1b"}}
    return schema, values


def damaged(arguments: dict[str, Any], chance: random.Random) -> dict[str, Any]:
    """The arguments with one thing changed: often no longer valid."""
    changed = dict(arguments)
    strange = chance.choice([None, True, -1, 10**7, 0.001, "", "zz", "x" * 200, [], [None], {}, {"zz": None}])
    keys = list(changed)
    if not keys or chance.random() < 0.2:
        changed["another"] = strange
    elif chance.random() < 0.3:
        del changed[chance.choice(keys)]
    else:
        key = chance.choice(keys)
        value = changed[key]
        if isinstance(value, dict) and chance.random() < 0.6:
            changed[key] = damaged(value, chance)
        elif isinstance(value, list) and value and chance.random() < 0.6:
            changed[key] = [*value[:-1], strange]
        elif isinstance(value, str) and chance.random() < 0.6:
            changed[key] = value + chance.choice(["!", "\n", "a" * 30, "0"])
        else:
            changed[key] = strange
    return changed
