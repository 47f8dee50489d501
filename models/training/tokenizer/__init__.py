"""Train a vocabulary: from scratch, or by continuing one whose ranks stay as they are."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import tiktoken
import yaml
from pydantic import Field

from curation.config import Positive, Settings, Share
from curation.errors import ConfigError, InputError
from curation.tokenize.card import CARD, special_tokens
from curation.tokenize.pretokenize import Pattern, pattern
from curation.tokenize.tokenizer import Tokenizer
from curation.tokenize.vocabulary import (
    MAX_TOKENS,
    add_bytes,
    empty_slots,
    flatten,
    format_ranks,
    parse_ranks,
    read_ranks,
)
from models.training.report import About, file_facts
from models.training.tokenizer.corpus import Batch, Group, read_corpus
from models.training.tokenizer.merges import initial_state, learn
from models.training.tokenizer.piece_counts import WordCounts
from models.training.tokenizer.shares import group_weights, read_shares

_SCALE = 1 << 56  # weight of the whole corpus: in whole numbers, sums and ties are exact


class TokenizerTraining(Settings):
    """How a vocabulary is trained. Defaults: `configs/train/tokenizer.yaml`."""

    size: int = Field(ge=256, lt=MAX_TOKENS, description="Tokens, special tokens not counted")
    pattern: str = Field(description="How text divides into pieces: `cl100k` or `marks`")
    special_tokens: int = Field(ge=3, le=1 << 16, description="Special tokens after the ranks")
    balance: Share = Field(
        description="Weight of a language is its size to this power (1: as they come, 0: all "
        "equal); the same among the sources of a language. Size is in tokens of the base, or bytes"
    )
    shares: str | None = Field(
        description="File with shares of languages, which then decide instead of sizes; see "
        "`configs/train/web-shares.yaml`"
    )
    longest_token: int = Field(ge=2, le=256, description="Bytes of the longest new token")
    longest_piece: int = Field(
        ge=2, le=1 << 16, description="Bytes of the longest piece to learn from"
    )
    min_count: Positive = Field(description="Pieces seen less often in a language are left out")


@dataclass(frozen=True)
class Trained:
    """A trained vocabulary: tokens by rank, and the bytes of text seen per language."""

    tokens: list[bytes]
    bytes_seen: dict[str, int]
    words: int


def count_words(
    corpus: Iterable[Batch], split: Pattern, settings: TokenizerTraining
) -> dict[Group, WordCounts]:
    """Distinct pieces of every group, in order of first appearance."""
    counts: dict[Group, WordCounts] = {}
    for group, texts, *times in corpus:
        words = counts.setdefault(group, WordCounts())
        words.count(texts, split, settings.longest_piece, times[0] if times else None)
    return counts


def _size(words: WordCounts, base: Tokenizer | None) -> int:
    """Return tokens of the base in all words together, or bytes."""
    if base is None:
        return words.bytes_seen
    _, bounds = base.encode_words(words.data, words.offsets)
    return int(np.diff(bounds) @ words.counts)


def _joined(
    counts: Mapping[Group, WordCounts], settings: TokenizerTraining, base: Tokenizer | None
) -> WordCounts:
    """Return all groups' words with balanced weights."""
    shares = read_shares(settings.shares) if settings.shares else None
    sizes = {group: _size(words, base) for group, words in counts.items()}
    weights = group_weights(sizes, settings.balance, shares)
    joined = WordCounts()
    for group in sorted(weights):
        words = counts[group]
        weight = words.counts * round(weights[group] * _SCALE)
        weight[words.counts < settings.min_count] = 0
        joined.add(words, weight)
    return joined


def train(
    corpus: Iterable[Batch],
    settings: TokenizerTraining,
    base: list[bytes] | None = None,
) -> Trained:
    """Learn merges until there are `size` tokens, from texts with their (language, source).

    A batch may have a third part: how often each of its texts occurs (int64 [texts]).

    `base` holds tokens by rank that stay as they are; without it training starts from the 256
    bytes. Ties go to the lower ids. Raises ConfigError when `base` is larger than `size`, and
    InputError when the corpus holds too little text for so many tokens.
    """
    tokens = list(base) if base is not None else [bytes([b]) for b in range(256)]
    if len(tokens) > settings.size:
        raise ConfigError(f"size {settings.size} is below the base's {len(tokens)} tokens")
    split = pattern(settings.pattern)
    counts = count_words(corpus, split, settings)
    seen: dict[str, int] = {}
    for (language, _), words in counts.items():
        seen[language] = seen.get(language, 0) + words.bytes_seen
    encoder = Tokenizer("base", tokens, split, special_tokens(3)) if base is not None else None
    joined = _joined(counts, settings, encoder)
    counts.clear()
    learned = _learn(joined, tokens, split, settings)
    if len(learned) < settings.size:
        raise InputError(
            f"the corpus ({sum(seen.values())} bytes, {len(joined)} distinct pieces) supports "
            f"{len(learned)} tokens, not {settings.size}: give more text or a smaller size"
        )
    return Trained(learned, dict(sorted(seen.items())), len(joined))


def _learn(
    words: WordCounts, tokens: list[bytes], split: Pattern, settings: TokenizerTraining
) -> list[bytes]:
    """Return tokens by rank after learning, the given ones first."""
    encoder = Tokenizer("base", tokens, split, special_tokens(3))
    ids, bounds = encoder.encode_words(words.data, words.offsets)
    weights = words.counts.copy()
    # Words of one symbol or no weight have no pairs to give.
    use = (np.diff(bounds) > 1) & (weights > 0)
    symbols, offsets = _take(ids.astype(np.int32), bounds, use)
    blob, ends, slots = _with_room(tokens, settings)
    state = initial_state(symbols, offsets, weights[use])
    count = learn(state, blob, ends, slots, len(tokens), settings.size, settings.longest_token)
    data = blob.tobytes()
    return [data[ends[k] : ends[k + 1]] for k in range(count)]


def _take(
    symbols: npt.NDArray[np.int32], offsets: npt.NDArray[np.int64], use: npt.NDArray[np.bool_]
) -> tuple[npt.NDArray[np.int32], npt.NDArray[np.int64]]:
    lengths = np.diff(offsets)
    kept = np.zeros(int(use.sum()) + 1, np.int64)
    np.cumsum(lengths[use], out=kept[1:])
    return symbols[np.repeat(use, lengths)], kept


def _with_room(
    tokens: list[bytes], settings: TokenizerTraining
) -> tuple[npt.NDArray[np.uint8], npt.NDArray[np.int64], npt.NDArray[np.int32]]:
    """Blob, offsets and slots of the tokens, with room for `settings.size` of them."""
    blob, offsets = flatten(tokens)
    more = settings.size - len(tokens)
    blob = np.concatenate([blob, np.zeros((more + 1) * settings.longest_token, np.uint8)])
    offsets = np.concatenate([offsets, np.zeros(more + 1, np.int64)])
    slots = empty_slots(settings.size)
    for token in range(len(tokens)):
        add_bytes(token, blob, offsets, slots)
    return blob, offsets, slots


def base_ranks(base: str | Path) -> list[bytes]:
    """Return tokens by rank of a `.tiktoken` file, or of an encoding that tiktoken has by this
    name.

    tiktoken takes them from its cache (`TIKTOKEN_CACHE_DIR`) or downloads them. Raises InputError
    when the file is damaged, or neither is to be had.
    """
    name = Path(base).name.removesuffix(".tiktoken")
    if Path(base).exists() or name not in tiktoken.list_encoding_names():
        return read_ranks(base)
    try:
        ranks = tiktoken.get_encoding(name)._mergeable_ranks
    except (OSError, ValueError) as error:
        raise InputError(
            f"{base}: no such file, and tiktoken can't get {name}: {type(error).__name__}; "
            "download the file yourself and name it"
        ) from None
    return parse_ranks(format_ranks(sorted(ranks, key=lambda t: ranks[t])), name)


def train_tokenizer(
    corpus: Iterable[str],
    out: str | Path,
    settings: TokenizerTraining,
    base: str | Path | None = None,
    name: str = "tokenizer",
    about: About | None = None,
) -> dict[str, Any]:
    """Train from files and write `<name>.tiktoken` and `card.yaml` into the folder `out`.

    Files: Parquet or JSON lines (`.jsonl`, `.jsonl.gz`) with `text` and, if balancing is wanted,
    `language` and `source`; or `.txt`, whose name is the language. `base` is as in `base_ranks`.
    Returns the card; `load_tokenizer(out)` reads the result.
    """
    files = sorted(corpus)
    started_from = base_ranks(base) if base else None
    trained = train(read_corpus(files), settings, started_from)
    folder = Path(out)
    folder.mkdir(parents=True, exist_ok=True)
    content = format_ranks(trained.tokens)
    known = about or About("1", "unstated", "", "")
    card: dict[str, Any] = {
        "name": name,
        "version": known.version,
        "task": "tokenizer",
        "file": f"{name}.tiktoken",
        "sha256": hashlib.sha256(content).hexdigest(),
        "licence": known.licence,
        "source": known.source,
        "command": known.command or None,
        "pattern": settings.pattern,
        "special_tokens": settings.special_tokens,
        "tokens": len(trained.tokens),
        "base": None
        if started_from is None
        else {
            "file": Path(str(base)).name,
            "sha256": hashlib.sha256(format_ranks(started_from)).hexdigest(),
        },
        "settings": settings.model_dump(),
        "data": {
            "files": file_facts(files),
            "distinct_pieces": trained.words,
            "bytes_by_language": trained.bytes_seen,
        },
    }
    (folder / card["file"]).write_bytes(content)
    text = yaml.safe_dump(card, sort_keys=False, allow_unicode=True, width=100)
    (folder / CARD).write_text(text, encoding="utf-8")
    return card
