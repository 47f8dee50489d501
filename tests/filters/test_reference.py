"""Reference distributions: the divergence by hand, files, training."""

from __future__ import annotations

import json
import math
from collections import Counter
from pathlib import Path

import numpy as np
import pytest
import yaml

from curation.errors import ConfigError, InputError
from curation.filters.lists import read_list
from curation.filters.reference import Reference, WordCounts, load_reference, measure_references
from curation.models import list_models
from curation.resources import resolve
from curation.train import About
from curation.train.reference import (
    ReferenceTraining,
    calibration_table,
    train_reference_files,
)

CORPUS = ["the cat saw the dog", "the dog saw 12 cats", "a bird"]


def counted(texts: list[str], vocabulary: int) -> Reference:
    """The reference of the words that these texts hold at least twice."""
    counts = WordCounts()
    counts.add(texts)
    return counts.reference("en", vocabulary, 2)


def test_divergence_by_hand() -> None:
    """Kept: the (3), saw (2), dog (2); the five words seen once share the rest of 12."""
    held = counted(CORPUS, 100)
    assert (held.tokens, len(held.words)) == (12, 3)
    text = "The the DOG unknown"
    p = {"the": 3 / 12, "dog": 2 / 12, "?": 5 / 12}
    q = {"the": 2 / 4, "dog": 1 / 4, "?": 1 / 4}
    expected = sum(q[w] * math.log(q[w] / p[w]) for w in q)
    found = measure_references([text, ""], [held])
    assert found[0] == pytest.approx([expected, 0.25], abs=1e-6)
    assert np.isnan(found[1]).all()


def test_batches_count_as_one_corpus() -> None:
    whole = counted(CORPUS, 2)
    counts = WordCounts()
    for text in CORPUS:
        counts.add([text])
    parts = counts.reference("en", 2, 2)
    assert np.array_equal(whole.words, parts.words)
    assert whole.log_unknown == parts.log_unknown


def test_files_keep_it_and_are_reproducible(tmp_path: Path) -> None:
    held = counted(CORPUS * 3, 100)
    held.save(tmp_path / "a.npz")
    held.save(tmp_path / "b.npz")
    assert (tmp_path / "a.npz").read_bytes() == (tmp_path / "b.npz").read_bytes()
    again = load_reference(tmp_path / "a.npz", "en")
    assert np.array_equal(again.words, held.words)
    assert again.log_probabilities == pytest.approx(held.log_probabilities, abs=2e-3)
    (tmp_path / "c.npz").write_bytes(b"no")
    with pytest.raises(ConfigError, match=r"c\.npz"):
        load_reference(tmp_path / "c.npz", "en")
    (tmp_path / "d.npz").write_bytes((tmp_path / "a.npz").read_bytes()[:-9])
    with pytest.raises(ConfigError, match=r"d\.npz: not a reference distribution: "):
        load_reference(tmp_path / "d.npz", "en")


def test_training_from_files_adds_to_the_card(tmp_path: Path) -> None:
    rows = [{"text": t, "lang": "en"} for t in CORPUS * 9] + [
        {"text": "der Hund der", "lang": "de"}
    ]
    path = tmp_path / "texts.jsonl"
    path.write_text("\n".join(map(json.dumps, rows)), "utf-8")
    settings = ReferenceTraining(
        text_column="text",
        language_column="language|lang",
        vocabulary=100,
        min_count=2,
        batch_characters=1000,
        calibration_lengths=(100, 200),
    )
    about = About("1", "CC0-1.0", "ours", "command")
    for language in ("en", "de"):
        report = train_reference_files([path], language, tmp_path / "out", about, settings)
        assert report.metrics["words"] == {"en": 12 * 9, "de": 3}[language]
    rows = report.metrics["calibration"]
    assert [row["characters"] for row in rows] == [100, 200]
    assert calibration_table(rows).count("\n") == 2 * len(rows)
    card = yaml.safe_load((tmp_path / "out" / "card.yaml").read_text("utf-8"))
    assert list(card["sha256"]) == ["de.npz", "en.npz"]
    assert card["metrics"]["en"]["documents"] == 27
    english = card["metrics"]["en"]["calibration"][0]["kl_divergence"]
    assert list(english.values()) == sorted(english.values())
    with pytest.raises(InputError, match="'fr'"):
        train_reference_files([path], "fr", tmp_path / "out", about, settings)


def test_built_in_references_are_those_on_the_card() -> None:
    card = next(card for card in list_models() if card.name == "reference")
    folder = Path(resolve("builtin:models/reference"))
    assert isinstance(card.sha256, dict)
    assert sorted(card.sha256) == sorted(path.name for path in folder.glob("*.npz"))
    english = load_reference(folder / "en.npz", "en")
    good, odd = measure_references(
        ["The house that they have lived in is one of the oldest of the town.", "zq vx " * 9],
        [english],
    )
    assert good[1] < 0.2
    assert odd[1] == 1


def test_word_lists_have_no_word_twice() -> None:
    for folder in ("stop_words", "dirty", "allow"):
        for path in Path(resolve(f"builtin:configs/lists/{folder}")).glob("*.txt"):
            entries = (entry.removeprefix("? ") for entry in read_list(path))
            repeated = {w: n for w, n in Counter(entries).items() if n > 1}
            assert not repeated, path.name
