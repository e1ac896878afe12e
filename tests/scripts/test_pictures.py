"""The README's pictures show what is true.  (What vLLM's own parsers make of it: tests/plugin/test_pictures.py.)"""

from __future__ import annotations

import pictures

from lfm2_fixed.repro.readers import WAYS, EngineFree, read


def test_the_badges_are_true() -> None:
    assert pictures.stale(terminal=False) == []


def test_ours_is_drawn_as_it_is() -> None:
    lines = pictures.text_of(pictures.REPRO.read_text(encoding="utf-8"))
    for command in pictures.COMMANDS:
        assert "$" + "".join(command.split()) in lines
        payloads, _ = pictures.chosen(command)
        assert payloads
        for payload in payloads:
            marks = ["ok" if outcome.matches(payload) else "NO" for outcome in read(EngineFree(), payload).values()]
            assert len(marks) == len(WAYS)
            rows = [line for line in lines if line.startswith(payload.id) and not line.startswith(f"{payload.id}:")]
            assert len(rows) == 1 and rows[0].endswith("".join(marks)), payload.id
        assert f"ours(inthesamevLLM):{len(payloads)}of{len(payloads)}payloadsrightineveryway" in lines
