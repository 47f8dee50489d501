"""Deduplication: URLs, exact copies, near duplicates and lines. Functions, without files.

A stage calls them in this order: narrow columns per shard (`canonical_urls`, `exact_keys`,
`signatures`, `line_hashes`), an exchange of these by hash, a reduction per partition
(`star_edges`, `count_lines`, ...), one solution (`connected_components`, `choose_survivors`), and
its application per shard. `doc64`, (shard << 32 | row), identifies a document within a stage.
"""

from curation.dedup.components import connected_components, contract, spanning_forest, star_edges
from curation.dedup.exact import exact_keys
from curation.dedup.keys import language_scopes, string_keys, within
from curation.dedup.lines import (
    count_lines,
    frequent_lines,
    line_hashes,
    merge_counts,
    remove_lines,
    total_lines,
)
from curation.dedup.lsh import band_hashes, bucket_records, candidate_probability, optimal_bands
from curation.dedup.minhash import hash_function, minhash_signatures, signatures
from curation.dedup.survivors import choose_survivors
from curation.dedup.urls import canonical_url, canonical_urls

__all__ = [
    "band_hashes",
    "bucket_records",
    "candidate_probability",
    "canonical_url",
    "canonical_urls",
    "choose_survivors",
    "connected_components",
    "contract",
    "count_lines",
    "exact_keys",
    "frequent_lines",
    "hash_function",
    "language_scopes",
    "line_hashes",
    "merge_counts",
    "minhash_signatures",
    "optimal_bands",
    "remove_lines",
    "signatures",
    "spanning_forest",
    "star_edges",
    "string_keys",
    "total_lines",
    "within",
]
