"""The faults that ``scripts/mutate`` plants: which places of a module can be changed, and what is written there.

Standard library only.  A fault has a name that does not move with the lines of its file, so that a reviewed list
can say of it that it changes nothing.
"""

from __future__ import annotations

import ast
import copy
import re
from collections.abc import Iterator
from pathlib import Path

PACKAGE = Path(__file__).resolve().parent.parent / "lfm2_fixed"
SHOWN = 90
"""Characters of the code on either side: enough to recognise the place."""

COMPARISONS = {
    ast.Eq: ast.NotEq, ast.NotEq: ast.Eq, ast.Lt: ast.LtE, ast.LtE: ast.Lt, ast.Gt: ast.GtE, ast.GtE: ast.Gt,
    ast.Is: ast.IsNot, ast.IsNot: ast.Is, ast.In: ast.NotIn, ast.NotIn: ast.In,
}  # fmt: skip
OPERATORS = {ast.Add: ast.Sub, ast.Sub: ast.Add, ast.Mult: ast.Add, ast.BitOr: ast.BitAnd, ast.FloorDiv: ast.Mult}
FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef)
PROSE = re.compile(r"[a-z]{2,},? [a-z]{2,}")
"""A message for people: its wording is promised nowhere, and tests that hold it would only be in the way."""

Steps = tuple[tuple[str, "int | None"], ...]
"""The way from a node to one below it: fields, and places in their lists."""


def source_of(module: str) -> Path:
    """The file of a module, which is named relative to the package."""
    return PACKAGE.joinpath(*module.split(".")).with_suffix(".py")


class Fault:
    """One place of one module and what to write there."""

    def __init__(self, module: str, scope: str, inside: bool, line: int, what: str, path: Steps, new: ast.AST) -> None:
        self.module, self.line, self.what, self.path, self.new = module, line, what, path, new
        self.scope = scope
        """The name of the innermost function or class."""
        self.inside = inside
        """Whether it is in the body of a function, which can be changed in a program that runs."""
        self.name = f"{module}: {scope}: {what}" if scope else f"{module}: {what}"

    def __str__(self) -> str:
        return f"{self.module}:{self.line}: {self.scope}: {self.what}"

    def apply(self, tree: ast.Module) -> ast.Module:
        """A copy of the module with the fault in it."""
        tree = copy.deepcopy(tree)
        node: ast.AST = tree
        for field, index in self.path[:-1]:
            node = getattr(node, field) if index is None else getattr(node, field)[index]
        field, index = self.path[-1]
        new = copy.deepcopy(self.new)
        if index is None:
            setattr(node, field, new)
        else:
            getattr(node, field)[index] = new
        return ast.fix_missing_locations(tree)


def faults(module: str, tree: ast.Module) -> list[Fault]:
    """Every fault of a module; of several with one name, the later ones are numbered."""
    found: list[Fault] = []

    def visit(node: ast.AST, path: Steps, scope: str, inside: bool) -> None:
        for what, new in variants(node, path):
            text = f"{ast.unparse(node)[:SHOWN]!r} -> {what}"
            found.append(Fault(module, scope, inside, getattr(node, "lineno", 0), text, path, new))
        named = isinstance(node, (*FUNCTIONS, ast.ClassDef))
        below = f"{scope}.{node.name}".lstrip(".") if named else scope  # type: ignore[attr-defined]
        for field, value in ast.iter_fields(node):
            if field in ("annotation", "returns", "decorator_list", "bases", "type_params"):
                continue
            within = inside or (field == "body" and isinstance(node, FUNCTIONS))
            if isinstance(value, ast.AST):
                visit(value, (*path, (field, None)), below, within)
            elif isinstance(value, list):
                for i, item in enumerate(value):
                    if isinstance(item, ast.AST) and not is_silent(item):
                        visit(item, (*path, (field, i)), below, within)

    for i, statement in enumerate(tree.body):
        if not is_silent(statement):
            visit(statement, (("body", i),), "", False)
    seen: dict[str, int] = {}
    for fault in found:
        seen[fault.name] = number = seen.get(fault.name, 0) + 1
        if number > 1:
            fault.name += f" #{number}"
    return found


def is_silent(node: ast.AST) -> bool:
    """Docstrings, imports, ``__slots__``, type aliases, log and error messages are no behaviour that is promised."""
    if isinstance(node, (ast.Import, ast.ImportFrom, ast.Raise, ast.Assert)):
        return True
    if isinstance(node, ast.If) and "TYPE_CHECKING" in ast.unparse(node.test):
        return True
    if isinstance(node, ast.Expr):
        text = ast.unparse(node.value)
        return isinstance(node.value, ast.Constant) or "logger" in text or "warning(" in text or "_log." in text
    if isinstance(node, ast.Assign):
        names, value = ast.unparse(node.targets[0]), ast.unparse(node.value)
        return names.startswith("__") or any(
            word in value for word in ("Union[", "Literal[", "Callable[", "TypeVar(", "Logger(")
        )
    return False


def variants(node: ast.AST, path: Steps) -> Iterator[tuple[str, ast.AST]]:
    """What can be written in a node's place."""

    def show(new: ast.AST) -> tuple[str, ast.AST]:
        return repr(ast.unparse(ast.fix_missing_locations(new))[:SHOWN]), new

    if isinstance(node, ast.Compare) and type(node.ops[0]) in COMPARISONS:
        new = copy.deepcopy(node)
        new.ops[0] = COMPARISONS[type(node.ops[0])]()
        yield show(new)
    elif isinstance(node, ast.BoolOp):
        logic = copy.deepcopy(node)
        logic.op = ast.And() if isinstance(node.op, ast.Or) else ast.Or()
        yield show(logic)
        for i in range(len(node.values)):
            rest = [copy.deepcopy(value) for j, value in enumerate(node.values) if j != i]
            yield show(rest[0] if len(rest) == 1 else ast.BoolOp(op=copy.deepcopy(node.op), values=rest))
    elif isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Not):
        yield show(copy.deepcopy(node.operand))
    elif isinstance(node, ast.BinOp) and type(node.op) in OPERATORS:
        sum_or_so = copy.deepcopy(node)
        sum_or_so.op = OPERATORS[type(node.op)]()
        yield show(sum_or_so)
    elif isinstance(node, ast.Constant):
        value = node.value
        if isinstance(value, bool):
            yield show(ast.Constant(not value))
        elif isinstance(value, int):
            yield show(ast.Constant(value + 1))
            if value:
                yield show(ast.Constant(value - 1))
        elif isinstance(value, str) and path[-1][0] != "slice" and not PROSE.search(value):
            if value:
                yield show(ast.Constant(value[1:]))
            if len(value) > 1:
                yield show(ast.Constant(value[:-1]))
            if not value:
                yield show(ast.Constant("x"))
    elif isinstance(node, (ast.If, ast.While)):
        for outcome in (True, False):
            if isinstance(node, ast.While) and outcome:
                continue
            changed = copy.deepcopy(node)
            changed.test = ast.Constant(outcome)
            yield f"{'if' if isinstance(node, ast.If) else 'while'} {outcome}", changed
    elif isinstance(node, ast.IfExp):
        yield show(copy.deepcopy(node.body))
        yield show(copy.deepcopy(node.orelse))
    elif isinstance(node, ast.Return) and node.value is not None and not isinstance(node.value, ast.Constant):
        yield "return None", ast.Return(value=ast.Constant(None))
    elif isinstance(node, ast.Break):
        yield "continue", ast.Continue()
    elif isinstance(node, ast.Continue):
        yield "break", ast.Break()
    elif isinstance(node, (ast.Expr, ast.AugAssign)) or (
        isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Attribute)
    ):
        yield "deleted", ast.Pass()
    elif isinstance(node, ast.Set) and len(node.elts) > 1:
        for i in range(len(node.elts)):
            new_set = copy.deepcopy(node)
            del new_set.elts[i]
            yield show(new_set)
