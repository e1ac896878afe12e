"""Payloads through parsers: every way of cutting a turn, judged against what it says.

Used by ``lfm2-fixed repro`` (in process) and by the demo (over HTTP).  Nothing here imports vLLM
until :func:`vllm_readers` is called.
"""

from __future__ import annotations

import importlib.util
import json
import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from ..core.dialects import DIALECTS
from ..core.events import ArgumentsDelta, CallStart, Content
from ..core.stream import PythonicStream, parse
from .turns import TOOLS, Payload


@dataclass(frozen=True)
class Outcome:
    """What a client has in the end: calls (name, arguments as text), content, or an error.

    The calls are pairs, no ``wire.turn.Call``: outcomes of several cuttings are compared, and ids differ every time.

    ``void``: why this says nothing about a parser, such as a model that wrote something else than it was asked to.
    """

    calls: tuple[tuple[str, str], ...] = ()
    content: str = ""
    error: str = ""
    void: str = ""

    def matches(self, payload: Payload) -> bool:
        """Whether this is what the payload says.

        Arguments are compared as JSON values, in order and with their types (1 is not 1.0);
        in the content, how many blanks or newlines stand between words does not count.
        """
        if self.error or self.content.split() != payload.content.split():
            return False
        if payload.fits:
            return payload.fits.holds(self.calls)
        wanted = [(name, json.dumps(arguments)) for name, arguments in payload.calls]
        return [(name, _canonical(arguments)) for name, arguments in self.calls] == wanted


def _canonical(arguments: str) -> str | None:
    try:
        return json.dumps(json.loads(arguments))
    except ValueError:
        return None


class Reader(Protocol):
    """A parser, seen from its client."""

    def whole(self, payload: Payload) -> Outcome:
        """The payload's text in one request without streaming."""

    def streamed(self, payload: Payload, pieces: Iterable[str]) -> Outcome:
        """The payload's text in these deltas, as a client puts them together."""


# --- cuttings -------------------------------------------------------------------------------------

# A sentinel is one token: no server cuts it, so no parser is blamed for that here.
_SENTINEL = re.compile(r"(<\|\w+\|>)")
_TOKEN = re.compile(
    r"[^\r\n\w]?[^\W\d_]{1,5}"  # letters take a sign before them: "(city", " the"
    r"|\d"
    r"|[^\S\r\n]?[^\s\w]{1,3}[\r\n]*"  # signs merge: "='", "'),", ")]", "}}\n"
    r"|\s+|_|."
)


def tokens(text: str) -> list[str]:
    """Cut like a model's tokenizer: sentinels whole, delimiters merged, words in pieces."""
    return _cut(text, _TOKEN.findall)


def _chunks(size: int) -> Callable[[str], list[str]]:
    return lambda text: _cut(text, lambda part: [part[i : i + size] for i in range(0, len(part), size)])


def _cut(text: str, cut: Callable[[str], list[str]]) -> list[str]:
    parts = _SENTINEL.split(text)  # text and sentinels in turn
    return [piece for n, part in enumerate(parts) for piece in ([part] if n % 2 else cut(part))]


CUTTINGS: dict[str, Callable[[str], list[str]]] = {
    "1 char": _chunks(1),
    "3 chars": _chunks(3),
    "7 chars": _chunks(7),
    "tokens": tokens,
}
"""How a turn is cut into deltas, by name."""
WAYS = (*CUTTINGS, "whole")
"""All the ways a payload is read."""


def read(reader: Reader, payload: Payload) -> dict[str, Outcome]:
    """The payload's outcome for each of :data:`WAYS`."""
    outcomes = {name: reader.streamed(payload, cut(payload.text)) for name, cut in CUTTINGS.items()}
    return outcomes | {"whole": reader.whole(payload)}


# --- readers --------------------------------------------------------------------------------------


class EngineFree:
    """Ours, without vLLM."""

    def whole(self, payload: Payload) -> Outcome:
        result = parse(payload.text, payload.dialect, TOOLS)
        return Outcome(tuple((call.name, call.arguments) for call in result.calls), result.content)

    def streamed(self, payload: Payload, pieces: Iterable[str]) -> Outcome:
        stream = PythonicStream(payload.dialect, TOOLS)
        events = [event for piece in pieces for event in stream.feed(piece)]
        merged = Merged()
        for event in [*events, *stream.finish()]:
            if isinstance(event, Content):
                merged.content += event.text
            elif isinstance(event, CallStart):
                merged.add(event.index, event.name, "")
            elif isinstance(event, ArgumentsDelta):
                merged.add(event.index, "", event.text)
        return merged.outcome()


class Merged:
    """A stream's deltas put together the way an OpenAI client does it."""

    def __init__(self) -> None:
        self.content = ""
        self._calls: dict[int, list[str]] = {}

    def add(self, index: int, name: str | None, arguments: str | None) -> None:
        """A call's delta."""
        call = self._calls.setdefault(index, ["", ""])
        call[0] += name or ""
        call[1] += arguments or ""

    def outcome(self) -> Outcome:
        """What the client has now."""
        return Outcome(tuple((name, arguments) for name, arguments in self._calls.values()), self.content)


class VllmReader:
    """A parser as vLLM's serving layer drives it, in this process: no engine, model or GPU."""

    def __init__(self, parsers: dict[str, str]) -> None:
        """``parsers``: the ``--tool-call-parser`` for each dialect."""
        from vllm.entrypoints.openai.chat_completion.protocol import ChatCompletionRequest
        from vllm.parser.parser_manager import ParserManager

        self._request_class = ChatCompletionRequest
        self._parsers = {
            dialect: ParserManager.get_parser(tool_parser_name=name, enable_auto_tools=True)
            for dialect, name in parsers.items()
        }
        self._tokenizer = _Tokenizer()

    def _start(self, payload: Payload, stream: bool) -> tuple[Any, Any]:
        request = self._request_class(
            model="none",
            messages=[{"role": "user", "content": "go"}],
            tools=TOOLS,
            tool_choice="auto",
            stream=stream,
        )
        parser_class = self._parsers[payload.dialect]
        assert parser_class is not None
        request = parser_class(self._tokenizer, request.tools).adjust_request(request)
        return parser_class(self._tokenizer, request.tools), request

    def whole(self, payload: Payload) -> Outcome:
        parser, request = self._start(payload, stream=False)
        try:
            _, content, calls = parser.parse(payload.text, request, enable_auto_tools=True)
        except Exception as error:  # whatever a parser raises is a failed request to its client
            return Outcome(error=f"{type(error).__name__}: {error}")
        return Outcome(tuple((call.name, call.arguments) for call in calls or ()), content or "")

    def streamed(self, payload: Payload, pieces: Iterable[str]) -> Outcome:
        parser, request = self._start(payload, stream=True)
        merged = Merged()
        try:
            for piece, finished in [*((piece, False) for piece in pieces), ("", True)]:
                ids = self._tokenizer.encode(piece)
                # Without a prompt the parser would take the turn for reasoning that has not ended.
                delta = parser.parse_delta(piece, ids, request, [0], finished=finished)
                if delta is None:
                    continue
                merged.content += delta.content or ""
                for call in delta.tool_calls or ():
                    function = call.function
                    merged.add(call.index, function and function.name, function and function.arguments)
        except Exception as error:
            return Outcome(error=f"{type(error).__name__}: {error}")
        return merged.outcome()


class _Tokenizer:
    """What a tool parser asks of a tokenizer: the ids of the sentinels."""

    _SENTINELS = (
        "<|im_end|>",
        *(marker for dialect in DIALECTS.values() if dialect.markers_are_tokens for marker in dialect.markers),
    )
    eos_token_id = 0
    all_special_tokens = list(_SENTINELS)
    is_fast = True

    def get_vocab(self) -> dict[str, int]:
        return {text: number for number, text in enumerate(self._SENTINELS)}

    def encode(self, text: str, **options: Any) -> list[int]:
        vocabulary = self.get_vocab()
        return [vocabulary.get(piece, len(vocabulary)) for piece in tokens(text)]

    def decode(self, ids: Sequence[int], **options: Any) -> str:
        return "".join(self._SENTINELS[number] if number < len(self._SENTINELS) else "?" for number in ids)


def vllm_is_installed() -> bool:
    """Whether this Python has a vLLM, usable or not."""
    return importlib.util.find_spec("vllm") is not None


def vllm_readers() -> dict[str, Reader]:
    """The stock parsers and ours, in the vLLM of this Python.

    Raises whatever importing vLLM raises; ImportError with a sentence if it is too old.
    """
    import vllm

    from .. import parser  # registers ours

    del parser
    version = f"vLLM {vllm.__version__}"
    stock = {dialect.name: dialect.stock for dialect in DIALECTS.values()}
    ours = {dialect.name: dialect.parser for dialect in DIALECTS.values()}
    return {f"stock ({version})": VllmReader(stock), "ours (in the same vLLM)": VllmReader(ours)}
