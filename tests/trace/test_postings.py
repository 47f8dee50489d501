"""Postings give back what went in, at any shape, and read little of it."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from curation.hashing import mix64
from curation.trace.postings import Shape, bucket_bytes, bucket_of, look_up, shape_of


def _files(keys: np.ndarray, numbers: np.ndarray, shape: Shape) -> dict[int, bytes]:
    buckets = bucket_of(keys, shape.buckets)
    return {
        b: bucket_bytes(keys[buckets == b], numbers[buckets == b], shape)
        for b in range(1 << shape.buckets)
    }


@given(
    pairs=st.lists(st.tuples(st.integers(0, 300), st.integers(0, 70_000)), max_size=200),
    buckets=st.integers(0, 5),
    blocks=st.integers(0, 8),
)
def test_numbers_of_every_hash(pairs: list[tuple[int, int]], buckets: int, blocks: int) -> None:
    known = mix64(np.arange(301, dtype=np.uint64))
    keys = known[[key for key, _ in pairs]] if pairs else known[:0]
    numbers = np.array([number for _, number in pairs], np.uint64)
    files = _files(keys, numbers, Shape(buckets, blocks, 3))
    wanted = defaultdict(set)
    for key, number in pairs:
        wanted[key].add(number)

    def read(ranges: Sequence[tuple[int, int, int]]) -> list[bytes]:
        return [files[b][start:end] for b, start, end in ranges]

    # Hashes of 301 keys that agree in 16 bits or more can't be distinguished: none of these do.
    for key, found in enumerate(look_up(known, Shape(buckets, blocks, 3), read)):
        assert set(found.tolist()) >= wanted[key]
        if buckets + blocks >= 4:
            assert sorted(found.tolist()) == sorted(wanted[key])


def test_the_order_of_pairs_does_not_matter() -> None:
    keys = mix64(np.arange(5000, dtype=np.uint64) % 700)
    numbers = np.arange(5000, dtype=np.uint64) % 90
    order = np.random.default_rng(1).permutation(5000)
    shape = shape_of(5000, 90, 2)
    assert _files(keys, numbers, shape) == _files(keys[order], numbers[order], shape)


@pytest.mark.parametrize(("most", "width"), [(1, 1), (256, 1), (257, 2), (1 << 24, 3)])
def test_numbers_take_as_many_bytes_as_the_largest(most: int, width: int) -> None:
    shape = shape_of(10, most, 0)
    assert shape.width == width
    key, number = np.array([7], np.uint64), np.array([most - 1], np.uint64)
    data = bucket_bytes(key, number, shape)
    assert look_up(key, shape, lambda r: [data[a:b] for _, a, b in r])[0].tolist() == [most - 1]


def test_a_lookup_reads_a_small_block() -> None:
    keys = mix64(np.arange(100_000, dtype=np.uint64))
    shape = shape_of(100_000, 100_000, 1)
    files = _files(keys, np.arange(100_000, dtype=np.uint64), shape)
    sizes = []

    def read(ranges: Sequence[tuple[int, int, int]]) -> list[bytes]:
        sizes.extend(end - start for _, start, end in ranges)
        return [files[b][start:end] for b, start, end in ranges]

    assert [f.tolist() for f in look_up(keys[:500], shape, read)] == [[n] for n in range(500)]
    assert max(sizes) < 1000 and sum(map(len, files.values())) < 5.2 * 100_000
