"""Cards of tokenizers, which say what their vocabularies hash to."""

from __future__ import annotations

import hashlib
from pathlib import Path
from typing import Any

import yaml

from curation.config import parse_yaml
from curation.errors import ConfigError
from curation.resources import resolve

#: Vocabularies that ship with the toolkit, by name.
BUILTIN = {
    "curation-128k": "builtin:models/tokenizer/curation-128k.tiktoken",
    "curation-200k": "builtin:models/tokenizer-200k/curation-200k.tiktoken",
    "curation-128k-scratch": "builtin:models/tokenizer-scratch/curation-128k-scratch.tiktoken",
}

CARD = "card.yaml"
#: A tokenizer of Hugging Face.
HF_FILE = "tokenizer.json"


def is_hugging_face(path: Path) -> bool:
    """Whether this is a `tokenizer.json`, or a folder that has one."""
    return path.suffix == ".json" or (path / HF_FILE).is_file()


def read_card(path: Path) -> dict[str, Any]:
    """The tokenizer card at `path`. Raises ConfigError unless it is a mapping."""
    try:
        card = parse_yaml(path.read_text(encoding="utf-8"))
    except (OSError, yaml.YAMLError, UnicodeDecodeError) as error:
        raise ConfigError(f"{path}: cannot read the tokenizer card: {error}") from None
    if not isinstance(card, dict):
        raise ConfigError(f"{path}: a tokenizer card is a mapping of keys")
    return card


def checksums(name: str) -> tuple[str, str]:
    """Return SHA-256 of a tokenizer's file, and of the vocabulary, which decides every id.

    The card of a built-in one says both, so that it is not loaded. Raises ConfigError or InputError
    as `load_tokenizer`.
    """
    if name in BUILTIN:
        path = Path(resolve(BUILTIN[name]))
        card = read_card(path.parent / CARD)
        same = hashlib.sha256(path.read_bytes()).hexdigest() == card.get("sha256")
        if same and "vocabulary_sha256" in card:
            return str(card["sha256"]), str(card["vocabulary_sha256"])
    from curation.tokenize.tokenizer import load_tokenizer  # compiled kernels

    tokenizer = load_tokenizer(name)
    return tokenizer.file_sha256, tokenizer.sha256
