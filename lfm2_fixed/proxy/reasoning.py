"""A reply that begins with ``<think>``: the thought and the answer, told apart while it streams."""

from __future__ import annotations

OPEN, CLOSE = "<think>", "</think>"


class ThinkSplitter:
    """Splits text into reasoning and the rest.

    Only what stands at the beginning is reasoning (blanks before it aside); without ``<think>``
    there the text stays as it is.  ``inside``: the reply begins within the thought, as with
    templates that write ``<think>`` themselves.  Blanks at the tags go.
    """

    def __init__(self, *, inside: bool = False) -> None:
        self._state = "inside" if inside else "start"
        self._held = ""
        self._begun = False  # the thought has text

    def feed(self, text: str) -> tuple[str, str]:
        """More text: (reasoning, rest) that are certain now."""
        if self._state == "text":
            return "", text
        text = self._held + text
        self._held = ""
        if self._state == "start":
            bare = text.lstrip()
            if bare.startswith(OPEN):
                self._state = "inside"
                text = bare[len(OPEN) :]
            elif OPEN.startswith(bare):
                self._held = text
                return "", ""
            else:
                self._state = "text"
                return "", text
        reasoning = ""
        if self._state == "inside":
            thought, tag, text = text.partition(CLOSE)
            if tag:
                self._state = "after"
            else:
                certain = _without_beginning(thought, CLOSE)
                self._held = thought[len(certain) :]
                thought = certain
            bare = thought.rstrip()
            if not tag:
                self._held = thought[len(bare) :] + self._held
            reasoning = bare if self._begun else bare.lstrip()
            self._begun = self._begun or bool(reasoning)
        if self._state == "after":
            text = text.lstrip()
            if text:
                self._state = "text"
        return reasoning, text

    def finish(self) -> tuple[str, str]:
        """The end of the text."""
        held, self._held = self._held, ""
        if self._state == "inside":
            return held.rstrip() if self._begun else held.strip(), ""
        return "", held


def _without_beginning(text: str, tag: str) -> str:
    """``text`` less what may be the beginning of ``tag`` at its end."""
    last = text.rfind("<", max(0, len(text) - len(tag) + 1))
    return text[:last] if last >= 0 and tag.startswith(text[last:]) else text
