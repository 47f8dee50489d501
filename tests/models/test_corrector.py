"""The second language model: how it corrects, how it is stored and trained; languages by line."""

from __future__ import annotations

import itertools
import json
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
import regex
import yaml
from hypothesis import given
from hypothesis import settings as hypothesis_settings
from hypothesis import strategies as st

from curation import resources
from curation.errors import ConfigError
from curation.language import LanguageIdentifier, LanguageSettings, default_settings, identify
from curation.language.corrector import Corrector, load_corrector
from curation.language.fasttext import load_fasttext
from curation.language.windows import letters_only, split_lines
from curation.train import About, train_corrector
from curation.train.settings import CorrectorTraining
from curation.train.settings import default_settings as training_settings

MODELS = resources.root() / "models"
GERMAN = "Der Ausschuss wird seinen Bericht über die Ernte am Ende des Jahres veröffentlichen."
ENGLISH = "The committee will publish its report on the harvest at the end of the year."
SOMALI = "Dadka oo dhan waxay dhashaan iyagoo xor ah kana siman xagga sharafta iyo xuquuqda."
ZULU = "Bonke abantu bazalwa bekhululekile belingana ngesithunzi nangamalungelo abo ubuntu."


def settings(**changes: object) -> LanguageSettings:
    return LanguageSettings.model_validate(default_settings().model_dump() | changes)


@pytest.fixture(scope="module")
def corrector() -> Corrector:
    labels = load_fasttext(MODELS / "language" / "lid.176.ftz", "lid").labels
    return load_corrector(MODELS / "corrector" / "corrector.npz", "corrector", labels)


def test_languages_that_the_first_model_takes_for_others() -> None:
    alone = settings(corrector=None)
    assert identify([GERMAN, ENGLISH])[0] == identify([GERMAN, ENGLISH], alone)[0] == ["de", "en"]
    assert identify([SOMALI])[0] == ["so"] != identify([SOMALI], alone)[0]


def test_a_language_that_no_model_has_is_unknown() -> None:
    labels, scores = identify([ZULU], settings(unknown_below=0.0))
    assert labels == ["und"] and scores[0] < 0.5


def test_a_word_is_little_evidence() -> None:
    _, scores = identify(["App", "Blank", ENGLISH])
    assert scores[0] < 0.5 and scores[1] < 0.5 < scores[2]


def test_nothing_known_is_nothing_found(corrector: Corrector) -> None:
    k = len(corrector.labels)
    first, second = np.full((2, k - 1), 1 / (k - 1)), np.full((2, k), 1 / k)
    second[0] = 0
    found = corrector.combine(first, second, np.array([99, 99]))
    assert not found[0].any() and found[1].sum() == pytest.approx(1)
    assert corrector.combine(first[:0], second[:0], np.zeros(0, int)).shape == (0, k)


def test_saving_and_loading(corrector: Corrector, tmp_path: Path) -> None:
    paths = [tmp_path / "a.npz", tmp_path / "b.npz"]
    for path in paths:
        corrector.save(path)
    assert paths[0].read_bytes() == paths[1].read_bytes()
    again = load_corrector(paths[0], "a", corrector.labels[:-1])
    texts = [GERMAN.lower(), SOMALI.lower()]
    assert again.model.probabilities(texts) == pytest.approx(
        corrector.model.probabilities(texts), abs=0.02
    )


def test_a_corrector_of_another_model(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"c\.npz: a corrector of another language model"):
        load_corrector(MODELS / "corrector" / "corrector.npz", "c.npz", ("de", "en"))
    (tmp_path / "noise").write_bytes(b"noise")
    with pytest.raises(ConfigError, match="noise: not a language corrector: ") as caught:
        load_corrector(tmp_path / "noise", "noise", ("de",))
    assert "\n" not in str(caught.value)


@given(st.lists(st.text(alphabet="aÄİẞß中😀𐐀'’_1 .\n\u0301", max_size=30), max_size=5))
@hypothesis_settings(deadline=None)
def test_letters_against_a_pattern(lines: list[str]) -> None:
    plain = [regex.sub(r"[^\p{L}\p{M}\u200c\u200d\u00ad']+", " ", line).strip() for line in lines]
    found = letters_only(lines).to_pylist()
    assert [len(t) for t in found] == [len(t) for t in plain]
    for a, b in zip("".join(found), "".join(plain), strict=True):
        assert a == b or a == b.lower()[0]


@given(st.lists(st.text(alphabet="ab\n", max_size=12), max_size=6))
@hypothesis_settings(deadline=None)
def test_lines_against_split(texts: list[str]) -> None:
    lines, firsts = split_lines(texts)
    found = lines.to_pylist()
    assert len(firsts) == len(texts) + 1
    assert [found[a:b] for a, b in itertools.pairwise(firsts)] == [t.split("\n") for t in texts]


def test_languages_by_line() -> None:
    mixed = "\n".join(["Start", GERMAN, "Menü", ENGLISH, GERMAN, ""])
    texts = pa.array([mixed, "", "Zu kurz", "12\n34", None, ENGLISH])
    found = LanguageIdentifier(default_settings()).by_line(texts).to_pylist()
    assert [e["language"] for e in found[0]] == ["de", "en"]
    assert sum(e["share"] for e in found[0]) == pytest.approx(1, abs=1e-3)
    german = sum(map(str.isalpha, "Start" + GERMAN + "Menü" + GERMAN))
    assert found[0][0]["share"] == pytest.approx(
        german / (german + sum(map(str.isalpha, ENGLISH))), abs=1e-3
    )
    assert found[1] == found[3] == found[4] == []
    assert found[2] == [{"language": "und", "share": 1.0}]
    assert found[5] == [{"language": "en", "share": 1.0}]
    assert LanguageIdentifier(default_settings()).by_line([]).to_pylist() == []


def test_training_is_reproducible(tmp_path: Path) -> None:
    rows = []
    words = {"de": GERMAN, "en": ENGLISH, "so": SOMALI, "xx-zulu": ZULU, "xx-toki": "toki pona li"}
    for i in range(60):
        label = list(words)[i % 5]
        text = " ".join(np.random.default_rng(i).permutation((words[label] + " " * i).split()))
        rows.append({"text": f"{text} {i}", "lang": label})
    source = tmp_path / "texts.jsonl"
    source.write_text("".join(json.dumps(r) + "\n" for r in rows), encoding="utf-8")
    base = training_settings("corrector", CorrectorTraining)
    small = base.model_copy(
        update={"folds": 2, "bootstrap": 100, "epochs": 3, "dim": 4, "buckets": 500, "min_count": 2}
    )
    about = About("1", "CC0-1.0", "", "")
    reports = [
        train_corrector([source], tmp_path / f"run{i}", about, small, pages=[source])
        for i in range(2)
    ]
    assert reports[0].sha256 == reports[1].sha256
    cards = [yaml.safe_load((tmp_path / f"run{i}" / "card.yaml").read_text()) for i in range(2)]
    assert cards[0] == cards[1]
    assert cards[0]["metrics"]["documents"] == 60
    used = settings(corrector={"path": str(reports[0].model), "sha256": None})
    assert len(identify([GERMAN], used)[0]) == 1
