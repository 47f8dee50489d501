"""Runs and ranges."""

from __future__ import annotations

import tempfile
from unittest import mock

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from curation.errors import InputError
from curation.schema import taken
from pipelines.storage import runs
from pipelines.storage.exchange import (
    document_numbers,
    key_ranges,
    read_columns,
    read_range,
    row_of,
    write_run,
)
from pipelines.storage.files import Folder


def test_document_numbers_name_shard_and_row() -> None:
    numbers = document_numbers(7, 5, first=3)
    assert (numbers >> np.uint64(32)).tolist() == [7] * 5
    assert row_of(numbers).tolist() == [3, 4, 5, 6, 7]


@given(lists=st.lists(st.lists(st.integers(0, 9))), data=st.data())
def test_lists_are_taken_as_arrow_takes_them(lists: list[list[int]], data: st.DataObject) -> None:
    column = pa.array(lists, pa.large_list(pa.uint32()))
    batch = pa.record_batch({"row": pa.array(range(len(lists))), "tokens": column}).slice(1)
    rows = data.draw(
        st.lists(st.integers(0, batch.num_rows - 1)) if batch.num_rows else st.just([])
    )
    assert taken(batch, np.array(rows, np.int64)).equals(batch.take(pa.array(rows, pa.int64())))


Shards = st.lists(st.lists(st.integers(0, 2**64 - 1), max_size=30), min_size=1, max_size=4)


@pytest.mark.parametrize("url", ["", "memory://runs"])
@settings(max_examples=25)
@given(shards=Shards | st.lists(st.lists(st.integers(0, 5), max_size=30)), count=st.integers(1, 9))
def test_ranges_hold_every_record_once(url: str, shards: list[list[int]], count: int) -> None:
    """Runs of batches of four rows, whose heads are read in two requests."""
    with (
        tempfile.TemporaryDirectory() as place,
        mock.patch.multiple(runs, _BATCH_ROWS=4, _BATCH_BYTES=1, _HEAD_BYTES=600, _PIECE_BYTES=900),
    ):
        folder = Folder(url or place)
        names = []
        for i, keys in enumerate(shards):
            names.append(f"run-{i}")
            columns = {
                "key": np.array(keys, np.uint64),
                "value": np.arange(len(keys), dtype=np.int64) + 1000 * i,
                "wide": pa.array([None if k % 3 else "x" * (k % 7) for k in keys], pa.string()),
            }
            write_run(folder, names[-1], "key", columns)
            order = np.argsort(columns["key"], kind="stable")
            assert read_columns(folder, names[-1])["value"].to_pylist() == [
                1000 * i + j for j in order
            ]
        seen: list[tuple[int, int, str | None]] = []
        for low, high in key_ranges(count):
            rows: list[int] = []
            for batch in read_range(folder, names, "key", low, high):
                keys_here = batch["key"].to_pylist()
                assert keys_here == sorted(keys_here)
                assert all(low <= k <= high for k in keys_here)
                rows += [v // 1000 for v in batch["value"].to_pylist()]
                seen += zip(
                    keys_here, batch["value"].to_pylist(), batch["wide"].to_pylist(), strict=True
                )
            assert rows == sorted(rows), "runs in the given order"
        expected = [
            (k, i * 1000 + j, None if k % 3 else "x" * (k % 7))
            for i, s in enumerate(shards)
            for j, k in enumerate(s)
        ]
        assert sorted(seen, key=str) == sorted(expected, key=str)


def test_a_range_of_a_long_run_takes_two_requests(monkeypatch: pytest.MonkeyPatch) -> None:
    folder = Folder("memory://long")
    keys = np.arange(1 << 17, dtype=np.uint64) << np.uint64(40)
    write_run(folder, "run", "key", {"key": keys, "value": keys})
    asked: list[int] = []

    def counted(self: Folder, name: str, start: int = 0, end: int | None = None) -> bytes:
        data = whole[start:end]
        asked.append(len(data))
        return data

    whole = folder.read_bytes("run")
    monkeypatch.setattr(Folder, "read_bytes", counted)
    low, high = 5000 << 40, (6000 << 40) - 1
    found = np.concatenate([b["key"] for b in read_range(folder, ["run"], "key", low, high)])
    assert found.tolist() == [k << 40 for k in range(5000, 6000)]
    assert len(asked) == 2 and sum(asked) < len(whole) // 8


def test_a_truncated_run_names_its_file() -> None:
    folder = Folder("memory://short")
    keys = np.arange(1 << 17, dtype=np.uint64)
    write_run(folder, "run", "key", {"key": keys})
    folder.write_bytes("run", folder.read_bytes("run")[: 1 << 19])
    with pytest.raises(InputError, match="memory://short/run"):
        list(read_range(folder, ["run"], "key", 0, 1 << 18))
