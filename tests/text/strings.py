"""Words of texts as strings, for tests."""

from __future__ import annotations

import numpy as np

from curation.text import characters as ch
from curation.text.words import describe, words


def word_list(text: str, symbols: bool = False) -> list[str]:
    """The words of one text as strings (for small work; `words` is for batches)."""
    spans = words([text], symbols)
    raw = text.encode()
    return [raw[a:b].decode() for a, b in zip(spans.starts, spans.ends, strict=True)]


def token_hash(text: str) -> int:
    """Hash that `describe` gives for the lower-case form of one token."""
    raw = np.frombuffer(text.encode(), np.uint8)
    return int(describe(raw, 0, len(raw), ch.properties(), ch.lower_case())[3])
