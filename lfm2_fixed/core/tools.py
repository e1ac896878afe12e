"""What a request declares: the one reading of ``tools``, in every shape that clients and servers use.

``functions`` is for everybody who needs the declared functions with their schemas (the gate, the
grammar, the proxy, the plugin); ``Declared`` is what the machine asks while it reads calls.

Shapes, each as dicts or as objects with the same attributes, in any mixture:

    Chat Completions   {"type": "function", "function": {"name", "parameters", "strict"}}
    Responses          {"type": "function", "name", "parameters", "strict"}
                       {"type": "namespace", "name", "tools": [the above]}
    Messages           {"name", "input_schema"}, with or without "type": "custom"
    custom tools       {"type": "custom", "custom": {"name"}} or {"type": "custom", "name"}: free text, no JSON
    the legacy list    {"name", "parameters"}
    names alone        {tool: [parameter, …]} or {tool: {parameter: schema or type, …}}

Everything else is a tool that the server runs itself (web search and the like, also where it has a
name) and declares no function: the model calls it in other ways.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Union

Tools = Union[Mapping[str, Union[Sequence[str], Mapping[str, Any]]], Iterable[Any], None]
"""A request's ``tools`` (see the module), or parameters by tool name."""

CUSTOM_SCHEMA: Mapping[str, Any] = {
    "type": "object",
    "properties": {"input": {"type": "string"}},
    "required": ["input"],
}
"""A custom tool's free text, as the one argument under which models are shown it."""


_MAPPING = (dict, Mapping)
"""For ``isinstance``: nearly all are dicts, and the abstract class takes ten times as long to ask."""


@dataclass(frozen=True)
class Function:
    """One declared function."""

    name: str
    """As declared.  Never empty."""
    namespace: str = ""
    """The Responses namespace that holds it, or ``""``."""
    schema: Any = None
    """The JSON Schema of its arguments, a mapping or a boolean; None if it has none.  Anything else is as it was
    given: no schema, for the reader to refuse."""
    custom: bool = False
    """It takes free text rather than JSON (``schema`` is then ``CUSTOM_SCHEMA``)."""
    strict: bool = False

    @property
    def key(self) -> tuple[str, str]:
        """What tells it from all others: two namespaces may hold a function of the same name each."""
        return self.namespace, self.name

    @property
    def model_name(self) -> str:
        """The name that the model is shown and writes: ``namespace__name`` (as vLLM flattens them), or the name."""
        return f"{self.namespace}__{self.name}" if self.namespace else self.name

    @property
    def parameters(self) -> tuple[str, ...]:
        """The names of the parameters, in the schema's order."""
        return tuple(_properties(self.schema))


def functions(tools: Tools, refuse: Callable[[str], Any] = lambda message: None) -> list[Function]:
    """The functions that ``tools`` declare, in order.

    ``refuse`` is told of each entry that should declare a function and cannot, in a sentence that says where
    (``"tool 2 has no name"``); it may raise.  By default such entries are left out.
    """
    if tools is None:
        return []
    if isinstance(tools, Mapping):
        return [Function(str(name), schema=_schema_of_names(names)) for name, names in tools.items()]
    found: list[Function] = []
    for position, tool in enumerate(tools):
        where = f"tool {position}"
        if _get(tool, "type") == "namespace":
            namespace = _get(tool, "name")
            if not isinstance(namespace, str) or not namespace:
                refuse(f"{where} has no name")
                continue
            members = _get(tool, "tools") or ()
            if not isinstance(members, (list, tuple)):
                refuse(f"{where} has no list of tools")
                continue
            for inner, member in enumerate(members):
                _declare(member, namespace, f"{where}, tool {inner} of the namespace", found, refuse)
        else:
            _declare(tool, "", where, found, refuse)
    return found


def _declare(tool: Any, namespace: str, where: str, found: list[Function], refuse: Callable[[str], Any]) -> None:
    """Add what one entry declares."""
    if tool is None or isinstance(tool, (str, bytes, int, float, list, tuple)):
        refuse(f"{where} is not an object")
        return
    kind = _get(tool, "type")
    if not isinstance(kind, (str, type(None))):
        refuse(f"{where} has no type")
        return
    # Messages calls every tool of the client's "custom" and tells it by its schema.
    custom = kind == "custom" and _get(tool, "input_schema") is None
    if kind not in ("function", "custom", None) and _get(tool, "input_schema") is None:
        return  # the server's own
    function = _get(tool, "custom" if custom else "function")
    if function is None or isinstance(function, str):
        function = tool
    name = _get(function, "name")
    if not isinstance(name, str) or not name:
        refuse(f"{where} has no name")
        return
    if custom:
        found.append(Function(name, namespace, CUSTOM_SCHEMA, custom=True))
        return
    schema = _get(function, "parameters")
    if schema is None:
        schema = _get(function, "input_schema")
    strict = _get(function, "strict") is True or _get(tool, "strict") is True
    found.append(Function(name, namespace, _plain(schema), strict=strict))


def _schema_of_names(names: Any) -> dict[str, Any]:
    """The schema of a tool of which only the parameters are known."""
    if isinstance(names, Mapping):
        properties = {str(name): {"type": kind} if isinstance(kind, str) else kind for name, kind in names.items()}
    else:
        properties = {str(name): {} for name in names}
    return {"type": "object", "properties": properties}


def _get(value: Any, key: str) -> Any:
    return value.get(key) if isinstance(value, _MAPPING) else getattr(value, key, None)


def _plain(schema: Any) -> Any:
    """A schema that came as an object (a request model), as a mapping."""
    if schema is None or isinstance(schema, (Mapping, bool, str, int, float, list)):
        return schema
    if hasattr(schema, "model_dump"):  # pydantic: only what the client said, under the names it used
        return schema.model_dump(mode="json", by_alias=True, exclude_unset=True)
    return vars(schema) if hasattr(schema, "__dict__") else schema


def _properties(schema: Any) -> Mapping[str, Any]:
    properties = schema.get("properties") if isinstance(schema, _MAPPING) else None
    return properties if isinstance(properties, _MAPPING) else {}


# ---- what the machine asks -----------------------------------------------------------------------


class Declared(dict[str, tuple[str, ...]]):
    """The declared functions by the names that the model writes: their parameters' names, in order."""

    def __init__(self, tools: Tools = None) -> None:
        super().__init__()
        self._schemas: dict[str, Any] = {}
        self._sorted: list[str] | None = None  # made when a beginning is asked for: most turns never ask
        for function in functions(tools):
            name = function.model_name
            self[name] = function.parameters
            self._schemas[name] = function.schema

    def takes_lone_object(self, name: str) -> bool:
        """Whether an object that is the only, positional argument of a call is all its arguments.

        contract 5.5: where the tool is declared and its first parameter cannot be an
        object by its schema, or there is none.
        """
        if name not in self:
            return False
        schema = self._schemas[name]
        first = next(iter(_properties(schema).values()), False)
        return not _may_be_object(first, schema)

    def beginning(self) -> NameBeginning:
        """For a name that arrives in pieces."""
        if self._sorted is None:
            self._sorted = sorted(self)
        return NameBeginning(self._sorted)


class NameBeginning:
    """Whether pieces that arrive one after the other are still the beginning of one of many names.

    The names that begin with what came so far are neighbours in the sorted list.  Each piece narrows their range,
    so it costs its own length times the logarithm of their number, however long the name is by then.
    """

    __slots__ = ("_names", "_first", "_end", "_length")

    def __init__(self, names: Sequence[str]) -> None:
        self._names = names  # sorted
        self._first = 0  # the range of names that are left
        self._end = len(names)
        self._length = 0  # of what came

    def goes_on(self, piece: str) -> bool:
        """Add a piece.  False, from then on, if no name begins so."""
        at, after = self._length, self._length + len(piece)

        def part(name: str) -> str:
            return name[at:after]

        # The names in the range agree up to ``at``, so what follows is sorted, too.
        self._first = bisect_left(self._names, piece, self._first, self._end, key=part)
        self._end = bisect_right(self._names, piece, self._first, self._end, key=part)
        self._length = after
        return self._first < self._end

    @property
    def whole(self) -> bool:
        """Whether what came is one of the names."""
        return self._first < self._end and len(self._names[self._first]) == self._length


_NO_OBJECTS = frozenset(["string", "number", "integer", "boolean", "array", "null"])
"""JSON Schema's types without ``object``.  Others that people write (``dict``, ``any``) may mean one."""
_MAX_DEPTH = 32
"""Levels of combinations and references that are looked into: more is nothing that a person wrote."""


def _may_be_object(schema: Any, root: Any) -> bool:
    """Whether an object may be valid by ``schema``; where that cannot be told by simple means, it may.

    ``root``: the schema that references refer to.  Each reference is followed once, so that a schema which
    refers to itself costs what its length says.
    """
    followed: dict[str, bool] = {}

    def may(schema: Any, depth: int) -> bool:
        if not isinstance(schema, _MAPPING):
            return schema is not False
        if depth > _MAX_DEPTH:
            return True
        kinds = schema.get("type")
        kinds = [kinds] if isinstance(kinds, str) else kinds
        if isinstance(kinds, list) and kinds and all(isinstance(kind, str) and kind in _NO_OBJECTS for kind in kinds):
            return False
        if "const" in schema and not isinstance(schema["const"], Mapping):
            return False
        values = schema.get("enum")
        if isinstance(values, list) and not any(isinstance(value, _MAPPING) for value in values):
            return False
        for keyword, enough in (("anyOf", any), ("oneOf", any), ("allOf", all)):
            branches = schema.get(keyword)
            if isinstance(branches, list) and not enough(may(branch, depth + 1) for branch in branches):
                return False
        reference = schema.get("$ref")
        if not isinstance(reference, str):
            return True
        if reference not in followed:
            followed[reference] = True  # while it is looked into
            followed[reference] = may(_resolve(reference, root), depth + 1)
        return followed[reference]

    return may(schema, 0)


def _resolve(reference: str, root: Any) -> Any:
    """What ``#/$defs/name`` refers to; anything, if it cannot be found."""
    if not reference.startswith("#"):
        return True
    value = root
    for step in reference[1:].split("/")[1:]:
        step = step.replace("~1", "/").replace("~0", "~")
        if not isinstance(value, _MAPPING) or step not in value:
            return True
        value = value[step]
    return value
