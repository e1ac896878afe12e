"""What CPython reads in a list of calls: the reference where a text is valid Python (contract 1, L3)."""

from __future__ import annotations

import ast
import math
import warnings
from typing import Any

from .example import Call, dump

_JSON_NAMES = {"true": True, "false": False, "null": None}


def read_by_python(source: str) -> list[Call] | None:
    """The calls of a list of calls whose arguments are literals; None where CPython reads no such list."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            tree = ast.parse(source, mode="eval").body
        if not isinstance(tree, ast.List):
            return None
        return [_call(node) for node in tree.elts]
    except (SyntaxError, ValueError, TypeError, MemoryError, RecursionError):
        return None


def _call(node: ast.expr) -> Call:
    if not isinstance(node, ast.Call) or node.args or not isinstance(node.func, (ast.Name, ast.Attribute)):
        raise ValueError("no call with named arguments")
    arguments = {keyword.arg: _value(keyword.value) for keyword in node.keywords}
    return ast.unparse(node.func), dump(arguments)


def _value(node: ast.expr) -> Any:
    """A literal's value as JSON has it; ValueError where it has none."""
    if isinstance(node, ast.Name) and node.id in _JSON_NAMES:
        return _JSON_NAMES[node.id]
    if isinstance(node, ast.JoinedStr):
        if not all(isinstance(part, ast.Constant) for part in node.values):
            raise ValueError("an f-string with a placeholder")
        return "".join(part.value for part in node.values if isinstance(part, ast.Constant))
    if isinstance(node, (ast.List, ast.Tuple, ast.Set)):
        return [_value(element) for element in node.elts]
    if isinstance(node, ast.Dict):
        if None in node.keys:
            raise ValueError("** in a dict")
        keys = [_value(key) for key in node.keys if key is not None]
        written = [next(iter(ast.literal_eval(dump({key: 0})))) for key in keys]  # as json.dumps writes keys
        if len(set(written)) < len(written):
            raise ValueError("a repeated key")
        return dict(zip(written, map(_value, node.values)))
    value = ast.literal_eval(node)
    if not (value is None or isinstance(value, (str, int, float))):
        raise ValueError("no JSON form")
    if isinstance(value, float) and not math.isfinite(value):
        raise ValueError("no JSON form")
    if isinstance(node, ast.UnaryOp) and (isinstance(value, bool) or isinstance(node.operand, ast.UnaryOp)):
        raise ValueError("more than one sign")
    return value
