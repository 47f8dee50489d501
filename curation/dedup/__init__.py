"""Deduplication: URLs, exact copies, near duplicates and lines. Functions, without files.

`near_duplicates` does it all for texts in memory. A stage calls the others in this order: narrow
columns per shard (`canonical_urls`, `exact_keys`, `signatures`, `line_hashes`), an exchange of
these by hash, a reduction per partition (`star_edges`, `count_lines`, ...), one solution
(`connected_components`, `choose_survivors`), and its application per shard. `doc64`,
(shard << 32 | row), identifies a document within a stage.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from curation.lazy import lazily

if TYPE_CHECKING:
    from curation.dedup.components import (
        connected_components,
        contract,
        spanning_forest,
        star_edges,
    )
    from curation.dedup.keys import half_keys, string_keys, within
    from curation.dedup.lines import (
        count_lines,
        frequent_lines,
        line_hashes,
        merge_counts,
        remove_lines,
        total_lines,
    )
    from curation.dedup.minhash import (
        band_hashes,
        hash_function,
        minhash_signatures,
        optimal_bands,
        signatures,
    )
    from curation.dedup.near import near_duplicates
    from curation.dedup.normalize import exact_keys
    from curation.dedup.survivors import choose_survivors
    from curation.dedup.urls import canonical_url, canonical_urls

__all__ = [
    "band_hashes",
    "canonical_url",
    "canonical_urls",
    "choose_survivors",
    "connected_components",
    "contract",
    "count_lines",
    "exact_keys",
    "frequent_lines",
    "half_keys",
    "hash_function",
    "line_hashes",
    "merge_counts",
    "minhash_signatures",
    "near_duplicates",
    "optimal_bands",
    "remove_lines",
    "signatures",
    "spanning_forest",
    "star_edges",
    "string_keys",
    "total_lines",
    "within",
]

_MODULES = {
    "components": ("connected_components", "contract", "spanning_forest", "star_edges"),
    "keys": ("half_keys", "string_keys", "within"),
    "lines": (
        *("count_lines", "frequent_lines", "line_hashes", "merge_counts", "remove_lines"),
        "total_lines",
    ),
    "minhash": (
        *("band_hashes", "hash_function", "minhash_signatures", "optimal_bands", "signatures"),
    ),
    "normalize": ("exact_keys",),
    "near": ("near_duplicates",),
    "survivors": ("choose_survivors",),
    "urls": ("canonical_url", "canonical_urls"),
}
lazily(__name__, _MODULES)
