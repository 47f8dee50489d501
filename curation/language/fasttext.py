"""Supervised fastText models over Arrow text, without Python strings and without its library.

Bojanowski et al., Enriching Word Vectors with Subword Information (2017), and Joulin et al., Bag of
Tricks for Efficient Text Classification (2016): the mean of the rows of a line's words and of their
character n-grams, times the output matrix. Compiled here because the library takes one Python
string at a time, holds the interpreter's lock, and expands quantised rows again at every look-up;
its probabilities are the same.
"""

from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from curation.arrow import Texts, text_buffers
from curation.bytes.code_points import is_tail
from curation.bytes.hash_tables import filled, has_bit, slot_of_bytes
from curation.bytes.search import same
from curation.compiled import (
    Bool,
    Bools,
    Bytes,
    Float32s,
    Float64s,
    Int,
    Int32s,
    Int64s,
    borrowing,
    inlined,
    kernel,
    merged,
)
from curation.language.fasttext_file import PREFIX, FastTextFile, read_fasttext

_OFFSET = np.uint32(2166136261)
_PRIME = np.uint32(16777619)
_BIGRAM = np.uint64(116049371)
_BOW, _EOW = np.uint8(ord("<")), np.uint8(ord(">"))
_EOS = b"</s>"
_EPSILON = 1e-5  # what the library adds before it takes logarithms
_TOGETHER = 256  # lines whose scores fit into a cache
_AT_ONCE = 4  # rows that are added
_LABEL = np.frombuffer(PREFIX.encode(), np.uint8)

Floats = npt.NDArray[np.float32]


class Buckets(NamedTuple):
    """Rows of hashed n-grams."""

    total: int
    words: int  # rows of words come before those of n-grams
    pruned: npt.NDArray[np.int32]  # [total] row of each, without `words`, or -1; empty: its number
    kept: npt.NDArray[np.uint64]  # a bit for each, whether it has a row; empty if all have


class Inputs(NamedTuple):
    """What the rows of a line's words and character n-grams are found and read by."""

    slots: npt.NDArray[np.int32]  # [power of two] word by hash, probed linearly, -1 empty
    word_starts: npt.NDArray[np.int64]  # [words + 1]
    word_bytes: npt.NDArray[np.uint8]
    end_row: int  # row of the end of a line, -1 where the model has none
    buckets: Buckets
    rows: Floats  # [words + n-gram rows, d]
    min_n: int
    max_n: int
    word_ngrams: int


class Tree(NamedTuple):
    """Children of the inner nodes of the tree of loss `hs`."""

    left: npt.NDArray[np.int32]  # [labels - 1]
    right: npt.NDArray[np.int32]


@dataclass(frozen=True, eq=False)
class FastText:
    """A loaded fastText classifier; `probabilities` may be called by several threads."""

    file: FastTextFile
    inputs: Inputs
    outputs: Floats  # [d, labels], so that the labels of a line are summed next to each other
    tree: Tree

    @property
    def labels(self) -> tuple[str, ...]:
        return self.file.labels

    def probabilities(self, lines: Texts) -> Floats:
        """Probability of every label for every line: float32 [lines, labels].

        A line holds no line feed. All are 0 for a line of which the model knows nothing. With loss
        `ova` or `ns` labels are independent and do not add up to 1.
        """
        offsets, data = text_buffers(lines)
        file = self.file
        hidden = np.zeros((len(offsets) - 1, file.rows.shape[1]), np.float32)
        known = np.zeros(len(offsets) - 1, np.bool_)
        longest = int(np.diff(offsets).max(initial=0))
        # of each byte, and of the ends of each word: itself and its n-grams
        found = np.empty((2 * longest + 4) * (1 + file.max_n + file.word_ngrams), np.int64)
        hashes = np.empty(longest + 2, np.int32)
        word = np.empty(longest + 3, np.uint8)
        _hidden(offsets, data, self.inputs, found, hashes, word, hidden, known)
        out = np.zeros((len(hidden), len(file.labels)), np.float32)
        for begin in range(0, len(hidden), _TOGETHER):
            some = slice(begin, begin + _TOGETHER)
            scores = np.zeros(out[some].shape, np.float32)
            add_products(hidden[some], self.outputs, scores)
            shares = scores.astype(np.float64)
            if file.loss == "softmax":
                shares -= shares.max(1, keepdims=True)
                np.exp(shares, out=shares)
                sums = shares.cumsum(1)[:, -1:]  # in order, so that no bit depends on the machine
                out[some] = shares / sums * known[some, None]
            else:
                shares = 1 / (1 + np.exp(-shares))
                if file.loss == "hs":
                    _tree(shares, known[some], self.tree, out[some])
                else:
                    out[some] = shares * known[some, None]
        return out


def load_fasttext(path: Path, name: str) -> FastText:
    """Load a supervised fastText model; ConfigError names it when it is none."""
    return prepare(read_fasttext(path, name))


def prepare(file: FastTextFile) -> FastText:
    """The tables that prediction needs, from a model's contents."""
    word_bytes = np.frombuffer(b"".join(file.words) or b"\0", np.uint8)
    word_starts = np.zeros(len(file.words) + 1, np.int64)
    np.cumsum([len(w) for w in file.words], out=word_starts[1:])
    hashes = _hashes(word_starts, word_bytes)
    slots = filled(1 << (2 * len(file.words) + 1).bit_length(), hashes)
    pruned = np.zeros(0, np.int32) if file.pruned is None else file.pruned
    kept = np.packbits(np.append(pruned >= 0, np.zeros(-len(pruned) % 64, bool)), bitorder="little")
    buckets = Buckets(file.buckets, len(file.words), pruned, kept.view(np.uint64))
    end_row = file.words.index(_EOS) if _EOS in file.words else -1
    lengths = file.min_n, file.max_n, file.word_ngrams
    return FastText(
        file,
        Inputs(slots, word_starts, word_bytes, end_row, buckets, file.rows, *lengths),
        np.ascontiguousarray(file.outputs.T),
        _huffman(file.counts),
    )


def _huffman(counts: npt.NDArray[np.int64]) -> Tree:
    """Children of the inner nodes, in the order in which they are made; leaves come first.

    Counts are descending, as the file has them; of equal counts an inner node is taken first.
    """
    labels = len(counts)
    never = np.iinfo(np.int64).max
    weight = [*map(int, counts), *([never] * (labels - 1))]
    leaf, node = labels - 1, labels
    children = []
    for made in range(labels, 2 * labels - 1):
        pair = []
        for _ in range(2):
            if leaf >= 0 and weight[leaf] < weight[node]:
                pair.append(leaf)
                leaf -= 1
            else:
                pair.append(node)
                node += 1
        weight[made] = weight[pair[0]] + weight[pair[1]]
        children.append(pair)
    table = np.array(children, np.int32).reshape(-1, 2)
    return Tree(table[:, 0].copy(), table[:, 1].copy())


@inlined
def _step(h: Int, byte: Int) -> Int:
    # bytes are signed in the hash of the library
    return (h ^ np.uint32(np.int8(byte))) * _PRIME


def _hashes(starts: Int64s, data: Bytes) -> npt.NDArray[np.uint64]:
    """Return the hash of each word, letter by letter of all of them."""
    step: Any = _step.py_func  # of arrays as of numbers
    h, longer = np.full(len(starts) - 1, _OFFSET), np.arange(len(starts) - 1)
    for k in range(int(np.diff(starts).max(initial=0))):
        longer = longer[starts[longer] + k < starts[longer + 1]]
        h[longer] = step(h[longer], data[starts[longer] + k])
    return h.astype(np.uint64)


@inlined
def _append(bucket: Int, buckets: Buckets, found: Int64s, n: Int) -> Int:
    """Write the row of a bucket, unless it was pruned, to found[n]; return how many there are."""
    place = np.uint64(bucket)
    if len(buckets.pruned) and not has_bit(buckets.kept, place):  # as of most; bits fit a cache
        return n
    row = np.int64(buckets.pruned[place]) if len(buckets.pruned) else np.int64(bucket)
    found[np.uint64(n)] = buckets.words + row
    return n + 1


@borrowing
def _subwords(word: Bytes, length: Int, inputs: Inputs, found: Int64s, n: Int) -> Int:
    """Append the rows of the character n-grams of word[:length], which is `<...>` with a byte 0
    behind it; return how many there are."""
    count = np.int64(inputs.buckets.total)
    inverse = 1.0 / np.float64(count)
    for i in range(length):
        if is_tail(word[i]):
            continue
        h = _OFFSET
        j = i
        size = 1
        while j < length and size <= inputs.max_n:
            h = np.uint32(_step(h, word[np.uint64(j)]))
            j += 1
            while is_tail(word[np.uint64(j)]):
                h = np.uint32(_step(h, word[np.uint64(j)]))
                j += 1
            if size >= inputs.min_n and not (size == 1 and (i == 0 or j == length)):
                # h % count, by the inverse of `count`: a division takes ten times as long.
                rest = np.int64(h) - np.int64(np.float64(h) * inverse) * count
                rest += count if rest < 0 else 0
                rest -= count if rest >= count else 0
                n = _append(rest, inputs.buckets, found, n)
            size += 1
    return n


@merged
def _is_break(byte: Int) -> Bool:
    return byte == 32 or 9 <= byte <= 13 or byte == 0


@borrowing
def _rows(
    data: Bytes, begin: Int, stop: Int, inputs: Inputs, found: Int64s, hashes: Int32s, word: Bytes
) -> Int:
    """Write the rows of a line to `found`; return how many."""
    n = 0
    word[0] = _BOW
    seen = 0
    ngrams = inputs.buckets.total > 0
    i = begin
    while i < stop:
        if _is_break(data[i]):
            i += 1
            continue
        first = i
        h = _OFFSET
        while i < stop and not _is_break(data[np.uint64(i)]):
            h = np.uint32(_step(h, data[np.uint64(i)]))
            i += 1
            word[np.uint64(i - first)] = data[np.uint64(i - 1)]
        held, key = inputs.slots, np.uint64(h)
        row = held[slot_of_bytes(data, first, i, key, inputs.word_bytes, inputs.word_starts, held)]
        if row >= 0:
            found[n] = row
            n += 1
        elif i - first >= len(_LABEL) and same(data, first, _LABEL, 0, len(_LABEL)):
            continue  # the library takes it for one
        if inputs.max_n > 0 and ngrams:
            word[i - first + 1], word[i - first + 2] = _EOW, 0
            n = _subwords(word, i - first + 2, inputs, found, n)
        hashes[seen] = np.int32(h)
        seen += 1
    if inputs.end_row >= 0:  # a line ends with its line feed
        found[n] = inputs.end_row
        n += 1
        h = _OFFSET
        for k in range(inputs.word_starts[inputs.end_row], inputs.word_starts[inputs.end_row + 1]):
            h = np.uint32(_step(h, inputs.word_bytes[k]))
        hashes[seen] = np.int32(h)
        seen += 1
    if inputs.word_ngrams > 1 and ngrams:
        for a in range(seen):
            g = np.uint64(np.int64(hashes[a]))
            for b in range(a + 1, min(seen, a + inputs.word_ngrams)):
                g = g * _BIGRAM + np.uint64(np.int64(hashes[b]))
                bucket = np.int64(g % np.uint64(inputs.buckets.total))
                n = _append(bucket, inputs.buckets, found, n)
    return n


@kernel
def _hidden(
    offsets: Int64s,
    data: Bytes,
    inputs: Inputs,
    found: Int64s,
    hashes: Int32s,
    word: Bytes,
    hidden: Float32s,
    known: Bools,
) -> None:
    rows = inputs.rows
    for line in range(len(offsets) - 1):
        n = _rows(data, offsets[line], offsets[line + 1], inputs, found, hashes, word)
        known[line] = n > 0
        for at in range(n % _AT_ONCE):
            row = found[at]
            for k in range(rows.shape[1]):
                hidden[line, k] += rows[row, k]
        for at in range(n % _AT_ONCE, n, _AT_ONCE):  # in the same order, with less to write
            a, b, c, d = found[at], found[at + 1], found[at + 2], found[at + 3]
            for k in range(rows.shape[1]):
                here = hidden[line, k] + rows[a, k] + rows[b, k]
                hidden[line, k] = here + rows[c, k] + rows[d, k]
        if n:
            for k in range(rows.shape[1]):
                hidden[line, k] /= np.float32(n)


@kernel
def add_products(
    rows: Float32s | Float64s, columns: Float32s | Float64s, out: Float32s | Float64s
) -> None:
    """Add the products of rows [n, k] with columns [k, m] to `out` [n, m].

    Sums go in the order of k, so that no bit depends on the size of a batch or on the BLAS.
    """
    for row in range(len(rows)):
        for k in range(rows.shape[1]):
            if rows[row, k]:
                for column in range(out.shape[1]):
                    out[row, column] += rows[row, k] * columns[k, column]


@kernel
def _tree(shares: Float64s, known: Bools, tree: Tree, out: Float32s) -> None:
    """Probabilities of the leaves of a binary tree: products along the way from the root."""
    labels = out.shape[1]
    nodes = np.empty(2 * labels - 1, np.float64)
    for line in range(len(shares)):
        if not known[line]:
            continue
        nodes[2 * labels - 2] = 1.0
        for inner in range(labels - 2, -1, -1):
            share = shares[line, inner]
            mass = nodes[inner + labels]
            nodes[tree.left[inner]] = mass * (1.0 - share + _EPSILON)
            nodes[tree.right[inner]] = mass * (share + _EPSILON)
        for label in range(labels):
            out[line, label] = nodes[label]
