"""Line deduplication: cut lines that occur in too many documents of a bucket.

Lines are what line feeds separate. Each is hashed once normalised (CCNet, Wenzek et al. 2019);
those seen more than `max_occurrences` times in a bucket of documents are frequent, as in Llama 3
(arXiv 2407.21783, 3.1.1). A line counts once per document, code and formulas do not count at all,
and where a frequent line lies decides whether it is cut (`curation.dedup.patterns`). Documents are
spread over buckets by a hash of their id. Language and bucket are mixed into the hashes of lines:
one table has all buckets.

Which lines are counted together, and their counts in a batch of documents.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from curation.arrow import TextBuffers, Texts, cut_out, from_buffers, line_spans, text_buffers
from curation.bytes.code_points import code_point
from curation.columns import PROSE_PATH, document_paths
from curation.compiled import Bool, Bytes, Int, Int64s, Uint16s, Uint64s, borrowing, kernel
from curation.dedup import patterns
from curation.dedup.characters import CharacterTable, character_table
from curation.dedup.dedup_settings import LineDedupSettings
from curation.dedup.keys import Ids, half_keys, run_lengths, run_starts, sort_rows, within
from curation.dedup.normalize import scratch_bytes, write_normalized
from curation.dedup.urls import hosts
from curation.hashing import mix64, unmix64, xxh64
from curation.schema import Verdicts
from curation.text.characters import ALPHA, SPACE, properties
from curation.text.lines import breadth, characters
from curation.text.structure import PROSE, structure
from curation.text.words import is_dense

#: Hash of the lines that are neither counted nor removed: blank ones and too short ones.
IGNORED = np.uint64(0)

#: Characters that a letter of Han, kana or bopomofo counts as: XQuAD is three times as long in
#: eight spaced languages as in Chinese, and as long as in Thai.
_DENSE = 3
#: A line is of words where it has this many letters, and three for each other visible character.
_FEWEST_LETTERS = 10
_LETTERS_PER_OTHER = 3


class LineHashes(NamedTuple):
    """Lines of document i: entries `doc_offsets[i]:doc_offsets[i + 1]`."""

    hashes: Ids  # [lines], IGNORED or a hash
    doc_offsets: npt.NDArray[np.int64]  # [documents + 1]
    spans: npt.NDArray[np.int64]  # [lines, 2], bytes of each line in its document, feed excluded


class LineCounts(NamedTuple):
    """Counts of lines by host; rows are sorted by (hash, host), each pair once."""

    hashes: Ids  # [rows]
    hosts: Ids  # [rows], keys of hosts; 0 where hosts are not distinguished
    counts: npt.NDArray[np.int64]  # [rows], documents with the line
    edges: npt.NDArray[np.int64]  # [rows], documents that have it near their beginning or end
    pages: npt.NDArray[np.int64]  # [rows], documents of the host, whether they have it or not
    first: Ids  # [rows], smallest doc64 of the documents that have the line
    bytes: npt.NDArray[np.int64]  # [rows], UTF-8 bytes of all its occurrences


class LineTotals(NamedTuple):
    """Counts of lines over all hosts."""

    hashes: Ids  # [lines], ascending
    counts: npt.NDArray[np.int64]  # [lines]
    hosts: npt.NDArray[np.int64]  # [lines], how many hosts have the line
    edges: npt.NDArray[np.int64]  # [lines]
    pages: npt.NDArray[np.int64]  # [lines], documents of the hosts that have the line
    bytes: npt.NDArray[np.int64]  # [lines]

    def take(self, rows: npt.NDArray[np.generic]) -> LineTotals:
        """Return the lines of these rows, by index or mask."""
        return LineTotals(*(column[rows] for column in self))


class LineRemoval(NamedTuple):
    """Texts without frequent lines.

    A cut takes the line feed after the line with it or, where nothing is kept after the line, the
    one before, so that the kept lines are joined as they were; text and cuts give back the
    original.
    """

    texts: pa.Array  # [documents], large_string
    cut_rows: npt.NDArray[np.int64]  # [cuts], document of each cut, ascending
    cut_positions: npt.NDArray[np.int64]  # [cuts], byte in the text as it was
    cut_texts: pa.Array  # [cuts], large_string, the bytes that went, with their line feed
    characters_removed: npt.NDArray[np.int64]  # [documents], code points, line feeds included
    lines: LineHashes  # of the texts as they were
    places: npt.NDArray[np.int64]  # [lines], row of each line in the frequent lines, -1 for none
    verdicts: npt.NDArray[np.uint8]  # [lines], index into patterns.VERDICTS


class _Rules(NamedTuple):
    """How lines are normalised and which are hashed."""

    folded: CharacterTable  # for lines of words
    plain: CharacterTable  # for others
    collapse: bool  # white space
    min_characters: int  # shorter lines are ignored


def line_hashes(texts: Texts, settings: LineDedupSettings, scopes: Ids | None = None) -> LineHashes:
    """Hash every line of every text, in text order.

    Args:
        scopes: [documents], for example of `half_keys`; equal lines of different scopes have
            different hashes. None: one scope.
    """
    buffers = text_buffers(texts)
    rules = settings.normalization
    folded = character_table(rules)
    # Digits are folded in lines of words only.
    plain = character_table(rules.model_copy(update={"digits": "keep"}))
    doc_offsets, spans = _spans(buffers)
    hashes = _hash_lines(
        buffers.data,
        buffers.offsets,
        doc_offsets,
        spans,
        _Rules(folded, plain, rules.whitespace == "collapse", settings.min_line_characters),
        properties(),
        np.empty(scratch_bytes(buffers, max(folded.growth, plain.growth)), np.uint8),
    )
    hashes[_exempt(buffers, doc_offsets)] = IGNORED
    if scopes is not None:
        scoped = within(hashes, np.repeat(scopes, np.diff(doc_offsets)))
        hashes = np.where(hashes == IGNORED, IGNORED, np.maximum(scoped, np.uint64(1)))
    return LineHashes(hashes, doc_offsets, spans)


def _spans(buffers: TextBuffers) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]:
    """The `doc_offsets` and `spans` of all lines."""
    starts, ends, doc_offsets = line_spans(buffers)
    begins = np.repeat(buffers.offsets[:-1], np.diff(doc_offsets))
    return doc_offsets, np.stack([starts - begins, ends - begins], axis=1)


def in_buckets(hashes: Ids, buckets: npt.NDArray[np.int64]) -> Ids:
    """Hashes of lines, each that of its bucket's own: IGNORED stays. Both [lines].

    `out_of_buckets` gives back the hashes that all buckets share.
    """
    own = mix64(hashes ^ mix64(buckets.astype(np.uint64)))
    return np.where(hashes == IGNORED, IGNORED, np.maximum(own, np.uint64(1)))


def out_of_buckets(hashes: Ids, buckets: npt.NDArray[np.int64]) -> Ids:
    """The hashes that `in_buckets` was given."""
    return unmix64(hashes) ^ mix64(buckets.astype(np.uint64))


def _exempt(buffers: TextBuffers, doc_offsets: npt.NDArray[np.int64]) -> npt.NDArray[np.bool_]:
    """Lines of code and formulas, and all lines of documents on their paths -> bool [lines]."""
    found = structure(from_buffers(buffers.offsets, buffers.data))
    other = document_paths(found) != PROSE_PATH
    return np.repeat(other, np.diff(doc_offsets)) | (found.kinds > PROSE)


def host_keys(urls: pa.Array, doc64: Ids) -> Ids:
    """Key of the host of each URL -> uint64 [n]; a URL without a host is a host of its own."""
    found = hosts(urls)
    unknown = pc.equal(found, "").to_numpy(zero_copy_only=False)
    return np.where(unknown, mix64(doc64.astype(np.uint64)), half_keys(found))


def assign_buckets(id_hashes: Ids, documents: int, bucket_documents: int) -> npt.NDArray[np.int64]:
    """Bucket of each document -> int64 [n], from a hash of its id.

    `documents` of one language (or of all) are spread evenly over the fewest buckets of at most
    about `bucket_documents` documents; which documents share one depends on their ids alone.
    """
    buckets = max(1, -(-documents // bucket_documents))
    return (mix64(id_hashes) % np.uint64(buckets)).astype(np.int64)


def count_lines(lines: LineHashes, doc64: Ids, hosts: Ids | None = None) -> LineCounts:
    """Count each line by host; IGNORED lines are left out.

    Args:
        doc64: [documents] identifiers of the documents of `lines`.
        hosts: [documents] keys of their hosts; None: one host.
    """
    of_line = np.repeat(np.arange(len(doc64)), np.diff(lines.doc_offsets))
    counted = np.flatnonzero(lines.hashes != IGNORED)
    numbers = doc64.astype(np.uint64)[of_line[counted]]
    hashes, owners, rows = sort_rows(lines.hashes[counted], numbers)
    sizes = lines.spans[:, 1] - lines.spans[:, 0]
    edge = patterns.at_edge(lines.spans, lines.doc_offsets)
    starts = run_starts(hashes, owners)
    places = counted[rows]
    by_document = LineCounts(
        hashes[starts],
        np.zeros(len(starts), np.uint64) if hosts is None else hosts[of_line[places[starts]]],
        np.ones(len(starts), np.int64),
        np.maximum.reduceat(edge[places].astype(np.int64), starts),
        np.zeros(len(starts), np.int64),
        owners[starts],
        np.add.reduceat(sizes[places], starts),
    )
    return merge_counts([by_document])


def merge_counts(parts: Sequence[LineCounts]) -> LineCounts:
    """Return the sum of counts of disjoint sets of documents, in whatever order."""
    joined = LineCounts(*(np.concatenate(columns) for columns in zip(_NONE, *parts, strict=True)))
    hashes, hosts, rows = sort_rows(joined.hashes, joined.hosts)
    starts = run_starts(hashes, hosts)
    first = np.minimum.reduceat(joined.first[rows], starts)
    return LineCounts(hashes[starts], hosts[starts], first=first, **_sums(joined, rows, starts))


_IDS, _NUMBERS = np.zeros(0, np.uint64), np.zeros(0, np.int64)
_NONE = LineCounts(_IDS, _IDS, _NUMBERS, _NUMBERS, _NUMBERS, _IDS, _NUMBERS)


def _sums(
    counts: LineCounts, rows: npt.NDArray[np.int64] | slice, starts: npt.NDArray[np.int64]
) -> dict[str, npt.NDArray[Any]]:
    """The columns of numbers, each summed over the runs of these rows."""
    added = ("counts", "edges", "pages", "bytes")
    return {name: np.add.reduceat(getattr(counts, name)[rows], starts) for name in added}


def with_pages(counts: LineCounts, hosts: Ids) -> LineCounts:
    """Return the counts of a set of documents with `pages`.

    Where sets are merged, a host's documents in sets without the line do not count: on a site whose
    every page has the line there are none, and a line on few pages still shows as rare.

    Args:
        hosts: [documents] keys of the hosts of all documents of the set, as `count_lines` had them.
    """
    keys, pages = np.unique(hosts, return_counts=True)
    return counts._replace(pages=pages[np.searchsorted(keys, counts.hosts)].astype(np.int64))


def total_lines(counts: LineCounts) -> LineTotals:
    """Return counts over all hosts."""
    starts = run_starts(counts.hashes)
    hosts = run_lengths(starts, len(counts.hashes))
    return LineTotals(counts.hashes[starts], hosts=hosts, **_sums(counts, slice(None), starts))


def add_known(
    totals: LineTotals,
    hashes: Ids,
    counts: npt.NDArray[np.int64],
    edges: npt.NDArray[np.int64],
    pages: npt.NDArray[np.int64],
) -> LineTotals:
    """Return the totals with the counts of an earlier run added to the lines that are in both.

    Args:
        hashes, counts, edges, pages: [lines of the earlier run], each line once, in any order.
    """
    places = np.searchsorted(totals.hashes, hashes)
    found = np.flatnonzero(places < len(totals.hashes))
    found = found[totals.hashes[places[found]] == hashes[found]]
    rows = places[found]
    columns = [totals.counts.copy(), totals.edges.copy(), totals.pages.copy()]
    for column, more in zip(columns, (counts, edges, pages), strict=True):
        column[rows] += more[found]
    return totals._replace(counts=columns[0], edges=columns[1], pages=columns[2])


def frequent_lines(totals: LineTotals, settings: LineDedupSettings) -> LineTotals:
    """Return the lines that more than `max_occurrences` documents have."""
    return totals.take(totals.counts > settings.max_occurrences)


def remove_lines(
    texts: Texts,
    frequent: LineTotals,
    settings: LineDedupSettings,
    hashes: Ids | None = None,
) -> LineRemoval:
    """Cut frequent lines out of documents, those whose place allows it.

    Args:
        texts: [documents].
        frequent: the frequent lines of all scopes and buckets, by ascending hash.
        hashes: [lines], where they are known; None: one scope and no buckets.
    """
    buffers = text_buffers(texts)
    mine = None if hashes is None else LineHashes(hashes, *_spans(buffers))
    lines = line_hashes(texts, settings) if mine is None else mine
    places = _places(lines, frequent)
    found = patterns.decide(buffers, lines, places, frequent)
    lost = patterns.CUTS[found]
    cut_rows, cuts = _cuts(buffers, lines, lost)
    kept, cut = cut_out(buffers, cut_rows, cuts)
    removed = np.bincount(cut_rows, pc.utf8_length(cut), len(buffers)).astype(np.int64)
    positions = cuts[:, 0] - buffers.offsets[cut_rows]
    return LineRemoval(kept, cut_rows, positions, cut, removed, lines, places, found)


def _cuts(
    buffers: TextBuffers, lines: LineHashes, lost: npt.NDArray[np.bool_]
) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]:
    """Return the document of each lost line [cuts], and its bytes of the buffer [cuts, 2].

    With no kept line after it, a line goes with the feed before it, if one is left.
    """
    owners = np.repeat(np.arange(len(buffers)), np.diff(lines.doc_offsets))
    last_kept = np.full(len(buffers), -1)
    last_kept[owners[~lost]] = np.flatnonzero(~lost)  # of several the last is stored
    gone, rows = np.flatnonzero(lost), owners[lost]
    ends_text = (gone > last_kept[rows]) & (last_kept[rows] >= 0)
    starts, ends = (buffers.offsets[rows] + lines.spans[gone].T).copy()
    ends = np.where(ends_text, ends, np.minimum(ends + 1, buffers.offsets[rows + 1]))
    return rows, np.stack([starts - ends_text, ends], axis=1)


def verdicts(removal: LineRemoval, settings: LineDedupSettings) -> Verdicts:
    """Remove the documents that lost lines and are `too_short`."""
    return too_short(removal.texts, removal.characters_removed, settings, "lines.too_short")


def too_short(
    texts: pa.Array, lost: npt.NDArray[np.int64], settings: LineDedupSettings, reason: str
) -> Verdicts:
    """Remove the documents that lost characters and have too few left, and too small a share.

    A letter of Han, kana or bopomofo counts as several characters, being as much text.

    Args:
        lost: characters that each document lost; int64 [documents].
    """
    rows = np.flatnonzero(lost > 0)
    characters = pc.utf8_length(texts.take(pa.array(rows))).to_numpy()
    gutted = characters <= settings.max_share_left * (characters + lost[rows])
    rows = rows[(characters < settings.min_characters) & gutted]
    offsets, data = text_buffers(texts.take(pa.array(rows)))
    left = np.full(len(lost), np.inf)
    left[rows] = [breadth(data, a, b, properties(), 0) for a, b in pairwise(offsets)]
    least = float(settings.min_characters)
    return Verdicts.where(left < least, reason, left, least)


def _places(lines: LineHashes, frequent: LineTotals) -> npt.NDArray[np.int64]:
    """Row of every line in the frequent lines -> int64 [lines], -1 where it is none of them."""
    if not len(frequent.hashes):
        return np.full(len(lines.hashes), -1, np.int64)
    places = np.searchsorted(frequent.hashes, lines.hashes)
    places[places == len(frequent.hashes)] = 0
    found = (frequent.hashes[places] == lines.hashes) & (lines.hashes != IGNORED)
    return np.where(found, places, -1)


@borrowing
def _mostly_words(data: Bytes, start: Int, end: Int, properties: Uint16s) -> Bool:
    """Whether three quarters of the visible characters are letters, and there are several."""
    letters = 0
    others = 0
    i = start
    while i < end:
        c, size = code_point(data, i)
        held = properties[c]
        if held & ALPHA:
            letters += _DENSE if is_dense(held) else 1
        elif not held & SPACE:
            others += 1
        i += size
    return letters >= _FEWEST_LETTERS and letters >= _LETTERS_PER_OTHER * others


@kernel
def _hash_lines(
    data: Bytes,
    text_offsets: Int64s,
    doc_offsets: Int64s,
    spans: Int64s,
    rules: _Rules,
    properties: Uint16s,
    scratch: Bytes,
) -> Uint64s:
    hashes = np.zeros(len(spans), np.uint64)
    for d in range(len(text_offsets) - 1):
        base = text_offsets[d]
        for line in range(doc_offsets[d], doc_offsets[d + 1]):
            start = base + spans[line, 0]
            end = base + spans[line, 1]
            words = _mostly_words(data, start, end, properties)
            table = rules.folded if words else rules.plain
            size = write_normalized(data, start, end, table, rules.collapse, scratch)
            if size > 0 and characters(scratch, 0, size) >= rules.min_characters:
                # The one hash in 2^64 that means IGNORED moves aside.
                hashes[line] = max(xxh64(scratch, 0, size, np.uint64(0)), np.uint64(1))
    return hashes


@dataclass(frozen=True)
class Buckets:
    """Which lines are counted together: those of a language, and of a bucket of its documents."""

    settings: LineDedupSettings
    documents: tuple[tuple[str, int], ...]  # documents by language, or all under ""

    def of(self, batch: pa.RecordBatch) -> npt.NDArray[np.int64]:
        """Bucket of each document, within its language -> int64 [rows]."""
        ids = half_keys(batch.column("id"))
        names = languages(batch, self.settings)
        buckets = np.zeros(batch.num_rows, np.int64)
        for language, documents in self.documents:
            mine = pc.equal(names, language).to_numpy(zero_copy_only=False)
            buckets[mine] = assign_buckets(ids[mine], documents, self.settings.bucket_documents)
        return buckets

    def scopes(self, batch: pa.RecordBatch) -> Ids:
        """Scope of each document: its language -> uint64 [rows]."""
        return half_keys(languages(batch, self.settings))

    def hosts(self, batch: pa.RecordBatch, numbers: Ids) -> Ids:
        """Host of each document, apart in each language and bucket."""
        hosts = within(host_keys(batch.column("url"), numbers), self.scopes(batch))
        return in_buckets(hosts, self.of(batch))


def languages(batch: pa.RecordBatch, settings: LineDedupSettings) -> pa.Array:
    """Return the language of each document, or "" where all are counted together: string."""
    if settings.per_language:
        return batch.column("language").fill_null("")
    return pa.array([""] * batch.num_rows, pa.string())


def lines_of(
    batch: pa.RecordBatch, numbers: Ids, buckets: Buckets
) -> tuple[LineCounts, npt.NDArray[np.int64], Ids, pa.Array]:
    """Return the lines of a batch, and the bucket, host and hashes of lines of each document.

    Args:
        batch: documents with `id`, `url`, `text`, and `language` with `per_language`.
        numbers: [documents].
    """
    settings, scopes, places = buckets.settings, buckets.scopes(batch), buckets.of(batch)
    lines = line_hashes(batch.column("text"), settings, scopes)
    of_lines = np.repeat(places, np.diff(lines.doc_offsets))
    lines = lines._replace(hashes=in_buckets(lines.hashes, of_lines))
    hosts = buckets.hosts(batch, numbers)
    hashes = pa.LargeListArray.from_arrays(lines.doc_offsets, lines.hashes)
    return count_lines(lines, numbers, hosts), places, hosts, hashes
