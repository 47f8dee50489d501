"""A finished run is asked from Python as on the command line."""

from __future__ import annotations

import json
from pathlib import Path

import pyarrow.parquet as pq
import pytest

from pipelines.cli import main
from pipelines.reading.checks import check
from pipelines.reading.decisions import why
from pipelines.reading.thresholds import other_policies

WORDS = "filter.rules.gopher.word_count.min"


def test_why(sample_run: Path, capsys: pytest.CaptureFixture[str]) -> None:
    removed = pq.read_table(sample_run / "dedup-documents" / "removed").to_pylist()[0]
    (story,) = why(str(sample_run), removed["id"])
    assert main(["why", removed["id"], "--run", str(sample_run), "--json"]) == 0
    assert json.loads(capsys.readouterr().out) == json.loads(json.dumps([story], default=str))
    *kept, last = story["decisions"]
    assert {each["decision"] for each in kept} == {"kept"}
    assert (last["stage"], last["kept_id"]) == ("dedup-documents", removed["kept_id"])


def test_other_policies(sample_run: Path) -> None:
    found = other_policies(str(sample_run))
    names = [policy["policy"] for policy in found["policies"]]
    assert names[-1] == "the recipe's policy" and len({*names}) == len(names) > 3
    assert all(policy["documents"] <= found["documents"] for policy in found["policies"])


def test_checks(sample_run: Path) -> None:
    found = check(str(sample_run), share=0.05)
    assert not found.problems and found.spans and "tokenize" in found.manifests
