"""The vLLM plugin: registers the tool parsers (``--tool-call-parser lfm2_fixed``, ``llama4_pythonic_fixed``,
one for each dialect) and the reasoning parser (``--reasoning-parser lfm2_fixed``).

It can be loaded by the path of this file (``--tool-parser-plugin .../lfm2_fixed/parser.py``, from
a checkout or from site-packages), by its module name (``--tool-parser-plugin lfm2_fixed.parser``,
vLLM 0.30 and newer), or, once the package is installed, by vLLM itself through the entry point in
:mod:`lfm2_fixed.plugin`.  Each way registers the same classes, also when done again.

The reasoning parser is needed in the engine's process, too, which knows nothing of a tool parser's plugin:
by path or by module name, give the same to ``--reasoning-parser-plugin``.
"""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path

_PACKAGE = "lfm2_fixed"


def _find_package(directory: Path) -> None:
    """Make the package in ``directory`` the one that is imported, wherever ``sys.path`` points.

    vLLM executes a plugin given by its path as a module of its own, outside any package.
    """
    if not (directory / "plugin" / "parsers.py").is_file():
        raise ImportError(
            f"{directory} holds parser.py but not the rest of lfm2_fixed: "
            "give the path of parser.py inside the package's directory."
        )
    loaded = sys.modules.get(_PACKAGE)
    if loaded is not None and loaded.__file__ and Path(loaded.__file__).resolve().parent == directory:
        return
    # Another copy may have been loaded already, by its entry point: the path that was given wins.
    for name in [name for name in sys.modules if name.split(".")[0] == _PACKAGE]:
        del sys.modules[name]
    spec = importlib.util.spec_from_file_location(
        _PACKAGE, directory / "__init__.py", submodule_search_locations=[str(directory)]
    )
    assert spec is not None and spec.loader is not None
    package = importlib.util.module_from_spec(spec)
    sys.modules[_PACKAGE] = package
    spec.loader.exec_module(package)


if __name__ != f"{_PACKAGE}.parser":
    _find_package(Path(__file__).resolve().parent)

# Absolute imports: a lone file has no package to be relative to.
from lfm2_fixed.plugin import REASONING_PARSER, register  # noqa: E402
from lfm2_fixed.plugin.compat import ReasoningParserManager, ToolParserManager  # noqa: E402
from lfm2_fixed.plugin.parsers import PARSERS  # noqa: E402
from lfm2_fixed.plugin.reasoning import Lfm2FixedReasoningParser  # noqa: E402

Lfm2FixedToolParser = PARSERS["lfm2_fixed"]
Llama4PythonicFixedToolParser = PARSERS["llama4_pythonic_fixed"]

__all__ = ["Lfm2FixedReasoningParser", "Lfm2FixedToolParser", "Llama4PythonicFixedToolParser", "register"]

for _name, _parser in PARSERS.items():
    ToolParserManager.register_module(_name, force=True, module=_parser)
ReasoningParserManager.register_module(REASONING_PARSER, force=True, module=Lfm2FixedReasoningParser)
