"""/v1/chat/completions with the official client: LFM2 without a reasoning parser."""

from __future__ import annotations

import json

import openai
import pytest
from build_model import long_words
from rig import Server, chat_body, read_sse

from lfm2_fixed.repro.payloads import PAYLOADS
from lfm2_fixed.repro.turns import TOOLS, Payload
from tests.support.turns import END, MARKERS, START, Turn, at_once, both, client, streamed, wanted, whole

CALL = '[get_weather(city="Zürich", days=2), write(path="a.json", content="{\\"a\\": [1, 2.5]}\\n")]'
CALLS = wanted(
    ("get_weather", {"city": "Zürich", "days": 2}), ("write", {"path": "a.json", "content": '{"a": [1, 2.5]}\n'})
)


@pytest.mark.parametrize("payload", [p for p in PAYLOADS if p.dialect == "lfm2"], ids=lambda payload: payload.id)
def test_payload(lfm2: Server, payload: Payload) -> None:
    turn = both(lfm2, payload.text)
    assert turn.calls == wanted(*payload.calls)
    assert turn.content == payload.content
    assert turn.finish_reason == ("tool_calls" if payload.calls else "stop")


def test_arguments_stream_while_they_are_written(lfm2: Server) -> None:
    words = " ".join(long_words()[:20])
    [turn] = streamed(lfm2, f'{START}[write(path="a", content="{words}")]{END}', xargs={"step_ms": 2})
    assert turn.calls == wanted(("write", {"path": "a", "content": words}))
    assert len(turn.deltas) >= 20, "a word is one token, so it should be one delta"


def test_text_before_between_and_after(lfm2: Server) -> None:
    script = f"Let me look.\n{START}[bash(command='ls')]{END}\nAnd {START}[bash(command='pwd')]{END}\nDone."
    turn = both(lfm2, script)
    assert turn.calls == wanted(("bash", {"command": "ls"}), ("bash", {"command": "pwd"}))
    assert turn.content == "Let me look.\nAnd\nDone."


@pytest.mark.parametrize("text", ["Just text.\n", "a < b, a <| b and <|tool_call", "[1] see [docs](https://x)"])
def test_text_alone(lfm2: Server, text: str) -> None:
    turn = both(lfm2, text)
    assert (turn.calls, turn.content, turn.finish_reason) == ([], text, "stop")


def test_empty_turn(lfm2: Server) -> None:
    turn = both(lfm2, [])
    assert (turn.calls, turn.content, turn.finish_reason) == ([], "", "stop")


def test_every_length_cut(lfm2: Server) -> None:
    script = f"Ok. {START}{CALL}{END}"
    full = client(lfm2).chat.completions.create(
        model="tiny",
        messages=[{"role": "user", "content": "go"}],
        max_tokens=1024,
        extra_body={"vllm_xargs": {"script": script}},
    )
    assert full.usage is not None
    tokens = full.usage.completion_tokens - 1  # the last one ends the turn

    def cut(length: int) -> tuple[Turn, Turn]:
        [stream] = streamed(lfm2, script, max_tokens=length)
        [answer] = whole(lfm2, script, max_tokens=length)
        return stream, answer

    counts = []
    for stream, answer in at_once(cut, range(1, tokens + 1)):
        # Whole: complete calls alone.  Streamed: these, and perhaps the beginning of one more.
        assert answer.calls == CALLS[: len(answer.calls)]
        assert stream.calls[: len(answer.calls)] == answer.calls
        for name, beginning in stream.calls[len(answer.calls) :]:
            assert name == CALLS[len(answer.calls)][0]
            assert CALLS[len(answer.calls)][1].startswith(beginning)
        assert len(answer.calls) <= len(stream.calls) <= len(answer.calls) + 1
        assert stream.content == answer.content
        assert "Ok. ".startswith(stream.content)
        counts.append(len(answer.calls))
        assert stream.finish_reason == "length"
        # This vLLM (0.32) says so in a whole answer only while there is no call.
        assert answer.finish_reason == ("tool_calls" if answer.calls else "length")
    assert counts == sorted(counts) and set(counts) == {0, 1, 2}
    assert stream.calls == answer.calls == CALLS


def test_stop_string_that_does_not_come(lfm2: Server) -> None:
    # The server holds characters back for it, so sentinels reach the parser in pieces.
    turn = both(lfm2, f"Ok.\n{START}{CALL}{END}\nDone.", stop=["§§§§§§§§§§§§§", "never said"])
    assert turn.calls == CALLS
    assert turn.content == "Ok.\nDone."
    assert turn.finish_reason == "tool_calls"


def test_stop_string_in_text(lfm2: Server) -> None:
    turn = both(lfm2, f"{START}{CALL}{END}\nDone. STOP and more", stop=["STOP"])
    assert turn.calls == CALLS
    assert turn.content == "Done."


@pytest.mark.parametrize("stop", ["json", "\\n", '")]', "2.5"])
def test_stop_string_in_a_call(lfm2: Server, stop: str) -> None:
    script = f"Ok.\n{START}{CALL}{END}"
    [stream] = streamed(lfm2, script, stop=[stop])
    [answer] = whole(lfm2, script, stop=[stop])
    assert answer.calls == CALLS[:1]
    assert stream.calls[0] == CALLS[0]
    assert CALLS[1][1].startswith(stream.calls[1][1]) and stream.calls[1][1] != CALLS[1][1]
    assert stream.content == answer.content == "Ok."


def test_two_choices(lfm2: Server) -> None:
    script = f"Ok.\n{START}{CALL}{END}"
    options = {"n": 2, "temperature": 1}
    turns = streamed(lfm2, script, **options) + whole(lfm2, script, **options)
    for turn in turns:
        assert (turn.calls, turn.content, turn.finish_reason) == (CALLS, "Ok.", "tool_calls")
    ids = [call_id for turn in turns for call_id in turn.ids]
    assert len(ids) == len(set(ids)) == 8


def test_eight_at_once(lfm2: Server) -> None:
    def script(number: int) -> str:
        text = f'quote \\" {number} }}])' * (number + 1)
        calls = ", ".join(f'write(path="{number}-{i}", content="{text}")' for i in range(number % 3 + 1))
        return f"Turn {number}.\n{START}[{calls}]{END}"

    def ask(number: int) -> Turn:
        [turn] = (streamed if number < 8 else whole)(lfm2, script(number % 8), xargs={"step_ms": 1})
        return turn

    turns = at_once(ask, range(16))
    for number, turn in enumerate(turns):
        n = number % 8
        text = f'quote " {n} }}])' * (n + 1)
        assert turn.content == f"Turn {n}."
        assert turn.calls == wanted(*(("write", {"path": f"{n}-{i}", "content": text}) for i in range(n % 3 + 1)))
    ids = [call_id for turn in turns for call_id in turn.ids]
    assert len(ids) == len(set(ids))


def test_64_kb_of_arguments(lfm2: Server) -> None:
    lines = []
    while sum(map(len, lines)) < 64 * 1024:
        n = len(lines)
        lines.append(" ".join(long_words()[n % 7 : n % 7 + 20]) + f' "{n}" {{\\[(é\n')
    text = "".join(lines)
    literal = text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
    turn = both(lfm2, f'{START}[write(path="big", content="{literal}")]{END}', max_tokens=16000)
    assert turn.calls == wanted(("write", {"path": "big", "content": text}))
    assert len(turn.calls[0][1]) > 64 * 1024
    assert len(turn.deltas) > 1000
    assert max(map(len, turn.deltas)) < 2048, "the arguments should come in small pieces"


def test_tool_choice_none(lfm2: Server) -> None:
    turn = both(lfm2, f"Ok.\n{START}{CALL}{END} {START}", tool_choice="none")
    assert turn.calls == [] and turn.finish_reason == "stop"
    assert CALL in turn.content
    assert not any(marker in turn.content for marker in MARKERS)


def test_no_tools(lfm2: Server) -> None:
    turn = both(lfm2, f"Ok.\n{START}{CALL}{END}", tools=[], tool_choice=None)
    assert turn.calls == [] and turn.finish_reason == "stop"
    assert CALL in turn.content
    assert not any(marker in turn.content for marker in MARKERS)


def test_tool_choice_required(lfm2: Server) -> None:
    turn = both(lfm2, f'{START}[get_weather(city="Zürich", days=2)]{END}', tool_choice="required")
    assert turn.calls == CALLS[:1]
    assert turn.content == ""
    assert turn.finish_reason == "tool_calls"


def test_tool_choice_named(lfm2: Server) -> None:
    choice = {"type": "function", "function": {"name": "get_weather"}}
    turn = both(lfm2, f'{START}[get_weather(city="Zürich", days=2)]{END}', tool_choice=choice)
    assert turn.calls == CALLS[:1]
    assert turn.content == ""


def test_special_tokens(lfm2: Server) -> None:
    script = f"a<|fim_pre|>b\n{START}{CALL}{END}"
    turn = both(lfm2, script)
    assert (turn.content, turn.calls) == ("ab", CALLS)
    turn = both(lfm2, script, skip_special_tokens=False)
    assert (turn.content.replace("<|im_end|>", ""), turn.calls) == ("a<|fim_pre|>b", CALLS)


def test_shape_of_the_events(lfm2: Server) -> None:
    body = chat_body(f"Ok.\n{START}{CALL}{END}", TOOLS, stream=True, tool_choice="auto")
    events = read_sse(lfm2.post("/v1/chat/completions", body))
    deltas = [choice["delta"] for event in events for choice in event["choices"]]
    calls = [call for delta in deltas for call in delta.get("tool_calls") or ()]
    opened: set[int] = set()
    for call in calls:
        if call["index"] in opened:
            assert call.keys() == {"index", "function"}
            assert call["function"].keys() == {"arguments"}
        else:
            assert call.keys() == {"index", "id", "type", "function"}
            assert call["function"].keys() == {"name", "arguments"}
        opened.add(call["index"])
        assert isinstance(call["function"]["arguments"], str) and call["function"]["arguments"]
    assert opened == {0, 1}
    for delta in deltas:
        assert None not in delta.values(), f"a field that says nothing should be left out: {delta}"


def test_conversation_goes_on(lfm2: Server) -> None:
    """The loop that every agent runs: call, result, answer."""
    messages: list[dict[str, object]] = [{"role": "user", "content": "What is in a.json?"}]
    api = client(lfm2).chat.completions
    first = api.create(
        model="tiny",
        messages=messages,  # type: ignore[arg-type]
        tools=TOOLS,  # type: ignore[arg-type]
        extra_body={"vllm_xargs": {"script": f"{START}[bash(command=\"cat 'a.json'\")]{END}"}},
    )
    [call] = first.choices[0].message.tool_calls or []
    assert json.loads(call.function.arguments) == {"command": "cat 'a.json'"}  # type: ignore[union-attr]
    messages.append(first.choices[0].message.model_dump(exclude_none=True))
    messages.append({"role": "tool", "tool_call_id": call.id, "content": '{"a": 1}'})
    second = api.create(
        model="tiny",
        messages=messages,  # type: ignore[arg-type]
        tools=TOOLS,  # type: ignore[arg-type]
        extra_body={"vllm_xargs": {"script": "It holds a number."}},
    )
    assert second.choices[0].message.content == "It holds a number."
    assert not second.choices[0].message.tool_calls


def test_echoing_server_needs_no_script(lfm2: Server) -> None:
    """serve.sh without a model: any client can try a turn, as the last user message."""
    answer = client(lfm2).chat.completions.create(
        model="tiny",
        messages=[{"role": "user", "content": f"{START}{CALL}{END}"}],
        tools=TOOLS,  # type: ignore[arg-type]
    )
    calls = answer.choices[0].message.tool_calls or []
    assert [(call.function.name, call.function.arguments) for call in calls] == CALLS  # type: ignore[union-attr]


def test_a_wrong_request_is_refused(lfm2: Server) -> None:
    with pytest.raises(openai.BadRequestError):
        whole(lfm2, "x", tool_choice={"type": "function", "function": {"name": "not_declared"}})
