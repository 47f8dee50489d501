"""Vocabularies, tokenization, packed shards, and their reader."""

from typing import TYPE_CHECKING

from curation.lazy import lazily

if TYPE_CHECKING:
    from curation.tokenize.reader import TokenShards as TokenShards
    from curation.tokenize.reader import TokenStages as TokenStages
    from curation.tokenize.tokenizer import load_tokenizer as load_tokenizer

lazily(__name__, reader="TokenShards TokenStages", tokenizer="load_tokenizer")
