"""Deduplication: URLs, exact copies, near duplicates and lines. Functions, without files.

`near_duplicates` does it all for texts in memory. A stage calls the functions of this package's
modules in this order: narrow columns per shard (`urls.canonical_urls`, `normalize.exact_keys`,
`minhash.signatures`, `lines.line_hashes`), an exchange of these by hash, a reduction per partition
(`components.star_edges`, `lines.count_lines`, ...), one solution
(`components.connected_components`, `survivors.choose_survivors`), and its application per shard.
`doc64`, (shard << 32 | row), identifies a document within a stage.
"""

from typing import TYPE_CHECKING

from curation.lazy import lazily

if TYPE_CHECKING:
    from curation.dedup.minhash import minhash_signatures as minhash_signatures
    from curation.dedup.near import near_duplicates as near_duplicates

lazily(__name__, minhash="minhash_signatures", near="near_duplicates")
