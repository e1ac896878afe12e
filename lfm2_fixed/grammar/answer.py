"""A whole answer as one grammar, in llama.cpp's GBNF or in llguidance's Lark: the calls, and the text around them.

GBNF has no triggers.  Text in which something begins at a marker is an automaton here (Aho and Corasick's): its
state is how much of a marker stands at the end so far, and behind a whole marker comes what has to follow it.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import lru_cache
from typing import Any, Literal

from ..core.dialects import DIALECTS, Dialect
from ..core.reasoning import CLOSE, OPEN
from .asked import Asked, asked
from .calls import Calls
from .charsets import chars, complement
from .lexemes import LARK, TEXT, TO_CLOSE
from .notation import GBNF, Notation
from .rules import SEPARATOR, Rules, char_class, literal
from .tag import BLANKS, EDGE

Thought = Literal["none", "possible", "open"]
"""Whether a forced answer may have a thought before its calls: none; one, from ``<think>`` to ``</think>``; or it
begins inside of one, because the chat template has written ``<think>``."""


def gbnf(
    tools: Iterable[Any] | None,
    tool_choice: Any = "auto",
    *,
    dialect: str = "lfm2",
    parallel: bool = True,
    thought: Thought = "none",
) -> str | None:
    """The grammar of the answer to a request, for llama.cpp's ``grammar``; None where nothing is to be constrained.

    Args, errors and what is guaranteed: see :func:`~.tag.structural_tag`.  ``thought`` makes a difference only where
    a call is forced; other text may hold a thought anyway.  Markers are matched as text, which the special tokens are
    for llama.cpp, too.
    """
    request = asked(tools, tool_choice, dialect=dialect, parallel=parallel)
    return None if request is None else _build(request, thought if request.forced else "none", GBNF)


def lark(
    tools: Iterable[Any] | None,
    tool_choice: Any = "auto",
    *,
    dialect: str = "lfm2",
    parallel: bool = True,
    thought: Thought = "none",
    thought_tokens: bool = False,
) -> str | None:
    """The same for llguidance: vLLM's ``structured_outputs.grammar`` where its backend is *guidance*.

    The family's markers are symbols there where they are special tokens, which no text stands for.  ``thought_tokens``:
    so are ``<think>`` and ``</think>``.  llguidance takes every added token of that form for a special one, whatever the
    tokenizer says, and refuses a symbol that is no token.
    """
    request = asked(tools, tool_choice, dialect=dialect, parallel=parallel)
    if request is None:
        return None
    return _build(request, thought if request.forced else "none", LARK, thought_tokens)


@lru_cache(maxsize=64)
def _build(asked: Asked, thought: Thought, notation: Notation, thought_tokens: bool = False) -> str:
    calls = Calls(asked, notation)
    rules = calls.rules
    row = DIALECTS[asked.dialect]
    symbols = notation is LARK and row.needs_markers and row.markers_are_tokens
    if not asked.forced and not symbols:
        return rules.text(_text_with_calls(calls, row, parallel=asked.parallel))
    block = _block(calls, row, parallel=asked.parallel, symbols=symbols)
    if not asked.forced:
        between = f"({TEXT} | {OPEN} | {CLOSE})*" if thought_tokens else f"{TEXT}?"
        return rules.text(f"({between} {block})* {between}" if asked.parallel else f"{between} ({block})?")
    answer = rules.one_of(f"{BLANKS} {block}")
    if thought == "none":
        return rules.text(answer)
    if thought_tokens:
        rest = f"{TEXT}? {CLOSE} {answer}"
        return rules.text(rest if thought == "open" else f"({OPEN} {rest} | {answer})")
    rest = f"{TO_CLOSE} {answer}" if symbols else text(rules, {CLOSE: answer, row.start: None}, may_end=False)
    return rules.text(rest if thought == "open" else f"({literal(OPEN)} {rest} | {answer})")


def _list(calls: Calls, row: Dialect, *, parallel: bool) -> str:
    """Calls, with what stands around and between them."""
    one = calls.rules.one_of(calls.any())
    edge = [EDGE] if "\n" in row.separator else []
    more = [f"({literal(row.separator)} {one})*"] if parallel else []
    return " ".join([*edge, literal(row.opener), one, *more, literal(row.closer), *edge])


def _block(calls: Calls, row: Dialect, *, parallel: bool, symbols: bool) -> str:
    """A list with its markers, where the family writes any; ``symbols``: as the grammar's symbols for the tokens."""
    listed = _list(calls, row, parallel=parallel)
    if symbols:
        return f"{row.start} {listed} {row.ends[0]}"
    return f"{literal(row.start)} {listed} {literal(row.ends[0])}" if row.needs_markers else listed


def _text_with_calls(calls: Calls, row: Dialect, *, parallel: bool) -> str:
    """Free text in which calls begin where the family's do: at the marker, or at ``[name(`` of a declared tool."""
    rules = calls.rules
    again, _ = rules.reserve("text with calls")
    onward = again if parallel else ""
    triggers: dict[str, str | None] = {}
    if row.needs_markers:
        listed = _list(calls, row, parallel=parallel)
        triggers[row.start] = rules.one_of(f"{listed} {literal(row.ends[0])} {onward}".strip())
    else:
        more = f"({SEPARATOR} {rules.one_of(calls.any())})*" if parallel else ""
        for name, arguments in calls.arguments.items():
            rest = rules.one_of(f"{arguments} {more} {literal(row.closer)} {onward}".strip())
            triggers[f"{row.opener}{name}("] = rest
    rules.define(again, [text(rules, triggers, may_end=True)])
    return again


def text(rules: Rules, triggers: Mapping[str, str | None], *, may_end: bool) -> str:
    """The expression for text that goes on, behind the first of the ``triggers`` in it, with what each one says.

    A trigger that says None cannot stand in the text.  ``may_end``: the text may end without any.  No trigger may
    begin another one, or stand inside it.
    """
    places = list(dict.fromkeys(["", *(word[:size] for word in triggers for size in range(1, len(word)))]))
    names = {place: rules.reserve(("text", *triggers.items(), may_end, place))[0] for place in places}
    alphabet = sorted({c for word in triggers for c in word})
    others = char_class(complement(chars("".join(alphabet))))
    for place, name in names.items():
        groups: dict[str, str] = {}
        for c in alphabet:
            written = place + c
            # The longest end of what was written that a trigger begins with, or is.
            at = next(at for at in range(len(written) + 1) if written[at:] in names or written[at:] in triggers)
            found = written[at:]
            after = triggers[found] if found in triggers else names[found]
            if after is not None:
                groups[after] = groups.get(after, "") + c
        alternatives = [literal("")] if may_end else []
        alternatives.append(f"{others} {names['']}")
        alternatives += [f"{char_class(chars(group))} {after}" for after, group in groups.items()]
        rules.define(name, alternatives, free=True)
    return names[""]
