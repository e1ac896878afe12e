"""``pythonic_fixed`` (Llama 3.2, ToolACE) and ``olmo3_fixed``, each on a real server."""

from __future__ import annotations

from typing import Any

import pytest
from rig import Server

from lfm2_fixed.repro.families import FAMILIES
from lfm2_fixed.repro.turns import Payload
from tests.e2e.test_constrained import calls_of, chat
from tests.support.turns import both, check_payload, wanted

WEATHER: tuple[str, dict[str, Any]] = ("get_weather", {"city": "San (F)", "days": 2})
WRITE: tuple[str, dict[str, Any]] = ("write", {"path": "a", "content": '{"k": "]"}\n'})
WEATHER_CALL = 'get_weather(city="San (F)", days=2)'
WRITE_CALL = r'write(path="a", content="{\"k\": \"]\"}\n")'

LIST = f"[{WEATHER_CALL}, {WRITE_CALL}]"
BLOCK = f"<function_calls>{WEATHER_CALL}\n{WRITE_CALL}</function_calls>"
LOOSE = f"<function_calls>\n{WEATHER_CALL}\n{WRITE_CALL}\n</function_calls>"


def payloads(dialect: str) -> Any:
    """The payloads of this family, for ``payload``."""
    chosen = [payload for payload in FAMILIES if payload.dialect == dialect]
    return pytest.mark.parametrize("payload", chosen, ids=lambda payload: payload.id)


@payloads("pythonic")
def test_pythonic_payload(pythonic: Server, payload: Payload) -> None:
    check_payload(pythonic, payload)


@payloads("olmo3")
def test_olmo3_payload(olmo3: Server, payload: Payload) -> None:
    check_payload(olmo3, payload)


@pytest.mark.parametrize(
    "text, content",
    [
        (f"Let me look.\n\n{LIST}\nDone.", "Let me look.\nDone."),
        (f"Let me look.\n<|python_tag|>{LIST}<|eom_id|>", "Let me look."),
        (f"<|python_tag|>{LIST}<|eot_id|>Done.", "Done."),
    ],
)
def test_pythonic_text_around(pythonic: Server, text: str, content: str) -> None:
    turn = both(pythonic, text)
    assert (turn.calls, turn.content, turn.finish_reason) == (wanted(WEATHER, WRITE), content, "tool_calls")


@pytest.mark.parametrize(
    "text", ["[1, 2, 3]", "[docs](https://x) say so.", '{"name": "f"}', "[get_wea", "Use `[bash()]`."]
)
def test_pythonic_text(pythonic: Server, text: str) -> None:
    turn = both(pythonic, text)
    assert (turn.calls, turn.content, turn.finish_reason) == ([], text, "stop")


@pytest.mark.parametrize(
    "text, calls, content",
    [
        (f"Let me look.\n{BLOCK}\nDone.", [WEATHER, WRITE], "Let me look.\nDone."),
        (f"{LOOSE}\nAnd:\n{BLOCK}", [WEATHER, WRITE] * 2, "And:"),
    ],
)
def test_olmo3_text_around(olmo3: Server, text: str, calls: list[tuple[str, dict[str, Any]]], content: str) -> None:
    turn = both(olmo3, text)
    assert (turn.calls, turn.content, turn.finish_reason) == (wanted(*calls), content, "tool_calls")


@pytest.mark.parametrize("text", [LIST, WEATHER_CALL, "A <function_call> and <function_calls", "</function_cal"])
def test_olmo3_text(olmo3: Server, text: str) -> None:
    """Without its markers there is no call; half a marker is text."""
    turn = both(olmo3, text)
    assert (turn.calls, turn.content, turn.finish_reason) == ([], text, "stop")


def check_required(server: Server, text: str) -> None:
    """``required`` leaves calls alone and takes what is before them away; noise becomes valid calls."""
    turn = both(server, f"Sorry. {text}", tool_choice="required")
    assert (turn.calls, turn.content, turn.finish_reason) == (wanted(WEATHER, WRITE), "", "tool_calls")
    message = chat(server, 1, tool_choice="required")
    assert calls_of(message)
    assert not message["content"]


def test_pythonic_required(pythonic: Server) -> None:
    check_required(pythonic, LIST)


def test_olmo3_required(olmo3: Server) -> None:
    check_required(olmo3, BLOCK)


def test_pythonic_none(pythonic: Server) -> None:
    turn = both(pythonic, LIST, tool_choice="none")
    assert (turn.calls, turn.content) == ([], LIST)


def test_olmo3_none(olmo3: Server) -> None:
    """Its markers leak no more than other families' do, though they are text to vLLM (contract 7.3)."""
    turn = both(olmo3, BLOCK, tool_choice="none")
    assert (turn.calls, turn.content) == ([], BLOCK.removeprefix("<function_calls>").removesuffix("</function_calls>"))
