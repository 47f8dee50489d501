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
import re
from collections import defaultdict
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from curation.bytes.code_points import is_tail, sound_point
from curation.bytes.hash_tables import slot_of_bytes
from curation.compiled import Bool, Bytes, Int, Int32s, Int64s, Uint64s, borrowing, inlined
from curation.errors import InputError
from curation.hashing import hash_spans, xxh64

_NEVER = 0x7FFFFFFF  # rank of a token that doesn't exist
_PLANE = 1 << 16  # characters of four bytes are left to merging


@inlined
def _wide_character(data: Bytes, i: Int, end: Int) -> tuple[Int, Int]:
    """Return code point and bytes of a character of two or three bytes at i; (0, 0) of others."""
    point, size = sound_point(data, i, end)
    return (point, size) if 1 < size < 4 else (np.int64(0), np.int64(0))


#: Characters of two or three bytes, and bytes that continue one.
_WIDE = re.compile(rb"[\xc2-\xdf][\x80-\xbf]|(?:\xe0[\xa0-\xbf]|[\xe1-\xef][\x80-\xbf])[\x80-\xbf]")
_TAILS = bytes(range(0x80, 0xC0))


class _Lowest(NamedTuple):
    """Lowest ranks of longer tokens that have a character, or a part of one with what is next to
    it."""

    containing: dict[bytes, int]  # by character
    ending: dict[bytes, dict[int, int]]  # by first bytes of a character and the byte before it
    beginning: dict[bytes, dict[int, int]]  # by last bytes of a character and the byte after it


def _lowest_ranks(tokens: Sequence[bytes]) -> _Lowest:
    found = _Lowest({}, defaultdict(dict), defaultdict(dict))
    for rank, token in enumerate(tokens):
        for character in _WIDE.findall(token):
            if len(character) < len(token):
                found.containing.setdefault(character, rank)
        begun, rest = token.rstrip(_TAILS), token.lstrip(_TAILS)
        if rest and 0 < len(token) - len(rest) <= 2:
            found.beginning[token[: -len(rest)]].setdefault(rest[0], rank)
        part, lead = token[len(begun) - 1 :], begun[-1] if len(begun) > 1 else 0
        if 0xC2 <= lead < 0xF0 and len(part) < (2 if lead < 0xE0 else 3):
            found.ending[part].setdefault(begun[-2], rank)
    return found


def _whole_characters(
    tokens: Sequence[bytes], ranks: Mapping[bytes, int]
) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.uint64]]:
    """Return which characters may start as one symbol, and between which bytes they may not.

    The first array has, by code point, row << 32 | token, or -1 (int64 [65536]); the second, by
    row, 256 bits of the bytes that must not come before the character, then 256 bits of those that
    must not come after it (uint64 [rows, 8]).
    """
    lowest = _lowest_ranks(tokens)
    characters = np.full(_PLANE, -1, np.int64)
    unsafe: list[npt.NDArray[np.bool_]] = []
    for rank, token in enumerate(tokens):
        if not _WIDE.fullmatch(token):
            continue
        highest = rank  # on the way from its bytes to its token
        if len(token) == 3:
            highest = max(rank, min(ranks.get(two, _NEVER) for two in (token[:2], token[1:])))
        if highest == _NEVER or lowest.containing.get(token, _NEVER) < highest:
            continue
        characters[ord(token.decode("utf-8", "surrogatepass"))] = len(unsafe) << 32 | rank
        bits = np.zeros(512, np.bool_)
        for cut in range(1, len(token)):
            before, after = (
                lowest.ending.get(token[:cut], {}),
                lowest.beginning.get(token[-cut:], {}),
            )
            bits[[byte for byte, low in before.items() if low < highest]] = True
            bits[[256 + byte for byte, low in after.items() if low < highest]] = True
        unsafe.append(bits)
    packed = np.packbits(np.array(unsafe, np.bool_).reshape(-1, 512), 1, "little")
    return characters, packed.view(np.uint64)


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
    characters: npt.NDArray[np.int64]  # [65536] by code point, see `_whole_characters`
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


def _power_of_two(least: int) -> int:
    return 1 << max(4, (least - 1).bit_length())


def empty_slots(tokens: int) -> npt.NDArray[np.int32]:
    """Table of bytes with room for that many tokens."""
    return np.full(_power_of_two(3 * tokens), -1, np.int32)


def flatten(tokens: Sequence[bytes]) -> tuple[npt.NDArray[np.uint8], npt.NDArray[np.int64]]:
    """Token bytes laid end to end, and their offsets [n + 1]."""
    offsets = np.zeros(len(tokens) + 1, np.int64)
    np.cumsum([len(token) for token in tokens], out=offsets[1:])
    return np.frombuffer(b"".join(tokens), np.uint8).copy(), offsets


def splits(tokens: Sequence[bytes]) -> npt.NDArray[np.int64]:
    """Every (left, right, token) of ids with bytes(token) = bytes(left) + bytes(right): [m, 3].

    They are in order of token, then split.
    """
    ranks = {token: rank for rank, token in enumerate(tokens)}
    found = [
        (left, right, rank)
        for rank, token in enumerate(tokens)
        for k in range(1, len(token))
        if (left := ranks.get(token[:k], -1)) >= 0 and (right := ranks.get(token[k:], -1)) >= 0
    ]
    return np.array(found, np.int64).reshape(-1, 3)


def _filled(size: int, places: npt.NDArray[np.uint64]) -> npt.NDArray[np.int64]:
    """Return the number of the entry in each slot, -1 where none is: each goes to the first free
    one from its place on."""
    slots = [-1] * size
    for number, slot in enumerate((places & np.uint64(size - 1)).tolist()):
        while slots[slot] >= 0:
            slot = (slot + 1) & (size - 1)
        slots[slot] = number
    return np.array(slots)


def tables(tokens: Sequence[bytes]) -> Tables:
    """Look-up tables of a vocabulary (tokens by rank; all 256 single bytes among them)."""
    ranks = {token: rank for rank, token in enumerate(tokens)}
    blob, offsets = flatten(tokens)
    hashes = hash_spans(blob, offsets[:-1], offsets[1:], _SEED)
    slots = _filled(_power_of_two(3 * len(tokens)), hashes).astype(np.int32)
    found = splits(tokens)
    hash_all: Any = _pair_hash.py_func  # of arrays as of numbers
    both, h = hash_all(found[:, 0].astype(np.uint64), found[:, 1].astype(np.uint64))
    held = _filled(_power_of_two(len(found) * 3 // 2), h >> np.uint64(32))
    pairs = np.append(both << _ID_BITS | found[:, 2].astype(np.uint64), _EMPTY)[held]
    pair_bits = np.zeros(1 << (_BITS - 6), np.uint64)
    np.bitwise_or.at(pair_bits, h >> np.uint64(64 - _BITS + 6), _two_bits.py_func(h))
    byte_ids = np.array([ranks[bytes([b])] for b in range(256)], np.int32)
    byte_pairs = np.full(1 << 16, -1, np.int32)
    for token in (t for t in tokens if len(t) == 2):
        byte_pairs[token[0] << 8 | token[1]] = ranks[token]
    whole = _whole_characters(tokens, ranks)
    return Tables(blob, offsets, slots, pairs, pair_bits, byte_ids, byte_pairs, *whole)


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
