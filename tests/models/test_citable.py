"""The fastText judge of quality, and the drawing of a calibration."""

from __future__ import annotations

import json
import xml.etree.ElementTree as ElementTree
from pathlib import Path

import pytest
from pydantic import ValidationError

from curation.classify.classifier import Classifier
from curation.classify.classify_settings import ClassifySettings, default_settings
from curation.errors import ConfigError, InputError
from curation.stages import find
from models.training.language import train_citable
from models.training.report import About
from models.training.settings import LanguageTraining
from models.training.settings import default_settings as training_settings
from pipelines.cli import main

ABOUT = About("1", "CC0-1.0", "", "")
GOOD = "the treaty of 1848 ended the war and moved the border according to the archive"
BAD = "buy cheap shoes now click here for the best price and free shipping today"


def texts(path: Path, line: str, **more: object) -> Path:
    rows = [{"text": f"{line} {i}", "url": f"http://s{i}.example/"} | more for i in range(12)]
    path.write_text("".join(json.dumps(r) + "\n" for r in rows), encoding="utf-8")
    return path


def small() -> LanguageTraining:
    base = training_settings("citable", LanguageTraining)
    return base.model_copy(
        update={"folds": 2, "bootstrap": 100, "dim": 4, "buckets": 500, "min_count": 1}
    )


def test_trained_from_two_files_and_used_for_quality(tmp_path: Path) -> None:
    good, bad = texts(tmp_path / "good.jsonl", GOOD), texts(tmp_path / "bad.jsonl", BAD)
    reports = [
        train_citable([], tmp_path / name, ABOUT, small(), [good], [bad]) for name in ("a", "b")
    ]
    assert reports[0].sha256 == reports[1].sha256
    drawing = (tmp_path / "a" / "calibration.svg").read_text()
    circles = [e for e in ElementTree.fromstring(drawing).iter() if e.tag.endswith("circle")]
    assert len(circles) == len(reports[0].metrics["calibration"])
    model = {"path": str(reports[0].model), "sha256": None}
    base = default_settings().model_dump()
    chosen = base | {"fasttext": {"model": model, "label": "1", "characters": 500}}
    settings = ClassifySettings.model_validate(chosen)
    assert "fasttext.model" in find("classify").models(settings, {})
    quality = Classifier(settings).apply([GOOD, BAD, "", "12"]).quality.to_pylist()
    assert quality[0] > 0.5 > quality[1] and quality[2:] == [0.0, 0.0]
    chosen["fasttext"]["label"] = "hq"
    with pytest.raises(ConfigError, match=r"citable\.bin: no label 'hq'; it has"):
        Classifier(ClassifySettings.model_validate(chosen)).apply([GOOD])


def test_labels_are_yes_or_no(tmp_path: Path) -> None:
    odd = texts(tmp_path / "odd.jsonl", GOOD, wiki_ref=2)
    with pytest.raises(InputError, match=r"label 2: an example is citable \(1\) or not \(0\)"):
        train_citable([odd], tmp_path / "out", ABOUT, small())


def test_one_model_gives_quality() -> None:
    named = {"path": "x", "sha256": None}
    fasttext = {"model": named, "label": "1", "characters": 500}
    onnx = {"model": named, "tokenizer": named, "max_tokens": 9, "batch_tokens": 9}
    onnx |= {"max_bytes": 9, "output": "softmax", "column": 0, "range": (0, 1)}
    with pytest.raises(ValidationError, match="quality comes from one model"):
        ClassifySettings.model_validate(
            default_settings().model_dump() | {"fasttext": fasttext, "onnx": onnx}
        )


def test_command_line_needs_examples(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["train", "citable", "--output", str(tmp_path / "x")]) == 2
    assert "no examples" in capsys.readouterr().err
