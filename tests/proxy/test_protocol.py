"""What is written of a body is what h11 writes, whether it is asked or not."""

from __future__ import annotations

from typing import Any

import h11
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lfm2_fixed.proxy.protocol import _Connection

REQUESTS = [
    b"GET / HTTP/1.1\r\nhost: x\r\n\r\n",
    b"GET / HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\r\n",
    b"HEAD / HTTP/1.1\r\nhost: x\r\n\r\n",
    b"GET / HTTP/1.0\r\n\r\n",
    b"POST / HTTP/1.1\r\nhost: x\r\ncontent-length: 1\r\n\r\nx",
]
DATA = st.binary(max_size=20).map(lambda data: h11.Data(data=data))
ANSWERS = [
    h11.Response(status_code=200, headers=[]),
    h11.Response(status_code=200, headers=[("content-length", "7")]),
    h11.Response(status_code=204, headers=[]),
    h11.InformationalResponse(status_code=100, headers=[]),
]
EVENTS = st.one_of(st.sampled_from([*ANSWERS, h11.EndOfMessage(), h11.ConnectionClosed()]), DATA)
TURNS = st.tuples(
    st.sampled_from(REQUESTS),
    st.sampled_from(ANSWERS),
    st.lists(DATA, max_size=6),
    st.lists(EVENTS, max_size=3),
)


def sent(connection: h11.Connection, turns: list[Any]) -> list[Any]:
    """What the connection writes for these events, each as bytes or the error's words, and its state behind it."""
    out: list[Any] = []
    for request, answer, data, more in turns:
        connection.receive_data(request)
        try:
            while connection.next_event() not in (h11.NEED_DATA, h11.PAUSED):
                pass
        except h11.RemoteProtocolError as error:
            out.append(str(error))
        for event in (answer, *data, *more):
            try:
                out.append(connection.send(event))
            except h11.LocalProtocolError as error:
                out.append(str(error))
            out.append((connection.our_state, connection.their_state))
        if connection.our_state is connection.their_state is h11.DONE:
            connection.start_next_cycle()
    return out


@settings(max_examples=max(50, settings.default.max_examples // 10))
@given(st.lists(TURNS, max_size=3))
def test_it_writes_what_h11_writes(turns: list[Any]) -> None:
    assert sent(_Connection(h11.SERVER), turns) == sent(h11.Connection(h11.SERVER), turns)


def test_the_middle_of_a_body_does_not_ask_h11(monkeypatch: pytest.MonkeyPatch) -> None:
    connection = _Connection(h11.SERVER)
    connection.receive_data(REQUESTS[0])
    connection.next_event()
    connection.send(ANSWERS[0])
    assert connection.send(h11.Data(data=b"abc")) == b"3\r\nabc\r\n"
    monkeypatch.setattr(h11.Connection, "send", None)
    assert connection.send(h11.Data(data=b"0123456789")) == b"a\r\n0123456789\r\n"


def test_a_body_without_a_head_is_refused_as_h11_refuses_it() -> None:
    with pytest.raises(h11.LocalProtocolError):
        _Connection(h11.SERVER).send(h11.Data(data=b"abc"))
