"""The memory of pieces changes no id, whatever the vocabulary is."""

from __future__ import annotations

import random

import pytest
import regex
from hypothesis import given, settings
from hypothesis import strategies as st

from curation.tokenize.card import special_tokens
from curation.tokenize.encode import new_memory
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


TOKENIZERS = [tokenizer(seed) for seed in range(8)]


@settings(max_examples=300)
@given(st.text(ALPHABET, max_size=60), st.integers(0, 7))
def test_pieces_have_the_ids_of_their_definition(text: str, seed: int) -> None:
    t = TOKENIZERS[seed]
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
