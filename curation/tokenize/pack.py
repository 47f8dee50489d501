"""Lay documents into sequences of equal length, keeping where each document went."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from curation.arrow import repeated
from curation.compiled import borrowing, kernel

I64 = npt.NDArray[np.int64]


class Spans(NamedTuple):
    """Runs of a document's tokens inside a sequence, sorted by sequence, then start.

    All arrays are int64 [spans]; `documents` are positions in the lengths that were packed.
    """

    sequences: I64
    starts: I64  # token within the sequence
    lengths: I64
    documents: I64
    offsets: I64  # first token of the span within the document

    @property
    def sequence_count(self) -> int:
        return int(self.sequences[-1]) + 1 if len(self.sequences) else 0


#: In how many parts of the order a shard is packed, for each copy of the document that has most.
_FINEST = 8
#: Sequences more than the tokens need, as a share: if there are more, parts are made larger.
_MOST_PADDING = 0.003
_NONE = np.int64(np.iinfo(np.int64).max)


class Copies(NamedTuple):
    """Which documents are copies of one another, and so must not share a sequence."""

    groups: I64  # [documents] number of the text that each is a copy of
    counts: I64  # [groups] its copies

    @classmethod
    def of(cls, groups: I64 | None, documents: int) -> Copies:
        """Return the copies in groups; without groups none is a copy of another."""
        if groups is None:
            return cls(np.arange(documents), np.ones(documents, np.int64))
        return cls(groups, np.bincount(groups))


def _apart(
    pack: Callable[[int], tuple[I64, I64, int, int]], sequences: int
) -> tuple[I64, I64, int, int]:
    """Pack so that only of texts with more copies than there are sequences two share one.

    `pack(limit)` lets copies of texts with more of them share a sequence, if nothing else has room;
    its last two results are the sequences, and the fewest copies of a text of which two do.
    """
    packed = pack(sequences)
    while packed[3] <= packed[2]:
        packed = pack(packed[2])
    return packed


@kernel
def _end_to_end(lengths, copies, capacity, limit):  # type: ignore[no-untyped-def]
    """First token of every document, their bins (unused), bins, fewest copies (see `_apart`).

    A document whose copy is in the bin that it would begin in waits for the next one.
    """
    starts = np.zeros(len(lengths), np.int64)
    waiting = np.empty(len(lengths), np.int64)
    last = np.full(len(copies.counts), -1, np.int64)  # bin with a copy of each text
    first = waits = following = at = 0
    fewest = _NONE
    while following < len(lengths) or first < waits:
        over = following == len(lengths)
        if first < waits and (over or last[copies.groups[waiting[first]]] < at // capacity):
            document = waiting[first]
            first += 1
        else:
            document = following
            following += 1
        group = copies.groups[document]
        if last[group] >= at // capacity and lengths[document] > 0:
            if not over:
                waiting[waits] = document
                waits += 1
                continue
            if copies.counts[group] > limit:
                fewest = min(fewest, copies.counts[group])
            else:
                at = (at // capacity + 1) * capacity
        starts[document] = at
        at += lengths[document]
        if lengths[document] > 0:
            last[group] = (at - 1) // capacity
    return starts, starts, -(-at // capacity), fewest


def concatenate(lengths: I64, context_length: int, groups: I64 | None = None) -> Spans:
    """Documents end to end, cut every `context_length` tokens; only the last sequence is short.

    A document whose copy (`groups`, see `Copies`) is in the sequence that it would begin in comes
    after the next ones. Where there are no others left, the sequence stays short.
    """
    copies = Copies.of(groups, len(lengths))
    needed = -(-int(lengths.sum()) // context_length)
    starts, _, _, _ = _apart(lambda n: _end_to_end(lengths, copies, context_length, n), needed)
    ends = starts + lengths
    cuts = np.where(lengths > 0, (ends - 1) // context_length - starts // context_length + 1, 0)
    documents, nth = repeated(cuts)
    sequences = starts[documents] // context_length + nth
    begin = np.maximum(starts[documents], sequences * context_length)
    end = np.minimum(ends[documents], (sequences + 1) * context_length)
    order = np.argsort(begin, kind="stable")
    offsets = begin - starts[documents]
    columns = sequences, begin - sequences * context_length, end - begin, documents, offsets
    return Spans(*(column[order] for column in columns))


class _Pieces(NamedTuple):
    """Parts of documents that are not cut further, as they are packed: int64 [pieces] each."""

    sizes: I64
    groups: I64
    parts: I64  # of the order of documents, in which each is; ascending


class _Bins(NamedTuple):
    """Bins by room: a tree that finds the least room, and of bins of equal room a stack."""

    tree: npt.NDArray[np.uint8]  # leaf r: is there a bin with r tokens free?
    tops: I64  # [room]
    below: I64  # [bins]
    opened: I64  # [bins] part of the order in which each has its first piece
    barred: I64  # [bins] last piece of which each has a copy


@borrowing
def _empty(tree, node):  # type: ignore[no-untyped-def]
    """Take the leaf of a room that no bin has any more from the tree."""
    tree[node] = 0
    node >>= 1
    while node >= 1:
        tree[node] = tree[2 * node] | tree[2 * node + 1]
        node >>= 1


@borrowing
def _take(bins, need, part, piece):  # type: ignore[no-untyped-def]
    """Take out a bin with the least room that is enough, not barred to the piece: bin, room.

    Bins that were opened before the last part are closed for good. Bin -1: there is none.
    """
    leaves = len(bins.tree) // 2
    while True:
        # The least room that is enough: climb from its leaf to the first subtree on its right.
        node = leaves + need
        if bins.tree[node] == 0:
            while node > 1 and (node & 1 == 1 or bins.tree[node + 1] == 0):
                node >>= 1
            if node <= 1:
                return -1, 0
            node += 1
            while node < leaves:
                node = 2 * node if bins.tree[2 * node] == 1 else 2 * node + 1
        room = node - leaves
        above, chosen = -1, bins.tops[room]
        while chosen >= 0:
            closed = bins.opened[chosen] < part - 1
            if not closed and bins.barred[chosen] == piece:
                above = chosen
            else:
                if above >= 0:
                    bins.below[above] = bins.below[chosen]
                else:
                    bins.tops[room] = bins.below[chosen]
                if not closed:
                    break
            chosen = bins.below[chosen]
        if bins.tops[room] < 0:
            _empty(bins.tree, node)
        if chosen >= 0:
            return chosen, room
        need = room + 1


@kernel
def _best_fit(pieces, counts, capacity, limit):  # type: ignore[no-untyped-def]
    """Bin and start of every piece, bins, fewest copies (see `_apart`).

    Each goes into the fullest bin with room that has no copy of it, found in O(log capacity).
    """
    leaves = 1
    while leaves < capacity + 1:
        leaves *= 2
    size = len(pieces.sizes)
    bins = _Bins(
        np.zeros(2 * leaves, np.uint8),
        np.full(capacity + 1, -1, np.int64),
        np.empty(size, np.int64),
        np.empty(size, np.int64),
        np.full(size, -1, np.int64),
    )
    placed, starts = np.empty(size, np.int64), np.empty(size, np.int64)
    latest, before = np.full(len(counts), -1, np.int64), np.empty(size, np.int64)
    count, fewest = 0, _NONE
    for piece in range(size):
        need, group, part = pieces.sizes[piece], pieces.groups[piece], pieces.parts[piece]
        other = latest[group] if counts[group] > 1 else -1
        while other >= 0 and pieces.parts[other] >= part - 1:  # earlier ones are in closed bins
            bins.barred[placed[other]] = piece
            other = before[other]
        chosen, room = _take(bins, need, part, piece)
        if chosen < 0 and counts[group] > limit:
            chosen, room = _take(bins, need, part, -2)
            if chosen >= 0:
                fewest = min(fewest, counts[group])
        if chosen < 0:
            chosen, room = count, capacity
            bins.opened[chosen] = part
            count += 1
        placed[piece], starts[piece] = chosen, capacity - room
        if counts[group] > 1:
            before[piece], latest[group] = latest[group], piece
        room -= need
        if room > 0:
            bins.below[chosen] = bins.tops[room]
            bins.tops[room] = chosen
            node = leaves + room
            while node >= 1 and bins.tree[node] == 0:
                bins.tree[node] = 1
                node >>= 1
    return placed, starts, count, fewest


def best_fit(lengths: I64, context_length: int, groups: I64 | None = None) -> Spans:
    """Best-fit decreasing: a document is cut only where it is longer than a sequence.

    Whole sequences' worth of a long document are packed alone; remainders and shorter documents
    go, longest first, into the sequence with the least room that is enough (Ding et al. 2024,
    arXiv 2404.10830) and no copy of theirs (`groups`, see `Copies`). Sequences come in order of
    their first document. Where there are copies the order is packed part by part, so that what is
    far apart in it stays so: a sequence has documents of two successive parts at most.
    """
    copies = Copies.of(groups, len(lengths))
    documents, nth = repeated(-(-lengths // context_length))
    sizes = np.minimum(lengths[documents] - nth * context_length, context_length)
    total, most = int(lengths.sum()), int(copies.counts.max(initial=1))
    needed = -(-total // context_length)
    before = np.cumsum(lengths) - lengths
    best: tuple[I64, tuple[I64, I64, int, int]] | None = None
    for divided in [_FINEST * most >> k for k in range(7) if most > 1] or [1]:
        parts = (before * divided // max(total, 1))[documents]
        order = np.argsort(parts * (context_length + 1) - sizes, kind="stable")
        pieces = _Pieces(sizes[order], copies.groups[documents[order]], parts[order])
        packed = _apart(partial(_best_fit, pieces, copies.counts, context_length), needed)
        if best is None or packed[2] < best[1][2]:
            best = order, packed
        if best[1][2] <= needed * (1 + _MOST_PADDING):
            break
    assert best is not None
    order, (bins, starts, count, _) = best
    first = np.full(count, len(documents), np.int64)
    np.minimum.at(first, bins, order)
    place = np.empty(count, np.int64)
    place[np.argsort(first, kind="stable")] = np.arange(count)
    sequences = place[bins]
    sorted_ = np.lexsort((starts, sequences))
    order = order[sorted_]
    return Spans(
        sequences[sorted_],
        starts[sorted_],
        sizes[order],
        documents[order],
        nth[order] * context_length,
    )


class Tokens(NamedTuple):
    """Token ids of documents, without begin and end tokens."""

    ids: npt.NDArray[np.uint32]
    starts: I64  # [documents] into `ids`
    counts: I64


class Marks(NamedTuple):
    """Tokens around documents: before each, after each (negative: none), and behind the last."""

    begin: int
    end: int
    pad: int


@borrowing
def fill(rows, first_row, spans, tokens, marks):  # type: ignore[no-untyped-def]
    """Write the spans' tokens into rows [sequences, context_length], padding what is left."""
    rows[:] = marks.pad
    shift = np.int64(1 if marks.begin >= 0 else 0)
    for k in range(len(spans.sequences)):
        row = rows[spans.sequences[k] - first_row]
        document = spans.documents[k]
        at = spans.starts[k]
        for j in range(spans.lengths[k]):
            place = spans.offsets[k] + j - shift
            if place < 0:
                row[at + j] = marks.begin
            elif place < tokens.counts[document]:
                row[at + j] = tokens.ids[tokens.starts[document] + place]
            else:
                row[at + j] = marks.end
