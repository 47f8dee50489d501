"""What vocabularies have in common: names, files, cards, and special tokens.

Special tokens follow the ranks, and text never becomes one.
"""

from pathlib import Path

from curation.errors import ConfigError

#: Vocabularies that ship with the toolkit, by name.
BUILTIN = {
    "curation-128k": "builtin:models/tokenizer/curation-128k.tiktoken",
    "curation-200k": "builtin:models/tokenizer-200k/curation-200k.tiktoken",
    "curation-128k-scratch": "builtin:models/tokenizer-scratch/curation-128k-scratch.tiktoken",
}

CARD = "card.yaml"
#: A tokenizer of Hugging Face.
HF_FILE = "tokenizer.json"
#: Llama 3 reserves as many (arXiv 2407.21783, section 3.2).
SPECIAL_TOKENS = 256
BOS, EOS, PAD = "<|begin_of_text|>", "<|end_of_text|>", "<|pad|>"


def is_hugging_face(path: Path) -> bool:
    """Whether this is a `tokenizer.json`, or a folder that has one."""
    return path.suffix == ".json" or (path / HF_FILE).is_file()


def special_tokens(count: int) -> list[str]:
    """Names of that many special tokens in order of id: begin, end, pad, then reserved ones."""
    if count < 3:
        raise ConfigError(f"special_tokens is {count}: begin, end and pad need 3")
    return [BOS, EOS, PAD, *(f"<|reserved_{k}|>" for k in range(count - 3))]
