"""CPython's ``ast`` as the independent reference for what a block's calls are (law L3).

Nothing here is shared with the package: the value of a call list is what ``ast`` and
``json.dumps`` say it is.
"""

from __future__ import annotations

import ast
import json
import math
import re
import warnings
from collections.abc import Mapping, Sequence
from typing import Any

JSON_NAMES = {"true": True, "false": False, "null": None}


class NotLiteral(Exception):
    """The node is no literal in the contract's sense."""


class Outside(Exception):
    """The text is Python, but the law makes no statement about it (see ``read``)."""


def _string(value: str) -> str:
    if any("\ud800" <= char <= "\udfff" for char in value):
        raise Outside("lone surrogate")
    return value


def _number(value: float) -> float:
    if isinstance(value, float) and not math.isfinite(value):
        raise NotLiteral("no JSON form")
    return value


def _key(value: Any) -> str:
    """A dict key as ``json.dumps`` writes it."""
    if isinstance(value, (list, dict)):
        raise NotLiteral("container as key")
    return str(next(iter(json.loads(json.dumps({value: None})))))


def to_json_value(node: ast.expr) -> Any:
    """The node's value with tuples and sets as lists; :class:`NotLiteral` where there is none."""
    if isinstance(node, ast.Constant):
        if isinstance(node.value, str):
            return _string(node.value)
        if node.value is None or isinstance(node.value, (bool, int, float)):
            return _number(node.value) if isinstance(node.value, float) else node.value
        raise NotLiteral(type(node.value).__name__)
    if isinstance(node, ast.Name) and node.id in JSON_NAMES:
        return JSON_NAMES[node.id]
    if isinstance(node, ast.JoinedStr):
        parts = [str(part.value) for part in node.values if isinstance(part, ast.Constant)]
        if len(parts) != len(node.values):
            raise NotLiteral("f-string with a placeholder")
        return _string("".join(parts))
    if isinstance(node, (ast.List, ast.Tuple, ast.Set)):
        values = [to_json_value(element) for element in node.elts]
        if isinstance(node, ast.Set):
            _check_set(node)
        return values
    if isinstance(node, ast.Dict):
        keys, values = [], []
        for key_node, value_node in zip(node.keys, node.values):
            if key_node is None:
                raise NotLiteral("** in a dict")
            keys.append(_key(to_json_value(key_node)))
            values.append(to_json_value(value_node))
        if len(set(keys)) != len(keys):
            raise NotLiteral("repeated key")
        return dict(zip(keys, values))
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, (ast.UAdd, ast.USub)):
        operand = node.operand
        number = operand.value if isinstance(operand, ast.Constant) else None
        if isinstance(number, (int, float)) and not isinstance(number, bool):
            return _number(-number if isinstance(node.op, ast.USub) else number)
    raise NotLiteral(type(node).__name__)


def _check_set(node: ast.Set) -> None:
    """Python would merge equal elements and refuse unhashable ones; the law says nothing there."""
    try:
        if len(ast.literal_eval(node)) != len(node.elts):
            raise Outside("repeated set element")
    except (ValueError, TypeError) as error:
        raise Outside("set that Python cannot build") from error


def _call_name(node: ast.expr) -> str:
    if isinstance(node, ast.Name):
        return node.id
    if isinstance(node, ast.Attribute):
        return f"{_call_name(node.value)}.{node.attr}"
    raise NotLiteral("callee")


def call_of(node: ast.expr, parameters: Mapping[str, Sequence[str]] | None = None) -> tuple[str, str]:
    """Name and argument text of one call node."""
    if not isinstance(node, ast.Call):
        raise NotLiteral("no call")
    name = _call_name(node.func)
    items: list[tuple[str, Any]] = []
    if node.args:
        declared = list((parameters or {}).get(name, ()))
        if len(node.args) > len(declared):
            raise NotLiteral("positional arguments without names")
        items += [(declared[i], to_json_value(argument)) for i, argument in enumerate(node.args)]
    for keyword in node.keywords:
        value = to_json_value(keyword.value)
        if keyword.arg is not None:
            items.append((keyword.arg, value))
        elif isinstance(keyword.value, ast.Dict):
            if not all(isinstance(to_json_value(key), str) for key in keyword.value.keys if key):
                raise Outside("** with a key that is no string")
            items += value.items()
        else:
            raise NotLiteral("** of something else")
    if len({key for key, _ in items}) != len(items):
        raise NotLiteral("repeated argument")
    return name, json.dumps(dict(items), ensure_ascii=False)


def python(text: str) -> ast.expr | None:
    """``text`` as one Python expression, or ``None``."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return ast.parse(text.strip(" \t\n"), mode="eval").body
    except (SyntaxError, ValueError, MemoryError, RecursionError):
        return None


def read(text: str, parameters: Mapping[str, Sequence[str]] | None = None) -> list[tuple[str, str]] | None:
    """The calls of a block's text, or ``None`` where the law says nothing.

    Silent are the contract's own exclusions (lone surrogates, repeated keys, NFKC names, ``\\r``,
    number limits), text that Python refuses, lists with anything that is no literal call, and lists
    whose first call does not stand right after the bracket (no block begins there).
    """
    if "\r" in text or "\0" in text or not re.match(r"\s*\[\s*\w", text):
        return None
    tree = python(text)
    if not isinstance(tree, ast.List):
        return None
    names = {node.id for node in ast.walk(tree) if isinstance(node, ast.Name)}
    names |= {node.attr for node in ast.walk(tree) if isinstance(node, ast.Attribute)}
    names |= {node.arg for node in ast.walk(tree) if isinstance(node, ast.keyword) and node.arg}
    if not all(name in text for name in names):
        return None  # Python compares names in NFKC, the contract as written
    try:
        return [call_of(node, parameters) for node in tree.elts]
    except (NotLiteral, Outside):
        return None
