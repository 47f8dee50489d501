"""The examples of the docs run, where their packages are installed."""

from __future__ import annotations

import re
import shlex
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest

from pipelines import cli
from tests.conftest import ROOT

_BLOCK = re.compile(r"^```python\n(.*?)^```$", re.MULTILINE | re.DOTALL)
_COMMAND = re.compile(r"^curate (export .*)$", re.MULTILINE)


def _sections(name: str) -> dict[str, str]:
    """Text of each section of a page, by heading."""
    parts = re.split(r"^## (.+)$", (ROOT / "docs" / name).read_text(), flags=re.MULTILINE)
    return dict(zip(parts[1::2], parts[2::2], strict=True))


_RUN = _sections("open-a-run.md")


def _execute(text: str) -> list[dict[str, Any]]:
    """Names that each block of a section leaves behind."""
    left = []
    for block in _BLOCK.findall(text):
        names: dict[str, Any] = {"__name__": "example"}
        exec(compile(block, "example", "exec"), names)
        left.append(names)
    return left


@pytest.fixture
def beside_run(sample_run: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A working directory with the run in `out`."""
    (tmp_path / "out").mkdir()
    for entry in sample_run.iterdir():
        (tmp_path / "out" / entry.name).symlink_to(entry)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("HF_HOME", str(tmp_path / "hf"))
    return sample_run


def _kept(run: Path) -> int:
    return int(pq.read_table(run / "filter" / "documents", columns=["id"]).num_rows)


def test_pandas(beside_run: Path) -> None:
    pytest.importorskip("pandas")
    (names,) = _execute(_RUN["pandas"])
    assert len(names["documents"]) == _kept(beside_run)


def test_polars(beside_run: Path) -> None:
    pytest.importorskip("polars")
    (names,) = _execute(_RUN["polars"])
    assert names["word_count"].height == _kept(beside_run)


def test_duckdb(beside_run: Path) -> None:
    pytest.importorskip("duckdb")
    (names,) = _execute(_RUN["DuckDB"])
    assert names["documents"].shape[0] == _kept(beside_run)
    rows = sum(count for _, _, count in names["removed"].fetchall())
    removed = beside_run.glob("*/removed/*.parquet")
    assert rows == sum(pq.read_metadata(path).num_rows for path in removed)


def test_hugging_face(beside_run: Path) -> None:
    pytest.importorskip("datasets")
    (command,) = _COMMAND.findall(_RUN["Hugging Face datasets"])
    assert cli.main(shlex.split(command)) == 0
    first, second = _execute(_RUN["Hugging Face datasets"])
    assert first["documents"].num_rows == _kept(beside_run)
    assert sum(split.num_rows for split in second["splits"].values()) == _kept(beside_run)


def test_tokens_as_text(beside_run: Path) -> None:
    (names,) = _execute(_RUN["Tokens as text"])
    texts = pq.read_table("out/tokenize/index", columns=["id"])["id"].to_pylist()
    kept = pq.read_table("out/mix/documents", columns=["id", "text"]).to_pylist()
    begun = names["text"].partition("<|begin_of_text|>")[2].partition("<|end_of_text|>")[0]
    assert len(begun) > 40 and any(begun in row["text"] for row in kept if row["id"] in texts)


def test_torch(beside_run: Path) -> None:
    pytest.importorskip("torch")
    (names,) = _execute(_RUN["torch"])
    assert names["taken"] == len(names["shards"]) > 0
    assert names["state"]["position"] == 4 * names["taken"]


def test_megatron(beside_run: Path) -> None:
    pytest.importorskip("megatron.core.datasets.indexed_dataset")
    (names,) = _execute(_RUN["Megatron-Core"])
    manifest = pq.read_table(beside_run / "tokenize" / "index")
    assert len(names["sequences"]) == len(set(manifest["sequence"].to_pylist()))


def test_exports(beside_run: Path, tmp_path: Path) -> None:
    commands = _COMMAND.findall(_RUN["Everything else: `curate export`"])
    for command in commands:
        local = command.replace("s3://corpus/tables", str(tmp_path / "tables"))
        assert cli.main(shlex.split(local)) == 0
    written = [*(tmp_path / "tables").glob("*.parquet"), *Path("out/export").rglob("*.jsonl.zst")]
    shards = list(Path("out/filter/documents").iterdir())
    assert len(commands) == 2 and len(written) == 3 * len(shards)


def test_the_library() -> None:
    sections = _sections("python.md")
    judged, ran, parts, rights = (_execute(text)[0] for text in sections.values())
    assert judged["clusters"].to_pylist() == [0, 1, 0, 1]
    assert judged["verdicts"].num_rows == judged["scores"].num_rows == 2
    assert ran["found"].documents.num_rows + ran["found"].removed.num_rows == 2
    assert parts["signatures"].shape[0] == 1 and parts["page"].title == "Bees"
    assert rights["page"].licence.name == "CC-BY-SA-4.0"
