"""The grammar that a request gets, from ``adjust_request`` to xgrammar's matcher."""

from __future__ import annotations

from functools import cache
from typing import Any

import pytest
import xgrammar

from lfm2_fixed.core.dialects import DIALECTS
from tests.support import served

WEATHER = served.tool("get_weather", "city", required=["city"], additionalProperties=False)
TIME = served.tool("get_time", properties={"zone": {"enum": ["UTC", "CET"]}}, required=["zone"])
PARIS, UTC = 'get_weather(city="Paris")', 'get_time(zone="UTC")'
NO_CITY, NO_ZONE = "get_weather()", 'get_time(zone="Mars")'

APIS = pytest.mark.parametrize("api", [served.chat, served.responses])
DIALECT = pytest.mark.parametrize("dialect", sorted(DIALECTS))
REASONING = pytest.mark.parametrize("reasoning", [None, "qwen3"])


@cache
def compiler(dialect: str) -> xgrammar.GrammarCompiler:
    tokenizer = served.tokenizer(dialect)
    size = max(tokenizer.get_vocab().values()) + 1
    return xgrammar.GrammarCompiler(xgrammar.TokenizerInfo.from_huggingface(tokenizer, vocab_size=size), max_threads=1)


def tag_of(request: Any) -> str | None:
    """The structural tag that goes to the engine; nothing else may constrain the request."""
    outputs = getattr(request, "structured_outputs", None)
    assert getattr(request, "response_format", None) is None
    if outputs is None:
        return None
    assert outputs.structural_tag is not None
    assert outputs.json is outputs.regex is outputs.grammar is outputs.choice is None
    return str(outputs.structural_tag)


def accepts(tag: str, text: str, dialect: str = "lfm2") -> bool:
    """Whether the model may write ``text`` and then stop."""
    tokenizer = served.tokenizer(dialect)
    matcher = xgrammar.GrammarMatcher(compiler(dialect).compile_structural_tag(tag))
    ids = [*tokenizer.encode(text, add_special_tokens=False), tokenizer.eos_token_id]
    return all(matcher.accept_token(number) for number in ids)


def named(api: Any, name: str) -> dict[str, Any]:
    function = {"name": name}
    return {"type": "function", "function": function} if api is served.chat else {"type": "function", **function}


def block(*calls: str, dialect: str = "lfm2") -> str:
    """The calls as the dialect's models write them."""
    row = DIALECTS[dialect]
    text = row.opener + row.separator.join(calls) + row.closer
    return f"{row.start}{text}{row.ends[0]}" if row.needs_markers else text


def adjusted(api: Any, dialect: str = "lfm2", reasoning: str | None = None, **fields: Any) -> Any:
    return served.adjusted(api(fields.pop("tools", [WEATHER, TIME]), **fields), dialect, reasoning)


@APIS
@REASONING
@DIALECT
def test_required(api: Any, reasoning: str | None, dialect: str) -> None:
    tag = tag_of(adjusted(api, dialect, reasoning, tool_choice="required"))
    assert tag is not None
    for good in ([PARIS], [UTC], [PARIS, UTC], [UTC, PARIS, PARIS]):
        assert accepts(tag, block(*good, dialect=dialect), dialect), good
    for bad in ([], [NO_CITY], [NO_ZONE], [PARIS, NO_ZONE], ['other(city="x")']):
        assert not accepts(tag, block(*bad, dialect=dialect), dialect), bad
    assert not accepts(tag, "I would rather talk.", dialect)


@APIS
@DIALECT
def test_named(api: Any, dialect: str) -> None:
    tag = tag_of(adjusted(api, dialect, tool_choice=named(api, "get_time")))
    assert tag is not None
    assert accepts(tag, block(UTC, dialect=dialect), dialect)
    for bad in ([PARIS], [NO_ZONE], []):
        assert not accepts(tag, block(*bad, dialect=dialect), dialect), bad


@APIS
@DIALECT
@pytest.mark.parametrize("choice", ["required", "auto"])
def test_parallel_calls_off(api: Any, choice: str, dialect: str) -> None:
    """One call, whatever the version does about it itself."""
    tag = tag_of(adjusted(api, dialect, tool_choice=choice, parallel_tool_calls=False))
    if tag is None and choice == "auto":
        pytest.fail("plain auto is not limited to one call")
    assert tag is not None
    assert accepts(tag, block(PARIS, dialect=dialect), dialect)
    assert not accepts(tag, block(PARIS, UTC, dialect=dialect), dialect)
    assert accepts(tag, "I would rather talk.", dialect) == (choice == "auto")


@APIS
@DIALECT
def test_auto_with_a_strict_tool(api: Any, dialect: str) -> None:
    """Free text, and calls whose arguments fit the schema of the strict tool."""
    strict = served.tool("get_weather", "city", strict=True, required=["city"], additionalProperties=False)
    tag = tag_of(adjusted(api, dialect, tools=[strict, TIME]))
    assert tag is not None
    assert accepts(tag, "I would rather talk.", dialect)
    for good in ([PARIS], [UTC], [PARIS, UTC]):
        assert accepts(tag, block(*good, dialect=dialect), dialect), good
    assert not accepts(tag, block(NO_CITY, dialect=dialect), dialect)


@APIS
@REASONING
def test_plain_auto_is_not_constrained(api: Any, reasoning: str | None) -> None:
    assert tag_of(adjusted(api, reasoning=reasoning)) is None


@APIS
@pytest.mark.parametrize("fields", [{"tool_choice": "required"}, {"parallel_tool_calls": False}])
def test_switched_off(api: Any, fields: dict[str, Any], monkeypatch: pytest.MonkeyPatch) -> None:
    """``VLLM_ENFORCE_STRICT_TOOL_CALLING=0``: no grammar, and no forced JSON in its place."""
    monkeypatch.setenv("VLLM_ENFORCE_STRICT_TOOL_CALLING", "0")
    assert tag_of(adjusted(api, **fields)) is None


def test_an_output_format_is_not_overruled_by_plain_auto() -> None:
    """``parallel_tool_calls=false`` alone does not take the client's response format away."""
    request = served.chat([WEATHER], parallel_tool_calls=False, response_format={"type": "json_object"})
    request = served.adjusted(request)
    assert request.response_format is not None
    assert request.structured_outputs is None


def test_namespaced_tools() -> None:
    inner = {"type": "function", "name": "get", "parameters": {"type": "object", "properties": {}}}
    space = {"type": "namespace", "name": "store", "description": "d", "tools": [inner]}
    tag = tag_of(served.adjusted(served.responses([space], tool_choice="required")))
    assert tag is not None
    assert accepts(tag, block("store__get()"))
    assert not accepts(tag, block("get()"))


def test_a_schema_that_is_invalid_is_the_clients_error() -> None:
    """vLLM answers a ValueError while it adjusts the request with 400."""
    broken = served.tool("f", properties={"a": {"type": "strnig"}})
    with pytest.raises(ValueError):
        served.adjusted(served.chat([broken], tool_choice="required"))
