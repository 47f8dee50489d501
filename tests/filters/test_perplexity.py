"""Models of characters: estimates, scores, files, signals."""

from __future__ import annotations

import json
import math
from dataclasses import replace
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from curation.errors import InputError
from curation.filters.filter_settings import default_settings
from curation.filters.perplexity import (
    PERCENTILES,
    SCALE,
    WEIGHT_SCALE,
    CharacterModel,
    hash_grams,
    load_model,
    measure_models,
    model_table,
    symbols_of,
)
from curation.filters.signals import measure
from curation.models import list_models, sha256_of
from curation.resources import resolve
from curation.train import About
from curation.train.kneser_ney import _count, _estimate, _number, train_characters
from curation.train.perplexity import default_perplexity, train_perplexity_files

TEXT = "the cat sat on the mat. the dog sat on the log! a cat, a dog, a hat and 12 bats; über 3 Öl "
SMALL = default_perplexity().model_copy(
    update={"order": 3, "entries": 1000, "training_characters": 100_000}
)


def trained(text: str = TEXT, order: int = 4, entries: int = 10_000) -> CharacterModel:
    model = train_characters(symbols_of([text]), "en", order, 100, entries)
    return replace(model, percentiles=np.linspace(1, 100, PERCENTILES, dtype=np.float32))


def plain_symbols(text: str) -> list[str]:
    out = [" "]
    for char in text:
        symbol = " " if char.isspace() else "0" if char.isdigit() else char.lower()
        if not (symbol == out[-1] == " "):
            out.append(symbol)
    return out


def plain_log(model: CharacterModel, symbols: list[str]) -> float:
    """Sum of log p by the definition of a back-off model, one dictionary of n-grams."""
    held = {
        int(k): (int(a), int(b))
        for k, a, b in zip(model.keys, model.logs, model.weights, strict=True)
    }

    def entry(gram: list[str]) -> tuple[int, int] | None:
        codes = np.array([[ord(c) for c in gram]], np.uint32)
        return held.get(int(hash_grams(codes, len(gram))[0]))

    def log(gram: list[str]) -> float:
        found = entry(gram)
        if found:
            return -found[0] / SCALE
        if len(gram) == 1:
            return model.log_unknown
        context = entry(gram[:-1])
        return (-context[1] / WEIGHT_SCALE if context else 0.0) + log(gram[1:])

    total = 0.0
    for i in range(1, len(symbols)):
        total += log(symbols[max(0, i + 1 - model.order) : i + 1])
    return total


@pytest.mark.parametrize("least", [1, 2, 3])
def test_probabilities_sum_to_one(least: int) -> None:
    known, ids = _number(symbols_of([TEXT * 2 + TEXT[::-1]]), 100)
    levels = _estimate(_count(ids, 4), least, len(known))
    tables = [
        dict(
            zip(
                level.grams.tolist(),
                zip(level.probabilities, level.weights, strict=True),
                strict=True,
            )
        )
        for level in levels
    ]

    def probability(gram: tuple[int, ...]) -> float:
        packed = sum(c << 12 * k for k, c in enumerate(reversed(gram)))
        table = tables[len(gram) - 1]
        if packed in table:
            return table[packed][0]
        if len(gram) == 1:
            return 1 - sum(p for p, _ in table.values())
        context = tables[len(gram) - 2].get(packed >> 12)
        return (context[1] if context else 1.0) * probability(gram[1:])

    rng = np.random.default_rng(0)
    for _ in range(40):
        start = int(rng.integers(0, len(ids) - 4))
        for length in (0, 1, 2, 3):
            history = tuple(int(c) for c in ids[start : start + length])
            total = sum(probability((*history, c)) for c in range(len(known) + 1))
            assert total == pytest.approx(1, abs=1e-8)


@settings(max_examples=60)
@given(st.text(st.sampled_from("the catsodgmlu 12.ÜÖ\n字"), max_size=60))
def test_scores_follow_the_definition(text: str) -> None:
    model = trained()
    found = measure_models([text], model_table([model]))[0]
    symbols = plain_symbols(text)
    if len(symbols) < 2:
        assert np.isnan(found).all()
        return
    expected = math.exp(-plain_log(model, symbols) / (len(symbols) - 1))
    assert found[0] == pytest.approx(expected, rel=1e-9)
    assert found[1] == pytest.approx(min(max((expected - 1) / 0.99, 0), 100), abs=1e-3)


def test_text_like_the_training_text_is_foreseen() -> None:
    model = model_table([trained()])
    own, shuffled, other = measure_models(
        ["the cat sat on a log.", "t ghe.olta c osta n", "пыж"], model
    )[:, 0]
    assert own < shuffled < other


def test_fewer_entries_keep_the_frequent_ones() -> None:
    text = "abcdefghij" * 20 + TEXT * 3
    small, whole = trained(text, entries=60), trained(text)
    assert len(small.keys) <= 60 < len(whole.keys)
    assert set(small.keys.tolist()) <= set(whole.keys.tolist())


def test_too_little_text_is_an_error() -> None:
    with pytest.raises(InputError, match="too few"):
        trained("ab")


def test_training_from_files_and_signals(tmp_path: Path) -> None:
    rows = [{"text": f"{TEXT} number {i} is here. " * 5, "lang": "en"} for i in range(60)]
    rows.append({"text": "это другой язык", "lang": "ru"})
    path = tmp_path / "texts.jsonl"
    path.write_text("".join(json.dumps(r) + "\n" for r in rows), encoding="utf-8")
    about = About("1", "CC0-1.0", "written for this test", "")
    first = train_perplexity_files([path], "en", tmp_path / "a", about, SMALL)
    again = train_perplexity_files([path], "en", tmp_path / "b", about, SMALL)
    assert first.sha256 == again.sha256
    assert load_model(first.model, "en").order == 3
    assert (tmp_path / "a" / "card.yaml").read_text() == (tmp_path / "b" / "card.yaml").read_text()
    held = default_settings(signals={"reference": None, "perplexity": str(tmp_path / "a")}).signals
    languages = pa.array(["en", "ru", "en"])
    rows = measure(["the dog and the cat", "это", "zzqx" * 9], languages, held).to_pylist()
    assert rows[0]["perplexity"] < rows[2]["perplexity"]
    assert math.isnan(rows[1]["perplexity"])
    assert rows[2]["perplexity_percentile"] == 100


def test_built_in_models_are_those_on_the_card() -> None:
    card = next(card for card in list_models().values() if card.name == "perplexity")
    folder = Path(resolve("builtin:models/perplexity"))
    assert isinstance(card.sha256, dict)
    assert card.sha256 == {path.name: sha256_of(path) for path in folder.glob("*.npz")}
    english = model_table([load_model(folder / "en.npz", "en")])
    good, poor = measure_models(
        [
            "Roads that were made for salt ran from the coast to the towns of the hills, and the "
            "carriers who used them knew every inn on the way.",
            "buy cheap xqz-774 zzkk pills vgr online wwq hkjq qqx best px prcs",
        ],
        english,
    )
    assert good[0] < poor[0]
    assert good[1] < 80 < poor[1]
