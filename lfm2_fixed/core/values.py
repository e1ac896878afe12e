"""Literals to JSON text, incrementally.

    value     := string | number | constant | list | tuple | set | dict | "(" value ")"
    constant  := True | False | None | true | false | null
    list      := "[" (value ("," value)* ","?)? "]"       tuples and sets are arrays, too
    dict      := "{" (key ":" value ("," key ":" value)* ","?)? "}"

Containers are an explicit stack (``Block.frames``).  Strings go out as they come; numbers and
constants wait until what follows shows that they are the value; the first element after ``(`` and
``{`` waits until it is known what the bracket is, a key until it is known to be new.
"""

from __future__ import annotations

import re

from .closing import ENTRY_AT_ONCE as ENTRY_AT_ONCE
from .cursor import NOT_NOW, Reader
from .escapes import SAME_BODY, json_string, same_json
from .literals import opens_string
from .numbers import number_json, read_number, take_number, take_numbers
from .state import BRACE, DICT, LIST, PAREN, Block, EndOfBlock, Frame, Malformed
from .strings import read_string, take_string
from .tokens import CLOSERS, CONSTANTS, DIGITS, DOUBLE, MAX_DEPTH, PLAIN_BODY, QUOTES, SAME_NUMBER, SIGNS, SINGLE

STRING, SCALAR, CONTAINER = "string", "scalar", "container"


def read_value(block: Block) -> Reader[None]:
    """Read one literal with all that is nested in it, and look at what follows it.

    The caller's frame is the innermost open bracket: the value must be followed by a comma or by
    that frame's closer, which stay.  Raises Malformed and EndOfBlock.
    """
    return _read(block, len(block.frames))


def read_dict(block: Block, *, merge_into: set[str] | None = None) -> Reader[None]:
    """The same for a dict whose ``{`` is next.  Its last ``}`` is left to the caller to write.

    ``merge_into``: the call's keys, if the entries become its arguments (``**{…}``).
    """
    depth = len(block.frames)
    block.source.pos += 1
    frame = Frame(DICT, "}")
    if merge_into is None:
        block.out.put("{")
    else:
        frame.merged = True
        frame.keys = merge_into
    frame.mark = block.out.hold()
    block.frames.append(frame)
    return _read(block, depth)


def _read(block: Block, depth: int) -> Reader[None]:
    """Read until only ``depth`` brackets are open again."""
    source = block.source
    out = block.out
    frames = block.frames
    held = ""  # the value just read, where it is not in ``out`` yet
    while True:
        # A value, or the closer of a container that is empty or ends with a comma.
        char = source.text[source.pos : source.pos + 1]
        if char in NOT_NOW:
            char = source.now() or (yield from source.skip())
        frame = frames[-1]
        if len(frames) > depth and char == frame.closer and (frame.at_key or frame.kind != DICT):
            kind, held = _close(block, "")
        else:
            if frame.comma:
                frame.comma = False
                out.put(", ")
            if char in CLOSERS:
                _open(block, char)
                continue
            if char in QUOTES:
                if frame.at_key and _take_entries(block, frame):
                    continue
                kind = STRING
                if (short := take_string(block, frame, char)) is None:
                    yield from read_string(block, "", source.offset)
                else:
                    out.send(short)
            elif frame.kind == LIST and (short := take_numbers(source)):
                out.send(short)
                frame.comma = True
                continue
            elif held := take_scalar(block, frame):
                kind = SCALAR
            else:
                kind, held = yield from _scalar(block, char)
        # What follows it.
        while True:
            char = source.text[source.pos : source.pos + 1]
            if char in NOT_NOW:
                char = source.now() or (yield from source.skip())
            frame = frames[-1]
            if frame.at_key and char == ":":
                source.pos += 1
                _key(block, frame, kind, held)
                held = ""
                break
            if char not in (",", frame.closer) or (frame.at_key and frame.kind == DICT):
                raise block.unexpected(char)
            if held:
                out.send(held)
                held = ""
            if len(frames) == depth:
                return
            if char == ",":
                source.pos += 1
                _comma(block, frame)
                break
            kind, held = _close(block, kind)


def _open(block: Block, char: str) -> None:
    if len(block.frames) > MAX_DEPTH:
        raise Malformed(block.source.offset)
    block.source.pos += 1
    if char == "[":
        block.out.put("[")
        frame = Frame(LIST, "]", json_close="]")
    else:
        frame = Frame(PAREN, ")") if char == "(" else Frame(BRACE, "}")
        frame.mark = block.out.hold()
    block.frames.append(frame)


def _comma(block: Block, frame: Frame) -> None:
    if frame.kind == DICT:
        frame.at_key = True
        frame.mark = block.out.hold()
        return
    if frame.kind != LIST:  # a tuple or a set after all
        block.out.send("[" + block.out.take(frame.mark))
        frame.kind, frame.at_key, frame.json_close = LIST, False, "]"
    frame.comma = True


def _key(block: Block, frame: Frame, kind: str, held: str) -> None:
    """The colon was read: what came before it is a key, as ``json.dumps`` writes keys."""
    key = block.out.take(frame.mark) + held
    if kind == SCALAR:
        key = f'"{key}"'
    if kind == CONTAINER or key in frame.keys or (frame.merged and kind != STRING):
        raise Malformed(block.source.offset)
    if frame.kind == BRACE:
        block.out.put("{")
        frame.kind, frame.json_close = DICT, "}"
    block.out.put(f", {key}: " if frame.keys else f"{key}: ")
    frame.keys.add(key)
    frame.at_key = False


def _close(block: Block, kind: str) -> tuple[str, str]:
    """Take the closer of the innermost bracket; ``kind`` of its only or last element, ``""`` if none.

    Returns the kind of the value that is complete now, and its text where it is not sent yet.
    """
    out = block.out
    frame = block.frames.pop()
    block.source.pos += 1
    if frame.kind == LIST:
        out.send(frame.json_close)
    elif frame.kind == DICT:
        if frame.at_key:
            out.take(frame.mark)
        if frame.json_close:
            out.send(frame.json_close)
    else:
        element = out.take(frame.mark)
        if frame.kind == PAREN and element:
            return kind, element
        if frame.kind == PAREN:
            out.send("[]")
        else:
            out.send(f"[{element}]" if element else "{}")
    return CONTAINER, ""


# ---- taken at once ----


def scalar_pattern(closer: str, goes_on: str) -> str:
    """A pattern of a scalar that ends beyond doubt, and the comma behind it; ``scalar_json`` writes what it found.

    ``closer``: of the bracket that it is in.  ``goes_on``: what shows that a string has ended.
    """
    ends = rf"(?= ?[,{re.escape(closer)}])"
    same = rf'{SAME_NUMBER}{ends}|"{SAME_BODY[DOUBLE]}"(?!")(?={goes_on})'
    constant = rf"(?:{'|'.join(CONSTANTS)}){ends}"
    single = rf"'(?P<single>{SAME_BODY[SINGLE]})'(?!')(?={goes_on})"
    return rf"(?:(?P<same>{same})|(?P<constant>{constant})|{single})(?: ?, ?)?"


def scalar_json(scalar: re.Match[str]) -> str:
    """The JSON text of what such a pattern found, where it is not the ``same`` as the source; "" for nothing."""
    if (single := scalar["single"]) is not None:
        return f'"{same_json(single, SINGLE)}"'
    return CONSTANTS.get(scalar["constant"], "")


# A key of plain text with its colon, which closes it beyond doubt, and a scalar.
_ENTRY = re.compile(
    rf"(?:(?P<key>{DOUBLE}{PLAIN_BODY[DOUBLE]}{DOUBLE})|{SINGLE}(?P<name>{PLAIN_BODY[SINGLE]}){SINGLE}) ?: ?"
    rf"(?:{scalar_pattern('}', ENTRY_AT_ONCE)})?"
)


def match_entries(text: str, start: int, keys: set[str]) -> tuple[str, str, int]:
    """Match entries whose values are scalars, where they are all there, and the next key with its colon.

    Returns the JSON text of the entries and of that key, and where they end; their keys are added to ``keys``.
    """
    entries: list[str] = []
    pos = start
    while (entry := _ENTRY.match(text, pos)) and (key := entry["key"] or json_string(entry["name"])) not in keys:
        before = f", {key}: " if keys else f"{key}: "
        keys.add(key)
        pos = entry.end()
        if not (value := entry["same"] or scalar_json(entry)):
            return "".join(entries), before, pos
        entries.append(before + value)
    return "".join(entries), "", pos


def _take_entries(block: Block, frame: Frame) -> bool:
    """Take what ``match_entries`` finds in a dict, or in a bracket that is one if a key is found."""
    out, source = block.out, block.source
    entries, key, end = match_entries(source.text, source.pos, frame.keys)
    if end == source.pos:
        return False
    source.pos = end
    out.take(frame.mark)
    if frame.kind == BRACE:
        out.put("{")
        frame.kind, frame.json_close = DICT, "}"
    if entries:
        out.send(entries)
    if key:
        out.put(key)
        frame.at_key = False
    else:
        frame.mark = out.hold()
    return True


_CONSTANT = re.compile("|".join(CONSTANTS))


def take_scalar(block: Block, frame: Frame) -> str:
    """Take a number or a constant that is all there, with what shows that it is the value: its JSON text, or ""."""
    source = block.source
    text = source.text
    start = source.pos
    constant = _CONSTANT.match(text, start)
    if constant:
        json = CONSTANTS[constant[0]]
        source.pos = constant.end()
    else:
        json = take_number(source)
    after = text[source.pos : source.pos + 2].lstrip(" ")[:1]
    if json and after and not frame.at_key and (after == "," or after == frame.closer):
        return json
    source.pos = start
    return ""


def _scalar(block: Block, char: str) -> Reader[tuple[str, str]]:
    """Read a number, a constant, a prefixed string or ``set()``."""
    source = block.source
    start = source.offset
    if char and (char in DIGITS or char in SIGNS or char == "."):
        return SCALAR, (yield from _number(block, char))
    prefix = yield from opens_string(source)
    if prefix is not None:
        yield from read_string(block, prefix, start)
        return STRING, ""
    word = yield from source.word()
    if word in CONSTANTS:
        return SCALAR, CONSTANTS[word]
    if word == "set" and (yield from _empty_parentheses(block)):
        block.out.send("[]")
        return CONTAINER, ""
    if source.exhausted:
        raise EndOfBlock()
    source.rewind(start)
    raise block.unexpected(char)


def _number(block: Block, char: str) -> Reader[str]:
    """Read a number with at most one sign, which may stand before parentheses."""
    source = block.source
    start = source.offset
    sign = ""
    parentheses = 0
    if char in SIGNS:
        sign = char
        source.pos += 1
        while (char := (yield from source.skip())) == "(":
            source.pos += 1
            parentheses += 1
    token = yield from read_number(source)
    number = number_json(token, sign)
    if number is None or parentheses > MAX_DEPTH:
        if source.exhausted:
            raise EndOfBlock()
        source.rewind(start)
        raise Malformed(start)
    for _ in range(parentheses):
        if (yield from source.skip()) != ")":
            if source.exhausted:
                raise EndOfBlock()
            raise Malformed(start)
        source.pos += 1
    return number


def _empty_parentheses(block: Block) -> Reader[bool]:
    """Take ``()``; what else was read stays read."""
    source = block.source
    for bracket in "()":
        if (yield from source.skip()) != bracket:
            return False
        source.pos += 1
    return True
