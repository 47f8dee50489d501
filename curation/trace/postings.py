"""Fingerprints of texts, and a table from these hashes to numbers, read by small ranges.

Fingerprints are sampled hashes of n-grams, so that texts with words in common share one.

The first bits of a hash name its file, a *bucket*; the next ones a *block* in it. A bucket is an
array of block starts (uint32, one more than blocks) and then its records, sorted: the 16 bits of
the hash that follow, and the number. So a lookup reads eight bytes and one block. Hashes that agree
in all these bits can't be distinguished: callers compare what the numbers point at.

Find the spans of a text that quote a passage, verbatim or nearly so.

`decontaminate.matching` finds the runs of at least four words that text and passage share; runs
that follow each other in both, with few words between them, are one span.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from curation.arrow import Texts
from curation.compiled import Bytes, Int, Int64s, Uint64s, kernel
from curation.decontaminate.index import LEAST_BITS, Background, build_index
from curation.decontaminate.matching import RUN, Matcher
from curation.decontaminate.normalize import WORD, folding, ngrams, sums, tokenize
from curation.errors import ConfigError
from curation.trace import LEAST_WORDS

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
    """Return the first bits of each hash."""
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
    """Return the lowest bytes of each value, least first: [values, width]."""
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


#: Bytes of the longest passage.
MOST_BYTES = 1 << 18
#: Words between two runs of a span, in either text.
_GAP = 8 * WORD
#: Share of the words of a span that both texts have, in the longer of the two.
_LEAST_SIMILARITY = 0.75
#: Open spans that a run may continue.
_LOOK_BACK = 64


class Span(NamedTuple):
    """A part of a text that is a part of the passage."""

    start: int  # bytes of the text
    end: int
    passage_start: int  # bytes of the passage
    passage_end: int
    words: int  # of the passage, whole ones
    similarity: float  # share of words in both, of the longer of the two parts; 1: verbatim

    @property
    def verbatim(self) -> bool:
        """Whether both have the same words in the same order."""
        return self.similarity == 1


@dataclass
class _Chain:
    """Runs in the same order in both texts; numbers of tokens."""

    position: int  # of the passage
    place: int  # of the text
    position_end: int
    place_end: int
    matched: int  # size of what both have


class Passage:
    """A passage to look for. Raises ConfigError where it is too short or too long."""

    def __init__(self, text: str) -> None:
        size = len(text.encode())
        if size > MOST_BYTES:
            raise ConfigError(f"the passage has {size:,} bytes: give at most {MOST_BYTES:,}")
        self._tokens = tokenize([text])
        self._sums = sums(self._tokens.sizes)
        if self._sums[-1] < LEAST_WORDS * WORD:
            raise ConfigError(f"the passage is too short: give at least {LEAST_WORDS} words")
        self._matcher = Matcher(build_index([text], _nothing_known()), folding(), 1)

    def spans(self, text: str) -> list[Span]:
        """Return the spans of a text, by place."""
        data = np.frombuffer(text.encode(), np.uint8)
        tokens = self._matcher.tokens(data, 0, len(data))
        places = sums(tokens.sizes)
        spans = []
        for chain in self._chains(places, self._matcher.runs(tokens)):
            own = int(self._sums[chain.position_end] - self._sums[chain.position])
            longer = max(own, int(places[chain.place_end] - places[chain.place]))
            span = Span(
                int(tokens.starts[chain.place]),
                int(tokens.ends[chain.place_end - 1]),
                int(self._tokens.starts[chain.position]),
                int(self._tokens.ends[chain.position_end - 1]),
                own // WORD,
                chain.matched / longer,
            )
            if span.words >= LEAST_WORDS and span.similarity >= _LEAST_SIMILARITY:
                spans.append(span)
        return sorted(spans)

    def _chains(self, places: npt.NDArray[np.int64], runs: npt.NDArray[np.int32]) -> list[_Chain]:
        chains: list[_Chain] = []
        for run in runs.tolist():
            position, place, length = run[RUN.position], run[RUN.place], run[RUN.length]
            following = (
                c
                for c in chains[: -_LOOK_BACK - 1 : -1]
                if self._follows(c, position, place, places)
            )
            chain = next(following, None)
            if chain is None:
                chain = _Chain(position, place, position, place, 0)
                chains.append(chain)
            # What the run before has of this one counts once.
            known = max(0, chain.position_end - position, chain.place_end - place)
            if known < length:
                chain.position_end, chain.place_end = position + length, place + length
                chain.matched += int(self._sums[position + length] - self._sums[position + known])
        return chains

    def _follows(
        self, chain: _Chain, position: int, place: int, places: npt.NDArray[np.int64]
    ) -> bool:
        """Return whether a run continues a chain, a few words later in both texts."""
        if position <= chain.position or place <= chain.place:
            return False
        in_passage = self._sums[position] - self._sums[chain.position_end]
        in_text = places[place] - places[chain.place_end]
        return bool(-_GAP <= in_passage <= _GAP and -_GAP <= in_text <= _GAP)


def _nothing_known() -> Background:
    """Counts under which no token or n-gram is common: a quotation of a licence counts, too."""
    return Background(
        np.zeros(1, np.uint32), np.full(1, LEAST_BITS, np.uint8), np.zeros(1, np.uint32)
    )
