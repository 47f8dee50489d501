"""Shards in the formats of other libraries, read back through those libraries."""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

from curation.errors import ConfigError
from curation.stages.tokenize import format_packages
from curation.tokenize.megatron import IndexedWriter
from pipelines.storage.files import Folder
from pipelines.tokenize import write_formats

ROWS = np.arange(40, dtype=np.int32).reshape(5, 8) * 3000


@pytest.fixture
def folder(tmp_path: Path) -> Folder:
    with (
        open(tmp_path / "part.bin", "wb") as bin_file,
        open(tmp_path / "part.idx", "wb") as idx_file,
    ):
        writer = IndexedWriter(bin_file, np.dtype(np.int32))
        writer.write(ROWS)
        writer.finish(idx_file)
    return Folder(str(tmp_path))


def test_mosaicml_streaming(folder: Folder) -> None:
    streaming = pytest.importorskip("streaming", reason="mosaicml-streaming is not installed")
    first = write_formats(["mds"], folder, "part")
    data = streaming.LocalDataset(local=folder.path("mds/part"))
    assert [data[k]["tokens"].tolist() for k in range(len(data))] == ROWS.tolist()
    assert write_formats(["mds"], folder, "part") == first
    assert {r.rows for r in first.values()} == {5}


def test_hugging_face_datasets(folder: Folder, tmp_path: Path) -> None:
    datasets = pytest.importorskip("datasets", reason="datasets is not installed")
    first = write_formats(["huggingface"], folder, "part")
    (name,) = first
    data = datasets.Dataset.from_parquet(folder.path(name), cache_dir=str(tmp_path / "cache"))
    assert data["input_ids"][:] == ROWS.tolist()
    assert data.data.schema.field("input_ids").type.value_type == pa.int32()
    assert write_formats(["huggingface"], folder, "part") == first


def test_an_absent_library_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "streaming", None)
    with pytest.raises(ConfigError, match=r"mds: needs streaming: .*curation\[mds\]"):
        format_packages(["mds"])
