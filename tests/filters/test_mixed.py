"""Documents in two languages: each part is measured, and gibberish is no second language."""

from __future__ import annotations

import random

import numpy as np
import pyarrow as pa
import pytest

from curation.filters.filter_settings import default_settings
from curation.filters.mixed import PIECE, STRANGE, divergences
from curation.filters.reference import (
    load_reference,
    measure_all,
    measure_references,
    reference_tables,
)
from curation.filters.signals import Meter
from curation.resources import resolve
from tests.filters.test_reference import ENGLISH, GERMAN

REFERENCES = reference_tables(
    [load_reference(resolve(f"builtin:models/reference/{n}.npz"), n) for n in ("de", "en", "fr")]
)
DE, EN = 0, 1


def divergence(text: str, number: int) -> float:
    return float(divergences(pa.array([text]), np.array([number]), REFERENCES)[0])


def gibberish(characters: int) -> str:
    dice = random.Random(3)
    words = (
        "".join(dice.choices("abcdefghijklmnoprstuvwyz", k=dice.randint(3, 9))) for _ in range(999)
    )
    return " ".join(words)[:characters]


def test_each_part_counts_in_its_own_language() -> None:
    english, german = ENGLISH.replace("\n", " "), GERMAN.replace("\n", " ")
    for number, part, other in ((EN, english, german), (DE, german, english)):
        text = f"{part}\n{other}\n{other}\n{part}\n{other}\n{other}"
        assert measure_references([text], REFERENCES, number)[0, 0] > STRANGE
        parts = [(number, f"{part}\n{part}"), (DE + EN - number, "\n".join([other] * 4))]
        alone = [measure_references([text], REFERENCES, n)[0, 0] for n, text in parts]
        mean = np.average(alone, weights=[len(text) for _, text in parts])
        assert divergence(text, number) == pytest.approx(mean, rel=0.01)
        assert mean < STRANGE


def test_other_strange_documents_stay_strange() -> None:
    english, german = ENGLISH.replace("\n", " "), GERMAN.replace("\n", " ")
    noise = gibberish(2 * PIECE)
    assert np.isnan(divergence(f"{english}\n{noise}\n{english}", EN)), "gibberish fits no reference"
    assert np.isnan(divergence(f"{german}\n{german}", EN)), "nothing is in the own language"
    assert np.isnan(divergence(f"{english}\n{english}", EN)), "nothing is strange"
    assert np.isnan(divergence("", EN))


def test_the_signal_is_that_of_the_parts() -> None:
    english, german = ENGLISH.replace("\n", " "), GERMAN.replace("\n", " ")
    meter = Meter(default_settings().signals)
    noise = gibberish(2 * PIECE)
    texts = [f"{german}\n{english}\n{english}", f"{english}\n{noise}\n{english}", noise]
    found = meter.measure(pa.array(texts), pa.array(["de", "en", "en"])).field("kl_divergence")
    two, mixed, wild = found.to_pylist()
    assert two < STRANGE < mixed and wild > 4.5


def test_batches_and_all_references_measure_as_each_alone() -> None:
    english, german = ENGLISH.replace("\n", " "), GERMAN.replace("\n", " ")
    noise = gibberish(2 * PIECE)
    mixed = [f"{a}\n{b}\n{b}" for a, b in ((english, german), (german, english))]
    texts = [mixed[0], noise, "", mixed[1], english]
    numbers = np.array([EN, EN, DE, DE, EN])
    alone = [divergence(text, number) for text, number in zip(texts, numbers, strict=True)]
    together = divergences(pa.array(texts), numbers, REFERENCES)
    np.testing.assert_array_equal(together, alone)
    assert np.isfinite(together).tolist() == [True, False, False, True, False]
    limits = np.array([np.inf, 5.0, np.inf, STRANGE, 0.0])
    by_all = measure_all(texts, REFERENCES, np.arange(3), limits)[:, :, 0]
    for number in range(len(REFERENCES.unknown)):
        by_one = measure_references(texts, REFERENCES, number)[:, 0]
        beyond = np.isinf(by_all[number])
        assert (by_one[beyond] > limits[beyond]).all()
        np.testing.assert_array_equal(by_all[number][~beyond], by_one[~beyond])
    assert np.isinf(by_all).any()
