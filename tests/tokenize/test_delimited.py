"""Token ids of documents in one column, and long texts encoded in chunks."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest

from curation.tokenize import load_tokenizer, tokenizer
from curation.tokenize.shard import Documents, delimited


@pytest.mark.parametrize("chunk", [1, 2, 7, 1000])
def test_documents_come_back_from_chunks_of_any_size(chunk: int) -> None:
    dice = np.random.default_rng(1)
    lengths = dice.integers(0, 5, 60)
    offsets = np.concatenate([[0], np.cumsum(lengths)])
    tokens = dice.integers(0, 128_000, offsets[-1]).astype(np.uint32)
    kept = dice.random(60) < 0.7
    stream = delimited(tokens, offsets, kept)
    expected = [tokens[offsets[i] : offsets[i + 1]].tolist() for i in np.flatnonzero(kept)]
    documents = Documents(stream[i : i + chunk] for i in range(0, len(stream), chunk))
    found = []
    for count in (0, 3, 1, 20):
        ids, bounds = documents.next(count)
        assert len(bounds) == count + 1
        found += [ids[a:b].tolist() for a, b in pairwise(bounds)]
    assert found == expected[:24]
    assert len(documents.next(1000)[1]) == len(expected) - 24 + 1


@pytest.mark.parametrize("chunk", [1, 5, 64])
def test_chunks_of_a_long_text_change_no_id(monkeypatch: pytest.MonkeyPatch, chunk: int) -> None:
    text = "It's  12345 words,\r\n\n   naïve  \t日本語の文。 don't!!! \n x" * 9 + "  "
    encoder = load_tokenizer("curation-128k")
    whole = encoder.encode(text)
    monkeypatch.setattr(tokenizer, "_CHUNK_BYTES", chunk)
    ids, bounds = encoder.encode_batch([text, "", text])
    assert ids.tolist() == whole * 2
    assert bounds.tolist() == [0, len(whole), len(whole), 2 * len(whole)]
