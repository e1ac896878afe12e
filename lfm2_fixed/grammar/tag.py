"""Constrained tool calls in the model's own format: OpenAI tools to an xgrammar structural tag.

    <|tool_call_start|>[get_weather(city="Oslo", days=3), get_time(zone="CET")]<|tool_call_end|>

The tag makes a model write that list, and nothing that its tools' schemas do not allow.  The
envelope is made of xgrammar's formats, so that a server can wrap and limit it as it does its own;
everything inside the brackets is one grammar (:mod:`.calls`), so that tools share their rules.

A tag is plain data here, as it goes over the wire: xgrammar itself is not needed.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from copy import deepcopy
from functools import lru_cache
from typing import Any

from ..core.dialects import DIALECTS, Dialect
from ..core.reasoning import CLOSE, OPEN
from .asked import Asked, asked
from .calls import Calls
from .notation import EBNF, EBNF_WITHOUT_COUNTERS, Notation
from .rules import SEPARATOR, literal

Format = dict[str, Any]

BLANKS = "(" + " | ".join(" ".join(["[ \\n]"] * n) or '""' for n in range(5)) + ")"
"""What may stand before a forced list: models write blank lines after their reasoning.  Written out, and in a tag with
what comes next: a count would be a rule of its own, and leave it open for all words with a blank before them."""

EDGE = "[\\n]?"
"""Who writes a call a line may break the line beside the markers, too.  Without that, a newline behind the last call
would oblige the model to write another one."""


def structural_tag(
    tools: Iterable[Any] | None,
    tool_choice: Any = "auto",
    *,
    dialect: str = "lfm2",
    token_ids: Mapping[str, int] | None = None,
    parallel: bool = True,
    reasoning: bool = False,
    counters: bool = True,
) -> dict[str, Any] | None:
    """The structural tag for a request's tools.

    Args:
        tools: OpenAI tools, dicts or objects, in the Chat or the Responses shape; namespaces are
            flattened as vLLM does it (``<namespace>__<name>``), built-in tools are left out.
        tool_choice: ``"required"``: one call or more, of any tool.  A named function, as the request has
            it, or ``"forced"`` with that one tool: exactly one call of it.  ``"auto"`` or None: text, and
            calls where the model starts one.  ``"none"``: no tag.  The object for allowed tools is read too.
        dialect: a key of ``DIALECTS``.
        token_ids: ids of the tokenizer's special tokens by their text (a whole vocabulary will do).
            Without the sentinels' ids, and where a dialect's markers are no tokens, the tag has their text.
        parallel: whether there may be more than one call.
        reasoning: the constrained text begins with reasoning that ends with ``</think>``.
        counters: whether the xgrammar that will read it can bound a text by a counter (0.2.8 can).

    Returns:
        The tag as JSON has it, or None where nothing is to be constrained.

    Schemas hold for every call, except that with ``"auto"`` they hold for tools with ``strict: true``
    only; the arguments of others are any literals then.

    Raises:
        SchemaError: a schema that holds is no valid JSON Schema of an object.
        ValueError: an unknown dialect, or a choice of a tool that is not there.
    """
    request = asked(tools, tool_choice, dialect=dialect, parallel=parallel)
    if request is None:
        return None
    row = DIALECTS[dialect]
    # A vocabulary may hold a marker as an ordinary token: a model that writes it as text need not write that token.
    ids = token_ids or {} if row.markers_are_tokens else {}
    start, end = row.start, row.ends[0]
    known = (ids[start], ids[end]) if start in ids and end in ids else None
    tag = deepcopy(_build(request, known, EBNF if counters else EBNF_WITHOUT_COUNTERS))
    if reasoning:
        thought = {"type": "tag", "begin": "", "content": {"type": "any_text"}, "end": CLOSE}
        tag["format"] = _sequence([thought, tag["format"]])
    return tag


def after_thought(tag: Mapping[str, Any], dialect: str) -> dict[str, Any]:
    """The tag of an answer that is what ``tag`` says, or a thought (``<think>…</think>``) and then that.

    In the thought there is no start marker: a call that must keep to a grammar is written where there is one.
    """
    text = {"type": "any_text", "excludes": [DIALECTS[dialect].start]}
    thought = {"type": "tag", "begin": OPEN, "content": text, "end": CLOSE}
    return {**tag, "format": _sequence([{"type": "optional", "content": thought}, tag["format"]])}


@lru_cache(maxsize=64)
def _build(asked: Asked, ids: tuple[int, int] | None, notation: Notation) -> dict[str, Any]:
    calls = Calls(asked, notation)
    row = DIALECTS[asked.dialect]
    if not asked.forced and not row.needs_markers:
        return {"type": "structural_tag", "format": _grammar(_bare_lists_in_text(calls, row, parallel=asked.parallel))}
    one = {"type": "tag", "begin": "", "content": _grammar(calls.rules.text(calls.any())), "end": ""}
    parts: list[Format] = [
        # Some families write nothing around their calls, and xgrammar has no constant string that is empty.
        *({"type": "const_string", "value": opener} for opener in [row.opener] if opener),
        {
            "type": "tags_with_separator",
            "tags": [one],
            "separator": row.separator,
            "at_least_one": True,
            "stop_after_first": not asked.parallel,
        },
        *({"type": "const_string", "value": closer} for closer in [row.closer] if closer),
    ]
    if "\n" in row.separator:
        parts = [_grammar(f"root ::= {EDGE}"), *parts, _grammar(f"root ::= {EDGE}")]
    # What is known to come next keeps words with a blank before them out of the mask.  A marker that is a token has no
    # text: told that it has, the mask lets through what only begins like it (" <"), and the matcher refuses it.
    following = "" if ids else f" (={literal(row.start if row.needs_markers else row.opener)})"
    before = _grammar(f"root ::= {BLANKS}{following}")
    if not row.needs_markers:
        return {"type": "structural_tag", "format": _sequence([before, *parts])}
    begin: str | Format = row.start
    end: str | Format = row.ends[0]
    if ids is not None:
        begin, end = ({"type": "token", "token": number} for number in ids)
    block = {"type": "tag", "begin": begin, "content": _sequence(parts), "end": end}
    if asked.forced:
        found = _sequence([before, block])
    else:
        trigger: Format = {"type": "triggered_tags", "triggers": [begin]}
        if ids is not None:
            trigger = {"type": "token_triggered_tags", "trigger_tokens": [ids[0]]}
        found = {**trigger, "tags": [block], "stop_after_first": not asked.parallel}
    return {"type": "structural_tag", "format": found}


def _sequence(elements: list[Format]) -> Format:
    return {"type": "sequence", "elements": elements}


def _grammar(text: str) -> Format:
    return {"type": "grammar", "grammar": text}


def _bare_lists_in_text(calls: Calls, row: Dialect, *, parallel: bool) -> str:
    """Free text in which ``[name(`` of a declared tool begins a list.  (A bare bracket is ordinary text.)"""
    rules = calls.rules
    more = f"({SEPARATOR} {calls.any()})*" if parallel else ""
    triggers = []
    for name, arguments in calls.arguments.items():
        rest, _ = rules.reserve(("list after", name))
        rules.define(rest, [f"{arguments} {more} {literal(row.closer)}"])
        triggers.append(f"({literal(f'{row.opener}{name}(')}, {rest})")
    loop = "true" if parallel else "false"
    return rules.text(f"TagDispatch({', '.join(triggers)}, loop_after_dispatch={loop})")
