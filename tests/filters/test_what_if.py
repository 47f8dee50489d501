"""`curate filter --what-if` on a finished run."""

from __future__ import annotations

import json
from pathlib import Path

import pyarrow.parquet as pq
import pytest

from pipelines.cli import main

WORDS = "filter.rules.gopher.word_count.min"
DIVERGENCE = "filter.rules.llama3.kl_divergence.max"


def test_a_sweep_counts_what_a_run_would(
    sample_run: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    options = ["--what-if", "--run", str(sample_run), "--sweep", f"{WORDS}=10,120"]
    assert main(["filter", *options, "--json"]) == 0
    facts = json.loads(capsys.readouterr().out)
    kept = pq.read_table(sample_run / "filter" / "documents")
    own = json.loads((sample_run / "filter" / "manifest.json").read_text())["settings"]
    others = {
        n for n, rules in own["by_language"].items() if "word_count" in rules.get("gopher", {})
    }
    few = sum(
        row["signals"]["gopher_word_count"] < 120 and row["language"] not in others
        for row in kept.select(["signals", "language"]).to_pylist()
    )
    low, high = facts["tried"]
    assert (low["gained"], low["lost"]) == (0, 0) and 0 < high["lost"] <= few
    assert high["documents"] == facts["documents"] - high["lost"] == kept.num_rows - high["lost"]
    assert all(near["signal"] < 120 for near in high["below"])
    assert main(["filter", *options]) == 0
    printed = capsys.readouterr().out
    assert f"{WORDS}: not for languages with their own in filter.by_language: " in printed


def test_a_sweep_names_the_languages_with_thresholds_of_their_own(
    sample_run: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    options = ["--what-if", "--run", str(sample_run), "--sweep", f"{DIVERGENCE}=2,3"]
    assert main(["filter", *options, "--json"]) == 0
    for tried in json.loads(capsys.readouterr().out)["tried"]:
        assert {"de", "ja"} <= {own["language"] for own in tried["own_thresholds"]}


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ("filter.rules.gopher.word_cuont.min=3", f"did you mean '{WORDS}'?"),
        (f"{WORDS}=many", "not a number: 'many'"),
        ("filter.edits.c4=true", "no threshold of this run"),
    ],
)
def test_what_cannot_be_tried(
    change: str, message: str, sample_run: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["filter", "--what-if", "--run", str(sample_run), "--set", change]) == 2
    error = capsys.readouterr().err
    assert message in error and error.count("\n") == 1
