"""A logits processor that makes the model say a script.

    --logits-processors scripted_lp:ScriptedLogitsProcessor      (PYTHONPATH must hold this file)

A request carries its script in ``vllm_xargs``:

``script``       text, encoded by the served model's tokenizer
``script_ids``   token ids, for exact token boundaries
``step_ms``      a pause before each token, so that deltas are not merged
``echo``         0: no script, whatever ``SCRIPTED_ECHO`` says

The end of the turn is forced after the script's last token.  A request without a script says what
the model says or, with ``SCRIPTED_ECHO=1`` in the server's environment, the last user message.

Where a grammar constrains the turn (``required``, a named function, strict tools) and masks the script's next token,
the script goes on with its first later token that the grammar allows.  Where it allows none, or the script is at its
end and the turn is not, the model chooses, what closes something first: the tiny model says noise otherwise, for ever.
So a client sees what the constraint makes of a text that breaks it.
"""

from __future__ import annotations

import os
import time
from typing import Any

import torch
from vllm.sampling_params import SamplingParams
from vllm.v1.sample.logits_processor import AdapterLogitsProcessor

CLOSING = ["<|tool_call_end|>", "<|python_end|>", "]", ")", "}", '"', "'"]
"""What ends something, from the most to the least final, after the end of the turn."""


class ScriptedLogitsProcessor(AdapterLogitsProcessor):  # type: ignore[misc]
    """One script per request; requests in one batch do not influence each other."""

    def __init__(self, vllm_config: Any, device: torch.device, is_pin_memory: bool) -> None:
        super().__init__(vllm_config, device, is_pin_memory)
        from transformers import AutoTokenizer

        self.tokenizer = AutoTokenizer.from_pretrained(vllm_config.model_config.tokenizer)
        self.end = self.tokenizer.eos_token_id
        closing = [self.tokenizer.encode(text, add_special_tokens=False) for text in CLOSING]
        self.closing = [self.end, *(ids[0] for ids in closing if len(ids) == 1)]
        self.user = self.tokenizer.encode("<|im_start|>user\n", add_special_tokens=False)

    def is_argmax_invariant(self) -> bool:
        return False

    @classmethod
    def validate_params(cls, params: SamplingParams) -> None:
        extra = params.extra_args or {}
        if not isinstance(extra.get("script", ""), str):
            raise ValueError("vllm_xargs.script must be a string")

    def new_req_logits_processor(self, params: SamplingParams) -> Any:
        extra = params.extra_args or {}
        pause = float(extra.get("step_ms", 0)) / 1000
        if "script_ids" in extra:
            script = [int(number) for number in extra["script_ids"]]
        elif "script" in extra:
            script = self.tokenizer.encode(extra["script"], add_special_tokens=False)
        elif os.environ.get("SCRIPTED_ECHO") == "1" and extra.get("echo", 1):
            script = None
        else:
            return None

        # Before each token of the output, by its number, where the script is.  Not one position that moves on: what is
        # sampled before the whole prompt has been read is thrown away, and asked for again.
        positions = [0]

        def force(prompt_ids: list[int], output_ids: list[int], logits: torch.Tensor) -> torch.Tensor:
            nonlocal script
            if script is None:
                script = self._last_user_message(list(prompt_ids))
            if pause:
                time.sleep(pause)
            count = len(output_ids)
            # A request that was set aside for lack of memory goes on behind what it said before.
            positions.extend(range(len(positions), count + 1))
            position = positions[count]
            # The grammar's mask comes before the logits processors: what it forbids is -inf here.
            allowed = torch.isfinite(logits)
            token = next((at for at in range(position, len(script)) if allowed[script[at]]), None)
            if token is not None:
                position, choice = token + 1, script[token]
            elif any(allowed[one] for one in self.closing):
                choice = next(one for one in self.closing if allowed[one])
            else:
                choice = int(torch.argmax(logits))
            logits.fill_(float("-inf"))
            logits[choice] = 0.0
            positions[count + 1 :] = [position]
            return logits

        return force

    def _last_user_message(self, prompt: list[int]) -> list[int]:
        width = len(self.user)
        for begin in range(len(prompt) - width, -1, -1):
            if prompt[begin : begin + width] == self.user:
                message = prompt[begin + width :]
                return message[: message.index(self.end)] if self.end in message else message
        return []
