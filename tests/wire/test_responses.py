"""What the reader of responses does not take for a call's arguments."""

from __future__ import annotations

from typing import Any

import pytest

from lfm2_fixed.gate import from_response


@pytest.mark.parametrize(
    ("arguments", "problems"),
    [("{}", []), (None, []), ({"a": 1}, ["the arguments of a call are not a string"])],
    ids=str,
)
def test_arguments_of_a_response_are_text(arguments: Any, problems: list[str]) -> None:
    item = {"type": "function_call", "call_id": "c", "name": "f", "arguments": arguments}
    turn = from_response({"status": "completed", "output": [item]})
    assert [problem.message for problem in turn.problems] == problems
    assert [call.arguments for call in turn] == ["{}" if arguments == "{}" else ""]
