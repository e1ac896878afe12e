"""Constrained tool calls in the model's own format: OpenAI tools to an xgrammar structural tag.

    <|tool_call_start|>[get_weather(city="Oslo", days=3), get_time(zone="CET")]<|tool_call_end|>

The tag makes a model write that list, and nothing that its tools' schemas do not allow.  The
envelope is made of xgrammar's formats, so that a server can wrap and limit it as it does its own;
everything inside the brackets is one grammar (``grammar_rules``), so that tools share their rules.

xgrammar is imported when a tag is built: it comes with vLLM, and nothing else here needs it.
"""

from __future__ import annotations

import json
import logging
from collections.abc import Iterable, Mapping
from functools import lru_cache
from typing import Any, NamedTuple

from ..core import tools as declared
from ..core.cursor import is_name
from ..core.dialects import DIALECTS, Dialect
from . import patterns
from .notation import EBNF, EBNF_WITHOUT_COUNTERS
from .objects import NAME
from .rules import SEPARATOR, Rules, literal
from .schema import SchemaError
from .strings import unquoted
from .values import Values
from .work import REQUEST_STEPS, TooLarge, Work

__all__ = ["Function", "SchemaError", "functions", "structural_tag"]

_log = logging.getLogger("lfm2_fixed.grammar")

_BEFORE = "root ::= (" + " | ".join(" ".join(["[ \\n]"] * n) or '""' for n in range(5)) + ")"
"""What may stand before a forced list: models write blank lines after their reasoning.  Written out and with what
comes next, since a count in a rule of its own leaves it open for all words with a blank before them."""

_EDGE = "root ::= [\\n]?"

_reported: set[tuple[str, str, str]] = set()
_MAX_REPORTED = 10_000


class Function(NamedTuple):
    """One callable tool of a request."""

    name: str
    parameters: str | None
    """JSON text of the schema; None: the tool takes no arguments."""
    strict: bool


def structural_tag(
    tools: Iterable[Any] | None,
    tool_choice: Any = "auto",
    *,
    dialect: str = "lfm2",
    token_ids: Mapping[str, int] | None = None,
    parallel: bool = True,
    reasoning: bool = False,
) -> Any:
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

    Returns:
        An ``xgrammar.StructuralTag``, or None where nothing is to be constrained.

    Schemas hold for every call, except that with ``"auto"`` they hold for tools with ``strict: true``
    only; the arguments of others are any literals then.

    Raises:
        SchemaError: a schema that holds is no valid JSON Schema of an object.
        ValueError: an unknown dialect, or a choice of a tool that is not there.
    """
    if dialect not in DIALECTS:
        raise ValueError(f"unknown dialect {dialect!r}; known: {', '.join(DIALECTS)}")
    known = functions(tools)
    choice, known = _chosen(tool_choice, known)
    if not known or choice == "none":
        if choice in ("required", "forced"):
            raise ValueError("tool_choice requires a call, but the request has no function that could be called")
        return None
    row = DIALECTS[dialect]
    # A vocabulary may hold a marker as an ordinary token: a model that writes it as text need not write that token.
    ids = token_ids or {} if row.markers_are_tokens else {}
    start, end = row.start, row.ends[0]
    return _build(
        tuple(known),
        choice,
        dialect,
        (ids.get(start), ids.get(end)) if start in ids and end in ids else None,
        parallel and choice != "forced",
        reasoning,
    ).model_copy(deep=True)


def functions(tools: Iterable[Any] | None) -> list[Function]:
    """The functions that ``tools`` declare, in order, by the names that the model writes.

    Raises:
        ValueError: two of one name: which one a call means could not be told.
    """
    found: dict[str, Function] = {}
    for function in declared.functions(tools):
        name = function.model_name
        if name in found:
            raise ValueError(f"two tools are named {name!r}")
        schema = None if function.schema is None else json.dumps(function.schema, default=str)
        found[name] = Function(name, schema, function.strict)
    return list(found.values())


def _chosen(tool_choice: Any, known: list[Function]) -> tuple[str, list[Function]]:
    """``tool_choice`` as one of auto, required, forced, none, and the functions it leaves."""
    if tool_choice is None:
        return "auto", known
    if isinstance(tool_choice, str):
        if tool_choice not in ("auto", "required", "forced", "none"):
            raise ValueError(f"unknown tool_choice {tool_choice!r}")
        return tool_choice, known
    kind = _get(tool_choice, "type")
    if kind == "allowed_tools":
        allowed = _get(tool_choice, "allowed_tools") or tool_choice
        names = {_get(_get(tool, "function") or tool, "name") for tool in _get(allowed, "tools") or ()}
        return str(_get(allowed, "mode") or "auto"), [function for function in known if function.name in names]
    name = _get(_get(tool_choice, "function") or _get(tool_choice, "custom") or tool_choice, "name")
    named = [function for function in known if function.name == name]
    if not named:
        raise ValueError(f"tool_choice names {name!r}, which is no function of this request")
    return "forced", named[:1]


@lru_cache(maxsize=64)
def _build(
    known: tuple[Function, ...],
    choice: str,
    dialect: str,
    ids: tuple[int, int] | None,
    parallel: bool,
    reasoning: bool,
) -> Any:
    import xgrammar.structural_tag

    formats: Any = xgrammar.structural_tag
    notation = EBNF if "max_chars" in formats.AnyTextFormat.model_fields else EBNF_WITHOUT_COUNTERS
    row = DIALECTS[dialect]
    rules, work = Rules(row.ends, notation), Work(REQUEST_STEPS)
    calls: dict[str, str] = {}  # name: arguments with the closing parenthesis
    for function in known:
        if not is_name(function.name):
            _report(function.name, "", "the name, which has no form in a call list; this tool cannot be called")
            continue
        held = choice != "auto" or function.strict
        calls[function.name] = _arguments(rules, work, function, held=held)
    if not calls:
        raise ValueError("tool_choice requires a call, but no tool has a name that can be called")
    bare = not row.needs_markers
    tag: Any
    if choice == "auto" and bare:
        tag = formats.GrammarFormat(grammar=_bare_lists_in_text(rules, calls, row, parallel=parallel))
    else:
        one = formats.TagFormat(begin="", content=formats.GrammarFormat(grammar=rules.text(_any_call(calls))), end="")
        parts = [
            # Some families write nothing around their calls, and xgrammar has no constant string that is empty.
            *(formats.ConstStringFormat(value=opener) for opener in [row.opener] if opener),
            formats.TagsWithSeparatorFormat(
                tags=[one], separator=row.separator, at_least_one=True, stop_after_first=not parallel
            ),
            *(formats.ConstStringFormat(value=closer) for closer in [row.closer] if closer),
        ]
        before = formats.GrammarFormat(grammar=f"{_BEFORE} (={literal(row.opener if bare else row.start)})")
        if "\n" in row.separator:
            # Who writes a call a line may break the line beside the markers, too.  Without that, a newline behind
            # the last call would oblige the model to write another one.
            edge = formats.GrammarFormat(grammar=_EDGE)
            parts = [edge, *parts, edge]
        if bare:
            tag = formats.SequenceFormat(elements=[before, *parts])
        else:
            begin, end = _sentinels(formats, row, ids)
            block = formats.TagFormat(begin=begin, content=formats.SequenceFormat(elements=parts), end=end)
            if choice != "auto":
                tag = formats.SequenceFormat(elements=[before, block])
            elif ids is not None:
                tag = formats.TokenTriggeredTagsFormat(
                    trigger_tokens=[ids[0]], tags=[block], stop_after_first=not parallel
                )
            else:
                tag = formats.TriggeredTagsFormat(triggers=[begin], tags=[block], stop_after_first=not parallel)
    if reasoning:
        thinking = formats.TagFormat(begin="", content=formats.AnyTextFormat(), end="</think>")
        tag = formats.SequenceFormat(elements=[thinking, tag])
    return formats.StructuralTag(format=tag)


def _sentinels(formats: Any, row: Dialect, ids: tuple[int, int] | None) -> tuple[Any, Any]:
    if ids is None:
        return row.start, row.ends[0]
    return formats.TokenFormat(token=ids[0]), formats.TokenFormat(token=ids[1])


def _any_call(calls: Mapping[str, str]) -> str:
    return "(" + " | ".join(f"{literal(name + '(')} {arguments}" for name, arguments in calls.items()) + ")"


def _bare_lists_in_text(rules: Rules, calls: Mapping[str, str], row: Dialect, *, parallel: bool) -> str:
    """Free text in which ``[name(`` of a declared tool begins a list.  (A bare bracket is ordinary text.)"""
    more = f"({SEPARATOR} {_any_call(calls)})*" if parallel else ""
    triggers = []
    for name, arguments in calls.items():
        rest, _ = rules.reserve(("list after", name))
        rules.define(rest, [f"{arguments} {more} {literal(row.closer)}"])
        triggers.append(f"({literal(f'{row.opener}{name}(')}, {rest})")
    loop = "true" if parallel else "false"
    return rules.text(f"TagDispatch({', '.join(triggers)}, loop_after_dispatch={loop})")


def _arguments(rules: Rules, work: Work, function: Function, *, held: bool) -> str:
    """The rule for one function's arguments and the closing parenthesis."""

    def report(place: str, keyword: str) -> None:
        _report(function.name, place, keyword)

    if function.parameters is None:
        schema: Any = {}
    else:
        schema = json.loads(function.parameters)
    if held:
        if schema == {} or schema is False:
            return rules.one_of('")"')
        try:
            values = Values(rules, work, schema, report)
            found = values.arguments()
        except TooLarge:
            report("", "the whole schema, which takes too much work")
            return _free_arguments(rules, work, schema, report)
        if found is not None:
            return found
        if not values.describes_object():
            raise SchemaError(f"the parameters of {function.name!r} describe no object")
        report("", "the whole schema, which nothing satisfies")
    return _free_arguments(rules, work, schema, report)


def _free_arguments(rules: Rules, work: Work, schema: Any, report: Any) -> str:
    """Any literals as arguments, by any names."""
    anything = Values(rules, work, {}, report).anything()
    plain = patterns.match(NAME)
    names = [unquoted(rules, plain, "=")]
    properties = schema.get("properties") if isinstance(schema, Mapping) else None
    if isinstance(properties, Mapping):
        odd = [name for name in properties if is_name(name) and not plain.accepts(name)]
        names += [literal(name + "=") for name in odd]
    argument = f"{rules.one_of(*names)} {anything}"
    more, new = rules.reserve(("free arguments", argument))
    if new:
        rules.define(more, ['")"', f"{SEPARATOR} {argument} {more}"])
    return rules.one_of('")"', f"{argument} {more}")


def _report(function: str, place: str, keyword: str) -> None:
    """Log once what is not enforced."""
    what = (function, place, keyword)
    if what in _reported or len(_reported) >= _MAX_REPORTED:
        return
    _reported.add(what)
    where = f"argument {place!r} of tool {function!r}" if place else f"tool {function!r}"
    _log.warning("%s: not enforced in constrained calls: %s", where, keyword)


def _get(value: Any, key: str) -> Any:
    return value.get(key) if isinstance(value, Mapping) else getattr(value, key, None)
