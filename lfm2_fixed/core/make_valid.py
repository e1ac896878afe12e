"""Closing a partial call list so that it is Python: for code that re-parses, as vLLM's own parsers do.

The plugin does not need it.  It shows what the machine has open at the end of the text.
"""

from __future__ import annotations

import ast
import warnings

from .block import BlockReader
from .cursor import Reader, Source
from .openings import block_opens
from .sentinels import markup
from .state import BRACE, LIST, PAREN, Block, EndOfBlock, Malformed
from .tools import Declared
from .writer import Writer

_JSON_NAMES = ("true", "false", "null")


def make_valid_python(text: str) -> tuple[str, str] | None:
    """Complete a prefix of ``[name(argument=literal, …), …]``; a drop-in for vLLM's function of that name.

    Returns the completed text and what was added to ``text`` (less blanks and a comma at its end),
    or None where the text is no such prefix, or breaks off where closing what is open would not
    do: in a name, an escape, a comment, before it is known what a ``(`` or ``{`` is.  The completed
    text is a list of calls for ``ast.parse``.  Raises nothing.
    """
    source = Source("\0", ())
    block = Block(source, Writer(whole=True), Declared(), markup((), ()), python_only=True, newline_ends=False)
    reading = _read_list(block)
    next(reading)
    source.feed(text)
    closers: list[str] = []
    try:
        next(reading)
        if any(frame.kind in (BRACE, PAREN) for frame in block.frames):
            return None
        closers = ["]", *(frame.closer for frame in block.frames)]
    except StopIteration:
        pass
    except (Malformed, EndOfBlock):
        return None
    quote = block.open_quote or (source.rest() if source.rest() in ("'", '"') else "")
    completed = text
    if not quote:
        completed = completed.rstrip()
        if not (block.frames and block.frames[-1].kind == LIST and block.frames[-1].closer == ")"):
            completed = completed.removesuffix(",")  # elsewhere than in a tuple it means nothing
    added = quote + "".join(reversed(closers))
    return (completed + added, added) if _is_call_list(completed + added) else None


def _read_list(block: Block) -> Reader[None]:
    """Read ``[call, call, …]`` and no more."""
    source = block.source
    reader = BlockReader(block, block_opens)
    if (yield from source.skip()) != "[":
        raise Malformed(source.offset)
    source.pos += 1
    block.in_list = True
    while (char := (yield from source.skip())) != "]":
        if char == ",":
            source.pos += 1
        else:
            block.out.begin()
            block.frames.clear()
            yield from reader.read_item(char)
    source.pos += 1
    if source.rest().strip():
        raise Malformed(source.offset)


def _is_call_list(text: str) -> bool:
    """Whether Python reads a list of calls, without names where values should be."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # unknown escapes
            tree = ast.parse(text.strip(), mode="eval").body
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return False
    return isinstance(tree, ast.List) and all(
        isinstance(call, ast.Call)
        and all(keyword.arg or isinstance(keyword.value, ast.Dict) for keyword in call.keywords)
        and not any(
            isinstance(value, ast.Name) and value.id not in _JSON_NAMES
            for argument in [*call.args, *(keyword.value for keyword in call.keywords)]
            for value in ast.walk(argument)
        )
        for call in tree.elts
    )
