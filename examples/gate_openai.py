"""An agent with the openai client that runs a tool call only after the gate has passed it.

usage: gate_openai.py BASE_URL MODEL QUESTION        (BASE_URL: http://localhost:8000/v1)
needs the package openai, and lfm2-fixed with its extra [tools]
"""

from __future__ import annotations

import sys
from typing import Any

from gate_tools import TOOLS, get_weather

from lfm2_fixed.gate import CallsRefused, Gate

try:
    from openai import OpenAI, OpenAIError
except ImportError:
    sys.exit(__doc__)  # which says what is needed


def answer(client: OpenAI, model: str, question: str, *, turns: int = 8) -> str:
    """Ask, run the tools that the model calls, and go on until it answers in words."""
    gate = Gate(TOOLS)
    messages: list[Any] = [{"role": "user", "content": question}]
    for _ in range(turns):
        stream = client.chat.completions.create(model=model, messages=messages, tools=TOOLS, stream=True)
        for chunk in gate.through(stream):
            if chunk.choices and chunk.choices[0].delta.content:
                print(chunk.choices[0].delta.content, end="", flush=True)
        try:
            calls = gate.calls()
        except CallsRefused as refused:
            messages += refused.messages()  # nothing was run; the model is told what was wrong
            continue
        if not calls:
            return gate.turn().content
        said = [
            {"id": call.id, "type": "function", "function": {"name": call.name, "arguments": call.text}}
            for call in calls
        ]
        messages.append({"role": "assistant", "content": gate.turn().content or None, "tool_calls": said})
        for call in calls:
            result = get_weather(**call.arguments)
            messages.append({"role": "tool", "tool_call_id": call.id, "content": result})
    raise RuntimeError(f"no answer after {turns} turns")


if __name__ == "__main__":
    if len(sys.argv) != 4:
        sys.exit(__doc__)
    url, model_name, asked = sys.argv[1:]
    try:
        answer(OpenAI(base_url=url, api_key="none"), model_name, asked)
    except (OpenAIError, RuntimeError) as error:
        sys.exit(f"{url}: {error}")
    print()
