"""Find exact copies and near duplicates among documents in memory.

The stage `dedup-documents` does the same over shards: buckets tie documents to groups, candidates
of a group are verified, and one document of each cluster stays.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from curation.arrow import Texts, large_strings
from curation.dedup.candidates import bucket_pairs
from curation.dedup.clusters import confirmed_clusters
from curation.dedup.components import connected_components, star_edges
from curation.dedup.dedup_settings import DocumentDedupSettings
from curation.dedup.facts import bucketed, document_facts, signature_matrix, text_hashes
from curation.dedup.keys import within
from curation.dedup.lsh import band_threshold
from curation.dedup.sorting import Ids
from curation.dedup.verify import estimated_jaccard, jaccard, shingle_sets
from curation.errors import ConfigError

Positions = npt.NDArray[np.int64]


class Clusters(NamedTuple):
    """Documents that have a neighbour, by row; all have one entry per such document."""

    rows: Positions  # ascending
    labels: Ids  # of its cluster
    exact: Ids  # [n, 2], keys of texts, zeros where copies are none
    same: Positions  # first row of the same group and text, whose shingles represent it


def find_clusters(
    facts: pa.RecordBatch, texts: pa.Array, settings: DocumentDedupSettings
) -> Clusters:
    """Return the clusters of confirmed duplicates.

    Args:
        facts: of `document_facts`.
        texts: [documents], large_string.
    """
    numbers = np.arange(facts.num_rows, dtype=np.uint64)
    none = np.zeros((0, 2), np.uint64)
    edges, pairs = [none], none
    for _, inside, records in bucketed(facts, numbers, settings) if facts.num_rows else ():
        edges += [inside, star_edges(records["key"], records["number"])]
        if "order" in records:
            order, window = records["order"], settings.verify.window
            pairs = bucket_pairs(records["key"], order, records["number"], window)
    nodes, groups = connected_components(np.concatenate(edges))
    rows = nodes.astype(np.int64)
    own = facts.take(pa.array(rows))
    exact = np.stack([own.column("exact").to_numpy(), own.column("exact_low").to_numpy()], axis=1)
    if not settings.exact.enabled:
        exact = np.zeros_like(exact)
    alike = within(text_hashes(settings, own), groups)
    _, first, place = np.unique(alike, return_index=True, return_inverse=True)
    found = Clusters(rows, groups, exact, rows[first[place]])
    if settings.verify.method == "none":
        return found
    ends = np.searchsorted(nodes, pairs)
    values = similarity(facts, texts, found.same[ends], settings)
    confirmed = ends[values >= settings.verify.threshold]
    return found._replace(labels=confirmed_clusters(groups, exact, confirmed))


def similarity(
    facts: pa.RecordBatch, texts: pa.Array, pairs: Positions, settings: DocumentDedupSettings
) -> npt.NDArray[np.float64]:
    """Return the similarity of each pair of rows -> float64 [pairs]."""
    if not len(pairs):
        return np.zeros(0)
    needed, ends = np.unique(pairs, return_inverse=True)
    first, second = ends.reshape(-1, 2).T
    taken = pa.array(needed)
    if settings.verify.method == "jaccard":
        sets = shingle_sets(texts.take(taken), settings.minhash, settings.verify.normalization)
        return jaccard(sets, first, second)
    column = facts.column("signature").take(taken)
    return estimated_jaccard(signature_matrix(column, settings.minhash.num_perm), first, second)


def near_threshold(settings: DocumentDedupSettings) -> float:
    """Return the threshold for the value of a near duplicate."""
    if settings.verify.method != "none":
        return settings.verify.threshold
    return band_threshold(settings.minhash.bands, settings.minhash.rows)


def cluster_ids(
    texts: Texts, settings: DocumentDedupSettings, languages: pa.Array | None = None
) -> Positions:
    """Return the first row of each text's cluster of copies -> int64 [texts].

    Raises ConfigError where texts are compared within languages, and these are not given.
    """
    array = large_strings(texts).fill_null("")
    columns = {
        "id": pa.array([str(i) for i in range(len(array))], pa.string()),
        "date": pa.nulls(len(array), pa.timestamp("us", "UTC")),
        "text": array,
    }
    if settings.per_language:
        if languages is None:
            raise ConfigError("dedup-documents.per_language: the texts have no languages")
        columns["language"] = languages.cast(pa.string())
    settings = settings.model_copy(
        update={"survivor": settings.survivor.model_copy(update={"preferred_sources": ()})}
    )
    batch = pa.RecordBatch.from_pydict(columns)
    found = find_clusters(document_facts(batch, settings), array, settings)
    ids = np.arange(len(array))
    _, first, place = np.unique(found.labels, return_index=True, return_inverse=True)
    ids[found.rows] = found.rows[first[place]]
    return ids
