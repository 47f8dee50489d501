"""Runs, candidates and alignment."""

from __future__ import annotations

import random
import time
from collections.abc import Sequence

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from curation.decontaminate import matching
from curation.decontaminate.index import (
    NUMBER,
    Background,
    Index,
    build_index,
    map_index,
    save_index,
)
from curation.decontaminate.matching import HIT, INSERTION, Matcher
from curation.decontaminate.normalize import folding, ngrams, place_of, tokenize
from tests.decontaminate.plain import aligned

NOTHING = Background(np.zeros(1, np.uint32), np.zeros(1, np.uint8), np.zeros(1, np.uint32))


def index_of(items: Sequence[str], background: Background = NOTHING) -> Index:
    return build_index(items, background)


def matcher(*patterns: str) -> Matcher:
    return Matcher(index_of(patterns), folding(), 0.3)


def hits(found: Matcher, text: str) -> list[list[int]]:
    data = np.frombuffer(text.encode(), np.uint8)
    return found.hits(found.tokens(data, 0, len(data))).tolist()


def sentence(seed: int, words: int) -> list[str]:
    rng = random.Random(seed)
    return ["".join(rng.choices("abcdefghij", k=6)) for _ in range(words)]


ITEM = sentence(1, 30)
FILLER = sentence(2, 400)


def test_the_place_of_an_exact_match() -> None:
    (hit,) = hits(matcher(" ".join(ITEM)), " ".join([*FILLER[:50], *ITEM, *FILLER[50:]]))
    assert hit[HIT.start : HIT.end + 1] == [50, 80] and hit[HIT.exact] == 1
    assert hit[HIT.covered] == 30


def test_every_copy_is_found() -> None:
    text = [w for i in range(9) for w in [*FILLER[i * 20 : i * 20 + 20], *ITEM]]
    found = hits(matcher(" ".join(ITEM)), " ".join(text))
    assert [hit[HIT.start] for hit in found] == [20 + 50 * i for i in range(9)]
    back_to_back = hits(matcher(" ".join(ITEM)), " ".join(ITEM * 5))
    assert [hit[HIT.start] for hit in back_to_back] == [30 * i for i in range(5)]


@pytest.mark.parametrize("between", [0, 5, 40, 120])
def test_a_split_item_is_one_hit(between: int) -> None:
    index = matcher(" ".join(ITEM))
    text = [*FILLER[:50], *ITEM[:15], *FILLER[50 : 50 + between], *ITEM[15:], *FILLER[200:]]
    (hit,) = hits(index, " ".join(text))
    total = int(index._index.totals[0])
    assert hit[HIT.score] == total - (INSERTION if between else 0)
    assert hit[HIT.start : HIT.end + 1] == [50, 80 + between]


@pytest.mark.parametrize("at", [4, 10, 22])
def test_an_insertion_into_a_template_costs_no_more(at: int) -> None:
    """N-grams of more than 32 patterns are in no run, here those of the first and last words."""
    first, last = sentence(5, 12), sentence(6, 12)
    items = [[*first, *sentence(100 + i, 8), *last] for i in range(40)]
    found = matcher(*map(" ".join, items))
    text = [*FILLER[:50], *items[7][:at], *FILLER[50:110], *items[7][at:], *FILLER[200:]]
    best = max(hits(found, " ".join(text)), key=lambda hit: hit[HIT.score])
    total = int(found._index.totals[7])
    assert best[HIT.pattern] == 7 and best[HIT.score] >= total - INSERTION
    assert best[HIT.start : HIT.end + 1] == [50, 50 + 32 + 60]


def test_a_phrase_that_an_item_has_twice_does_not_part_it() -> None:
    phrase = sentence(7, 5)
    item = [*ITEM[:10], *phrase, *ITEM[10:20], *phrase, *ITEM[20:]]
    found = matcher(" ".join(item))
    total = int(found._index.totals[0])
    text = [*FILLER[:50], *item[:25], *FILLER[50:70], *item[25:], *FILLER[70:]]
    (hit,) = hits(found, " ".join(text))
    assert hit[HIT.score] == total - INSERTION


def test_too_far_apart_is_no_whole() -> None:
    index = matcher(" ".join(ITEM))
    text = [*ITEM[:15], *FILLER[:300], *ITEM[15:]]
    for hit in hits(index, " ".join(text)):
        assert hit[HIT.score] < 0.6 * index._index.totals[0]


@settings(max_examples=200)
@given(st.data())
def test_alignment_against_a_plain_one(data: st.DataObject) -> None:
    """Within the band the score is the best there is."""
    alphabet = sentence(3, 6)
    pattern = data.draw(st.lists(st.sampled_from(alphabet), min_size=1, max_size=10))
    text = data.draw(st.lists(st.sampled_from(alphabet), min_size=1, max_size=12))
    index = index_of([" ".join(pattern)])
    tokens = tokenize([" ".join(text)])
    m, n = len(pattern), len(text)
    low, high = np.zeros(m, np.int64), np.full(m, n, np.int64)
    score, start, end = matching._align(tokens.hashes, index, 0, m, low, high)
    weights = [int(w) & (NUMBER - 1) for w in index.weights]
    assert score == aligned(pattern, weights, text, INSERTION)
    if score:
        assert 0 <= start < end <= n
        assert score == aligned(pattern, weights, text[start:end], INSERTION)


@settings(max_examples=100)
@given(st.integers(0, 1 << 30), st.integers(0, 3))
def test_edits_cost_their_words(seed: int, edits: int) -> None:
    """The hit's score is that of an alignment without a band."""
    rng = random.Random(seed)
    item = list(ITEM)
    for _ in range(edits):
        place = rng.randrange(len(item))
        item[place : place + rng.randrange(2)] = sentence(rng.randrange(99), rng.randrange(2))
    index = index_of([" ".join(ITEM)])
    text = [*FILLER[:20], *item, *FILLER[20:40]]
    (hit,) = hits(Matcher(index, folding(), 0.3), " ".join(text))
    weights = [int(w) & (NUMBER - 1) for w in index.weights]
    assert hit[HIT.score] == aligned(ITEM, weights, text, INSERTION)


def test_templates_weigh_little() -> None:
    frame = sentence(5, 12)
    items = [" ".join([*frame, *sentence(100 + i, 8)]) for i in range(20)]
    index = index_of(items)
    weights = index.weights[:20].astype(int)
    assert weights[:9].max() < weights[13:].min() / 3


def test_background_makes_a_phrase_light_and_no_seed() -> None:
    phrase = sentence(6, 10)
    grams, ends = ngrams(tokenize([" ".join(phrase)]))
    shared = np.unique((grams[ends >= 0] >> np.uint64(32)).astype(np.uint32))
    background = NOTHING.__class__(NOTHING.tokens, NOTHING.bits, shared)
    index = index_of([" ".join([*phrase, *ITEM])], background)
    weights = index.weights.astype(int)
    assert weights[:6].max() < weights[15:].min() / 3
    assert hits(Matcher(index, folding(), 0.1), " ".join(phrase)) == []


def test_index_on_disk(tmp_path: object) -> None:
    from pathlib import Path

    index = index_of([" ".join(ITEM), " ".join(FILLER)])
    save_index(index, Path(str(tmp_path)) / "index")
    mapped = map_index(Path(str(tmp_path)) / "index")
    assert all(np.array_equal(a, b) for a, b in zip(index, mapped, strict=True))
    grams, _ = ngrams(tokenize([" ".join(ITEM)]))
    numbers = [place_of(gram, mapped.keys) for gram in grams[:-3]]
    assert len(set(numbers)) == len(numbers) and min(numbers) >= 0
    assert place_of(np.uint64(12345), mapped.keys) == -1


def test_an_empty_index() -> None:
    index = index_of([])
    assert isinstance(index, Index)
    assert (
        hits(Matcher(index, folding(), 0.5), "some text that is long enough to have n-grams") == []
    )


HOSTILE = {
    "one word": lambda n: "word " * n,
    "the item again and again": lambda n: " ".join(ITEM) + " " + " ".join(ITEM * (n // 30)),
    "half of it again and again": lambda n: " ".join(ITEM[:12] * (n // 12)),
    "backwards in pieces": lambda n: " ".join(
        w for i in range(n // 30) for k in range(5) for w in ITEM[24 - 6 * k : 30 - 6 * k]
    ),
    "a template": lambda n: " ".join(sentence(5, 12) * (n // 12)),
    "letters": lambda n: "a1" * n,
    "marks": lambda n: "e\u0301" * n,
    "backslashes": lambda n: "\\begin{" * n,
}


@pytest.mark.parametrize("shape", HOSTILE)
def test_costs_grow_with_the_document(shape: str) -> None:
    frames = [" ".join([*sentence(5, 12), *sentence(100 + i, 8)]) for i in range(8)]
    found = matcher(" ".join(ITEM), *frames, "word " * 60)

    def seconds(n: int) -> float:
        text = HOSTILE[shape](n)
        times = []
        for _ in range(3):
            started = time.process_time()
            hits(found, text)
            times.append(time.process_time() - started)
        return min(times)

    seconds(100)
    for _ in range(5):  # other load only adds time
        # a quadratic cost takes 64 times as long; leaving a cache up to 11 times
        if seconds(40_000) <= 20 * max(seconds(5_000), 0.001):
            return
    pytest.fail("eight times the document takes more than 20 times as long")
