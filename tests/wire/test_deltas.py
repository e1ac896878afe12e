"""Events as deltas: one piece for each call of a batch, and the first of a call says what it is."""

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st

from lfm2_fixed import PythonicStream, collect
from lfm2_fixed.core.events import ArgumentsDelta, CallAborted, CallEnd, CallStart, Content
from lfm2_fixed.wire.deltas import Piece, as_dict, gather
from tests.support.harness import random_cut

S, E = "<|tool_call_start|>", "<|tool_call_end|>"


def test_a_batch() -> None:
    events = [
        Content("a"),
        ArgumentsDelta(3, "x"),
        ArgumentsDelta(3, '"}'),
        CallEnd(3),
        CallStart(4, "f"),
        ArgumentsDelta(4, '{"a": '),
        ArgumentsDelta(4, "1"),
        CallAborted(4, "malformed"),
        Content("\nb"),
    ]
    assert gather(events) == ("a\nb", [Piece(3, None, 'x"}'), Piece(4, "f", '{"a": 1')])
    assert gather([]) == gather([CallEnd(0)]) == ("", [])


def test_what_a_piece_says() -> None:
    assert as_dict(Piece(1, None, "x")) == {"index": 1, "function": {"arguments": "x"}}
    first, other = (as_dict(Piece(0, "f", "{")) for _ in range(2))
    assert first.pop("id").startswith("chatcmpl-tool-")
    assert first == {"index": 0, "type": "function", "function": {"name": "f", "arguments": "{"}}
    assert other["id"] != as_dict(Piece(0, "f", "{"))["id"]


@settings(max_examples=max(100, settings.default.max_examples // 20))
@given(
    st.lists(
        st.sampled_from(
            [f"{S}[f(a='x y')]{E}", f"{S}[f(), g(b=[1])]{E}", f"{S}[f(a=1), g(b=h())]{E}", "text ", f"{S}[f("]
        )
    ).map("".join),
    st.randoms(use_true_random=False),
)
def test_the_pieces_are_what_the_events_say(text: str, rng) -> None:
    stream = PythonicStream()
    batches = [*map(stream.feed, random_cut(text, rng)), stream.finish()]
    names: dict[int, str] = {}
    arguments: dict[int, str] = {}
    content = ""
    for batch in batches:
        said, pieces = gather(batch)
        content += said
        assert len({piece.index for piece in pieces}) == len(pieces)
        for piece in pieces:
            assert (piece.name is not None) is (piece.index not in names)
            names.setdefault(piece.index, piece.name or "")
            arguments[piece.index] = arguments.get(piece.index, "") + piece.arguments
    result = collect(event for batch in batches for event in batch)
    assert content == result.content
    complete = {event.index for batch in batches for event in batch if isinstance(event, CallEnd)}
    assert [(names[i], arguments[i]) for i in sorted(complete)] == [(c.name, c.arguments) for c in result.calls]
