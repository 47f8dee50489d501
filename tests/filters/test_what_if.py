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


def test_a_sweep_shows_what_would_change(
    sample_run: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    own, mild, strict = what_if(sample_run, capsys, "--sweep", f"{WORDS}=10,120")
    assert mild["documents"] >= own["documents"] > strict["documents"]
    assert strict["variant"] == f"{WORDS}=120"
    assert strict["documents"] == own["documents"] - strict["newly_removed"]
    (flip,) = strict["flips"]
    assert (flip["was"], flip["now"]) == ("kept", "gopher.word_count")
    assert flip["documents"] == strict["newly_removed"]
    assert all(s["url"].startswith("http") and s["text"] for s in flip["samples"])


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
