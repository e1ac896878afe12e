"""The tools a request declares, and what their JSON Schemas say about arguments.

JSON Schema 2020-12 in full, by the ``jsonschema`` library; a schema that names another draft with
``$schema`` is read by that draft.  As the standard has it, ``format`` is an annotation and is not checked.
References are resolved inside the schema and to the drafts' own metaschemas; nothing is ever fetched.
"""

from __future__ import annotations

import hashlib
import json
import threading
from collections import OrderedDict
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any

from ..wire.request import client_tools, functions
from ..wire.turn import Call, plain
from .budget import TOOLS, OverBudget, budget, steps_for
from .keywords import BadSchema, compile_schema
from .violations import Violation, violations

if TYPE_CHECKING:
    from jsonschema.protocols import Validator

KEPT = 32
"""Sets of tools whose compiled schemas are kept: an agent sends the same set with each request."""

KEPT_CHARACTERS = 1_000_000
"""A set whose JSON text is longer is compiled anew each time: what is kept is bounded."""


class ToolsError(ValueError):
    """The declared tools themselves cannot be used; the message says which one and why."""


class _Declared:
    """One tool: its validator, None where anything goes; ``text``: whether it takes free text."""

    __slots__ = ("key", "text", "validator")

    def __init__(self, key: tuple[str, str], validator: Validator | None, text: bool = False) -> None:
        self.key = key
        self.validator = validator
        self.text = text


class Tools:
    """Declared tools, their schemas compiled once.  It never changes, and threads may share it.

    ``tools``: a list as Chat Completions, Responses or Messages take it, of dicts or the clients' objects.
    A tool is known by its namespace and name; two namespaces may hold a tool of the same name each.
    Tools that the server runs itself (web search and the like) are passed over.  Raises ToolsError for a tool
    without a name, one declared twice, a schema that is none, and schemas that take more than ``budget.TOOLS``
    steps to read; ImportError without ``jsonschema``.
    """

    def __init__(self, tools: Iterable[Any]) -> None:
        self._declared: dict[tuple[str, str], _Declared] = {}
        self._by_name: dict[str, list[_Declared]] = {}
        self.given = given = list(tools)
        """As the request has them, schemas and all: for the machine that reads the model's own text."""
        name = ""
        try:
            with budget(TOOLS):
                for function in functions(given, _refuse):
                    name = function.name
                    self._add(function.key, function.model_name, function.schema, function.custom)
        except BadSchema as error:
            raise ToolsError(f"the parameters of {name!r} are no JSON Schema: {error}") from error
        except OverBudget:
            raise ToolsError(f"the parameters of {name!r}, or of all tools together, are too large to check") from None
        for name in client_tools(given):
            self._enter(_Declared(("", name), None), name)

    def __contains__(self, name: str) -> bool:
        return self.find(Call(name, "")) is not None

    @property
    def names(self) -> tuple[str, ...]:
        """The declared names, in order."""
        return tuple(name for _, name in self._declared)

    def find(self, call: Call) -> _Declared | None:
        """The tool that a call names, or None.

        By namespace and name; where the call has no namespace, its name (alone, or as ``namespace__name``, which is
        how servers show it to models) must fit one tool only.
        """
        if call.namespace is not None:
            return self._declared.get((call.namespace, call.name))
        exact = self._declared.get(("", call.name))
        if exact is not None:
            return exact
        fitting = self._by_name.get(call.name, ())
        return fitting[0] if len(fitting) == 1 else None

    def takes_text(self, name: str) -> bool:
        """Whether this is a ``custom`` tool: it takes free text, no JSON."""
        tool = self.find(Call(name, ""))
        return tool is not None and tool.text

    def violations(self, name: str, arguments: dict[str, Any]) -> list[Violation]:
        """Everything that is wrong with the arguments of a call of a declared function.  Raises KeyError."""
        tool = self.find(Call(name, ""))
        if tool is None:
            raise KeyError(name)
        return self.broken(tool, arguments, len(json.dumps(arguments)))

    def broken(self, tool: _Declared, arguments: dict[str, Any], characters: int) -> list[Violation]:
        """The same for a tool that was found.  ``characters``: the length of the arguments' text."""
        if tool.validator is None:
            return []
        try:
            with budget(steps_for(characters)):
                return violations(tool.validator, arguments)
        except OverBudget:
            message = "checking these arguments against the schema would take more steps than it may"
            return [Violation("OVER_BUDGET", "", message)]
        except Exception as error:
            # A reference to nowhere, arithmetic or a stack that overflows: what could not be checked is
            # not accepted.
            message = f"could not be checked against the schema ({type(error).__name__})"
            return [Violation("SCHEMA_VIOLATION", "", message)]

    def _add(self, key: tuple[str, str], model_name: str, schema: Any, custom: bool) -> None:
        if custom:
            self._enter(_Declared(key, None, text=True), model_name)
            return
        if schema is None:
            # "Omitting parameters defines a function with an empty parameter list."
            schema = {"type": "object", "properties": {}, "additionalProperties": False}
        if not isinstance(schema, (Mapping, bool)):
            raise BadSchema("neither an object nor a boolean")
        self._enter(_Declared(key, compile_schema(schema)), model_name)

    def _enter(self, tool: _Declared, model_name: str) -> None:
        if tool.key in self._declared:
            raise ToolsError(f"the name {model_name!r} is declared twice")
        self._declared[tool.key] = tool
        for name in dict.fromkeys([tool.key[1], model_name]):
            self._by_name.setdefault(name, []).append(tool)


def _refuse(message: str) -> None:
    raise ToolsError(message)


_kept: OrderedDict[bytes, Tools] = OrderedDict()
_lock = threading.Lock()


def compiled_tools(tools: Iterable[Any] | Tools) -> Tools:
    """The tools compiled, or as they were compiled before.

    The last ``KEPT`` sets are kept, by their JSON text.  Safe to call from any thread.  Raises as ``Tools``.
    """
    if isinstance(tools, Tools):
        return tools
    given = [plain(tool) for tool in tools]
    try:
        text = json.dumps(given)
    except (TypeError, ValueError, RecursionError):
        return Tools(given)  # no JSON: compared with nothing, so compiled anew
    if len(text) > KEPT_CHARACTERS:
        return Tools(given)
    key = hashlib.sha256(text.encode("utf-8", "surrogatepass")).digest()
    with _lock:
        known = _kept.get(key)
        if known is not None:
            _kept.move_to_end(key)
            return known
    made = Tools(json.loads(text))  # a copy, so that nobody changes what is kept
    with _lock:
        _kept[key] = made
        while len(_kept) > KEPT:
            _kept.popitem(last=False)
    return made
