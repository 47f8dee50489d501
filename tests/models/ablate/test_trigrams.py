"""The trigram model against a plain one."""

from __future__ import annotations

import math
from collections import Counter

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from models.ablate.trigrams import Trigrams

VOCABULARY = 5
STREAM = st.lists(st.integers(0, VOCABULARY), max_size=30).map(lambda t: np.array(t, np.uint32))


def ngrams(stream: np.ndarray) -> list[tuple[int, int, int]]:
    found, older, newer = [], VOCABULARY, VOCABULARY
    for token in stream.tolist():
        if token != VOCABULARY:
            found.append((older, newer, token))
        older, newer = (token, token) if token == VOCABULARY else (newer, token)
    return found


def reference_loss(train: np.ndarray, test: np.ndarray, discount: float) -> float:
    """Return the loss by interpolated absolute discounting, from dictionaries of counts."""
    counts: list[Counter] = [Counter(), Counter(), Counter()]
    for ngram in ngrams(train):
        for order in range(3):
            counts[order][ngram[2 - order :]] += 1
    losses = []
    for ngram in ngrams(test):
        chance = 1 / VOCABULARY
        for order in range(3):
            context = ngram[2 - order : 2]
            after = [k for k in counts[order] if k[:-1] == context]
            total = sum(counts[order][k] for k in after)
            if total:
                kept = max(counts[order][ngram[2 - order :]] - discount, 0)
                chance = (kept + discount * len(after) * chance) / total
        losses.append(-math.log(chance))
    return sum(losses) / max(len(losses), 1)


@settings(max_examples=60)
@given(STREAM, STREAM, STREAM)
def test_it_equals_a_plain_model(a: np.ndarray, b: np.ndarray, test: np.ndarray) -> None:
    model = Trigrams(VOCABULARY, len(a) + len(b), 0.75)
    model.train(a)
    model.train(b)
    # a stream begins anew, as behind the mark
    train = np.concatenate([a, [VOCABULARY], b]).astype(np.uint32)
    assert model.loss(test) == pytest.approx(reference_loss(train, test, 0.75), abs=1e-12)


@settings(max_examples=60)
@given(STREAM, STREAM, STREAM)
def test_what_is_forgotten_was_never_counted(
    kept: np.ndarray, gone: np.ndarray, test: np.ndarray
) -> None:
    model, plain = (Trigrams(VOCABULARY, len(kept) + len(gone), 0.75) for _ in range(2))
    model.train(gone)
    model.train(kept)
    model.forget(gone)
    plain.train(kept)
    assert model.loss(test) == plain.loss(test)


def test_more_text_teaches_more() -> None:
    rng = np.random.default_rng(0)
    # Steps of 1 to 3 on a ring: more text shows more of what may follow two tokens.
    text = (np.cumsum(rng.integers(1, 4, 4000)) % 40).astype(np.uint32)

    def loss(tokens: int) -> float:
        model = Trigrams(40, tokens, 0.75)
        model.train(text[:tokens])
        return model.loss(text[3000:])

    assert loss(3000) < loss(500) - 0.05
    with pytest.raises(ValueError, match="ids"):
        Trigrams(1 << 21, 10, 0.75)
