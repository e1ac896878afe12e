"""llama.cpp's own grammar code, out of an ``xllamacpp`` wheel, by its C interface: no server, nothing reimplemented.

The vocabulary is that of the model of noise: a token for each byte, the special tokens, and some longer ones.
"""

from __future__ import annotations

import ctypes
import math
import re
from functools import cache
from typing import Any

from tests.support.llama_rig import BUILDS, directory, wheel


class _Large(ctypes.Structure):
    """Any structure that is handed over in memory: its fields are none of our business."""

    _fields_ = [("bytes", ctypes.c_char * 1024)]  # llama_model_params has some 100


class _Candidate(ctypes.Structure):
    """``llama_token_data``."""

    _fields_ = [("id", ctypes.c_int32), ("logit", ctypes.c_float), ("p", ctypes.c_float)]


class _Candidates(ctypes.Structure):
    """``llama_token_data_array``."""

    _fields_ = [
        ("data", ctypes.POINTER(_Candidate)),
        ("size", ctypes.c_size_t),
        ("selected", ctypes.c_int64),
        ("sorted", ctypes.c_bool),
    ]


def candidates(tokens: list[int]) -> bytes:
    """The memory of an array of them, with these tokens, all alike."""
    return bytes((_Candidate * len(tokens))(*(_Candidate(token, 0.0, 0.0) for token in tokens)))


class Library:
    """One build of llama.cpp with the vocabulary of the model of noise."""

    def __init__(self, build: str) -> None:
        self._c = ctypes.CDLL(str(wheel(build) / "xllamacpp" / "xllamacpp.abi3.so"))
        for name in ("llama_model_load_from_file", "llama_model_get_vocab", "llama_sampler_init_grammar"):
            getattr(self._c, name).restype = ctypes.c_void_p
        for name in ("llama_sampler_apply", "llama_sampler_accept", "llama_sampler_free"):
            getattr(self._c, name).restype = None
        self._c.llama_model_default_params.restype = _Large
        self._c.llama_vocab_is_eog.restype = ctypes.c_bool
        self._log: list[str] = []
        # Kept, because the library calls it later.  It also says why a grammar is refused.
        self._logger = ctypes.CFUNCTYPE(None, ctypes.c_int, ctypes.c_char_p, ctypes.c_void_p)(self._say)
        self._c.llama_log_set(self._logger, None)
        self._c.llama_backend_init()
        path = str(directory() / "noise.gguf").encode()
        model = self._c.llama_model_load_from_file(path, self._c.llama_model_default_params())
        self._vocabulary = ctypes.c_void_p(self._c.llama_model_get_vocab(ctypes.c_void_p(model)))
        self.pieces = [self._piece(token) for token in range(self._c.llama_vocab_n_tokens(self._vocabulary))]
        """The bytes of each token; those that end an answer have none."""
        self.every = candidates(list(range(len(self.pieces))))
        """All tokens as candidates."""
        self.stop = next(t for t in range(len(self.pieces)) if self._c.llama_vocab_is_eog(self._vocabulary, t))
        self.ids = {piece: token for token, piece in enumerate(self.pieces) if piece}
        special = sorted((p for p in self.ids if len(p) > 1), key=len, reverse=True)
        self._cut = re.compile(b"|".join([*map(re.escape, special), b"(?s:.)"]))

    def _say(self, level: int, text: bytes, _: Any) -> None:
        self._log.append(text.decode("utf-8", "replace"))

    def _piece(self, token: int) -> bytes:
        if self._c.llama_vocab_is_eog(self._vocabulary, token):
            return b""
        room = ctypes.create_string_buffer(64)
        length = self._c.llama_token_to_piece(self._vocabulary, token, room, len(room), 0, ctypes.c_bool(True))
        return room.raw[:length]

    def grammar(self, text: str) -> Grammar:
        """A grammar at its beginning.  Raises ValueError with what llama.cpp says of one that it refuses."""
        self._log.clear()
        sampler = self._c.llama_sampler_init_grammar(self._vocabulary, text.encode(), b"root")
        if not sampler:
            raise ValueError("".join(self._log)[:2000])
        return Grammar(self, ctypes.c_void_p(sampler))

    def tokens(self, text: str) -> list[int]:
        """The tokens of a text, in which special tokens are spelled out."""
        return [self.ids[piece] for piece in self._cut.findall(text.encode())]


class Grammar:
    """A state of llama.cpp's grammar sampler."""

    def __init__(self, library: Library, sampler: ctypes.c_void_p) -> None:
        self._library = library
        self._c = library._c
        self._sampler = sampler

    def __del__(self) -> None:
        self._c.llama_sampler_free(self._sampler)

    def allowed(self, tokens: list[int] | None = None) -> list[int]:
        """Which of ``tokens`` (all) may come next."""
        # Read and copied as bytes: a ctypes object for each field takes ten times what the library itself takes.
        table = bytearray(self._library.every if tokens is None else candidates(tokens))
        count = len(table) // ctypes.sizeof(_Candidate)
        data = (_Candidate * count).from_buffer(table)
        self._c.llama_sampler_apply(self._sampler, ctypes.byref(_Candidates(data, count, -1, False)))
        ids, logits = (memoryview(table).cast(kind)[at::3].tolist() for at, kind in enumerate("if"))
        return [token for token, logit in zip(ids, logits) if logit > -math.inf]

    def take(self, token: int) -> bool:
        """Go on with a token; whether that is allowed.  (The library itself would end the process.)"""
        if not self.allowed([token]):
            return False
        self._c.llama_sampler_accept(self._sampler, token)
        return True


@cache
def library(build: str) -> Library:
    """The library, loaded once."""
    return Library(build)


class Text:
    """A grammar in GBNF as the tests take it: all builds have to read it, and the newest says what it means."""

    def __init__(self, text: str) -> None:
        self._text = text
        for build in BUILDS:
            library(build).grammar(text)

    def begin(self) -> tuple[Library, Grammar]:
        """The library, and the grammar at the beginning of an answer."""
        newest = library(list(BUILDS)[-1])
        return newest, newest.grammar(self._text)

    def accepts(self, text: str) -> bool:
        """Whether ``text`` is a whole answer."""
        known, state = self.begin()
        return all(map(state.take, known.tokens(text))) and state.take(known.stop)
