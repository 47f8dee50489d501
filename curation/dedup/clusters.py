"""Clusters of confirmed duplicates, out of the groups that candidate pairs tie together."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from curation.dedup.components import connected_components
from curation.dedup.sorting import Ids


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
