"""Pieces of a text, one by one, and tiktoken's encoding of a vocabulary."""

from __future__ import annotations

import itertools
from collections.abc import Mapping

import numpy as np
import tiktoken

from curation.tokenize.pretokenize import pattern, piece_end
from curation.tokenize.tokenizer import Tokenizer


def piece_ends(data: bytes, name: str) -> list[int]:
    """Ends of all pieces under the pattern of that name."""
    array, classes = np.frombuffer(data, np.uint8), pattern(name).classes
    ends = [0]
    while ends[-1] < len(data):
        end = int(piece_end(array, ends[-1], len(data), classes))
        assert end > ends[-1]
        ends.append(end)
    return ends[1:]


def to_tiktoken(tokenizer: Tokenizer) -> tiktoken.Encoding:
    """The same vocabulary as a tiktoken encoding; use `encode_ordinary` on documents."""
    return tiktoken.Encoding(
        tokenizer.name,
        pat_str=tokenizer.pattern.expression,
        mergeable_ranks={token: rank for rank, token in enumerate(tokenizer.tokens)},
        special_tokens=tokenizer.special_tokens,
    )


def merged_parts(parts: list[bytes], ranks: Mapping[bytes, int]) -> list[bytes]:
    """Merge the adjacent pair of lowest rank, leftmost first, until none is a token."""
    while True:
        pairs = [
            (ranks[a + b], k)
            for k, (a, b) in enumerate(itertools.pairwise(parts))
            if a + b in ranks
        ]
        if not pairs:
            return parts
        _, k = min(pairs)
        parts[k : k + 2] = [parts[k] + parts[k + 1]]
