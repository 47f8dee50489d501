"""Deduplication: URLs, exact copies, near duplicates and lines. Functions, without files.

A stage calls them in this order: narrow columns per shard (`canonical_urls`, `exact_keys`,
`signatures`, `line_hashes`), an exchange of these by hash, a reduction per partition
(`star_edges`, `count_lines`, ...), one solution (`connected_components`, `choose_survivors`), and
its application per shard. `doc64`, (shard << 32 | row), identifies a document within a stage.
"""

from curation.dedup.components import connected_components, contract, spanning_forest, star_edges
from curation.dedup.exact import exact_keys
from curation.dedup.keys import string_keys
from curation.dedup.lsh import band_hashes, bucket_records, candidate_probability, optimal_bands
from curation.dedup.minhash import hash_function, minhash_signatures, signatures
from curation.dedup.survivors import choose_survivors

__all__ = [
    "band_hashes",
    "bucket_records",
    "candidate_probability",
    "choose_survivors",
    "connected_components",
    "contract",
    "exact_keys",
    "hash_function",
    "minhash_signatures",
    "optimal_bands",
    "signatures",
    "spanning_forest",
    "star_edges",
    "string_keys",
]
