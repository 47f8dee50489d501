"""Vocabularies, tokenising, packed shards, and their reader."""

from curation.tokenize.megatron import IndexedWriter, read_index
from curation.tokenize.reader import TokenShards
from curation.tokenize.settings import TokenizeSettings
from curation.tokenize.shard import DOCUMENT_INDEX, ShardStats, count_tokens, write_shard
from curation.tokenize.tokenizer import Tokenizer, load_tokenizer
from curation.tokenize.train import CardFacts, TokenizerTraining, train, train_tokenizer

__all__ = [
    "DOCUMENT_INDEX",
    "CardFacts",
    "IndexedWriter",
    "ShardStats",
    "TokenShards",
    "TokenizeSettings",
    "Tokenizer",
    "TokenizerTraining",
    "count_tokens",
    "load_tokenizer",
    "read_index",
    "train",
    "train_tokenizer",
    "write_shard",
]
