"""The gate without any client package: a plain loop over the lines that a server streams.

usage: gate_plain.py URL MODEL QUESTION        (URL: http://localhost:8000/v1/chat/completions)
needs lfm2-fixed with its extra [tools]
"""

from __future__ import annotations

import json
import sys
import urllib.request
from collections.abc import Iterator
from typing import Any

from gate_tools import TOOLS

from lfm2_fixed.gate import CallsRefused, Gate, VerifiedCall
from lfm2_fixed.wire.sse import SSEDecoder


def chunks(url: str, body: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """The chunks of a streamed answer."""
    request = urllib.request.Request(url, json.dumps(body).encode(), {"Content-Type": "application/json"})
    decoder = SSEDecoder()
    with urllib.request.urlopen(request, timeout=120) as response:
        while piece := response.read1(65536):
            for event in decoder.feed(piece):
                if event.data != "[DONE]":
                    yield json.loads(event.data)


def verified_calls(url: str, model: str, question: str, *, tries: int = 3) -> list[VerifiedCall]:
    """Ask until the calls of an answer are right; a refused answer is sent back with the reasons."""
    gate = Gate(TOOLS)
    messages: list[Any] = [{"role": "user", "content": question}]
    for _ in range(tries):
        gate.reset()
        for chunk in chunks(url, {"model": model, "messages": messages, "tools": TOOLS, "stream": True}):
            gate.feed(chunk)
        try:
            return gate.calls()
        except CallsRefused as refused:
            messages += refused.messages()
    raise RuntimeError(f"no valid calls in {tries} answers")


if __name__ == "__main__":
    if len(sys.argv) != 4:
        sys.exit(__doc__)
    try:
        for verified in verified_calls(*sys.argv[1:]):
            print(verified.name, json.dumps(verified.arguments))
    except (OSError, RuntimeError) as error:
        sys.exit(f"{sys.argv[1]}: {error}")
