"""Quality, domain, topic and format: features, models, decisions."""

from __future__ import annotations

import itertools
import math
import pickle
import re
from collections import Counter
from dataclasses import replace
from pathlib import Path

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from curation import resources
from curation.classify.classifier import Classifier, ClassifyResult, check_labels
from curation.classify.classify_settings import ClassifySettings
from curation.classify.classify_settings import default_settings as defaults
from curation.classify.decide import LEAST_OF_PATHS, decide
from curation.classify.features import BITS, SHAPE, measure
from curation.classify.linear import LinearModel, Varying, load, standardise
from curation.errors import ConfigError
from curation.schema import DOCUMENTS
from models.training.linear import calibrated
from models.training.saving import save_linear
from pipelines.classify import ClassifyDocuments

PROSE = (
    "The bridge was built in 1894 after a flood had carried away the wooden one. Its architect, "
    "who had studied in Vienna, chose iron because stone was dear and the river was wide. For "
    "forty years it carried the only road between the two halves of the town, and when the "
    "railway came in 1903 the deck was strengthened so that wagons could pass.\n"
    "Historians still argue about why the western pier was moved. The town's records show that "
    "the ground on that side was softer than the engineers had expected; letters in the archive "
    "suggest instead that a landowner refused to sell. Both explanations may be true.\n"
)
JUNK = "\n".join(["BUY NOW!!! $$$ cheap | login | cart (0)", "Home > Shop > Sale > %%%"] * 20)
CODE = "\n".join(
    ["import os", "def main(argv):", "    for name in argv[1:]:", "        print(name)"] * 15 * 15
)
TEXTS = [PROSE, JUNK, CODE, "", "\n", "短い文。" * 40, "Привет, мир. " * 30, "\0\0", "a"]


def result(**columns: list[object]) -> ClassifyResult:
    n = len(next(iter(columns.values())))
    floats = pa.array(np.zeros(n), pa.float32())
    return ClassifyResult(
        quality=pa.array(columns.get("quality", [1.0] * n), pa.float32()),
        domain=pa.array(columns.get("domain", ["general"] * n)),
        topic=pa.array(columns.get("topic", ["other"] * n)),
        topic_score=floats,
        format=pa.array(columns.get("format", ["news"] * n)),
        format_score=floats,
        prose=np.array(columns.get("prose", [True] * n)),
        views={},
    )


def changed(**changes: object) -> ClassifySettings:
    return ClassifySettings.model_validate(defaults().model_dump() | changes)


def test_scores_of_typical_pages() -> None:
    found = Classifier(defaults()).apply(TEXTS[:3], pa.array(["en", "en", "en"]))
    quality = found.quality.to_pylist()
    assert quality[0] > 5 * quality[1]
    assert found.domain.to_pylist()[::2] == ["general", "code"]
    reasons = decide(found, defaults()).reason.to_pylist()
    assert reasons == [None, "quality.low_score", None]


def test_what_looks_like_code_and_is_of_no_worth_goes() -> None:
    least = LEAST_OF_PATHS
    found = result(
        quality=[0, least, 0.1, 0, 0, 0.1],
        domain=["general", "multilingual", "general", "code", "math_reasoning", "general"],
        prose=[False, False, False, False, False, True],
    )
    verdicts = decide(found, defaults())
    assert verdicts.reason.is_null().to_pylist() == [False, True, True, True, True, False]
    assert verdicts.threshold.to_pylist()[0] == least
    nothing_by_quality = changed(min_quality={"multilingual": 0.15})
    assert decide(found, nothing_by_quality).reason.null_count == 6


def test_paths_are_found_where_quality_removes() -> None:
    for least, expected in ((0.0, [True, True]), (1.0, [True, False])):
        classifier = Classifier(changed(min_quality={"general": least}))
        assert classifier.apply([PROSE, CODE]).prose.tolist() == expected
    assert Classifier(changed(min_quality={"code": 1.0}, paths=False)).apply([CODE]).prose.all()


def test_addresses_are_no_code() -> None:
    texts = [
        "See https://news.example.org/aPage/some_file.html?id=3&q=getItems() for more of it.",
        "See example.org for more of it.",
        "See reader.open_file(path) for more of it.",
    ]
    tokens = measure(texts, 16000).shape[:, SHAPE.index("code_tokens")]
    assert tokens[0] == tokens[1] == 0 < tokens[2]


def test_every_score_is_a_probability() -> None:
    found = Classifier(defaults()).apply(TEXTS)
    for column in (found.quality, found.topic_score, found.format_score):
        assert column.type == pa.float32() and column.null_count == 0
        values = column.to_numpy()
        assert ((values >= 0) & (values <= 1)).all()


@given(st.lists(st.integers(0, len(TEXTS)), min_size=0, max_size=4))
@settings(max_examples=20)
def test_results_do_not_depend_on_the_batch(cuts: list[int]) -> None:
    classifier = Classifier(defaults())
    array = pa.array(TEXTS, pa.large_string())
    whole = classifier.apply(array)
    edges = [0, *sorted(cuts), len(TEXTS)]
    parts = [classifier.apply(array.slice(a, b - a)) for a, b in itertools.pairwise(edges)]
    for name in ("quality", "domain", "topic", "topic_score", "format", "format_score"):
        assert pa.concat_arrays([getattr(p, name) for p in parts]).equals(getattr(whole, name))


def test_no_documents() -> None:
    found = Classifier(defaults()).apply([])
    assert len(found) == 0 and len(decide(found, defaults()).reason) == 0


def test_multilingual_is_what_is_not_english_and_no_code() -> None:
    languages = pa.array(["de", "en", "de", None])
    found = Classifier(defaults()).apply([PROSE, PROSE, CODE, PROSE], languages)
    assert found.domain.to_pylist() == ["multilingual", "general", "code", "general"]
    never = changed(domain_at_least={}, multilingual_excludes=("en", "de"))
    found = Classifier(never).apply([PROSE, CODE], pa.array(["de", "de"]))
    assert found.domain.to_pylist() == ["general", "general"]


def test_decide_by_domain_and_topic() -> None:
    scored = result(
        quality=[0.2, 0.2, 0.05, 0.9],
        domain=["general", "multilingual", "code", "general"],
        topic=["travel_places", "travel_places", "coding", "games"],
    )
    quality = {"general": 0.2, "multilingual": 0.25}
    verdicts = decide(scored, changed(min_quality=quality, drop_topics=("games",)))
    assert verdicts.reason.to_pylist() == [None, "quality.low_score", None, "topic.dropped"]
    assert verdicts.threshold.to_pylist()[1] == 0.25


def test_decide_by_format_after_topic() -> None:
    scored = result(topic=["games", "health", "health"], format=["spam", "spam", "news"])
    verdicts = decide(scored, changed(drop_topics=("games",), drop_formats=("spam",)))
    assert verdicts.reason.to_pylist() == ["topic.dropped", "format.dropped", None]


def test_topics_and_formats_with_no_drops_stay() -> None:
    scored = result(topic=["", "x"], format=["", "y"])
    assert decide(scored, changed(drop_topics=(), drop_formats=())).reason.null_count == 2


def test_labels_of_the_built_in_models_are_the_taxonomy() -> None:
    taxonomy = (resources.root() / "models" / "topic" / "TAXONOMY.md").read_text(encoding="utf-8")
    names = re.findall(r"^- `(\w+)`:", taxonomy, re.MULTILINE)
    classifier = Classifier(defaults())
    assert len(names) == 48
    topics, formats = classifier.labels("topic"), classifier.labels("format")
    check_labels("topic", names[:24], topics, "topics")
    check_labels("format", names[24:], formats, "formats")
    with pytest.raises(ConfigError, match=r"drop_formats: the model has no format 'blogs'.*blog"):
        check_labels("format", ["blogs"], formats, "classify.drop_formats")


def test_settings_cross_processes() -> None:
    copy = pickle.loads(pickle.dumps(defaults()))
    assert copy == defaults() and hash(copy) == hash(defaults())


def test_a_model_of_another_kind() -> None:
    swapped = changed(quality=defaults().topic.model_dump())
    with pytest.raises(ConfigError, match="kind 'classes' where 'quality' is needed"):
        Classifier(swapped).apply(["a"])


def test_a_file_that_is_no_model(tmp_path: Path) -> None:
    path = tmp_path / "noise.npz"
    path.write_bytes(b"PK nothing")
    with pytest.raises(ConfigError, match=r"noise\.npz: not a classifier") as caught:
        load(path, "noise.npz")
    assert "\n" not in str(caught.value)


@given(st.lists(st.text(alphabet="aAbZ09 .\n!中é\0", max_size=80), max_size=5), st.integers(1, 60))
def test_words_against_a_plain_count(texts: list[str], max_bytes: int) -> None:
    """Values are 1 + ln(count) in unit length, of as many buckets as tokens and pairs differ."""
    features = measure(texts, max_bytes)
    assert features.shape.shape == (len(texts), len(SHAPE)) and np.isfinite(features.shape).all()
    for i, text in enumerate(texts):
        tokens = _tokens(text.encode()[:max_bytes].decode(errors="ignore"))
        counts = [
            *Counter(tokens).values(),
            *Counter(itertools.pairwise(tokens)).values(),
        ]
        values = np.array([1 + math.log(c) for c in counts])
        values /= np.sqrt((values**2).sum()) if len(values) else 1
        begin, end = features.starts[i : i + 2]
        ids = features.ids[begin:end]
        assert (np.diff(ids) > 0).all() and ((ids >= 0) & (ids < 1 << BITS)).all()
        assert np.allclose(np.sort(features.values[begin:end]), np.sort(values), atol=1e-5)


def _tokens(text: str) -> list[str]:

    text = re.sub("[0-9]", "0", text).lower()
    return re.findall(r"\n+|中|[a-z0é]+|[^\s\0]", re.sub(r"\n+", "\n", text))


def test_only_the_beginning_is_read() -> None:
    a, b = measure([PROSE], 200), measure([PROSE[:200]], 200)
    assert (a.ids == b.ids).all() and (a.values == b.values).all()
    assert a.shape[0, 0] > b.shape[0, 0]  # but how long a text is counts


def test_saving_and_loading(tmp_path: Path) -> None:
    random = np.random.default_rng(0)
    k, rows = 3, 50
    model = LinearModel(
        kind="classes",
        labels=("a", "b", "c"),
        max_bytes=500,
        buckets=np.sort(random.choice(1 << BITS, rows, replace=False)).astype(np.int32),
        weights=random.normal(size=(rows, k)).astype(np.float16).astype(np.float32),
        mean=np.zeros(len(SHAPE), np.float32),
        deviation=np.ones(len(SHAPE), np.float32),
        shape_weights=random.normal(size=(len(SHAPE), k)).astype(np.float32),
        intercept=np.zeros(k, np.float32),
    )
    paths = [tmp_path / "a.npz", tmp_path / "b.npz"]
    for path in paths:
        save_linear(model, path)
    assert paths[0].read_bytes() == paths[1].read_bytes()
    features = measure(TEXTS, model.max_bytes)
    assert (load(paths[0], "a").outputs(features) == model.outputs(features)).all()


def test_weights_vary_with_features(tmp_path: Path) -> None:
    """The outputs are those of a model of its own for every text, whose weights are the sums."""
    random = np.random.default_rng(0)
    k, rows, columns = 2, 2000, (SHAPE.index("lines_ended"), SHAPE.index("log_lines"))

    def weights(length: int, wide: int) -> npt.NDArray[np.float32]:
        return random.normal(size=(length, wide * k)).astype(np.float16).astype(np.float32)

    plain = LinearModel(
        kind="classes",
        labels=("a", "b"),
        max_bytes=500,
        buckets=np.sort(random.choice(1 << BITS, rows, replace=False)).astype(np.int32),
        weights=weights(rows, 1),
        mean=np.full(len(SHAPE), 0.5, np.float32),
        deviation=np.full(len(SHAPE), 2.0, np.float32),
        shape_weights=weights(len(SHAPE), 1),
        intercept=np.ones(k, np.float32),
    )
    varying = Varying(np.array(columns, np.int32), weights(rows, 2), weights(len(SHAPE), 2))
    model = replace(plain, varying=varying)
    save_linear(model, tmp_path / "m.npz")
    features = measure(TEXTS, model.max_bytes)
    outputs = load(tmp_path / "m.npz", "m").outputs(features)
    shape = standardise(features.shape, model.mean, model.deviation)
    for i in range(len(TEXTS)):
        a, b = shape[i, columns[0]], shape[i, columns[1]]
        own = replace(
            plain,
            weights=(plain.weights + varying.weights @ _blend(a, b)).astype(np.float32),
            shape_weights=(plain.shape_weights + varying.shape_weights @ _blend(a, b)).astype(
                np.float32
            ),
        )
        assert np.allclose(own.outputs(features)[i], outputs[i], atol=1e-4)
    slopes, offsets = np.array([[2.0, 0.5], [0.0, 1.0]]), np.array([1.0, -1.0])
    found = calibrated(model, "classes", ("a", "b"), slopes, offsets).outputs(features)
    assert np.allclose(found, outputs @ slopes + offsets, rtol=0.01, atol=0.05)


def _blend(a: float, b: float) -> npt.NDArray[np.float64]:
    return np.vstack([a * np.eye(2), b * np.eye(2)])


def test_documents_without_a_language() -> None:
    rows = [{"id": str(i), "text": "A page about mountains and rivers. " * 9} for i in range(2)]
    batch = pa.RecordBatch.from_pylist(
        rows, pa.schema([DOCUMENTS.field("id"), DOCUMENTS.field("text")])
    )
    outcome = ClassifyDocuments(defaults()).apply(batch, 0)
    expected = Classifier(defaults()).apply(batch.column("text"))
    assert outcome.batch.column("domain") == expected.domain
