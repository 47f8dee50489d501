"""Runs and ranges."""

from __future__ import annotations

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from pipelines.engine.exchange import (
    document_numbers,
    key_ranges,
    read_range,
    row_of,
    shard_of,
    write_run,
)
from pipelines.engine.files import Folder


def test_document_numbers_name_shard_and_row() -> None:
    numbers = document_numbers(7, 5, first=3)
    assert shard_of(numbers).tolist() == [7] * 5
    assert row_of(numbers).tolist() == [3, 4, 5, 6, 7]


@settings(deadline=None, max_examples=25)
@given(
    st.lists(st.lists(st.integers(0, 2**64 - 1), max_size=30), min_size=1, max_size=4),
    st.integers(1, 9),
)
def test_ranges_hold_every_record_once(shards: list[list[int]], count: int) -> None:
    import tempfile

    with tempfile.TemporaryDirectory() as place:
        folder = Folder(place)
        names = []
        for i, keys in enumerate(shards):
            names.append(f"run-{i}")
            columns = {
                "key": np.array(keys, np.uint64),
                "value": np.arange(len(keys), dtype=np.int64) + 1000 * i,
            }
            write_run(folder, names[-1], "key", columns)
        seen: list[tuple[int, int]] = []
        for low, high in key_ranges(count):
            for batch in read_range(folder, names, "key", low, high):
                keys_here = batch["key"].to_pylist()
                assert keys_here == sorted(keys_here)
                assert all(low <= k <= high for k in keys_here)
                seen += zip(keys_here, batch["value"].to_pylist(), strict=True)
        expected = [(k, i * 1000 + j) for i, s in enumerate(shards) for j, k in enumerate(s)]
        assert sorted(seen) == sorted(expected)
