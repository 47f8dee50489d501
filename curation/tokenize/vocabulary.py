"""A byte-pair vocabulary: token bytes by rank, and the tables that kernels look ids up in.

File format: tiktoken's, one line `base64(bytes) rank` per token, ranks 0..n-1 in merge order.
"""

import base64
import binascii
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from curation.bytes.hash_tables import filled, slot_of_bytes
from curation.compiled import Bytes, Int, Int32s, Int64s, Uint64s, borrowing, inlined
from curation.errors import InputError
from curation.hashing import hash_spans, xxh64

_SEED = np.uint64(0)
_EMPTY = np.uint64(0xFFFFFFFFFFFFFFFF)
_ID_BITS = np.uint64(21)
#: Ids of a vocabulary stay below this.
MAX_TOKENS = 1 << 21
#: In place of the id of a pair that makes no token: beyond all of them.
NO_TOKEN = np.int64(0x7FFFFFFF)


class Tables(NamedTuple):
    """Flat arrays over a vocabulary of n tokens; slots are open-addressed, sizes powers of two."""

    blob: npt.NDArray[np.uint8]  # bytes of all tokens end to end
    offsets: npt.NDArray[np.int64]  # [n + 1] into blob
    slots: npt.NDArray[np.int32]  # token by hash of its bytes, -1 where empty
    pairs: npt.NDArray[np.uint64]  # left id, right id, token: 21 bits each; all ones where empty
    byte_ids: npt.NDArray[np.int32]  # [256] id of each single byte
    byte_pairs: npt.NDArray[np.int32]  # [256, 256] token of two bytes, or NO_TOKEN


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
def find_pair(left: Int, right: Int, pairs: Uint64s) -> Int:
    """Return the token that two tokens make, or NO_TOKEN."""
    both, h = _pair_hash(left, right)
    mask = np.uint64(len(pairs) - 1)
    slot = h >> np.uint64(32) & mask
    while pairs[slot] != _EMPTY:
        if pairs[slot] >> _ID_BITS == both:
            return np.int64(pairs[slot] & np.uint64(MAX_TOKENS - 1))
        slot = (slot + np.uint64(1)) & mask
    return NO_TOKEN


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


def tables(tokens: Sequence[bytes]) -> Tables:
    """Look-up tables of a vocabulary (tokens by rank; all 256 single bytes among them)."""
    ranks = {token: rank for rank, token in enumerate(tokens)}
    blob, offsets = flatten(tokens)
    hashes = hash_spans(blob, offsets[:-1], offsets[1:], _SEED)
    slots = filled(_power_of_two(3 * len(tokens)), hashes)
    found = splits(tokens)
    hash_all: Any = _pair_hash.py_func  # of arrays as of numbers
    both, h = hash_all(found[:, 0].astype(np.uint64), found[:, 1].astype(np.uint64))
    held = filled(_power_of_two(len(found) * 3 // 2), h >> np.uint64(32))
    pairs = np.append(both << _ID_BITS | found[:, 2].astype(np.uint64), _EMPTY)[held]
    byte_ids = np.array([ranks[bytes([b])] for b in range(256)], np.int32)
    byte_pairs = np.full((256, 256), NO_TOKEN, np.int32)
    for token in (t for t in tokens if len(t) == 2):
        byte_pairs[token[0], token[1]] = ranks[token]
    return Tables(blob, offsets, slots, pairs, byte_ids, byte_pairs)


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
            wrong = f"neither `base64 rank`, as in .tiktoken files, nor a tokenizer.json: {error}"
            raise InputError(f"{name}: line {number}: {wrong}") from None
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
