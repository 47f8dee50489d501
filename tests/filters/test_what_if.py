"""`curate filter --what-if` on a finished run."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest

from pipelines.cli import main

WORDS = "filter.rules.gopher.word_count.min"


def what_if(run: Path, capsys: pytest.CaptureFixture[str], *options: str) -> list[dict[str, Any]]:
    assert main(["filter", "--what-if", "--run", str(run), "--json", *options]) == 0
    return json.loads(capsys.readouterr().out)


def test_the_runs_own_rules_change_nothing(
    sample_run: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    counts = json.loads((sample_run / "filter" / "manifest.json").read_text())["counts"]
    (held,) = what_if(sample_run, capsys)
    assert held["documents"] == counts["documents"]
    assert held["documents_in"] == counts["documents_in"]
    assert held["removed"] == {k: v["documents"] for k, v in counts["removed"].items()}
    assert held["flips"] == []
    # Of so small a run nearly all is counted: the estimate misses begin and end tokens.
    drawn = [pq.read_table(sample_run / "mix" / kind) for kind in ("documents", "removed")]
    tokens = {
        row["id"]: row["tokens"] for t in drawn for row in t.select(["id", "tokens"]).to_pylist()
    }
    real = sum(tokens.values())
    assert held["tokens_estimated"] == pytest.approx(real, rel=0.03)


def test_the_table_is_whole_at_80_columns(
    sample_run: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    arguments = ["--what-if", "--run", str(sample_run), "--sweep", f"{WORDS}=10,120"]
    assert main(["filter", *arguments]) == 0
    printed = capsys.readouterr().out
    heads = next(line for line in printed.splitlines() if "kept" in line)
    assert "gained" in heads
    assert "lost" in heads
    # The key is in the title: in the table its letters would be spread over lines.
    assert "under other values of gopher.word_count.min" in printed.splitlines()[0]
    rows = [line.split("│")[1].strip() for line in printed.splitlines() if line.startswith("│")]
    assert rows == ["as run", "10", "120"]


def test_a_sweep_names_the_languages_with_thresholds_of_their_own(
    sample_run: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    key = "filter.rules.llama3.kl_divergence.max"
    (own, *swept) = what_if(sample_run, capsys, "--sweep", f"{key}=2,3", "--set", f"{WORDS}=40")
    assert own["own_thresholds"] == []
    settings = json.loads((sample_run / "filter" / "manifest.json").read_text())["settings"]
    kinds = (sample_run / "filter" / kind for kind in ("documents", "removed"))
    labels = {label for kind in kinds for label in pq.read_table(kind)["language"].to_pylist()}
    for fact in swept:
        shown = {held["language"]: held["threshold"] for held in fact["own_thresholds"]}
        assert shown == {
            language: changes["llama3"]["kl_divergence"]["max"]
            for language, changes in settings["by_language"].items()
            if language in labels and "kl_divergence" in (changes.get("llama3") or {})
        }
        assert {"de", "ja"} <= shown.keys()
        assert {(h["rule"], h["side"]) for h in fact["own_thresholds"]} == {
            ("llama3.kl_divergence", "max")
        }
    options = ["--what-if", "--run", str(sample_run), "--sweep", f"{key}=2"]
    assert main(["filter", *options]) == 0
    assert "not for languages with their own in filter.by_language: de 3.4 (0 removed)" in (
        capsys.readouterr().out
    )


def test_the_samples_of_a_sweep_lie_at_its_margin(
    sample_run: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    key = "filter.rules.llama3.kl_divergence.max"
    few, every = (
        what_if(sample_run, capsys, "--sweep", f"{key}=1,2", "--samples", n) for n in ("3", "9999")
    )
    for threshold, some, all_of_it in zip((1, 2), few[1:], every[1:], strict=True):
        (flip,) = [f for f in some["flips"] if f["now"] == "llama3.kl_divergence"]
        (whole,) = [f for f in all_of_it["flips"] if f["now"] == "llama3.kl_divergence"]
        values = [sample["value"] for sample in whole["samples"]]
        assert len(values) == whole["documents"] > 3 and min(values) > threshold
        assert [sample["value"] for sample in flip["samples"]] == sorted(values)[:3]


@pytest.mark.parametrize(
    ("key", "message"),
    [
        ("filter.rules.gopher.word_cuont.min=3", "did you mean 'word_count'?"),
        ("filter.rules.gophr.word_count.min=3", "did you mean 'gopher'?"),
        ("filter.rule.gopher.word_count.min=3", "did you mean 'rules'?"),
        ("filter.exempt.cod.min=3", "did you mean 'code'?"),
        ("rules.gopher.word_count.min=3", "did you mean 'filter.rules.gopher.word_count.min'?"),
        ("filter.edits.c4=true", "run the stage again"),
        ("filter.rules.gopher.word_count.mn=3", "did you mean 'min'?"),
    ],
)
def test_unknown_keys_are_named(
    key: str, message: str, sample_run: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["filter", "--what-if", "--run", str(sample_run), "--set", key]) == 2
    error = capsys.readouterr().err
    assert message in error
    assert error.count("\n") == 1
