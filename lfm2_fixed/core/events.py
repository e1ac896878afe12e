"""What the machine says: the events of one model turn, in order.

A turn is any mixture of content and calls.  For one call the order is always
``CallStart``, ``ArgumentsDelta`` (one or more), then ``CallEnd`` or ``CallAborted``; events
of different calls never interleave, and ``index`` counts the calls that were started: 0, 1, ….
Joining ``ArgumentsDelta.text`` of one index gives the call's arguments.

Events are values: treat them as immutable.  (Frozen dataclasses take three times as long to make,
and one is made for every delta.)
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, Union


@dataclass(slots=True, unsafe_hash=True)
class Content:
    """Text that is no call.  ``text`` is never empty."""

    text: str


@dataclass(slots=True, unsafe_hash=True)
class CallStart:
    """A call begins.  Sent together with the first piece of its arguments, never alone."""

    index: int
    name: str


@dataclass(slots=True, unsafe_hash=True)
class ArgumentsDelta:
    """The next piece of one call's arguments, as JSON text.  Never empty, never taken back."""

    index: int
    text: str


@dataclass(slots=True, unsafe_hash=True)
class CallEnd:
    """The call is complete: its arguments are now one valid JSON object."""

    index: int


@dataclass(slots=True, unsafe_hash=True)
class CallAborted:
    """A call that was started will never be completed; its arguments stay unterminated.

    ``"cut"``: the text ended inside it.  ``"malformed"``: it has no JSON form; its source text
    follows as ``Content``.
    """

    index: int
    reason: Literal["cut", "malformed"]


Event = Union[Content, CallStart, ArgumentsDelta, CallEnd, CallAborted]
