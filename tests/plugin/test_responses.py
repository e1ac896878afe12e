"""What vLLM's Responses endpoint makes of the deltas."""

from __future__ import annotations

import json
import sys
from types import ModuleType
from typing import Any

import pytest
from vllm.entrypoints.openai.responses import streaming_events
from vllm.entrypoints.openai.responses.protocol import ResponsesRequest

from tests.support import served
from tests.support.served import E, S

TEXT = f'One.{S}[get_weather(city="Paris"), get_weather(city="Rome")]{E}Two.{S}[get_weather(city="Oslo")]{E}Three.'


@pytest.fixture
def split_delta(monkeypatch: pytest.MonkeyPatch) -> Any:
    """The serving module's ``split_delta``, as a request leaves it there."""
    serving = ModuleType("vllm.entrypoints.openai.responses.serving")  # the real one imports an engine
    serving.split_delta = streaming_events.split_delta  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, serving.__name__, serving)
    served.adjusted(served.responses())
    once = serving.split_delta
    served.adjusted(served.responses())
    assert serving.split_delta is once is not streaming_events.split_delta
    return once


def events(request: ResponsesRequest, pieces: list[str], split: Any) -> list[Any]:
    """The endpoint's own state machine over our deltas."""
    processor = streaming_events.SimpleStreamingEventProcessor(tools=request.tools)
    parser = served.parser(request=request)
    said: list[Any] = []
    for number, piece in enumerate(pieces):
        message = parser.parse_delta(piece, [1], request, prompt_token_ids=[0], finished=number == len(pieces) - 1)
        for part in split(message) if message else ():
            state, call = processor.resolve_target_state(part)
            if state is not streaming_events._StateType.NONE:
                if processor.needs_transition(state, call):
                    said += [*processor.close_current(), *processor.open(state, call)]
                said += processor.emit_delta(part, None)
    return said + processor.close_current()


def calls_of(said: list[Any]) -> list[tuple[str, Any]]:
    items = [event.item for event in said if event.type == "response.output_item.done"]
    return [(item.name, json.loads(item.arguments)) for item in items if item.type == "function_call"]


def text_of(said: list[Any]) -> str:
    return "".join(event.delta for event in said if event.type == "response.output_text.delta")


def test_every_cut(split_delta: Any) -> None:
    """Wherever the text is cut, also where one delta ends a call and goes on with text."""
    request = served.adjusted(served.responses())
    want = [("get_weather", {"city": city}) for city in ("Paris", "Rome", "Oslo")]
    for at in range(1, len(TEXT)):
        said = events(request, [TEXT[:at], TEXT[at:]], split_delta)
        assert calls_of(said) == want, at
        assert text_of(said).replace("\n", "") == "One.Two.Three."
        added = [event.item for event in said if event.type == "response.output_item.added"]
        assert all(item.name == "get_weather" for item in added if item.type == "function_call")


def test_several_cuts(split_delta: Any) -> None:
    request = served.adjusted(served.responses())
    for size in (1, 2, 3, 5, 11, 30):
        pieces = [TEXT[start : start + size] for start in range(0, len(TEXT), size)]
        assert len(calls_of(events(request, pieces, split_delta))) == 3


def test_other_deltas_are_split_as_before(split_delta: Any) -> None:
    from lfm2_fixed.plugin import messages

    started = messages.delta("text", [messages.first_delta(0, "i", "f", "{}")])
    later = messages.delta("", [messages.arguments_delta(0, "1")])
    for message in (started, messages.content_delta("x"), later):
        assert split_delta(message) == streaming_events.split_delta(message)


def test_namespaced_tools() -> None:
    """They are declared under the names the model is shown."""
    inner = {"type": "function", "name": "get", "parameters": {"type": "object", "properties": {"key": {}}}}
    space = {"type": "namespace", "name": "store", "description": "d", "tools": [inner]}
    request = served.adjusted(served.responses([space]))
    text = f"{S}[store__get('a')]{E}"  # a positional argument needs the declaration
    want = [("store__get", '{"key": "a"}')]
    assert served.whole(text, request).calls == want
    assert served.streamed(list(text), request).calls == want
