"""What the readers of one block share: the text, the open brackets, the call being read."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from .cursor import Source
from .escapes import json_string
from .sentinels import Markup
from .tools import Declared, NameBeginning
from .writer import Writer

CALL = "call"  # the arguments of ``name(``
OBJECT = "object"  # a call in JSON form
LIST = "list"  # ``[`` and, once known, a tuple or a set
PAREN = "paren"  # ``(`` until it is known to be a tuple
BRACE = "brace"  # ``{`` until it is known to be a dict or a set
DICT = "dict"


class Frame:
    """One open bracket."""

    __slots__ = ("kind", "closer", "json_close", "at_key", "word", "keys", "merged", "comma", "mark")

    def __init__(self, kind: str, closer: str, *, json_close: str = "") -> None:
        self.kind = kind
        self.closer = closer  # the bracket that closes it in the source
        self.json_close = json_close  # ... and in the JSON text, if the value reader writes it
        self.at_key = kind in (BRACE, DICT, OBJECT)  # the current element is, or may be, a key
        self.word = False  # the current element is a key or the name of a call: no quote can be text in it
        self.keys: set[str] = set()  # of a dict or a call, as JSON text
        # A comma was read, which is written before the next element, if any; a dict's entries are the call's arguments.
        self.comma = self.merged = False
        self.mark = 0  # where the hold of an undecided bracket or a key began


class Malformed(Exception):
    """The call has no JSON form.  ``at``: the offset from where to look for where the list goes on."""

    def __init__(self, at: int) -> None:
        self.at = at


class EndOfBlock(Exception):
    """The block ended inside a call; ``in_string``: inside an open string."""

    def __init__(self, in_string: bool = False) -> None:
        self.in_string = in_string


class Block:
    """The state of one block."""

    def __init__(
        self,
        source: Source,
        out: Writer,
        tools: Declared,
        markup: Markup,
        *,
        python_only: bool,
        newline_ends: bool,
    ) -> None:
        self.source = source
        self.out = out
        self.tools = tools
        self.markup = markup  # what is left out of source text that is given back
        self.declared_only = False  # JSON objects without a marker: only those that name a declared tool are calls
        self.in_list = False  # inside [ ] rather than calls one after the other
        self.newline_ends = newline_ends  # a newline after the list ends the block (Llama 4)
        self.frames: list[Frame] = []  # open brackets of the current call, outermost first
        self.parameters: Sequence[str] | None = None  # of the current call's tool, if declared
        self.positional = 0  # positional arguments of the current call so far
        self.named = False  # a named argument was given
        # Inside a string: takes what is next if it is plain text, as most is.  True: no need to resume the reader.
        self.fast_lane: Callable[[], bool] | None = None
        # Where the open string would have ended by Python's rule, had that quote not turned out to be text; or -1.
        self.python_end = -1
        self.open_quote = ""  # the delimiter of the string being read
        self.python_only = python_only  # strings close by Python's rule alone
        self.walked_to = 0  # a later quote was looked ahead from, up to here, element by element
        self.walk_closes: bool | None = None  # what that showed for the open literal; None: it was for another
        self.speculate_from = 0  # no look-ahead of unbounded length before this offset

    def beginning_of_declared(self) -> Callable[[str], bool]:
        """For a name in pieces: whether a declared tool's, or one of this call's parameters', still begins so."""
        tool = self.tools.beginning()
        parameter = NameBeginning(sorted(self.parameters or ()))

        def goes_on(piece: str) -> bool:
            may_be_tool = tool.goes_on(piece)
            return parameter.goes_on(piece) or may_be_tool

        return goes_on

    def lacks(self, name: str) -> bool:
        """Whether ``name`` is a declared parameter of this call that has no value yet."""
        return name in (self.parameters or ()) and json_string(name) not in self.frames[0].keys

    def unexpected(self, char: str) -> Exception:
        """The error for a character (``""``: the block's end) that the grammar does not allow here."""
        return Malformed(self.source.offset) if char else EndOfBlock()
