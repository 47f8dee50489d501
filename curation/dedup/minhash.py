"""MinHash signatures (Broder 1997), bit for bit those of datasketch for the same shingle bytes.

`band_hashes` divides them into bands (Leskovec et al., MMDS, chapter 3).

Measured on English with 5-word shingles, 112 values: see `benchmarks/dedup.py`.

Shingles: the hashed n-grams of words that make a document a set. The bytes of a shingle are its
normalised tokens, UTF-8, joined by one space, hashed by XXH64 with seed 0.
"""

from __future__ import annotations

import functools
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import numpy.typing as npt
import xxhash

from curation.arrow import Texts, divided, large_strings, text_buffers
from curation.compiled import Bytes, Int, Int64s, Uint32s, Uint64s, borrowing, kernel
from curation.dedup.characters import character_table
from curation.dedup.dedup_settings import DocumentDedupSettings, MinHashSettings, defaults
from curation.dedup.normalize import scratch_bytes, write_tokens
from curation.errors import ConfigError
from curation.hashing import hash_spans, xxh64
from curation.kernels import kept

if TYPE_CHECKING:
    from curation.dedup.characters import CharacterTable


class Shingles(NamedTuple):
    """Shingles of document i: `hashes[offsets[i]:offsets[i + 1]]`, in text order, repeats kept."""

    hashes: npt.NDArray[np.uint64]
    offsets: npt.NDArray[np.int64]  # [documents + 1]

    @property
    def counts(self) -> npt.NDArray[np.int64]:
        return np.diff(self.offsets)


def shingles(texts: Texts, settings: MinHashSettings) -> Shingles:
    """Hash every shingle of every text.

    Takes 8 bytes of memory per byte of text; `curation.dedup.minhash` works in slices.
    """
    buffers = text_buffers(texts)
    table = character_table(settings.normalization)
    scratch = np.empty(scratch_bytes(buffers, table.growth), np.uint8)
    starts = np.empty(len(scratch) + 1, np.int64)
    # A text never has more words than bytes.
    hashes = np.empty(int(buffers.offsets[-1] - buffers.offsets[0]), np.uint64)
    offsets = np.zeros(len(buffers) + 1, np.int64)
    args = (buffers.data, buffers.offsets, table, settings.ngram, scratch, starts)
    _hash_shingles(*args, hashes, offsets)
    return Shingles(hashes[: offsets[-1]], offsets)


@borrowing
def _hash_shingles(
    data: Bytes,
    text_offsets: Int64s,
    table: CharacterTable,
    ngram: Int,
    scratch: Bytes,
    starts: Int64s,
    hashes: Uint64s,
    offsets: Int64s,
) -> None:
    seed = np.uint64(0)
    n = 0
    for d in range(len(text_offsets) - 1):
        start, end = text_offsets[d], text_offsets[d + 1]
        words = write_tokens(data, start, end, table, scratch, starts)
        for k in range(words - ngram + 1):
            hashes[n] = xxh64(scratch, starts[k], starts[k + ngram] - 1, seed)
            n += 1
        offsets[d + 1] = n


# Slices of about this much text keep the shingle hashes in the processor's cache.
_SLICE_BYTES = 1 << 20

#: datasketch 2's default: bijective, 4 bytes a value, the fastest.
_SCHEME = "affine32"
#: Greatest value: all that an empty MinHash holds.
_GREATEST = 2**32 - 1


def minhash_signatures(
    texts: Texts,
    *,
    num_perm: int | None = None,
    seed: int | None = None,
    ngram: int | None = None,
    settings: MinHashSettings | None = None,
) -> npt.NDArray[np.uint32]:
    """MinHash signature of each text -> uint32 [documents, num_perm].

    What is not given comes from `settings`, and these from `configs/defaults/dedup-documents.yaml`.
    Every row is the `hashvalues` of a `datasketch.MinHash(num_perm, seed, scheme="affine32",
    hashfunc=hash_function)` updated with the document's shingles; read one with
    `datasketch.MinHash(hashvalues=row, seed=seed, scheme="affine32")`. Documents with fewer words
    than a shingle has are empty MinHashes: the greatest value everywhere (see `has_signature`).
    """
    settings = settings or defaults(DocumentDedupSettings).minhash
    asked = {"num_perm": num_perm, "seed": seed, "ngram": ngram}
    given = {name: value for name, value in asked.items() if value is not None}
    if given:
        merged = {**dict(settings), **given}
        if merged["bands"] * merged["rows"] > merged["num_perm"]:  # bands play no part here
            merged |= {"bands": 1, "rows": 1}
        settings = MinHashSettings.model_validate(merged)
    return signatures(texts, settings)


def signatures(texts: Texts, settings: MinHashSettings) -> npt.NDArray[np.uint32]:
    """Signatures of texts [documents, num_perm]; one without shingles has the greatest value
    everywhere."""
    array = large_strings(texts)
    values = np.empty((len(array), settings.num_perm), np.uint32)
    for first, end in divided(text_buffers(array).offsets, _SLICE_BYTES):
        part = shingles(array.slice(first, end - first), settings)
        values[first:end] = sign(part, settings.num_perm, settings.seed)
    return values


def sign(sets: Shingles, num_perm: int, seed: int) -> npt.NDArray[np.uint32]:
    """Signatures [sets, num_perm] of sets of hashes, whose low half is read."""
    a, b = permutations(num_perm, seed)
    out = np.full((len(sets.offsets) - 1, num_perm), _GREATEST, np.uint32)
    _sign(sets.hashes, sets.offsets, a, b, out)
    return out


def has_signature(values: npt.NDArray[np.uint32]) -> npt.NDArray[np.bool_]:
    """False for the rows that are empty MinHashes -> bool [documents]."""
    found: npt.NDArray[np.bool_] = (values != _GREATEST).any(axis=1)
    return found


def hash_function(data: bytes) -> int:
    """The `hashfunc` with which a datasketch.MinHash gets the same values."""
    return xxhash.xxh64_intdigest(data) & _GREATEST


@functools.lru_cache(maxsize=8)
@kept
def permutations(num_perm: int, seed: int) -> tuple[npt.NDArray[np.uint32], ...]:
    """Return multipliers and addends of datasketch's permutations, each [num_perm]."""
    from datasketch import MinHash  # imports scipy's integrals

    drawn = MinHash(num_perm=num_perm, seed=seed, scheme=_SCHEME).permutations
    return tuple(np.ascontiguousarray(part, np.uint32) for part in drawn)


# The kernel goes over the permutations outside and the shingles inside, so that the compiler
# turns the inner loop into vector instructions that hold the minimum in a register.


@kernel
def _sign(hashes: Uint64s, offsets: Int64s, a: Uint32s, b: Uint32s, out: Uint32s) -> None:
    mixed = np.empty(len(hashes), np.uint32)
    for d in range(len(offsets) - 1):
        first = offsets[d]
        count = offsets[d + 1] - first
        for j in range(count):  # MurmurHash3's finaliser of 32 bits
            h = np.uint32(hashes[first + j])
            h = np.uint32(h ^ (h >> np.uint32(16)))
            h = np.uint32(h * np.uint32(0x85EBCA6B))
            h = np.uint32(h ^ (h >> np.uint32(13)))
            h = np.uint32(h * np.uint32(0xC2B2AE35))
            mixed[j] = np.uint32(h ^ (h >> np.uint32(16)))
        for k in range(len(a)):
            multiplier, addend, least = a[k], b[k], out[d, k]
            for j in range(count):
                least = min(least, np.uint32(multiplier * mixed[j] + addend))
            out[d, k] = least


def band_hashes(signatures: npt.NDArray[Any], bands: int, rows: int) -> npt.NDArray[np.uint64]:
    """64-bit hash of each band of each signature -> uint64 [documents, bands].

    The band's number is mixed in, so that hashes of different bands may share one table. Values
    beyond bands x rows are not used. Two different bands get the same hash with chance 2^-64.

    Raises ConfigError when the signatures are shorter than bands x rows.
    """
    if bands < 1 or rows < 1 or bands * rows > signatures.shape[1]:
        raise ConfigError(
            f"bands x rows = {bands} x {rows} does not fit signatures of {signatures.shape[1]}"
        )
    data = np.ascontiguousarray(signatures).view(np.uint8)
    size = signatures.dtype.itemsize * rows
    firsts = np.arange(len(data)) * data.shape[1]
    found = [
        hash_spans(data.reshape(-1), start, start + size, np.uint64(band))
        for band, start in enumerate(firsts + band * size for band in range(bands))
    ]
    return np.stack(found, axis=1)


def band_threshold(bands: int, rows: int) -> float:
    """Similarity about which the candidate probability rises: (1 / bands)^(1 / rows)."""
    return float((1.0 / bands) ** (1.0 / rows))
