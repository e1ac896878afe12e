"""OpenAI Chat Completions: one choice of a stream or of a whole response, and the messages of a history.

vLLM, SGLang, llama.cpp, Mistral, Ollama and the compatible endpoints of others speak it.  Pieces of a call are
told apart by ``index``; the first one brings ``id``, ``type`` and ``function.name``, the others only more
of ``function.arguments``.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from .turn import Building, Call, Problems, Turn, is_index, nameless, settled, text_of


class Choice:
    """One choice while it streams.

    Clients join every string of a call over all its chunks, the name and the id as well.  So a server that
    repeats them hands over ``addadd`` or ``call_1call_1``, and one that begins a second call under the same
    index hands over two calls in one.  Both are kept as a problem, with the first name and id.
    """

    def __init__(self) -> None:
        self.problems = Problems()
        self._calls: dict[int, Building] = {}
        self._content: list[str] = []
        self._reasoning: list[str] = []
        self._finish: str | None = None
        self._legacy = False

    def feed(self, choice: Mapping[str, Any], offset: int | None = None) -> None:
        """Take the next chunk's entry for this choice."""
        delta = choice.get("delta")
        if isinstance(delta, Mapping):
            self._message(delta, offset)
            entries = delta.get("tool_calls")
            if isinstance(entries, list):
                for entry in entries:
                    self._entry(entry, offset)
            elif entries is not None:
                self.problems.malformed("tool_calls is not a list", None, offset)
        elif delta is not None:
            self.problems.malformed("a delta is not an object", None, offset)
        self._end(choice)

    def whole(self, choice: Mapping[str, Any]) -> None:
        """Take the choice of a whole response."""
        message = choice["message"]
        self._message(message, None)
        entries = message.get("tool_calls")
        if isinstance(entries, list):
            # Whole responses give no index: the calls stand in their order.
            for index, entry in enumerate(entries, len(self._calls)):
                self._entry({**entry, "index": index} if isinstance(entry, Mapping) else entry, None)
        elif entries is not None:
            self.problems.malformed("tool_calls is not a list")
        self._end(choice)

    def result(self, problems: Problems) -> Turn:
        """What has come together; ``problems``: those of the stream beside this choice's own."""
        calls = tuple(call.call() for call in self._calls.values())
        found = (*problems.all(), *self.problems.all(), *nameless(calls, ids=not self._legacy))
        return Turn(calls, "".join(self._content), self._finish, "chat", found, "".join(self._reasoning))

    def _message(self, message: Mapping[str, Any], offset: int | None) -> None:
        content = message.get("content")
        if isinstance(content, str):
            self._content.append(content)
        elif isinstance(content, list):  # Mistral's reasoning models send typed parts
            for part in content:
                self._part(part)
        # vLLM and OpenRouter say "reasoning", the others "reasoning_content", some both with the same text.
        thought = text_of(message.get("reasoning_content")) or text_of(message.get("reasoning"))
        if thought:
            self._reasoning.append(thought)
        if isinstance(message.get("function_call"), Mapping):  # the API before tools: one call, without an id
            self._legacy = True
            self._entry({"index": 0, "function": message["function_call"]}, offset)

    def _part(self, part: Any) -> None:
        if not isinstance(part, Mapping):
            return
        text = text_of(part.get("text"))
        if text:
            self._content.append(text)
        for inner in part["thinking"] if isinstance(part.get("thinking"), list) else ():
            thought = text_of(inner.get("text")) if isinstance(inner, Mapping) else None
            if thought:
                self._reasoning.append(thought)

    def _end(self, choice: Mapping[str, Any]) -> None:
        self._finish = settled(self._finish, choice.get("finish_reason"), "chat")

    def _entry(self, entry: Any, offset: int | None) -> None:
        index = entry.get("index") if isinstance(entry, Mapping) else None
        if not is_index(index):
            self.problems.malformed("a piece of a call lacks the index of its call", None, offset)
            return
        call = self._calls.get(index)
        if call is None:
            if index != len(self._calls):
                message = f"a call begins with an index other than {len(self._calls)}, which is next"
                self.problems.malformed(message, len(self._calls), offset)
            call = self._calls[index] = Building(position=len(self._calls))
        if entry.get("type") == "custom" or isinstance(entry.get("custom"), Mapping):
            call.kind = "custom"
        identity = self._text(entry, "id", call, offset)
        if identity:
            self._once("id", call.id, identity, call, offset)
            call.id = call.id or identity
        function = entry.get(call.kind)
        if isinstance(function, Mapping):
            name = self._text(function, "name", call, offset)
            if name:
                self._once("name", call.name, name, call, offset)
                call.name = call.name or name
            call.add(self._text(function, "input" if call.kind == "custom" else "arguments", call, offset), offset)
        elif function is not None:
            self.problems.malformed("the function of a call is not an object", call.position, offset)

    def _once(self, what: str, known: str | None, given: str, call: Building, offset: int | None) -> None:
        if not known:
            return
        if known == given:
            message = f"the {what} of a call comes again in a later chunk, where clients append it to the first"
        else:
            message = f"one index brings two {what}s: two calls in one, or a {what} in pieces"
        self.problems.malformed(message, call.position, offset)

    def _text(self, mapping: Mapping[str, Any], key: str, call: Building, offset: int | None) -> str:
        value = mapping.get(key)
        if isinstance(value, str):
            return value
        if value is not None:
            self.problems.malformed(f"the {key} of a call is not a string", call.position, offset)
        return ""


def history(turn: Turn, said: Sequence[tuple[Call, str]], results: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """The assistant's message with its calls (each with the id to use), and after it their results."""
    calls = [_call(call, identity) for call, identity in said]
    return [{"role": "assistant", "content": turn.content or None, "tool_calls": calls}, *results]


def result(call: Call, identity: str, text: str) -> dict[str, Any]:
    """The message that answers a call."""
    return {"role": "tool", "tool_call_id": identity, "content": text}


def _call(call: Call, identity: str) -> dict[str, Any]:
    key = "input" if call.kind == "custom" else "arguments"
    return {"id": identity, "type": call.kind, call.kind: {"name": call.name, key: call.arguments}}
