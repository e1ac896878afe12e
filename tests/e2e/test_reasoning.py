"""Behind ``--reasoning-parser qwen3`` with ``--stream-interval 5``: several tokens in one delta."""

from __future__ import annotations

import pytest
from build_model import real_tokenisations
from rig import Server, serve_venv
from tokenizers import Tokenizer

from lfm2_fixed import parse
from lfm2_fixed.repro.payloads import PAYLOADS
from lfm2_fixed.repro.turns import TOOLS, Payload
from tests.support.turns import END, START, both, streamed, wanted, whole

THINKING = "<think>I should call <tool>.\nOr not: [f(x='1')].</think>"
REASONING = "I should call <tool>.\nOr not: [f(x='1')]."


@pytest.mark.parametrize("payload", [p for p in PAYLOADS if p.dialect == "lfm2"][::3], ids=lambda payload: payload.id)
def test_payload(reasoning: Server, payload: Payload) -> None:
    turn = both(reasoning, THINKING + payload.text)
    assert turn.reasoning == REASONING
    assert turn.calls == wanted(*payload.calls)
    assert turn.content == payload.content
    assert turn.finish_reason == ("tool_calls" if payload.calls else "stop")


@pytest.mark.parametrize("gap", ["", "\n\n", " "])
def test_blanks_between_thinking_and_call(reasoning: Server, gap: str) -> None:
    [turn] = streamed(reasoning, f"{THINKING}{gap}{START}[bash(command='ls')]{END}")
    [answer] = whole(reasoning, f"{THINKING}{gap}{START}[bash(command='ls')]{END}")
    assert turn.calls == answer.calls == wanted(("bash", {"command": "ls"}))
    assert turn.content.strip() == answer.content.strip() == ""
    assert turn.reasoning == answer.reasoning == REASONING


def test_calls_in_one_delta(reasoning: Server) -> None:
    """Five tokens a delta: small calls come several at a time, with content."""
    script = f"{THINKING}a{START}[bash()]{END}b{START}[bash(), bash()]{END}c"
    turn = both(reasoning, script)
    assert turn.calls == wanted(("bash", {}), ("bash", {}), ("bash", {}))
    assert turn.content == "a\nb\nc"


# Of a second </think>, vLLM's reasoning parser itself makes two things: text in a stream, nothing in a whole answer.
ONE_THOUGHT = [pieces for pieces in real_tokenisations() if pieces.count("</think>") <= 1]


@pytest.mark.parametrize("pieces", ONE_THOUGHT, ids=lambda pieces: "".join(pieces[-9:])[:40])
def test_real_tokenisation(reasoning: Server, pieces: list[str]) -> None:
    """Turns in exactly the tokens of a real LFM2.5 tokenizer."""
    thinking, _, answer = "".join(pieces).rpartition("</think>")
    if not thinking:
        pieces = ["<think>", "</think>", *pieces]
    turn = both(reasoning, _ids(pieces))
    expected = parse(answer, "lfm2", TOOLS)
    assert turn.calls == [(call.name, call.arguments) for call in expected.calls]
    assert turn.content == expected.content
    assert len(turn.calls) == answer.count("(") * (START in answer)


def _ids(pieces: list[str]) -> list[int]:
    """The served model's ids of these tokens."""
    tokenizer = Tokenizer.from_file(str(serve_venv() / "model-lfm2" / "tokenizer.json"))
    vocabulary = tokenizer.get_vocab()
    ids = []
    for piece in pieces:
        as_bytes = "".join(part for part, _ in tokenizer.pre_tokenizer.pre_tokenize_str(piece))
        ids.append(vocabulary[piece] if piece in vocabulary else vocabulary[as_bytes])
    assert tokenizer.decode(ids, skip_special_tokens=False) == "".join(pieces)
    return ids
