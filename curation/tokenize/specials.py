"""Special tokens: they follow the ranks, and text never becomes one."""

from __future__ import annotations

from curation.errors import ConfigError

#: Llama 3 reserves as many (arXiv 2407.21783, section 3.2).
SPECIAL_TOKENS = 256
BOS, EOS, PAD = "<|begin_of_text|>", "<|end_of_text|>", "<|pad|>"


def special_tokens(count: int) -> list[str]:
    """Names of that many special tokens in order of id: begin, end, pad, then reserved ones."""
    if count < 3:
        raise ConfigError(f"special_tokens is {count}: begin, end and pad need 3")
    return [BOS, EOS, PAD, *(f"<|reserved_{k}|>" for k in range(count - 3))]
