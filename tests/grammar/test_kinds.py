"""Schemas as real tools declare them, each a kind that was refused, dropped or narrowed once."""

from __future__ import annotations

import json
import logging
from typing import Any

import pytest

pytest.importorskip("xgrammar", reason="the grammar needs xgrammar, which comes with vLLM")

from tests.support.tags import END, START, accepts, calls_of, compiled, tag_for, tool

pytestmark = pytest.mark.usefixtures("engines")

T = {"type": "object", "properties": {"a": {"type": "integer"}}, "required": ["a"]}
BASE = {"type": "object", "properties": {f"b{n}": {"type": "integer"} for n in range(4)}}
MORE = {f"c{n}": {"type": "integer"} for n in range(4)}

VALUES: dict[str, tuple[Any, list[str], list[str]]] = {
    "free objects": ({"type": "object", "properties": {}}, ["{}", '{"a": 1}', "{'a': {\"b\": [1]}}"], ["[]"]),
    "an empty name": ({"type": "object"}, ["{\"\": {'': 1}}"], ["{: 1}"]),
    "an empty name beside declared ones": (
        {"type": "object", "properties": {"a": {"type": "integer"}}, "additionalProperties": {"type": "boolean"}},
        ['{"a": 1, "": True}'],
        ['{"": 1}', '{"a": True}'],
    ),
    "never, in a union": ({"anyOf": [{"not": {}}, {"type": "integer"}]}, ["1"], ['"a"', "None", "[]"]),
    "never, of no name": (
        {"type": "object", "properties": {"a": {"type": "integer"}, "b": {"not": {"description": "gone"}}}},
        ["{}", '{"a": 1}'],
        ['{"b": 1}', '{"a": 1, "b": None}'],
    ),
    "any value, of Go": ({"additionalProperties": True}, ['"a"', "1", '{"a": 1}', "[None]"], ["a"]),
    "any value, of empty lists": ({"properties": {}, "required": []}, ['"a"', "1", '{"a": 1}', "[None]"], ["a"]),
    "any value beside a limit": ({"additionalProperties": True, "minProperties": 1}, ['{"a": 1}'], ["{}", "1"]),
    "not nothing": ({"type": "integer", "not": False}, ["1"], ['"a"']),
    "a condition that always holds": ({"if": {}, "then": {"type": "integer"}, "else": False}, ["1"], ['"a"']),
    "a condition that never holds": ({"if": False, "then": False, "else": {"type": "integer"}}, ["1"], ['"a"']),
    "no free object": ({"type": "object", "properties": {}, "additionalProperties": False}, ["{}"], ['{"a": 1}']),
    "quotes in free objects": ({"type": "object"}, ["{'a': 1, \"b\": {'c': 'd'}}"], ["{a: 1}"]),
    "a union with a part of the conjunction": (
        {"allOf": [{"$ref": "#/$defs/T"}], "oneOf": [{"$ref": "#/$defs/T"}, {"type": "null"}]},
        ['{"a": 1}'],
        ["{}", "None", '{"a": "x"}'],
    ),
    "a name that no text has": (
        {"type": "object", "properties": {"\ud800": {"type": "integer"}, "a": {"type": "integer"}}},
        ["{}", '{"a": 1}'],
        ['{"b": 1}', '{"\\ud800": 1}'],
    ),
    "a conjunction that contains itself": ({"$ref": "#/$defs/C"}, ["1", "-5"], ["None", '"a"', "{}"]),
    "a union that contains itself": ({"$ref": "#/$defs/U"}, ["None", '{"a": 1}'], ["1", "[]"]),
    "at least one member": ({"type": "object", "minProperties": 1}, ['{"a": 1}'], ["{}"]),
    "at least one declared member": (
        {"type": "object", "properties": {"a": {}, "b": {}}, "minProperties": 1, "additionalProperties": False},
        ['{"a": 1}', '{"b": 1}'],
        ["{}", '{"c": 1}'],
    ),
    "enum, numbers": ({"enum": [1, 2, 3, 4, 6], "multipleOf": 2, "not": {"const": 4}}, ["2", "6"], ["1", "4", "3"]),
    "enum, arrays": (
        {"enum": [[], [1], [1, 2], ["a", 1]], "minItems": 1, "items": {"type": "integer"}},
        ["[1]", "[1, 2]"],
        ["[]", '["a", 1]'],
    ),
    "enum, false": ({"enum": [False, 0]}, ["False", "false", "0"], ["True", "true", "None"]),
    "const, true": ({"const": True}, ["True", "true"], ["False", "false", "1"]),
    "enum, null": ({"enum": [None]}, ["None", "null"], ["False", "0"]),
    "enum, formats": ({"enum": ["a@b.c", "x"], "type": "string", "format": "email"}, ['"a@b.c"'], ['"x"']),
    "enum, objects": ({"enum": [{"a": 1}, {}], "required": ["a"]}, ["{'a': 1}"], ["{}"]),
    "enum, a condition": ({"enum": [1, 20], "if": {"minimum": 10}, "then": {"maximum": 15}}, ["1"], ["20"]),
    "enum and const": ({"enum": [1, "a"], "const": 1.0}, ["1"], ['"a"']),
    "constants in a large union": (
        {"anyOf": [{"const": f"v{n}", "title": "a title"} for n in range(300)]},
        ['"v0"', "'v299'"],
        ['"v300"', "1"],
    ),
    "a large union": (
        {"anyOf": [{**T, "properties": {"a": {"const": n}}} for n in range(300)]},
        ['{"a": 0}', '{"a": 299}'],
        ['{"a": 300}', "1"],
    ),
    "unions beside each other": (
        {
            "type": "object",
            "properties": {"k": {"type": "integer"}},
            "required": ["k"],
            "allOf": [{"anyOf": [{"properties": {"k": {"maximum": n * m}}} for n in range(40)]} for m in range(3)],
        },
        ['{"k": 5}'],
        ["{}", "1", '{"k": "x"}'],
    ),
    "members that two patterns match": (
        {"type": "object", "patternProperties": {"^a": {"type": "integer"}, "b$": {"maximum": 5}}},
        ['{"ab": 3, "ax": 9, "xb": 4}'],
        ['{"ab": 7}', '{"ax": "s"}', '{"xb": 9}'],
    ),
    "a declared member that a pattern matches": (
        {"type": "object", "properties": {"ab": {"maximum": 5}}, "patternProperties": {"^a": {"type": "integer"}}},
        ['{"ab": 3}', '{"ab": 3, "ac": 9}'],
        ['{"ab": 7}', '{"ab": "s"}', '{"ab": 1.5}', '{"ab": 3, "ac": "s"}'],
    ),
    "a required member that only a pattern allows": (
        {
            "type": "object",
            "patternProperties": {"^a": {"type": "integer"}},
            "required": ["ab"],
            "additionalProperties": False,
        },
        ['{"ab": 3}', '{"ab": 3, "ac": 4}'],
        ["{}", '{"ac": 4}', '{"ab": "s"}', '{"ab": 3, "b": 4}'],
    ),
    "a required member that is not declared": (
        {"type": "object", "required": ["a"], "additionalProperties": {"type": "integer"}},
        ['{"a": 1}', '{"a": 1, "b": 2}'],
        ["{}", '{"a": "s"}', '{"b": 1}'],
    ),
    "more patterns of names than are combined": (
        {
            "type": "object",
            "patternProperties": {letter: {"type": "integer"} for letter in "abcdefgh"},
            "additionalProperties": False,
        },
        ["{}", '{"a": 1}', '{"h": 1}', '{"abcdefgh": 1}'],
        ['{"a": "s"}'],
    ),
    "a pattern without a beginning": ({"type": "string", "pattern": "ab$"}, ['"ab"', '"xab"'], ['"b"', '"abx"']),
    "a pattern without an end": ({"type": "string", "pattern": "^ab"}, ['"ab"', '"abx"'], ['"a"', '"xab"']),
    "a pattern of names that cannot be built": (
        {"type": "object", "patternProperties": {"(?=x)a": {"type": "integer"}}, "additionalProperties": False},
        ["{}", '{"xa": 3}', '{"zz": "q"}'],
        ["[]", "{1: 2}"],
    ),
    "items that two parts describe": (
        {"type": "array", "items": {"type": "integer", "minimum": 2}, "allOf": [{"items": {"maximum": 4}}]},
        ["[]", "[2]", "[3, 4]"],
        ["[1]", "[5]", "[2, 5]"],
    ),
    "names of a format": (
        {"type": "object", "propertyNames": {"format": "date"}},
        ["{}", '{"2024-01-02": 1}'],
        ['{"2024-13-02": 1}', '{"x": 1}'],
    ),
    "ranges that are none": ({"type": "string", "pattern": "^[z-a]$"}, ['"z"', '"bb"'], ["1"]),
    "a few multiples": (
        {"type": "integer", "multipleOf": 7, "minimum": 8, "maximum": 30},
        ["14", "28"],
        ["7", "8", "35"],
    ),
    "a format beside other types": ({"format": "date"}, ['"2024-01-01"', "5", "None", "[1]"], ['"x"']),
    "limits that are none": (
        {"anyOf": [{"type": "string", "maxLength": 2**31}, {"type": "array", "maxItems": 2**53 - 1}]},
        [json.dumps("a" * 400), str([1] * 100)],
        ["1"],
    ),
    "a long name": (
        {
            "type": "object",
            "properties": {f"a_very_long_property_name_{n}": {"type": "integer"} for n in range(40)},
            "additionalProperties": {"type": "string"},
        },
        ['{"a_very_long_property_name_3": 1, "other": "x"}'],
        ['{"other": 1}'],
    ),
}


@pytest.mark.parametrize("kind", VALUES)
def test_values(kind: str) -> None:
    schema, right, wrong = VALUES[kind]
    parameters = {
        "type": "object",
        "properties": {"x": schema},
        "required": ["x"],
        "$defs": {
            "T": T,
            "U": {"anyOf": [{"$ref": "#/$defs/U"}, {"type": "null"}, {"$ref": "#/$defs/T"}]},
            "C": {"allOf": [{"$ref": "#/$defs/C"}, {"type": "integer"}]},
        },
    }
    grammar = compiled(tag_for([tool(parameters)]))
    for text in right:
        assert accepts(grammar, f"{START}[f(x={text})]{END}"), text
    for text in wrong:
        assert not accepts(grammar, f"{START}[f(x={text})]{END}"), text


NAME = "9aZ-._~!$&'()*+,;="
"""All that may stand in a part of a URI as it is, but for ``:`` and ``@``, which some parts may not hold."""
FULL_URI = f"http://{NAME}:@{NAME}:8/{NAME}:@?{NAME}:@/?#{NAME}:@/?"
FORMATS: list[tuple[str, list[str], list[str]]] = [
    ("email", ["o'brien@x.ie", "root@localhost", "a+b@c.d.e", '"a b"@x', "a@[IPv6:::1]"], ["x", "a@", "@b", "a b@c"]),
    (
        "uri",
        ["http://[::1]/", "http://x/it's", "mailto:a@b.c", "https://e.x/a%20b?q=1#f", FULL_URI, f"a://[v1.{NAME}:]"],
        ["x y", "//a", "a:%zz"],
    ),
    ("uri-reference", ["a/b", "../x?y", "#f", "", "http://a", "//h/p", f"{NAME}@/:"], ["a b", "\\"]),
    ("ipv6", ["::1", "fe80::1", "2001:db8:0:0:0:0:0:1", "::ffff:1.2.3.4", "::"], ["1", "1::2::3", ":1", "12345::"]),
    ("json-pointer", ["", "/a/b~0", "/é"], ["a", "/~2"]),
    ("time", ["10:00:00Z", "10:00:00.5+01:00", "23:59:60z"], ["10:00", "24:00:00Z"]),
    ("date-time", ["2024-01-01t10:00:00z"], ["2024-01-01 10:00"]),
]


@pytest.mark.parametrize(("name", "right", "wrong"), FORMATS)
def test_formats_are_no_narrower_than_their_documents(name: str, right: list[str], wrong: list[str]) -> None:
    schema = {"type": "object", "properties": {"x": {"type": "string", "format": name}}, "required": ["x"]}
    grammar = compiled(tag_for([tool(schema)]))
    for text in right:
        assert accepts(grammar, f"{START}[f(x={json.dumps(text, ensure_ascii=False)})]{END}"), text
    for text in wrong:
        assert not accepts(grammar, f"{START}[f(x={json.dumps(text)})]{END}"), text


@pytest.mark.parametrize("schema", [{}, {"maxLength": 1}, {"pattern": "^[^a]$"}], ids=str)
def test_every_short_escape(schema: dict[str, Any]) -> None:
    """Whatever the engine's grammar says of a string."""
    parameters = {"type": "object", "properties": {"x": {"type": "string", **schema}}, "required": ["x"]}
    grammar = compiled(tag_for([tool(parameters)]))
    for letter in "nrtbf\\\"'":
        assert accepts(grammar, f'{START}[f(x="\\{letter}")]{END}'), letter


def test_undeclared_arguments() -> None:
    schema = {
        "type": "object",
        "properties": {"a": {"type": "integer"}},
        "additionalProperties": {"type": "string"},
    }
    tools = [tool(schema)]
    grammar = compiled(tag_for(tools))
    for text in ('a=1, zz="x"', 'zz="x"', '**{"a b": "x"}', 'a=1, **{"a b": "x"}, 名前="x"', 'max-results="1"'):
        assert accepts(grammar, f"{START}[f({text})]{END}"), text
        assert len(calls_of(f"{START}[f({text})]{END}", tools)) == 1
    for text in ("zz=1", 'a="x"', '**{"a b": 1}', '**{"a": "x"}', '-a="x"'):
        assert not accepts(grammar, f"{START}[f({text})]{END}"), text


def test_nothing_else_satisfies_it() -> None:
    """Only undeclared members can satisfy this, and nothing forbids them."""
    grammar = compiled(tag_for([tool({"type": "object", "minProperties": 1})]))
    assert accepts(grammar, f"{START}[f(a=1)]{END}")
    assert not accepts(grammar, f"{START}[f()]{END}")


@pytest.mark.parametrize(
    "schema",
    [
        {"allOf": [{"$ref": "#/$defs/B"}, {"properties": MORE}]},
        {"$ref": "#/$defs/B", "properties": MORE},
        {"allOf": [{"$ref": "#/$defs/B"}], "properties": MORE},
        {"properties": BASE["properties"], "allOf": [{"properties": MORE}]},
        {"allOf": [{"oneOf": [{"$ref": "#/$defs/B"}]}, {"properties": MORE}]},
        {"anyOf": [{"properties": MORE}, {"properties": {"other": True}}], "properties": BASE["properties"]},
        {"properties": BASE["properties"], "anyOf": [{"properties": MORE}]},
        {"allOf": [{"$ref": "#/$defs/B"}, {"anyOf": [{"allOf": [{"oneOf": [{"properties": MORE}]}]}]}]},
    ],
)
def test_members_come_in_the_order_in_which_they_are_read(schema: Any) -> None:
    grammar = compiled(tag_for([tool({"type": "object", **schema, "$defs": {"B": BASE}})]))
    assert accepts(grammar, f"{START}[f(b0=1, b3=1, c0=1, c3=2)]{END}")
    assert not accepts(grammar, f"{START}[f(c0=1, b0=1)]{END}")


def test_a_union_at_the_root_that_is_too_large(caplog: pytest.LogCaptureFixture) -> None:
    many = [{"anyOf": [{"required": [f"a{n}"]} for n in range(40)]} for _ in range(3)]
    schema = {"type": "object", "properties": {"x": {"type": "integer"}}, "required": ["x"], "allOf": many}
    with caplog.at_level(logging.WARNING, "lfm2_fixed.grammar"):
        grammar = compiled(tag_for([tool(schema, "root_union")]))
    assert "anyOf" in caplog.text
    assert accepts(grammar, f"{START}[root_union(x=1)]{END}")
    assert not accepts(grammar, f"{START}[root_union(x='1')]{END}")
    assert not accepts(grammar, f"{START}[root_union()]{END}")


def test_two_tools_of_one_name() -> None:
    with pytest.raises(ValueError, match="two tools are named 'f'"):
        tag_for([tool(None), tool(None)])


def test_namespaces_tell_tools_of_one_name_apart() -> None:
    spaces = [
        {"type": "namespace", "name": space, "tools": [{"type": "function", "name": "lookup"}]}
        for space in ("crm", "erp")
    ]
    grammar = compiled(tag_for(spaces))
    assert accepts(grammar, f"{START}[crm__lookup(), erp__lookup()]{END}")
    assert not accepts(grammar, f"{START}[lookup()]{END}")


def test_the_size_of_a_constant_is_linear() -> None:
    def size(count: int) -> int:
        value = {f"k{n}": {"a": [n, n + 1], "b": "x" * 10} for n in range(count)}
        schema = {"type": "object", "properties": {"x": {"const": value}}}
        grammar = tag_for([tool(schema)])
        return len(grammar) if isinstance(grammar, str) else int(compiled(grammar).memory_size_bytes)

    assert size(400) < 2.5 * size(200)
