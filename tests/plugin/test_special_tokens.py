"""Special tokens: seen by the parser, shown to the client only if it asked for them."""

from __future__ import annotations

import copy
from typing import Any

import pytest

from tests.support import served
from tests.support.served import E, S

TEXT = f'A<|im_end|>B{S}[get_weather(city="Paris<|im_end|>")]{E}<|pad|>C<|im_end|>'
CALLS = [("get_weather", '{"city": "Paris<|im_end|>"}')]  # in an argument it is the model's text

APIS = pytest.mark.parametrize("api", [served.chat, served.responses])
REASONING = pytest.mark.parametrize("reasoning", [None, "qwen3"])


def travel(request: Any, how: str) -> Any:
    """The request after a way that it may be passed on."""
    return {
        "same": lambda: request,
        "copy": lambda: copy.copy(request),
        "deep copy": lambda: copy.deepcopy(request),
        "model_copy": lambda: request.model_copy(update={"temperature": 0.5}),
        "json": lambda: type(request).model_validate_json(request.model_dump_json(exclude_unset=True)),
    }[how]()


def contents(request: Any, text: str = TEXT, reasoning: str | None = None) -> set[str]:
    """The content, whole and streamed; calls are checked on the way."""
    before = "<think></think>" if reasoning else ""
    turns = [served.whole(before + text, request, reasoning=reasoning)]
    for size in (1, 4, 1000):
        pieces = [text[start : start + size] for start in range(0, len(text), size)]
        turns.append(served.streamed([*([before] if before else []), *pieces], request, reasoning=reasoning))
    assert all(turn.calls == (CALLS if request.tool_choice != "none" else []) for turn in turns)
    return {turn.content for turn in turns}


@APIS
@REASONING
@pytest.mark.parametrize("how", ["same", "copy", "deep copy", "model_copy", "json"])
@pytest.mark.parametrize("asked", [None, True, False])
def test_what_the_client_asked_is_remembered(api: Any, reasoning: str | None, how: str, asked: bool | None) -> None:
    fields = {} if asked is None else {"skip_special_tokens": asked}
    request = served.adjusted(api(**fields), reasoning=reasoning)
    assert request.skip_special_tokens is False, "the engine must show the sentinels"
    request = travel(request, how)
    assert request.skip_special_tokens is False
    want = "A<|im_end|>B\n<|pad|>C<|im_end|>" if asked is False else "AB\nC"
    assert contents(request, reasoning=reasoning) == {want}


@APIS
def test_adjusted_twice(api: Any) -> None:
    """The second adjustment sees what the first one set, and must not take it for the client's wish."""
    assert contents(served.adjusted(served.adjusted(api()))) == {"AB\nC"}
    asked = served.adjusted(served.adjusted(api(skip_special_tokens=False)))
    assert contents(asked) == {"A<|im_end|>B\n<|pad|>C<|im_end|>"}


@APIS
def test_none_leaves_the_request_alone(api: Any) -> None:
    """The detokenizer hides special tokens there; what is left of them in the text is text."""
    request = served.adjusted(api(tool_choice="none"))
    assert request.skip_special_tokens is not False
    want = 'A<|im_end|>B[get_weather(city="Paris<|im_end|>")]<|pad|>C<|im_end|>'
    assert contents(request) == {want}


@APIS
def test_none_behind_a_reasoning_parser(api: Any) -> None:
    """It lets special tokens through for every request; ours hides them again."""
    request = served.adjusted(api(tool_choice="none"), reasoning="qwen3")
    assert request.skip_special_tokens is False
    assert contents(request, reasoning="qwen3") == {'AB[get_weather(city="Paris")]C'}


@APIS
@REASONING
@pytest.mark.parametrize("tools", [True, False])
def test_none_for_a_client_that_asks_for_special_tokens(api: Any, reasoning: str | None, tools: bool) -> None:
    """The text as it is, markers too: what a bad parse is reported with."""
    fields: dict[str, Any] = {} if tools else {"tools": None}
    request = served.adjusted(api(tool_choice="none", skip_special_tokens=False, **fields), reasoning=reasoning)
    assert contents(request, reasoning=reasoning) == {TEXT}


def test_special_tokens_of_this_tokenizer() -> None:
    """Those that have no role count too, and sentinels never do."""
    from lfm2_fixed.plugin.vocabulary import vocabulary

    known = vocabulary(served.tokenizer("llama4"), "llama4")
    assert "<|fim_pre|>" in known.special
    assert not {"<|python_start|>", "<|python_end|>", "<|eom|>", "<|eot|>", "<think>", ""} & set(known.special)
    assert [text for text, _ in known.sentinels] == ["<|python_start|>", "<|python_end|>", "<|eom|>", "<|eot|>"]
    assert vocabulary(served.tokenizer("llama4"), "llama4") is known, "looked up once"


def test_special_tokens_of_a_tokenizer_that_cannot_be_remembered() -> None:
    """Any object with ``get_vocab`` will do, also one that is neither hashable nor weakly referable."""
    from lfm2_fixed.plugin.vocabulary import vocabulary

    class Bare:
        __slots__ = ()
        __hash__ = None  # type: ignore[assignment]

        def get_vocab(self) -> dict[str, int]:
            return {S: 7, E: 8}

    assert vocabulary(Bare(), "lfm2").sentinels == ((S, 7), (E, 8))
