"""Supervised fastText models over Arrow text, without Python strings and without its library.

Bojanowski et al., Enriching Word Vectors with Subword Information (2017), and Joulin et al., Bag of
Tricks for Efficient Text Classification (2016): the mean of the rows of a line's words and of their
character n-grams, times the output matrix. Compiled here because the library takes one Python
string at a time, holds the interpreter's lock, and expands quantised rows anew at every look-up;
its probabilities are the same.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np
import numpy.typing as npt

from curation.arrow import Texts
from curation.compiled import borrowing, inlined, kernel
from curation.language.fasttext_file import PREFIX, FastTextFile, read_fasttext
from curation.text.buffers import read_only

_OFFSET = np.uint32(2166136261)
_PRIME = np.uint32(16777619)
_BIGRAM = np.uint64(116049371)
_BOW, _EOW = np.uint8(ord("<")), np.uint8(ord(">"))
_EOS = b"</s>"
_EPSILON = 1e-5  # what the library adds before it takes logarithms
_LABEL = np.frombuffer(PREFIX.encode(), np.uint8)

Floats = npt.NDArray[np.float32]


@dataclass(frozen=True, eq=False)
class FastText:
    """A loaded fastText classifier; `probabilities` may be called by several threads."""

    file: FastTextFile
    slots: npt.NDArray[np.int32]  # [power of two] word by hash, probed linearly, -1 empty
    word_starts: npt.NDArray[np.int64]  # [words + 1]
    word_bytes: npt.NDArray[np.uint8]
    end_row: int  # row of the end of a line, -1 where the model has none
    left: npt.NDArray[np.int32]  # [labels - 1] children of the inner nodes of the tree of `hs`
    right: npt.NDArray[np.int32]

    @property
    def labels(self) -> tuple[str, ...]:
        return self.file.labels

    def probabilities(self, lines: Texts) -> Floats:
        """Probability of every label for every line: float32 [lines, labels].

        A line holds no line feed. All are 0 for a line of which the model knows nothing. With loss
        `ova` or `ns` labels are independent and do not add up to 1.
        """
        offsets, data = read_only(lines)
        file = self.file
        hidden = np.zeros((len(offsets) - 1, file.rows.shape[1]), np.float32)
        known = np.zeros(len(offsets) - 1, np.bool_)
        pruned = file.pruned if file.pruned is not None else np.zeros(0, np.int32)
        longest = int(np.diff(offsets).max()) if len(offsets) > 1 else 0
        hashes = np.empty(longest + 2 if file.word_ngrams > 1 else 0, np.int32)
        _hidden(
            offsets, data, self.slots, self.word_starts, self.word_bytes, self.end_row, _LABEL,
            file.rows, file.min_n, file.max_n, file.word_ngrams, file.buckets, pruned,
            hashes, hidden, known,
        )  # fmt: skip
        out = np.zeros((len(hidden), len(file.labels)), np.float32)
        if file.loss == "hs":
            _tree(hidden, known, file.outputs, self.left, self.right, out)
        else:
            _flat(hidden, known, file.outputs, file.loss == "softmax", out)
        return out


def load_fasttext(path: Path, name: str) -> FastText:
    """Load a supervised fastText model; ConfigError names it when it is none."""
    return prepare(read_fasttext(path, name))


def prepare(file: FastTextFile) -> FastText:
    """The tables that prediction needs, from a model's contents."""
    word_bytes = np.frombuffer(b"".join(file.words) or b"\0", np.uint8)
    word_starts = np.zeros(len(file.words) + 1, np.int64)
    np.cumsum([len(w) for w in file.words], out=word_starts[1:])
    slots = np.full(1 << (2 * len(file.words) + 1).bit_length(), -1, np.int32)
    _fill(word_starts, word_bytes, slots)
    left, right = _huffman(file.counts)
    end_row = file.words.index(_EOS) if _EOS in file.words else -1
    return FastText(file, slots, word_starts, word_bytes, end_row, left, right)


def _huffman(counts: npt.NDArray[np.int64]) -> tuple[npt.NDArray[np.int32], npt.NDArray[np.int32]]:
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
    return table[:, 0].copy(), table[:, 1].copy()


@inlined
def _step(h, byte):  # type: ignore[no-untyped-def]
    # bytes are signed in the hash of the library
    return (h ^ np.uint32(np.int8(byte))) * _PRIME


@borrowing
def _fill(starts, data, slots):  # type: ignore[no-untyped-def]
    mask = np.uint32(len(slots) - 1)
    for word in range(len(starts) - 1):
        h = _OFFSET
        for i in range(starts[word], starts[word + 1]):
            h = np.uint32(_step(h, data[i]))
        slot = h & mask
        while slots[slot] >= 0:
            slot = np.uint32(slot + np.uint32(1)) & mask
        slots[slot] = word


@borrowing
def _find(h, data, begin, end, slots, starts, words):  # type: ignore[no-untyped-def]
    """Number of the word data[begin:end] with hash h, -1 when it is not in the dictionary."""
    mask = np.uint32(len(slots) - 1)
    slot = h & mask
    while slots[slot] >= 0:
        word = slots[slot]
        first = starts[word]
        if starts[word + 1] - first == end - begin:
            same = True
            for k in range(end - begin):
                if words[first + k] != data[begin + k]:
                    same = False
                    break
            if same:
                return word
        slot = np.uint32(slot + np.uint32(1)) & mask
    return np.int32(-1)


@borrowing
def _add(row, rows, out):  # type: ignore[no-untyped-def]
    for k in range(out.shape[0]):
        out[k] += rows[row, k]


@inlined
def _bucket_row(bucket, words, pruned):  # type: ignore[no-untyped-def]
    if len(pruned):
        row = np.int64(pruned[bucket])
        return row + words if row >= 0 else np.int64(-1)
    return np.int64(bucket) + words


@borrowing
def _subwords(data, begin, end, min_n, max_n, buckets, words, pruned, rows, out):  # type: ignore[no-untyped-def]
    """Add the rows of the character n-grams of `<word>`; return how many there were."""
    count = 0
    length = end - begin + 2
    for i in range(length):
        if 0 < i < length - 1 and data[begin + i - 1] & 0xC0 == 0x80:
            continue
        h = _OFFSET
        j = i
        n = 1
        while j < length and n <= max_n:
            byte = _BOW if j == 0 else (_EOW if j == length - 1 else data[begin + j - 1])
            h = np.uint32(_step(h, byte))
            j += 1
            while 0 < j < length - 1 and data[begin + j - 1] & 0xC0 == 0x80:
                h = np.uint32(_step(h, data[begin + j - 1]))
                j += 1
            if n >= min_n and not (n == 1 and (i == 0 or j == length)):
                row = _bucket_row(np.int64(h % np.uint32(buckets)), words, pruned)
                if row >= 0:
                    _add(row, rows, out)
                    count += 1
            n += 1
    return count


@inlined
def _is_break(byte):  # type: ignore[no-untyped-def]
    return byte == 32 or 9 <= byte <= 13 or byte == 0


@kernel
def _hidden(  # type: ignore[no-untyped-def]
    offsets, data, slots, starts, word_bytes, end_row, label, rows, min_n, max_n, word_ngrams,
    buckets, pruned, hashes, hidden, known,
):  # fmt: skip
    words = len(starts) - 1
    total = np.zeros(rows.shape[1], np.float32)
    for line in range(len(offsets) - 1):
        total[:] = 0
        count = 0
        seen = 0
        i = offsets[line]
        stop = offsets[line + 1]
        while i < stop:
            if _is_break(data[i]):
                i += 1
                continue
            begin = i
            h = _OFFSET
            while i < stop and not _is_break(data[i]):
                h = np.uint32(_step(h, data[i]))
                i += 1
            word = _find(h, data, begin, i, slots, starts, word_bytes)
            if word < 0 and i - begin >= len(label):
                prefix = True
                for k in range(len(label)):
                    if data[begin + k] != label[k]:
                        prefix = False
                        break
                if prefix:  # the library takes it for a label
                    continue
            if word >= 0:
                _add(word, rows, total)
                count += 1
            if max_n > 0 and buckets > 0:
                count += _subwords(
                    data, begin, i, min_n, max_n, buckets, words, pruned, rows, total
                )
            if word_ngrams > 1:
                hashes[seen] = np.int32(h)
                seen += 1
        if end_row >= 0:  # a line ends with its line feed
            _add(end_row, rows, total)
            count += 1
            if word_ngrams > 1:
                h = _OFFSET
                for k in range(starts[end_row], starts[end_row + 1]):
                    h = np.uint32(_step(h, word_bytes[k]))
                hashes[seen] = np.int32(h)
                seen += 1
        if word_ngrams > 1 and buckets > 0:
            for a in range(seen):
                g = np.uint64(np.int64(hashes[a]))
                for b in range(a + 1, min(seen, a + word_ngrams)):
                    g = g * _BIGRAM + np.uint64(np.int64(hashes[b]))
                    row = _bucket_row(np.int64(g % np.uint64(buckets)), words, pruned)
                    if row >= 0:
                        _add(row, rows, total)
                        count += 1
        known[line] = count > 0
        if count:
            for k in range(rows.shape[1]):
                hidden[line, k] = total[k] / np.float32(count)


@borrowing
def _dot(hidden, row):  # type: ignore[no-untyped-def]
    total = np.float32(0)
    for k in range(hidden.shape[0]):
        total += hidden[k] * row[k]
    return total


@kernel
def _tree(hidden, known, outputs, left, right, out):  # type: ignore[no-untyped-def]
    """Probabilities of the leaves of a binary tree: products along the way from the root."""
    labels = out.shape[1]
    nodes = np.empty(2 * labels - 1, np.float64)
    for line in range(len(hidden)):
        if not known[line]:
            continue
        nodes[2 * labels - 2] = 1.0
        for inner in range(labels - 2, -1, -1):
            score = np.float64(_dot(hidden[line], outputs[inner]))
            share = 1.0 / (1.0 + np.exp(-score))
            mass = nodes[inner + labels]
            nodes[left[inner]] = mass * (1.0 - share + _EPSILON)
            nodes[right[inner]] = mass * (share + _EPSILON)
        for label in range(labels):
            out[line, label] = nodes[label]


@kernel
def _flat(hidden, known, outputs, softmax, out):  # type: ignore[no-untyped-def]
    labels = out.shape[1]
    scores = np.empty(labels, np.float64)
    for line in range(len(hidden)):
        if not known[line]:
            continue
        for label in range(labels):
            scores[label] = _dot(hidden[line], outputs[label])
        if softmax:
            best = scores.max()
            total = 0.0
            for label in range(labels):
                scores[label] = np.exp(scores[label] - best)
                total += scores[label]
            for label in range(labels):
                out[line, label] = scores[label] / total
        else:
            for label in range(labels):
                out[line, label] = 1.0 / (1.0 + np.exp(-scores[label]))
