"""One call as Python writes it: ``name(arguments)``."""

from __future__ import annotations

import re
from collections.abc import Sequence

from .closing import ARGUMENT_AT_ONCE, POSITIONAL_AT_ONCE
from .cursor import Reader, Source, is_name
from .escapes import json_string
from .state import CALL, Block, EndOfBlock, Frame, Malformed
from .strings import take_string
from .tokens import PLAIN_NAME, QUOTES
from .values import read_dict, read_value, scalar_json, scalar_pattern, take_scalar


def read_call(block: Block) -> Reader[None]:
    """Read a call, its name first, with the closing parenthesis."""
    source = block.source
    plain = _CALL_NAME.match(source.text, source.pos)
    if plain:
        name = plain[0]
        source.pos = plain.end()
    else:
        name = yield from call_name(block)
    block.out.name = name
    block.parameters = block.tools.get(name)
    block.positional = 0
    block.named = False
    frame = Frame(CALL, ")")
    block.frames.append(frame)
    source.pos += 1
    block.out.put("{")
    while True:
        _take_arguments(block, frame)
        if source.text.startswith(")", source.pos):
            break
        char = source.now() or (yield from source.skip())
        if char == ")":
            break
        yield from _argument(block, frame, char)
        if (source.now() or (yield from source.skip())) == ",":
            source.pos += 1
    source.pos += 1
    block.frames.pop()


_NAMED = re.compile(rf"({PLAIN_NAME})=" + scalar_pattern(")", ARGUMENT_AT_ONCE))
_POSITIONAL = re.compile(scalar_pattern(")", POSITIONAL_AT_ONCE))
_ENDED = re.compile(r"\)[,;\]]")


def _take_arguments(block: Block, frame: Frame) -> None:
    """Take arguments that are scalars as most are, where each is all there with what shows that it has ended.

    The patterns are put together from those of the readers that own the rules.
    """
    text, pos, keys, names = block.source.text, block.source.pos, frame.keys, block.parameters or ()
    pieces: list[str] = []
    while True:
        if value := _NAMED.match(text, pos):
            key = f'"{value[1]}"'
            block.named = True
        elif block.named or block.positional >= len(names) or not (value := _POSITIONAL.match(text, pos)):
            break
        else:
            name = names[block.positional]
            key = f'"{name}"' if name.isidentifier() else json_string(name)
            block.positional += 1
        if key in keys:
            break
        json = value["same"] or scalar_json(value)
        pieces.append(f", {key}: {json}" if keys else f"{key}: {json}")
        keys.add(key)
        pos = value.end()
    if pieces:
        block.source.pos = pos
        # Where the list is seen to go on they leave together with the call's end, which makes one event of two.
        send = block.out.put if _ENDED.match(text, pos) else block.out.send
        send("".join(pieces))


def _argument(block: Block, frame: Frame, char: str) -> Reader[None]:
    source = block.source
    start = source.offset
    if char == "*":
        yield from _merge(block, frame, start)
        return
    name = _take_argument_name(source) or (yield from _argument_name(block))
    if name:
        block.named = True
    else:
        parameters = block.parameters or ()
        if char == "{" and not frame.keys and block.tools.takes_lone_object(block.out.name):
            first_key = yield from _first_key(block)
            source.rewind(start)
            if first_key is not None:
                yield from _lone_object(block, frame, parameters, prompt=first_key in parameters)
                return
        if block.named or block.positional >= len(parameters):
            raise block.unexpected(char)
        name = parameters[block.positional]
        block.positional += 1
    key = json_string(name)
    if key in frame.keys:
        raise Malformed(start)
    before = f", {key}: " if frame.keys else f"{key}: "
    frame.keys.add(key)
    char = source.text[source.pos : source.pos + 1]
    value = take_string(block, frame, char) if char in QUOTES else take_scalar(block, frame)
    if value:
        block.out.send(before + value)
    else:
        block.out.put(before)
        yield from read_value(block)


_CALL_NAME = re.compile(rf"{PLAIN_NAME}(?:\.{PLAIN_NAME})*(?=\()")
_NAME = re.compile(rf"({PLAIN_NAME})=(?=[^=])")


def _take_argument_name(source: Source) -> str:
    """Take ``name=`` where it is all there: the name, or ""."""
    name = _NAME.match(source.text, source.pos)
    if not name:
        return ""
    source.pos = name.end()
    return name[1]


def _first_key(block: Block) -> Reader[str | None]:
    """The first key of the object at the cursor: None if there is none or it is no string, "" if it is no name."""
    source = block.source
    source.pos += 1
    quote = yield from source.skip()
    if quote == "}":
        return ""
    if quote not in ("'", '"'):
        return None
    source.pos += 1
    key = yield from source.name()
    if (yield from source.peek()) != quote:
        return ""
    source.pos += 1
    return key if (yield from source.skip()) == ":" else ""


def _lone_object(block: Block, frame: Frame, parameters: Sequence[str], *, prompt: bool) -> Reader[None]:
    """Read an object that is the arguments object if no other argument follows (contract 5.5).

    ``prompt``: its first key is a parameter's name.  It is read as if ``**`` stood before it then, so that its
    strings stream; else nothing is sent before it is known to be the only argument.
    """
    source = block.source
    out = block.out
    if prompt:
        block.named = True
        yield from read_dict(block, merge_into=frame.keys)
        return
    start = source.offset
    mark = out.hold()
    yield from read_value(block)
    value = out.take(mark)
    end = source.offset
    char = yield from source.skip()
    if char == ",":
        source.pos += 1
        char = yield from source.skip()
    source.rewind(end)
    if not char:
        raise EndOfBlock()
    if char == ")" and value[0] == "{":
        if value != "{}":
            out.send(value[1:-1])
    elif parameters:
        key = json_string(parameters[0])
        block.positional = 1
        frame.keys.add(key)
        out.send(f"{key}: {value}")
    else:
        raise Malformed(start)


def _argument_name(block: Block) -> Reader[str]:
    """Take ``name=``: the name, or "" if the argument has none."""
    source = block.source
    start = source.offset
    name = yield from source.name()
    if name and (yield from source.skip()) == "=" and is_name(name):
        source.pos += 1
        if (yield from source.peek()) == "=":
            raise Malformed(start)
        return name
    if source.exhausted:
        raise EndOfBlock()
    source.rewind(start)
    return ""


def _merge(block: Block, frame: Frame, start: int) -> Reader[None]:
    """Read ``**{…}``, whose entries become arguments."""
    source = block.source
    source.pos += 1
    if (yield from source.peek()) == "*":
        source.pos += 1
        if (yield from source.skip()) == "{":
            block.named = True
            yield from read_dict(block, merge_into=frame.keys)
            return
    raise EndOfBlock() if source.exhausted else Malformed(start)


def call_name(block: Block) -> Reader[str]:
    """Read a call's name up to its ``(``; as in Python, blanks may stand around dots."""
    source = block.source
    start = source.offset
    name = yield from source.name()
    char = yield from source.skip()
    while name and (char == "." or (name[-1] == "." and char not in ("", "("))):
        part = yield from source.name()
        if not part:
            break
        name += part
        char = yield from source.skip()
    if char != "(" or not is_name(name):
        if source.exhausted:
            raise EndOfBlock()
        raise Malformed(start) if char else EndOfBlock()
    return name
