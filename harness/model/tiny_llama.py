"""A tiny Llama for the smoke suite: configuration and tokenizer only, the same on every machine.

The weights are vLLM's own random ones (``--load-format dummy``). The tokenizer has one token for
each printable ASCII character and no merges: decoding and encoding give the same ids back, so
prompts keep their exact lengths. A trained BPE drifted by two tokens.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path

from harness.files import write_text

MAX_POSITIONS = 65536

SPECIAL_TOKENS = ("<unk>", "<s>", "</s>")
PRINTABLE = ("Ġ", *(chr(code) for code in range(33, 127)))
"""Printable ASCII in the byte-level alphabet, where a space is written ``Ġ``."""

VOCABULARY = {token: index for index, token in enumerate((*SPECIAL_TOKENS, *PRINTABLE))}


def files() -> dict[str, str]:
    """Return the model's files by name, identical byte for byte in every call."""
    documents = {
        "config.json": _config(),
        "generation_config.json": {
            "bos_token_id": VOCABULARY["<s>"],
            "eos_token_id": VOCABULARY["</s>"],
            "do_sample": True,
            "temperature": 1.0,
        },
        "tokenizer.json": _tokenizer(),
        "tokenizer_config.json": {
            "tokenizer_class": "PreTrainedTokenizerFast",
            "unk_token": "<unk>",
            "bos_token": "<s>",
            "eos_token": "</s>",
            "model_max_length": MAX_POSITIONS,
            "clean_up_tokenization_spaces": False,
        },
    }
    return {
        name: json.dumps(document, indent=1, ensure_ascii=False) + "\n"
        for name, document in documents.items()
    }


def generate(folder: Path) -> None:
    """Write the model into ``folder``."""
    for name, text in files().items():
        write_text(folder / name, text)


def _config() -> dict[str, object]:
    return {
        "architectures": ["LlamaForCausalLM"],
        "model_type": "llama",
        "hidden_size": 64,
        "intermediate_size": 128,
        "num_hidden_layers": 2,
        "num_attention_heads": 2,
        "num_key_value_heads": 1,
        "head_dim": 32,
        "vocab_size": len(VOCABULARY),
        "max_position_embeddings": MAX_POSITIONS,
        "rms_norm_eps": 1e-5,
        "rope_theta": 10000.0,
        "hidden_act": "silu",
        "torch_dtype": "bfloat16",
        "bos_token_id": VOCABULARY["<s>"],
        "eos_token_id": VOCABULARY["</s>"],
        "tie_word_embeddings": False,
    }


def _tokenizer() -> dict[str, object]:
    begin = {"SpecialToken": {"id": "<s>", "type_id": 0}}
    text, second = ({"Sequence": {"id": name, "type_id": 0}} for name in "AB")
    return {
        "version": "1.0",
        "added_tokens": [
            {
                "id": VOCABULARY[token],
                "content": token,
                "single_word": False,
                "lstrip": False,
                "rstrip": False,
                "normalized": False,
                "special": True,
            }
            for token in SPECIAL_TOKENS
        ],
        "normalizer": None,
        "pre_tokenizer": {
            "type": "ByteLevel",
            "add_prefix_space": False,
            "trim_offsets": True,
            "use_regex": False,
        },
        # A begin token is added, as in real models: prompts are one token longer than their text.
        "post_processor": {
            "type": "TemplateProcessing",
            "single": [begin, text],
            "pair": [begin, text, second],
            "special_tokens": {"<s>": {"id": "<s>", "ids": [VOCABULARY["<s>"]], "tokens": ["<s>"]}},
        },
        "decoder": {
            "type": "ByteLevel",
            "add_prefix_space": False,
            "trim_offsets": True,
            "use_regex": False,
        },
        "model": {
            "type": "BPE",
            "unk_token": "<unk>",
            "fuse_unk": False,
            "byte_fallback": False,
            "vocab": VOCABULARY,
            "merges": [],
        },
    }


if __name__ == "__main__":
    generate(Path(sys.argv[1]))
