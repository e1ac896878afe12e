"""The one reading of a request's tools: every shape, what is no function, what schemas say of objects."""

from __future__ import annotations

import random
from collections import OrderedDict, UserDict
from types import SimpleNamespace
from typing import Any

import pytest

from lfm2_fixed.core.tools import CUSTOM_SCHEMA, Declared, Function, functions
from tests.support.harness import random_cut

SCHEMA = {"type": "object", "properties": {"city": {"type": "string"}, "unit": {"type": "string"}}}


def objects(value: Any) -> Any:
    """The same as attributes, schemas aside."""
    if isinstance(value, dict) and "properties" not in value:
        return SimpleNamespace(**{key: objects(item) for key, item in value.items()})
    return [objects(item) for item in value] if isinstance(value, list) else value


CHAT = {"type": "function", "function": {"name": "w", "parameters": SCHEMA, "strict": True}}
RESPONSES = {"type": "function", "name": "w", "parameters": SCHEMA, "strict": True}
PLAIN = Function("w", "", SCHEMA)
STRICT = Function("w", "", SCHEMA, strict=True)
SPACES = [
    {"type": "namespace", "name": "crm", "description": "d", "tools": [{**RESPONSES, "name": "lookup"}]},
    {"type": "namespace", "name": "erp", "tools": [{"type": "function", "name": "lookup", "parameters": None}]},
]
SHAPES: dict[str, tuple[list[Any], list[Function]]] = {
    "chat": ([CHAT], [STRICT]),
    "responses": ([RESPONSES], [STRICT]),
    "messages": ([{"name": "w", "input_schema": SCHEMA}], [PLAIN]),
    "messages custom": ([{"type": "custom", "name": "w", "input_schema": SCHEMA}], [PLAIN]),
    "legacy": ([{"name": "w", "parameters": SCHEMA}], [PLAIN]),
    "no type": ([{"function": {"name": "w", "parameters": SCHEMA}}], [PLAIN]),
    "no parameters": ([{"type": "function", "function": {"name": "w"}}], [Function("w")]),
    "parameters null": ([{"type": "function", "name": "w", "parameters": None}], [Function("w")]),
    "custom": ([{"type": "custom", "custom": {"name": "sql"}}], [Function("sql", "", CUSTOM_SCHEMA, custom=True)]),
    "custom responses": ([{"type": "custom", "name": "sql"}], [Function("sql", "", CUSTOM_SCHEMA, custom=True)]),
    "namespaces": (
        SPACES,
        [Function("lookup", "crm", SCHEMA, strict=True), Function("lookup", "erp")],
    ),
    "the server's own": (
        [
            {"type": "web_search"},
            {"type": "web_search_20250305", "name": "web_search", "max_uses": 5},
            {"type": "mcp", "name": "m", "server_url": "https://x"},
            {"type": "text_editor_20250728", "name": "str_replace_based_edit_tool"},
            CHAT,
            {"type": "code_interpreter", "container": {"type": "auto"}},
        ],
        [STRICT],
    ),
    "the server's own in a namespace": (
        [{"type": "namespace", "name": "n", "tools": [{"type": "mcp", "name": "m"}, RESPONSES]}],
        [Function("w", "n", SCHEMA, strict=True)],
    ),
}


@pytest.mark.parametrize("tools, want", SHAPES.values(), ids=SHAPES)
def test_shapes(tools: list[Any], want: list[Function]) -> None:
    """Dicts, objects and mixtures declare the same."""
    assert functions(tools) == want
    assert functions([objects(tool) for tool in tools]) == want
    assert functions(iter(tools)) == want
    if "function" in tools[0]:
        assert functions([{**tools[0], "function": objects(tools[0]["function"])}]) == want
    assert functions([CHAT, *(objects(tool) for tool in tools)]) == [STRICT, *want]


def test_a_schema_that_is_an_object() -> None:
    """A request model's schema is dumped as the client wrote it."""

    class Model:
        def model_dump(self, **options: Any) -> dict[str, Any]:
            assert options == {"mode": "json", "by_alias": True, "exclude_unset": True}
            return SCHEMA

    assert functions([{"name": "w", "input_schema": Model()}]) == [PLAIN]
    assert functions([{"name": "w", "parameters": SimpleNamespace(**SCHEMA)}]) == [PLAIN]
    assert functions([{"name": "w", "parameters": True}]) == [Function("w", "", True)]


@pytest.mark.parametrize("mapping", [OrderedDict, UserDict])
def test_a_schema_that_is_another_mapping(mapping: Any) -> None:
    """Its entries count, not the attributes that it may have as well."""
    (function,) = functions([{"name": "w", "parameters": mapping(SCHEMA)}])
    assert dict(function.schema) == SCHEMA and function.parameters == ("city", "unit")


def test_names_alone() -> None:
    """Parameters by tool name, with their types or without."""
    tools = {"w": ["city", "unit"], "v": (), "p": {"value": "object", "n": {"minimum": 1}}}
    assert Declared(tools) == {"w": ("city", "unit"), "v": (), "p": ("value", "n")}
    assert functions(tools)[2].schema["properties"] == {"value": {"type": "object"}, "n": {"minimum": 1}}


def test_nothing() -> None:
    """No tools declare nothing."""
    assert functions(None) == functions([]) == functions({}) == []


def test_two_namespaces_may_hold_the_same_name() -> None:
    """They are two functions, each with a name of its own for the model; a namespace is none."""
    found = functions([*SPACES, {"type": "function", "name": "lookup"}])
    assert [function.key for function in found] == [("crm", "lookup"), ("erp", "lookup"), ("", "lookup")]
    assert [function.model_name for function in found] == ["crm__lookup", "erp__lookup", "lookup"]
    assert Declared(SPACES) == {"crm__lookup": ("city", "unit"), "erp__lookup": ()}


@pytest.mark.parametrize(
    "tools, message",
    [
        ([CHAT, {"type": "function"}], "tool 1 has no name"),
        ([{"type": "function", "function": {"name": ""}}], "tool 0 has no name"),
        ([{"type": "function", "function": {"name": 3}}], "tool 0 has no name"),
        ([{"type": "custom"}], "tool 0 has no name"),
        (["w"], "tool 0 is not an object"),
        ([None], "tool 0 is not an object"),
        ([[CHAT]], "tool 0 is not an object"),
        ([{"type": 5, "name": "w"}], "tool 0 has no type"),
        ([{"type": "namespace", "tools": [CHAT]}], "tool 0 has no name"),
        ([{"type": "namespace", "name": "n", "tools": [CHAT, {}]}], "tool 0, tool 1 of the namespace has no name"),
    ],
)
def test_what_declares_nothing_is_said(tools: list[Any], message: str) -> None:
    """Left out by default; a caller who wants to refuse the request is told where the fault is."""
    found: list[str] = []
    left = functions(tools, found.append)
    assert found == [message]
    assert left == functions(tools)
    assert [function.name for function in left] == ["w"] * (CHAT in tools or "of the namespace" in message)


MAY = [
    True,
    {},
    {"type": "object"},
    {"type": ["string", "object"]},
    {"type": "dict"},
    {"type": []},
    {"description": "anything"},
    {"enum": ["a", {"b": 1}]},
    {"const": {}},
    {"anyOf": [{"type": "string"}, {"type": "object"}]},
    {"oneOf": [{"type": "string"}, {}]},
    {"allOf": [{"type": "object"}, {"minProperties": 1}]},
    {"$ref": "#/$defs/object"},
    {"$ref": "#/$defs/none"},
    {"$ref": "https://example.org/schema"},
    {"$ref": "#/$defs/itself"},
    {"$ref": "#/$defs/a~1b"},
]
MAY_NOT = [
    False,
    {"type": "string"},
    {"type": ["string", "null"]},
    {"type": "array", "items": {"type": "object"}},
    {"enum": ["a", "b"]},
    {"const": "a"},
    {"anyOf": [{"type": "string"}, {"type": "null"}]},
    {"oneOf": [{"type": "integer"}, {"enum": [None]}]},
    {"allOf": [{}, {"type": "string"}]},
    {"$ref": "#/$defs/string"},
    {"anyOf": [{"$ref": "#/$defs/string"}, {"$ref": "#/$defs/string"}]},
]
DEFINITIONS = {
    "object": {"type": "object"},
    "string": {"type": "string"},
    "itself": {"allOf": [{"$ref": "#/$defs/itself"}, {"$ref": "#/$defs/itself"}]},
    "a/b": {"type": "object"},
}


@pytest.mark.parametrize("first, may", [(s, True) for s in MAY] + [(s, False) for s in MAY_NOT], ids=repr)
def test_whether_the_first_parameter_may_be_an_object(first: Any, may: bool) -> None:
    """A lone object is all the arguments where it cannot be the first of them."""
    schema = {"type": "object", "properties": {"x": first, "y": {"type": "object"}}, "$defs": DEFINITIONS}
    declared = Declared([{"type": "function", "function": {"name": "w", "parameters": schema}}])
    assert declared.takes_lone_object("w") is not may
    assert not declared.takes_lone_object("other")


def test_a_lone_object_without_parameters() -> None:
    """Where there is no first parameter; names alone say nothing of types."""
    assert Declared([{"name": "w"}, {"name": "v", "parameters": {}}]).takes_lone_object("w")
    assert Declared([{"name": "w"}, {"name": "v", "parameters": {}}]).takes_lone_object("v")
    assert Declared({"w": []}).takes_lone_object("w")
    assert not Declared({"w": ["x"]}).takes_lone_object("w")


def test_deep_schemas_do_no_harm() -> None:
    """Nor those that branch at every level."""
    deep: Any = {"type": "string"}
    for _ in range(5000):
        deep = {"anyOf": [deep, deep]}
    assert not Declared({"w": {"x": deep}}).takes_lone_object("w")


def test_combinations_are_looked_into() -> None:
    """As deep as a person may write them."""
    schema: Any = {"type": "string"}
    for _ in range(30):
        schema = {"anyOf": [schema]}
    assert Declared({"w": {"x": schema}}).takes_lone_object("w")


def test_beginnings() -> None:
    """Whether a name may still be a declared one, against the plain definition, in every cutting."""
    rng = random.Random(7)
    for _ in range(400):
        names = {"".join(rng.choice("ab.") for _ in range(rng.randint(1, 5))) for _ in range(rng.randint(0, 8))}
        declared = Declared({name: [] for name in names})
        text = "".join(rng.choice("ab.") for _ in range(6))
        beginning = declared.beginning()
        at = 0
        for piece in random_cut(text, rng):
            at += len(piece)
            assert beginning.goes_on(piece) == any(name.startswith(text[:at]) for name in names), (names, text[:at])
            assert beginning.whole == (text[:at] in names)
