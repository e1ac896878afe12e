"""A request's grammar is made and read in a thread, beside the event loop.

vLLM adjusts a request on the loop, and then lets xgrammar read the grammar there, only to see whether it is one: 0.5 s
together for schemas that are made to be expensive, in which nobody else is served.  Both wait in a thread here, in
which the loop gets its turns: building is Python, which gives way, and xgrammar reads without Python's lock.
"""

from __future__ import annotations

import asyncio
import sys
from collections import OrderedDict
from collections.abc import Awaitable, Callable
from concurrent.futures import ThreadPoolExecutor
from contextvars import ContextVar
from hashlib import sha256
from typing import TypeVar

T = TypeVar("T")

_pool = ThreadPoolExecutor(1, thread_name_prefix="lfm2-fixed-grammar")
"""One thread: with two the loop would wait for two others each time, and Python would not go faster."""

_TURN = 0.0005
"""Seconds after which the thread gives way while it builds.  To answer one request, the loop takes and leaves Python's
lock several times; with Python's own 5 ms it would wait 20 to 50 ms, and with less the turns themselves cost time."""

_postponed: ContextVar[list[Callable[[], object]] | None] = ContextVar("postponed", default=None)
"""What is left to do of the request that the current task prepares; None: there is nobody who would do it."""

_KNOWN = 256
"""Grammars that are known to be right; the oldest goes first.  A digest each: a grammar may have a megabyte."""
_known: OrderedDict[bytes, None] = OrderedDict()


async def prepared(prepare: Awaitable[T]) -> T:
    """What ``prepare`` returns, after what it had to :func:`postpone` has been done in the thread.

    Raises what that raises, as if it had been done there and then.
    """
    postponed: list[Callable[[], object]] = []
    token = _postponed.set(postponed)
    try:
        result = await prepare
    finally:
        _postponed.reset(token)
    for work in postponed:
        await asyncio.get_running_loop().run_in_executor(_pool, _in_turns, work)
    return result


def _in_turns(work: Callable[[], object]) -> None:
    before = sys.getswitchinterval()  # the process's; there is one thread that changes it
    sys.setswitchinterval(min(_TURN, before))
    try:
        work()
    finally:
        sys.setswitchinterval(before)


def postpone(work: Callable[[], object]) -> bool:
    """Let ``work`` wait for the thread; False where there is none to wait for, and it has to be done now."""
    postponed = _postponed.get()
    if postponed is None:
        return False
    postponed.append(work)
    return True


def remember(grammar: str) -> None:
    """``grammar`` has been read, and it is one."""
    _known[_digest(grammar)] = None
    while len(_known) > _KNOWN:
        _known.popitem(last=False)


def is_known(grammar: str) -> bool:
    """Whether ``grammar`` has been read before."""
    return _digest(grammar) in _known


def _digest(grammar: str) -> bytes:
    return sha256(grammar.encode()).digest()
