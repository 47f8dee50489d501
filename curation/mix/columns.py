"""The narrow columns used for mixing, one row per document."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from curation.dedup.keys import string_keys
from curation.errors import InputError
from curation.hashing import mix64
from curation.inputs import source_names
from curation.mix.mix_settings import Mixture
from curation.mix.ranks import Ranks
from curation.mix.repeats import BUCKETS, UNIT, bucket_of, repeating
from curation.rights.licences import matches_licence
from curation.schema import RIGHTS, column_of

NARROW = pa.schema(
    [
        ("id_hash", pa.uint64()),  # of the document's id
        ("source", pa.string()),  # name of the input, see `curation.inputs`
        ("domain", pa.string()),
        ("topic", pa.string()),  # may be null
        ("format", pa.string()),  # may be null
        ("language", pa.string()),  # may be null
        ("quality", pa.float64()),  # may be null
        ("views", pa.list_(pa.float64())),  # scores by further views of quality; may be null
        ("date", pa.timestamp("us", tz="UTC")),  # may be null
        ("cluster_size", pa.int64()),  # documents of which it is the one that was kept; may be null
        ("variety", pa.float32()),  # distinct part of its runs of tokens
        ("licence", pa.string()),  # of the page; may be null
        ("tokens", pa.int64()),  # as they will be written
    ]
)


def narrow(
    batch: pa.RecordBatch,
    tokens: npt.NDArray[np.int64],
    sources: Collection[str],
    variety: pa.Array,
    views: Sequence[str] = (),
) -> pa.RecordBatch:
    """Return the columns of each document used for drawing: NARROW.

    The domain of documents whose own is null or blank is `unknown`.

    Args:
        batch: documents with `id`, `source`, and what `classify` adds if known.
        tokens: [documents], as they will be written.
        sources: names of inputs that the recipe knows.
        variety: float32 [documents].
        views: columns with scores of further views of quality.
    """
    columns = {
        "id_hash": pa.array(string_keys(batch.column("id"))[:, 0]),
        "source": source_names(batch.column("source"), sources),
        "tokens": pa.array(tokens, pa.int64()),
        "variety": variety,
    }
    for name in ("domain", "topic", "format", "language", "quality", "date"):
        kind = NARROW.field(name).type
        columns[name] = column_of(batch, name, kind).cast(kind)
    named = pc.match_substring_regex(columns["domain"], r"[^\s\p{Z}]")
    columns["domain"] = pc.if_else(pc.fill_null(named, False), columns["domain"], "unknown")
    scores = [column_of(batch, n, pa.float64()).cast(pa.float64()) for n in views]
    flat = np.stack([s.to_numpy(zero_copy_only=False) for s in scores], 1) if views else np.empty(0)
    ends = np.arange(batch.num_rows + 1, dtype=np.int32) * len(views)
    columns["views"] = pa.ListArray.from_arrays(ends, pa.array(flat.ravel(), from_pandas=True))
    # FineWeb2's name for it, in the tables that it publishes.
    own = "cluster_size" in batch.schema.names
    size = column_of(batch, "cluster_size" if own else "minhash_cluster_size", pa.int64())
    columns["cluster_size"] = size.cast(pa.int64())
    columns["licence"] = pc.struct_field(column_of(batch, "rights", RIGHTS), "licence")
    return pa.RecordBatch.from_arrays([columns[n] for n in NARROW.names], schema=NARROW)


def grouped(batch: pa.RecordBatch | pa.Table, settings: Mixture) -> pa.RecordBatch | pa.Table:
    """Return rows of `NARROW` whose domains are those of the settings: the inputs, where it has
    these."""
    if not settings.inputs:
        return batch
    place = batch.schema.get_field_index("domain")
    return batch.set_column(place, "domain", batch.column("source"))


U64 = npt.NDArray[np.uint64]
F64 = npt.NDArray[np.float64]
Bools = npt.NDArray[np.bool_]

# Independent streams of one seed.
_DRAW, _TOPIC, _COPY = 1, 2, 4


def _uniform_bits(id_hashes: U64, seed: int, stream: int) -> U64:
    """64 uniform bits per document, which depend on nothing but its id."""
    salt = mix64(np.array([seed], np.uint64) + mix64(np.array([stream], np.uint64)))
    return mix64(id_hashes ^ salt)


def open_unit(bits: U64) -> F64:
    """Uniform values in (0, 1), multiples of 2^-52 shifted by half a step."""
    return ((bits >> np.uint64(12)).astype(np.float64) + 0.5) * 2.0**-52


def copy_bits(id_hashes: U64, seed: int) -> U64:
    """64 uniform bits per document, which say where its copies are."""
    return _uniform_bits(id_hashes, seed, _COPY)


class Rows(NamedTuple):
    """Documents as used for drawing; arrays have one entry per document.

    At a level, which is a number of its cell, a document has `floor(level * rate + phase)` copies:
    as the level rises, its copies come one by one.
    """

    cells: npt.NDArray[np.int64]  # place of (source, domain) in the list of cells
    tokens: npt.NDArray[np.int64]
    rates: npt.NDArray[np.float64]  # copies expected at level 1
    phases: npt.NDArray[np.float64]  # in [0, 1)
    most: npt.NDArray[np.int64]  # copies at any level
    places: npt.NDArray[np.float64]  # on the curve by which it repeats; NaN: there is none
    topic_values: npt.NDArray[np.float64]
    topic_shares: npt.NDArray[np.float64]  # 1 where the topic isn't downsampled
    shares: npt.NDArray[np.float64]  # of topic and format; 1 where neither is downsampled
    too_short: npt.NDArray[np.bool_]
    varieties: npt.NDArray[np.float64]
    monotonous: npt.NDArray[np.bool_]
    unlicensed: npt.NDArray[np.bool_]  # without a licence that the mix takes

    @property
    def outlived(self) -> npt.NDArray[np.bool_]:
        """Whether a document outlives the downsampling of its topic and format."""
        return self.topic_values < self.shares

    @property
    def eligible(self) -> npt.NDArray[np.bool_]:
        """Whether a document may be drawn at all, if its curve gives it any copies."""
        return self.outlived & ~(self.too_short | self.monotonous | self.unlicensed)

    def copies(self, levels: npt.NDArray[np.float64]) -> npt.NDArray[np.int64]:
        """Return how often each document is drawn at the levels [cells], eligible or not."""
        copies = np.floor(levels[self.cells] * self.rates + self.phases).astype(np.int64)
        return np.minimum(copies, self.most)

    def fitted(self, copies: Sequence[Sequence[float]]) -> Rows:
        """Return the documents with the copies fitted to their buckets; see `Learned`."""
        if not any(copies):
            return self
        table = np.array([cell or [np.nan] * BUCKETS for cell in copies])
        found = table[self.cells, bucket_of(self.places)]
        chosen = ~np.isnan(found)
        most = np.where(chosen, np.ceil(np.nan_to_num(found)), self.most).astype(np.int64)
        return self._replace(rates=np.where(chosen, found, self.rates), most=most)

    def only(self, rows: npt.NDArray[np.bool_]) -> Rows:
        """Return the documents selected by a mask."""
        return Rows._make(column[rows] for column in self)


def cell_names(batch: pa.RecordBatch | pa.Table) -> list[tuple[str, str]]:
    """Distinct (source, domain) of the rows, sorted. Raises InputError on nulls."""
    for name in ("source", "domain", "tokens", "id_hash"):
        if batch.column(name).null_count:
            raise InputError(f"mix: column {name!r} has nulls; every document needs a value")
    table = pa.table({n: batch.column(n) for n in ("source", "domain")})
    pairs = table.group_by(["source", "domain"]).aggregate([]).to_pylist()
    return sorted((row["source"], row["domain"]) for row in pairs)


def rows(
    batch: pa.RecordBatch | pa.Table,
    cells: list[tuple[str, str]],
    settings: Mixture,
    ranks: Ranks | None = None,
    copies: Sequence[Sequence[float]] = (),
) -> Rows:
    """Columns of `NARROW` as flat arrays; InputError on a (source, domain) not in `cells`.

    Without `ranks` the rates of domains that repeat mean nothing.
    """
    places = {cell: k for k, cell in enumerate(cells)}
    for cell in cell_names(batch):
        if cell not in places:
            raise InputError(f"mix: documents of {cell[1]!r} in {cell[0]!r} are not in the plan")
    hashes = _flat(batch, "id_hash").to_numpy(zero_copy_only=False).astype(np.uint64, copy=False)
    topic_shares = _shares(batch, "topic", settings.topics)
    tokens = _flat(batch, "tokens").to_numpy(zero_copy_only=False).astype(np.int64, copy=False)
    varieties = _flat(batch, "variety").to_numpy(zero_copy_only=False).astype(np.float64)
    rates, on_curves = np.ones(batch.num_rows), np.full(batch.num_rows, np.nan)
    if ranks is not None:
        for group in repeating(batch, settings, ranks):
            rates[group.rows] = group.units / UNIT
            on_curves[group.rows] = group.places
    found = Rows(
        _cells(batch, places),
        tokens,
        rates,
        1 - open_unit(_uniform_bits(hashes, settings.seed, _DRAW)),
        np.full(batch.num_rows, np.iinfo(np.int32).max, np.int64),
        on_curves,
        open_unit(_uniform_bits(hashes, settings.seed, _TOPIC)),
        topic_shares,
        topic_shares * _shares(batch, "format", settings.formats),
        tokens < (settings.min_tokens or 0),
        varieties,
        varieties < (settings.min_variety or 0),
        _unlicensed(batch, settings),
    )
    return found.fitted(copies)


def _flat(batch: pa.RecordBatch | pa.Table, name: str) -> pa.Array:
    column = batch.column(name)
    return column.combine_chunks() if isinstance(column, pa.ChunkedArray) else column


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
