"""Training: the same examples give the same bytes, and what the reports and errors say."""

from __future__ import annotations

import gzip
import json
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import yaml

from curation.classify.classifier import Classifier
from curation.classify.classify_settings import ClassifySettings
from curation.classify.classify_settings import default_settings as classify_defaults
from curation.classify.features import measure
from curation.classify.linear import load
from curation.errors import ConfigError, InputError
from curation.language import identify
from curation.language.language_settings import LanguageSettings
from curation.language.language_settings import default_settings as language_defaults
from curation.models import ModelFile, read_card
from models.training import metrics
from models.training.classes import train_classes
from models.training.heldout import folds_of
from models.training.inputs import read_examples
from models.training.language import train_language
from models.training.quality import train_quality
from models.training.report import About
from models.training.settings import LanguageTraining, LinearTraining, default_settings
from pipelines.classify import ClassifyDocuments
from pipelines.cli import main

ABOUT = About("7", "CC0-1.0", "written for this test", "curate train ...")
GOOD = "the author explains how the method works and why measurements of it may differ"
BAD = "buy cheap now click here best price sale $$$ !!! login cart"
WORDS = {
    "de": "der Hund und die Katze schlafen nicht auf dem Sofa weil es regnet",
    "en": "the dog and the cat do not sleep on the sofa because it rains",
    "ru": "собака и кошка не спят на диване потому что идёт дождь",
}


def linear(task: Any, **changes: Any) -> LinearTraining:
    small = {"min_documents": 1, "bootstrap": 100, "folds": 3}
    base = default_settings(task, LinearTraining).model_dump()
    return LinearTraining.model_validate(base | small | changes)


def lid(**changes: Any) -> LanguageTraining:
    small = {"bootstrap": 100, "folds": 2, "dim": 4, "epochs": 15, "buckets": 2000, "min_count": 1}
    base = default_settings("language", LanguageTraining).model_dump()
    return LanguageTraining.model_validate(base | small | changes)


def shuffled(words: str, seed: int) -> str:
    return " ".join(np.random.default_rng(seed).permutation(words.split()))


def write(path: Path, rows: list[dict[str, Any]]) -> Path:
    lines = "".join(json.dumps(r, ensure_ascii=False) + "\n" for r in rows)
    if path.suffix == ".gz":
        path.write_bytes(gzip.compress(lines.encode()))
    else:
        path.write_text(lines, encoding="utf-8")
    return path


@pytest.fixture
def graded(tmp_path: Path) -> Path:
    rows = [
        {
            "text": shuffled(GOOD if i % 2 else BAD, i),
            "quality": 4 if i % 2 else 1,
            "topic": "science" if i % 2 else "shopping",
            "format": "academic" if i % 2 else "product",
            "label": "code" if i % 2 else "general",
            "url": f"http://site{i // 2}.example/{i}",
        }
        for i in range(24)
    ]
    return write(tmp_path / "graded.jsonl.gz", rows)


@pytest.fixture
def spoken(tmp_path: Path) -> Path:
    rows = [{"text": shuffled(w, i), "lang": n} for i in range(8) for n, w in WORDS.items()]
    return write(tmp_path / "spoken.jsonl", [*rows, {"text": "12 + 34", "lang": "en"}])


TRAIN: dict[str, Any] = {
    "quality": train_quality,
    **{task: partial(train_classes, task) for task in ("domain", "topic", "format")},
}


@pytest.mark.parametrize("task", TRAIN)
def test_linear_training_is_reproducible(task: str, graded: Path, tmp_path: Path) -> None:
    reports = [TRAIN[task]([graded], tmp_path / str(i), ABOUT, linear(task)) for i in range(2)]
    one, two = (r.model.read_bytes() for r in reports)
    assert one == two and reports[0].sha256 == reports[1].sha256
    cards = [(r.model.parent / "card.yaml").read_bytes() for r in reports]
    assert cards[0] == cards[1]
    card = read_card(reports[0].model.parent)
    assert (card.name, card.file, card.sha256) == (task, f"{task}.npz", reports[0].sha256)
    assert (card.version, card.licence, card.source) == ("7", "CC0-1.0", "written for this test")
    assert card.data[0]["examples"] == 24
    assert yaml.safe_load(str(reports[0]))["metrics"] == card.metrics


def test_trained_models_are_used(graded: Path, tmp_path: Path) -> None:
    made = {
        "quality": train_quality([graded], tmp_path / "q", ABOUT, linear("quality")),
        "domain": train_classes("domain", [graded], tmp_path / "d", ABOUT, linear("domain")),
        "topic": train_classes("topic", [graded], tmp_path / "t", ABOUT, linear("topic")),
        "format": train_classes("format", [graded], tmp_path / "f", ABOUT, linear("format")),
    }
    assert made["quality"].metrics["spearman"]["value"] > 0.8
    assert made["topic"].metrics["accuracy"]["value"] > 0.9
    files = {n: ModelFile(path=str(r.model), sha256=r.sha256).model_dump() for n, r in made.items()}
    chosen = ClassifySettings.model_validate(classify_defaults().model_dump() | files)
    found = Classifier(chosen).apply([shuffled(GOOD, 99), shuffled(BAD, 99)])
    assert found.topic.to_pylist() == ["science", "shopping"]
    assert found.format.to_pylist() == ["academic", "product"]
    assert found.domain.to_pylist() == ["code", "general"]
    assert found.quality[0].as_py() > 0.5 > found.quality[1].as_py()


def test_words_count_at_unit_length_without_the_rest(graded: Path, tmp_path: Path) -> None:
    """Text in which the model has no word changes no score of a model of words alone."""
    settings = linear("topic", words_only=True, shape_share=0.0)
    model = load(train_classes("topic", [graded], tmp_path / "t", ABOUT, settings).model, "t")
    assert len(model.scales) == len(model.buckets)
    texts = [GOOD, GOOD + " qwxz " * 30, "method measurements", "method " * 9 + "measurements " * 9]
    outputs = model.outputs(measure(texts, model.max_bytes))
    assert np.allclose(outputs[0], outputs[1], atol=0.05)
    assert np.allclose(outputs[2], outputs[3], atol=1e-6)


def test_features_that_weights_vary_with_are_named(graded: Path, tmp_path: Path) -> None:
    settings = linear("quality", vary_with=("log_line",))
    with pytest.raises(ConfigError, match=r"vary_with: no feature 'log_line'.*log_lines"):
        train_quality([graded], tmp_path / "m", ABOUT, settings)


def test_quality_from_positive_and_negative_files(tmp_path: Path) -> None:
    good = write(tmp_path / "good.jsonl", [{"text": shuffled(GOOD, i)} for i in range(9)])
    bad = write(tmp_path / "bad.jsonl", [{"text": shuffled(BAD, i)} for i in range(9)])
    report = train_quality([], tmp_path / "m", ABOUT, linear("quality"), [good], [bad])
    assert report.metrics["auc_good"]["value"] > 0.9
    assert report.metrics["confusion_at_half"]["good"]["good"] >= 8


def test_a_target_is_a_view_that_adds_a_column(tmp_path: Path) -> None:
    like = write(tmp_path / "like.jsonl", [{"text": shuffled(GOOD, i)} for i in range(9)])
    crawl = write(tmp_path / "crawl.jsonl", [{"text": shuffled(BAD, i)} for i in range(9)])
    files = ["--towards", str(like), "--against", str(crawl), "--output", str(tmp_path / "m")]
    small = ["--set", "min_documents=1", "--set", "bootstrap=100", "--set", "folds=3"]
    assert main(["train", "target", *files, *small]) == 0
    further = {
        "target": {"model": {"path": str(tmp_path / "m" / "target.npz")}, "min": 0.5},
        "educational": {"model": {"path": "builtin:models/educational/educational.npz"}},
    }
    settings = classify_defaults().model_dump() | {"classifiers": further, "min_quality": {}}
    batch = pa.RecordBatch.from_pydict({"text": pa.array([GOOD, BAD], pa.large_string())})
    outcome = ClassifyDocuments(ClassifySettings.model_validate(settings)).apply(batch, 0)
    good, bad = outcome.batch.column("target").to_pylist()
    assert good > 0.5 > bad
    assert outcome.verdicts.reason.to_pylist() == [None, "classify.target"]
    assert all(0 <= score <= 1 for score in outcome.batch.column("educational").to_pylist())


def test_parquet_gives_the_same_model(graded: Path, tmp_path: Path) -> None:
    rows = [json.loads(line) for line in gzip.decompress(graded.read_bytes()).splitlines()]
    parquet = tmp_path / "graded.parquet"
    pq.write_table(pa.Table.from_pylist(rows), parquet)
    one = train_classes("topic", [graded], tmp_path / "a", ABOUT, linear("topic"))
    two = train_classes("topic", [parquet], tmp_path / "b", ABOUT, linear("topic"))
    assert one.sha256 == two.sha256


def test_languages_may_stand_in_the_column_that_the_stage_writes(spoken: Path) -> None:
    column = default_settings("language", LanguageTraining).label_column
    rows = [json.loads(line) for line in spoken.read_text().splitlines()]
    renamed = [{"text": row["text"], "language": row["lang"]} for row in rows]
    other = write(spoken.with_name("renamed.jsonl"), renamed)
    found, wanted = (read_examples([path], "text", column, []) for path in (other, spoken))
    assert found.labels == wanted.labels


def test_language_training_is_reproducible_and_used(spoken: Path, tmp_path: Path) -> None:
    reports = [train_language([spoken], tmp_path / str(i), ABOUT, lid()) for i in range(2)]
    assert reports[0].model.read_bytes() == reports[1].model.read_bytes()
    found = reports[0].metrics
    assert found["documents"] == 24 and found["without_letters"] == 1
    assert found["accuracy"]["value"] > 0.8
    assert set(found["by_file"]["spoken.jsonl (0)"]["by_class"]) == {"de", "en", "ru"}
    model = ModelFile(path=str(reports[0].model), sha256=reports[0].sha256)
    chosen = LanguageSettings.model_validate(
        language_defaults().model_dump() | {"model": model.model_dump(), "corrector": None}
    )
    assert identify([shuffled(w, 50) for w in WORDS.values()], chosen)[0] == list(WORDS)


def test_training_that_diverges_is_an_error(spoken: Path, tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="learning_rate"):
        train_language([spoken], tmp_path / "m", ABOUT, lid(learning_rate=1e30))
    assert not (tmp_path / "m" / "card.yaml").exists()


@pytest.mark.parametrize(
    ("row", "message"),
    [
        ({"text": "a b", "lang": "x y"}, "label 'x y'"),
        ({"lang": "en"}, r"broken\.jsonl:2: no string 'text'"),
        ({"text": "a"}, r"broken\.jsonl:2: no label 'lang'"),
    ],
)
def test_broken_examples(row: dict[str, str], message: str, tmp_path: Path) -> None:
    path = write(tmp_path / "broken.jsonl", [{"text": "guten Tag", "lang": "de"}, row])
    with pytest.raises(InputError, match=message):
        train_language([path], tmp_path / "m", ABOUT, lid())


def test_lines_that_are_no_json(tmp_path: Path) -> None:
    path = tmp_path / "broken.jsonl"
    path.write_text('{"text": "a", "lang": "de"}\n{"text"\n')
    with pytest.raises(InputError, match=r"broken\.jsonl:2: not JSON"):
        read_examples([path], "text", "lang", [])


def test_labels_that_do_not_fit(graded: Path, tmp_path: Path) -> None:
    with pytest.raises(InputError, match="unknown domain '1'"):
        train_classes(
            "domain", [graded], tmp_path / "m", ABOUT, linear("domain", label_column="quality")
        )
    with pytest.raises(InputError, match="must be numbers"):
        train_quality([graded], tmp_path / "m", ABOUT, linear("quality", label_column="topic"))
    with pytest.raises(InputError, match="graded below 5"):
        train_quality([graded], tmp_path / "m", ABOUT, linear("quality", positive_grade=5.0))
    with pytest.raises(InputError, match="12 groups, too few for 13 folds"):
        train_classes("topic", [graded], tmp_path / "m", ABOUT, linear("topic", folds=13))


def test_no_group_on_both_sides() -> None:
    groups = [f"g{i % 7}" for i in range(40)]
    truth = np.arange(40) % 2
    for found in (folds_of(groups, lid(folds=4)), folds_of(groups, lid(folds=4), truth)):
        assert sorted(np.concatenate([test for _, test in found])) == list(range(40))
        for train, test in found:
            assert not {groups[i] for i in train} & {groups[i] for i in test}


def test_metrics_of_classes_that_are_missing() -> None:
    """By hand: class 2 is found but never true, so it has no part in the mean."""
    truth, found = np.array([0, 0, 1, 1]), np.array([0, 0, 1, 2])
    assert metrics.macro_f1(truth, found) == pytest.approx((1 + 2 / 3) / 2)
    table = metrics.by_class(truth, found, ["a", "b", "c", "d"])
    assert table["b"] == {"precision": 1.0, "recall": 0.5, "documents": 2}
    assert table["c"] == {"precision": 0.0, "recall": 0.0, "documents": 0} and "d" not in table
    assert np.isnan(metrics.auc(np.ones(3, bool), np.arange(3.0)))
    assert np.isnan(metrics.spearman(np.ones(3), np.arange(3.0)))


def test_intervals_hold_the_value_and_widen_with_groups() -> None:
    random = np.random.default_rng(1)
    truth = random.integers(0, 2, 300)
    found = np.where(random.random(300) < 0.8, truth, 1 - truth)
    truth, found = np.repeat(truth, 4), np.repeat(found, 4)

    def interval(groups: list[str]) -> dict[str, float]:
        return metrics.with_interval(metrics.accuracy, [truth, found], groups, 200, 0.95, 0)

    alone = interval([str(i) for i in range(1200)])
    together = interval([str(i // 4) for i in range(1200)])
    for found_interval in (alone, together):
        assert found_interval["low"] < found_interval["value"] < found_interval["high"]
    assert together["high"] - together["low"] > 1.5 * (alone["high"] - alone["low"])


@pytest.mark.parametrize("task", ["quality", "domain", "topic", "format", "language"])
def test_command_line(
    task: str, graded: Path, spoken: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    changes = ["bootstrap=100", "folds=2"]
    if task == "language":
        changes += ["dim=4", "buckets=2000", "epochs=5", "min_count=1"]
    else:
        changes += ["min_documents=1"]
    arguments = ["train", task, "--output", str(tmp_path / "out"), "--licence", "CC0-1.0"]
    arguments += ["--input", str(spoken if task == "language" else graded)]
    for change in changes:
        arguments += ["--set", change]
    assert main(arguments) == 0
    printed = yaml.safe_load(capsys.readouterr().out)
    card = read_card(tmp_path / "out")
    assert printed["sha256"] == card.sha256 and printed["metrics"] == card.metrics
    assert card.licence == "CC0-1.0" and card.name == task


def test_command_line_errors(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    output = ["--output", str(tmp_path / "out")]
    assert main(["train", "domain", *output]) == 2
    assert main(["train", "domain", "--input", str(tmp_path / "none*.jsonl"), *output]) == 2
    errors = capsys.readouterr().err.splitlines()
    assert len(errors) == 2 and "--input" in errors[0] and "no such file" in errors[1]


def test_help_has_an_example(capsys: pytest.CaptureFixture[str]) -> None:
    for task in ("quality", "domain", "topic", "format", "language"):
        with pytest.raises(SystemExit) as left:
            main(["train", task, "--help"])
        assert left.value.code == 0
        assert f"example: curate train {task}" in capsys.readouterr().out


def test_weights_of_files(graded: Path, tmp_path: Path) -> None:
    copies = [graded, graded]
    heavy = train_classes(
        "domain", copies, tmp_path / "a", ABOUT, linear("domain", file_weights=(1.0, 3.0))
    )
    alike = train_classes(
        "domain", copies, tmp_path / "b", ABOUT, linear("domain", file_weights=(2.0, 2.0))
    )
    plain = train_classes("domain", copies, tmp_path / "c", ABOUT, linear("domain"))
    assert alike.metrics == plain.metrics and heavy.sha256 == plain.sha256  # copies weigh the same
    with pytest.raises(InputError, match="file_weights: 1 weights for 2 files"):
        train_classes(
            "domain", copies, tmp_path / "d", ABOUT, linear("domain", file_weights=(1.0,))
        )


def test_files_of_good_examples_are_not_taken_for_bad_ones(graded: Path, tmp_path: Path) -> None:
    good = write(tmp_path / "good.jsonl", [{"text": shuffled(GOOD, i)} for i in range(9)])
    with pytest.raises(InputError, match=r"positive_grade 3\.0"):
        train_quality([graded], tmp_path / "m", ABOUT, linear("quality"), [good])
    bad = write(tmp_path / "bad.jsonl", [{"text": shuffled(BAD, i)} for i in range(9)])
    report = train_quality([graded], tmp_path / "m", ABOUT, linear("quality"), [], [bad])
    assert report.metrics["good_from"] == 3.0
