"""What is asked of an upstream, and what its client is told where it does not answer."""

from __future__ import annotations

from typing import Any

import httpx
import pytest

from lfm2_fixed.proxy import Settings
from lfm2_fixed.proxy.exchange import Exchange
from lfm2_fixed.proxy.upstream import Upstream

SETTINGS = Settings("http://127.0.0.1:1", read_timeout=1.5)


@pytest.mark.parametrize(
    ("error", "begun", "status", "kind", "words"),
    [
        (httpx.ConnectTimeout(""), False, 504, "upstream_timeout", "did not accept a connection in time"),
        (httpx.ReadTimeout(""), False, 504, "upstream_timeout", "was silent for 1.5 s"),
        (httpx.ConnectError("refused"), False, 502, "upstream_unreachable", "(refused)"),
        (httpx.RemoteProtocolError(""), False, 502, "upstream_error", "without an answer"),
        (httpx.RemoteProtocolError(""), True, 502, "upstream_error", "in the middle of its answer"),
    ],
)
def test_why_there_is_no_answer(error: Any, begun: bool, status: int, kind: str, words: str) -> None:
    said = Upstream(SETTINGS)._failure(error, begun=begun)
    assert (said.status, said.kind) == (status, kind) and words in said.message


@pytest.mark.parametrize(("query", "target"), [(b"", b"/v1/a%20b"), (b"x=1&y", b"/v1/a%20b?x=1&y")])
def test_the_target_is_passed_on_as_it_came(query: bytes, target: bytes) -> None:
    scope = {"method": "GET", "path": "/v1/a b", "raw_path": b"/v1/a%20b", "query_string": query, "headers": []}
    nothing: Any = None
    assert Exchange(scope, nothing, nothing, SETTINGS).target == target
