"""A matcher over a small vocabulary, random walks through a grammar, and writers of call lists."""

from __future__ import annotations

import json
import random
from functools import lru_cache
from typing import Any

import xgrammar as xgr

from lfm2_fixed import parse
from lfm2_fixed.core.dialects import DIALECTS
from lfm2_fixed.grammar import gbnf, lark, structural_tag
from tests.support import guidance_grammar, llama_grammar

START, END = DIALECTS["lfm2"].start, DIALECTS["lfm2"].ends[0]
STOP = "<|im_end|>"

_PIECES = [
    *(chr(c) for c in range(0x20, 0x7F)), "\n", "\t", "\0", "é", "Ω", "中", "😀", "\u2028",
    '="', "='", '",', '")', '"),', "')", ")]", '"]', '"}', '": ', '{"', '["', ", ", "[{", "<|", " <", "|>", "<|x|>",
    '\\"', "\\'", "\\\\", "\\n", "\\u00", "\\ud83d", "\\ude00",
    "True", "False", "None", "null", "true", "10", "99", "0.5", "e9", "a b",
    "</", "</fu", *DIALECTS["olmo3"].markers,  # ordinary tokens: a model may write them in a string
]  # fmt: skip
VOCABULARY: list[str | bytes] = [
    *_PIECES,
    START,
    END,
    "<|python_start|>",
    STOP,
    *(bytes([c]) for c in range(0x80, 0x100)),
]
IDS = {text: at for at, text in enumerate(VOCABULARY) if isinstance(text, str)}
_BYTES = {text[0]: at for at, text in enumerate(VOCABULARY) if isinstance(text, bytes)}
HIGH = tuple(_BYTES.values())
"""The tokens of the bytes beyond ASCII."""
SENTINELS = {START: IDS[START], END: IDS[END]}
SPECIAL = tuple(IDS[text] for text in (START, END, "<|python_start|>", STOP))

# What brings an answer to its end, from the most to the least final.
_CLOSING = [
    STOP,
    END,
    "]",
    ")",
    ")]",
    '")',
    "')",
    '"',
    "'",
    "}",
    '"}',
    '"]',
    "1",
    "0",
    "a",
    ":",
    "=",
    " ",
    DIALECTS["olmo3"].ends[0],
]


@lru_cache(maxsize=1)
def _compiler() -> Any:
    info = xgr.TokenizerInfo(VOCABULARY, vocab_type=xgr.VocabType.RAW, stop_token_ids=[IDS[STOP]])
    return xgr.GrammarCompiler(info, max_threads=1)


def compiled(tag: Any) -> Any:
    """The compiled grammar of a structural tag, or of a text in GBNF or in Lark."""
    if isinstance(tag, str) and tag.startswith("root ::="):
        return llama_grammar.Text(tag)
    if isinstance(tag, str):
        return guidance_grammar.Text(tag, RAW, SPECIAL, IDS[STOP])
    return _compiler().compile_structural_tag(tag)


def matcher(grammar: Any) -> Any:
    """A matcher at the beginning of an answer."""
    return xgr.GrammarMatcher(grammar)


def compiled_text(ebnf: str) -> Any:
    """The compiled grammar of a text in xgrammar's EBNF."""
    return _compiler().compile_grammar(ebnf)


def block(calls: str) -> str:
    """Calls as LFM2 lists them."""
    return f"{START}[{calls}]{END}"


def accepts(grammar: Any, text: str) -> bool:
    """Whether ``text`` is a whole answer; sentinels in it are tokens where they are spelled out."""
    if isinstance(grammar, llama_grammar.Text):
        return grammar.accepts(text)
    if isinstance(grammar, guidance_grammar.Text):
        return grammar.accepts(tokens_of(text))
    accepting = matcher(grammar)
    return all(map(accepting.accept_token, tokens_of(text))) and bool(accepting.accept_token(IDS[STOP]))


def tokens_of(text: str) -> list[int]:
    """The tokens of ``text``, a character each; sentinels are tokens where they are spelled out."""
    units = [unit for piece in _tokens(text) for unit in ([piece] if piece in SENTINELS else piece)]
    return [
        token for unit in units for token in ([IDS[unit]] if unit in IDS else [_BYTES[byte] for byte in unit.encode()])
    ]


def bytes_of(text: bytes) -> list[int]:
    """The tokens of ``text``, a byte each; the bytes need not be UTF-8."""
    return [_BYTES[byte] if byte >= 0x80 else IDS[chr(byte)] for byte in text]


RAW = tuple(piece.encode() if isinstance(piece, str) else piece for piece in VOCABULARY)
"""The bytes of each token."""


def _tokens(text: str) -> list[str]:
    pieces = [text]
    for sentinel in SENTINELS:
        split: list[str] = []
        for piece in pieces:
            if piece in SENTINELS:
                split.append(piece)
                continue
            first, *rest = piece.split(sentinel)
            split.append(first)
            for other in rest:
                split += [sentinel, other]
        pieces = split
    return [piece for piece in pieces if piece]


def walk(grammar: Any, chance: random.Random, *, soon: int = 120, limit: int = 2000) -> str | None:
    """An answer that the grammar allows, chosen at random; None if it does not end within ``limit`` tokens."""
    walks = {llama_grammar.Text: _LlamaWalk, guidance_grammar.Text: _GuidanceWalk}
    state = walks.get(type(grammar), _Walk)(grammar)
    pieces: list[bytes] = []
    for step in range(limit):
        allowed = state.allowed()
        assert allowed, f"a dead end after {b''.join(pieces)!r}"
        # Single bytes only where nothing else will do: half of the tokens are such, and the walk would be all noise.
        allowed = {piece: token for piece, token in allowed.items() if len(piece) > 1 or piece < b"\x80"} or allowed
        closing = [text.encode() for text in _CLOSING if text.encode() in allowed]
        if closing and (step > soon or chance.random() < 0.25):
            piece = closing[0] if step > soon and chance.random() < 0.7 else chance.choice(closing)
        else:
            piece = chance.choice(list(allowed))
        state.take(allowed[piece])
        if piece == STOP.encode():
            return b"".join(pieces).decode()
        pieces.append(piece)
    return None


class _Walk:
    """xgrammar's matcher: what may come next, by its bytes."""

    def __init__(self, grammar: Any) -> None:
        self._matcher = xgr.GrammarMatcher(grammar)
        self._mask = xgr.allocate_token_bitmask(1, len(VOCABULARY))

    def allowed(self) -> dict[bytes, int]:
        self._matcher.fill_next_token_bitmask(self._mask)
        words = [int(word) & 0xFFFFFFFF for word in self._mask[0].tolist()]
        return {piece: at for at, piece in enumerate(RAW) if words[at // 32] >> (at % 32) & 1}

    def take(self, token: int) -> None:
        assert self._matcher.accept_token(token)


class _LlamaWalk:
    """The same of llama.cpp."""

    def __init__(self, grammar: llama_grammar.Text) -> None:
        self._library, self._state = grammar.begin()

    def allowed(self) -> dict[bytes, int]:
        stop, pieces = self._library.stop, self._library.pieces
        return {STOP.encode() if token == stop else pieces[token]: token for token in self._state.allowed()}

    def take(self, token: int) -> None:
        assert self._state.take(token)


class _GuidanceWalk:
    """The same of llguidance."""

    def __init__(self, grammar: guidance_grammar.Text) -> None:
        self._grammar, self._state = grammar, grammar.begin()

    def allowed(self) -> dict[bytes, int]:
        return {RAW[at]: at for at in self._grammar.allowed(self._state)}

    def take(self, token: int) -> None:
        assert self._state.consume_token(token)


engine = "xgrammar"
"""Whose grammars the tests make and try: ``xgrammar``, ``llama.cpp`` or ``llguidance``.  ``engines`` sets it."""


def tag_for(tools: list[dict[str, Any]], choice: Any = "required", **options: Any) -> Any:
    """The grammar of a request, as it is sent to the engine."""
    if engine == "llama.cpp":
        return gbnf(tools, choice, **options)
    if engine == "llguidance":
        return lark(tools, choice, token_ids=IDS, **options)
    return structural_tag(tools, choice, token_ids=IDS, **options)


def tool(parameters: Any, name: str = "f", **more: Any) -> dict[str, Any]:
    return {"type": "function", "function": {"name": name, "parameters": parameters, **more}}


def calls_of(text: str, tools: list[dict[str, Any]], dialect: str = "lfm2") -> list[tuple[str, Any]]:
    """The calls that the parser completes; fails on anything left over."""
    result = parse(text, dialect=dialect, tools=tools)
    assert not result.content.strip(), f"not all of it is calls: {text!r} leaves {result.content!r}"
    return [(call.name, json.loads(call.arguments)) for call in result.calls]


class Writer:
    """Writes calls as a model would: Python literals, JSON, or a mixture."""

    def __init__(self, chance: random.Random, *, quotes: str = "\"'") -> None:
        self._chance = chance
        self._quotes = quotes

    def call(self, name: str, arguments: dict[str, Any]) -> str:
        from lfm2_fixed.core.cursor import is_name

        pieces = [
            f"{key}={self.value(value)}" if is_name(key) else f"**{{{self.string(key)}: {self.value(value)}}}"
            for key, value in arguments.items()
        ]
        return f"{name}({self._join(pieces)})"

    def value(self, value: Any) -> str:
        if value is None or isinstance(value, bool):
            return self._chance.choice([repr(value), json.dumps(value)])
        if isinstance(value, str):
            return self.string(value)
        if isinstance(value, dict):
            return (
                "{" + self._join([f"{self.string(k)}:{self._space()}{self.value(v)}" for k, v in value.items()]) + "}"
            )
        if isinstance(value, list):
            return "[" + self._join([self.value(item) for item in value]) + "]"
        return repr(value)

    def string(self, value: str) -> str:
        quote = self._chance.choice(self._quotes)
        body = json.dumps(value, ensure_ascii=False)[1:-1].replace("<|", "<\\u007c").replace("\x7f", "\\u007f")
        if quote == "'":
            body = body.replace('\\"', '"').replace("'", "\\'")
        return quote + body + quote

    def _join(self, pieces: list[str]) -> str:
        return ("," + self._space()).join(pieces)

    def _space(self) -> str:
        return self._chance.choice(["", " "])


def check(parameters: Any, right: list[str], wrong: list[str]) -> None:
    """``right`` and ``wrong``: arguments of a call of ``f``, as text."""
    tools = [tool(parameters)]
    grammar = compiled(tag_for(tools))
    for arguments in right:
        assert accepts(grammar, block(f"f({arguments})")), arguments
        assert len(calls_of(block(f"f({arguments})"), tools)) == 1
    for arguments in wrong:
        assert not accepts(grammar, block(f"f({arguments})")), arguments


def one(schema: Any, right: list[str], wrong: list[str]) -> None:
    """``right`` and ``wrong``: values of the one argument ``x``, as text."""
    root: dict[str, Any] = {"type": "object", "properties": {"x": schema}, "required": ["x"]}
    if isinstance(schema, dict) and "$defs" in schema:
        root["$defs"] = schema["$defs"]
    check(root, [f"x={value}" for value in right], [f"x={value}" for value in wrong])
