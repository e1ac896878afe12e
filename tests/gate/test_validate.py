"""The gate's judgement: every code, alone, and none on what is right."""

from __future__ import annotations

import json
import sys
from typing import Any

import pytest

from lfm2_fixed.gate import Call, Code, Gate, Tools, ToolsError, Turn, validate
from tests.support.answers import TOOLS


def codes(arguments: Any, name: str = "move", **options: Any) -> list[tuple[str, str]]:
    text = arguments if isinstance(arguments, str) else json.dumps(arguments)
    issues = validate([{"id": "1", "name": name, "arguments": text}], TOOLS, **options)
    assert all(issue.call == 0 for issue in issues)
    return [(str(issue.code), issue.pointer) for issue in issues]


def schema_codes(schema: Any, value: Any) -> list[tuple[str, str]]:
    parameters = {"type": "object", "properties": {"v": schema}}
    tool = {"type": "function", "function": {"name": "f", "parameters": parameters}}
    issues = validate([Call("f", json.dumps({"v": value}))], [tool])
    return [(str(issue.code), issue.pointer) for issue in issues]


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        ({"lat": 1.5}, []),
        ({"lat": 1, "steps": 3, "mode": "fly", "note": "a b", "via": [{"id": 1}]}, []),
        ({"lat": 1, "steps": 3.0}, []),  # an integer, says JSON Schema
        ({"lat": 1, "steps": 3.5}, [("TYPE_MISMATCH", "/steps")]),
        ({"lat": 1, "steps": "3"}, [("TYPE_MISMATCH", "/steps")]),
        ({"lat": 1, "steps": True}, [("TYPE_MISMATCH", "/steps")]),
        ({"lat": True}, [("TYPE_MISMATCH", "/lat")]),
        ({"lat": None}, [("TYPE_MISMATCH", "/lat")]),
        ({"lat": "1.5"}, [("TYPE_MISMATCH", "/lat")]),
        ({}, [("MISSING_REQUIRED", "/lat")]),
        ({"lat": 1, "via": [{"id": 1}, {}]}, [("MISSING_REQUIRED", "/via/1/id")]),
        ({"lat": 1, "via": [{"id": 1}, "x"]}, [("TYPE_MISMATCH", "/via/1")]),
        ({"lat": 91}, [("SCHEMA_VIOLATION", "/lat")]),
        ({"lat": 1, "mode": "swim"}, [("SCHEMA_VIOLATION", "/mode")]),
        ({"lat": 1, "note": "A"}, [("SCHEMA_VIOLATION", "/note")]),
        ({"lat": 1, "x": 1, "y": 2}, [("SCHEMA_VIOLATION", "/x"), ("SCHEMA_VIOLATION", "/y")]),
        ("[1]", [("ARGUMENTS_NOT_OBJECT", "")]),
        ("null", [("ARGUMENTS_NOT_OBJECT", "")]),
        ('"{\\"lat\\": 1}"', [("ARGUMENTS_NOT_OBJECT", "")]),  # encoded twice
        ('{"lat": 1', [("ARGUMENTS_NOT_JSON", "")]),
        ('{"lat": 1}{"lat": 2}', [("ARGUMENTS_NOT_JSON", "")]),
        ("", [("ARGUMENTS_NOT_JSON", "")]),
        ('{"lat": 1, "lat": 1}', [("DUPLICATE_KEY", "/lat")]),
        ('{"lat": 1, "via": [{"id": 1, "id": 2}]}', [("DUPLICATE_KEY", "/via/0/id")]),
        ('{"lat": NaN}', [("NON_FINITE", "/lat")]),
        ('{"lat": 1e999}', [("NON_FINITE", "/lat")]),
        ('{"lat": 1, "note": "\\ud800"}', [("ARGUMENTS_NOT_JSON", "/note")]),
        (
            '{"lat": "x", "steps": true, "mode": NaN, "mode": "swim", "z": 1}',
            [
                ("NON_FINITE", "/mode"),
                ("DUPLICATE_KEY", "/mode"),
                ("TYPE_MISMATCH", "/lat"),
                ("TYPE_MISMATCH", "/steps"),
                ("SCHEMA_VIOLATION", "/z"),
            ],
        ),
    ],
    ids=lambda value: repr(value)[:60],
)
def test_each_fault_has_its_code_and_place(arguments: Any, expected: list[tuple[str, str]]) -> None:
    assert sorted(codes(arguments)) == sorted(expected)


@pytest.mark.parametrize(
    ("schema", "value", "expected"),
    [
        ({"anyOf": [{"type": "integer"}, {"type": "null"}]}, None, []),
        ({"anyOf": [{"type": "integer"}, {"type": "null"}]}, "3", [("TYPE_MISMATCH", "/v")]),
        (
            {"anyOf": [{"type": "object", "required": ["x"]}, {"type": "null"}]},
            {},
            [("MISSING_REQUIRED", "/v/x")],
        ),
        ({"oneOf": [{"minimum": 5}, {"maximum": 3}]}, 4, [("SCHEMA_VIOLATION", "/v")]),
        ({"oneOf": [{"minimum": 1}, {"maximum": 3}]}, 2, [("SCHEMA_VIOLATION", "/v")]),
        ({"$ref": "#/$defs/none"}, 2, [("SCHEMA_VIOLATION", "")]),
        ({"$ref": "http://127.0.0.1:9/remote.json"}, 2, [("SCHEMA_VIOLATION", "")]),
        ({"prefixItems": [{"type": "string"}], "items": False}, ["a", 1], [("SCHEMA_VIOLATION", "/v")]),
        ({"properties": {"a": {}}, "unevaluatedProperties": False}, {"b": 1}, [("SCHEMA_VIOLATION", "/v")]),
        ({"dependentRequired": {"a": ["b"]}}, {"a": 1}, [("SCHEMA_VIOLATION", "/v")]),
        ({"const": 1}, True, [("SCHEMA_VIOLATION", "/v")]),
        ({"enum": [0]}, False, [("SCHEMA_VIOLATION", "/v")]),
        ({"type": ["string", "null"]}, 1, [("TYPE_MISMATCH", "/v")]),
        ({"patternProperties": {"^x": {}}, "additionalProperties": False}, {"x1": 1, "y": 1},
         [("SCHEMA_VIOLATION", "/v/y")]),
        ({"additionalProperties": {"type": "integer"}}, {"a": "1"}, [("TYPE_MISMATCH", "/v/a")]),
        ({"propertyNames": {"pattern": "^a"}}, {"b": 1}, [("SCHEMA_VIOLATION", "/v")]),
        ({"multipleOf": 0.5}, 10**400, [("SCHEMA_VIOLATION", "")]),  # beyond the library's arithmetic
        ({"pattern": "("}, "x", None),
        (False, 1, [("SCHEMA_VIOLATION", "")]),  # the library does not say where
        (True, 1, []),
        ({"format": "date"}, "no date", []),  # an annotation, says JSON Schema
        ({"type": "string", "nullable": True}, "x", []),
    ],
    ids=lambda value: repr(value)[:60],
)  # fmt: skip
def test_the_whole_of_json_schema(schema: Any, value: Any, expected: list[tuple[str, str]] | None) -> None:
    if expected is None:
        with pytest.raises(ToolsError):
            schema_codes(schema, value)
    else:
        assert schema_codes(schema, value) == expected


def test_another_draft_is_read_by_its_own_rules() -> None:
    draft7 = {
        "$schema": "http://json-schema.org/draft-07/schema#",
        "type": "object",
        "properties": {"v": {"items": [{"type": "string"}], "additionalItems": False}},
    }
    issues = validate([Call("f", '{"v": ["a", 1]}')], [{"name": "f", "input_schema": draft7}])
    assert [(str(i.code), i.pointer) for i in issues] == [("SCHEMA_VIOLATION", "/v")]


def test_a_schema_too_deep_for_the_stack_fails_closed() -> None:
    tree = {"type": "object", "properties": {"n": {"$ref": "#"}}, "additionalProperties": False}
    text = '{"n":' * 199 + "{}" + "}" * 199
    limit = sys.getrecursionlimit()
    sys.setrecursionlimit(400)
    try:
        issues = validate([Call("f", text)], [{"name": "f", "input_schema": tree}])
    finally:
        sys.setrecursionlimit(limit)
    assert [issue.code for issue in issues] == [Code.SCHEMA_VIOLATION]
    assert "could not be checked" in issues[0].message


def test_names_counts_and_ids() -> None:
    assert codes({"lat": 1}, name="mov") == [("UNKNOWN_TOOL", "")]
    assert codes({"lat": 1}, name="") == [("UNKNOWN_TOOL", "")]
    assert codes('{"lat": ', name="mov") == [("UNKNOWN_TOOL", ""), ("ARGUMENTS_NOT_JSON", "")]
    twice = [Call("ping", "{}", "a"), Call("ping", "{}", "a"), Call("ping", "{}", None), Call("ping", "{}", None)]
    assert [(i.code, i.call) for i in validate(twice, TOOLS)] == [(Code.DUPLICATE_CALL_ID, 1)]
    for expected, wanted in [(3, [Code.CALL_COUNT_MISMATCH]), (5, [Code.CALL_COUNT_MISMATCH]), (4, [])]:
        issues = validate([Call("ping", "{}")] * 4, TOOLS, expected_calls=expected)
        assert [issue.code for issue in issues] == wanted
    assert validate([], TOOLS) == []
    assert [i.code for i in validate([], TOOLS, expected_calls=1)] == [Code.CALL_COUNT_MISMATCH]


def test_a_tool_without_parameters_takes_none() -> None:
    assert codes({}, name="ping") == []
    assert codes({"x": 1}, name="ping") == [("SCHEMA_VIOLATION", "/x")]


@pytest.mark.parametrize(
    ("turn", "expected"),
    [
        (Turn((Call("ping", "{}"),), finish_reason="tool_calls"), []),
        (Turn((Call("ping", "{}"),), finish_reason="stop"), []),
        (Turn((Call("ping", "{}"),)), [Code.INCOMPLETE]),
        (Turn((Call("ping", "{}"),), finish_reason="length"), [Code.INCOMPLETE]),
        (Turn((Call("ping", "{}", complete=False),), finish_reason="tool_use"), [Code.INCOMPLETE]),
        (Turn((), finish_reason="tool_calls"), [Code.CALL_COUNT_MISMATCH]),
        (Turn((), finish_reason="stop"), []),
        (Turn(), [Code.INCOMPLETE]),
    ],
)
def test_a_turn_must_have_ended_well(turn: Turn, expected: list[Code]) -> None:
    assert [issue.code for issue in validate(turn, TOOLS)] == expected


def test_messages_hold_no_value_unless_asked() -> None:
    call = [{"name": "move", "arguments": '{"lat": "hunter2", "mode": "hunter2", "note": "HUNTER2"}'}]
    shy, open_ = validate(call, TOOLS), validate(call, TOOLS, show_values=True)
    assert len(shy) == len(open_) == 3
    assert not any("hunter2" in str(issue).lower() for issue in shy)
    assert all("hunter2" in str(issue).lower() for issue in open_)
    long = validate([Call("move", json.dumps({"lat": "x" * 5000}))], TOOLS, show_values=True)
    assert len(long[0].message) < 400


def test_calls_in_every_usual_shape() -> None:
    from openai.types.chat import ChatCompletionMessageFunctionToolCall
    from openai.types.responses import ResponseFunctionToolCall

    arguments = '{"lat": "1"}'
    chat = {"id": "1", "type": "function", "function": {"name": "move", "arguments": arguments}}
    responses = {"type": "function_call", "call_id": "1", "name": "move", "arguments": arguments}
    messages = {"type": "tool_use", "id": "1", "name": "move", "input": {"lat": "1"}}
    shapes = [
        Call("move", arguments, "1"),
        chat,
        responses,
        messages,
        {"name": "move", "arguments": {"lat": "1"}},
        ChatCompletionMessageFunctionToolCall.model_validate(chat),
        ResponseFunctionToolCall.model_validate(responses),
    ]
    for shape in shapes:
        assert [str(i.code) for i in validate([shape], TOOLS)] == ["TYPE_MISMATCH"], shape
    assert [str(i.code) for i in validate([{"name": "move"}], TOOLS)] == ["ARGUMENTS_NOT_JSON"]
    assert [str(i.code) for i in validate([{"name": "move", "arguments": {"lat": float("nan")}}], TOOLS)] == [
        "NON_FINITE"
    ]
    with pytest.raises(TypeError):
        validate(["move"], TOOLS)


def test_tools_in_every_usual_shape() -> None:
    inner = TOOLS[1]["function"]
    shapes: list[Any] = [
        TOOLS[1],
        {"type": "function", **inner},
        {"name": "move", "input_schema": inner["parameters"]},
        {"type": "namespace", "name": "n", "tools": [{"type": "function", **inner}]},
    ]
    for shape in shapes:
        declared = Tools([shape, {"type": "web_search"}])
        assert declared.names == ("move",)
        assert [v.code for v in declared.violations("move", {})] == ["MISSING_REQUIRED"]


def test_custom_tools_take_text() -> None:
    tools = [{"type": "custom", "name": "sh"}, *TOOLS]
    assert validate([Call("sh", "rm {", kind="custom")], tools) == []
    assert [i.code for i in validate([Call("sh", "{}")], tools)] == [Code.TYPE_MISMATCH]
    assert [i.code for i in validate([Call("ping", "{}", kind="custom")], tools)] == [Code.TYPE_MISMATCH]
    assert [i.code for i in validate([Call("none", "x", kind="custom")], tools)] == [Code.UNKNOWN_TOOL]


@pytest.mark.parametrize(
    "tool",
    [
        "move",
        {"type": "function"},
        {"type": "function", "function": {"name": ""}},
        {"type": "function", "function": {"name": "f", "parameters": {"type": "strin"}}},
        {"type": "function", "function": {"name": "f", "parameters": 3}},
        {"type": "function", "function": {"name": "f", "parameters": {"properties": {"a": {"minimum": "1"}}}}},
        TOOLS[0],
    ],
    ids=repr,
)
def test_unusable_tools_are_said_at_once(tool: Any) -> None:
    with pytest.raises(ToolsError):
        Gate([TOOLS[0], tool])
