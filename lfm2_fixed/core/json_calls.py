"""A call as a JSON object (contract 6.5), in the shapes that models write.

    call      := "{" (key ":" value ","?)* "}"     keys in any order
    arguments := dict, or a string that holds a JSON object

    {"name": …, "arguments": {…}}                                 and the aliases of "arguments"
    {"type": "function", "function": {"name": …, "arguments": …}} OpenAI's own

Python literals are fine in it.  What has no meaning here is passed over if it is a scalar: a list or
an object may be the arguments under a name that we do not know, and must not be lost in silence.
"""

from __future__ import annotations

import json
import re
from typing import Any

from .cursor import Reader
from .state import OBJECT, Block, EndOfBlock, Frame, Malformed
from .strings import read_string, take_string
from .tokens import DOUBLE, MAX_DEPTH, MAX_DIGITS, PLAIN_BODY, QUOTES
from .tools import NameBeginning
from .values import match_entries, read_dict, read_value
from .writer import Writer

_ARGUMENTS = frozenset(f'"{key}"' for key in ("arguments", "parameters", "args", "params", "kwargs", "input"))
_NAME, _FUNCTION = '"name"', '"function"'
_BEFORE_THE_NAME = frozenset(['"type"', '"id"', '"call_id"', '"index"'])
"""What calls carry beside their name and arguments, in the shapes of servers' APIs and of chat templates."""
_KEYS = sorted(key.strip('"') for key in (_ARGUMENTS | _BEFORE_THE_NAME | {_NAME, _FUNCTION}))


def read_json_call(block: Block) -> Reader[None]:
    """Read a call, its ``{`` next, with its ``}``.  Its last ``}`` in the output is left to the caller to write."""
    if _take_call(block):
        return
    call = _JsonCall(block)
    yield from call.read_object(nested=False)
    if not block.out.name:
        raise Malformed(block.source.offset)
    if call.arguments is None:
        block.out.put("{")


_HEAD = re.compile(rf'\{{ ?{_NAME} ?: ?"({PLAIN_BODY[DOUBLE]})" ?, ?(?:{"|".join(sorted(_ARGUMENTS))}) ?: ?\{{ ?')
_TAIL = re.compile(r" ?\} ?\}")


def _take_call(block: Block) -> bool:
    """Take a call that is all there, as most are: its name first, arguments that are scalars, and nothing else."""
    source = block.source
    head = _HEAD.match(source.text, source.pos)
    name = head[1] if head else ""
    if not head or not name or (block.declared_only and name not in block.tools):
        return False
    entries, _, end = match_entries(source.text, head.end(), set())
    tail = _TAIL.match(source.text, end)
    if not tail:
        return False
    source.pos = tail.end()
    block.out.name = name
    block.parameters = block.tools.get(name)
    block.out.put("{")
    if entries:  # else there is only structure, which waits
        block.out.send(entries)
    return True


class _JsonCall:
    """One call, while its keys arrive."""

    def __init__(self, block: Block) -> None:
        self.block = block
        self.arguments: str | None = None  # None: not there yet; "": on their way; else what waits for the name
        block.parameters = None

    def read_object(self, *, nested: bool) -> Reader[None]:
        """Read the call's object, or (``nested``) the one under ``"function"`` in it."""
        block = self.block
        source = block.source
        frame = Frame(OBJECT, "}")
        block.frames.append(frame)
        source.pos += 1
        while (char := source.now() or (yield from source.skip())) != "}":
            frame.at_key = frame.word = True
            key = yield from _json_key(block, char)
            if key in frame.keys:
                raise Malformed(source.offset)
            frame.keys.add(key)
            frame.at_key = False
            frame.word = key == _NAME
            source.pos += 1
            char = source.now() or (yield from source.skip())
            if key in _ARGUMENTS:
                frame.keys |= _ARGUMENTS  # they are one key: a second one is a repetition
                yield from self._arguments(char)
            elif key == _FUNCTION and char == "{" and not nested:
                yield from self.read_object(nested=True)
            else:
                value = yield from self._value()
                if key == _NAME:
                    self._name(value)
                elif value[0] in "[{":
                    raise Malformed(source.offset)
            if (char := source.now() or (yield from source.skip())) == ",":
                source.pos += 1
            elif char != "}":
                raise block.unexpected(char)
        source.pos += 1
        block.frames.pop()

    def _value(self) -> Reader[str]:
        """Read a value that is not sent: its JSON text."""
        out = self.block.out
        mark = out.hold()
        yield from read_value(self.block)
        return out.take(mark)

    def _arguments(self, char: str) -> Reader[None]:
        block = self.block
        out = block.out
        if self.arguments is not None:
            raise Malformed(block.source.offset)
        if char != "{":
            # Nothing of a string is sent before it is known to hold an object.
            arguments = _object_in_string((yield from self._value()))
            if arguments is None:
                raise Malformed(block.source.offset)
        elif out.name:
            yield from read_dict(block)
            arguments = ""
        else:
            mark = out.hold()
            yield from read_dict(block)
            arguments = out.take(mark)
        self.arguments = arguments
        if out.name:
            self._release()

    def _name(self, value: str) -> None:
        block = self.block
        name = json.loads(value) if value[0] == '"' else ""
        if not name or block.out.name or (block.declared_only and name not in block.tools):
            raise Malformed(block.source.offset)
        block.out.name = name
        block.parameters = block.tools.get(name)
        self._release()

    def _release(self) -> None:
        """The name is known: send the arguments that waited for it.  A lone ``{`` is structure, which waits."""
        if self.arguments:
            (self.block.out.put if self.arguments == "{" else self.block.out.send)(self.arguments)


def _json_key(block: Block, char: str) -> Reader[str]:
    """Read a key, as JSON text, up to its colon."""
    if char not in QUOTES:
        raise block.unexpected(char)
    key = take_string(block, block.frames[-1], char)
    if key is None:
        mark = block.out.hold()
        yield from read_string(block, "", block.source.offset)
        key = block.out.take(mark)
    char = block.source.now() or (yield from block.source.skip())
    if char != ":":
        raise block.unexpected(char)
    return key


# ---- arguments as a string -----------------------------------------------------------------------

_SURROGATE = re.compile("[\ud800-\udfff]")


def _object_in_string(value: str) -> str | None:
    """The arguments in a string, ``value`` being its JSON text: as they are written elsewhere, less the last ``}``.

    None if it holds anything but one valid JSON object (contract 1, L6 and L7: no repeated key, no number without
    a JSON form, no depth or length beyond the limits).
    """
    if value[0] != '"':
        return None
    try:
        arguments = json.loads(
            json.loads(value),
            object_pairs_hook=_unique,
            parse_int=_integer,
            parse_float=_finite,
            parse_constant=_refuse,
        )
        if not isinstance(arguments, dict) or _too_deep(arguments):
            return None
        text = json.dumps(arguments, ensure_ascii=False)
    except (ValueError, RecursionError):
        return None
    return _SURROGATE.sub("\ufffd", text)[:-1]


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    # A lone surrogate will be replaced: keys that differ in it alone would become the same.
    if len({_SURROGATE.sub("\ufffd", key) for key, _ in pairs}) < len(pairs):
        raise ValueError("a repeated key")
    return dict(pairs)


def _integer(digits: str) -> int:
    if len(digits.lstrip("-")) > MAX_DIGITS:
        raise ValueError("a number too long")
    return int(digits)


def _finite(digits: str) -> float:
    number = float(digits)
    if len(digits) > MAX_DIGITS or number in (float("inf"), float("-inf")):
        raise ValueError("a number without a JSON form")
    return number


def _refuse(constant: str) -> Any:
    raise ValueError(constant)


def _too_deep(value: Any) -> bool:
    level = [value]
    depth = 0
    while level:
        depth += 1
        inner: list[Any] = []
        for container in level:
            members = container.values() if isinstance(container, dict) else container
            inner += [member for member in members if isinstance(member, (dict, list))]
        level = inner
    return depth > MAX_DEPTH


# ---- an answer that may be a call ----------------------------------------------------------------


def names_declared_tool(block: Block) -> Reader[bool]:
    """Whether the object whose ``{`` is next is a call of a declared tool (contract 6.8).

    Known at the first key that tells: the name, or a key that a call does not have before its name.  So an answer
    that is data in JSON is text from there on.  Moves the cursor.
    """
    source = block.source
    # What is read here is read again as a call, so nothing of this reading may stay in ``block``.
    probe = Block(
        source,
        Writer(whole=True),
        block.tools,
        block.markup,
        python_only=block.python_only,
        newline_ends=block.newline_ends,
    )
    probe.out.begin()
    nested = False
    while True:
        frame = Frame(OBJECT, "}")
        frame.at_key = False  # keys are read here, values by their reader
        probe.frames.append(frame)
        source.pos += 1
        char = yield from source.skip()
        while True:
            if char not in QUOTES:
                return False
            source.pos += 1
            name = yield from source.name(NameBeginning(_KEYS).goes_on)
            if name not in _KEYS or (yield from source.peek()) != char:
                return False
            key = f'"{name}"'
            source.pos += 1
            if (yield from source.skip()) != ":":
                return False
            source.pos += 1
            char = yield from source.skip()
            if key == _NAME:
                return (yield from _declared_name(block, char))
            if key == _FUNCTION:
                if char != "{" or nested:
                    return False
                nested = True
                break
            if key in _ARGUMENTS and char in QUOTES:
                # A string of arguments begins with a brace: text of any other answer need not wait for its end.
                start = source.offset
                source.pos += 1
                holds = (yield from source.skip(comments=False)) == "{"
                source.rewind(start)
                if not holds:
                    return False
            elif (char == "{") != (key in _ARGUMENTS) or char in ("[", ""):
                return False
            try:
                yield from read_value(probe)
            except (Malformed, EndOfBlock):
                return False
            if (yield from source.skip()) != ",":
                return False
            source.pos += 1
            char = yield from source.skip()


def _declared_name(block: Block, quote: str) -> Reader[bool]:
    """Whether the string whose quote is next is the name of a declared tool."""
    source = block.source
    if quote not in QUOTES:
        return False
    source.pos += 1
    beginning = block.tools.beginning()
    while (char := (yield from source.peek())) and char != quote:
        end = source.text.find(quote, source.pos)
        end = len(source.text) if end < 0 else end
        if not beginning.goes_on(source.text[source.pos : end]):
            return False
        source.pos = end
    if not char or not beginning.whole:
        return False
    source.pos += 1
    return (yield from source.skip()) in (",", "}")
