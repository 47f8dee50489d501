"""Encode and decode with a byte-level BPE vocabulary in tiktoken's format."""

from __future__ import annotations

import functools
import hashlib
import os
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from curation.arrow import TextBuffers, Texts, divided, read_only, text_buffers
from curation.config import read_yaml
from curation.errors import ConfigError, InputError
from curation.kernels import kept
from curation.resources import resolve, sha256_of
from curation.tokenize import hf_tokenizer
from curation.tokenize.card import (
    BOS,
    BUILTIN,
    CARD,
    EOS,
    PAD,
    SPECIAL_TOKENS,
    is_hugging_face,
    special_tokens,
)
from curation.tokenize.encode import SPARE, Encoder, Memory, encode_texts, encoder, new_memory
from curation.tokenize.pretokenize import Pattern, pattern
from curation.tokenize.vocabulary import Tables, format_ranks, read_ranks, tables

Ids = npt.NDArray[np.uint32]
Offsets = npt.NDArray[np.int64]

_CHUNK_BYTES = 4 << 20  # text per kernel call; bounds the room for ids at four times that


class Tokenizer:
    """A vocabulary with its pattern and special tokens.

    Ids are ranks; special tokens take the ids after the ranks and are never made from text.
    Instances are safe to share between threads.
    """

    def __init__(
        self, name: str, tokens: list[bytes], split: Pattern, specials: Sequence[str]
    ) -> None:
        """`tokens` by rank; `specials` must hold the names of begin, end and pad tokens."""
        self.name = name
        self.tokens = tokens
        self.pattern = split
        self.special_tokens = {text: len(tokens) + k for k, text in enumerate(specials)}
        missing = [text for text in (BOS, EOS, PAD) if text not in self.special_tokens]
        if missing:
            raise ConfigError(f"tokenizer {name}: special tokens lack {missing}")
        self._idle: list[Memory] = []  # of threads; list operations are atomic

    def __reduce__(self) -> tuple[Any, ...]:
        return Tokenizer, (self.name, self.tokens, self.pattern, tuple(self.special_tokens))

    @functools.cached_property
    def token_tables(self) -> Tables:
        """The vocabulary's look-up tables, which kernels take as they are."""
        return tables(self.tokens)

    @functools.cached_property
    def _encoder(self) -> Encoder:
        return encoder(self.token_tables)

    @property
    def vocab_size(self) -> int:
        """Ranks and special tokens together."""
        return len(self.tokens) + len(self.special_tokens)

    @property
    def bos(self) -> int:
        return self.special_tokens[BOS]

    @property
    def eos(self) -> int:
        return self.special_tokens[EOS]

    @property
    def pad(self) -> int:
        return self.special_tokens[PAD]

    @functools.cached_property
    def sha256(self) -> str:
        """Identity of the vocabulary: SHA-256 over pattern, specials, and tokens with lengths."""
        digest = hashlib.sha256()
        digest.update("\0".join([self.pattern.expression, *self.special_tokens]).encode())
        for token in self.tokens:
            digest.update(len(token).to_bytes(4, "little") + token)
        return digest.hexdigest()

    @functools.cached_property
    def file_sha256(self) -> str:
        """SHA-256 of the `.tiktoken` file with these tokens, as cards state it."""
        return hashlib.sha256(format_ranks(self.tokens)).hexdigest()

    def encode_batch(self, texts: Texts, threads: int = 1) -> tuple[Ids, Offsets]:
        """Ids of all texts end to end (uint32) and their bounds (int64 [n + 1]).

        Nulls are empty. Lone surrogates in Python strings become U+FFFD as in tiktoken.
        `threads` changes the time only.
        """
        buffers = text_buffers(texts)
        ranges = divided(buffers.offsets, _CHUNK_BYTES)
        if threads > 1 and len(ranges) > 1:
            with ThreadPoolExecutor(threads) as pool:
                parts = list(pool.map(lambda r: self._encode_range(buffers, *r), ranges))
        else:
            parts = [self._encode_range(buffers, *r) for r in ranges]
        offsets = np.zeros(len(buffers) + 1, np.int64)
        if not parts:
            return np.zeros(0, np.uint32), offsets
        base = 0
        for (first, last), (found, bounds) in zip(ranges, parts, strict=True):
            offsets[first + 1 : last + 1] = bounds[1:] + base
            base += len(found)
        return _joined([found for found, _ in parts]), offsets

    def _encode_range(self, buffers: TextBuffers, first: int, last: int) -> tuple[Ids, Offsets]:
        """Ids of some texts; of one long text chunk by chunk, each ending between two pieces."""
        offsets = buffers.offsets[first : last + 1]
        # Pages that nobody fills cost nothing.
        out = np.empty(offsets[-1] - offsets[0] + SPARE + 1, np.uint32)
        if last - first != 1:
            ids, bounds, _ = self._encode(buffers.data, offsets, int(offsets[-1]), out)
            return ids, bounds
        parts, reached, end = [], int(offsets[0]), int(offsets[-1])
        while reached < end:
            rest = np.array([reached, end])
            ids, _, reached = self._encode(buffers.data, rest, reached + _CHUNK_BYTES, out)
            parts.append(ids)
        del out
        ids = _joined(parts)
        return ids, np.array([0, len(ids)])

    def _encode(
        self, data: npt.NDArray[np.uint8], offsets: Offsets, limit: int, out: Ids
    ) -> tuple[Ids, Offsets, int]:
        try:
            memory = self._idle.pop()
        except IndexError:
            memory = new_memory()
        bounds = np.empty(len(offsets), np.int64)
        n, reached = encode_texts(
            *(read_only(data), read_only(offsets), limit, self.pattern.classes),
            *(self._encoder, memory, out, bounds),
        )
        self._idle.append(memory)
        return out[:n].copy(), bounds, int(reached)

    def encode_words(self, data: npt.NDArray[np.uint8], offsets: Offsets) -> tuple[Ids, Offsets]:
        """As `encode_batch`, over bytes laid end to end, which need not be UTF-8."""
        return self._encode_range(TextBuffers(offsets, data), 0, len(offsets) - 1)

    def encode(self, text: str) -> list[int]:
        """Ids of one text, no special tokens."""
        return self.encode_batch([text])[0].tolist()

    def decode_bytes(self, ids: Sequence[int] | npt.NDArray[np.integer]) -> bytes:
        """Bytes of the ids; special tokens give their names. Raises InputError on an unknown id."""
        names = self._special_names
        pieces = []
        for i in np.asarray(ids, np.int64).tolist():
            if not 0 <= i < self.vocab_size:
                raise InputError(f"tokenizer {self.name} has no id {i} (0..{self.vocab_size - 1})")
            pieces.append(self.tokens[i] if i < len(self.tokens) else names[i])
        return b"".join(pieces)

    def decode(self, ids: Sequence[int] | npt.NDArray[np.integer]) -> str:
        """Text of the ids; bytes that are no UTF-8 become U+FFFD."""
        return self.decode_bytes(ids).decode("utf-8", errors="replace")

    @functools.cached_property
    def _special_names(self) -> dict[int, bytes]:
        return {i: text.encode() for text, i in self.special_tokens.items()}

    def is_special(self, ids: npt.NDArray[np.integer]) -> npt.NDArray[np.bool_]:
        """Whether each id is a special token, which is no part of a text."""
        return np.asarray(ids) >= len(self.tokens)

    def token_ends(self, text: str) -> npt.NDArray[np.int64]:
        """Return the end byte in the text of each of its tokens."""
        return np.cumsum([len(self.tokens[i]) for i in self.encode(text)], dtype=np.int64)

    def save_hf(self, folder: str | Path) -> None:
        """Write `tokenizer.json` and `tokenizer_config.json` for Hugging Face libraries.

        The names of special tokens in a document stay text; to have them parsed (chat templates),
        give them to `add_special_tokens`, which keeps their ids.
        """
        hf_tokenizer.write_files(
            Path(folder), self.tokens, self.pattern.expression, self.special_tokens
        )


def _joined(parts: list[Ids]) -> Ids:
    """All ids end to end; empties the list, so that no more than one part is there twice."""
    if len(parts) == 1:
        return parts.pop()
    whole, at = np.empty(sum(map(len, parts)), np.uint32), 0
    while parts:
        part = parts.pop(0)
        whole[at : at + len(part)] = part
        at += len(part)
    return whole


def from_file(path: Path) -> Tokenizer:
    """A tokenizer from a `.tiktoken` file, or a folder with `card.yaml` that names one.

    The card next to the file, if it names it, gives pattern, special tokens and checksum; without a
    card the file is read as tiktoken's cl100k_base would be, with the usual 256 special tokens.
    """
    card_path = (path if path.is_dir() else path.parent) / CARD
    card = read_yaml(card_path) if path.is_dir() or card_path.exists() else {}
    if path.is_dir():
        if "file" not in card:
            raise ConfigError(f"{card_path}: no `file` key naming the vocabulary")
        path = path / str(card["file"])
    elif card.get("file") != path.name:
        card = {}
    try:
        is_whole = sha256_of(path) == str(card.get("sha256", sha256_of(path)))
    except OSError as error:
        raise InputError(f"{path}: cannot read the vocabulary: {error.strerror}") from None
    if not is_whole:
        raise InputError(f"{path}: SHA-256 is not the one in {card_path.name}: file damaged?")
    count = int(card.get("special_tokens", SPECIAL_TOKENS))
    name = str(card.get("name", path.stem))
    split = pattern(str(card.get("pattern", "cl100k")))
    tokens, ready = _read(path)
    tokenizer = Tokenizer(name, tokens, split, special_tokens(count))
    tokenizer.token_tables = ready
    return tokenizer


@kept
def _read(path: Path) -> tuple[list[bytes], Tables]:
    """Return the tokens of a file, and their tables."""
    tokens = read_ranks(path)
    return tokens, tables(tokens)


AnyTokenizer = Tokenizer | hf_tokenizer.HuggingFaceTokenizer


@functools.lru_cache(maxsize=4)
def load_tokenizer(name_or_path: str | os.PathLike[str]) -> AnyTokenizer:
    """The tokenizer of that name or at that path; repeated calls share one instance.

    A built-in name (`curation-128k`), `cl100k_base` (through tiktoken, which may download it), a
    `.tiktoken` file, a folder that `train_tokenizer` wrote, or a `tokenizer.json` of Hugging Face
    or a folder that has one. Raises ConfigError or InputError.
    """
    name = os.fspath(name_or_path)
    path = Path(resolve(BUILTIN.get(name, name)))
    if is_hugging_face(path):
        return hf_tokenizer.from_path(path)
    if path.exists():
        return from_file(path)
    if name == "cl100k_base":
        import tiktoken

        try:
            ranks = tiktoken.get_encoding(name)._mergeable_ranks
        except OSError as error:  # requests' errors are
            raise ConfigError(
                f"tokenizer {name!r}: not in tiktoken's cache, and the download failed "
                f"({type(error).__name__}); give a .tiktoken file"
            ) from None
        tokens = sorted(ranks, key=ranks.__getitem__)
        return Tokenizer(name, tokens, pattern("cl100k"), special_tokens(SPECIAL_TOKENS))
    raise ConfigError(f"no tokenizer {name!r}: neither a file nor one of {sorted(BUILTIN)}")


def load_ranks(name_or_path: str | os.PathLike[str]) -> Tokenizer:
    """As `load_tokenizer`, where a vocabulary by rank is needed. Raises ConfigError for others."""
    found = load_tokenizer(os.fspath(name_or_path))
    if not isinstance(found, Tokenizer):
        raise ConfigError(f"{found.path}: needs a vocabulary by rank, such as a .tiktoken file")
    return found
