"""Connected components of the duplicate graph, on one machine or in rounds over many.

Edges are uint64 arrays [m, 2] of document identifiers (doc64). The label of a component is its
smallest identifier, so that labels depend on the graph alone: not on the order or the split of
the edges.

One machine: `connected_components`, union-find over identifiers made dense. Many: rounds of
`large_star` and `small_star` (Kiveris et al. 2014, "Connected Components in MapReduce and Beyond")
on edges partitioned by their first column, until no partition counts a violation.

`confirmed_clusters` divides components by the pairs that were confirmed.
"""

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from curation.compiled import Int, Int64s, borrowing, kernel
from curation.dedup.keys import Ids, run_lengths, run_starts, sort_pairs
from curation.hashing import mix64


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
    about 70 bytes per edge.
    """
    edges = np.ascontiguousarray(edges, np.uint64)
    bases = _shard_bases(edges)
    if bases is None:
        return _components_by_rank(edges)
    low = np.uint64(0xFFFFFFFF)
    dense = bases[(edges >> np.uint64(32)).astype(np.int64)] + (edges & low).astype(np.int64)
    present = np.zeros(int(bases[-1]), bool)
    present[dense] = True
    nodes = np.flatnonzero(present)
    shards = np.repeat(np.arange(len(bases) - 1), np.diff(bases))[nodes]
    ids = (shards.astype(np.uint64) << np.uint64(32)) | (nodes - bases[shards]).astype(np.uint64)
    ranks = np.cumsum(present) - 1
    return Components(ids, ids[_smallest(ranks[dense], len(nodes))])


def _components_by_rank(edges: Ids) -> Components:
    """For identifiers of any kind: their rank among all of the graph makes them dense."""
    ends, places = sort_pairs(edges.reshape(-1), np.arange(edges.size, dtype=np.uint64))
    starts = run_starts(ends)
    ranks = np.empty(edges.size, np.int64)
    ranks[places] = np.repeat(np.arange(len(starts)), run_lengths(starts, len(ends)))
    ids = ends[starts]
    return Components(ids, ids[_smallest(ranks.reshape(-1, 2), len(ids))])


@borrowing
def _root(parents: Int64s, node: Int) -> Int:
    while parents[node] != node:
        parents[node] = parents[parents[node]]  # path halving
        node = parents[node]
    return node


@kernel
def _smallest(edges: Int64s, nodes: Int) -> Int64s:
    """Return the smallest node of each node's component, by union-find -> int64 [nodes]."""
    parents = np.arange(nodes)
    for i in range(len(edges)):
        u, v = _root(parents, edges[i, 0]), _root(parents, edges[i, 1])
        parents[max(u, v)] = min(u, v)
    for node in range(nodes):  # roots are smaller, so that one pass upward does
        parents[node] = parents[parents[node]]
    return parents


def spanning_forest(edges: Ids) -> Ids:
    """The fewest edges with the same components: each node to the smallest of its component.

    -> uint64 [nodes - components, 2], sorted by the first column. Replaces the edges of a partition
    before they travel.
    """
    nodes, labels = connected_components(edges)
    rest = nodes != labels
    return np.stack([nodes[rest], labels[rest]], axis=1)


def large_star(edges: Ids) -> Ids:
    """Tie every greater neighbour of a node to the smallest node about it.

    Args:
        edges: all edges of the nodes of this partition, each seen from both of its ends: the
            graph's edges in both directions, those whose first column is in the partition.

    Returns edges (greater, smallest), which need a new partition by their first column.
    """
    hub = _hubs(edges)
    greater = hub.edges[:, 1] > hub.edges[:, 0]
    return np.stack([hub.edges[greater, 1], hub.smallest[greater]], axis=1)


def small_star(edges: Ids) -> Ids:
    """Tie a node and its smaller neighbours to the smallest of them.

    Args:
        edges: all edges (greater, smaller) whose greater end is in this partition.

    Returns edges (greater, smaller), sorted and unique.
    """
    hub = _hubs(edges)
    own = np.stack([hub.edges[hub.starts, 0], hub.smallest[hub.starts]], axis=1)
    others = np.stack([hub.edges[:, 1], hub.smallest], axis=1)
    return unique_edges(np.concatenate([own, others]))


def violations(edges: Ids) -> int:
    """Nodes of a partition that keep the graph from being stars about its smallest nodes.

    `edges` as for `large_star`. A node violates when it has several smaller neighbours, or a
    smaller and a greater one; without violations anywhere the labels are final.
    """
    hub = _hubs(edges)
    if not len(hub.edges):
        return 0
    smaller = np.add.reduceat((hub.edges[:, 1] < hub.edges[:, 0]).astype(np.int64), hub.starts)
    degree = run_lengths(hub.starts, len(hub.edges))
    return int(np.count_nonzero((smaller > 1) | ((smaller == 1) & (degree > 1))))


def both_directions(edges: Ids) -> Ids:
    """Every edge from both ends: what `large_star` and `violations` are fed, once partitioned."""
    return np.concatenate([edges, edges[:, ::-1]])


def partition(edges: Ids, partitions: int) -> npt.NDArray[np.int64]:
    """Partition of each edge by a hash of its first column -> int64 [m]."""
    return (mix64(edges[:, 0]) % np.uint64(partitions)).astype(np.int64)


class _Hubs(NamedTuple):
    edges: Ids  # sorted and unique
    starts: npt.NDArray[np.int64]  # first edge of each node of the first column
    smallest: Ids  # per edge, the smallest of its first node and that node's neighbours


def _hubs(edges: Ids) -> _Hubs:
    edges = unique_edges(edges)
    starts = run_starts(edges[:, 0])
    smallest = np.minimum(edges[starts, 1], edges[starts, 0])  # neighbours ascend within a node
    return _Hubs(edges, starts, np.repeat(smallest, run_lengths(starts, len(edges))))


def _shard_bases(edges: Ids) -> npt.NDArray[np.int64] | None:
    """Position of row 0 of each shard when the rows of all shards are laid end to end.

    doc64 is (shard << 32 | row), so that these positions are dense and in the order of the
    identifiers, without sorting any. None where they would be far from dense.
    """
    if not len(edges):
        return None
    shards = int(edges.max() >> np.uint64(32)) + 1
    limit = 4 * edges.size + 1024
    if shards > limit:
        return None
    rows = np.zeros(shards, np.int64)
    last = (edges & np.uint64(0xFFFFFFFF)).astype(np.int64) + 1
    np.maximum.at(rows, (edges >> np.uint64(32)).astype(np.int64), last)
    bases = np.concatenate([[0], np.cumsum(rows)])
    return bases if bases[-1] <= limit else None


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
