"""fastText models read and run by our own kernel, against the library."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import fasttext
import numpy as np
import pytest
from hypothesis import given
from hypothesis import settings as hypothesis_settings
from hypothesis import strategies as st

from curation import resources
from curation.errors import ConfigError
from curation.language.fasttext import FastText, load_fasttext

LINES = {
    "de": "der Hund und die Katze schlafen nicht auf dem Sofa weil es regnet süß",
    "ru": "собака и кошка не спят на диване потому что идёт дождь",
    "zh": "委员会 将在年底 发表关于 今年收成 的报告",
    "en": "the dog and the cat do not sleep on the sofa because it rains",
    "sv": "hunden och katten sover inte på soffan eftersom det regnar",
}
TEXTS = [*LINES.values(), "", "  ", "__label__de Hund", "__label__xx Hund", "a b\tc\0d", "𝔘😀"]
BUILTIN = resources.root() / "models" / "language" / "lid.176.ftz"


def expected(native: Any, labels: tuple[str, ...], texts: list[str]) -> np.ndarray[Any, Any]:
    """Probabilities by the library; what it leaves out is 0."""
    out = np.zeros((len(texts), len(labels)))
    found = native.multilinePredict([t + "\n" for t in texts], len(labels), 0.0, "strict")
    for row, (names, values) in enumerate(zip(*found, strict=True)):
        out[row, [labels.index(n.removeprefix("__label__")) for n in names]] = values
    return out


@pytest.fixture(scope="module")
def corpus(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("fasttext") / "lines.txt"
    random = np.random.default_rng(0)
    with path.open("w", encoding="utf-8") as file:
        for i in range(300):
            label = list(LINES)[int(random.integers(len(LINES)) * random.random())]
            words = random.permutation(LINES[label].split())[: 2 + i % 7]
            file.write(f"__label__{label} {' '.join(words)}\n")
    return path


@pytest.mark.parametrize(
    ("changes", "quantise", "tolerance"),
    [
        ({"loss": "hs"}, False, 3e-5),
        ({"loss": "softmax", "wordNgrams": 3}, False, 3e-5),
        ({"loss": "softmax", "maxn": 0, "minn": 0}, False, 3e-5),
        ({"loss": "ova", "minn": 1, "maxn": 5}, False, 2e-2),  # its sigmoid is a table
        ({"loss": "hs", "dim": 7}, True, 3e-5),
    ],
)
def test_probabilities_are_those_of_the_library(
    corpus: Path, tmp_path: Path, changes: dict[str, Any], quantise: bool, tolerance: float
) -> None:
    settings = {"dim": 6, "epoch": 5, "lr": 0.3, "minn": 2, "maxn": 4, "bucket": 500, "minCount": 3}
    model = fasttext.train_supervised(
        str(corpus), **(settings | changes), seed=1, thread=1, verbose=0
    )
    path = tmp_path / "model.bin"
    if quantise:
        model.quantize(str(corpus), cutoff=300, qnorm=True, retrain=False)
    model.save_model(str(path))
    ours = load_fasttext(path, "model")
    assert ours.probabilities(TEXTS) == pytest.approx(
        expected(model.f, ours.labels, TEXTS), abs=tolerance
    )


@pytest.fixture(scope="module")
def builtin() -> tuple[FastText, Any]:
    return load_fasttext(BUILTIN, "lid"), fasttext.load_model(str(BUILTIN)).f


@given(texts=st.lists(st.text(alphabet="abzßéж中😀 <>_'\0\t", max_size=40), max_size=4))
@hypothesis_settings(max_examples=50)
def test_any_text(builtin: tuple[FastText, Any], texts: list[str]) -> None:
    ours, native = builtin
    found = ours.probabilities(texts)
    assert found.shape == (len(texts), 176)
    if texts:
        assert found == pytest.approx(expected(native, ours.labels, texts), abs=3e-5)


@pytest.mark.parametrize("size", [0, 3, 60, 5_000])
def test_a_broken_file_is_one_clear_line(tmp_path: Path, size: int) -> None:
    path = tmp_path / "cut.ftz"
    path.write_bytes(BUILTIN.read_bytes()[:size])
    with pytest.raises(ConfigError, match=r"cut\.ftz: not a fastText model: ") as caught:
        load_fasttext(path, "cut.ftz")
    assert "\n" not in str(caught.value)


def test_rows_that_a_file_lacks_are_told(corpus: Path, tmp_path: Path) -> None:
    """A kernel would read the memory behind the others."""
    path = tmp_path / "few.bin"
    model = fasttext.train_supervised(str(corpus), dim=2, epoch=1, maxn=3, bucket=50, verbose=0)
    model.save_model(str(path))
    sound = path.read_bytes()
    assert load_fasttext(path, "few.bin")
    path.write_bytes(sound[:40] + (1 << 20).to_bytes(4, "little") + sound[44:])
    with pytest.raises(ConfigError, match="not a fastText model: its matrices do not fit"):
        load_fasttext(path, "few.bin")


def test_word_vectors_are_no_classifier(corpus: Path, tmp_path: Path) -> None:
    path = tmp_path / "vectors.bin"
    fasttext.train_unsupervised(
        str(corpus), dim=4, epoch=1, minCount=1, bucket=50, thread=1, verbose=0
    ).save_model(str(path))
    with pytest.raises(ConfigError, match=r"vectors\.bin: not a supervised fastText model"):
        load_fasttext(path, "vectors.bin")
