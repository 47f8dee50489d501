"""How much two language models count: weights by the amount of text, and sources held out."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from curation.language.evidence import KNOTS, REFUSAL, WEIGHED, Evidence, hats
from models.corrector import make_corpus
from models.training.evidence import fit_refusal, fit_weights
from models.training.inputs import Examples
from models.training.settings import CorrectorTraining, default_settings
from models.training.slices import balanced, family, pieces, splits

SETTINGS = default_settings("corrector", CorrectorTraining)


@given(st.lists(st.integers(0, 10_000), max_size=9))
def test_weights_are_linear_between_knots(sizes: list[int]) -> None:
    found = hats(np.array(sizes, np.int64))
    assert found.sum(1) == pytest.approx(np.ones(len(sizes)))
    assert found @ KNOTS == pytest.approx(np.log2(np.maximum(sizes, 1)).clip(KNOTS[0], KNOTS[-1]))


def test_the_model_that_is_right_counts_more() -> None:
    random = np.random.default_rng(0)
    truth = random.integers(0, 3, 600)
    sizes = np.where(np.arange(600) < 300, 16, 512)
    right = np.log(np.where(np.arange(3) == truth[:, None], 0.8, 0.1))
    noise = np.log(random.dirichlet(np.ones(3), 600))
    short = (sizes == 16)[:, None]
    first, second = np.where(short, right, noise), np.where(short, noise, right)
    none = np.zeros(3, bool)
    found = fit_weights(first, second, sizes, truth, np.ones(600), none, none)
    assert found.shape == (len(WEIGHED), len(KNOTS))
    assert found[0, 1] > 3 * abs(found[1, 1]) and found[1, -1] > 3 * abs(found[0, -1])
    assert not found[2:].any()  # no label is of a large or a foreign language


def test_texts_count_as_often_as_said() -> None:
    truth = np.array([0, 1] * 50)
    nothing, sizes = np.zeros((100, 2)), np.full(100, 64)
    large = np.array([True, False])
    counts = np.where(truth == 0, 9.0, 1.0)
    weights = fit_weights(nothing, nothing, sizes, truth, counts, large, ~large)
    scores = Evidence(weights, weights[0], 0.0).scores(nothing, nothing, sizes, large, ~large)
    assert np.exp(scores[0, 0] - scores[0, 1]) == pytest.approx(9, rel=0.1)


def test_refusal_follows_what_separates() -> None:
    random = np.random.default_rng(1)
    unknown = random.random(500) < 0.5
    seen = np.zeros((500, len(REFUSAL)))
    seen[:, 0], seen[:, 2] = 1, unknown * 2.0 + random.random(500)
    weights = np.zeros((len(WEIGHED), len(KNOTS)))
    evidence = Evidence(weights, fit_refusal(seen, unknown, 0.5), 0.0)
    found = evidence.refused(seen)
    assert found[unknown].min() > found[~unknown].max()
    rare = fit_refusal(seen, unknown, 0.01)
    assert (1 / (1 + np.exp(-seen @ rare))).mean() < found.mean()


def examples(rows: list[tuple[str, str, str]]) -> Examples:
    texts, labels, groups = (list(column) for column in zip(*rows, strict=True))
    return Examples(texts, labels, groups, [0] * len(rows), ())


def test_whole_sources_and_languages_are_held_out() -> None:
    sources = ("udhr:deu", "mozilla/common-voice:x", "mediawiki-i18n")
    rows = [(f"{s} {i} {n}", str(n), s) for n in range(8) for s in sources for i in range(5)]
    rows += [(f"only {i}", "8", "mediawiki-i18n") for i in range(40)]
    data = examples(rows)
    truth = np.array([int(label) for label in data.labels])
    found = splits(data, truth, 4, SETTINGS)
    assert len(found) == 2
    for number, split in enumerate(found):
        assert not set(split.train) & set(split.test)
        trained = {(truth[i], family(data.groups[i])) for i in split.train}
        for row, source, unseen in zip(split.test, split.by_source, split.unseen, strict=True):
            assert unseen == (truth[row] >= 4 and (truth[row] - 4) % 4 == number)
            if source:
                assert (truth[row], family(data.groups[row])) not in trained
            if unseen:
                assert truth[row] not in truth[split.train]
    alone = [i for i in np.flatnonzero(truth == 8) if i in found[1].test]
    assert 0 < len(alone) < 40  # of one source: by text


def test_sources_share_a_language_equally() -> None:
    rows = [(f"a{i}", "0", "large:1") for i in range(900)] + [("b", "0", "small")]
    data = examples(rows)
    taken = dict(balanced(data, np.zeros(901, np.int64), np.arange(901), 200, 10, 0))
    assert sum(taken[i] for i in range(900) if i in taken) == 100
    assert 1 < taken[900] < 100


def test_slices_are_of_their_lines() -> None:
    line = "ein satz mit vielen wörtern " * 12
    parts, rows = pieces([line, "kurz"], [(0, 6), (1, 3)], SETTINGS)
    assert rows.count(1) == 1 and "kurz" in parts
    assert all(part in line for part, row in zip(parts, rows, strict=True) if row == 0)
    assert min(map(len, parts[: rows.count(0)])) >= SETTINGS.slice_min - 1
    assert pieces([line], [(0, 6)], SETTINGS)[0] == parts[: rows.count(0)]


@pytest.mark.parametrize(
    "source, name",
    [("udhr:deu", "udhr"), ("mozilla/common-voice:a/b", "mozilla"), ("flores", "flores")],
)
def test_a_source_without_its_parts(source: str, name: str) -> None:
    assert family(source) == name


def test_scripts_of_names() -> None:
    script = make_corpus.script
    assert [script(t) for t in ("Zonke abantu", "ᱥᱟᱱᱛᱟᱲᱤ a", "123")] == ["Latn", "Olck", "Zyyy"]


@pytest.mark.parametrize(
    ("language", "text", "other"),
    [
        ("sr", "Љубав и џеп, Његош", "ljubav i džep, njegoš"),
        ("sr", "Ljubav", None),
        ("uz", "O‘zbekiston eski shahar, g‘oya", "ўзбекистон эски шаҳар, ғоя"),
        ("az", "Işıq İçərişəhər", "ышыг ичәришәһәр"),
    ],
)
def test_a_text_in_the_other_script(language: str, text: str, other: str | None) -> None:
    assert make_corpus.other_script.converted(language, text) == other
