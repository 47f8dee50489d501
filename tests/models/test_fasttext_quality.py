"""The fastText judge of quality."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from curation.classify.classifier import Classifier
from curation.classify.classify_settings import ClassifySettings, default_settings
from curation.errors import ConfigError
from curation.stages import find
from models.training.language import train_language
from models.training.report import About
from models.training.settings import LanguageTraining
from models.training.settings import default_settings as training_settings
from pipelines.cli import main

ABOUT = About("1", "CC0-1.0", "", "")
GOOD = "the treaty of 1848 ended the war and moved the border according to the archive"
BAD = "buy cheap shoes now click here for the best price and free shipping today"


def small() -> LanguageTraining:
    base = training_settings("language", LanguageTraining)
    return base.model_copy(
        update={"folds": 2, "bootstrap": 100, "dim": 4, "buckets": 500, "min_count": 1}
        | {"min_n": 0, "max_n": 0, "word_ngrams": 2, "epochs": 25}
    )


def test_a_label_of_any_fasttext_model_gives_quality(tmp_path: Path) -> None:
    labelled = [
        {"text": f"{line} {i}", "lang": label} for label, line in (("1", GOOD), ("0", BAD))
        for i in range(12)
    ]  # fmt: skip
    (tmp_path / "a.jsonl").write_text("".join(json.dumps(row) + "\n" for row in labelled))
    report = train_language([tmp_path / "a.jsonl"], tmp_path, ABOUT, small())
    model = {"path": str(report.model), "sha256": None}
    base = default_settings().model_dump()
    chosen = base | {"fasttext": {"model": model, "label": "1", "characters": 500}}
    settings = ClassifySettings.model_validate(chosen)
    assert "fasttext.model" in find("classify").models(settings, {})
    quality = Classifier(settings).apply([GOOD, BAD, "", "12"]).quality.to_pylist()
    assert quality[0] > 0.5 > quality[1] and quality[2:] == [0.0, 0.0]
    chosen["fasttext"]["label"] = "hq"
    with pytest.raises(ConfigError, match=r"language\.bin: no label 'hq'; it has"):
        Classifier(ClassifySettings.model_validate(chosen)).apply([GOOD])


def test_command_line_needs_examples(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["train", "quality", "--output", str(tmp_path / "x")]) == 2
    assert "no examples" in capsys.readouterr().err
