"""A request's grammar is made and read beside the event loop, by vLLM's own way of preparing requests."""

from __future__ import annotations

import asyncio
import inspect
import sys
import threading
from types import SimpleNamespace
from typing import Any

import pytest
import vllm.renderers.online_renderer as online
import xgrammar

from lfm2_fixed.plugin import beside, patches
from tests.support import served

TIME = served.tool("get_time", properties={"zone": {"enum": ["UTC", "CET"]}}, required=["zone"])
BROKEN = served.tool("f", properties={"a": {"type": "strnig"}})


@pytest.fixture
def renderer(monkeypatch: pytest.MonkeyPatch) -> Any:
    """vLLM's renderer of requests, with what it needs of an engine stood in for."""
    served.load()
    served.parser()
    monkeypatch.setattr(online, "extract_prompt_components", lambda *_: SimpleNamespace(token_ids=[0]), raising=False)
    monkeypatch.setattr(online, "validate_request_mm_kwargs", lambda **_: None, raising=False)
    made = online.OnlineRenderer.__new__(online.OnlineRenderer)

    async def render(messages: Any, chat_params: Any, tok_params: Any, **_: Any) -> Any:
        await asyncio.sleep(0)
        return [[]], [{"prompt_token_ids": [0]}]

    made.renderer = SimpleNamespace(
        tokenizer=served.tokenizer(), get_tokenizer=lambda: served.tokenizer(), render_chat_async=render
    )
    made.model_config = SimpleNamespace(
        multimodal_config=None, enable_prompt_embeds=False, hf_text_config=SimpleNamespace(model_type="lfm2")
    )
    made.trust_request_mm_kwargs = True
    made.reasoning_effort_map = None
    return made


def prepare(renderer: Any, request: Any, parser: Any = None) -> Any:
    """Let vLLM prepare the request, on a loop of its own."""

    class Plain(type(request)):  # type: ignore[misc]
        def build_tok_params(self, *_: Any) -> Any:
            return None

        def build_chat_params(self, *_: Any, **__: Any) -> Any:
            params = SimpleNamespace(chat_template_kwargs={})
            params.with_defaults = lambda *_, **__: params
            return params

    request.__class__ = Plain
    asyncio.run(
        renderer.preprocess_chat(
            request, [], default_template=None, default_template_content_format="auto", default_template_kwargs=None,
            tool_dicts=None, parser=parser or served.parser_class(),
        )
    )  # fmt: skip
    return request


class Threads:
    """The threads in which grammars are made and read."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        from lfm2_fixed.grammar import tag

        self.made: list[str] = []
        self.read: list[str] = []
        build = tag._build.__wrapped__
        monkeypatch.setattr(tag, "_build", lambda *args: (self.made.append(self._name()), build(*args))[1])
        read = xgrammar.Grammar.from_structural_tag
        monkeypatch.setattr(
            xgrammar.Grammar,
            "from_structural_tag",
            staticmethod(lambda *args: (self.read.append(self._name()), read(*args))[1]),
        )

    @staticmethod
    def _name() -> str:
        return threading.current_thread().name


@pytest.fixture
def threads(monkeypatch: pytest.MonkeyPatch) -> Threads:
    beside._known.clear()
    return Threads(monkeypatch)


def verified(request: Any) -> None:
    """What vLLM does on the loop when the request is handed to the engine."""
    from vllm.v1.structured_output import backend_xgrammar

    backend_xgrammar.validate_xgrammar_grammar(SimpleNamespace(structured_outputs=request.structured_outputs))


@pytest.mark.parametrize("api", [served.chat, served.responses])
@pytest.mark.parametrize("reasoning", [None, "lfm2_fixed"])
def test_a_grammar_is_made_and_read_in_the_thread(
    renderer: Any, threads: Threads, api: Any, reasoning: str | None
) -> None:
    request = prepare(renderer, api([TIME], tool_choice="required"), served.parser_class("lfm2", reasoning))
    expected = served.adjusted(api([TIME], tool_choice="required"), "lfm2", reasoning)
    assert request.structured_outputs.structural_tag is not None
    assert request.structured_outputs == expected.structured_outputs
    assert request.skip_special_tokens is False
    assert threads.made[0].startswith("lfm2-fixed-grammar")
    assert [name.startswith("lfm2-fixed-grammar") for name in threads.read] == [True]
    verified(request)
    assert len(threads.read) == 1  # and not again on the loop


def test_what_was_not_read_is_read_by_vllm(renderer: Any, threads: Threads) -> None:
    request = prepare(renderer, served.chat([TIME], tool_choice="required"))
    tag = request.structured_outputs.structural_tag
    for other, right in ((tag.replace("UTC", "EST"), True), (tag.replace("::=", "=::"), False)):
        request.structured_outputs.structural_tag = other
        for _ in range(2):
            if right:
                verified(request)
            else:
                with pytest.raises(Exception, match="structural tag"):
                    verified(request)
    assert [name.startswith("lfm2-fixed-grammar") for name in threads.read] == [True, False, False, False]


def test_an_invalid_schema_is_said_as_on_the_loop(renderer: Any) -> None:
    with pytest.raises(ValueError, match="strnig"):
        prepare(renderer, served.chat([BROKEN], tool_choice="required"))


def test_other_parsers_and_requests_without_tools_go_on_as_before(renderer: Any, threads: Threads) -> None:
    from vllm.parser.parser_manager import ParserManager

    other = ParserManager.get_parser(tool_parser_name="pythonic", reasoning_parser_name=None, enable_auto_tools=True)
    prepare(renderer, served.chat([TIME], tool_choice="auto"), other)
    prepare(renderer, served.chat(None))
    assert threads.made == []


def test_outside_of_vllms_preparing_nothing_waits(threads: Threads) -> None:
    request = served.adjusted(served.chat([TIME], tool_choice="required"))
    assert request.structured_outputs is not None
    assert threads.made == ["MainThread"]


def test_the_renderer_is_wrapped_once(renderer: Any) -> None:
    wrapped = online.OnlineRenderer.preprocess_chat
    assert wrapped.__code__.co_filename == patches.__file__
    patches.prepare_beside()
    assert online.OnlineRenderer.preprocess_chat is wrapped
    assert inspect.iscoroutinefunction(wrapped)


def test_the_thread_gives_way_often() -> None:
    usual = sys.getswitchinterval()
    seen: list[float] = []

    def work() -> None:
        seen.append(sys.getswitchinterval())
        raise KeyError

    async def prepare() -> None:
        assert beside.postpone(work)

    with pytest.raises(KeyError):
        asyncio.run(beside.prepared(prepare()))
    assert seen[0] < usual == sys.getswitchinterval()


def test_digests_are_bounded() -> None:
    for number in range(beside._KNOWN + 9):
        beside.remember(f"grammar {number}")
    assert len(beside._known) == beside._KNOWN
    assert beside.is_known(f"grammar {beside._KNOWN + 8}")
    assert not beside.is_known("grammar 0")
