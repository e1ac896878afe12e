"""How a fault of ``scripts/mutate`` gets into code: into the loaded functions, or where a module is imported."""

from __future__ import annotations

import ast
import gc
import importlib.abc
import importlib.machinery
from functools import lru_cache
from types import CodeType, FunctionType, ModuleType
from typing import Any

from mutations import PACKAGE, Fault, source_of


class Planted(importlib.abc.MetaPathFinder, importlib.abc.Loader):
    """Imports one module from a changed tree."""

    def __init__(self, module: str, tree: ast.Module) -> None:
        self.name, self.path, self.code = f"lfm2_fixed.{module}", source_of(module), tree

    def find_spec(self, name: str, path: object, target: object = None) -> importlib.machinery.ModuleSpec | None:
        """Only the planted module."""
        if name != self.name:
            return None
        return importlib.machinery.ModuleSpec(
            name, self, origin=str(self.path), is_package=self.path.stem == "__init__"
        )

    def create_module(self, spec: importlib.machinery.ModuleSpec) -> ModuleType | None:
        """The default module."""
        return None

    def exec_module(self, module: ModuleType) -> None:
        """Run the changed code."""
        module.__file__ = str(self.path)
        exec(compile(self.code, str(self.path), "exec"), module.__dict__)


def functions_of(code: CodeType, path: tuple[int, ...] = ()) -> dict[tuple[tuple[str, int], ...], CodeType]:
    """The code of every function below, by names and first lines from the outermost to itself."""
    found: dict[Any, CodeType] = {}
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            key = (*path, (constant.co_name, constant.co_firstlineno))
            found[key] = constant  # type: ignore[index]
            found.update(functions_of(constant, key))  # type: ignore[arg-type]
    return found


_LruCache = type(lru_cache(int))


class Loaded:
    """The package's functions, in every copy of them, and all caches, as they are now.

    They are looked for once: to go over all objects makes a forked child copy most of its memory.
    """

    def __init__(self) -> None:
        self.functions: dict[tuple[str, str, int, bytes, tuple[str, ...]], list[FunctionType]] = {}
        self.caches: list[Any] = []
        prefix = str(PACKAGE)
        for thing in gc.get_objects():
            if isinstance(thing, FunctionType) and thing.__code__.co_filename.startswith(prefix):
                self.functions.setdefault(name_of(thing.__code__), []).append(thing)
            elif type(thing) is _LruCache:
                self.caches.append(thing)


def name_of(code: CodeType) -> tuple[str, str, int, bytes, tuple[str, ...]]:
    """What tells a function's code from all others of the package."""
    return code.co_filename, code.co_name, code.co_firstlineno, code.co_code, code.co_varnames


def write_into_functions(fault: Fault, tree: ast.Module, loaded: Loaded) -> bool:
    """Give the loaded functions of the module, in every copy of it, the changed code; whether that was possible."""
    file = str(source_of(fault.module))
    old = functions_of(compile(tree, file, "exec"))
    new = functions_of(compile(fault.apply(tree), file, "exec"))
    written = 0
    for key, code in old.items():
        other = new.get(key)
        if other is None:
            return False
        if code == other:
            continue
        for function in loaded.functions.get(name_of(code), ()):
            if other.co_freevars != function.__code__.co_freevars:
                return False
            function.__code__ = other
            written += 1
    for cache in loaded.caches:
        cache.cache_clear()
    return written > 0
