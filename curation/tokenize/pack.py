"""Lay documents into sequences of equal length, keeping where each document went."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

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


def concatenate(lengths: I64, context_length: int) -> Spans:
    """Documents end to end, cut every `context_length` tokens; only the last sequence is short."""
    ends = np.cumsum(lengths)
    starts = ends - lengths
    cuts = np.where(lengths > 0, (ends - 1) // context_length - starts // context_length + 1, 0)
    documents = np.repeat(np.arange(len(lengths)), cuts)
    nth = np.arange(len(documents)) - np.repeat(np.cumsum(cuts) - cuts, cuts)
    sequences = starts[documents] // context_length + nth
    begin = np.maximum(starts[documents], sequences * context_length)
    end = np.minimum(ends[documents], (sequences + 1) * context_length)
    offsets = begin - starts[documents]
    return Spans(sequences, begin - sequences * context_length, end - begin, documents, offsets)


@kernel
def _best_fit(lengths, order, capacity):  # type: ignore[no-untyped-def]
    """Bin and start of every piece, placed in the given order into the fullest bin with room.

    A tree over room (leaf r: is there a bin with r tokens free?) finds that bin in O(log capacity);
    bins of equal room are a stack.
    """
    leaves = 1
    while leaves < capacity + 1:
        leaves *= 2
    tree = np.zeros(2 * leaves, np.uint8)
    tops = np.full(capacity + 1, -1, np.int64)
    below = np.empty(len(lengths), np.int64)
    bins = np.empty(len(lengths), np.int64)
    starts = np.empty(len(lengths), np.int64)
    count = 0
    for piece in order:
        need = lengths[piece]
        # The least room that is enough: climb from leaf `need` to the first subtree on its right.
        node = leaves + need
        if tree[node] == 0:
            while node > 1 and (node & 1 == 1 or tree[node + 1] == 0):
                node >>= 1
            if node > 1:
                node += 1
                while node < leaves:
                    node = 2 * node if tree[2 * node] == 1 else 2 * node + 1
        if node > 1:
            room = node - leaves
            chosen = tops[room]
            tops[room] = below[chosen]
            if tops[room] < 0:
                tree[node] = 0
                node >>= 1
                while node >= 1:
                    tree[node] = tree[2 * node] | tree[2 * node + 1]
                    node >>= 1
        else:
            room = np.int64(capacity)
            chosen = np.int64(count)
            count += 1
        bins[piece] = chosen
        starts[piece] = capacity - room
        room -= need
        if room > 0:
            below[chosen] = tops[room]
            tops[room] = chosen
            node = leaves + room
            while node >= 1 and tree[node] == 0:
                tree[node] = 1
                node >>= 1
    return bins, starts, count


def best_fit(lengths: I64, context_length: int) -> Spans:
    """Best-fit decreasing: a document is cut only where it is longer than a sequence.

    Whole sequences' worth of a long document are packed alone; remainders and shorter documents
    go, longest first, into the sequence with the least room that is enough (Ding et al. 2024,
    arXiv 2404.10830). Sequences come in order of their first document.
    """
    pieces = -(-lengths // context_length)
    documents = np.repeat(np.arange(len(lengths)), pieces)
    nth = np.arange(len(documents)) - np.repeat(np.cumsum(pieces) - pieces, pieces)
    offsets = nth * context_length
    sizes = np.minimum(lengths[documents] - offsets, context_length)
    order = np.argsort(-sizes, kind="stable")
    bins, starts, count = _best_fit(sizes, order, context_length)
    first = np.full(count, len(documents), np.int64)
    np.minimum.at(first, bins, np.arange(len(documents)))
    place = np.empty(count, np.int64)
    place[np.argsort(first, kind="stable")] = np.arange(count)
    sequences = place[bins]
    order = np.lexsort((starts, sequences))
    return Spans(sequences[order], starts[order], sizes[order], documents[order], offsets[order])


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
