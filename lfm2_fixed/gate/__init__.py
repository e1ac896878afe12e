"""A gate between a model's tool calls and the code that runs them: verified calls, or a refusal.

    gate = Gate(tools)
    for chunk in gate.through(client.chat.completions.create(..., tools=tools, stream=True)):
        ...                                  # show the text as it comes
    try:
        calls = gate.calls()                 # every one checked against its schema
    except CallsRefused as refused:
        messages += refused.messages()       # tells the model what was wrong; ask again

Works with any server and any parser; vLLM is not needed.  A turn is taken or refused as a whole: where one
call is corrupted, its siblings may be the other half of it.
"""

from ..wire.assemble import assemble, from_response
from ..wire.turn import Call, Problem, Turn
from .gate import CallsRefused, Gate, VerifiedCall
from .schemas import Tools, ToolsError, compiled_tools
from .validate import Code, Issue, validate

Assembled = Turn
"""The name that ``Turn`` had first."""

__all__ = [
    "Assembled",
    "Call",
    "CallsRefused",
    "Code",
    "Gate",
    "Issue",
    "Problem",
    "Tools",
    "ToolsError",
    "Turn",
    "VerifiedCall",
    "assemble",
    "compiled_tools",
    "from_response",
    "validate",
]
