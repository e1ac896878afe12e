"""How long ``lfm2-fixed check`` takes: 10 MB of capture, of several kinds.

usage: python benchmarks/replay.py [MEGABYTES]        needs: pip install '.[tools]'

CPU seconds of this process, and as a multiple of reading the same capture once.
"""

from __future__ import annotations

import argparse
import json
import random
import time
from typing import Any

from lfm2_fixed.check.replay import cut_everywhere, read_stream


def frame(arguments: str, **more: Any) -> str:
    entry = {"index": 0, "function": {"arguments": arguments}}
    choice = {"index": 0, "delta": {"tool_calls": [entry]}, "logprobs": None, "finish_reason": None}
    head = {"id": "chatcmpl-0123456789abcdef", "object": "chat.completion.chunk", "created": 1, "model": "LFM2.5"}
    return json.dumps({**head, "choices": [choice], **more}, ensure_ascii=False)


def capture(kind: str, size: int) -> bytes:
    """A stream of about this many bytes."""
    source = random.Random(1)
    words = [" the", '{"a": ', '"x"', " café", "\\n", "import", " 😀", " matplotlib"]
    parts: list[bytes] = []
    length = 0
    while length < size:
        if kind == "tokens":
            data = frame(source.choice(words) * source.randint(1, 2))
        elif kind == "no two events alike":
            data = frame("".join(source.choice("aé€😀") for _ in range(source.randint(10, 60))))
        elif kind == "events of 64 KB":
            data = frame("x" * source.randint(60_000, 70_000))
        else:
            data = frame("x" * size)
        parts.append(f"data: {data}\n\n".encode())
        length += len(parts[-1])
    return b"".join(parts)


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("megabytes", type=float, nargs="?", default=10)
    size = int(parser.parse_args().megabytes * 1_000_000)
    for kind in ("tokens", "no two events alike", "events of 64 KB", "one event"):
        data = capture(kind, size)
        begin = time.process_time()
        events = len(read_stream(data).events)
        once = time.process_time() - begin
        begin = time.process_time()
        found = cut_everywhere(data)
        spent = time.process_time() - begin
        assert found.offsets == len(data)
        print(
            f"{kind:20} {len(data) / 1e6:5.1f} MB, {events:6,} events, {found.kinds:6,} kinds of cut: "
            f"read once {once:5.2f} s, cut everywhere {spent:5.2f} s ({spent / once:5.1f} times)",
            flush=True,
        )


if __name__ == "__main__":
    main()
