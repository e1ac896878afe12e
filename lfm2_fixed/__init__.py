"""Tool calls written as Python (LFM2, LFM2.5, Llama 4), read while the model writes them.

Engine-free: nothing here imports vLLM; the plugin for it is ``lfm2_fixed.parser``.
"""

from .core.events import ArgumentsDelta, CallAborted, CallEnd, CallStart, Content, Event
from .core.make_valid import make_valid_python
from .core.stream import ParseResult, PythonicStream, ToolCall, collect, parse

__version__ = "0.1.0"

__all__ = [
    "ArgumentsDelta",
    "CallAborted",
    "CallEnd",
    "CallStart",
    "Content",
    "Event",
    "ParseResult",
    "PythonicStream",
    "ToolCall",
    "collect",
    "make_valid_python",
    "parse",
]
