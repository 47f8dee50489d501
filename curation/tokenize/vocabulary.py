"""A byte-pair vocabulary: token bytes by rank, and the tables that kernels look ids up in.

File format: tiktoken's, one line `base64(bytes) rank` per token, ranks 0..n-1 in merge order.

Characters that byte-pair encoding completes before it does anything else with their bytes.

Merging a run of Chinese or Thai byte by byte spends most of its time on putting characters
together. A character may start as one symbol where that changes nothing, which the ranks decide.
Let R be the highest rank on the way from its bytes to its token. Starting with it is exact if

- every longer token that contains the character has a rank above R,
- every token that ends within the character, after at least one byte of its left neighbour, has a
  rank above R, and so has every token that begins within it and reaches into its right neighbour.

Then all merges inside the character come before any merge that touches it. The second condition
depends on the byte before the character and on the byte after it only.
"""

import base64
import binascii
from pathlib import Path
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from curation.bytes.code_points import is_tail, sound_point
from curation.bytes.hash_tables import slot_of_bytes
from curation.compiled import Bool, Bytes, Int, Int32s, Int64s, Uint64s, borrowing, inlined, kernel
from curation.errors import InputError
from curation.hashing import xxh64

_NEVER = np.int32(0x7FFFFFFF)  # rank of a token that doesn't exist
_PLANE = 1 << 16  # characters of four bytes are left to merging


@inlined
def _wide_character(data: Bytes, i: Int, end: Int) -> tuple[Int, Int]:
    """Return code point and bytes of a character of two or three bytes at i; (0, 0) of others."""
    point, size = sound_point(data, i, end)
    return (point, size) if 1 < size < 4 else (np.int64(0), np.int64(0))


@inlined
def _lower(table: Int32s, row: Int, column: Int, rank: Int) -> None:
    if rank < table[row, column]:
        table[row, column] = rank


@borrowing
def _prefix(first: Int, second: Int, size: Int) -> Int:
    """Row of the first one or two bytes of a character."""
    if size == 1:
        return np.int64(first)
    return np.int64(256) + (np.int64(first & 0x0F) << 6 | np.int64(second & 0x3F))


@borrowing
def _suffix(first: Int, second: Int, size: Int) -> Int:
    """Row of the last one or two bytes of a character."""
    if size == 1:
        return np.int64(first & 0x3F)
    return np.int64(64) + (np.int64(first & 0x3F) << 6 | np.int64(second & 0x3F))


@kernel
def _lowest_ranks(blob: Bytes, offsets: Int64s) -> tuple[Int32s, Int32s, Int32s]:
    """Lowest rank of tokens that contain a character, that end within one, that begin within one.

    int32 [65536] by code point; [prefix, byte before it]; [suffix, byte after it].
    """
    contain = np.full(_PLANE, _NEVER, np.int32)
    ending = np.full((256 + 1024, 256), _NEVER, np.int32)
    beginning = np.full((64 + 4096, 256), _NEVER, np.int32)
    for rank in range(len(offsets) - 1):
        start, end = offsets[rank], offsets[rank + 1]
        i = start
        while i < end and is_tail(blob[i]):
            i += 1
        if 0 < i - start <= 2 and i < end:
            _lower(beginning, _suffix(blob[start], blob[start + 1], i - start), blob[i], rank)
        last = end - 1
        while last > start and is_tail(blob[last]):
            last -= 1
        cut = end - last
        if last > start and blob[last] >= 0xC2 and blob[last] < 0xF0:
            if cut < (2 if blob[last] < 0xE0 else 3):
                _lower(ending, _prefix(blob[last], blob[end - 1], cut), blob[last - 1], rank)
        while i < end:
            code, size = _wide_character(blob, i, end)
            if 0 < size < end - start and rank < contain[code]:
                contain[code] = rank
            i += max(size, 1)
    return contain, ending, beginning


@kernel
def whole_characters(blob: Bytes, offsets: Int64s) -> tuple[Int64s, Uint64s]:
    """Return which characters may start as one symbol, and between which bytes they may not.

    Tokens lie end to end in `blob`, by rank. The first array has, by code point, row << 32 | token,
    or -1 (int64 [65536]); the second, by row, 256 bits of the bytes that must not come before the
    character, then 256 bits of those that must not come after it (uint64 [rows, 8]).
    """
    contain, ending, beginning = _lowest_ranks(blob, offsets)
    rank_of_two = np.full(_PLANE, _NEVER, np.int32)
    for rank in range(len(offsets) - 1):
        start = offsets[rank]
        if offsets[rank + 1] - start == 2:
            rank_of_two[np.int64(blob[start]) << 8 | np.int64(blob[start + 1])] = rank
    characters = np.full(_PLANE, -1, np.int64)
    unsafe = np.zeros((len(offsets), 8), np.uint64)
    rows = 0
    for rank in range(len(offsets) - 1):
        start, end = offsets[rank], offsets[rank + 1]
        code, size = _wide_character(blob, start, end)
        if size == 0 or size != end - start:
            continue
        highest = np.int64(rank)  # on the way from its bytes to its token
        if size == 3:
            first = rank_of_two[np.int64(blob[start]) << 8 | np.int64(blob[start + 1])]
            second = rank_of_two[np.int64(blob[start + 1]) << 8 | np.int64(blob[start + 2])]
            highest = max(highest, np.int64(min(first, second)))
        if highest == _NEVER or contain[code] < highest:
            continue
        characters[code] = np.int64(rows) << 32 | np.int64(rank)
        for cut in range(1, size):
            before = ending[_prefix(blob[start], blob[start + 1], cut)]
            after = beginning[_suffix(blob[end - cut], blob[end - 1], cut)]
            for byte in range(256):
                bit = np.uint64(1) << np.uint64(byte & 63)
                if before[byte] < highest:
                    unsafe[rows, byte >> 6] |= bit
                if after[byte] < highest:
                    unsafe[rows, 4 + (byte >> 6)] |= bit
        rows += 1
    return characters, unsafe[:rows].copy()


@inlined
def _has(unsafe: Uint64s, row: Int, side: Int, byte: Int) -> Bool:
    word = unsafe[row, side + (np.int64(byte) >> 6)]
    return word >> np.uint64(byte & 63) & np.uint64(1) != np.uint64(0)


@borrowing
def whole_at(
    data: Bytes, start: Int, i: Int, end: Int, characters: Int64s, unsafe: Uint64s
) -> tuple[Int, Int]:
    """Token and bytes of the character at i of the piece data[start:end], or (-1, 0).

    Not negative only where starting with the token leads to the same ids as starting with bytes.
    """
    code, size = _wide_character(data, i, end)
    if size == 0 or characters[code] < 0:
        return np.int64(-1), np.int64(0)
    row = characters[code] >> 32
    if i > start and _has(unsafe, row, 0, data[i - 1]):
        return np.int64(-1), np.int64(0)
    after = np.int64(i + size)
    if after < end and (is_tail(data[after]) or _has(unsafe, row, 4, data[after])):
        return np.int64(-1), np.int64(0)
    return characters[code] & np.int64(0xFFFFFFFF), size


_SEED = np.uint64(0)
_EMPTY = np.uint64(0xFFFFFFFFFFFFFFFF)
_ID_BITS = np.uint64(21)
_BITS = 21  # of a hash that choose a word of `pair_bits` and a bit of it
#: Ids of a vocabulary stay below this.
MAX_TOKENS = 1 << 21


class Tables(NamedTuple):
    """Flat arrays over a vocabulary of n tokens; slots are open-addressed, sizes powers of two.

    Most pairs make no token, so `pair_bits` (small enough for a processor's cache) says no first.
    """

    blob: npt.NDArray[np.uint8]  # bytes of all tokens end to end
    offsets: npt.NDArray[np.int64]  # [n + 1] into blob
    slots: npt.NDArray[np.int32]  # token by hash of its bytes, -1 where empty
    pairs: npt.NDArray[np.uint64]  # left id, right id, token: 21 bits each; all ones where empty
    pair_bits: npt.NDArray[np.uint64]  # 2^21 bits: two set in a word for each pair
    byte_ids: npt.NDArray[np.int32]  # [256] id of each single byte
    byte_pairs: npt.NDArray[np.int32]  # [65536] token of first byte << 8 | second, -1 for none
    characters: npt.NDArray[np.int64]  # [65536] by code point, see `characters.py`
    unsafe: npt.NDArray[np.uint64]  # [n, 8] neighbouring bytes of a character, as above


@inlined
def pair_key(left: Int, right: Int) -> Int:
    return np.uint64(left) << np.uint64(32) | np.uint64(right)


@borrowing
def find_bytes(
    data: Bytes, start: Int, end: Int, blob: Bytes, offsets: Int64s, slots: Int32s
) -> Int:
    """Return the id of the token whose bytes are data[start:end], or -1."""
    h = xxh64(data, start, end, _SEED)
    return np.int64(slots[slot_of_bytes(data, start, end, h, blob, offsets, slots)])


@borrowing
def add_bytes(token: Int, blob: Bytes, offsets: Int64s, slots: Int32s) -> None:
    """Enter a token into the table of bytes."""
    start, end = offsets[token], offsets[token + 1]
    h = xxh64(blob, start, end, _SEED)
    slots[slot_of_bytes(blob, start, end, h, blob, offsets, slots)] = token


@inlined
def _pair_hash(left: Int, right: Int) -> tuple[Int, Int]:
    """Both ids in 42 bits, and their hash, good in its high bits (multiplicative hashing)."""
    both = np.uint64(left) << _ID_BITS | np.uint64(right)
    return both, (both ^ both >> np.uint64(15)) * np.uint64(0x9E3779B97F4A7C15)


@inlined
def _two_bits(h: Int) -> Int:
    """Return the bits of a hash within a word of `pair_bits`."""
    one = np.uint64(1)
    return one << (h >> np.uint64(64 - _BITS) & np.uint64(63)) | one << (
        h >> np.uint64(20) & np.uint64(63)
    )


@inlined
def find_pair(left: Int, right: Int, pairs: Uint64s, pair_bits: Uint64s) -> Int:
    """Id of the token that the pair makes, or -1."""
    both, h = _pair_hash(left, right)
    bits = _two_bits(h)
    if pair_bits[h >> np.uint64(64 - _BITS + 6)] & bits != bits:
        return np.int64(-1)
    mask = np.uint64(len(pairs) - 1)
    slot = h >> np.uint64(32) & mask
    while pairs[slot] != _EMPTY:
        if pairs[slot] >> _ID_BITS == both:
            return np.int64(pairs[slot] & np.uint64(MAX_TOKENS - 1))
        slot = (slot + np.uint64(1)) & mask
    return np.int64(-1)


@kernel
def _pairs(blob: Bytes, offsets: Int64s, slots: Int32s) -> Int64s:
    """Fill the empty `slots`; return every (left, right, token) with token = left + right.

    They are in order of token, then split.
    """
    out = np.empty((len(blob), 3), np.int64)
    n = 0
    for token in range(len(offsets) - 1):
        add_bytes(token, blob, offsets, slots)
    for token in range(len(offsets) - 1):
        start, end = offsets[token], offsets[token + 1]
        for middle in range(start + 1, end):
            left = find_bytes(blob, start, middle, blob, offsets, slots)
            if left >= 0:
                right = find_bytes(blob, middle, end, blob, offsets, slots)
                if right >= 0:
                    out[n, 0] = left
                    out[n, 1] = right
                    out[n, 2] = token
                    n += 1
    return out[:n]


@borrowing
def _pair_table(splits: Int64s, pairs: Uint64s, pair_bits: Uint64s) -> None:
    mask = np.uint64(len(pairs) - 1)
    for k in range(len(splits)):
        both, h = _pair_hash(splits[k, 0], splits[k, 1])
        pair_bits[h >> np.uint64(64 - _BITS + 6)] |= _two_bits(h)
        slot = h >> np.uint64(32) & mask
        while pairs[slot] != _EMPTY:
            slot = (slot + np.uint64(1)) & mask
        pairs[slot] = both << _ID_BITS | np.uint64(splits[k, 2])


def _power_of_two(least: int) -> int:
    return 1 << max(4, (least - 1).bit_length())


def empty_slots(tokens: int) -> npt.NDArray[np.int32]:
    """Table of bytes with room for that many tokens."""
    return np.full(_power_of_two(3 * tokens), -1, np.int32)


def flatten(tokens: list[bytes]) -> tuple[npt.NDArray[np.uint8], npt.NDArray[np.int64]]:
    """Token bytes laid end to end, and their offsets [n + 1]."""
    offsets = np.zeros(len(tokens) + 1, np.int64)
    np.cumsum([len(token) for token in tokens], out=offsets[1:])
    return np.frombuffer(b"".join(tokens), np.uint8).copy(), offsets


def splits(tokens: list[bytes]) -> npt.NDArray[np.int64]:
    """Every (left, right, token) of ids with bytes(token) = bytes(left) + bytes(right): [m, 3]."""
    blob, offsets = flatten(tokens)
    slots = empty_slots(len(tokens))
    return _pairs(blob, offsets, slots)


def tables(tokens: list[bytes]) -> Tables:
    """Look-up tables of a vocabulary (tokens by rank; all 256 single bytes among them)."""
    blob, offsets = flatten(tokens)
    slots = empty_slots(len(tokens))
    found = _pairs(blob, offsets, slots)
    pairs = np.full(_power_of_two(len(found) * 3 // 2), _EMPTY)
    pair_bits = np.zeros(1 << (_BITS - 6), np.uint64)
    _pair_table(found, pairs, pair_bits)
    index = {token: rank for rank, token in enumerate(tokens) if len(token) == 1}
    byte_ids = np.array([index[bytes([b])] for b in range(256)], np.int32)
    byte_of = np.full(len(tokens), -1)
    byte_of[byte_ids] = np.arange(256)
    first, second = byte_of[found[:, 0]], byte_of[found[:, 1]]
    of_bytes = (first >= 0) & (second >= 0)
    byte_pairs = np.full(1 << 16, -1, np.int32)
    byte_pairs[(first << 8 | second)[of_bytes]] = found[of_bytes, 2]
    characters, unsafe = whole_characters(blob, offsets)
    return Tables(blob, offsets, slots, pairs, pair_bits, byte_ids, byte_pairs, characters, unsafe)


def parse_ranks(content: bytes, name: str) -> list[bytes]:
    """Tokens by rank from the bytes of a `.tiktoken` file.

    Raises InputError, naming file and line, on a bad line, a gap or a repeat in the ranks, a
    repeated token, too many tokens, or a vocabulary without all 256 bytes.
    """
    ranks: dict[bytes, int] = {}
    for number, line in enumerate(content.splitlines(), 1):
        if not line:
            continue
        try:
            encoded, rank = line.split()
            token = binascii.a2b_base64(encoded, strict_mode=True)
            value = int(rank)
        except (ValueError, binascii.Error) as error:
            raise InputError(f"{name}: line {number}: not `base64 rank`: {error}") from None
        if token in ranks or not token:
            raise InputError(f"{name}: line {number}: token {token!r} is empty or repeated")
        ranks[token] = value
    tokens = sorted(ranks, key=ranks.__getitem__)
    for expected, token in enumerate(tokens):
        if ranks[token] != expected:
            raise InputError(f"{name}: no token has rank {expected}")
    if len(tokens) >= MAX_TOKENS:
        raise InputError(f"{name}: {len(tokens)} tokens are more than {MAX_TOKENS - 1}")
    missing = [b for b in range(256) if bytes([b]) not in ranks]
    if missing:
        raise InputError(f"{name}: no token for the single bytes {missing[:8]}")
    return tokens


def read_ranks(path: str | Path) -> list[bytes]:
    """Tokens by rank from a `.tiktoken` file (see `parse_ranks`)."""
    try:
        content = Path(path).read_bytes()
    except OSError as error:
        raise InputError(f"{path}: cannot read the vocabulary: {error.strerror}") from None
    return parse_ranks(content, str(path))


def format_ranks(tokens: list[bytes]) -> bytes:
    """The bytes of a `.tiktoken` file."""
    return b"".join(b"%s %d\n" % (base64.b64encode(t), rank) for rank, t in enumerate(tokens))
