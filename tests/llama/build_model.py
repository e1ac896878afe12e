"""Write tiny GGUF models: one repeats what stood ``LOOK_BACK`` tokens ago, and one has random weights.

usage: build_model.py DIR        writes DIR/echo.gguf and DIR/noise.gguf, with template.jinja as their chat template

With the first a prompt scripts the reply.  If the last ``LOOK_BACK`` tokens of a prompt are

    SCRIPT <|im_end|> <|pad|>… <|im_end|> \\n <|im_start|> assistant \\n

the reply is SCRIPT and then ``<|im_end|>``, which ends it.  The weights of the one layer are set by
hand: query and key are constant vectors that RoPE rotates by position, the query by ``LOOK_BACK``
less, so that attention peaks there and nowhere else; the value is the token's code, which the output
matrix reads.  The copied token wins by a wide margin at any temperature.

What the second says is noise at a temperature of 1, so that whatever is right in it a grammar made.  It has tokens of
several characters, too, of the kind that reach across the borders of what a grammar tells apart.
"""

from __future__ import annotations

import argparse
from pathlib import Path

import gguf
import numpy as np

LOOK_BACK = 255
CONTEXT = 32768
SPECIAL = [
    *["<|pad|>", "<|startoftext|>", "<|endoftext|>", "<|im_start|>", "<|im_end|>", "<|tool_list_start|>"],
    *["<|tool_list_end|>", "<|tool_call_start|>", "<|tool_call_end|>", "<|tool_response_start|>"],
    *["<|tool_response_end|>", "<think>", "</think>"],
]
NOT_CONTROL = ("<think>", "</think>")  # tokens that are never hidden

CODE = 256  # dimensions of a token's code, each +1 or -1
HEAD = 128  # dimensions of a head
HEADS = 2  # so that the heads' values hold a code
CONSTANT = CODE  # the dimension that is the same for every token
COPY = CODE + 64  # where the copied token's code is put
WIDTH = 640
ROPE_BASE = 500.0  # low: more high frequencies, a sharper peak
LOUD = 1.5  # standard deviation of the noise's logits: every token has a chance, and some are likelier
LONGER = [
    *['="', "='", '",', '")', '"),', "')", ")]", '"]', '"}', '": ', '{"', '["', ", ", "[{", '\\"', "\\n", "\\u00"],
    *["True", "False", "None", "null", "true", "10", "99", "0.5", "a b", "<|", "|>", "</", "[f(", "é", "中", "😀"],
]
"""Further tokens of the noise."""
NEVER = -20.0
"""What the noise's logits of single bytes beyond ASCII are lowered by.  llama.cpp's grammar takes overlong forms of
UTF-8 (E0 81 81) for the character that they spell, and the server then shows one such as three."""


def byte_texts() -> list[str]:
    """What byte-level BPE writes for each byte."""
    visible = [*range(33, 127), *range(161, 173), *range(174, 256)]
    hidden = [byte for byte in range(256) if byte not in visible]
    texts = {byte: chr(byte) for byte in visible} | {byte: chr(256 + at) for at, byte in enumerate(hidden)}
    return [texts[byte] for byte in range(256)]


def write(path: Path, template: str, *, noise: bool = False) -> None:
    """Write one model: a token for each special token and each byte; ``noise``: random weights, and longer tokens."""
    letters = byte_texts()
    pair = letters[0] * 2  # the loader wants at least one merge; two NULs never occur
    longer = ["".join(letters[byte] for byte in text.encode()) for text in LONGER] if noise else []
    tokens = [*SPECIAL, *letters, pair, *longer]
    types = [gguf.TokenType.USER_DEFINED if text in NOT_CONTROL else gguf.TokenType.CONTROL for text in SPECIAL]
    types += [gguf.TokenType.NORMAL] * (len(letters) + 1 + len(longer))

    codes = np.random.default_rng(0).choice([-1.0, 1.0], size=(len(tokens), CODE)).astype(np.float32)
    embedding = np.zeros((len(tokens), WIDTH), np.float32)
    embedding[:, :CODE] = codes
    embedding[:, CONSTANT] = 16.0
    norm = float(np.sqrt((CODE + 256.0) / WIDTH))  # of every row
    frequencies = ROPE_BASE ** (-2.0 * np.arange(HEAD // 2) / HEAD)
    strength = np.sqrt(60.0 * np.sqrt(HEAD))
    query, key = np.zeros(HEAD, np.float32), np.zeros(HEAD, np.float32)
    query[0::2] = strength * np.cos(-frequencies * LOOK_BACK)
    query[1::2] = strength * np.sin(-frequencies * LOOK_BACK)
    key[0::2] = strength
    queries, keys = (np.zeros((HEADS * HEAD, WIDTH), np.float32) for _ in range(2))
    for head in range(HEADS):
        queries[head * HEAD : (head + 1) * HEAD, CONSTANT] = query / (16.0 / norm)
        keys[head * HEAD : (head + 1) * HEAD, CONSTANT] = key / (16.0 / norm)
    values = np.zeros((HEADS * HEAD, WIDTH), np.float32)
    values[np.arange(CODE), np.arange(CODE)] = norm
    attention_out = np.zeros((WIDTH, HEADS * HEAD), np.float32)
    attention_out[COPY + np.arange(CODE), np.arange(CODE)] = 1.0
    output = np.zeros((len(tokens), WIDTH), np.float32)
    if noise:  # of the last token, whose norm is about 1 a dimension
        output[:, :CODE] = np.random.default_rng(1).normal(0.0, LOUD / np.sqrt(CODE), (len(tokens), CODE))
        high = [at for at, text in enumerate(tokens) if text in letters[0x80:]]
        output[high, CONSTANT] = NEVER / (16.0 / norm)
    else:
        output[:, COPY : COPY + CODE] = codes * 0.3

    writer = gguf.GGUFWriter(path, "llama")
    writer.add_name(path.stem)
    writer.add_context_length(CONTEXT)
    writer.add_embedding_length(WIDTH)
    writer.add_block_count(1)
    writer.add_feed_forward_length(32)
    writer.add_head_count(HEADS)
    writer.add_head_count_kv(HEADS)
    writer.add_key_length(HEAD)
    writer.add_value_length(HEAD)
    writer.add_rope_dimension_count(HEAD)
    writer.add_rope_freq_base(ROPE_BASE)
    writer.add_layer_norm_rms_eps(1e-6)
    writer.add_vocab_size(len(tokens))
    writer.add_file_type(gguf.LlamaFileType.ALL_F32)
    writer.add_tokenizer_model("gpt2")
    writer.add_tokenizer_pre("default")
    writer.add_token_list(tokens)
    writer.add_token_types([int(kind) for kind in types])
    writer.add_token_merges([f"{letters[0]} {letters[0]}"])
    writer.add_bos_token_id(tokens.index("<|startoftext|>"))
    writer.add_eos_token_id(tokens.index("<|im_end|>"))
    writer.add_pad_token_id(0)
    writer.add_add_bos_token(True)
    writer.add_add_eos_token(False)
    writer.add_add_space_prefix(False)
    writer.add_chat_template(template)
    ones = np.ones(WIDTH, np.float32)
    for name, tensor in {
        "token_embd.weight": embedding,
        "output_norm.weight": ones,
        "output.weight": output,
        "blk.0.attn_norm.weight": ones,
        "blk.0.attn_q.weight": queries,
        "blk.0.attn_k.weight": keys,
        "blk.0.attn_v.weight": values,
        "blk.0.attn_output.weight": attention_out,
        "blk.0.ffn_norm.weight": ones,
        "blk.0.ffn_gate.weight": np.zeros((32, WIDTH), np.float32),
        "blk.0.ffn_up.weight": np.zeros((32, WIDTH), np.float32),
        "blk.0.ffn_down.weight": np.zeros((WIDTH, 32), np.float32),
    }.items():
        writer.add_tensor(name, tensor)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()


def main() -> None:
    """Write the model."""
    parser = argparse.ArgumentParser(description="Write the tiny model that repeats its prompt.")
    parser.add_argument("directory", type=Path)
    directory = parser.parse_args().directory
    template = (Path(__file__).parent / "template.jinja").read_text(encoding="utf-8").strip()
    write(directory / "echo.gguf", template)
    write(directory / "noise.gguf", template, noise=True)


if __name__ == "__main__":
    main()
