"""String literals: prefixes, quotes, escapes, adjacent literals; decoded text goes out at once.

    string  := literal literal*                      joined, as in Python
    literal := prefix? ("'" | '"' | "'''" | '\"""') body, closed by the quote that ``closing`` accepts
    prefix  := r | u | f | fr | rf, in any case      (bytes have no JSON form)

Broken and unknown escapes keep their text.  Surrogate halves join or become U+FFFD.  An f-string
is held until it ends: it has a value only without placeholders.
"""

from __future__ import annotations

import re
import unicodedata
from json.encoder import encode_basestring  # type: ignore[attr-defined]

from .closing import Verdict, closing_verdict, opens_string
from .cursor import Reader
from .escapes import SIMPLE, SIMPLE_ESCAPE, unescape
from .state import Block, EndOfBlock, Malformed

QUOTES = ("'", '"')
PREFIXES = frozenset(["", "r", "u", "f", "fr", "rf"])

# A run without the quote and backslashes, and (f-strings) without braces.
_PLAIN = {(quote, False): re.compile(rf"[^{quote}\\]+") for quote in QUOTES}
_PLAIN |= {(quote, True): re.compile(rf"[^{quote}\\{{}}]+") for quote in QUOTES}

# Simple escapes with the plain text after each.
_SIMPLE_RUN = {quote: re.compile(rf"(?:{SIMPLE_ESCAPE}[^{quote}\\]*)+") for quote in QUOTES}
_HEX_DIGITS = {"x": 2, "u": 4, "U": 8}
_OCTAL = re.compile(r"[0-7]{1,3}")
_HEX = re.compile(r"[0-9A-Fa-f]*")
_NAMED = re.compile(r"\{[A-Za-z0-9 \-]*\}?")
_LONGEST_NAME = 100  # of a Unicode character, with braces: 88 today
_SURROGATE = re.compile("[\ud800-\udfff]")
_PAIR = re.compile("[\ud800-\udbff][\udc00-\udfff]")


def read_string(block: Block, prefix: str, start: int) -> Reader[None]:
    """Read the string whose first quote is next and whose prefix began at ``start``.

    Raises Malformed (no value, or an expression) and EndOfBlock.
    """
    out = block.out
    decoder = _Decoder(block)
    out.put('"')
    python = False
    while True:
        prefix = prefix.lower()
        if prefix not in PREFIXES:
            raise Malformed(start)
        mark = out.hold() if "f" in prefix else None
        verdict = yield from _Literal(block, decoder, prefix, start).read(python)
        if mark is not None:
            held = out.take(mark)
            if held:
                out.send(held)
        if verdict is not Verdict.JOIN:
            break
        python = True  # the whole chain is known to read as Python
        yield from block.source.skip()
        start = block.source.offset
        prefix = (yield from opens_string(block)) or ""
    decoder.flush()
    out.send('"')


class _Decoder:
    """Writes decoded text; joins surrogate halves that arrive apart."""

    __slots__ = ("_send", "_high")

    def __init__(self, block: Block) -> None:
        self._send = block.out.send
        self._high = ""

    def text(self, text: str) -> None:
        if self._high or (not text.isascii() and _SURROGATE.search(text)):
            text = self._join(text)
        if text:
            self._send(encode_basestring(text)[1:-1])

    def _join(self, text: str) -> str:
        text = self._high + text
        self._high = ""
        text = _PAIR.sub(lambda pair: pair[0].encode("utf-16", "surrogatepass").decode("utf-16"), text)
        if text and "\ud800" <= text[-1] <= "\udbff":
            self._high = text[-1]
            text = text[:-1]
        return _SURROGATE.sub("\ufffd", text)

    def flush(self) -> None:
        if self._high:
            self._high = ""
            self._send("\ufffd")


class _Literal:
    """One literal of a string."""

    def __init__(self, block: Block, decoder: _Decoder, prefix: str, start: int) -> None:
        self.block = block
        self.source = block.source
        self.decoder = decoder
        self.raw = "r" in prefix
        self.format = "f" in prefix
        self.start = start
        self.plain = _PLAIN["'", self.format]
        self.raw_newline = False
        self.mark: int | None = None

    def read(self, python: bool) -> Reader[Verdict]:
        """Read the literal; CLOSE, or JOIN if another follows.  ``python``: close by Python's rule."""
        block = self.block
        source = self.source
        delimiter = yield from self._open()
        quote = delimiter[0]
        self.plain = _PLAIN[quote, self.format]
        strict = False
        block.open_quote = delimiter
        while True:
            if self._take():
                if source.ended:
                    raise EndOfBlock(in_string=True)
                block.fast_lane = self._take
                yield
                block.fast_lane = None
                continue
            char = source.text[source.pos]
            if char == "\\":
                if self._take_escapes(quote):
                    continue
                escaped = yield from self._escape()
                if self.raw and escaped[-1] in "\n\r":
                    self.raw_newline = True
                self._send(escaped)
            elif char != quote:
                self._send((yield from self._brace(char)))
            elif not (yield from self._at(delimiter)):
                source.pos += 1
                self._send(char)
            else:
                quote_offset = source.offset
                source.pos += len(delimiter)
                block.open_quote = ""
                verdict = yield from closing_verdict(
                    block,
                    python=python or block.python_only,
                    strict=strict,
                    raw_newline=self.raw_newline and len(delimiter) == 1,
                )
                if verdict is Verdict.EXPRESSION:
                    raise Malformed(source.offset)
                if verdict is not Verdict.TEXT:
                    if self.mark is not None:
                        block.out.send(block.out.take(self.mark))
                    return verdict
                strict = True
                block.open_quote = delimiter
                source.rewind(quote_offset + 1)
                self._send(quote)

    def _send(self, text: str) -> None:
        """Send what is more than plain text.

        Where the text has ended it is certain only if the string closes: an escape or a quote at
        the end might have gone on differently.
        """
        if self.source.ended and self.mark is None:
            self.mark = self.block.out.hold()
        self.decoder.text(text)

    def _take(self) -> bool:
        """Take the plain text at the cursor; whether that is all there is so far."""
        source = self.source
        run = self.plain.match(source.text, source.pos)
        if run:
            source.pos = run.end()
            plain = run[0]
            self.decoder.text(plain)
            if not self.raw_newline and ("\n" in plain or "\r" in plain):
                self.raw_newline = True
        return source.pos == len(source.text)

    def _take_escapes(self, quote: str) -> bool:
        """Take simple escapes and the plain text after them, if there are any at the cursor."""
        source = self.source
        if self.raw or self.format:
            return False
        run = _SIMPLE_RUN[quote].match(source.text, source.pos)
        if not run:
            return False
        source.pos = run.end()
        if not self.raw_newline:
            self.raw_newline = "\n" in run[0] or "\r" in run[0]
        self._send(unescape(run[0]))
        return True

    def _open(self) -> Reader[str]:
        """Take the opening quote, of one or three characters."""
        source = self.source
        quote = source.text[source.pos]
        triple = yield from self._at(quote * 3)
        delimiter = quote * 3 if triple else quote
        source.pos += len(delimiter)
        return delimiter

    def _at(self, delimiter: str) -> Reader[bool]:
        """Whether ``delimiter`` is next."""
        source = self.source
        while True:
            ahead = source.text[source.pos : source.pos + len(delimiter)]
            if ahead == delimiter:
                return True
            if source.ended or not delimiter.startswith(ahead):
                return False
            yield

    def _brace(self, char: str) -> Reader[str]:
        """A brace in an f-string: doubled it is text, else it makes a placeholder."""
        if not (yield from self._at(char * 2)):
            if self.source.ended and self.source.rest() == char:
                raise EndOfBlock(in_string=True)
            raise Malformed(self.start)
        self.source.pos += 2
        return char

    def _escape(self) -> Reader[str]:
        """Take the escape at the cursor; its decoded text."""
        source = self.source
        char = yield from self._ahead(1)
        if self.format and char in "{}":
            source.pos += 1
            return "\\"
        if self.raw:
            source.pos += 2
            return "\\" + char
        if char in SIMPLE:
            source.pos += 2
            return SIMPLE[char]
        if char == "\n":
            source.pos += 2
            return ""
        if char == "\r":
            following = yield from self._ahead(2)
            source.pos += 3 if following == "\n" else 2
            return ""
        if char in "01234567":
            return (yield from self._octal())
        if char in _HEX_DIGITS:
            return (yield from self._hex(_HEX_DIGITS[char]))
        if char == "N":
            return (yield from self._named())
        source.pos += 2
        return "\\" + char

    def _ahead(self, distance: int) -> Reader[str]:
        """The character ``distance`` after the cursor.  Raises EndOfBlock: the string stays open."""
        source = self.source
        while len(source.text) <= source.pos + distance:
            if source.ended:
                raise EndOfBlock(in_string=True)
            yield
        return source.text[source.pos + distance]

    def _octal(self) -> Reader[str]:
        source = self.source
        while True:
            digits = _OCTAL.match(source.text, source.pos + 1)
            assert digits
            if len(digits[0]) == 3 or digits.end() < len(source.text) or source.ended:
                source.pos = digits.end()
                return chr(int(digits[0], 8))
            yield

    def _hex(self, width: int) -> Reader[str]:
        source = self.source
        while True:
            start = source.pos + 2
            digits = _HEX.match(source.text, start, start + width)
            assert digits
            if len(digits[0]) == width:
                code = int(digits[0], 16)
                if code > 0x10FFFF:
                    break
                source.pos = digits.end()
                return chr(code)
            if digits.end() < len(source.text) or source.ended:
                break
            yield
        source.pos += 2
        return source.text[source.pos - 2 : source.pos]

    def _named(self) -> Reader[str]:
        source = self.source
        while True:
            start = source.pos + 2
            name = _NAMED.match(source.text, start, start + _LONGEST_NAME)
            if name and name[0].endswith("}"):
                found = _unicode_character(name[0][1:-1])
                if found is None:
                    break
                source.pos = name.end()
                return found
            end = name.end() if name else start
            if end < len(source.text) or source.ended:
                break
            yield
        source.pos += 2
        return "\\N"


def _unicode_character(name: str) -> str | None:
    try:
        found = unicodedata.lookup(name)
    except KeyError:
        return None
    return found if len(found) == 1 else None  # no named sequences, as in Python
