"""Connected components of the duplicate graph, by union-find.

Edges are uint64 arrays [m, 2] of document identifiers (doc64). The label of a component is its
smallest identifier, so that labels depend on the graph alone: not on the order or the split of
the edges.

`confirmed_clusters` divides components by the pairs that were confirmed.
"""

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from curation.compiled import Int, Int64s, borrowing, kernel
from curation.dedup.keys import Ids, run_lengths, run_starts, sort_pairs


class Components(NamedTuple):
    nodes: Ids  # [n], ascending
    labels: Ids  # [n], smallest node of the component


class Contraction(NamedTuple):
    """One record per bucket, and the edges that hold for the records left out."""

    buckets: Ids  # [buckets], ascending
    doc64: Ids  # [buckets], the smallest document of each bucket
    edges: Ids  # [m, 2], a spanning forest of all documents of the records


def contract(bucket_hashes: Ids, doc64: Ids) -> Contraction:
    """Leave one document per bucket, and tie all that share buckets by edges.

    Done within a shard before records are exchanged, it keeps the components and bounds a bucket
    by the number of shards, whatever its size. Takes about 35 bytes per record.

    Args:
        bucket_hashes: [records]; doc64: [records], the document of each record.
    """
    buckets, documents = sort_pairs(bucket_hashes, doc64)
    starts = run_starts(buckets)
    edges = spanning_forest(_stars(buckets, documents))
    return Contraction(buckets[starts], documents[starts], edges)


def star_edges(bucket_hashes: Ids, doc64: Ids) -> Ids:
    """Edges from each document of a bucket to the smallest one -> uint64 [m, 2], sorted, unique.

    A bucket of n documents gives n - 1 edges in place of its n (n - 1) / 2 pairs; the components
    are the same. `contract(...).edges` has them in fewer edges.
    """
    return unique_edges(_stars(*sort_pairs(bucket_hashes, doc64)))


def unique_edges(edges: Ids) -> Ids:
    """Sorted edges without repeats and loops."""
    first, second = sort_pairs(edges[:, 0], edges[:, 1])
    starts = run_starts(first, second)
    found = np.stack([first[starts], second[starts]], axis=1)
    return found[found[:, 0] != found[:, 1]]


def connected_components(edges: Ids) -> Components:
    """Components of a graph given by its edges, in any order and direction, repeats allowed.

    Every node that an edge names is in the result once, loops included. Beside the edges it takes
    about 90 bytes per edge.
    """
    ids, ranks = np.unique(edges.astype(np.uint64, copy=False), return_inverse=True)
    parents = np.full(len(ids), ALONE)
    join(parents, ranks.reshape(-1, 2))
    nodes, roots = settled(parents, 0, len(ids))
    return Components(ids[nodes], ids[roots])


class Numbering(NamedTuple):
    """Numbers documents from 0 on, without a gap and in the order of doc64: (shard << 32 | row)."""

    bases: Int64s  # [shards + 1], number of the first row of each shard

    @classmethod
    def of(cls, rows: npt.ArrayLike) -> "Numbering":
        """Number the rows of shards -> from their counts [shards]."""
        return cls(np.concatenate([[0], np.cumsum(rows)]).astype(np.int64))

    @property
    def size(self) -> int:
        return int(self.bases[-1])

    def dense(self, ids: Ids) -> Int64s:
        """Return the numbers of documents."""
        return self.bases[(ids >> _HALF).astype(np.int64)] + (ids & _LOW).astype(np.int64)

    def ids(self, dense: Int64s) -> Ids:
        """Return the documents of numbers."""
        shards = np.searchsorted(self.bases, dense, "right") - 1
        return (shards.astype(np.uint64) << _HALF) | (dense - self.bases[shards]).astype(np.uint64)


_HALF, _LOW = np.uint64(32), np.uint64(0xFFFFFFFF)

#: Parent of a node without edges.
ALONE = np.int64(-1)


@borrowing
def _root(parents: Int64s, node: Int) -> Int:
    if parents[node] < 0:
        parents[node] = node
    while parents[node] != node:
        parents[node] = parents[parents[node]]  # path halving
        node = parents[node]
    return node


@kernel
def join(parents: Int64s, edges: Int64s) -> None:
    """Join the trees of both ends of each edge. `parents` [nodes], at first ALONE, never rise."""
    for i in range(len(edges)):
        u, v = _root(parents, edges[i, 0]), _root(parents, edges[i, 1])
        parents[max(u, v)] = min(u, v)


def settled(parents: Int64s, low: int, high: int) -> tuple[Int64s, Int64s]:
    """Return the nodes in [low, high) that have edges, and the smallest of each one's component.

    Nodes before `low` must have been settled; these then are, too.
    """
    nodes = np.flatnonzero(parents[low:high] >= 0) + low
    while True:
        roots = parents[nodes]
        above = parents[roots]
        if np.array_equal(above, roots):
            return nodes, roots
        parents[nodes] = above


def spanning_forest(edges: Ids) -> Ids:
    """The fewest edges with the same components: each node to the smallest of its component.

    -> uint64 [nodes - components, 2], sorted by the first column. Replaces them before they travel.
    """
    nodes, labels = connected_components(edges)
    rest = nodes != labels
    return np.stack([nodes[rest], labels[rest]], axis=1)


def _stars(buckets: Ids, documents: Ids) -> Ids:
    """Edges of sorted records: each further document of a bucket to its first."""
    starts = run_starts(buckets)
    heads = np.repeat(documents[starts], run_lengths(starts, len(buckets)))
    first = run_starts(buckets, documents)
    edges = np.stack([documents[first], heads[first]], axis=1)
    return edges[edges[:, 0] != edges[:, 1]]


def confirmed_clusters(groups: Ids, exact: Ids, pairs: npt.NDArray[np.int64]) -> Ids:
    """Cluster of each document -> uint64 [documents], the position of its first document.

    Args:
        groups: [documents], the group in which candidates tie each document; a cluster is
            inside one.
        exact: [documents, 2], keys of the texts: equal ones of one group are duplicates without
            further proof. A document whose first half is 0 has no such key.
        pairs: [pairs, 2], confirmed pairs, positions of documents.
    """
    positions = np.arange(len(groups), dtype=np.uint64)
    order = np.lexsort([positions, exact[:, 1], exact[:, 0], groups])
    keyed: npt.NDArray[np.bool_] = exact[order, 0] != 0
    same = keyed[1:] & (groups[order][1:] == groups[order][:-1])
    same &= (exact[order][1:] == exact[order][:-1]).all(axis=1)
    equal = np.stack([order[:-1][same], order[1:][same]], axis=1)
    edges = np.concatenate([equal, pairs]).astype(np.uint64)
    labels = positions
    nodes, found = connected_components(edges)
    labels[nodes.astype(np.int64)] = found
    return labels


def cluster_sizes(labels: Ids) -> npt.NDArray[np.int64]:
    """Documents of each document's cluster -> int64 [documents]."""
    if not len(labels):
        return np.zeros(0, np.int64)
    _, place, sizes = np.unique(labels, return_inverse=True, return_counts=True)
    return sizes[place].astype(np.int64)


def same_text(
    exact: Ids, first: npt.NDArray[np.int64], second: npt.NDArray[np.int64]
) -> npt.NDArray[np.bool_]:
    """Whether the documents of each pair of positions have one exact key -> bool [pairs]."""
    equal: npt.NDArray[np.bool_] = (exact[first] == exact[second]).all(axis=1)
    return equal & exact[first].any(axis=1)
