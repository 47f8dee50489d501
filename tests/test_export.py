"""`curate export`: every format read back, splits, and folders that are not its own."""

from __future__ import annotations

import gzip
import io
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import zstandard
from hypothesis import given, settings
from hypothesis import strategies as st

from curation.errors import ConfigError
from pipelines import cli
from pipelines.engine.stage import Shard
from pipelines.reading import exports as export_module
from pipelines.reading.exports import FORMATS, common_schema, json_of, parse_splits
from pipelines.storage.files import Folder
from tests.conftest import curate
from tests.folders import digests


def _export(run: Path, output: Path, *options: object) -> dict[str, Any]:
    """Export `classify` and return what `export.json` says."""
    arguments = ["export", "--run", run, "--stage", "classify", "--output", output, *options]
    assert cli.main([str(a) for a in arguments]) == 0
    note: dict[str, Any] = Folder(str(output)).read_own_json("export.json")
    return note


def _read(output: Path, prefix: str, form: str) -> list[dict[str, Any]]:
    """Rows of all files of a split, in order of name."""
    rows: list[dict[str, Any]] = []
    for path in sorted(output.rglob(f"{prefix}-*{FORMATS[form].suffix}")):
        data = path.read_bytes()
        if form in ("parquet", "hf"):
            rows += pq.read_table(path).to_pylist()
        else:
            plain = {"jsonl": bytes, "jsonl.gz": gzip.decompress, "jsonl.zst": _unzstd}[form](data)
            rows += [json.loads(line) for line in plain.decode().split("\n")[:-1]]
    return rows


def _unzstd(data: bytes) -> bytes:
    return zstandard.ZstdDecompressor().stream_reader(io.BytesIO(data)).read()


def _documents(run: Path, columns: list[str] | None = None) -> list[dict[str, Any]]:
    return pq.read_table(run / "classify" / "documents", columns=columns).to_pylist()


def _same(rows: list[dict[str, Any]], form: str) -> list[dict[str, Any]]:
    """Rows as they are read from a format."""
    return rows if form in ("parquet", "hf") else [json.loads(json_of(row)) for row in rows]


@pytest.mark.parametrize("form", list(FORMATS))
def test_every_format_has_every_row_in_order(sample_run: Path, tmp_path: Path, form: str) -> None:
    note = _export(sample_run, tmp_path / "out", "--to", form)
    name = "train" if form == "hf" else "documents"
    rows = _documents(sample_run)
    assert _read(tmp_path / "out", name, form) == _same(rows, form)
    sizes = [f["rows"] for n, f in note["files"].items() if n != "README.md"]
    shards = sorted((sample_run / "classify" / "documents").iterdir())
    assert sizes == [pq.read_metadata(shard).num_rows for shard in shards]
    assert not (tmp_path / "out" / ".work").exists()
    _export(sample_run, tmp_path / "again", "--to", form)
    assert digests(tmp_path / "out") == digests(tmp_path / "again")


@pytest.mark.parametrize("form", ["jsonl.zst", "hf"])
def test_splits_divide_the_documents_by_their_ids(
    sample_run: Path, tmp_path: Path, form: str
) -> None:
    options = ["--to", form, "--split", "train=0.7,val=0.2,test=0.1", "--seed", "5"]
    note = _export(sample_run, tmp_path / "out", *options, "--columns", "url,text")
    parts = {name: _read(tmp_path / "out", name, form) for name in note["split"]}
    assert note["rows"] == {name: len(rows) for name, rows in parts.items()}
    assert sum(note["rows"].values()) == len(_documents(sample_run))
    assert note["rows"]["train"] > note["rows"]["val"] > note["rows"]["test"] > 0
    rows = _same(_documents(sample_run, ["url", "text"]), form)
    for part in parts.values():
        rest = iter(rows)
        assert all(row in rest for row in part)  # a subsequence
    assert all(list(row) == ["url", "text"] for part in parts.values() for row in part)
    _export(sample_run, tmp_path / "other", *options[:-1], "6")
    assert [r["url"] for r in _read(tmp_path / "other", "test", form)] != [
        r["url"] for r in parts["test"]
    ]


def test_hugging_face_loads_it(sample_run: Path, tmp_path: Path) -> None:
    datasets = pytest.importorskip("datasets")
    _export(sample_run, tmp_path / "out", "--to", "hf", "--split", "train=0.9,val=0.1")
    loaded = datasets.load_dataset(str(tmp_path / "out"), cache_dir=str(tmp_path / "cache"))
    assert set(loaded) == {"train", "val"}
    wanted = [row["text"] for row in _read(tmp_path / "out", "train", "hf")]
    assert loaded["train"]["text"][:] == wanted


def test_an_export_replaces_its_own_and_nothing_else(
    sample_run: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / "out"
    _export(sample_run, out, "--to", "parquet")
    note = _export(sample_run, out, "--to", "jsonl")
    assert sorted(p.name for p in out.iterdir()) == sorted([*note["files"], "export.json"])
    (out / "mine.txt").write_text("keep")
    before = digests(out)
    options = ["--stage", "classify", "--to", "parquet", "--output", str(out)]
    assert cli.main(["export", "--run", str(sample_run), *options]) == 2
    assert "mine.txt: not written by curate export" in capsys.readouterr().err
    assert digests(out) == before


def test_an_interrupted_export_is_done_again(
    sample_run: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    _export(sample_run, tmp_path / "whole", "--to", "jsonl")

    def stopping(self: Shard, columns: Any = None) -> Any:
        batches = whole(self, columns)
        yield next(batches)
        raise KeyboardInterrupt

    whole: Callable[..., Any] = Shard.batches
    monkeypatch.setattr(export_module.Shard, "batches", stopping)
    with pytest.raises(KeyboardInterrupt):
        _export(sample_run, tmp_path / "out", "--to", "jsonl")
    assert not list((tmp_path / "out").glob("*.jsonl"))
    monkeypatch.setattr(export_module.Shard, "batches", whole)
    _export(sample_run, tmp_path / "out", "--to", "jsonl")
    assert digests(tmp_path / "out") == digests(tmp_path / "whole")


def test_an_export_to_another_store(sample_run: Path, tmp_path: Path) -> None:
    url = f"memory://{tmp_path.name}/export"
    arguments = ["--run", str(sample_run), "--stage", "classify", "--to", "jsonl.zst"]
    assert cli.main(["export", *arguments, "--output", url]) == 0
    _export(sample_run, tmp_path / "local", "--to", "jsonl.zst")
    there = Folder(url)
    names = sorted(p.name for p in (tmp_path / "local").iterdir())
    assert there.names() == names
    for name in names:
        assert there.read_bytes(name) == (tmp_path / "local" / name).read_bytes()


def test_json_names_what_was_written(sample_run: Path, tmp_path: Path) -> None:
    out = tmp_path / "out"
    options = ["--stage", "mix", "--to", "jsonl.gz", "--output", out, "--json"]
    done = curate("export", "--run", sample_run, *options)
    assert done.returncode == 0, done.stderr
    printed = json.loads(done.stdout)
    assert printed["folder"] == str(out) and printed["stage"] == "mix"
    assert sum(file["rows"] for file in printed["files"].values()) == printed["rows"]["documents"]
    for name, file in printed["files"].items():
        assert (out / name).stat().st_size == file["bytes"]


@pytest.mark.parametrize(
    ("options", "line"),
    [
        (["--stage", "clasify"], "--stage clasify: not a complete stage"),
        (["--stage", "tokenize"], "writes no documents"),
        (["--columns", "txt"], "no column 'txt'; did you mean 'text'?"),
        (["--columns", "text,text"], "text is named twice"),
        (["--split", "train=0.5,val=0.4"], "the shares sum to 0.9, not to 1"),
        (["--split", "train=0.5,train=0.5"], "train is named twice"),
        (["--split", "a b=1"], "expected NAME=SHARE"),
        (["--to", "csv"], "--to csv: unknown value (jsonl, jsonl.gz"),
    ],
)
def test_wrong_options_are_one_line(
    sample_run: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str],
    options: list[str], line: str,
) -> None:  # fmt: skip
    base = ["--run", str(sample_run), "--stage", "classify", "--to", "jsonl"]
    out = ["--output", str(tmp_path / "out")]
    expected = 1 if "tokenize" in options else 2
    assert cli.main(["export", *base, *out, *options]) == expected
    error = capsys.readouterr().err
    assert line in error and error.count("\n") == 1
    assert not (tmp_path / "out").exists()


@settings(max_examples=60)
@given(st.lists(st.floats(0.01, 1), min_size=1, max_size=5))
def test_shares_come_back(shares: list[float]) -> None:
    whole = [s / sum(shares) for s in shares]
    text = ",".join(f"s{i}={share!r}" for i, share in enumerate(whole))
    assert list(parse_splits(text).values()) == whole


def test_rows_of_shards_with_other_columns() -> None:
    one = pa.schema([("id", pa.string()), ("n", pa.int32())])
    two = pa.schema([("n", pa.int64()), ("id", pa.string()), ("x", pa.float32())])
    assert common_schema([one, two]) == pa.schema(
        [("id", pa.string()), ("n", pa.int64()), ("x", pa.float32())]
    )


def test_values_that_json_has_no_word_for() -> None:
    row = {"a": float("nan"), "b": [b"\xff", float("inf")], "c": {"d": None, "é": "ß\u2028"}}
    assert json.loads(json_of(row)) == {
        "a": None,
        "b": ["/w==", None],
        "c": {"d": None, "é": "ß\u2028"},
    }


def test_split_names_are_checked() -> None:
    with pytest.raises(ConfigError, match="expected NAME=SHARE"):
        parse_splits("train=1.5")
    assert parse_splits("") == {}
