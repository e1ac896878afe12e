"""Events of Chat Completions as servers and providers write them, each with its own habits."""

from __future__ import annotations

from typing import Any

MOVE = ("move", '{"lat": 10.5, "note": "due north"}')
WRITE = ("write", '{"path": "ä.txt", "content": "a \\"b\\" € 😀\\n"}')
Frames = list[Any]


def chunk(delta: Any, finish: Any = None, index: int = 0, **more: Any) -> dict[str, Any]:
    """A chunk of Chat Completions; ``more`` beside ``choices``."""
    choice = {"index": index, "delta": delta, "logprobs": None, "finish_reason": finish}
    return {
        "id": "c1",
        "object": "chat.completion.chunk",
        "created": 1767225600,
        "model": "m",
        "choices": [choice],
        **more,
    }


def first(index: int, identity: str, name: str, arguments: str = "", **more: Any) -> dict[str, Any]:
    function = {"name": name, "arguments": arguments}
    return {"index": index, "id": identity, "type": "function", "function": function, **more}


def rest(index: int, arguments: str, **more: Any) -> dict[str, Any]:
    return {"index": index, "function": {"arguments": arguments}, **more}


def calls(*entries: Any, **more: Any) -> dict[str, Any]:
    return {"tool_calls": list(entries), **more}


USAGE = {"prompt_tokens": 80, "completion_tokens": 20, "total_tokens": 100}
CUT = 14  # where the arguments are cut


def openai_chat() -> Frames:
    more = {"service_tier": "default", "system_fingerprint": "fp_0", "usage": None}
    return [
        chunk(calls(first(0, "call_a", MOVE[0]), role="assistant", content=None, refusal=None), **more),
        chunk(calls(rest(0, MOVE[1][:CUT])), obfuscation="xY3", **more),
        chunk(calls(rest(0, MOVE[1][CUT:])), obfuscation="q", **more),
        chunk(calls(first(1, "call_b", WRITE[0])), **more),
        chunk(calls(rest(1, WRITE[1])), **more),
        chunk({}, "tool_calls", **more),
        {**chunk({}), "choices": [], "usage": USAGE},
    ]


def azure() -> Frames:
    return [
        {
            "id": "",
            "object": "",
            "created": 0,
            "model": "",
            "choices": [],
            "prompt_filter_results": [{"prompt_index": 0, "content_filter_results": {}}],
        },
        *openai_chat(),
    ]


def vllm() -> Frames:
    def own(delta: Any, finish: Any = None) -> dict[str, Any]:
        made = chunk(delta, finish)
        made["choices"][0] |= {"stop_reason": None, "token_ids": None}
        return {**made, "prompt_token_ids": None}

    return [
        own({"role": "assistant", "content": "", "reasoning": None}),
        own({"reasoning": "They want to go north, so <|tool_call_start|> it is.", "reasoning_content": None}),
        own(calls(first(0, "chatcmpl-tool-0a", MOVE[0]))),
        own(calls(rest(0, MOVE[1][:CUT]))),
        own(calls(rest(0, MOVE[1][CUT:]))),
        own({"content": ""}, "tool_calls"),
        {**chunk({}), "choices": [], "usage": USAGE},
    ]


def sglang() -> Frames:
    def own(delta: Any, finish: Any = None) -> dict[str, Any]:
        made = chunk({"role": None, "content": None, "reasoning_content": None, **delta}, finish)
        made["choices"][0]["matched_stop"] = None
        return {**made, "usage": None}

    later = {"id": None, "type": "function"}
    return [
        own({"role": "assistant", "content": "", "tool_calls": None}),
        own(calls(first(0, "call_0", MOVE[0]))),
        own(calls({**later, "index": 0, "function": {"name": None, "arguments": MOVE[1][:CUT]}})),
        own(calls({**later, "index": 0, "function": {"name": None, "arguments": MOVE[1][CUT:]}})),
        own({"tool_calls": None}, "tool_calls"),
        {**chunk({}), "choices": [], "usage": USAGE},
    ]


def llama_cpp() -> Frames:
    more = {"system_fingerprint": "b11549-0000000"}
    return [
        chunk({"role": "assistant", "content": None}, **more),
        chunk({"reasoning_content": "North."}, **more),
        chunk(calls(first(0, "aB3dE6gH9", MOVE[0])), **more),
        chunk(calls(rest(0, MOVE[1][:CUT])), **more),
        chunk(calls(rest(0, MOVE[1][CUT:])), **more),
        chunk({}, "tool_calls", timings={"prompt_n": 80, "predicted_per_second": 30.5}, **more),
        {**chunk({}), "choices": [], "usage": USAGE, **more},
    ]


def mistral() -> Frames:
    call = {"id": "aB3dE6gH9", "function": {"name": MOVE[0], "arguments": MOVE[1]}, "index": 0}
    thought = {"type": "thinking", "thinking": [{"type": "text", "text": "North."}]}
    return [
        chunk({"role": "assistant", "content": ""}, p="abc"),
        chunk({"content": [thought]}, p="abcdef"),
        chunk({"content": [{"type": "text", "text": "I go. "}]}, p="a"),
        chunk({"content": "", "tool_calls": [call]}, "tool_calls", usage=USAGE, p="abcdefgh"),
    ]


def ollama() -> Frames:
    return [
        chunk({"role": "assistant", "content": "", "reasoning": "North."}, system_fingerprint="fp_ollama"),
        chunk({"role": "assistant", "content": "", "tool_calls": [first(0, "call_0", MOVE[0], MOVE[1])]}),
        chunk({"role": "assistant", "content": ""}, "tool_calls"),
    ]


def gemini_compatible() -> Frames:
    signed = {"google": {"thought_signature": "c2ln"}}
    return [
        chunk(calls(first(0, "function-call-1", MOVE[0], MOVE[1], extra_content=signed), role="assistant")),
        chunk({"role": "assistant"}, "stop", usage=USAGE),
    ]


def openrouter() -> Frames:
    return [
        chunk({"role": "assistant", "content": ""}, provider="X"),
        chunk({"role": "assistant", "content": "", "reasoning": "North.", "reasoning_details": []}, provider="X"),
        chunk(calls(first(0, "tooluse_0", MOVE[0], MOVE[1]), role="assistant", content=None), provider="X"),
        chunk({"role": "assistant", "content": ""}, "tool_calls", provider="X"),
        chunk({"role": "assistant", "content": ""}, None, usage=USAGE),
    ]


def empty_reasons() -> Frames:
    """A server that has an empty finish reason and empty strings everywhere."""
    return [
        chunk({"role": "assistant", "content": "", "tool_calls": []}, ""),
        chunk(calls(first(0, "call_0", MOVE[0])), ""),
        chunk(calls(rest(0, MOVE[1][:CUT], id="", type="")), ""),
        chunk(calls({"index": 0, "id": "", "function": {"name": "", "arguments": MOVE[1][CUT:]}}), ""),
        chunk({"content": ""}, "tool_calls"),
        {"id": "c1", "usage": USAGE},
    ]
