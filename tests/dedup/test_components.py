import numpy as np
import numpy.typing as npt
from hypothesis import given, settings
from hypothesis import strategies as st

from curation.dedup.components import (
    connected_components,
    contract,
    spanning_forest,
    star_edges,
)
from curation.dedup.keys import sort_pairs
from tests.dedup import reference

DENSE = st.builds(lambda shard, row: shard << 32 | row, st.integers(0, 2), st.integers(0, 9))
SPARSE = st.sampled_from([0, 1, 2**32 - 1, 2**32, 2**63, 2**64 - 1, 12345678901234567890, 77])
NODES = st.one_of(DENSE, SPARSE)
EDGES = st.lists(st.tuples(NODES, NODES), max_size=40) | st.lists(
    st.tuples(DENSE, DENSE), max_size=40
)


def array(edges: list[tuple[int, int]]) -> npt.NDArray[np.uint64]:
    return np.array(edges, np.uint64).reshape(-1, 2)


@given(EDGES)
@settings(max_examples=100)
def test_labels_are_the_smallest_nodes(edges: list[tuple[int, int]]) -> None:
    nodes, labels = connected_components(array(edges))
    expected = reference.components(edges)
    assert nodes.tolist() == sorted(expected)
    assert labels.tolist() == [expected[node] for node in nodes.tolist()]


@given(EDGES)
@settings(max_examples=100)
def test_a_forest_keeps_components_with_fewest_edges(edges: list[tuple[int, int]]) -> None:
    forest = spanning_forest(array(edges))
    labels = reference.components(edges)
    assert len(forest) == len(labels) - len(set(labels.values()))
    assert dict(forest.tolist()) == {n: m for n, m in labels.items() if n != m}


RECORDS = st.lists(st.tuples(st.integers(0, 6), st.integers(0, 30)), max_size=60)


@given(RECORDS, st.integers(1, 4))
@settings(max_examples=100)
def test_contraction_within_shards_keeps_components(
    records: list[tuple[int, int]], shards: int
) -> None:
    buckets = np.array([bucket for bucket, _ in records], np.uint64)
    doc64 = np.array([doc for _, doc in records], np.uint64)
    direct = star_edges(buckets, doc64)
    parts = [
        contract(buckets[doc64 % shards == shard], doc64[doc64 % shards == shard])
        for shard in range(shards)
    ]
    for part in parts:
        assert len(np.unique(part.buckets)) == len(part.buckets)
    crossing = star_edges(
        np.concatenate([part.buckets for part in parts]),
        np.concatenate([part.doc64 for part in parts]),
    )
    contracted = np.concatenate([*(part.edges for part in parts), crossing])
    assert spanning_forest(contracted).tolist() == spanning_forest(direct).tolist()


def test_star_edges_do_not_depend_on_order() -> None:
    buckets = np.array([5, 9, 5, 5, 9, 1], np.uint64)
    doc64 = np.array([40, 7, 12, 31, 12, 3], np.uint64)
    expected = [[12, 7], [31, 12], [40, 12]]
    assert star_edges(buckets, doc64).tolist() == expected
    assert star_edges(buckets[::-1], doc64[::-1]).tolist() == expected


@given(st.lists(st.tuples(st.integers(0, 2**64 - 1), st.integers(0, 300)), max_size=50))
@settings(max_examples=100)
def test_pairs_are_sorted(pairs: list[tuple[int, int]]) -> None:
    first, second = sort_pairs(*array(pairs).T)
    assert list(zip(first.tolist(), second.tolist(), strict=True)) == sorted(pairs)
