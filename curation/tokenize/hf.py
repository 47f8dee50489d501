"""Write a vocabulary as a Hugging Face `tokenizer.json` that gives the same ids."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from curation.tokenize.card import BOS, EOS, PAD
from curation.tokenize.vocabulary import splits


def byte_alphabet() -> list[str]:
    """Printable character of each byte, as GPT-2's byte-level BPE lays them out: [256].

    Visible Latin-1 characters stand for themselves, the rest for U+0100 and on, in order.
    """
    visible = {*range(0x21, 0x7F), *range(0xA1, 0xAD), *range(0xAE, 0x100)}
    others = iter(range(0x100, 0x200))
    return [chr(b) if b in visible else chr(next(others)) for b in range(256)]


def tokenizer_json(
    tokens: list[bytes], expression: str, specials: dict[str, int]
) -> dict[str, Any]:
    """Content of `tokenizer.json`.

    tiktoken merges any two neighbours that make a token, so every split of every token into two
    tokens is listed as a merge, in order of the token's rank. Special tokens are in the model's
    vocabulary, where no merge leads, and not among `added_tokens`, which the library would look for
    in every text: their names in a document stay text.
    """
    alphabet = byte_alphabet()
    names = ["".join(alphabet[b] for b in token) for token in tokens]
    merges = [[names[a], names[b]] for a, b, _ in splits(tokens).tolist()]
    byte_level = {"type": "ByteLevel", "add_prefix_space": False, "trim_offsets": True}
    pattern = {"Regex": expression}
    return {
        "version": "1.0",
        "truncation": None,
        "padding": None,
        "added_tokens": [],
        "normalizer": None,
        "pre_tokenizer": {
            "type": "Sequence",
            "pretokenizers": [
                {"type": "Split", "pattern": pattern, "behavior": "Isolated", "invert": False},
                {**byte_level, "use_regex": False},
            ],
        },
        "post_processor": None,
        "decoder": {**byte_level, "use_regex": False},
        "model": {
            "type": "BPE",
            "dropout": None,
            "unk_token": None,
            "continuing_subword_prefix": None,
            "end_of_word_suffix": None,
            "fuse_unk": False,
            "byte_fallback": False,
            "ignore_merges": True,
            "vocab": {name: rank for rank, name in enumerate(names)} | specials,
            "merges": merges,
        },
    }


def write_files(
    folder: Path, tokens: list[bytes], expression: str, specials: dict[str, int]
) -> None:
    """Write `tokenizer.json` and `tokenizer_config.json` into the folder."""
    config = {
        "tokenizer_class": "PreTrainedTokenizerFast",
        "bos_token": BOS,
        "eos_token": EOS,
        "pad_token": PAD,
        "clean_up_tokenization_spaces": False,
        "split_special_tokens": True,
    }
    folder.mkdir(parents=True, exist_ok=True)
    for name, content in (
        ("tokenizer.json", tokenizer_json(tokens, expression, specials)),
        ("tokenizer_config.json", config),
    ):
        text = json.dumps(content, ensure_ascii=False, indent=None if name[9] == "." else 2)
        (folder / name).write_text(text + "\n", encoding="utf-8")
