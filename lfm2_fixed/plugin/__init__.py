"""The entry point in vLLM's group ``vllm.general_plugins``: no flag is needed after installation.

vLLM calls it in every process, the engine's too, so it names the parsers and imports nothing that
only a server needs.
"""

from __future__ import annotations

import logging

PARSERS = {
    "lfm2_fixed": "Lfm2FixedToolParser",
    "llama4_pythonic_fixed": "Llama4PythonicFixedToolParser",
}
"""The names for ``--tool-call-parser`` and their classes in :mod:`lfm2_fixed.plugin.parsers`."""


def register() -> None:
    """Tell vLLM where the parsers are.  Never raises: a server that uses other parsers must start."""
    try:
        from vllm.tool_parsers import ToolParserManager
    except ImportError:
        logging.getLogger("vllm.lfm2_fixed").error(
            "lfm2_fixed needs vLLM 0.26.0 or newer, so its tool parsers are not available here: upgrade vLLM."
        )
        return
    for name, class_name in PARSERS.items():
        ToolParserManager.register_lazy_module(name, "lfm2_fixed.plugin.parsers", class_name)
