"""Vocabularies, tokenization, packed shards, and their reader."""

from __future__ import annotations

from typing import TYPE_CHECKING

from curation.lazy import lazily

if TYPE_CHECKING:
    from curation.tokenize.megatron import IndexedWriter, read_index
    from curation.tokenize.reader import TokenShards, TokenStages
    from curation.tokenize.shard import DOCUMENT_INDEX, count_tokens, write_shard
    from curation.tokenize.tokenize_settings import TokenizeSettings
    from curation.tokenize.tokenizer import Tokenizer, load_tokenizer

__all__ = [
    "DOCUMENT_INDEX",
    "IndexedWriter",
    "TokenShards",
    "TokenStages",
    "TokenizeSettings",
    "Tokenizer",
    "count_tokens",
    "load_tokenizer",
    "read_index",
    "write_shard",
]

_MODULES = {
    "megatron": ("IndexedWriter", "read_index"),
    "reader": ("TokenShards", "TokenStages"),
    "tokenize_settings": ("TokenizeSettings",),
    "shard": ("DOCUMENT_INDEX", "count_tokens", "write_shard"),
    "tokenizer": ("Tokenizer", "load_tokenizer"),
}
lazily(__name__, _MODULES)
