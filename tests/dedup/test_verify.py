"""Candidates, their verification, clusters."""

from __future__ import annotations

import re

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from curation.dedup.candidates import (
    bucket_order,
    bucket_pairs,
    estimated_jaccard,
    jaccard,
    shingle_sets,
)
from curation.dedup.components import cluster_sizes, confirmed_clusters, same_text
from curation.dedup.dedup_settings import DocumentDedupSettings, defaults, normalizations
from curation.dedup.keys import sort_rows, string_keys
from curation.dedup.minhash import band_hashes, signatures

SETTINGS = defaults(DocumentDedupSettings)
WORDS = normalizations()["words"]
RECORDS = st.lists(st.tuples(st.integers(0, 3), st.integers(0, 5)), max_size=40)


def columns(records: list[tuple[int, int]]) -> list[np.ndarray]:
    table = np.array(records, np.uint64).reshape(-1, 2)
    return [table[:, 0], table[:, 1], np.arange(len(table), dtype=np.uint64)]


@given(RECORDS)
@settings(max_examples=100)
def test_rows_are_sorted_stably(records: list[tuple[int, int]]) -> None:
    found = zip(*(c.tolist() for c in sort_rows(*columns(records)[:2])), strict=True)
    assert list(found) == sorted((a, b, i) for i, (a, b) in enumerate(records))


@given(RECORDS, st.integers(1, 8))
@settings(max_examples=150)
def test_pairs_of_a_bucket(records: list[tuple[int, int]], window: int) -> None:
    """Each document with the `window` after it; equal texts stand once, by their first document."""
    expected = set()
    for bucket in {b for b, _ in records}:
        texts = sorted({t for b, t in records if b == bucket})
        first = [records.index((bucket, t)) for t in texts]
        for i in range(len(first)):
            for j in range(i + 1, min(i + window + 1, len(first))):
                expected.add((min(first[i], first[j]), max(first[i], first[j])))
    pairs = bucket_pairs(*columns(records), window)
    assert [tuple(pair) for pair in pairs.tolist()] == sorted(expected)


def test_candidates_do_not_depend_on_numbers() -> None:
    """What is sharded otherwise has other numbers, and the same pairs of texts."""
    rng = np.random.default_rng(5)
    words = np.array("one two three four five six seven eight nine ten".split())
    base = rng.choice(words, 60)
    texts = []
    for _ in range(60):
        base[rng.integers(0, 60, 2)] = rng.choice(words, 2)
        texts.append(" ".join(base))
    minhash = SETTINGS.minhash

    def found(order: np.ndarray) -> set[frozenset[str]]:
        some = [texts[i] for i in order]
        signed = signatures(some, minhash)
        hashes = band_hashes(signed, minhash.bands, minhash.rows)
        twins = string_keys(some)[:, 0]
        places = bucket_order(signed, minhash.bands, minhash.rows, twins)
        doc64 = np.repeat(np.arange(len(some), dtype=np.uint64), minhash.bands)
        pairs = bucket_pairs(hashes.reshape(-1), places.reshape(-1), doc64, 4)
        return {frozenset((some[a], some[b])) for a, b in pairs.tolist()}

    straight = found(np.arange(len(texts)))
    assert straight
    assert found(rng.permutation(len(texts))) == straight


TEXTS = st.lists(
    st.lists(st.sampled_from(["a", "B", "c_d", "12", "日本", "x."]), max_size=15).map(" ".join),
    min_size=2,
    max_size=6,
)


@given(TEXTS)
@settings(max_examples=100)
def test_similarity_of_sets(texts: list[str]) -> None:
    def reference(text: str) -> set[tuple[str, ...]]:
        tokens = re.findall(r"[\u3040-\u30ff\u3400-\u9fff]|\w+", text.lower())
        return {tuple(tokens[i : i + 3]) for i in range(len(tokens) - 2)}

    rules = SETTINGS.minhash.model_copy(update={"ngram": 3})
    sets = shingle_sets(texts, rules, WORDS)
    own = [reference(text) for text in texts]
    assert np.diff(sets.offsets).tolist() == [len(s) for s in own]
    first, second = (i.reshape(-1) for i in np.indices((len(texts), len(texts))))
    expected = [
        len(own[a] & own[b]) / max(1, len(own[a] | own[b]))
        for a, b in zip(first, second, strict=True)
    ]
    assert jaccard(sets, first, second).tolist() == pytest.approx(expected, abs=1e-12)


def test_estimate_is_the_share_of_equal_values() -> None:
    values = np.array([[1, 2, 3, 4], [1, 2, 0, 4], [9, 9, 9, 9]], np.uint32)
    first, second = np.array([0, 0, 1]), np.array([1, 2, 1])
    assert estimated_jaccard(values, first, second).tolist() == [0.75, 0.0, 1.0]


PAIRS = st.lists(st.tuples(st.integers(0, 9), st.integers(0, 9)), max_size=10)


@given(st.lists(st.integers(0, 3), min_size=10, max_size=10), PAIRS)
@settings(max_examples=100)
def test_clusters_are_made_of_confirmed_pairs_and_equal_texts(
    texts: list[int], pairs: list[tuple[int, int]]
) -> None:
    groups = np.arange(10, dtype=np.uint64) // np.uint64(5)
    pairs = [(a, b) for a, b in pairs if groups[a] == groups[b]]
    exact = np.array([(t, t) for t in texts], np.uint64)  # 0: no key
    labels = confirmed_clusters(groups, exact, np.array(pairs, np.int64).reshape(-1, 2))
    expected = list(range(10))
    edges = [*pairs]
    for a in range(10):
        edges += [
            (a, b)
            for b in range(10)
            if texts[a] and texts[a] == texts[b] and groups[a] == groups[b]
        ]
    for _ in range(10):
        for a, b in edges:
            expected[a] = expected[b] = min(expected[a], expected[b])
    assert labels.tolist() == expected
    assert cluster_sizes(labels).tolist() == [expected.count(label) for label in expected]


def test_same_text_needs_a_key() -> None:
    exact = np.array([[1, 2], [1, 2], [0, 0], [0, 0], [1, 3]], np.uint64)
    first, second = np.array([0, 2, 0]), np.array([1, 3, 4])
    assert same_text(exact, first, second).tolist() == [True, False, False]
