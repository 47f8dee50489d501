"""Merging gives the ids of its definition, whatever the ranks are."""

from __future__ import annotations

import random

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from curation.tokenize.bpe import WORK, merge_piece
from curation.tokenize.card import special_tokens
from curation.tokenize.pretokenize import pattern
from curation.tokenize.tokenizer import Tokenizer
from curation.tokenize.vocabulary import Tables
from tests.tokenize.pieces import merged_parts

ALPHABET = "ab éèя中丁丂一🙂"
BYTES = [bytes([b]) for b in range(256)]


def merged(piece: bytes, ranks: dict[bytes, int]) -> list[int]:
    return [ranks[part] for part in merged_parts([bytes([b]) for b in piece], ranks)]


def vocabulary(seed: int) -> list[bytes]:
    """Random strings of bytes of random text, in random order: cut anywhere, most out of reach."""
    chosen = random.Random(seed)
    text = "".join(chosen.choices(ALPHABET, k=200)).encode()
    found = {c.encode() for c in ALPHABET}
    for _ in range(150):
        start = chosen.randrange(len(text) - 5)
        found.add(text[start : start + chosen.choice((2, 2, 2, 3, 3, 4, 5))])
    tokens = sorted(t for t in found if len(t) > 1)
    chosen.shuffle(tokens)
    return [*BYTES, *tokens]


def encoder(tokens: list[bytes]) -> Tables:
    return Tokenizer("t", tokens, pattern("marks"), special_tokens(3)).token_tables


def by_kernel(piece: bytes, t: Tables) -> list[int]:
    data, out = np.frombuffer(piece, np.uint8), np.empty(len(piece), np.uint32)
    return out[: merge_piece(data, 0, len(data), t, np.empty(WORK, np.int64), out, 0)].tolist()


@pytest.mark.parametrize("seed", range(12))
def test_ids_equal_merging_by_bytes(seed: int) -> None:
    tokens = vocabulary(seed)
    ranks, tables = {t: k for k, t in enumerate(tokens)}, encoder(tokens)
    chosen = random.Random(seed)
    for _ in range(150):
        piece = "".join(chosen.choices(ALPHABET, k=chosen.randrange(1, 30))).encode()
        assert by_kernel(piece, tables) == merged(piece, ranks)


@settings(max_examples=150)
@given(st.binary(min_size=1, max_size=40), st.integers(0, 3))
def test_bytes_that_are_not_utf8(piece: bytes, seed: int) -> None:
    tokens = vocabulary(seed)
    ranks = {t: k for k, t in enumerate(tokens)}
    mixed = piece + "中丁".encode()[: 1 + len(piece) % 6] + piece[::-1]
    assert by_kernel(mixed, encoder(tokens)) == merged(mixed, ranks)


def test_long_pieces_of_characters() -> None:
    tokens = vocabulary(5)
    ranks, tables = {t: k for k, t in enumerate(tokens)}, encoder(tokens)
    piece = ("中丁丂一é" * 60).encode()
    assert by_kernel(piece, tables) == merged(piece, ranks)
