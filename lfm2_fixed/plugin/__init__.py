"""The entry point in vLLM's group ``vllm.general_plugins``: no flag is needed after installation.

vLLM calls it in every process, the engine's too, so it names the parsers and imports nothing that
only a server needs.

The modules here, from vLLM inwards:

    __init__, ../parser.py   register the parsers, by the entry point and by the path of a file
    parsers                  a tool parser for each dialect of the table
    reasoning                the reasoning parser
    request, messages,       what both say to vLLM: what a request asks for, deltas, the tokens of a
    vocabulary, constrained  tokenizer, the grammar of a request
    patches                  what is patched in vLLM, why, and since when it need not be
    compat                   what they use of vLLM; the one place that knows that its versions differ
    versions, log            what is said to the user
"""

from __future__ import annotations

import logging

from ..core.dialects import DIALECTS

REASONING_PARSER = "lfm2_fixed"
"""The name for ``--reasoning-parser``; the class is ``Lfm2FixedReasoningParser`` in :mod:`.reasoning`."""


def class_name(parser: str) -> str:
    """The name of the class of a tool parser: ``Lfm2FixedToolParser`` for ``lfm2_fixed``."""
    return "".join(part.capitalize() for part in parser.split("_")) + "ToolParser"


PARSERS = {dialect.parser: class_name(dialect.parser) for dialect in DIALECTS.values()}
"""The names for ``--tool-call-parser`` and their classes in :mod:`.parsers`: one for each dialect."""


def register() -> None:
    """Tell vLLM where the parsers are.  Never raises: a server that uses other parsers must start."""
    try:
        from vllm.reasoning import ReasoningParserManager
        from vllm.tool_parsers import ToolParserManager
    except ImportError as error:
        from .versions import unusable

        logging.getLogger("vllm.lfm2_fixed").error("The parsers of lfm2_fixed are not available: %s", unusable(error))
        return
    for name, class_of_it in PARSERS.items():
        ToolParserManager.register_lazy_module(name, f"{__name__}.parsers", class_of_it)
    ReasoningParserManager.register_lazy_module(REASONING_PARSER, f"{__name__}.reasoning", "Lfm2FixedReasoningParser")
