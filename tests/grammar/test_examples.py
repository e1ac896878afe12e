"""What is written for each feature of a schema, and what is not."""

from __future__ import annotations

import json
import logging
from typing import Any

import pytest

pytest.importorskip("xgrammar", reason="the grammar needs xgrammar, which comes with vLLM")

from lfm2_fixed.grammar import SchemaError
from tests.support.tags import accepts, block, calls_of, check, compiled, one, tag_for, tool

pytestmark = pytest.mark.usefixtures("engines")


def test_many_arguments_come_in_declared_order() -> None:
    numbers = {name: {"type": "integer"} for name in "abcdef"}
    check(
        {"type": "object", "properties": numbers, "required": ["b"]},
        ["b=1", "a=1, b=2", "b=1,c=2", "a=1, b=2, c=3, d=4, e=5, f=6", "b=1, d=4"],
        ["", "a=1", "b=1, a=2", "b=1, b=2", "b=1, g=1", "b=1,", "b", "1", "b=1 , c=2"],
    )


def test_few_arguments_come_in_any_order() -> None:
    numbers = {name: {"type": "integer"} for name in "abcde"}
    check(
        {"type": "object", "properties": numbers, "required": ["b", "d"]},
        ["b=1, d=1", "d=1, b=1", "e=1, d=1, c=1, b=1, a=1", "d=1,a=1, b=1", "a=1, b=2, c=3, d=4, e=5"],
        ["", "b=1", "d=1, b=1, d=1", "b=1, b=2, d=1", "e=1, a=1", "d=1, b=1, f=1", "d=1 b=1", ", b=1, d=1"],
    )
    check(
        {"type": "object", "properties": {"a": {"type": "null"}, "b": {"type": "null"}}, "additionalProperties": True},
        ["", "b=None, a=None", "c=1", "a=None, c=1, d='x'", "b=None, a=None, c=[]"],
        ["a=1", "c=1, c", "b=1", "c=1,"],
    )


def test_all_optional() -> None:
    numbers = {f"n{k}": {"type": "integer"} for k in range(30)}
    right = ["", "n0=1", "n29=1", "n3=1, n7=2, n29=3"]
    check({"type": "object", "properties": numbers}, right, ["n30=1", "n7=1, n3=1", ", n1=1"])


@pytest.mark.parametrize(
    "parameters", [None, {}, {"type": "object"}, {"type": "object", "properties": {}, "additionalProperties": False}]
)
def test_no_parameters(parameters: Any) -> None:
    check(parameters, [""], ["x=1", "1", " "])


def test_names_that_are_no_identifiers() -> None:
    keys = ["max-results", "from", "a.b", "x/y:z", "1st", "é", "x y", "", "-n", 'q"', "a=b", "<|x", "back\\slash"]
    schema = {"type": "object", "properties": {key: {"type": "integer"} for key in keys}, "required": keys}
    written = (
        'max-results=1, from=1, a.b=1, x/y:z=1, 1st=1, é=1, **{"x y": 1}, **{"": 1}, **{\'-n\': 1}, '
        '**{"q\\"": 1}, **{"a=b": 1}, **{"<\\u007cx": 1}, **{"back\\\\slash": 1}'
    )
    check(schema, [written], [written.replace("**{", "").replace("}", ""), 'max_results=1, **{"from": 1}'])
    [(_, arguments)] = calls_of(block(f"f({written})"), [tool(schema)])
    assert arguments == dict.fromkeys(keys, 1)


def test_numbers() -> None:
    one(
        {"type": "integer"},
        ["0", "-1", "1234567890123456789", "18446744073709551615", str(-(2**127)), "9" * 40],
        ["1.0", "01", "1e3", "-0", "+1", "1" * 41, '"1"', "True"],
    )
    one(
        {"type": "number"},
        ["0", "-1.5", "1e10", "2.5E-3", "-0.0", "1e100", "1.7976931348623157e+308", "5e-324", "0.00012345678901234567"],
        ["1e999", "1e309", "1.8e308", ".5", "5.", "NaN", "Infinity", "0x1F", "1_0"],
    )
    one({"type": "integer", "minimum": -5, "maximum": 12}, ["-5", "0", "12", "9"], ["-6", "13", "120", "-50"])
    one({"type": "integer", "exclusiveMinimum": 9.5, "exclusiveMaximum": 12}, ["10", "11"], ["9", "12"])
    one({"type": "integer", "minimum": 5, "exclusiveMinimum": True}, ["6"], ["5"])
    one({"type": "integer", "minimum": 10**25}, [str(10**25), str(10**26 - 1)], [str(10**25 - 1), "5"])
    one(
        {"type": "number", "minimum": 0.5, "maximum": 7},
        ["0.5", "0.50", "7", "7.0", "6.999", "1"],
        ["0.49", "7.1", "0", "-1", "8e0", "4e-1"],
    )
    one({"type": "number", "exclusiveMinimum": 0}, ["0.000001", "1", "12.5"], ["0", "0.0", "-1"])
    one({"type": "number", "exclusiveMaximum": 0}, ["-0.000001", "-1"], ["0", "-0.0", "1"])
    one(
        {"type": "number", "minimum": -2.25, "exclusiveMaximum": -1.5},
        ["-2.25", "-1.6", "-2"],
        ["-2.3", "-1.5", "-1", "1.6"],
    )
    one({"type": "integer", "multipleOf": 7, "minimum": 10, "maximum": 30}, ["14", "21", "28"], ["7", "35", "15"])
    one({"type": "number", "multipleOf": 0.01}, ["1.25", "3"], ["1.255"])


def test_enums_and_unions() -> None:
    values = ["a", 'q"<|', 1, 2.5, None, True, [1, {"k": "v"}], {"a": []}]
    written = [
        "'a'",
        '"a"',
        '"q\\"<\\u007c"',
        "1",
        "2.5",
        "None",
        "null",
        "True",
        "true",
        "[1, {'k': \"v\"}]",
        '{"a": []}',
    ]
    one({"enum": values}, written, ['"b"', "False", "2", "[1]", "{}", '"q\\"<|"'])
    one({"enum": ["a", 1, "bb"], "type": "string", "minLength": 2}, ['"bb"'], ['"a"', "1"])
    one({"const": 3}, ["3"], ["4", "3.0"])
    one({"anyOf": [{"type": "integer"}, {"type": "string", "maxLength": 1}]}, ["5", '"a"'], ['"ab"', "None"])
    one({"type": ["boolean", "null"]}, ["True", "false", "None", "null"], ["0", '"true"'])
    one({"type": "integer", "anyOf": [{"minimum": 10}, {"maximum": 0}]}, ["10", "0", "-3"], ["5", "1.5"])
    one(
        {"allOf": [{"type": ["string", "integer"]}, {"type": ["integer", "null"], "maximum": 3}]},
        ["3"],
        ["4", '"a"', "None"],
    )


def test_arrays() -> None:
    one(
        {"type": "array", "items": {"type": "integer"}},
        ["[]", "[1]", "[1, 2,3]"],
        ["[1,]", '["a"]', "(1,)", "[,1]", "[1 2]"],
    )
    one(
        {"type": "array", "items": {"type": "null"}, "minItems": 2, "maxItems": 3},
        ["[None, null]", "[None,None,None]"],
        ["[None]", "[]"],
    )
    one({"type": "array", "items": {"type": "integer"}, "maxItems": 0}, ["[]"], ["[1]"])
    one(
        {"type": "array", "prefixItems": [{"type": "string"}, {"type": "integer"}], "items": False},
        ["[]", '["a"]', '["a", 1]'],
        ['["a", 1, 2]', "[1]"],
    )
    one({"type": "array", "minItems": 70, "items": {"const": 1}}, [str([1] * 70), str([1] * 80)], [str([1] * 69)])
    one({"type": "array", "maxItems": 100, "items": {"const": 1}}, ["[]", str([1] * 100)], [str([1] * 101)])
    one({"type": "array"}, ["[1, 'a', [None, {\"x\": 1.5}]]"], ["{}"])


def test_objects() -> None:
    schema: dict[str, Any] = {
        "type": "object",
        "properties": {"a": {"type": "integer"}, "b c": {"type": "string"}},
        "required": ["a"],
    }
    one(
        schema,
        ['{"a": 1}', "{'a':1, 'b c': 'x'}"],
        ["{}", '{"b c": "x"}', '{"a": 1, "z": 1}', '{"a": 1, "a": 2}', "{a: 1}"],
    )
    one(
        {**schema, "additionalProperties": {"type": "null"}},
        ['{"a": 1, "z": None}'],
        ['{"a": 1, "z": 1}', '{"a": 1, "\\u0061": None}'],
    )
    one(
        {"type": "object", "additionalProperties": {"type": "integer"}},
        ["{}", '{"k": 1, "l": 2}', '{"": 1}'],
        ['{"k": "v"}', '{"": "v"}'],
    )
    one({"type": "object"}, ["{}", '{"k": [1]}'], ["[]"])
    one(
        {**schema, "additionalProperties": True, "maxProperties": 2}, ['{"a": 1, "z": 1}'], ['{"a": 1, "z": 1, "y": 1}']
    )
    one(
        {"type": "object", "additionalProperties": {"const": 1}, "minProperties": 2},
        ['{"x": 1, "y": 1}'],
        ["{}", '{"x": 1}'],
    )
    one(
        {
            "type": "object",
            "patternProperties": {"^n_": {"type": "integer"}},
            "additionalProperties": {"type": "boolean"},
        },
        ['{"n_a": 1, "x": True}', '{"n": False}'],
        ['{"n_a": True}', '{"x": 1}'],
    )
    one(
        {"type": "object", "propertyNames": {"enum": ["p", "q"]}},
        ["{}", '{"p": 1, "q": 2}'],
        ['{"r": 1}', '{"p": 1, "p": 2}'],
    )
    one({"type": "object", "propertyNames": {"pattern": "^[a-z]+$"}}, ['{"p": 1}'], ['{"P": 1}'])


def test_arguments_that_are_not_declared() -> None:
    check({"type": "object", "additionalProperties": {"type": "integer"}}, ["", "a=1, b=2"], ['a="x"', '**{"a": 1}'])
    check(
        {"type": "object", "properties": {"a": {"type": "integer"}}, "additionalProperties": {"type": "string"}},
        ["a=1", 'a=1, b="x"', "ab='x', a1='y'"],
        ["a='x'", "a=1, a='x'", "b=1"],
    )


def test_references() -> None:
    node = {
        "type": "object",
        "properties": {
            "name": {"$ref": "#/$defs/name"},
            "next": {"anyOf": [{"$ref": "#/$defs/node"}, {"type": "null"}]},
        },
        "required": ["name"],
        "additionalProperties": False,
    }
    schema = {"$ref": "#/$defs/node", "$defs": {"node": node, "name": {"type": "string", "maxLength": 3}}}
    one(
        schema,
        ['{"name": "a"}', '{"name": "a", "next": {"name": "b", "next": None}}'],
        ['{"name": "a", "next": {}}', '{"name": "abcd"}'],
    )
    check(
        {
            "type": "object",
            "properties": {"a": {"type": "integer"}, "b": {"$ref": "#/properties/a"}, "c": {"$ref": "#"}},
        },
        ["a=1, b=2", "c={'c': {'b': 3}}"],
        ["b='x'", "c={'c': 1}"],
    )
    one({"$ref": "#/$defs/a", "maximum": 5, "$defs": {"a": {"type": "integer", "minimum": 3}}}, ["3", "5"], ["2", "6"])
    one({"$ref": "#/$defs/a", "$defs": {"a": {"anyOf": [{"$ref": "#/$defs/a"}, {"type": "null"}]}}}, ["None"], ["1"])


def test_alternatives_of_arguments() -> None:
    schema = {
        "type": "object",
        "properties": {"id": {"type": "integer"}, "name": {"type": "string"}},
        "anyOf": [{"required": ["id"]}, {"required": ["name"]}],
    }
    check(schema, ["id=1", "name='x'", "id=1, name='x'"], ["", "id='x'"])


@pytest.mark.parametrize(
    ("schema", "keyword"),
    [
        ({"type": "string", "pattern": "(?=a)b"}, "pattern"),
        ({"type": "string", "pattern": "\\p{L}+"}, "pattern"),
        ({"type": "string", "format": "iri"}, "format"),
        ({"type": "array", "uniqueItems": True}, "uniqueItems"),
        ({"type": "array", "contains": {"type": "integer"}}, "contains"),
        ({"not": {"type": "string"}}, "not"),
        ({"type": "object", "properties": {}, "if": {"required": ["a"]}, "then": {}}, "if"),
        ({"oneOf": [{"type": "number"}, {"type": "integer"}]}, "oneOf"),
        ({"$ref": "https://example.org/schema"}, "$ref"),
    ],
)
def test_what_is_not_enforced_is_logged_once(schema: Any, keyword: str, caplog: pytest.LogCaptureFixture) -> None:
    name = f"log_{abs(hash(json.dumps(schema)))}"
    parameters = {
        "type": "object",
        "properties": {"x": schema, "y": {"type": "integer", "maximum": 3}},
        "required": ["y"],
    }
    with caplog.at_level(logging.WARNING, "lfm2_fixed.grammar"):
        for minimum in (0, 1):  # not the same grammar again
            parameters["properties"]["y"]["minimum"] = minimum
            grammar = compiled(tag_for([tool(parameters, name)]))
    messages = [record.getMessage() for record in caplog.records]
    assert len(messages) == 1
    assert keyword in messages[0]
    assert name in messages[0]
    assert accepts(grammar, block(f"{name}(y=3)"))
    assert not accepts(grammar, block(f"{name}(y=4)")), "the other argument is held all the same"


def test_disjoint_alternatives_need_no_log(caplog: pytest.LogCaptureFixture) -> None:
    kinds = [
        {"type": "object", "properties": {"kind": {"const": kind}}, "required": ["kind"], "additionalProperties": False}
        for kind in ("a", "b")
    ]
    one({"oneOf": kinds}, ['{"kind": "a"}', '{"kind": "b"}'], ['{"kind": "c"}'])
    one({"oneOf": [{"type": "string"}, {"type": "null"}]}, ["'a'", "None"], ["1"])
    assert not caplog.records


@pytest.mark.parametrize(
    "schema",
    [
        {"type": "strin"},
        {"type": ["string", 5]},
        {"type": []},
        {"enum": "a"},
        {"properties": []},
        {"required": "a"},
        {"required": [1]},
        {"minLength": -1},
        {"maxItems": 1.5},
        {"minimum": "1"},
        {"multipleOf": 0},
        {"pattern": 1},
        {"anyOf": []},
        {"allOf": {}},
        {"items": 1},
        {"items": None},
        {"additionalProperties": "no"},
        {"$ref": "#/$defs/missing"},
        {"$ref": 1},
        {"$defs": {"a": {"type": "nothing"}}},
        "string",
        None,
    ],
)
def test_invalid_schemas(schema: Any) -> None:
    with pytest.raises(SchemaError):
        tag_for([tool({"type": "object", "properties": {"x": schema}})])


@pytest.mark.parametrize(
    "parameters", [{"type": "string"}, {"type": "array"}, {"type": 1}, "object", [], True, {"enum": 1}]
)
def test_parameters_that_describe_no_object(parameters: Any) -> None:
    if parameters is True:
        assert tag_for([tool(parameters)]) is not None
        return
    with pytest.raises(SchemaError):
        tag_for([tool(parameters)])


def test_a_schema_that_nothing_satisfies_is_no_error() -> None:
    schema = {"type": "object", "properties": {"x": False}, "required": ["x"]}
    assert accepts(compiled(tag_for([tool(schema)])), block("f(x=1)"))
