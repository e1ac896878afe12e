"""The packages import downwards only, and the core and the grammar nothing but the standard library."""

from __future__ import annotations

import ast
import sys
from collections.abc import Iterator
from pathlib import Path

import lfm2_fixed

PACKAGE = Path(lfm2_fixed.__file__).parent
FLOORS = {
    **{"core": 0, "wire": 1, "extras": 1, "grammar": 2, "gate": 2, "proxy": 3, "plugin": 3, "check": 3},
    **{"parser": 4, "repro": 5, "cli": 6, "__main__": 7},
}
"""The floor of each package or module.  None imports from its own floor or from above: those of one floor do not know
each other.  The package's own names (``from lfm2_fixed import parse``) come from the core, and are not for it."""


def imports(package: tuple[str, ...], source: str) -> Iterator[str]:
    """The modules that a module of ``package`` imports, wherever it does (in a function, for types alone)."""
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Import):
            yield from (name.name for name in node.names)
        elif isinstance(node, ast.ImportFrom):
            base = package[: len(package) - node.level + 1] if node.level else ()
            module = ".".join([*base, *([node.module] if node.module else [])])
            # What is imported may be a module itself: `from . import tokens`.
            yield from (f"{module}.{name.name}" for name in node.names)


def faults(path: Path, source: str) -> list[str]:
    """What the module at this path (relative to the package) must not import."""
    *packages, stem = path.with_suffix("").parts
    mine = packages[0] if packages else stem
    found = []
    for name in imports((PACKAGE.name, *packages), source):
        top, *rest = name.split(".")
        if top == PACKAGE.name:
            theirs = rest[0] if rest and rest[0] in FLOORS else "core"
            named = bool(rest) and rest[0] in FLOORS
            if mine == "__init__":
                wrong = theirs != "core"
            elif theirs == mine:
                wrong = mine == "core" and not named  # by way of the package that imports it
            else:
                wrong = FLOORS[theirs] >= FLOORS[mine]
        else:
            wrong = mine in ("core", "grammar", "__init__") and top not in sys.stdlib_module_names
        if wrong:
            found.append(f"{path}: {name}")
    return found


def test_imports_go_down() -> None:
    files = sorted(PACKAGE.rglob("*.py"))
    assert {path.relative_to(PACKAGE).parts[0].removesuffix(".py") for path in files} == {"__init__", *FLOORS}
    assert [fault for path in files for fault in faults(path.relative_to(PACKAGE), path.read_text())] == []


def test_what_goes_up_is_found() -> None:
    for path, source, wrong in (
        ("core/calls.py", "from ..wire import chat", True),
        ("core/calls.py", "def f():\n    import httpx", True),
        ("core/calls.py", "from lfm2_fixed import parse", True),
        ("core/calls.py", "import re\nfrom .tokens import NAME\nfrom . import tokens", False),
        ("wire/chat.py", "from ..gate import Gate", True),
        ("wire/chat.py", "from ..core.events import Content", False),
        ("gate/__init__.py", "from lfm2_fixed.grammar import structural_tag", True),
        ("gate/__init__.py", "from .validate import validate\nfrom ..wire.turn import Turn", False),
        ("proxy/app.py", "from lfm2_fixed.check.verdict import Verdict", True),
        ("proxy/app.py", "from .. import gate, __version__", False),
        ("plugin/parsers.py", "if TYPE_CHECKING:\n    from ..cli import main", True),
        ("repro/readers.py", "from .. import parser\nimport vllm", False),
        ("__init__.py", "from .wire import chat", True),
        ("__init__.py", "from .core.stream import PythonicStream", False),
    ):
        assert bool(faults(Path(path), source)) is wrong, (path, source)
