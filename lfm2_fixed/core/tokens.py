"""The lexicon: every lexical fact of calls written as Python, each once, with the clause it comes from.

Nothing here reads or decides: readers compile what they need from these.  Facts about the sentinels
around calls are in ``dialects``.
"""

from __future__ import annotations

import keyword

# ---- layout (contract 5.4) ----

BLANKS = " \t\f\r\n"
"""What may stand between two tokens.  Python has no vertical tab here, and neither have we."""
TEXT_BLANKS = BLANKS + "\v"
"""What is left out beside a block or a thought (contract 6.9).  That is prose, where a vertical tab is blank, too."""
NEWLINES = "\r\n"
"""Python ends a line at each of these, and at both together."""

# ---- brackets ----

CLOSERS = {"(": ")", "[": "]", "{": "}"}
"""The closing bracket by its opening one."""
MAX_DEPTH = 200
"""Levels of nesting in one call (L7).  CPython's own parser gives up at about the same depth."""

# ---- names (contract 5.1) ----

NAME_PUNCTUATION = ".:/-"
"""What may stand inside a name, beside what Python allows; never at either end."""
NAME_CHARACTERS = r"\w.:/\-\u0080-\U0010ffff"
"""What a name is made of, as a set in a pattern: the same characters first and later, so that a name may be
cut anywhere.  Whether the whole is a name is asked afterwards (``cursor.is_name``)."""

PLAIN_NAME = "[A-Za-z_][A-Za-z0-9_]*"
"""A pattern of the names that most calls and arguments have, which may be taken at once where they are all there."""

# ---- strings (contract 4.1) ----

SINGLE, DOUBLE = QUOTES = ("'", '"')
PREFIXES = frozenset(["", "r", "u", "f", "fr", "rf"])
"""Prefixes of literals that have a value, in lower case.  An ``r`` in one keeps backslashes, an ``f`` refuses
placeholders; other letters change nothing.  (``make_valid`` knows those of the running Python's ``ast`` only.)"""
NO_TEXT_PREFIXES = frozenset(["b", "br", "rb", "t", "tr", "rt"])
"""Prefixes of Python's literals that are no text: bytes, and templates (3.14).  They have no JSON form."""

SIMPLE_ESCAPES = {
    "\\": "\\", "'": "'", '"': '"', "a": "\a", "b": "\b", "f": "\f", "n": "\n", "r": "\r", "t": "\t", "v": "\v",
}  # fmt: skip
"""A backslash and one of these characters stand for one character."""
JSON_SAME_ESCAPES = r"\"bfnrt"
"""Those that JSON reads as Python does, and that ``json.dumps`` writes the same way."""
HEX_DIGITS = {"x": 2, "u": 4, "U": 8}
"""Hexadecimal digits after ``\\x``, ``\\u``, ``\\U``: exactly so many, or Python refuses the literal."""
OCTAL_DIGITS = "01234567"
LONGEST_CHARACTER_NAME = 100
"""Characters of ``{NAME}`` in ``\\N{NAME}``, with the braces: 88 in Unicode 15, and names are not made longer."""

NOT_SAME = r"\\\x00-\x1f\ud800-\udfff"
"""What JSON does not write as it is, quotes aside, for a set in a pattern."""
PLAIN_BODY = {quote: rf"[^{quote}{NOT_SAME}]*" for quote in QUOTES}
"""A pattern of what may stand between the quotes of a string without escapes, which JSON writes the same (quotes of
the other kind aside)."""
SAME = r"[ !#-&(-\[\]-\ud7ff\ue000-\U0010ffff]"
"""All but ``NOT_SAME`` and both quotes.  A set that says what it holds: a pattern goes over it in 60 % of the time of
``[^…]``, which most text is worth, but takes 2 ms to compile."""

# ---- constants (contract 4.5) ----

CONSTANTS = {
    "True": "true",
    "False": "false",
    "None": "null",
    "true": "true",
    "false": "false",
    "null": "null",
}
"""JSON text by the name in the source."""

# ---- numbers ----

DIGITS = "0123456789"
SIGNS = "+-"
SAME_NUMBER = (
    r"(?:-?[1-9][0-9]{0,99}|0"
    r"|-?(?=[0-9.]{3,16}(?![0-9.]))(?:[1-9][0-9]*|0(?=\.(?!0000)))\.(?:0|[0-9]*[1-9]))(?![\w.])"
)
"""A pattern of numbers whose JSON text is the same.  Digits around a point: 15 at most, which ``repr`` keeps."""
MAX_DIGITS = 4000
"""Of one number (L7).  Integers are converted between bases, which is not linear; CPython itself stops at 4,300."""

# ---- expressions: what Python writes around literals that are none (contract 3.2) ----

BINARY_OPERATORS = r"\*\*?|//?|<<|>>|[<>=!]=|[-+%@&|^<>]"
"""A pattern of the symbols between two operands."""
NO_STRING_OPERATORS = frozenset(["**", "*", "//", "/", "-", "@", "<<", ">>", "&", "|", "^"])
"""Those that Python refuses between two strings.  There they are no expression that a program could mean, while
``'use '-' as a separator'`` is what models write (contract 4.7.2).  ``"ab" * 3`` is one."""
UNARY_SYMBOLS = "+-~"
KEYWORDS = frozenset(keyword.kwlist) - frozenset(CONSTANTS)
"""Python's keywords, less the constants: none of them is an operand."""
