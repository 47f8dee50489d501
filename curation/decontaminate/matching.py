"""Where a document holds patterns of the index, edited or not.

1. *Runs*: stretches of the document that equal a stretch of a pattern, an n-gram long or longer.
2. *Candidates*: runs of one pattern near each other, chained in order; what the chain covers must
   weigh enough.
3. *Alignment* of the whole pattern with the document around the chain: semi-global (the pattern
   from end to end, the document where it fits best), banded around the chain's diagonals. Matched
   tokens count their weight; each insertion costs once, however long, so split items are found.

All steps take time linear in the tokens of the document: an n-gram points at a bounded number of
patterns, a run is chained with a bounded number of runs before it, and an alignment takes a bounded
number of cells for each token that its runs cover.
"""

from collections.abc import Iterable, Iterator
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from curation.arrow import repeated
from curation.bytes.hash_tables import has_bit
from curation.compiled import Float, Int, Int32s, Int64s, Uint64s, kernel
from curation.decontaminate.index import FILTERED, MOST_PATTERNS, NUMBER, STEPS, Index
from curation.decontaminate.normalize import (
    SIZE,
    WORD,
    Folding,
    Scratch,
    ngram_at,
    place_of,
    sums,
    tokenize_into,
)
from curation.dedup.keys import run_lengths, run_starts

#: Share of a pattern's weight that the chain covers, below which no alignment is tried.
LEAST_COVERED = 0.25
#: Text between runs of one candidate, in quarters of a word, besides half the pattern's tokens.
GAP = 160 * WORD
#: Tokens on each side of a diagonal; cells of a row, at most.
BAND, WIDEST = 16, 192
#: Runs that a run is chained with.
LOOK_BACK = 48
#: Weight that an insertion costs: more than a common word that it reaches.
INSERTION = 8 * STEPS
_FAR = -(1 << 30)
#: Places of a document from which one item is put together.
_MOST_PIECES = 4
_MOST_NUMBERS = 64
#: Tokens that a piece has in common with an item, and by what their hash is made.
_SAME = 4
_MIXED = np.array([0x9E3779B185EBCA87, 0xC2B2AE3D27D4EB4F, 0x165667B19E3779F9, 1], np.uint64)
_NONE = np.zeros(_SAME - 1, np.uint32)


class Run(NamedTuple):
    """Columns of a run."""

    pattern: int = 0
    position: int = 1  # token of the pattern
    place: int = 2  # token of the document
    length: int = 3  # tokens


RUN = Run()


class Hit(NamedTuple):
    """Columns of a hit."""

    pattern: int = 0
    score: int = 1  # weight matched, less what insertions cost
    start: int = 2  # tokens of the document
    end: int = 3
    exact: int = 4  # 1: token by token
    covered: int = 5  # tokens of the pattern inside runs
    numbers: int = 6  # numbers of the pattern looked for
    found: int = 7  # and found in the span


HIT = Hit()


@kernel
def find_runs(tokens: Scratch, n: Int, index: Index, out: Int32s) -> Int:
    """Write the runs of a document's tokens to `out`; return how many, -1 where it is too small."""
    count = 0
    before = np.empty(MOST_PATTERNS * 16, np.int32)  # runs that the n-gram before is in
    now = np.empty(MOST_PATTERNS * 16, np.int32)
    b_first, b_last = 0, 0
    previous = -1
    grams = np.empty(n, np.uint64)
    stops = np.empty(n, np.int32)
    for i in range(n):
        grams[i], stops[i] = ngram_at(tokens.hashes, tokens.sizes, i, n, SIZE)
    # Apart from the rest, so that the reads, far from each other, overlap.
    chosen = np.empty(n + 1, np.int32)
    candidates = 0
    bits = np.uint64(len(index.filter) * 64 - 1)
    for i in range(n):
        chosen[candidates] = i
        candidates += int(has_bit(index.filter, grams[i] >> FILTERED & bits) and stops[i] >= 0)
    for i in chosen[:candidates]:
        g, stop = grams[i], stops[i]
        number = place_of(g, index.keys)
        if number < 0:
            continue
        if i != previous + 1:
            b_first = b_last = 0
        previous = i
        first, last = index.starts[number], index.starts[number + 1]
        last = min(last, first + len(now))
        k = b_first
        for c in range(first, last):
            pattern, position = index.patterns[c], index.positions[c]
            while k < b_last and (
                index.patterns[k] < pattern
                or (index.patterns[k] == pattern and index.positions[k] + 1 < position)
            ):
                k += 1
            follows = (
                k < b_last and index.patterns[k] == pattern and index.positions[k] + 1 == position
            )
            if follows:
                run = before[k - b_first]
                out[run, RUN.length] = stop - out[run, RUN.place]
            else:
                if count == len(out):
                    return -1
                run = count
                out[run, RUN.pattern] = pattern
                out[run, RUN.position] = position
                out[run, RUN.place] = i
                out[run, RUN.length] = stop - i
                count += 1
            now[c - first] = run
        b_first, b_last = first, last
        before, now = now, before
    return count


@kernel
def _chain(
    runs: Int32s, a: Int, b: Int, weights_before: Int64s, best: Int64s, link: Int64s
) -> tuple[Int, Int]:
    """Chain runs a:b in order of both texts; return (last run, weight that the chain covers)."""
    top, top_weight = a, -1
    for r in range(a, b):
        position, length = runs[r, RUN.position], runs[r, RUN.length]
        end = position + length
        own = weights_before[end] - weights_before[position]
        best[r] = own
        link[r] = -1
        for q in range(max(a, r - LOOK_BACK), r):
            q_end = runs[q, RUN.position] + runs[q, RUN.length]
            overlap = max(
                q_end - position, runs[q, RUN.place] + runs[q, RUN.length] - runs[r, RUN.place], 0
            )
            if overlap >= length or runs[q, RUN.position] >= position:
                continue
            gain = weights_before[end] - weights_before[position + overlap]
            if best[q] + gain > best[r]:
                best[r] = best[q] + gain
                link[r] = q
        if best[r] > top_weight:
            top, top_weight = r, best[r]
    return top, top_weight


@kernel
def _beyond(
    hashes: Uint64s,
    before: Int64s,
    index: Index,
    base: Int,
    a: Int,
    b: Int,
    diagonal: Int,
    step: Int,
) -> Int:
    """The farthest diagonal, before (-1) or behind (1), with an n-gram of the pattern's a:b.

    N-grams of a template are not in the index: what an insertion parts from the item's own words
    is in no run.
    """
    n = len(hashes)
    found = diagonal
    for off in range(BAND, WIDEST - 2 * BAND):
        other = diagonal + step * off
        first = -1
        for place in range(max(0, a + other), min(n, b + other)):
            if np.uint32(hashes[place]) != index.tokens[base + place - other]:
                first = -1
                continue
            if first < 0:
                first = place
            if before[place + 1] - before[first] >= SIZE:
                found = other
                break
    return found


@kernel
def _rows(
    hashes: Uint64s,
    before: Int64s,
    index: Index,
    base: Int,
    runs: Int32s,
    chain: Int64s,
    low: Int64s,
    high: Int64s,
) -> None:
    """Write the document tokens [low, high) with which each token of the pattern [m] may align."""
    n, m, links = len(hashes), len(low), len(chain)
    first, last = chain[0], chain[links - 1]
    position, place = runs[first, RUN.position], runs[first, RUN.place]
    head = _beyond(hashes, before, index, base, 0, position, place - position, -1)
    position, place = runs[last, RUN.position], runs[last, RUN.place]
    end = position + runs[last, RUN.length]
    tail = _beyond(hashes, before, index, base, end, m, place - position, 1)
    k = 0
    for i in range(m):
        # From a run's last token on: an insertion begins in its row.
        while k < links and i + 1 >= runs[chain[k], RUN.position] + runs[chain[k], RUN.length]:
            k += 1
        after = chain[min(k, links - 1)]
        diagonal = runs[after, RUN.place] - runs[after, RUN.position]
        a = b = i + diagonal
        if 0 < k < links and i < runs[after, RUN.position]:
            earlier = chain[k - 1]
            other = i + runs[earlier, RUN.place] - runs[earlier, RUN.position]
            a, b = min(a, other), max(b, other)
            if b - a > WIDEST - 2 * BAND:
                to_end = i - runs[earlier, RUN.position] - runs[earlier, RUN.length]
                nearer = to_end < runs[after, RUN.position] - i
                a = b = other if nearer else i + diagonal
        if k == 0 and i < runs[after, RUN.position]:
            a = min(a, i + head)
        elif k == links:
            b = max(b, i + tail)
        low[i] = min(max(a - BAND, 0), n)
        high[i] = min(max(b + BAND + 1, 0), n)
        if i > 0:
            low[i] = max(low[i], low[i - 1])
            high[i] = max(high[i], high[i - 1], low[i])


@kernel
def _align(
    hashes: Uint64s, index: Index, base: Int, m: Int, low: Int64s, high: Int64s
) -> tuple[Int, Int, Int]:
    """(score, first, token after the last, equal tokens) of the best alignment of a pattern."""
    width = 1
    for i in range(m):
        width = max(width, high[i] - low[i] + 1)
    # Cell j of a row is the state after document tokens up to low + j: matched last, or not.
    hit = np.full(width + 1, _FAR, np.int32)
    gap = np.zeros(width + 1, np.int32)
    hit_from = np.full(width + 1, -1, np.int32)
    gap_from = np.full(width + 1, -1, np.int32)
    new_hit = np.empty_like(hit)
    new_gap = np.empty_like(gap)
    new_hit_from = np.empty_like(hit_from)
    new_gap_from = np.empty_like(gap_from)
    before = low[0]
    cells = high[0] - low[0] + 1
    for i in range(m):
        token, weight = index.tokens[base + i], np.int32(index.weights[base + i] & (NUMBER - 1))
        shift = low[i] - before
        new_cells = high[i] - low[i] + 1
        # What lies left of the new row: the document's tokens between are an insertion.
        carried, carried_from = np.int32(_FAR), np.int32(-1)
        for j in range(min(shift, cells)):
            if hit[j] - INSERTION > carried:
                carried, carried_from = hit[j] - INSERTION, hit_from[j]
            if gap[j] > carried:
                carried, carried_from = gap[j], gap_from[j]
        for j in range(new_cells):
            old = j + shift
            best, origin = carried, carried_from
            if old < cells:
                if hit[old] > best:
                    best, origin = hit[old], hit_from[old]
                if gap[old] > best:
                    best, origin = gap[old], gap_from[old]
            # The pattern's token is deleted, or the document's inserted.
            if j > 0:
                if new_hit[j - 1] - INSERTION > best:
                    best, origin = new_hit[j - 1] - INSERTION, new_hit_from[j - 1]
                if new_gap[j - 1] > best:
                    best, origin = new_gap[j - 1], new_gap_from[j - 1]
            if best < 0 or origin < 0:
                best, origin = max(best, np.int32(0)), origin if best >= 0 else np.int32(-1)
            new_gap[j], new_gap_from[j] = best, origin
            new_hit[j], new_hit_from[j] = _FAR, -1
            place = low[i] + j - 1
            if place >= 0 and j + low[i] <= high[i] and np.uint32(hashes[place]) == token:
                old -= 1
                came, source = carried, carried_from
                if 0 <= old < cells:
                    if hit[old] > came:
                        came, source = hit[old], hit_from[old]
                    if gap[old] > came:
                        came, source = gap[old], gap_from[old]
                if came < 0:
                    came, source = np.int32(0), np.int32(-1)
                new_hit[j] = came + weight
                new_hit_from[j] = place if source < 0 else source
        hit, new_hit = new_hit, hit
        gap, new_gap = new_gap, gap
        hit_from, new_hit_from = new_hit_from, hit_from
        gap_from, new_gap_from = new_gap_from, gap_from
        before, cells = low[i], new_cells
    score, start, end = np.int32(0), np.int32(-1), np.int32(-1)
    for j in range(cells):
        if hit[j] > score:
            score, start, end = hit[j], hit_from[j], before + j
        if gap[j] > score:
            score, start, end = gap[j], gap_from[j], before + j
    return score, start, end


@kernel
def verify(
    hashes: Uint64s, before: Int64s, runs: Int32s, index: Index, least: Float, out: Int64s
) -> Int:
    """Write a hit, but for its last columns and `exact`, for every candidate whose score is at
    least that share of its pattern's weight.

    `runs` are sorted by pattern, then place; `before` is the size of all tokens before each.
    Returns how many hits there are.
    """
    count = 0
    best = np.empty(len(runs), np.int64)
    link = np.empty(len(runs), np.int64)
    chain = np.empty(len(runs), np.int64)
    a = 0
    while a < len(runs):
        pattern = runs[a, RUN.pattern]
        base = index.offsets[pattern]
        m = index.offsets[pattern + 1] - base
        total = index.totals[pattern]
        b = a
        while b < len(runs) and runs[b, RUN.pattern] == pattern:
            b += 1
        sums = np.empty(0, np.int64)
        first = a
        while first < b:
            # A candidate ends at a long gap, and where the pattern begins again after half of it.
            # A phrase that the pattern has twice makes two runs: the longer one says where it is.
            last = first
            reached = 0
            end = 0
            seen = 0
            while last < b:
                place = runs[last, RUN.place]
                after = longest_run = last
                while after < b and runs[after, RUN.place] == place:
                    if runs[after, RUN.length] > runs[longest_run, RUN.length]:
                        longest_run = after
                    after += 1
                position, length = runs[longest_run, RUN.position], runs[longest_run, RUN.length]
                if last > first and (
                    before[place] - before[min(end, place)] > GAP + WORD * (m // 2)
                    or (position < reached - m // 2 and place >= end and 2 * seen >= m)
                ):
                    break
                if place + length > end:
                    reached = max(reached, position + length)
                    seen += place + length - max(end, place)
                    end = place + length
                last = after
            longest = 0
            for r in range(first, last):
                longest += runs[r, RUN.length]
            if longest * 8 >= m:  # else no chain can cover enough
                if len(sums) == 0:
                    sums = np.zeros(m + 1, np.int64)
                    for i in range(m):
                        sums[i + 1] = sums[i] + (index.weights[base + i] & (NUMBER - 1))
                top, weight = _chain(runs, first, last, sums, best, link)
                if weight >= LEAST_COVERED * total:
                    links = 0
                    r = top
                    while r >= 0:
                        chain[links] = r
                        links += 1
                        r = link[r]
                    chain[:links] = chain[:links][::-1].copy()
                    low = np.empty(m, np.int64)
                    high = np.empty(m, np.int64)
                    _rows(hashes, before, index, base, runs, chain[:links], low, high)
                    score, start, stop = _align(hashes, index, base, m, low, high)
                    if start >= 0 and score >= least * total:
                        covered = 0
                        upto = 0
                        for k in range(links):
                            p = max(upto, runs[chain[k], RUN.position])
                            upto = max(
                                upto, runs[chain[k], RUN.position] + runs[chain[k], RUN.length]
                            )
                            covered += max(0, upto - p)
                        out[count, HIT.pattern] = pattern
                        out[count, HIT.score] = score
                        out[count, HIT.start] = start
                        out[count, HIT.end] = stop
                        out[count, HIT.covered] = covered
                        count += 1
            first = last
        a = b
    return count


class Matcher:
    """Finds patterns of an index in texts; holds the scratch space that texts share."""

    def __init__(self, index: Index, folding: Folding, least: float) -> None:
        self._index, self._folding, self._least = index, folding, least
        self._runs = np.empty((1 << 12, len(RUN)), np.int32)
        self._room = Scratch.of(1 << 16)

    def tokens(self, data: npt.NDArray[np.uint8], begin: int, end: int) -> Scratch:
        """The tokens of data[begin:end], valid until the next call."""
        if end - begin >= len(self._room.hashes):
            self._room = Scratch.of(end - begin)
        n = tokenize_into(data, begin, end, self._folding, self._room)
        return Scratch._make(array[:n] for array in self._room)

    def runs(self, tokens: Scratch) -> npt.NDArray[np.int32]:
        """Stretches of a document that equal one of a pattern, by place: [runs, len(RUN)]."""
        n = len(tokens.hashes)
        while (count := find_runs(tokens, n, self._index, self._runs)) < 0:
            self._runs = np.empty((2 * len(self._runs), len(RUN)), np.int32)
        return self._runs[:count]

    def hits(self, tokens: Scratch, pattern: int | None = None) -> npt.NDArray[np.int64]:
        """Hits of a document, ordered by pattern and place: int64 [hits, len(HIT)].

        With a `pattern`, of that alone.
        """
        runs = self.runs(tokens)
        if pattern is not None:
            runs = runs[runs[:, RUN.pattern] == pattern]
        if not len(runs):
            return np.zeros((0, len(HIT)), np.int64)
        runs = runs[np.argsort(runs[:, RUN.pattern], kind="stable")]
        room, index = np.empty((len(runs), len(HIT)), np.int64), self._index
        count = verify(tokens.hashes, sums(tokens.sizes), runs, index, self._least, room)
        found = room[:count].copy()
        for hit in found:
            span = tokens.hashes[hit[HIT.start] : hit[HIT.end]].astype(np.uint32)
            own, weights = index.pattern(hit[HIT.pattern]), index.weights_of(hit[HIT.pattern])
            numbers = own[weights & NUMBER != 0][:_MOST_NUMBERS]
            hit[HIT.exact], hit[HIT.numbers] = np.array_equal(own, span), len(numbers)
            hit[HIT.found] = (numbers[:, None] == span).any(1).sum()
        return found

    def gathered(
        self, tokens: Scratch, patterns: Iterable[int]
    ) -> Iterator[tuple[int, npt.NDArray[np.int64]]]:
        """Yield the patterns of which a document has pieces in several places.

        With the tokens of these pieces, in the order of the pattern, as one text would have them.
        """
        hashes, before = tokens.hashes.astype(np.uint32), sums(tokens.sizes)
        for pattern in patterns:
            own = self._index.pattern(pattern)
            runs = _stretches(own, hashes)
            ends = before[np.minimum(runs[:, RUN.place] + runs[:, RUN.length], len(hashes))]
            runs = runs[ends - before[runs[:, RUN.place]] >= SIZE]
            pieces = _pieces(runs, len(own))
            if len(pieces) > 1:
                places = [np.arange(max(a, 0), min(b, len(tokens.hashes))) for a, b in pieces]
                yield pattern, np.concatenate(places)


def _stretches(
    own: npt.NDArray[np.uint32], hashes: npt.NDArray[np.uint32]
) -> npt.NDArray[np.int64]:
    """Return the stretches of a document that equal one of a pattern: [runs, len(RUN)].

    Those of its template, too, which no n-gram of the index has.
    """
    ours, theirs = (
        np.lib.stride_tricks.sliding_window_view(np.append(some, _NONE), _SAME) @ _MIXED
        for some in (own, hashes)
    )
    order = np.argsort(ours, kind="stable")
    low, high = (np.searchsorted(ours[order], theirs, side) for side in ("left", "right"))
    places, nth = repeated(np.minimum(high - low, MOST_PATTERNS))
    positions = order[low[places] + nth]
    order = np.lexsort([places, places - positions])
    places, positions = places[order], positions[order]
    begins = run_starts(places - positions, places - np.arange(len(places)))
    lengths = run_lengths(begins, len(places)) + _SAME - 1
    zeros = np.zeros(len(begins), np.int64)
    return np.stack([zeros, positions[begins], places[begins], lengths], 1)


def _pieces(runs: npt.NDArray[np.int64], m: int) -> list[tuple[int, int]]:
    """Return where a document may have parts of a pattern of m tokens, in the pattern's order.

    Runs on about one diagonal are a piece; it reaches to where its neighbours begin.
    """
    diagonals = runs[:, RUN.place] - runs[:, RUN.position]
    order = np.argsort(diagonals, kind="stable")
    parts = np.split(order, np.flatnonzero(np.diff(diagonals[order]) > BAND) + 1)
    chosen: list[tuple[int, int, int, int]] = []
    for part in sorted(parts, key=lambda part: -int(runs[part, RUN.length].sum())):
        low = int(runs[part, RUN.position].min())
        high = int((runs[part, RUN.position] + runs[part, RUN.length]).max())
        inside = sum(max(0, min(high, b) - max(low, a)) for a, b, *_ in chosen)
        if 2 * inside < high - low and len(chosen) < _MOST_PIECES:
            chosen.append((low, high, int(diagonals[part].min()), int(diagonals[part].max())))
    chosen.sort()
    begins = [0, *(high for _, high, *_ in chosen[:-1])]
    ends = [*(low for low, *_ in chosen[1:]), m]
    pieces = list[tuple[int, int]]()
    for begin, end, (low, high, first, last) in zip(begins, ends, chosen, strict=True):
        start = min(begin, low) + first
        pieces.append((start, min(max(end, high) + last, start + 2 * m + WIDEST)))
    return pieces
