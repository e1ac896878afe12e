"""String literals: prefixes, quotes, escapes, adjacent literals; decoded text goes out at once.

    string  := literal literal*                      joined, as in Python
    literal := prefix? ("'" | '"' | "'''" | '\"""') body, closed by the quote that ``closing`` accepts
    prefix  := r | u | f | fr | rf, in any case      (bytes have no JSON form)

Unknown escapes keep their text.  Surrogate halves join or become U+FFFD.  An f-string is held until
it ends: it has a value only without placeholders.

Raw literals (contract 4.3): several templates put quotes around a string and escape nothing, so a
literal that Python would refuse comes from such a writer, and from the sign on its backslashes are
text.  The sign is a newline, or an escape that Python refuses, in a literal that is not triple-quoted.
A literal whose delimiter was escaped before comes from a writer who does escape: there nothing changes.
"""

from __future__ import annotations

import re

from .closing import Verdict, closes_at_once, closing_verdict
from .cursor import Reader
from .decoder import Decoder
from .escapes import SAME_BODY, SHARED_ESCAPE, SIMPLE_ESCAPE, same_json, scan_shared, unescape, unicode_character
from .literals import opens_string, pass_string
from .slips import is_stray_quote, lacks_quote
from .state import Block, EndOfBlock, Frame, Malformed
from .tokens import (
    HEX_DIGITS,
    LONGEST_CHARACTER_NAME,
    NEWLINES,
    NOT_SAME,
    OCTAL_DIGITS,
    PLAIN_BODY,
    PREFIXES,
    QUOTES,
    SAME,
    SIMPLE_ESCAPES,
)

# A run without quotes and backslashes, and (f-strings) without braces, that JSON writes as it is: nearly all text.
_SAME = {False: re.compile(f"{SAME}+"), True: re.compile(rf"[^{''.join(QUOTES)}{NOT_SAME}{{}}]+")}
# A run of what else is plain text with this quote: JSON has escapes for some of it.
_PLAIN = {(quote, False): re.compile(rf"[^{quote}\\]+") for quote in QUOTES}
_PLAIN |= {(quote, True): re.compile(rf"[^{quote}\\{{}}]+") for quote in QUOTES}

_LONG = 200  # characters: in less than this the scanner gains nothing, and what it does in vain costs as much

# Escapes that JSON shares, with the text after each: plain in a single-quoted literal, so that all is JSON's text.
_SHARED_RUN = {quote: re.compile(rf"(?:{SHARED_ESCAPE[quote]}{PLAIN_BODY[quote]})+") for quote in QUOTES}
_SHARED_RUN |= {quote * 3: re.compile(rf"(?:{SHARED_ESCAPE[quote]}[^{quote}\\]*)+") for quote in QUOTES}
# Simple escapes with the plain text after each; in a single-quoted literal up to a newline, which is
# for ``_take`` to see: behind it backslashes may be text.
_SIMPLE_RUN = {quote: re.compile(rf"(?:{SIMPLE_ESCAPE}[^{quote}\\{NEWLINES}]*)+") for quote in QUOTES}
_SIMPLE_RUN |= {quote * 3: re.compile(rf"(?:{SIMPLE_ESCAPE}[^{quote}\\]*)+") for quote in QUOTES}
# Backslashes that are text, each with the character behind it, and the plain text after them.
_VERBATIM_RUN = {quote: re.compile(rf"(?:\\[^{quote}][^{quote}\\{NEWLINES}]*)+") for quote in QUOTES}

# A literal that is all there, of text that is JSON's.
_WHOLE = {quote: re.compile(f"{quote}({SAME_BODY[quote]}){quote}(?!{quote})") for quote in QUOTES}

_OCTAL = re.compile(rf"[{OCTAL_DIGITS}]{{1,3}}")
_HEX = re.compile(r"[0-9A-Fa-f]*")
_NAMED = re.compile(r"\{[A-Za-z0-9 \-]*\}?")


def take_string(block: Block, frame: Frame, quote: str) -> str | None:
    """Take a literal of JSON's text at whose quote the string closes beyond doubt: its JSON text."""
    source = block.source
    if source.text.find(quote, source.pos + 1) < 0:
        return None  # a long string in one piece: asked more than once, and a pattern takes its time
    literal = _WHOLE[quote].match(source.text, source.pos)
    if not literal or not closes_at_once(block, frame, literal.end()):
        return None
    source.pos = literal.end()
    return literal[0] if quote == '"' else f'"{same_json(literal[1], quote)}"'


def read_string(block: Block, prefix: str, start: int) -> Reader[None]:
    """Read the string whose first quote is next and whose prefix began at ``start``.

    Raises Malformed (no value, or an expression) and EndOfBlock.
    """
    out = block.out
    decoder = Decoder(block)
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
        prefix = (yield from opens_string(block.source)) or ""
    decoder.flush()
    out.send('"')


class _Literal:
    """One literal of a string."""

    def __init__(self, block: Block, decoder: Decoder, prefix: str, start: int) -> None:
        self.block = block
        self.source = block.source
        self.decoder = decoder
        self.raw = "r" in prefix
        self.format = "f" in prefix
        self.start = start
        self.quote = ""
        self.delimiter = ""
        self.same = _SAME[self.format]
        self.in_line = False  # single-quoted without a newline so far
        self.raw_newline = False  # single-quoted with a newline: no Python
        self.delimiter_escaped = False
        self.delimiter_unescaped = False  # one was text: this writer escapes nothing
        self.verbatim = False  # a raw literal: the sign was met, backslashes are text
        self.mark: int | None = None

    def read(self, python: bool) -> Reader[Verdict]:
        """Read the literal; CLOSE, or JOIN if another follows.  ``python``: close by Python's rule."""
        block = self.block
        source = self.source
        python = python or block.python_only
        yield from self._open(python)
        delimiter, quote = self.delimiter, self.quote
        start = source.offset
        text_quote = -1  # offset of the only unescaped quote that was text; -2: there are several
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
                self._send((yield from self._escape()))
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
                    block, python=python, strict=self.delimiter_unescaped, raw_newline=self.raw_newline
                )
                if verdict is Verdict.TEXT:
                    source.rewind(quote_offset + 1)
                    first = not self.delimiter_unescaped and not self.raw_newline
                    if lacks_quote(block, max(start, text_quote), first=first):
                        raise Malformed(quote_offset)  # it opens a string
                elif text_quote >= 0 and is_stray_quote(source, start, text_quote):
                    verdict = Verdict.MALFORMED
                if verdict is Verdict.MALFORMED:
                    raise Malformed(source.offset)
                if verdict is not Verdict.TEXT:
                    if self.mark is not None:
                        block.out.send(block.out.take(self.mark))
                    return verdict
                text_quote = -2 if self.delimiter_unescaped else quote_offset
                self.delimiter_unescaped = True
                block.open_quote = delimiter
                self._send(quote)

    def _send(self, text: str) -> None:
        """Send what is more than plain text."""
        self._hold_at_end()
        self.decoder.text(text)

    def _hold_at_end(self) -> None:
        """Where the text has ended it is certain only if the string closes: an escape or a quote at the end might
        have gone on differently."""
        if self.source.ended and self.mark is None:
            self.mark = self.block.out.hold()

    def _take(self) -> bool:
        """Take text, and escapes that are all there, at the cursor; whether that is all there is so far."""
        source = self.source
        text = source.text
        while True:
            same = self.same.match(text, source.pos)
            if same:
                source.pos = same.end()
                self.decoder.same(same[0])
            if source.pos == len(text):
                return True
            if not (self._take_escapes() if text[source.pos] == "\\" else self._take_plain()):
                return False

    def _take_plain(self) -> bool:
        """Take plain text that JSON may write in another way, if it is next."""
        source = self.source
        run = _PLAIN[self.quote, self.format].match(source.text, source.pos)
        if not run:
            return False
        source.pos = run.end()
        plain = run[0]
        self.decoder.text(plain)
        if self.in_line and ("\n" in plain or "\r" in plain):
            self.in_line = False
            self.raw_newline = True
            self._sign()
        return True

    def _sign(self) -> None:
        """Python would refuse this literal: from here on its backslashes are text (contract 4.3)."""
        self.verbatim = len(self.delimiter) == 1 and not self.raw and not self.delimiter_escaped

    def _take_escapes(self) -> bool:
        """Take escapes that are all there, or backslashes that are text, with the plain text after them, if any."""
        if self.raw or self.format:
            return False
        source = self.source
        if self.delimiter == '"' and not self.verbatim and len(source.text) - source.pos > _LONG:
            start = source.pos
            decoded, source.pos = scan_shared(source.text, start)
            if decoded:
                if source.text.find('"', start, source.pos) >= 0:
                    self.delimiter_escaped = True
                self._send(decoded)
                return True
        shared = None if self.verbatim else _SHARED_RUN[self.delimiter].match(source.text, source.pos)
        run = shared or (_VERBATIM_RUN[self.quote] if self.verbatim else _SIMPLE_RUN[self.delimiter]).match(
            source.text, source.pos
        )
        if not run:
            return False
        source.pos = run.end()
        text = run[0]
        if not self.verbatim and self.quote in text:  # plain text has none
            self.delimiter_escaped = True
        if shared:
            self._hold_at_end()
            self.decoder.shared(text, self.quote, plain=len(self.delimiter) == 1)
        else:
            self._send(text if self.verbatim else unescape(text))
        return True

    def _open(self, python: bool) -> Reader[None]:
        """Take the opening quote, of one or three characters."""
        source = self.source
        quote = source.text[source.pos]
        delimiter = quote
        if (yield from self._at(quote * 3)):
            delimiter = quote * 3
            if not python and (yield from self._at(quote * 4)) and not (yield from self._three_close()):
                delimiter = quote
        self.quote = quote
        self.delimiter = delimiter
        self.in_line = len(delimiter) == 1
        source.pos += len(delimiter)

    def _three_close(self) -> Reader[bool]:
        """At four quotes: whether they are three and a quote inside, closed by the next three.

        Otherwise they are one quote and three inside (contract 4.7.8): a file that begins with its docstring.
        """
        block = self.block
        source = self.source
        start = source.offset
        speculate_from = block.speculate_from
        closes = yield from pass_string(source)
        if closes:
            verdict = yield from closing_verdict(block, python=False, strict=False, raw_newline=False)
            closes = verdict is not Verdict.TEXT
        if closes:
            block.speculate_from = speculate_from  # the same quote will be judged again
        source.rewind(start)
        return closes

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
        if self.raw or self.verbatim:
            # In a raw literal by prefix the delimiter keeps its backslash, as in Python.
            if char == "\r" and self.raw and (yield from self._ahead(2)) == "\n":
                source.pos += 1  # one end of a line, which the backslash allows
                char = "\r\n"
            source.pos += 2
            # Behind the sign the delimiter still is escaped, unless one was text without.
            escaped = self.verbatim and char == self.quote and not self.delimiter_unescaped
            return char if escaped else "\\" + char
        if char in SIMPLE_ESCAPES:
            source.pos += 2
            if char == self.quote:
                self.delimiter_escaped = True
            return SIMPLE_ESCAPES[char]
        if char == "\n":
            source.pos += 2
            return ""
        if char == "\r":
            following = yield from self._ahead(2)
            source.pos += 3 if following == "\n" else 2
            return ""
        if char in OCTAL_DIGITS:
            return (yield from self._octal())
        if char in HEX_DIGITS:
            return (yield from self._hex(HEX_DIGITS[char]))
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
        self._sign()
        source.pos += 2
        return source.text[source.pos - 2 : source.pos]

    def _named(self) -> Reader[str]:
        source = self.source
        while True:
            start = source.pos + 2
            name = _NAMED.match(source.text, start, start + LONGEST_CHARACTER_NAME)
            if name and name[0].endswith("}"):
                found = unicode_character(name[0][1:-1])
                if found is None:
                    break
                source.pos = name.end()
                return found
            end = name.end() if name else start
            if end < len(source.text) or source.ended:
                break
            yield
        self._sign()
        source.pos += 2
        return "\\N"
