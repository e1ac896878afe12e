"""Texts that somebody else wrote, from what is installed: code, scripts, patterns, formulas, paths, documents.

Which texts there are depends on the machine, which of them are taken on the seed.  What holds a marker, a NUL or a
carriage return (kept as written, see the contract) is left out.
"""

from __future__ import annotations

import ast
import os
import random
import sysconfig
import textwrap
import warnings
from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path

MAX_LENGTH = 3000  # characters of one value: two screens of code, more than most tool calls hold
MIN_LENGTH = 20
PER_FILE = 3  # texts of one file, so that no package fills the corpus

SHELL_ROOTS = ("/usr/bin", "/usr/sbin", "/etc", "/usr/lib", "/usr/share", "/usr/local")
DOCUMENTS = (".json", ".html", ".js", ".xml", ".yaml", ".yml", ".toml", ".md", ".h", ".c", ".cpp", ".css", ".ini")


def _roots() -> list[str]:
    """The standard library and the installed packages."""
    paths = sysconfig.get_paths()
    return sorted({paths[key] for key in ("stdlib", "purelib", "platlib")})


@cache
def _files(roots: tuple[str, ...], suffixes: tuple[str, ...]) -> tuple[Path, ...]:
    """Files below ``roots`` in a fixed order."""
    found = []
    for root in roots:
        for directory, folders, names in os.walk(root):
            folders[:] = sorted(name for name in folders if name not in ("__pycache__", "lfm2_fixed"))
            found += [Path(directory, name) for name in sorted(names) if name.endswith(suffixes)]
    return tuple(dict.fromkeys(found))


def _read(path: Path) -> str:
    try:
        if path.stat().st_size > 400_000:
            return ""
        return path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError):
        return ""


def _tree(text: str) -> ast.Module | None:
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return ast.parse(text)
    except (SyntaxError, ValueError, RecursionError):
        return None


def _functions(text: str, rng: random.Random) -> list[str]:
    """Functions and classes, without the indentation of what they stand in."""
    tree = _tree(text)
    if tree is None:
        return []
    nodes = [node for node in ast.walk(tree) if isinstance(node, (ast.FunctionDef, ast.ClassDef, ast.AsyncFunctionDef))]
    rng.shuffle(nodes)
    lines = text.split("\n")
    return [textwrap.dedent("\n".join(lines[node.lineno - 1 : node.end_lineno])) for node in nodes[: PER_FILE * 2]]


def _modules(text: str, rng: random.Random) -> list[str]:
    """The head of a file that begins with its docstring: the value begins with three quotes."""
    if not text.startswith(('"""', "'''")):
        return []
    return ["\n".join(text.split("\n")[: rng.randrange(10, 60)])]


def _patterns(text: str, rng: random.Random) -> list[str]:
    """Regular expressions given to ``re.compile`` and its like."""
    tree = _tree(text) if "re." in text else None
    if tree is None:
        return []
    return [
        node.args[0].value
        for node in ast.walk(tree)
        if isinstance(node, ast.Call)
        and isinstance(node.func, ast.Attribute)
        and isinstance(node.func.value, ast.Name)
        and node.func.value.id == "re"
        and node.args
        and isinstance(node.args[0], ast.Constant)
        and isinstance(node.args[0].value, str)
    ]


def _formulas(text: str, rng: random.Random) -> list[str]:
    """Docstrings with LaTeX in them, by paragraphs."""
    tree = _tree(text) if "\\frac" in text or "\\text" in text or "\\begin" in text else None
    if tree is None:
        return []
    paragraphs = []
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant) and isinstance(node.value, str):
            blocks = node.value.split("\n\n")
            paragraphs += [block for block in blocks if "\\frac" in block or "\\text" in block or "\\begin" in block]
    return paragraphs


def _chunks(text: str, rng: random.Random) -> list[str]:
    """The whole of a small file, or runs of lines of a large one."""
    if len(text) <= MAX_LENGTH:
        return [text]
    lines = text.split("\n")
    chunks = []
    for _ in range(PER_FILE):
        first = rng.randrange(len(lines))
        chunks.append("\n".join(lines[first : first + rng.randrange(5, 60)]))
    return chunks


def _is_script(text: str) -> bool:
    head = text[:60].split("\n")[0]
    return head.startswith("#!") and "sh" in head


def _shell(text: str, rng: random.Random) -> list[str]:
    return _chunks(text, rng) if _is_script(text) else []


_DRIVES = ("C:", "D:", "\\\\server", "C:", "E:", ".", "..", "%APPDATA%")
_FOLDERS = (
    "Users", "test", "new", "bin", "Program Files", "Windows", "System32", "temp", "users", "nuget", "foo", "a b",
    "xampp", "Nina", "Ulrich", "reports", "Ünal", "0ld", "vendor", "Desktop", "AppData", "Local", "repos", "1st", "x64",
)  # fmt: skip
_LEAVES = ("file.txt", "readme.md", "notes.txt", "app.exe", "config.ini", "table.xlsx", "unit.cfg", "*.log", "new.dat")


def paths(rng: random.Random) -> Iterator[str]:
    """Windows paths."""
    while True:
        folders = rng.sample(_FOLDERS, rng.randrange(1, 5))
        # One in forty ends in a backslash, which no reader can tell from an escaped quote.
        yield "\\".join([rng.choice(_DRIVES), *folders, rng.choice(_LEAVES) if rng.random() < 0.975 else ""])


def _from_files(
    roots: tuple[str, ...],
    suffixes: tuple[str, ...],
    take: Callable[[str, random.Random], list[str]],
    rng: random.Random,
) -> Iterator[str]:
    files = list(_files(roots, suffixes))
    rng.shuffle(files)
    for path in files:
        text = _read(path)
        if text:
            fits = [text for text in take(text, rng) if MIN_LENGTH <= len(text) <= MAX_LENGTH]
            yield from fits[:PER_FILE]


def _kinds(rng: random.Random) -> dict[str, Iterator[str]]:
    packages = tuple(_roots())
    return {
        "functions": _from_files(packages, (".py",), _functions, rng),
        "functions with \\": (t for t in _from_files(packages, (".py",), _functions, rng) if "\\" in t),
        "modules": _from_files(packages, (".py",), _modules, rng),
        "shell": _from_files(SHELL_ROOTS, ("",), _shell, rng),
        "regexes": _from_files(packages, (".py",), _patterns, rng),
        "LaTeX": _from_files(packages, (".py",), _formulas, rng),
        "Windows paths": paths(rng),
        "documents": _from_files(packages, DOCUMENTS, _chunks, rng),
    }


KINDS = ("functions", "functions with \\", "modules", "shell", "regexes", "LaTeX", "Windows paths", "documents")


def usable(text: str) -> bool:
    """Whether the contract speaks about this value without a special clause."""
    return (
        "<|" not in text
        and "\0" not in text
        and "\r" not in text
        and not any("\ud800" <= char <= "\udfff" for char in text)
    )


def texts(count: int, seed: int = 0, kinds: tuple[str, ...] = KINDS) -> Iterator[tuple[str, str]]:
    """About ``count`` (kind, text) pairs, spread over the kinds; fewer where a kind runs out."""
    for number, kind in enumerate(kinds):
        source = _kinds(random.Random(f"{seed} {kind}"))[kind]
        left = count // len(kinds) + (number < count % len(kinds))
        seen: set[str] = set()
        for text in source:
            if left == 0:
                break
            if usable(text) and text not in seen:
                seen.add(text)
                left -= 1
                yield kind, text
