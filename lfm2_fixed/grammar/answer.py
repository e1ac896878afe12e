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
from .lexemes import LARK
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
    return None if request is None else _build(request, thought, GBNF, ())


def lark(
    tools: Iterable[Any] | None,
    tool_choice: Any = "auto",
    *,
    dialect: str = "lfm2",
    token_ids: Mapping[str, int] | None = None,
    parallel: bool = True,
    thought: Thought = "none",
) -> str | None:
    """The same for llguidance: vLLM's ``structured_outputs.grammar`` where its backend is *guidance*.

    ``token_ids``: what of the family's markers, ``<think>`` and ``</think>`` is one token of the tokenizer (a whole
    vocabulary will do).  No text stands for such a token there, if it is special or was added to the vocabulary; so
    those that are not named have to be text for the tokenizer, too.
    """
    request = asked(tools, tool_choice, dialect=dialect, parallel=parallel)
    if request is None:
        return None
    known = token_ids or {}
    tokens = tuple((mark, f"<[{known[mark]}]>") for mark in marks(dialect) if mark in known)
    return _build(request, thought, LARK, tokens)


def marks(dialect: str) -> tuple[str, ...]:
    """What :func:`lark` names for this family that may be a token of its own."""
    row = DIALECTS[dialect]
    # Where markers are text, a vocabulary may hold them all the same: the model need not write that token.
    return (OPEN, CLOSE, *((row.start, row.ends[0]) if row.needs_markers and row.markers_are_tokens else ()))


@lru_cache(maxsize=64)
def _build(asked: Asked, thought: Thought, notation: Notation, tokens: tuple[tuple[str, str], ...]) -> str:
    calls = Calls(asked, notation)
    row = DIALECTS[asked.dialect]
    known = dict(tokens)
    if not asked.forced:
        return calls.rules.text(_free(calls, row, known, parallel=asked.parallel))
    answer = calls.rules.one_of(f"{BLANKS} {_block(calls, row, known, parallel=asked.parallel)}")
    if thought == "none":
        return calls.rules.text(answer)
    # A call that must keep to the grammar is written where there is one: no marker in the thought.
    never: dict[str, str | None] = {} if row.start in known else {row.start: None}
    if CLOSE in known:  # spelled out it would end the thought for who reads the text
        rest = f"{text(calls.rules, {CLOSE: None, **never}, may_end=True)} {known[CLOSE]} {answer}"
    else:
        rest = text(calls.rules, {CLOSE: answer, **never}, may_end=False)
    return calls.rules.text(rest if thought == "open" else f"({known.get(OPEN, literal(OPEN))} {rest} | {answer})")


def _free(calls: Calls, row: Dialect, known: Mapping[str, str], *, parallel: bool) -> str:
    """Free text in which calls begin where the family's do, and tags that are tokens stand anywhere."""
    tags = " | ".join(known[tag] for tag in (OPEN, CLOSE) if tag in known)
    if row.start not in known:
        said = _text_with_calls(calls, row, parallel=parallel)
        if not tags:
            return said
        before = said if parallel else text(calls.rules, dict.fromkeys(_triggers(calls, row)), may_end=True)
        return f"({before} ({tags}))* {said}"
    # Spelled out, the marker would begin a call for who reads the text.
    said = text(calls.rules, {row.start: None}, may_end=True)
    block = _block(calls, row, known, parallel=parallel)
    if parallel:
        return f"({said} ({f'{tags} | ' if tags else ''}{block}))* {said}"
    return f"{f'({said} ({tags}))* ' if tags else ''}{said} ({block})?"


def _list(calls: Calls, row: Dialect, *, parallel: bool) -> str:
    """Calls, with what stands around and between them."""
    one = calls.rules.one_of(calls.any())
    edge = [EDGE] if "\n" in row.separator else []
    more = [f"({literal(row.separator)} {one})*"] if parallel else []
    return " ".join([*edge, literal(row.opener), one, *more, literal(row.closer), *edge])


def _block(calls: Calls, row: Dialect, known: Mapping[str, str], *, parallel: bool) -> str:
    """A list with its markers, where the family writes any."""
    listed = _list(calls, row, parallel=parallel)
    if not row.needs_markers:
        return listed
    start, end = (known.get(marker, literal(marker)) for marker in (row.start, row.ends[0]))
    return f"{start} {listed} {end}"


def _triggers(calls: Calls, row: Dialect) -> list[str]:
    """Where calls begin in text: at the marker, or at ``[name(`` of a declared tool."""
    return [row.start] if row.needs_markers else [f"{row.opener}{name}(" for name in calls.arguments]


def _text_with_calls(calls: Calls, row: Dialect, *, parallel: bool) -> str:
    """Free text in which calls begin where the family's do."""
    rules = calls.rules
    again, _ = rules.reserve("text with calls")
    onward = again if parallel else ""
    if row.needs_markers:
        behind = [f"{_list(calls, row, parallel=parallel)} {literal(row.ends[0])} {onward}"]
    else:
        more = f"({SEPARATOR} {rules.one_of(calls.any())})*" if parallel else ""
        behind = [f"{arguments} {more} {literal(row.closer)} {onward}" for arguments in calls.arguments.values()]
    rests = [rules.one_of(rest.strip()) for rest in behind]
    rules.define(again, [text(rules, dict(zip(_triggers(calls, row), rests)), may_end=True)])
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
