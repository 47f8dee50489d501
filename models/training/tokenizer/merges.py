"""Learn byte-pair merges with incremental pair counts.

After Sennrich et al. 2016 (arXiv 1508.07909), with the bookkeeping that makes it fast: each pair
knows its weight and the words that hold it, and a lazy heap gives the heaviest pair. The state is
at every step what tiktoken's encoder would make of the words: when a new token has other splits,
or a merge brings together two tokens whose bytes are a token already, those pairs merge too.
"""

from __future__ import annotations

from heapq import heappop, heappush
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from curation.bytes.hash_tables import scrambled, slot_of
from curation.compiled import Bytes, Int, Int32s, Int64s, inlined, kernel
from curation.tokenize.vocabulary import add_bytes, find_bytes, pair_key

_EMPTY = np.uint64(0xFFFFFFFFFFFFFFFF)
_LOW = np.uint64(0xFFFFFFFF)

# Places in State.sizes.
_PAIRS, _NODES, _TOUCHED, _STEP = 0, 1, 2, 3


class State(NamedTuple):
    """Words as symbols, and the table of pairs. Arrays are replaced when they grow."""

    symbols: npt.NDArray[np.int32]  # of all words end to end
    starts: npt.NDArray[np.int64]  # [words] where each word's symbols start
    lengths: npt.NDArray[np.int32]  # [words] symbols left
    weights: npt.NDArray[np.int64]  # [words]
    keys: npt.NDArray[np.uint64]  # open-addressed pairs: left << 32 | right
    counts: npt.NDArray[np.int64]  # weight of each pair
    heads: npt.NDArray[np.int64]  # last node of each pair, -1 for none
    stamps: npt.NDArray[np.int64]  # step that last touched the pair
    node_words: npt.NDArray[np.int32]  # words that hold the pair, linked
    node_next: npt.NDArray[np.int64]
    touched: npt.NDArray[np.uint64]  # pairs whose weight grew in this step
    sizes: npt.NDArray[np.int64]  # [4] see the constants above


@kernel
def _longer(array: Any, least: Int) -> Any:
    out = np.empty(max(2 * len(array), least), array.dtype)
    out[: len(array)] = array
    return out


@kernel
def _with_room(s: State, more: Int) -> State:
    """Return the state with room for `more` further pairs, nodes and touched keys."""
    keys, counts, heads, stamps = s.keys, s.counts, s.heads, s.stamps
    if 10 * (s.sizes[_PAIRS] + more) > 6 * len(keys):
        size = 2 * len(keys)
        while 10 * (s.sizes[_PAIRS] + more) > 6 * size:
            size *= 2
        keys = np.full(size, _EMPTY, np.uint64)
        counts = np.zeros(size, np.int64)
        heads = np.full(size, -1, np.int64)
        stamps = np.full(size, -1, np.int64)
        used = 0
        for old in range(len(s.keys)):
            # A pair that weighs nothing can go: nothing refers to it.
            if s.keys[old] != _EMPTY and s.counts[old] > 0:
                slot = slot_of(keys, s.keys[old], scrambled(s.keys[old]), _EMPTY)
                keys[slot] = s.keys[old]
                counts[slot] = s.counts[old]
                heads[slot] = s.heads[old]
                stamps[slot] = s.stamps[old]
                used += 1
        s.sizes[_PAIRS] = used
    node_words, node_next, touched = s.node_words, s.node_next, s.touched
    if s.sizes[_NODES] + more > len(node_words):
        node_words = _longer(node_words, s.sizes[_NODES] + more)
        node_next = _longer(node_next, s.sizes[_NODES] + more)
    if s.sizes[_TOUCHED] + more > len(touched):
        touched = _longer(touched, s.sizes[_TOUCHED] + more)
    return State(
        s.symbols, s.starts, s.lengths, s.weights, keys, counts, heads, stamps,
        node_words, node_next, touched, s.sizes,
    )  # fmt: skip


@inlined
def _increase(s: State, left: Int, right: Int, word: Int, weight: Int) -> None:
    key = pair_key(left, right)
    slot = slot_of(s.keys, key, scrambled(key), _EMPTY)
    if s.keys[slot] == _EMPTY:
        s.keys[slot] = key
        s.counts[slot] = 0
        s.heads[slot] = -1
        s.stamps[slot] = -1
        s.sizes[_PAIRS] += 1
    s.counts[slot] += weight
    head = s.heads[slot]
    if head < 0 or s.node_words[head] != word:
        node = s.sizes[_NODES]
        s.node_words[node] = word
        s.node_next[node] = head
        s.heads[slot] = node
        s.sizes[_NODES] = node + 1
    if s.stamps[slot] != s.sizes[_STEP]:
        s.stamps[slot] = s.sizes[_STEP]
        s.touched[s.sizes[_TOUCHED]] = key
        s.sizes[_TOUCHED] += 1


@inlined
def _decrease(s: State, left: Int, right: Int, weight: Int) -> None:
    key = pair_key(left, right)
    s.counts[slot_of(s.keys, key, scrambled(key), _EMPTY)] -= weight


@kernel
def _merge(s: State, key: Int, token: Int) -> State:
    """Replace the pair by the token in every word that holds it; returns the state."""
    slot = slot_of(s.keys, key, scrambled(key), _EMPTY)
    if s.keys[slot] == _EMPTY or s.counts[slot] <= 0:
        return s
    left, right = np.int32(key >> np.uint64(32)), np.int32(key & _LOW)
    node = s.heads[slot]
    s.heads[slot] = -1
    while node >= 0:
        word = s.node_words[node]
        node = s.node_next[node]
        start, length, weight = s.starts[word], s.lengths[word], s.weights[word]
        s = _with_room(s, 2 * np.int64(length))
        read = np.int64(0)
        write = np.int64(0)
        while read < length:
            here = s.symbols[start + read]
            if here == left and read + 1 < length and s.symbols[start + read + 1] == right:
                _decrease(s, left, right, weight)
                if write > 0:
                    before = s.symbols[start + write - 1]
                    _decrease(s, before, left, weight)
                    _increase(s, before, token, word, weight)
                if read + 2 < length:
                    behind = s.symbols[start + read + 2]
                    _decrease(s, right, behind, weight)
                    _increase(s, token, behind, word, weight)
                here = np.int32(token)
                read += 1
            s.symbols[start + write] = here
            write += 1
            read += 1
        s.lengths[word] = write
    return s


@inlined
def _join(key: Int, blob: Bytes, offsets: Int64s, buffer: Bytes) -> Int:
    """Bytes of both tokens of a pair into buffer; how many."""
    n = np.int64(0)
    for token in (np.int64(key >> np.uint64(32)), np.int64(key & _LOW)):
        for k in range(offsets[token], offsets[token + 1]):
            buffer[n] = blob[k]
            n += 1
    return n


@kernel
def learn(
    s: State, blob: Bytes, offsets: Int64s, slots: Int32s, first: Int, last: Int, longest: Int
) -> Int:
    """Learn tokens `first` to `last - 1` into blob, offsets and slots (with room for them).

    `blob`, `offsets` and `slots` hold tokens 0..first-1 (see `vocabulary.Tables`); no new token has
    more than `longest` bytes. The heaviest pair goes first; of equal ones that with the lower left
    id, then the lower right id. Returns how many tokens there are then: fewer than `last` if no
    pairs were left.
    """
    widest = longest
    for token in range(first):
        widest = max(widest, offsets[token + 1] - offsets[token])
    buffer = np.empty(2 * widest, np.uint8)
    # Pairs by (negated) weight, and pairs that already are a token, by id: those go at once.
    heap, due = [(np.int64(0), _EMPTY)][:0], [(np.int64(0), _EMPTY)][:0]
    s.sizes[_STEP] = 0
    for word in range(len(s.starts)):
        s = _with_room(s, np.int64(s.lengths[word]))
        at = s.starts[word]
        for k in range(s.lengths[word] - 1):
            _increase(s, s.symbols[at + k], s.symbols[at + k + 1], word, s.weights[word])
    token = int(first)
    while True:
        for k in range(s.sizes[_TOUCHED]):
            key = s.touched[k]
            count = s.counts[slot_of(s.keys, key, scrambled(key), _EMPTY)]
            if count <= 0:
                continue
            size = _join(key, blob, offsets, buffer)
            known = np.int64(-1)
            if size <= widest:
                known = np.int64(find_bytes(buffer, 0, size, blob, offsets, slots))
            if known >= 0:
                heappush(due, (known, key))
            elif size <= longest:
                heappush(heap, (-count, key))
        s.sizes[_TOUCHED] = 0
        s.sizes[_STEP] += 1
        if len(due):
            known, key = heappop(due)
            s = _merge(s, key, known)
            continue
        if token == last or not len(heap):
            return token
        lightness, key = heappop(heap)
        slot = slot_of(s.keys, key, scrambled(key), _EMPTY)
        now = s.counts[slot] if s.keys[slot] == key else np.int64(0)
        if now != -lightness:
            if 0 < now < -lightness:
                heappush(heap, (-now, key))
            continue
        size = _join(key, blob, offsets, buffer)
        begin = offsets[token]
        blob[begin : begin + size] = buffer[:size]
        offsets[token + 1] = begin + size
        add_bytes(token, blob, offsets, slots)
        s = _merge(s, key, token)
        for middle in range(begin + 1, begin + size):
            left = find_bytes(blob, begin, middle, blob, offsets, slots)
            if left >= 0:
                right = find_bytes(blob, middle, begin + size, blob, offsets, slots)
                if right >= 0:
                    s = _merge(s, pair_key(left, right), token)
        token += 1


def initial_state(
    symbols: npt.NDArray[np.int32], offsets: npt.NDArray[np.int64], weights: npt.NDArray[np.int64]
) -> State:
    """State of words given as symbols[offsets[i]:offsets[i + 1]] with weights [words]."""
    room = 1 << 12
    return State(
        symbols,
        offsets[:-1].copy(),
        np.diff(offsets).astype(np.int32),
        weights,
        np.full(room, _EMPTY, np.uint64),
        np.zeros(room, np.int64),
        np.full(room, -1, np.int64),
        np.full(room, -1, np.int64),
        np.empty(room, np.int32),
        np.empty(room, np.int64),
        np.empty(room, np.uint64),
        np.zeros(4, np.int64),
    )
