"""MinHash signatures (Broder 1997), bit for bit those of datasketch for the same shingle bytes.

`band_hashes` divides them into bands (Leskovec et al., MMDS, chapter 3).

Measured on English with 5-word shingles, 112 values: see `benchmarks/dedup.py`.

Shingles: the hashed n-grams of words or characters that make a document a set.

The bytes of a word shingle are its normalised tokens, UTF-8, joined by one space; those of a
character shingle are its characters. Each is hashed by XXH64 with seed 0.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import xxhash

from curation.arrow import Texts, large_strings, text_buffers
from curation.compiled import Bytes, Int64s, Kernel, Uint32s, Uint64s, borrowing, kernel
from curation.dedup.characters import character_table
from curation.dedup.dedup_settings import DocumentDedupSettings, MinHashSettings, Scheme, defaults
from curation.dedup.normalize import scratch_bytes, write_characters, write_normalized, write_tokens
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


class _Rules(NamedTuple):
    """`MinHashSettings` as the kernel takes them."""

    words: bool  # else characters
    collapse: bool  # white space
    ngram: int
    whole: bool  # texts shorter than a shingle are one


def shingles(texts: Texts, settings: MinHashSettings) -> Shingles:
    """Hash every shingle of every text.

    Takes 8 bytes of memory per byte of text; `curation.dedup.minhash` works in slices.
    """
    buffers = text_buffers(texts)
    table = character_table(settings.normalization)
    scratch = np.empty(scratch_bytes(buffers, table.growth), np.uint8)
    starts = np.empty(len(scratch) + 1, np.int64)
    total = int(buffers.offsets[-1] - buffers.offsets[0])
    # A text never has more characters or words than bytes, unless a character decomposes.
    hashes = np.empty(total * (table.growth if settings.unit == "characters" else 1), np.uint64)
    offsets = np.zeros(len(buffers) + 1, np.int64)
    rules = _Rules(
        settings.unit == "words",
        settings.normalization.whitespace == "collapse",
        settings.ngram,
        settings.short_documents == "whole",
    )
    _hash_shingles(buffers.data, buffers.offsets, table, rules, scratch, starts, hashes, offsets)
    return Shingles(hashes[: offsets[-1]], offsets)


@borrowing
def _hash_shingles(
    data: Bytes,
    text_offsets: Int64s,
    table: CharacterTable,
    rules: _Rules,
    scratch: Bytes,
    starts: Int64s,
    hashes: Uint64s,
    offsets: Int64s,
) -> None:
    seed = np.uint64(0)
    gap = 1 if rules.words else 0  # between the end of a unit and the start of the next
    n = 0
    for d in range(len(text_offsets) - 1):
        start, end = text_offsets[d], text_offsets[d + 1]
        if rules.words:
            units = write_tokens(data, start, end, table, scratch, starts)
        else:
            size = write_normalized(data, start, end, table, rules.collapse, scratch)
            units = write_characters(scratch, size, starts)
        for k in range(units - rules.ngram + 1):
            hashes[n] = xxh64(scratch, starts[k], starts[k + rules.ngram] - gap, seed)
            n += 1
        if rules.whole and 0 < units < rules.ngram:
            hashes[n] = xxh64(scratch, 0, starts[units] - gap, seed)
            n += 1
        offsets[d + 1] = n


# Slices of about this much text keep the shingle hashes in the processor's cache.
_SLICE_BYTES = 1 << 20

#: Storage of a signature value in each scheme, as datasketch has it.
DTYPES: dict[str, type[np.unsignedinteger[Any]]] = {
    "affine32": np.uint32,
    "affine64": np.uint64,
    "legacy": np.uint64,
}
#: Greatest value of each scheme: all that an empty MinHash holds.
GREATEST = {"affine32": 2**32 - 1, "affine64": 2**64 - 1, "legacy": 2**32 - 1}


class Signatures(NamedTuple):
    """Signatures of a batch; a document without shingles has the greatest value everywhere."""

    values: npt.NDArray[Any]  # [documents, num_perm], dtype of the scheme
    shingles: npt.NDArray[np.int64]  # [documents], shingles hashed; 0: no signature


def minhash_signatures(
    texts: Texts,
    *,
    num_perm: int | None = None,
    seed: int | None = None,
    ngram: int | None = None,
    scheme: Scheme | None = None,
    settings: MinHashSettings | None = None,
) -> npt.NDArray[Any]:
    """MinHash signature of each text -> uint array [documents, num_perm].

    What is not given comes from `settings`, and these from `configs/defaults/dedup-documents.yaml`.
    Every row is the `hashvalues` of a `datasketch.MinHash(num_perm, seed, scheme=scheme,
    hashfunc=hash_function(scheme))` updated with the document's shingles; read one with
    `datasketch.MinHash(hashvalues=row, seed=seed, scheme=scheme)`. Documents with fewer words than
    a shingle have, unless `short_documents` is "whole", are empty MinHashes: the greatest value
    everywhere (see `has_signature`).
    """
    settings = settings or defaults(DocumentDedupSettings).minhash
    asked = {"num_perm": num_perm, "seed": seed, "ngram": ngram, "scheme": scheme}
    given = {name: value for name, value in asked.items() if value is not None}
    if given:
        merged = {**dict(settings), **given}
        if merged["bands"] * merged["rows"] > merged["num_perm"]:  # bands play no part here
            merged |= {"bands": 1, "rows": 1}
        settings = MinHashSettings.model_validate(merged)
    return signatures(texts, settings).values


def signatures(texts: Texts, settings: MinHashSettings) -> Signatures:
    """Signatures of texts with their shingle counts."""
    array = large_strings(texts)
    values = np.empty((len(array), settings.num_perm), DTYPES[settings.scheme])
    counts = np.zeros(len(array), np.int64)
    for first, end in _slices(array):
        part = shingles(array.slice(first, end - first), settings)
        values[first:end] = sign(part, settings.num_perm, settings.seed, settings.scheme)
        counts[first:end] = part.counts
    return Signatures(values, counts)


def sign(sets: Shingles, num_perm: int, seed: int, scheme: Scheme) -> npt.NDArray[Any]:
    """Signatures [sets, num_perm] of sets of 64-bit hashes.

    The 32-bit schemes read the low half of each hash, as `hash_function` does.
    """
    a, b = permutations(num_perm, seed, scheme)
    out = np.full((len(sets.offsets) - 1, num_perm), GREATEST[scheme], DTYPES[scheme])
    _KERNELS[scheme](sets.hashes, sets.offsets, a, b, out)
    return out


def has_signature(values: npt.NDArray[Any], scheme: Scheme) -> npt.NDArray[np.bool_]:
    """False for the rows that are empty MinHashes -> bool [documents]."""
    found: npt.NDArray[np.bool_] = (values != GREATEST[scheme]).any(axis=1)
    return found


def hash_function(scheme: Scheme) -> Callable[[bytes], int]:
    """The `hashfunc` with which a datasketch.MinHash of this scheme gets the same values."""
    return xxhash.xxh64_intdigest if scheme == "affine64" else _xxh64_low


def _xxh64_low(data: bytes) -> int:
    return xxhash.xxh64_intdigest(data) & 0xFFFFFFFF


@functools.lru_cache(maxsize=8)
@kept
def permutations(num_perm: int, seed: int, scheme: Scheme) -> tuple[npt.NDArray[Any], ...]:
    """Return multipliers and addends of datasketch's permutations, each [num_perm]."""
    from datasketch import MinHash  # imports scipy's integrals

    drawn = MinHash(num_perm=num_perm, seed=seed, scheme=scheme).permutations
    a, b = (np.ascontiguousarray(part, DTYPES[scheme]) for part in drawn)
    return a, b


def _slices(array: pa.Array) -> Iterator[tuple[int, int]]:
    """Ranges of documents of about `_SLICE_BYTES` each, at least one document."""
    offsets = text_buffers(array).offsets
    first = 0
    while first < len(array):
        end = int(np.searchsorted(offsets, offsets[first] + _SLICE_BYTES, "right")) - 1
        end = min(max(end, first + 1), len(array))
        yield first, end
        first = end


# Each kernel goes over the permutations outside and the shingles inside, so that the compiler
# turns the inner loop into vector instructions that hold the minimum in a register.


@kernel
def _affine32(hashes: Uint64s, offsets: Int64s, a: Uint32s, b: Uint32s, out: Uint32s) -> None:
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


@kernel
def _affine64(hashes: Uint64s, offsets: Int64s, a: Uint64s, b: Uint64s, out: Uint64s) -> None:
    mixed = np.empty(len(hashes), np.uint64)
    for d in range(len(offsets) - 1):
        first = offsets[d]
        count = offsets[d + 1] - first
        for j in range(count):  # MurmurHash3's finaliser of 64 bits
            h = hashes[first + j]
            h = (h ^ (h >> np.uint64(33))) * np.uint64(0xFF51AFD7ED558CCD)
            h = (h ^ (h >> np.uint64(33))) * np.uint64(0xC4CEB9FE1A85EC53)
            mixed[j] = h ^ (h >> np.uint64(33))
        for k in range(len(a)):
            multiplier, addend, least = a[k], b[k], out[d, k]
            for j in range(count):
                least = min(least, multiplier * mixed[j] + addend)
            out[d, k] = least


@borrowing
def _legacy(hashes: Uint64s, offsets: Int64s, a: Uint64s, b: Uint64s, out: Uint64s) -> None:
    low = np.uint64(0xFFFFFFFF)
    prime = np.uint64((1 << 61) - 1)
    for d in range(len(offsets) - 1):
        for k in range(len(a)):
            multiplier, addend, least = a[k], b[k], out[d, k]
            for j in range(offsets[d], offsets[d + 1]):
                x = multiplier * (hashes[j] & low) + addend  # wraps at 2^64, as datasketch's does
                x = (x & prime) + (x >> np.uint64(61))
                x = x - prime if x >= prime else x
                least = min(least, x & low)
            out[d, k] = least


_KERNELS: dict[Scheme, Kernel[..., None]] = {
    "affine32": _affine32,
    "affine64": _affine64,
    "legacy": _legacy,
}


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
