"""Fingerprints of texts, and a table from these hashes to numbers, read by small ranges.

Fingerprints are sampled hashes of n-grams, so that texts with words in common share one.

The first bits of a hash name its file, a *bucket*; the next ones a *block* in it. A bucket is an
array of block starts (uint32, one more than blocks) and then its records, sorted: the 16 bits of
the hash that follow, and the number. So a lookup reads eight bytes and one block. Hashes that agree
in all these bits can't be distinguished: callers compare what the numbers point at.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from curation.arrow import Texts
from curation.compiled import Bytes, Int, Int64s, Uint64s, kernel
from curation.decontaminate.normalize import WORD, ngrams, tokenize

#: Records of a block, on average.
_BLOCK = 64
#: Bits of a hash that a record has, and their bytes.
_REST, _REST_BYTES = 16, 2
_START = np.dtype("<u4")

Keys = npt.NDArray[np.uint64]
#: Reads bytes start:end of each (bucket, start, end).
Reader = Callable[[Sequence[tuple[int, int, int]]], Sequence[bytes]]


class Shape(NamedTuple):
    """Which bits of a hash mean what, and bytes of a number."""

    buckets: int  # bits
    blocks: int  # bits
    width: int


def shape_of(records: int, most: int, buckets: int) -> Shape:
    """Return the shape for so many records of numbers below `most`, in 2**buckets files."""
    blocks = max(0, round(np.log2(max(1, records) / (1 << buckets) / _BLOCK)))
    return Shape(buckets, blocks, max(1, (max(1, most - 1).bit_length() + 7) // 8))


def bucket_of(keys: Keys, bits: int) -> npt.NDArray[np.int64]:
    """Return the number of the bucket of each hash."""
    return (_top(keys, bits)).astype(np.int64)


def _top(keys: Keys, bits: int) -> Keys:
    """The first bits of each hash."""
    return keys >> np.uint64(64 - bits) if bits else np.zeros(len(keys), np.uint64)


def bucket_bytes(keys: Keys, numbers: Keys, shape: Shape) -> bytes:
    """Return the content of a bucket; pairs that are there twice are kept once."""
    held = _top(keys, shape.buckets + shape.blocks + _REST)
    order = np.lexsort((numbers, held))
    held, numbers = held[order], numbers[order]
    first = np.ones(len(held), bool)
    first[1:] = (held[1:] != held[:-1]) | (numbers[1:] != numbers[:-1])
    held, numbers = held[first], numbers[first]
    block = (held >> np.uint64(_REST)) & np.uint64((1 << shape.blocks) - 1)
    counts = np.bincount(block.astype(np.int64), minlength=1 << shape.blocks)
    starts = np.concatenate([[0], np.cumsum(counts)]).astype(_START)
    records = np.empty((len(held), _REST_BYTES + shape.width), np.uint8)
    records[:, :_REST_BYTES] = _bytes_of(held, _REST_BYTES)
    records[:, _REST_BYTES:] = _bytes_of(numbers, shape.width)
    return starts.tobytes() + records.tobytes()


def _bytes_of(values: Keys, width: int) -> npt.NDArray[np.uint8]:
    """The lowest bytes of each value, least first: [values, width]."""
    return values.astype("<u8").view(np.uint8).reshape(-1, 8)[:, :width]


def look_up(keys: Keys, shape: Shape, read: Reader) -> list[npt.NDArray[np.int64]]:
    """Return the numbers of each hash, sorted. Reads twice, all hashes at once."""
    buckets = bucket_of(keys, shape.buckets).tolist()
    held = _top(keys, shape.buckets + shape.blocks + _REST)
    blocks = ((held >> np.uint64(_REST)) & np.uint64((1 << shape.blocks) - 1)).astype(np.int64)
    size = _START.itemsize
    wanted = [(b, size * k, size * (k + 2)) for b, k in zip(buckets, blocks.tolist(), strict=True)]
    base, record = size * ((1 << shape.blocks) + 1), _REST_BYTES + shape.width
    ranges = []
    for bucket, data in zip(buckets, read(wanted), strict=True):
        first, last = np.frombuffer(data, _START).tolist()
        ranges.append((bucket, base + record * first, base + record * last))
    rests = (held & np.uint64((1 << _REST) - 1)).tolist()
    return [
        _matching(np.frombuffer(data, np.uint8).reshape(-1, record), rest)
        for data, rest in zip(read(ranges), rests, strict=True)
    ]


def _matching(records: npt.NDArray[np.uint8], rest: int) -> npt.NDArray[np.int64]:
    held = records[:, 0].astype(np.int64) | records[:, 1].astype(np.int64) << 8
    own = records[held == rest, _REST_BYTES:]
    shifts = 8 * np.arange(own.shape[1], dtype=np.int64)
    return (own.astype(np.int64) << shifts).sum(axis=1)


#: Words of an n-gram: 6 words, 12 Han or kana letters, 24 Thai letters.
GRAM = 6
#: Any run of so many words that two texts share has a fingerprint in common.
GUARANTEED = 13


@kernel
def _winnow(
    grams: Uint64s,
    ends: Int64s,
    sizes: Bytes,
    offsets: Int64s,
    least: Int,
    out: Uint64s,
    rows: Int64s,
) -> Int:
    """Write the n-grams with the least hash of all stretches, and their texts; return how many."""
    count = 0
    queue = np.empty(len(grams) + 1, np.int64)  # places of increasing hashes
    for d in range(len(offsets) - 1):
        first, n = offsets[d], offsets[d + 1]
        head = tail = 0
        stop = first  # the stretch is first:stop, of `size`
        size = 0
        added = first
        last = -1
        for i in range(first, n):
            while stop < n and size < least:
                size += sizes[stop]
                stop += 1
            if size < least:
                break
            while added < n and 0 <= ends[added] <= stop:
                while tail > head and grams[queue[tail - 1]] >= grams[added]:
                    tail -= 1
                queue[tail] = added
                tail += 1
                added += 1
            while queue[head] < i:
                head += 1
            if queue[head] != last:
                last = queue[head]
                out[count] = grams[last]
                rows[count] = d
                count += 1
            size -= sizes[i]
    return count


def fingerprints(texts: Texts) -> tuple[npt.NDArray[np.uint64], npt.NDArray[np.int64]]:
    """Return the sampled hashes of all texts, and the text that each is from: both [hashes]."""
    tokens = tokenize(texts)
    grams, ends = ngrams(tokens, GRAM * WORD)
    out = np.empty(len(grams), np.uint64)
    rows = np.empty(len(grams), np.int64)
    count = _winnow(grams, ends, tokens.sizes, tokens.offsets, GUARANTEED * WORD, out, rows)
    return out[:count], rows[:count]


def all_fingerprints(text: str) -> npt.NDArray[np.uint64]:
    """Return the hashes of all n-grams of a text, sorted, each once."""
    grams, ends = ngrams(tokenize([text]), GRAM * WORD)
    return np.unique(grams[ends >= 0])
