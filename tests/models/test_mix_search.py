"""Mixture search: the proxy against a plain model, the law, and what is proposed."""

from __future__ import annotations

import math
from collections import Counter

import numpy as np
import pytest
import yaml
from hypothesis import given, settings
from hypothesis import strategies as st

from curation.errors import InputError
from curation.resources import root
from models.mixes.laws import Exponential, fit_exponential
from models.mixes.proxy import Proxy, run_proxy
from models.mixes.search import SearchSettings, Space, first_round, propose, sample_streams

VOCABULARY = 5
STREAM = st.lists(st.integers(0, VOCABULARY), max_size=30).map(lambda t: np.array(t, np.uint32))


def searching(**changes: object) -> SearchSettings:
    defaults = yaml.safe_load((root() / "configs/train/search.yaml").read_text())
    return SearchSettings.model_validate(defaults | changes)


def ngrams(stream: np.ndarray) -> list[tuple[int, int, int]]:
    found, older, newer = [], VOCABULARY, VOCABULARY
    for token in stream.tolist():
        if token != VOCABULARY:
            found.append((older, newer, token))
        older, newer = (token, token) if token == VOCABULARY else (newer, token)
    return found


def reference_loss(train: list[tuple[np.ndarray, int]], test: np.ndarray, discount: float) -> float:
    """Interpolated absolute discounting, from dictionaries of weights and first weights."""
    counts: list[Counter] = [Counter(), Counter(), Counter()]
    firsts: list[Counter] = [Counter(), Counter(), Counter()]
    for stream, weight in train:
        for ngram in ngrams(stream):
            for order in range(3):
                key = ngram[2 - order :]
                firsts[order].setdefault(key, weight)
                counts[order][key] += weight
    losses = []
    for ngram in ngrams(test):
        chance = 1 / VOCABULARY
        for order in range(3):
            context = ngram[2 - order : 2]
            after = [k for k in counts[order] if k[:-1] == context]
            total = sum(counts[order][k] for k in after)
            if total:
                key = ngram[2 - order :]
                left = discount * sum(firsts[order][k] for k in after)
                kept = counts[order][key] - discount * firsts[order].get(key, 0)
                chance = (kept + left * chance) / total
        losses.append(-math.log(chance))
    return sum(losses) / max(len(losses), 1)


@settings(max_examples=60)
@given(STREAM, st.integers(1, 3), STREAM, st.integers(1, 3), STREAM)
def test_the_proxy_equals_a_plain_model(
    a: np.ndarray, times_a: int, b: np.ndarray, times_b: int, test: np.ndarray
) -> None:
    model = Proxy(VOCABULARY, len(a) + len(b), 0.75)
    model.train(a, times_a * len(a))
    model.train(b, times_b * len(b))
    expected = reference_loss([(a, times_a), (b, times_b)], test, 0.75)
    assert model.loss(test) == pytest.approx(expected, abs=1e-12)


def test_repeats_teach_nothing_new_and_more_text_does() -> None:
    rng = np.random.default_rng(0)
    # Steps of 1 to 3 on a ring: more text shows more of what may follow two tokens.
    text = (np.cumsum(rng.integers(1, 4, 4000)) % 40).astype(np.uint32)
    train, test = text[:3000], text[3000:]

    def loss(stream: np.ndarray, tokens: int) -> float:
        return run_proxy([stream], [test], [1.0], tokens, 40, 0.75)[0]

    assert loss(train[:500], 2000) == pytest.approx(loss(train[:500], 500), abs=1e-12)
    assert loss(train, 3000) < loss(train[:500], 500) - 0.05
    with pytest.raises(ValueError, match="ids"):
        Proxy(1 << 21, 10, 0.75)


def test_a_law_is_found_again_from_its_own_losses() -> None:
    rng = np.random.default_rng(1)
    law = Exponential(
        np.array([2.0, 3.0]),
        np.array([3.0, 2.0]),
        np.array([[-4.0, -0.5], [-1.0, -3.0], [0.0, 0.3]]),
    )
    shares = rng.dirichlet([2, 2, 2], 60)
    noisy = law.predict(shares) + rng.normal(0, 0.003, (60, 2))
    fitted = fit_exponential(shares[:45], noisy[:45], 1e-6)
    assert np.abs(fitted.predict(shares[45:]) - law.predict(shares[45:])).max() < 0.02


def test_the_proposal_goes_where_losses_fall_and_keeps_within_limits() -> None:
    space = Space(("a", "b", "c"), np.array([0.6, 0.2, 0.2]), np.array([1.0, 0.45, 1.0]))
    s = searching(candidates=5000, resamples=5, min_share=0.05)
    shares = first_round(space, s)
    assert shares[0].tolist() == space.shares.tolist() and len(shares) == s.runs
    assert np.allclose(shares.sum(axis=1), 1)
    assert (shares[1:] >= 0.05).all() and (shares <= space.most + 1e-12).all()
    # More of b helps every domain, c helps none.
    rng = np.random.default_rng(2)
    losses = 3 + 2 * np.exp(-shares @ np.array([[1.0, 1, 1], [4.0, 3, 4], [0.0, 0, 0]]))
    losses += rng.normal(0, 0.002, losses.shape)
    near = len(shares) - 1
    found = propose(space, shares, losses, near, space.shares, s.concentration, s)
    assert found.shares[1] > 0.4 and found.shares[2] < 0.12
    assert found.shares.sum() == pytest.approx(1)
    assert (found.rank_correlation > 0.95).all() and (found.test_error < 0.02).all()
    assert (found.uncertainty >= found.test_error).all()
    assert (found.predicted < found.before).all()


def test_no_room_is_an_error() -> None:
    space = Space(("a", "b"), np.array([0.5, 0.5]), np.array([0.2, 0.3]))
    with pytest.raises(InputError, match=r"no room to search .*a 20%, b 30%"):
        first_round(space, searching())


def test_streams_mark_documents_and_stop_at_their_limits() -> None:
    documents = [np.arange(k, dtype=np.uint32) for k in (3, 2, 4, 1)]
    train, held_out = sample_streams(documents, [False, True, False, False], 6, 10, 9)
    assert train.tolist() == [9, 0, 1, 2, 9, 0]
    assert held_out.tolist() == [9, 0, 1]
