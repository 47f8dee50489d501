"""Seams between characters and the memory of pieces change no id, whatever the vocabulary is."""

from __future__ import annotations

import itertools
import random

import numpy as np
import pytest
import regex
from hypothesis import given, settings
from hypothesis import strategies as st

from curation.tokenize.card import special_tokens
from curation.tokenize.encode import new_memory, part_end
from curation.tokenize.pretokenize import pattern
from curation.tokenize.tokenizer import Tokenizer
from tests.tokenize.test_merges import BYTES, merged

ALPHABET = "中丁丂漢かก้한é a。"


def tokenizer(seed: int, size: int = 120) -> Tokenizer:
    """Tokens cut at random bytes of random text, in random order: most are out of reach."""
    chosen = random.Random(seed)
    text = "".join(chosen.choices(ALPHABET, k=300)).encode()
    found: set[bytes] = set()
    while len(found) < size:
        start = chosen.randrange(len(text) - 9)
        found.add(text[start : start + chosen.choice((2, 2, 3, 3, 4, 5, 6, 9))])
    tokens = sorted(found)
    chosen.shuffle(tokens)
    return Tokenizer("t", [*BYTES, *tokens], pattern("marks"), special_tokens(3))


def plain(text: str, t: Tokenizer) -> list[int]:
    """Ids by the definition: a piece that is a token, or its bytes merged."""
    ranks = {token: rank for rank, token in enumerate(t.tokens)}
    ids: list[int] = []
    for piece in regex.findall(t.pattern.expression, text):
        whole = ranks.get(piece.encode())
        ids += merged(piece.encode(), ranks) if whole is None else [whole]
    return ids


def parts(piece: bytes, t: Tokenizer) -> list[bytes]:
    data, ends = np.frombuffer(piece, np.uint8), [0]
    while ends[-1] < len(data):
        ends.append(int(part_end(data, ends[-1], len(data), t._encoder.seams)))
    return [piece[a:b] for a, b in itertools.pairwise(ends)]


TOKENIZERS = [tokenizer(seed) for seed in range(8)]


@settings(max_examples=300)
@given(st.text(ALPHABET, max_size=60), st.integers(0, 7))
def test_parts_have_the_ids_of_their_piece(text: str, seed: int) -> None:
    t = TOKENIZERS[seed]
    assert t.encode(text) == plain(text, t)


@settings(max_examples=300)
@given(st.binary(max_size=40), st.text("中丁漢한", min_size=2, max_size=8), st.integers(0, 7))
def test_no_token_crosses_a_seam(noise: bytes, text: str, seed: int) -> None:
    t = TOKENIZERS[seed]
    piece = text.encode()[len(noise) % 3 :] + noise + text.encode()
    found = parts(piece, t)
    assert b"".join(found) == piece
    for seam in itertools.accumulate(map(len, found[:-1])):
        for start, end in itertools.product(range(seam), range(seam + 1, len(piece) + 1)):
            assert piece[start:end] not in t.tokens


def test_most_characters_that_no_token_joins_have_a_seam() -> None:
    t = Tokenizer("t", [*BYTES, "中丁".encode()], pattern("marks"), special_tokens(3))
    assert parts("中丁漢한中".encode(), t) == [c.encode() for c in ("中丁", "漢", "한", "中")]
    cut = Tokenizer("t", [*BYTES, "漢".encode()[2:] + b"\xed"], pattern("marks"), special_tokens(3))
    assert parts("中漢한中".encode(), cut) == [c.encode() for c in ("中", "漢한", "中")]


def test_a_part_that_is_a_token_out_of_reach_is_merged() -> None:
    # As a piece it stands for itself; as a part it is what merging makes of it.
    tokens = [*BYTES, "中丁".encode()]
    t = Tokenizer("t", tokens, pattern("marks"), special_tokens(3))
    assert t.encode("中丁") == [256]
    for text in ("中丁漢", "漢中丁 中丁"):
        assert t.encode(text) == plain(text, t)


@pytest.mark.parametrize("seed", range(4))
def test_a_crowded_memory_changes_no_id(seed: int) -> None:
    t = TOKENIZERS[seed]
    t._idle[:] = [new_memory(16)]
    chosen = random.Random(seed)
    words = [
        "".join(chosen.choices("abé中", k=chosen.choice((1, 3, 5, 9, 14, 15, 16, 20, 31, 40))))
        for _ in range(60)
    ]
    words += ["\0" * k for k in (7, 8, 15, 16, 17, 31)]
    text = " ".join(chosen.choices(words, k=3000))
    assert t.encode(text) == plain(text, t)
    t._idle.clear()
