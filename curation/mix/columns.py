"""The narrow columns that mixing looks at, one row per document."""

from __future__ import annotations

from collections.abc import Collection
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from curation.dedup.keys import string_keys
from curation.errors import InputError
from curation.inputs import source_names
from curation.mix.keys import draw_keys, topic_values
from curation.mix.mix_settings import Mixture
from curation.mix.ranks import Ranks, rank
from curation.rights.licences import matches_licence

NARROW = pa.schema(
    [
        ("id_hash", pa.uint64()),  # of the document's id
        ("source", pa.string()),  # name of the input, see `curation.inputs`
        ("domain", pa.string()),
        ("topic", pa.string()),  # may be null
        ("format", pa.string()),  # may be null
        ("language", pa.string()),  # may be null
        ("quality", pa.float64()),  # may be null
        ("licence", pa.string()),  # of the page; may be null
        ("tokens", pa.int64()),  # as they will be written
    ]
)


def narrow(
    batch: pa.RecordBatch, tokens: npt.NDArray[np.int64], sources: Collection[str]
) -> pa.RecordBatch:
    """Return what draws look at of each document: NARROW.

    Args:
        batch: documents with `id`, `source`, and what `classify` adds if known.
        tokens: [documents], as they will be written.
        sources: names of inputs that the recipe knows.
    """
    columns = {
        "id_hash": pa.array(string_keys(batch.column("id"))[:, 0]),
        "source": source_names(batch.column("source"), sources),
        "tokens": pa.array(tokens, pa.int64()),
    }
    for name in ("domain", "topic", "format", "language", "quality"):
        kind = NARROW.field(name).type
        known = name in batch.schema.names
        columns[name] = batch.column(name).cast(kind) if known else pa.nulls(batch.num_rows, kind)
    has_rights = "rights" in batch.schema.names
    licences = pc.struct_field(batch.column("rights"), "licence") if has_rights else None
    columns["licence"] = pa.nulls(batch.num_rows, pa.string()) if licences is None else licences
    return pa.RecordBatch.from_arrays([columns[n] for n in NARROW.names], schema=NARROW)


class Rows(NamedTuple):
    """Documents as the kernels of mixing see them; arrays have one entry per document."""

    cells: npt.NDArray[np.int64]  # place of (source, domain) in the list of cells
    tokens: npt.NDArray[np.int64]
    keys: npt.NDArray[np.uint64]
    topic_values: npt.NDArray[np.float64]
    topic_shares: npt.NDArray[np.float64]  # 1 where the topic isn't downsampled
    shares: npt.NDArray[np.float64]  # of topic and format; 1 where neither is downsampled
    too_short: npt.NDArray[np.bool_]
    too_long: npt.NDArray[np.bool_]
    unlicensed: npt.NDArray[np.bool_]  # without a licence that the mix takes

    @property
    def outlived(self) -> npt.NDArray[np.bool_]:
        """Whether a document outlives the downsampling of its topic and format."""
        return self.topic_values < self.shares

    @property
    def eligible(self) -> npt.NDArray[np.bool_]:
        """Whether a document may be drawn at all."""
        return self.outlived & ~self.too_short & ~self.too_long & ~self.unlicensed

    def only(self, rows: npt.NDArray[np.bool_]) -> Rows:
        """The documents where `rows` holds."""
        return Rows._make(column[rows] for column in self)


def cell_names(batch: pa.RecordBatch | pa.Table) -> list[tuple[str, str]]:
    """Distinct (source, domain) of the rows, sorted. Raises InputError on nulls."""
    for name in ("source", "domain", "tokens", "id_hash"):
        if batch.column(name).null_count:
            raise InputError(f"mix: column `{name}` has nulls")
    table = pa.table({n: batch.column(n) for n in ("source", "domain")})
    pairs = table.group_by(["source", "domain"]).aggregate([]).to_pylist()
    return sorted((row["source"], row["domain"]) for row in pairs)


def rows(
    batch: pa.RecordBatch | pa.Table,
    cells: list[tuple[str, str]],
    settings: Mixture,
    ranks: Ranks | None = None,
) -> Rows:
    """Columns of `NARROW` as flat arrays; InputError on a (source, domain) not in `cells`.

    Without `ranks` the keys of domains that are weighted by rank mean nothing.
    """
    places = {cell: k for k, cell in enumerate(cells)}
    for cell in cell_names(batch):
        if cell not in places:
            raise InputError(f"mix: documents of {cell[1]!r} in {cell[0]!r} are not in the plan")
    hashes = _flat(batch, "id_hash").to_numpy(zero_copy_only=False).astype(np.uint64, copy=False)
    topic_shares = _shares(batch, "topic", settings.topics)
    tokens = _flat(batch, "tokens").to_numpy(zero_copy_only=False).astype(np.int64, copy=False)
    longest = np.iinfo(np.int64).max if settings.max_tokens is None else settings.max_tokens
    return Rows(
        _cells(batch, places),
        tokens,
        draw_keys(hashes, _weights(batch, settings, ranks or {}), settings.seed),
        topic_values(hashes, settings.seed),
        topic_shares,
        topic_shares * _shares(batch, "format", settings.formats),
        tokens < (settings.min_tokens or 0),
        tokens > longest,
        _unlicensed(batch, settings),
    )


def _flat(batch: pa.RecordBatch | pa.Table, name: str) -> pa.Array:
    column = batch.column(name)
    return pa.concat_arrays(column.chunks) if isinstance(column, pa.ChunkedArray) else column


def _shares(
    batch: pa.RecordBatch | pa.Table, column: str, shares: dict[str, float]
) -> npt.NDArray[np.float64]:
    """Share of each document's topic or format; 1 where the settings name none."""
    out = np.ones(batch.num_rows)
    values = _flat(batch, column).cast(pa.string())
    for name, share in shares.items():
        out[pc.fill_null(pc.equal(values, name), False).to_numpy(zero_copy_only=False)] = share
    return out


def _unlicensed(batch: pa.RecordBatch | pa.Table, settings: Mixture) -> npt.NDArray[np.bool_]:
    if not settings.licences:
        return np.zeros(batch.num_rows, np.bool_)
    found = _flat(batch, "licence").dictionary_encode()
    taken = [matches_licence(one, settings.licences) for one in found.dictionary.to_pylist()]
    places = pc.fill_null(found.indices, len(taken)).to_numpy(zero_copy_only=False)
    return ~np.array([*taken, False])[places]


def _cells(
    batch: pa.RecordBatch | pa.Table, places: dict[tuple[str, str], int]
) -> npt.NDArray[np.int64]:
    sources = _flat(batch, "source").dictionary_encode()
    domains = _flat(batch, "domain").dictionary_encode()
    table = np.full((len(sources.dictionary), len(domains.dictionary)), -1, np.int64)
    for i, source in enumerate(sources.dictionary.to_pylist()):
        for j, domain in enumerate(domains.dictionary.to_pylist()):
            table[i, j] = places.get((source, domain), -1)
    return table[
        sources.indices.to_numpy(zero_copy_only=False),
        domains.indices.to_numpy(zero_copy_only=False),
    ]


def _weights(
    batch: pa.RecordBatch | pa.Table, settings: Mixture, ranks: Ranks
) -> npt.NDArray[np.float64]:
    """Weight of each document; NaN where all of its domain are drawn alike."""
    out = np.full(batch.num_rows, np.nan)
    if settings.quality_weights:
        quality = pc.fill_null(_flat(batch, "quality").cast(pa.float64()), settings.missing_quality)
        out = _interpolated(quality.to_numpy(zero_copy_only=False), settings.quality_weights)
    for domain in ranks:
        ours = pc.equal(_flat(batch, "domain"), domain)
        found = rank(batch.filter(ours), ranks[domain], settings.missing_quality)
        points = settings.domains[domain].rank_weights
        out[ours.to_numpy(zero_copy_only=False)] = _interpolated(found, points)
    return out


def _interpolated(
    values: npt.NDArray[np.float64], points: list[tuple[float, float]]
) -> npt.NDArray[np.float64]:
    places, weights = zip(*points, strict=True)
    return np.interp(values, places, weights)
