"""A turn that may begin with a thought: what is thought and what is said, told apart while it streams.

    turn := blanks "<think>" thought ("</think>" | call marker …) said
          | said

The rules, each of them decided as soon as its text is there:

- A turn has a thought only at its beginning: it starts with ``<think>``, blanks before it aside, or the
  chat template wrote the tag already, so that the model's text begins *inside* the thought.  Any other
  turn is said from its first character on.  (Parsers that wait for ``</think>`` take a turn without one
  for a thought, and with it the call that the turn was about.)
- A thought ends at ``</think>``, which is dropped, or before a call marker, which belongs to what is said:
  models do go from their thoughts straight to a call.  A marker between two equal quotes is text, as in
  the rest of a turn (contract 6.2): a model that thinks about its own format quotes it.
- A thought that is cut off is a thought, all of it.
- After the thought nothing is looked at: ``<think>`` and ``</think>`` in arguments and in prose are text.
- Nothing is lost but the two tags and the blanks before the first; nothing is held longer than it may
  still be one of the tags or markers (with ``trim``: blanks too, as long as they may stand beside a tag).

One pass over the text, whatever the pieces are; the time for a piece depends on the piece alone.
"""

from __future__ import annotations

from collections.abc import Iterable

from .sentinels import markup
from .tokens import TEXT_BLANKS

OPEN, CLOSE = "<think>", "</think>"
"""The tags of LFM2.5, Qwen 3, DeepSeek R1, OLMo 3 and the models made after them."""

_START, _INSIDE, _SAID = range(3)


class ReasoningSplitter:
    """Splits one turn, fed in pieces of any size, into (reasoning, said).

    Joining what all the calls of :meth:`feed` and :meth:`finish` return gives the same two texts for every
    way to cut the turn, so a whole text is fed at once and finished.

    Args:
        markers: texts of the form ``<…>`` that begin a call and so end a thought: a dialect's ``start``.
        inside: the turn begins inside the thought, because its prompt ends with ``<think>``.  A model that
            writes the tag once more is forgiven: that one is dropped as well.
        trim: drop blanks beside the tags (as llama-server does); without it they stay.
    """

    __slots__ = ("_ends", "_state", "_next", "_trim", "_held", "_blanks", "_last", "_begun")

    def __init__(self, markers: Iterable[str] = (), *, inside: bool = False, trim: bool = False) -> None:
        self._ends = markup(tuple(markers), (CLOSE,))
        self._state = _START
        self._next = _INSIDE if inside else _SAID  # what a turn is that does not begin with the tag
        self._trim = trim
        self._held = ""  # what may be the beginning of a tag or marker, or a marker that may be quoted
        self._blanks: list[str] = []  # held blanks; a list, since joining them again and again is not linear
        self._last = ""  # the character before ``_held``
        self._begun = False  # trimming: the thought, then what is said after it, has a visible character

    @property
    def ended(self) -> bool:
        """Whether all that follows is said: the thought is over, or there was none."""
        return self._state == _SAID

    def feed(self, text: str) -> tuple[str, str]:
        """Read more of the turn: the reasoning and what is said that have become certain, in this order."""
        if self._state == _SAID and (self._begun or not self._trim):  # nearly always
            return "", text
        text, self._held = self._held + text, ""
        if self._state == _START:
            text = self._read_start(text, final=False)
        if self._state != _INSIDE:
            return "", self._said(text)
        thought, said = self._read_thought(text)
        return self._thought(thought), self._said(said)

    def finish(self) -> tuple[str, str]:
        """The turn is over: what was held.  Nothing may be fed after this."""
        held, self._held = self._held, ""
        if self._state == _START:
            held = self._read_start(held, final=True)
        return (self._thought(held), "") if self._state == _INSIDE else ("", self._said(held))

    def _read_start(self, text: str, *, final: bool) -> str:
        """Find out how the turn begins; returns the text to go on with."""
        body = text.lstrip(TEXT_BLANKS)
        if len(body) < len(text):
            self._blanks.append(text[: len(text) - len(body)])
        if body.startswith(OPEN):
            self._state = _INSIDE
            self._blanks.clear()
            return body[len(OPEN) :]
        if OPEN.startswith(body) and not final:
            self._held = body
            return ""
        self._state = self._next
        if self._state == _SAID:
            self._begun = True  # there is no tag that blanks could stand beside
        text = "".join(self._blanks) + body
        self._blanks.clear()
        return text

    def _read_thought(self, text: str) -> tuple[str, str]:
        """The thought's part of ``text``, and what is said after it."""
        start = 0
        while True:
            found, stop = self._ends.find(text, start, final=False)
            before = text[stop - 1] if stop else self._last
            quoted = found and self._ends.is_quoted(found, before, final=False)
            if found is None or quoted is None:
                # What is held then is part of the thought, should the text end here: a cut thought is a thought.
                thought, self._held = text[:stop], text[stop:]
                if thought:
                    self._last = thought[-1]
                return thought, ""
            if not quoted:
                self._state = _SAID
                return text[:stop], text[found.end() if found[0] == CLOSE else stop :]
            start = found.end()

    def _said(self, said: str) -> str:
        """``said``, the next piece of it, less the blanks that may stand beside a tag."""
        if self._trim and not self._begun:
            said = said.lstrip(TEXT_BLANKS)
            self._begun = bool(said)
        return said

    def _thought(self, thought: str) -> str:
        """``thought``, the next piece of it, less the blanks that may stand beside a tag."""
        if not self._trim:
            return thought
        if not self._begun:
            thought = thought.lstrip(TEXT_BLANKS)
        body = thought.rstrip(TEXT_BLANKS)
        if body:
            text = "".join(self._blanks) + body
            self._blanks.clear()
            self._begun = True
        else:
            text = ""
        self._blanks.append(thought[len(body) :])
        if self._state == _SAID:
            self._blanks.clear()
            self._begun = False  # from here on it is about what is said
        return text
