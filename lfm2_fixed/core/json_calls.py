"""One call as a JSON object: ``{"name": …, "arguments": {…}}``."""

from __future__ import annotations

import json

from .cursor import Reader
from .state import OBJECT, Block, Frame, Malformed
from .strings import read_string
from .values import read_dict, read_value


def read_json_call(block: Block) -> Reader[None]:
    """A call as a JSON object; keys in any order, those that mean nothing are passed over."""
    source = block.source
    out = block.out
    frame = Frame(OBJECT, "}")
    block.frames.append(frame)
    block.parameters = None
    source.pos += 1
    arguments: str | None = None  # "" once they are on their way
    while (char := source.now() or (yield from source.skip())) != "}":
        frame.at_key = True
        key = yield from _json_key(block, char)
        if key in frame.keys:
            raise Malformed(source.offset)
        frame.keys.add(key)
        frame.at_key = False
        source.pos += 1
        char = source.now() or (yield from source.skip())
        if key == '"arguments"':
            if char != "{":
                raise block.unexpected(char)
            mark = None if out.name else out.hold()
            yield from read_dict(block)
            arguments = "" if mark is None else out.take(mark)
        else:
            mark = out.hold()
            yield from read_value(block)
            value = out.take(mark)
            if key == '"name"':
                out.name = _json_name(block, value)
                block.parameters = block.tools.get(out.name)
                if arguments:  # what was held until the name is known; a lone "{" still waits
                    (out.put if arguments == "{" else out.send)(arguments)
        if (source.now() or (yield from source.skip())) == ",":
            source.pos += 1
    if not out.name:
        raise Malformed(source.offset)
    if arguments is None:
        out.put("{")
    source.pos += 1
    block.frames.pop()


def _json_key(block: Block, char: str) -> Reader[str]:
    """Read a key, as JSON text, up to its colon."""
    if char not in ("'", '"'):
        raise block.unexpected(char)
    mark = block.out.hold()
    yield from read_string(block, "", block.source.offset)
    key = block.out.take(mark)
    char = yield from block.source.skip()
    if char != ":":
        raise block.unexpected(char)
    return _ALIASES.get(key, key)


_ALIASES = {'"parameters"': '"arguments"'}


def _json_name(block: Block, value: str) -> str:
    name = json.loads(value) if value[0] == '"' else ""
    if not name:
        raise Malformed(block.source.offset)
    return str(name)
