"""The bill of materials has everything that made a run."""

from __future__ import annotations

import hashlib
import json
import shutil
from pathlib import Path

import pytest

from curation.summary.bom import bill
from pipelines.cli import main


@pytest.fixture
def run(sample_run: Path, tmp_path: Path) -> Path:
    """A copy of the sample run."""
    return Path(shutil.copytree(sample_run, tmp_path / "out"))


def test_every_material_and_output_is_in_the_bill(run: Path) -> None:
    assert main(["summary", "--run", str(run)]) == 0
    written = json.loads((run / "summary/bom.cdx.json").read_text())
    found = {c["bom-ref"]: c for c in written["components"]}
    hashes = {
        name: c["hashes"][0]["content"]
        for name, c in found.items()
        if name.startswith(("output:", "recipe:"))
    }
    assert len(found) == len(written["components"]) and len(hashes) > 20
    for name, sha256 in hashes.items():
        path = run / name.partition(":")[2]
        assert hashlib.sha256(path.read_bytes()).hexdigest() == sha256
    root = hashlib.sha256((run / "SHA256SUMS").read_bytes()).hexdigest()
    assert written["metadata"]["component"]["hashes"] == [{"alg": "SHA-256", "content": root}]
    kinds = {name.partition(":")[0] for name in found}
    assert {"code", "model", "list", "input", "output", "recipe", "pkg"} == kinds
    assert "input:english-00000.warc.gz" in found and "model:tokenize/tokenizer" in found


def test_evaluation_sets_and_own_code_are_told_apart() -> None:
    manifest = {
        "settings": {"evals": {"x": {"files": ["evals/x.jsonl"]}}},
        "lists": {"evals/x.jsonl": "1" * 64, "lists/y.txt": "2" * 64},
        "code": {"mine.py:rule": "3" * 64},
    }
    written = bill("r", "0" * 64, None, {"decontaminate": manifest}, [], "4" * 64)
    names = {c["bom-ref"] for c in written["components"]}
    assert {"evaluation:evals/x.jsonl", "list:lists/y.txt"} <= names
    assert "code:decontaminate/mine.py:rule" in names
