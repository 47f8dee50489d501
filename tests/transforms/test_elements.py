"""Keys and batches on their way, files, functions of users, and the examples in the docs."""

from __future__ import annotations

import doctest
import importlib
import pkgutil
import subprocess
import sys
from pathlib import Path

import apache_beam as beam
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest
from apache_beam import coders
from hypothesis import given
from hypothesis import strategies as st

import pipelines.transforms
from curation.errors import ConfigError, InputError
from curation.schema import DOCUMENTS, Verdicts
from pipelines.transforms import (
    Apply,
    ReadDocuments,
    ShardKey,
    ShardKeyCoder,
    WriteShards,
)
from tests.conftest import ROOT

MODULES = [m.name for m in pkgutil.iter_modules(pipelines.transforms.__path__)]


@pytest.mark.parametrize("name", MODULES)
def test_examples_in_docstrings(name: str) -> None:
    result = doctest.testmod(importlib.import_module(f"pipelines.transforms.{name}"))
    assert result.failed == 0


def test_importing_starts_nothing() -> None:
    code = (
        "import threading, sys, pipelines.transforms; "
        "sys.exit(f'{threading.enumerate()}' if threading.active_count() > 1 else 0)"
    )
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


@given(st.text(), st.integers(0, 2**64 - 1))
def test_keys_survive_their_coder(shard: str, row: int) -> None:
    coder, key = ShardKeyCoder(), ShardKey(shard.encode("utf-8", "replace").decode(), row)
    assert coder.decode(coder.encode(key)) == key


def test_elements_travel_by_these_coders() -> None:
    coder = coders.registry.get_coder(beam.typehints.Tuple[ShardKey, pa.RecordBatch])
    batch = pa.RecordBatch.from_pydict({"text": ["x" * 1000] * 100})
    encoded = coder.encode((ShardKey("s", 3), batch.slice(7, 1)))
    assert len(encoded) < 3000  # a pickled slice would have all 100 rows
    key, decoded = coder.decode(encoded)
    assert key == ShardKey("s", 3) and decoded.equals(batch.slice(7, 1))
    assert coders.registry.get_coder(ShardKey).is_deterministic()


def written(folder: Path, elements: list[tuple[ShardKey, pa.RecordBatch]]) -> list[tuple]:
    with beam.Pipeline(runner="FnApiRunner") as pipeline:
        _ = pipeline | beam.Create(elements) | WriteShards(str(folder))
    return [(f.name, pq.read_table(f).to_pydict()) for f in sorted(folder.glob("*.parquet"))]


def test_shards_are_written_in_the_order_of_keys(tmp_path: Path) -> None:
    rows = [pa.RecordBatch.from_pydict({"id": [f"{i}"]}) for i in range(3)]
    elements = [(ShardKey("b", i), rows[i]) for i in (2, 0, 1)]
    empty = (ShardKey("a", 0), rows[0].slice(0, 0))
    found = written(tmp_path, [*elements, empty])
    assert found == [("a.parquet", {"id": []}), ("b.parquet", {"id": ["0", "1", "2"]})]
    assert [p.name for p in tmp_path.iterdir() if not p.name.endswith(".parquet")] == []


def test_two_batches_of_one_key_are_refused(tmp_path: Path) -> None:
    batch = pa.RecordBatch.from_pydict({"id": ["a"]})
    with pytest.raises(InputError, match="two batches at row 5 of shard 's'"):
        written(tmp_path, [(ShardKey("s", 5), batch)] * 2)


def test_batches_of_other_columns_are_refused(tmp_path: Path) -> None:
    elements = [
        (ShardKey("s", i), pa.RecordBatch.from_pydict({name: ["a"]})) for i, name in enumerate("xy")
    ]
    with pytest.raises(InputError, match=r"s\.parquet: "):
        written(tmp_path, elements)


def test_reading_refuses_what_it_cannot_name(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="no file matches it as a glob"):
        _ = beam.Pipeline() | ReadDocuments(str(tmp_path / "*.parquet"))
    (tmp_path / "stage" / "documents").mkdir(parents=True)
    with pytest.raises(InputError, match=r"no intact manifest\.json: the stage is not complete"):
        _ = beam.Pipeline() | ReadDocuments(str(tmp_path / "stage"))
    for folder in ("a", "b"):
        (tmp_path / folder).mkdir()
        pq.write_table(documents("1"), tmp_path / folder / "same.parquet")
    with pytest.raises(ConfigError, match="two inputs have a shard of the same name: same"):
        _ = beam.Pipeline() | ReadDocuments([str(tmp_path / "a"), str(tmp_path / "b")])
    pq.write_table(pa.table({"id": ["1"]}), tmp_path / "a" / "same.parquet")
    with pytest.raises(InputError, match="no column 'url'"):
        _ = beam.Pipeline() | ReadDocuments(str(tmp_path / "a"))


def documents(*names: str) -> pa.Table:
    rows = [{"id": name, "text": f"Of {name}."} for name in names]
    return pa.Table.from_pylist(rows, DOCUMENTS).append_column("other", pa.array(range(len(rows))))


def test_columns_are_read_as_asked_for(tmp_path: Path) -> None:
    pq.write_table(documents("1", "2"), tmp_path / "s.parquet")
    pq.write_table(documents(), tmp_path / "t.parquet")
    with beam.Pipeline(runner="FnApiRunner") as pipeline:
        read = pipeline | ReadDocuments(str(tmp_path), columns=["id"])
        _ = read | WriteShards(str(tmp_path / "out"))
    tables = [pq.read_table(tmp_path / "out" / f"{name}.parquet") for name in "st"]
    assert [t.to_pydict() for t in tables] == [{"id": ["1", "2"]}, {"id": []}]


BATCH = pa.RecordBatch.from_pydict({"id": ["a", "b"], "text": ["one", "two"]})


def upper(batch: pa.RecordBatch) -> pa.RecordBatch:
    return batch.set_column(1, "text", pc.utf8_upper(batch["text"]))


def not_a(batch: pa.RecordBatch) -> Verdicts:
    found = pc.equal(batch["id"], "a").to_numpy(zero_copy_only=False)
    return Verdicts.where(found, "test.a", np.array([1.0, 2.0]), 3.0)


def both(batch: pa.RecordBatch) -> tuple[pa.RecordBatch, Verdicts]:
    return upper(batch), not_a(batch)


@pytest.mark.parametrize(
    ("function", "kept", "removed"),
    [
        (upper, ["ONE", "TWO"], []),
        (not_a, ["two"], [("one", "mine", "test.a", 1.0, 3.0)]),
        (both, ["TWO"], [("ONE", "mine", "test.a", 1.0, 3.0)]),
    ],
)
def test_own_functions_change_and_judge(
    tmp_path: Path, function: object, kept: list, removed: list
) -> None:
    with beam.Pipeline(runner="FnApiRunner") as pipeline:
        judged = pipeline | beam.Create([(ShardKey("s", 0), BATCH)]) | Apply(function, "mine")
        _ = judged.documents | "kept" >> WriteShards(str(tmp_path / "kept"))
        _ = judged.removed | "removed" >> WriteShards(str(tmp_path / "removed"))
    assert pq.read_table(tmp_path / "kept" / "s.parquet")["text"].to_pylist() == kept
    rows = pq.read_table(tmp_path / "removed" / "s.parquet").to_pylist()
    names = ("text", "stage", "reason", "value", "threshold")
    assert [tuple(row[n] for n in names) for row in rows] == removed


def test_own_functions_account_for_every_document() -> None:
    def shrink(batch: pa.RecordBatch) -> pa.RecordBatch:
        return batch.slice(1)

    with (
        pytest.raises(InputError, match="shrink: returned 1 rows for 2 documents"),
        beam.Pipeline(runner="FnApiRunner") as pipeline,
    ):
        _ = pipeline | beam.Create([(ShardKey("s", 0), BATCH)]) | Apply(shrink)


def test_own_functions_return_batches_or_verdicts() -> None:
    with (
        pytest.raises(InputError, match="returned Table, not Judged, RecordBatch"),
        beam.Pipeline(runner="FnApiRunner") as pipeline,
    ):
        elements = pipeline | beam.Create([(ShardKey("s", 0), BATCH)])
        _ = elements | Apply(lambda batch: pa.Table.from_batches([batch]))
