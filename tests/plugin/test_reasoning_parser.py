"""The reasoning parser ``lfm2_fixed``, before the tool parser of that name and without one."""

from __future__ import annotations

import random
from typing import Any

import pytest
from vllm.parser.parser_manager import ParserManager
from vllm.reasoning import ReasoningParserManager

from tests.support import served
from tests.support.served import E, S

OURS = "lfm2_fixed"
CALL = f"{S}[get_weather(city='Paris')]{E}"
CALLS = [("get_weather", '{"city": "Paris"}')]
TAGGED = f"{S}[get_weather(city='</think><think>')]{E}"
APIS = pytest.mark.parametrize("api", [served.chat, served.responses])

ROWS: list[tuple[str, str, str, served.ToolCalls]] = [
    # the model's text; its reasoning, content and calls
    ("<think>hm</think>" + CALL, "hm", "", CALLS),
    ("<think>\nhm\n</think>\n\n" + CALL, "\nhm\n", "", CALLS),
    ("<think>hm</think>Look.\n" + CALL + "Done.", "hm", "Look.\nDone.", CALLS),
    (CALL, "", "", CALLS),
    ("Look. " + CALL, "", "Look.", CALLS),
    ("<think>hm " + CALL, "hm ", "", CALLS),
    ("<think>hm " + CALL + "Done.", "hm ", "Done.", CALLS),
    ("<think>" + CALL, "", "", CALLS),
    ("\n<think>hm</think>" + CALL, "hm", "", CALLS),
    ("<think>hm", "hm", "", []),
    ("<think>hm</thi", "hm</thi", "", []),
    ("<think>hm</think>", "hm", "", []),
    (f"<think>hm `{S}", "hm `", "", []),
    (f"<think>`{S}` and `{E}`.</think>Hello.", f"`{S}` and `{E}`.", "Hello.", []),
    ("<think></think>Hello.", "", "Hello.", []),
    ("<think>hm</think>\n\nHello.", "hm", "\n\nHello.", []),
    ("<thi", "", "<thi", []),
    ("Hello.", "", "Hello.", []),
    ("", "", "", []),
    ("I like <think> and </think>.", "", "I like <think> and </think>.", []),
    (TAGGED, "", "", [("get_weather", '{"city": "</think><think>"}')]),
    ("<think>hm</think>" + TAGGED, "hm", "", [("get_weather", '{"city": "</think><think>"}')]),
    ("<think>hm" + TAGGED, "hm", "", [("get_weather", '{"city": "</think><think>"}')]),
    ("<think>A</think>B</think>C", "A", "B</think>C", []),
    (f"<think>Calls begin with `{S}`.</think>{CALL}", f"Calls begin with `{S}`.", "", CALLS),
]
BY_ROW = pytest.mark.parametrize(("text", "reasoning", "content", "calls"), ROWS, ids=range(len(ROWS)))


def cuttings(text: str) -> list[list[str]]:
    rng = random.Random(len(text))
    cut = sorted(rng.randrange(len(text) + 1) for _ in range(5))
    edges = [0, *cut, len(text)]
    sizes = [[text[i : i + size] for i in range(0, len(text), size)] for size in (1, 2, 5, 13)]
    return [*sizes, [text], ["", text, ""], [text[start:end] for start, end in zip(edges, edges[1:])]]


def every_way(text: str, request: Any, prompt: tuple[int, ...] = served.PROMPT) -> served.Turn:
    """The turn, which must be the same whole and in every cutting."""
    turn = served.whole(text, request, reasoning=OURS, prompt=prompt)
    for pieces in cuttings(text):
        other = served.streamed(pieces, request, reasoning=OURS, prompt=prompt)
        assert (other.reasoning, other.content, other.calls) == (turn.reasoning, turn.content, turn.calls), pieces
    return turn


@APIS
@BY_ROW
def test_with_tools(api: Any, text: str, reasoning: str, content: str, calls: served.ToolCalls) -> None:
    turn = every_way(text, served.adjusted(api(), reasoning=OURS))
    assert (turn.reasoning, turn.content, turn.calls) == (reasoning, content, calls)


@BY_ROW
def test_the_prompt_opens_the_thought(text: str, reasoning: str, content: str, calls: served.ToolCalls) -> None:
    """As templates do that write the tag themselves; a model that writes it once more is forgiven."""
    ids = served.tokenizer().encode("<|im_start|>assistant\n<think>\n", add_special_tokens=False)
    if text.lstrip().startswith("<think>"):
        for inside in (text, text.lstrip().removeprefix("<think>")):
            turn = every_way(inside, served.adjusted(served.chat(), reasoning=OURS), tuple(ids))
            assert (turn.reasoning, turn.content, turn.calls) == (reasoning, content, calls)


@pytest.mark.parametrize("text", ["Hello.", CALL, "hm</think>Hello.", "<think>hm</think>Hello."])
def test_the_prompt_closes_the_thought(text: str) -> None:
    """As templates do where thinking is switched off: everything is said."""
    ids = served.tokenizer().encode("<|im_start|>assistant\n<think>\n\n</think>\n\n", add_special_tokens=False)
    turn = every_way(text, served.adjusted(served.chat(), reasoning=OURS), tuple(ids))
    assert turn.reasoning == ""
    assert turn.content == ("" if text == CALL else text)
    assert turn.calls == (CALLS if text == CALL else [])


@pytest.mark.parametrize(
    "prompt",
    [
        "<|im_start|>user\nWhat does <think> mean?<|im_end|>\n<|im_start|>assistant\n",
        "<|im_start|>assistant\n<think>hm</think>Hi<|im_end|>\n<|im_start|>user\nAnd?<|im_end|>\n<|im_start|>assistant\n",
        "<|im_start|>user\n</think><|im_end|>\n<|im_start|>assistant\n",
    ],
)
def test_tags_in_earlier_messages_mean_nothing(prompt: str) -> None:
    ids = tuple(served.tokenizer().encode(prompt, add_special_tokens=False))
    request = served.adjusted(served.chat(), reasoning=OURS)
    assert every_way("Hello.", request, ids).content == "Hello."
    assert every_way("<think>hm</think>Hello.", request, ids).reasoning == "hm"


def test_the_answer_goes_on_with_a_thought() -> None:
    """``continue_final_message``: the prompt ends in the middle of one."""
    ids = tuple(served.tokenizer().encode("<|im_start|>assistant\n<think>I was", add_special_tokens=False))
    turn = every_way(" here.</think>Hello.", served.adjusted(served.chat(), reasoning=OURS), ids)
    assert (turn.reasoning, turn.content) == (" here.", "Hello.")


@BY_ROW
def test_without_a_tool_parser(text: str, reasoning: str, content: str, calls: served.ToolCalls) -> None:
    """A server without ``--tool-call-parser``: the markers are hidden by the detokenizer, or what was asked for."""
    served.load()
    parser = ParserManager.get_parser(reasoning_parser_name=OURS)
    assert parser is not None
    request = served.chat(tools=None)
    bare = text.replace(S, "").replace(E, "")
    thoughts, said, calls_found = parser(served.tokenizer(), None).parse(bare, request, enable_auto_tools=False)
    assert not calls_found
    assert bare in (
        "".join((before, thoughts or "", after, said or ""))
        for before in ("", "<think>", "\n<think>")
        for after in ("", "</think>")
    )
    for pieces in cuttings(bare):
        one, turn = parser(served.tokenizer(), None), served.Turn()
        pieces = pieces or [""]
        for number, piece in enumerate(pieces):
            message = one.parse_delta(piece, [1], request, prompt_token_ids=[0], finished=number == len(pieces) - 1)
            if message is not None:
                turn.content += message.content or ""
                turn.reasoning += message.reasoning or ""
        assert (turn.reasoning, turn.content) == (thoughts or "", said or ""), pieces


@APIS
@pytest.mark.parametrize("tools", [True, False])
def test_none(api: Any, tools: bool) -> None:
    """``tool_choice="none"``, the default without tools: the thought, and the text without its markers."""
    request = served.adjusted(api(tool_choice="none", **({} if tools else {"tools": None})), reasoning=OURS)
    assert request.skip_special_tokens is not False
    turn = every_way("<think>hm</think>Look. " + CALL, request)
    assert (turn.reasoning, turn.content, turn.calls) == ("hm", "Look. [get_weather(city='Paris')]", [])


@APIS
@pytest.mark.parametrize("asked", [None, True, False])
def test_special_tokens_in_thoughts(api: Any, asked: bool | None) -> None:
    """Let through for the markers' sake, they reach only those who asked for them."""
    fields = {} if asked is None else {"skip_special_tokens": asked}
    request = served.adjusted(api(**fields), reasoning=OURS)
    turn = every_way(f"<think>A<|im_end|>B{E}C<|pad</think>D<|im_end|>{CALL}", request)
    if asked is False:
        assert (turn.reasoning, turn.content) == (f"A<|im_end|>B{E}C<|pad", "D<|im_end|>")
    else:
        assert (turn.reasoning, turn.content) == ("ABC<|pad", "D")
    assert turn.calls == CALLS


def test_thoughts_are_not_wanted() -> None:
    request = served.adjusted(served.chat(include_reasoning=False), reasoning=OURS)
    for pieces in cuttings("<think>hm</think>Look.\n" + CALL):
        turn = served.streamed(pieces, request, reasoning=OURS)
        assert (turn.reasoning, turn.content, turn.calls) == ("", "Look.", CALLS)


def test_a_thought_comes_as_it_is_written() -> None:
    request = served.adjusted(served.chat(), reasoning=OURS)
    pieces = ["<think>", "A", " b", "\n", "c", "</think>", "D", CALL, "e"]
    turn = served.streamed(pieces, request, reasoning=OURS)
    said = [
        chunk.get("reasoning") or chunk.get("content") or chunk["tool_calls"][0]["function"] for chunk in turn.chunks
    ]
    assert said == ["A", " b", "\n", "c", "D", {"name": "get_weather", "arguments": '{"city": "Paris"}'}, "\ne"]


def test_the_cases() -> None:
    """A sample of the contract's cases, behind a thought, without one, and straight from one."""
    from tests.plugin.test_cases import SERVED, complete, expected, tools_of

    for case in [case for case in SERVED if case["format"] == "lfm2"][::9]:
        asked = served.adjusted(served.chat(tools_of(case)), reasoning=OURS)
        heads = ["<think>hm</think>", ""] + (["<think>hm"] if case["input"].startswith(S) else [])
        for head in heads:
            for pieces in ([head, *case["input"]], [head + case["input"]]):
                turn = served.streamed(pieces, asked, reasoning=OURS)
                assert complete(turn.calls) == expected(case), (case["id"], head)
                assert turn.content == case["content"], (case["id"], head)
                assert turn.reasoning == ("hm" if head else "")
            turn = served.whole(head + case["input"], asked, reasoning=OURS)
            assert (turn.calls, turn.content.strip()) == (expected(case), case["content"].strip())


# --- what the engine asks


def reasoner(**template: Any) -> Any:
    served.load()
    return ReasoningParserManager.get_reasoning_parser(OURS)(served.tokenizer(), chat_template_kwargs=template)


def ids(text: str) -> list[int]:
    return list(served.tokenizer().encode(text, add_special_tokens=False))


@pytest.mark.parametrize(
    ("prompt", "over"),
    [
        ("<|im_start|>user\nhi<|im_end|>\n<|im_start|>assistant\n", True),
        ("<|im_start|>user\n<think><|im_end|>\n<|im_start|>assistant\n", True),
        ("<|im_start|>assistant\n<think>", False),
        ("<|im_start|>assistant\n<think>\n", False),
        ("<|im_start|>assistant\n<think>I was", False),
        ("<|im_start|>assistant\n<think>\n\n</think>\n\n", True),
        ("", True),
    ],
)
def test_where_a_grammar_holds(prompt: str, over: bool) -> None:
    assert reasoner().is_reasoning_end(ids(prompt)) is over


@pytest.mark.parametrize(
    ("before", "delta", "over"),
    [
        ("<think>hm", "</think>", True),
        ("<think>hm", " hm", False),
        ("<think>hm", "</think>[f", True),
        ("<think>hm ", S, True),
        ("<think>hm `", S, False),
        ("<think>hm", "`" + S + "`", False),
        ("<think>hm", " " + S + "[", True),
        ("<think>", S, True),
    ],
)
def test_where_an_open_thought_ends(before: str, delta: str, over: bool) -> None:
    parser, all_ids, new = reasoner(), ids(before + delta), ids(delta)
    assert parser.is_reasoning_end_streaming(all_ids, new) is over
    assert parser.is_reasoning_end_streaming(all_ids, iter(new)) is over
    steps = [
        parser.is_reasoning_end_streaming(all_ids[: len(all_ids) - len(new) + at + 1], [new[at]])
        for at in range(len(new))
    ]
    assert any(steps) is over
    assert parser.is_reasoning_end_streaming(ids(before), []) is False


def test_ids_of_the_thought() -> None:
    parser = reasoner()
    thought, said = ids("<think>hm hm"), ids("Hello.")
    assert parser.extract_content_ids([*thought, *ids("</think>"), *said]) == said
    assert parser.extract_content_ids([*thought, *ids(CALL)]) == ids(CALL)
    assert parser.extract_content_ids(thought) == []
    assert parser.count_reasoning_tokens([*thought, *ids("</think>"), *said]) == len(ids("hm hm"))
    assert parser.count_reasoning_tokens([*ids("\n"), *thought, *ids(CALL)]) == len(ids("hm hm"))
    assert parser.count_reasoning_tokens(thought) == len(ids("hm hm"))
    assert parser.count_reasoning_tokens(ids("I like <think>hm</think>")) == parser.count_reasoning_tokens(said) == 0
    assert parser.is_reasoning_end(ids("<|im_start|>assistant\n<think>")) is False
    assert parser.count_reasoning_tokens(ids("hm hm</think>Hello.")) == len(ids("hm hm"))
    assert (parser.reasoning_start_str, parser.reasoning_end_str) == ("<think>", "</think>")


# --- grammars


@APIS
@pytest.mark.parametrize("choice", ["required", "named"])
def test_forced_calls_may_follow_a_thought(api: Any, choice: str) -> None:
    from tests.plugin.test_constrained import NO_CITY, PARIS, WEATHER, accepts, block, named, tag_of

    fields = {"tool_choice": named(api, "get_weather") if choice == "named" else choice}
    tag = tag_of(served.adjusted(api([WEATHER], **fields), reasoning=OURS))
    assert tag is not None
    for good in (
        block(PARIS),
        "<think>I <b>think</b> so.\n</think>\n\n" + block(PARIS),
        "<think></think>" + block(PARIS),
    ):
        assert accepts(tag, good), good
    for bad in ("<think>hm", "<think>hm</think>", "hm</think>" + block(PARIS), "<think>hm</think>" + block(NO_CITY)):
        assert not accepts(tag, bad), bad
    assert not accepts(tag, f"<think>hm{block(PARIS)}</think>{block(PARIS)}"), "a call outside the grammar"


@APIS
@pytest.mark.parametrize("option", [{"enable_thinking": False}, {"thinking": False}, {"reasoning_effort": "none"}])
def test_no_thought_where_it_is_switched_off(api: Any, option: dict[str, Any]) -> None:
    from tests.plugin.test_constrained import PARIS, WEATHER, accepts, block, tag_of

    parser = served.parser_class(reasoning=OURS)
    request = api([WEATHER], tool_choice="required")
    adjusted = parser(served.tokenizer(), request.tools, chat_template_kwargs=option).adjust_request(request)
    tag = tag_of(adjusted)
    assert tag is not None
    assert accepts(tag, block(PARIS))
    assert not accepts(tag, "<think>hm</think>" + block(PARIS))


@APIS
def test_strict_calls_from_the_first_token_on(api: Any) -> None:
    """With ``auto`` any text may stand before a call, a thought too; a call in it keeps to the schema."""
    from tests.plugin.test_constrained import NO_CITY, PARIS, accepts, block, tag_of

    strict = served.tool("get_weather", "city", strict=True, required=["city"], additionalProperties=False)
    tag = tag_of(served.adjusted(api([strict]), reasoning=OURS))
    assert tag is not None
    for before in ("", "Look: ", "<think>hm</think>", "<think>hm "):
        assert accepts(tag, before + block(PARIS))
        assert not accepts(tag, before + block(NO_CITY))
    assert accepts(tag, "<think>hm</think>Hello.")


@APIS
def test_one_call_behind_a_thought(api: Any) -> None:
    from tests.plugin.test_constrained import PARIS, WEATHER, accepts, block, tag_of

    tag = tag_of(served.adjusted(api([WEATHER], tool_choice="required", parallel_tool_calls=False), reasoning=OURS))
    assert tag is not None
    for before in ("", "<think>hm</think>"):
        assert accepts(tag, before + block(PARIS))
        assert not accepts(tag, before + block(PARIS, PARIS))
