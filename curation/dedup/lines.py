"""Line deduplication: lines that stand too often in a bucket of documents are cut out.

Lines are what line feeds separate. Each is hashed once normalised (CCNet, Wenzek et al. 2019);
those seen more than `max_occurrences` times in a bucket of documents go, as in Llama 3
(arXiv 2407.21783, 3.1.1). Documents are spread over buckets by a hash of their id. Language and
bucket are mixed into the hashes of lines: one table holds all buckets.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numba
import numpy as np
import numpy.typing as npt
import pyarrow as pa

from curation.arrow import TextBuffers, Texts, from_buffers, text_buffers
from curation.dedup.characters import character_table
from curation.dedup.keys import within
from curation.dedup.normalize import scratch_bytes, write_normalized
from curation.dedup.settings import LineDedupSettings
from curation.dedup.sorting import Ids, run_lengths, run_starts, sort_pairs, sort_with
from curation.hashing import mix64, unmix64, xxh64
from curation.schema import Verdicts
from curation.text.characters import properties
from curation.text.lines import characters
from curation.text.words import code_point, is_dense

#: Hash of the lines that are neither counted nor removed: blank ones and too short ones.
IGNORED = np.uint64(0)

#: In place of a document: one of an earlier run has the line.
NOBODY = np.uint64(2**64 - 1)

_LINE_FEED = np.uint8(0x0A)


class LineHashes(NamedTuple):
    """Lines of document i: entries `doc_offsets[i]:doc_offsets[i + 1]`."""

    hashes: Ids  # [lines], IGNORED or a hash
    doc_offsets: npt.NDArray[np.int64]  # [documents + 1]
    spans: npt.NDArray[np.int64]  # [lines, 2], bytes of each line in its document, feed excluded


class LineCounts(NamedTuple):
    hashes: Ids  # [unique lines], ascending
    counts: npt.NDArray[np.int64]  # [unique lines]
    first: Ids  # [unique lines], smallest doc64 of the documents that have the line
    bytes: npt.NDArray[np.int64]  # [unique lines], UTF-8 bytes of all its occurrences


class FrequentLines(NamedTuple):
    """The lines to remove."""

    hashes: Ids  # [lines], ascending
    first: Ids  # [lines], the document that keeps the line where `keep_first` is set, or NOBODY


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
    characters_left: npt.NDArray[np.int64]  # [documents]


def line_hashes(texts: Texts, settings: LineDedupSettings, scopes: Ids | None = None) -> LineHashes:
    """Hash every line of every text, in text order.

    Args:
        scopes: [documents], for example of `language_scopes`; equal lines of different scopes have
            different hashes. None: one scope.
    """
    return _line_hashes(text_buffers(texts), settings, scopes)


def in_buckets(hashes: Ids, buckets: npt.NDArray[np.int64]) -> Ids:
    """Hashes of lines, each that of its bucket's own: IGNORED stays. Both [lines].

    `out_of_buckets` gives back the hashes that all buckets share.
    """
    own = mix64(hashes ^ mix64(buckets.astype(np.uint64)))
    return np.where(hashes == IGNORED, IGNORED, np.maximum(own, np.uint64(1)))


def out_of_buckets(hashes: Ids, buckets: npt.NDArray[np.int64]) -> Ids:
    """The hashes that `in_buckets` was given."""
    return unmix64(hashes) ^ mix64(buckets.astype(np.uint64))


def _line_hashes(
    buffers: TextBuffers, settings: LineDedupSettings, scopes: Ids | None
) -> LineHashes:
    rules = settings.normalization
    table = character_table(rules)
    doc_offsets, spans = _find_lines(buffers.data, buffers.offsets)
    hashes = _hash_lines(
        buffers.data,
        buffers.offsets,
        doc_offsets,
        spans,
        *table[:5],
        rules.whitespace == "collapse",
        settings.min_line_characters,
        np.empty(scratch_bytes(buffers, table.growth), np.uint8),
    )
    if scopes is not None:
        scoped = within(hashes, np.repeat(scopes, np.diff(doc_offsets)))
        hashes = np.where(hashes == IGNORED, IGNORED, np.maximum(scoped, np.uint64(1)))
    return LineHashes(hashes, doc_offsets, spans)


def assign_buckets(id_hashes: Ids, documents: int, bucket_documents: int) -> npt.NDArray[np.int64]:
    """Bucket of each document -> int64 [n], from a hash of its id.

    `documents` of one language (or of all) are spread evenly over the fewest buckets of at most
    about `bucket_documents` documents; which documents share one depends on their ids alone.
    """
    buckets = max(1, -(-documents // bucket_documents))
    return (mix64(id_hashes) % np.uint64(buckets)).astype(np.int64)


def count_lines(lines: LineHashes, doc64: Ids, settings: LineDedupSettings) -> LineCounts:
    """How often each line occurs, IGNORED ones left out.

    Args:
        doc64: [documents] identifiers of the documents of `lines`.
    """
    documents = np.repeat(doc64.astype(np.uint64), np.diff(lines.doc_offsets))
    counted = lines.hashes != IGNORED
    sizes = (lines.spans[:, 1] - lines.spans[:, 0])[counted].astype(np.uint64)
    hashes, owners, sizes = sort_with(lines.hashes[counted], documents[counted], sizes)
    starts = run_starts(hashes)
    if not len(starts):
        return merge_counts([])
    counts = run_lengths(starts, len(hashes))
    if settings.count_per_document:
        new = np.ones(len(hashes), np.int64)
        new[1:] = (hashes[1:] != hashes[:-1]) | (owners[1:] != owners[:-1])
        counts = np.add.reduceat(new, starts)
    held = np.add.reduceat(sizes.astype(np.int64), starts)
    return LineCounts(hashes[starts], counts, owners[starts], held)


def merge_counts(parts: Sequence[LineCounts]) -> LineCounts:
    """Sum of counts of disjoint sets of documents, in whatever order."""
    if not parts:
        none = np.zeros(0, np.uint64)
        return LineCounts(none, np.zeros(0, np.int64), none, np.zeros(0, np.int64))
    places = np.arange(sum(len(part.hashes) for part in parts), dtype=np.uint64)
    hashes, rows = sort_pairs(np.concatenate([part.hashes for part in parts]), places)
    starts = run_starts(hashes)
    if not len(starts):
        return merge_counts([])
    counts = np.concatenate([part.counts for part in parts])[rows]
    first = np.concatenate([part.first for part in parts])[rows]
    held = np.concatenate([part.bytes for part in parts])[rows]
    return LineCounts(
        hashes[starts],
        np.add.reduceat(counts, starts),
        np.minimum.reduceat(first, starts),
        np.add.reduceat(held, starts),
    )


def add_known(counts: LineCounts, hashes: Ids, known: npt.NDArray[np.int64]) -> LineCounts:
    """Counts with those of an earlier run added to the lines that are in both.

    Args:
        hashes, known: [lines of the earlier run], each line once, in any order.
    """
    places = np.searchsorted(counts.hashes, hashes)
    found = np.flatnonzero(places < len(counts.hashes))
    found = found[counts.hashes[places[found]] == hashes[found]]
    total, first = counts.counts.copy(), counts.first.copy()
    total[places[found]] += known[found]
    first[places[found]] = NOBODY
    return counts._replace(counts=total, first=first)


def frequent_lines(counts: LineCounts, settings: LineDedupSettings) -> FrequentLines:
    """The lines seen more than `max_occurrences` times."""
    frequent = counts.counts > settings.max_occurrences
    return FrequentLines(counts.hashes[frequent], counts.first[frequent])


def remove_lines(
    texts: Texts,
    doc64: Ids,
    frequent: FrequentLines,
    settings: LineDedupSettings,
    scopes: Ids | None = None,
    buckets: npt.NDArray[np.int64] | None = None,
) -> LineRemoval:
    """Cut the frequent lines out of documents.

    Args:
        texts, doc64: [documents].
        frequent: the frequent lines of all scopes and buckets, by ascending hash.
        scopes: [documents], as `line_hashes` had them.
        buckets: [documents], where hashes were put in buckets.
    """
    buffers = text_buffers(texts)
    lines = _line_hashes(buffers, settings, scopes)
    if buckets is not None:
        of_lines = np.repeat(buckets, np.diff(lines.doc_offsets))
        lines = lines._replace(hashes=in_buckets(lines.hashes, of_lines))
    lost = _is_frequent(lines, doc64, frequent, settings.keep_first)
    out, out_offsets, cuts, cut_rows, removed, left = _cut_lines(
        buffers.data, buffers.offsets, lines.doc_offsets, lines.spans, lost
    )
    cut_offsets, cut_data = _copy_spans(buffers.data, cuts)
    return LineRemoval(
        from_buffers(out_offsets, out),
        cut_rows,
        cuts[:, 0] - buffers.offsets[cut_rows],
        from_buffers(cut_offsets, cut_data),
        removed,
        left,
    )


def verdicts(removal: LineRemoval, settings: LineDedupSettings) -> Verdicts:
    """Remove the documents that lost lines and have too few characters left.

    A letter of Han, kana or bopomofo counts as several characters, being as much text.
    """
    offsets, data = text_buffers(removal.texts)
    dense = _dense_letters(data, offsets, properties())
    left = removal.characters_left + dense * (settings.characters_per_letter - 1)
    short = (removal.characters_removed > 0) & (left < settings.min_characters)
    return Verdicts.where(
        short, "lines.too_short", left.astype(np.float64), float(settings.min_characters)
    )


def _is_frequent(
    lines: LineHashes, doc64: Ids, frequent: FrequentLines, keep_first: bool
) -> npt.NDArray[np.bool_]:
    lost = np.zeros(len(lines.hashes), bool)
    if not len(frequent.hashes):
        return lost
    places = np.searchsorted(frequent.hashes, lines.hashes)
    places[places == len(frequent.hashes)] = 0
    lost = (frequent.hashes[places] == lines.hashes) & (lines.hashes != IGNORED)
    if not keep_first:
        return lost
    owners = np.repeat(doc64.astype(np.uint64), np.diff(lines.doc_offsets))
    spared = np.flatnonzero(lost & (frequent.first[places] == owners))
    # One document keeps the line, and there only its first occurrence stays.
    hashes, positions = sort_pairs(lines.hashes[spared], spared.astype(np.uint64))
    lost[positions[run_starts(hashes)].astype(np.int64)] = False
    return lost


@numba.njit(cache=True, nogil=True)
def _find_lines(data, text_offsets):  # type: ignore[no-untyped-def]
    documents = len(text_offsets) - 1
    doc_offsets = np.zeros(documents + 1, np.int64)
    for d in range(documents):
        lines = 0
        if text_offsets[d + 1] > text_offsets[d]:  # an empty text has no line
            lines = 1
            for i in range(text_offsets[d], text_offsets[d + 1]):
                lines += data[i] == _LINE_FEED
        doc_offsets[d + 1] = doc_offsets[d] + lines
    spans = np.empty((doc_offsets[-1], 2), np.int64)
    line = 0
    for d in range(documents):
        first, end = text_offsets[d], text_offsets[d + 1]
        if end == first:
            continue
        start = first
        for i in range(first, end):
            if data[i] == _LINE_FEED:
                spans[line, 0] = start - first
                spans[line, 1] = i - first
                start = i + 1
                line += 1
        spans[line, 0] = start - first
        spans[line, 1] = end - first
        line += 1
    return doc_offsets, spans


@numba.njit(cache=True, nogil=True)
def _dense_letters(data, text_offsets, properties):  # type: ignore[no-untyped-def]
    """Letters of Han, kana and bopomofo in each document -> int64 [documents]."""
    letters = np.zeros(len(text_offsets) - 1, np.int64)
    for d in range(len(letters)):
        i = text_offsets[d]
        while i < text_offsets[d + 1]:
            c, size = code_point(data, i)
            letters[d] += is_dense(properties[c])
            i += size
    return letters


@numba.njit(cache=True, nogil=True)
def _hash_lines(  # type: ignore[no-untyped-def]
    data,
    text_offsets,
    doc_offsets,
    spans,
    kind,
    ascii_map,
    entry,
    offsets,
    replacements,
    collapse,
    min_characters,
    scratch,
):
    hashes = np.zeros(len(spans), np.uint64)
    for d in range(len(text_offsets) - 1):
        base = text_offsets[d]
        for line in range(doc_offsets[d], doc_offsets[d + 1]):
            start = base + spans[line, 0]
            end = base + spans[line, 1]
            size = write_normalized(
                data,
                start,
                end,
                kind,
                ascii_map,
                entry,
                offsets,
                replacements,
                collapse,
                scratch,
            )
            if size > 0 and characters(scratch, 0, size) >= min_characters:
                # The one hash in 2^64 that means IGNORED moves aside.
                hashes[line] = max(xxh64(scratch, 0, size, np.uint64(0)), np.uint64(1))
    return hashes


@numba.njit(cache=True, nogil=True)
def _cut_lines(data, text_offsets, doc_offsets, spans, lost):  # type: ignore[no-untyped-def]
    documents = len(text_offsets) - 1
    total = 0
    for line in range(len(lost)):
        total += lost[line]
    cuts = np.empty((total, 2), np.int64)  # bytes of `data`
    cut_rows = np.empty(total, np.int64)
    removed = np.zeros(documents, np.int64)
    left = np.zeros(documents, np.int64)
    out = np.empty(text_offsets[-1] - text_offsets[0], np.uint8)
    out_offsets = np.zeros(documents + 1, np.int64)
    cut = 0
    o = 0
    for d in range(documents):
        base, end = text_offsets[d], text_offsets[d + 1]
        last_kept = doc_offsets[d + 1] - 1
        while last_kept >= doc_offsets[d] and lost[last_kept]:
            last_kept -= 1
        at = base  # start of what is not yet copied
        for line in range(doc_offsets[d], doc_offsets[d + 1]):
            if not lost[line]:
                continue
            # With no kept line after it, a line goes with the feed before it, if one is left.
            if line < last_kept or last_kept < doc_offsets[d]:
                start = base + spans[line, 0]
                stop = min(base + spans[line, 1] + 1, end)
            else:
                start = base + spans[line, 0] - 1
                stop = base + spans[line, 1]
            for i in range(at, start):
                out[o] = data[i]
                o += 1
            at = stop
            cuts[cut, 0] = start
            cuts[cut, 1] = stop
            cut_rows[cut] = d
            cut += 1
            removed[d] += characters(data, start, stop)
        for i in range(at, end):
            out[o] = data[i]
            o += 1
        out_offsets[d + 1] = o
        left[d] = characters(out, out_offsets[d], o)
    return out[:o], out_offsets, cuts, cut_rows, removed, left


@numba.njit(cache=True, nogil=True)
def _copy_spans(data, spans):  # type: ignore[no-untyped-def]
    """Text offsets and bytes of the given spans, laid end to end."""
    offsets = np.zeros(len(spans) + 1, np.int64)
    for i in range(len(spans)):
        offsets[i + 1] = offsets[i] + spans[i, 1] - spans[i, 0]
    out = np.empty(offsets[-1], np.uint8)
    for i in range(len(spans)):
        for k in range(spans[i, 1] - spans[i, 0]):  # slices would treble the time to compile
            out[offsets[i] + k] = data[spans[i, 0] + k]
    return offsets, out
