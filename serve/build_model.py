"""Build a tiny model folder: a configuration and a byte-level BPE tokenizer, no weights (``--load-format dummy``).

usage: build_model.py OUT_DIR [lfm2|llama]
Needs the package `tokenizers`, and half a second; no network.
"""

from __future__ import annotations

import json
import sys
import sysconfig
from collections.abc import Iterator
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parent

# The ids 0 to 13 are those of the real LFM2 tokenizer; the rest are Llama 4's.
SPECIAL = [
    "<|pad|>",
    "<|startoftext|>",
    "<|endoftext|>",
    "<|fim_pre|>",
    "<|fim_mid|>",
    "<|fim_suf|>",
    "<|im_start|>",
    "<|im_end|>",
    "<|tool_list_start|>",
    "<|tool_list_end|>",
    "<|tool_call_start|>",
    "<|tool_call_end|>",
    "<|tool_response_start|>",
    "<|tool_response_end|>",
    "<|python_start|>",
    "<|python_end|>",
    "<|eom|>",
    "<|eot|>",
]
NONSPECIAL = ["<think>", "</think>"]  # added tokens that are not special, as in the real tokenizers

CHAT_TEMPLATE = """{{- bos_token -}}
{%- set ns = namespace(system_prompt="") -%}
{%- if messages[0]["role"] == "system" -%}
{%- set ns.system_prompt = messages[0]["content"] -%}
{%- set messages = messages[1:] -%}
{%- endif -%}
{%- if tools -%}
{%- set ns.system_prompt = ns.system_prompt + ("\n" if ns.system_prompt else "") -%}
{%- set ns.system_prompt = ns.system_prompt + "List of tools: <|tool_list_start|>[" -%}
{%- for tool in tools -%}
{%- set text = tool if tool is string else tool | tojson -%}
{%- set ns.system_prompt = ns.system_prompt + text + ("" if loop.last else ", ") -%}
{%- endfor -%}
{%- set ns.system_prompt = ns.system_prompt + "]<|tool_list_end|>" -%}
{%- endif -%}
{%- if ns.system_prompt -%}
{{- "<|im_start|>system\n" + ns.system_prompt + "<|im_end|>\n" -}}
{%- endif -%}
{%- for message in messages -%}
{{- "<|im_start|>" + message["role"] + "\n" -}}
{%- set content = message["content"] -%}
{%- if content is none -%}{%- set content = "" -%}{%- endif -%}
{%- if content is not string -%}{%- set content = content | tojson -%}{%- endif -%}
{%- if message["role"] == "tool" -%}
{%- set content = "<|tool_response_start|>" + content + "<|tool_response_end|>" -%}
{%- endif -%}
{{- content + "<|im_end|>\n" -}}
{%- endfor -%}
{%- if add_generation_prompt -%}{{- "<|im_start|>assistant\n" -}}{%- endif -%}
"""


def real_tokenisations() -> list[list[str]]:
    """Model turns in the pieces that a real LFM2.5 tokenizer cuts them into."""
    lines = (HERE.parent / "tests" / "data" / "token_pieces.jsonl").read_text(encoding="utf-8").splitlines()
    # A token that ends inside a character shows as an empty piece; its text is in the next one.
    return [[piece for piece in json.loads(line)["pieces"] if piece] for line in lines]


def long_words() -> list[str]:
    """Words that become one token each: a long argument then takes few of a CPU server's slow steps."""
    stems = ["configuration", "documentation", "implementation", "responsibility", "characteristics"]
    ends = ["Manager", "Repository", "Transformation", "Synchronisation", "Authentication", "Infrastructure"]
    return [stem + end for stem in stems for end in ends]


def corpus() -> Iterator[str]:
    """Python source from the standard library, JSON, calls, long words, and some non-ASCII text."""
    standard_library = Path(sysconfig.get_paths()["stdlib"])
    for name in ["argparse.py", "typing.py", "inspect.py", "tarfile.py", "json/decoder.py"]:
        text = (standard_library / name).read_text(encoding="utf-8")
        yield from (text[i : i + 2000] for i in range(0, len(text), 2000))
    for i in range(300):
        yield f"[get_weather(city=\"Paris\", days={i}, unit='celsius')]"
        yield f'[write(path="a{i}.json", content="{{\\"a\\": {i}, \\"b\\": [true, null]}}")]'
        yield f'{{"name": "f{i}", "arguments": {{"x": [1, 2], "y": {{"z": null}}}}}}'
    for _ in range(200):
        yield " " + " ".join(long_words())
    for _ in range(20):
        yield "Zürich naïve café 東京の天気 погода в Москве 🌦️🚀 line one\nline two\ttab"


def build_tokenizer() -> Any:
    """A tokenizer trained here, which knows the pieces of the real tokenisations as tokens too."""
    # Here, so that the usage is printed without the package.
    from tokenizers import AddedToken, Tokenizer, decoders, models, pre_tokenizers, trainers

    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=True)
    tokenizer.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(
        vocab_size=2500,
        special_tokens=SPECIAL,
        initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
        show_progress=False,
    )
    tokenizer.train_from_iterator(corpus(), trainer)

    # In the vocabulary without a merge: text is never encoded to them, but a script of ids may use them.
    state = json.loads(tokenizer.to_str())
    as_bytes = pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)
    vocabulary = state["model"]["vocab"]
    for piece in sorted({piece for turn in real_tokenisations() for piece in turn}):
        if piece not in SPECIAL and piece not in NONSPECIAL:
            vocabulary.setdefault(as_bytes.pre_tokenize_str(piece)[0][0], len(vocabulary))
    tokenizer = Tokenizer.from_str(json.dumps(state))
    tokenizer.add_tokens([AddedToken(text, normalized=False, special=False) for text in NONSPECIAL])
    return tokenizer


def model_config(architecture: str, vocabulary_size: int) -> dict[str, object]:
    """config.json for a model of two layers at most."""
    common: dict[str, object] = {
        "dtype": "float32",
        "vocab_size": (vocabulary_size + 63) // 64 * 64,
        "hidden_size": 64,
        "intermediate_size": 128,
        "num_attention_heads": 2,
        "num_key_value_heads": 2,
        "max_position_embeddings": 65536,
        "rope_theta": 1000000.0,
        "bos_token_id": 1,
        "eos_token_id": 7,
        "pad_token_id": 0,
        "use_cache": True,
    }
    if architecture == "llama":
        return common | {
            "architectures": ["LlamaForCausalLM"],
            "model_type": "llama",
            "num_hidden_layers": 1,
            "head_dim": 32,
            "hidden_act": "silu",
            "rms_norm_eps": 1e-5,
            "tie_word_embeddings": True,
        }
    return common | {
        "architectures": ["Lfm2ForCausalLM"],
        "model_type": "lfm2",
        "block_dim": 64,
        "conv_dim": 64,
        "conv_dim_out": 64,
        "block_ff_dim": 128,
        "block_auto_adjust_ff_dim": False,
        "block_multiple_of": 64,
        "block_ffn_dim_multiplier": 1.0,
        "num_hidden_layers": 2,
        "layer_types": ["conv", "full_attention"],
        "conv_L_cache": 3,
        "conv_bias": False,
        "norm_eps": 1e-5,
        "block_norm_eps": 1e-5,
        "tie_embedding": True,
    }


def build(out: Path, architecture: str = "lfm2") -> None:
    """Write the folder ``out``.  ``architecture``: ``lfm2`` or ``llama``."""
    out.mkdir(parents=True, exist_ok=True)
    tokenizer = build_tokenizer()
    tokenizer.save(str(out / "tokenizer.json"))
    tokenizer_config = {
        "tokenizer_class": "PreTrainedTokenizerFast",
        "bos_token": "<|startoftext|>",
        "eos_token": "<|im_end|>",
        "pad_token": "<|pad|>",
        "clean_up_tokenization_spaces": False,
        "model_max_length": 65536,
        "chat_template": CHAT_TEMPLATE,
    }
    files = {
        "tokenizer_config.json": tokenizer_config,
        "config.json": model_config(architecture, tokenizer.get_vocab_size()),
        "generation_config.json": {"bos_token_id": 1, "eos_token_id": 7, "pad_token_id": 0},
    }
    for name, value in files.items():
        (out / name).write_text(json.dumps(value, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    if not 2 <= len(sys.argv) <= 3 or sys.argv[1].startswith("-") or sys.argv[2:] not in ([], ["lfm2"], ["llama"]):
        sys.exit(str(__doc__))
    build(Path(sys.argv[1]), *sys.argv[2:])
