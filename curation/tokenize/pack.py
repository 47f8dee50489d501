"""Lay documents into sequences of equal length, keeping where each document went."""

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from curation.arrow import repeated
from curation.compiled import Int, Int32s, Int64s, borrowing, kernel

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


#: In how many parts of the order a shard is packed, for each copy of the text that has most.
_FINEST = 8
#: Sequences more than the tokens need, as a share: if there are more, parts are made larger.
_MOST_PADDING = 0.003


def together(sequences: I64, groups: I64) -> I64:
    """Return the places of spans whose sequence has an earlier one of their group: int64."""
    copies = np.flatnonzero(np.bincount(groups)[groups] > 1)
    pairs = sequences[copies] * (groups.max(initial=0) + 1) + groups[copies]
    order = np.argsort(pairs, kind="stable")
    return np.sort(copies[order[1:][np.diff(pairs[order]) == 0]])


class _Bins(NamedTuple):
    """Bins by room: a tree that finds the least room, and of bins of equal room a stack."""

    tree: npt.NDArray[np.uint8]  # leaf r: is there a bin with r tokens free?
    tops: I64  # [room]
    below: I64  # [bins]
    opened: I64  # [bins] part of the order in which each has its first piece
    barred: I64  # [bins] last piece of which each has a copy


@borrowing
def _take(bins: _Bins, need: Int, part: Int, piece: Int) -> tuple[Int, Int]:
    """Take out a bin with the least room that is enough, not barred to the piece: bin, room.

    Bins that were opened before the last part are closed for good. Bin -1: there is none.
    """
    leaves = len(bins.tree) // 2
    node = leaves + need
    while True:
        # The least room that is enough: climb from its leaf to the first subtree on its right.
        if bins.tree[node] == 0:
            while node > 1 and (node & 1 == 1 or bins.tree[node + 1] == 0):
                node >>= 1
            if node <= 1:
                return -1, 0
            node += 1
            while node < leaves:
                node = 2 * node if bins.tree[2 * node] == 1 else 2 * node + 1
        room, above = node - leaves, -1
        chosen = bins.tops[room]
        while chosen >= 0:
            closed = bins.opened[chosen] < part - 1
            if not closed and bins.barred[chosen] == piece:
                above = chosen
            elif above >= 0:
                bins.below[above] = bins.below[chosen]
            else:
                bins.tops[room] = bins.below[chosen]
            if not closed and above != chosen:
                break
            chosen = bins.below[chosen]
        leaf = node
        while node >= 1 and bins.tops[room] < 0:
            bins.tree[node] = bins.tree[2 * node] | bins.tree[2 * node + 1] if node < leaves else 0
            node >>= 1
        if chosen >= 0:
            return chosen, room
        node = leaf + 1


@kernel
def _best_fit(
    pieces: tuple[Int64s, Int64s, Int64s], counts: Int64s, capacity: Int, limit: Int
) -> tuple[Int64s, Int64s, Int]:
    """Bin and start of every piece, and the number of bins.

    Pieces have a size, a group and a part of the order. Each goes into the fullest bin with room
    that has no copy of it, found in O(log capacity). Only texts with more copies than `limit` share
    a bin, if no other has room.
    """
    sizes, groups, parts = pieces
    leaves = 1
    while leaves < capacity + 1:
        leaves *= 2
    bins = _Bins(
        np.zeros(2 * leaves, np.uint8),
        np.full(capacity + 1, -1, np.int64),
        np.empty(len(sizes), np.int64),
        np.empty(len(sizes), np.int64),
        np.full(len(sizes), -1, np.int64),
    )
    placed, starts = np.empty(len(sizes), np.int64), np.empty(len(sizes), np.int64)
    latest, before = np.full(len(counts), -1, np.int64), np.empty(len(sizes), np.int64)
    count = 0
    for piece in range(len(sizes)):
        group, part = groups[piece], parts[piece]
        other = latest[group] if counts[group] > 1 else -1
        while other >= 0 and parts[other] >= part - 1:  # earlier ones are in closed bins
            bins.barred[placed[other]] = piece
            other = before[other]
        chosen, room = _take(bins, sizes[piece], part, piece)
        if chosen < 0 and counts[group] > limit:
            chosen, room = _take(bins, sizes[piece], part, -2)
        if chosen < 0:
            chosen, room = count, capacity
            bins.opened[chosen] = part
            count += 1
        placed[piece], starts[piece] = chosen, capacity - room
        if counts[group] > 1:
            before[piece], latest[group] = latest[group], piece
        room -= sizes[piece]
        if room > 0:
            bins.below[chosen], bins.tops[room] = bins.tops[room], chosen
            node = leaves + room
            while node >= 1 and bins.tree[node] == 0:
                bins.tree[node] = 1
                node >>= 1
    return placed, starts, count


def best_fit(lengths: I64, context_length: int, groups: I64 | None = None) -> Spans:
    """Best-fit decreasing: a document is cut only where it is longer than a sequence.

    Whole sequences' worth of a long document are packed alone; remainders and shorter documents
    go, longest first, into the sequence with the least room that is enough (Ding et al. 2024,
    arXiv 2404.10830) and no copy of theirs: documents of a group are copies of one text. Sequences
    come in order of their first document. Where there are copies the order is packed part by part,
    and a sequence has documents of two successive parts at most, so what is far apart stays so.
    """
    groups = np.arange(len(lengths)) if groups is None else groups
    counts = np.bincount(groups)
    documents, nth = repeated(-(-lengths // context_length))
    sizes = np.minimum(lengths[documents] - nth * context_length, context_length)
    total, most = int(lengths.sum()), int(counts.max(initial=1))
    needed = -(-total // context_length)
    found = []
    for divided in [_FINEST * most >> k for k in range(7) if most > 1] or [1]:
        parts = ((np.cumsum(lengths) - lengths) * divided // max(total, 1))[documents]
        order = np.argsort(parts * (context_length + 1) - sizes, kind="stable")
        pieces = sizes[order], groups[documents[order]], parts[order]
        count, limit = needed, -1
        while count > limit:
            limit = count
            bins, starts, count = _best_fit(pieces, counts, context_length, limit)
            if most <= limit or (counts[pieces[1][together(bins, pieces[1])]] > count).all():
                break
        found.append((order, bins, starts, count))
        if count <= needed * (1 + _MOST_PADDING):
            break
    order, bins, starts, count = min(found, key=lambda packed: packed[-1])
    first = np.full(count, len(documents), np.int64)
    np.minimum.at(first, bins, order)
    place = np.empty(count, np.int64)
    place[np.argsort(first, kind="stable")] = np.arange(count)
    sequences = place[bins]
    sorted_ = np.lexsort((starts, sequences))
    order = order[sorted_]
    offsets = nth[order] * context_length
    return Spans(sequences[sorted_], starts[sorted_], sizes[order], documents[order], offsets)


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
def fill(rows: Int32s, first_row: Int, spans: Spans, tokens: Tokens, marks: Marks) -> None:
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
