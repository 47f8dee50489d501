import json
import lzma
from pathlib import Path

import numpy as np
import pytest
from datasketch import MinHash, MinHashLSH
from hypothesis import given, settings
from hypothesis import strategies as st
from pydantic import ValidationError

from curation.dedup import minhash_signatures
from curation.dedup.dedup_settings import DocumentDedupSettings, defaults
from curation.dedup.minhash import (
    band_hashes,
    band_threshold,
    has_signature,
    hash_function,
    signatures,
)
from curation.errors import ConfigError
from tests.dedup import reference

MINHASH = defaults(DocumentDedupSettings).minhash
WORDS = st.lists(st.sampled_from(["alpha", "beta", "gamma", "日", "本", "12", "ü"]), max_size=40)
NEARDUP = Path(__file__).resolve().parents[3] / "shared/data/neardup"


@given(words=WORDS, seed=st.integers(0, 50), num_perm=st.integers(1, 40))
@settings(max_examples=30)
def test_signatures_are_datasketch_hash_values(words: list[str], seed: int, num_perm: int) -> None:
    expected = MinHash(num_perm=num_perm, seed=seed, scheme="affine32", hashfunc=hash_function)
    tokens = reference.tokens(reference.fineweb(" ".join(words)))
    for shingle in reference.shingle_bytes(tokens, 3):
        expected.update(shingle)
    found = minhash_signatures([" ".join(words)], num_perm=num_perm, seed=seed, ngram=3)
    assert found.dtype == expected.hashvalues.dtype
    assert found[0].tolist() == expected.hashvalues.tolist()
    assert has_signature(found)[0] == (not expected.is_empty())


def test_datasketch_reads_signatures() -> None:
    base = "the quick brown fox jumps over the lazy dog and runs far away into the dark wood"
    rows = minhash_signatures([base, base.upper() + "!", base + " today"])
    first, second, third = (MinHash(hashvalues=row, scheme="affine32") for row in rows)
    assert first.jaccard(second) == 1.0
    assert 0.5 < first.jaccard(third) < 1.0
    lsh = MinHashLSH(num_perm=rows.shape[1], params=(MINHASH.bands, MINHASH.rows))
    lsh.insert("first", first)
    assert lsh.query(second) == ["first"]


def test_batches_and_slices_do_not_matter() -> None:
    texts = [f"{i} " + "some words that go on and on for long enough " * 3000 for i in range(12)]
    texts.insert(3, "")
    together = signatures(texts, MINHASH)
    apart = [signatures([text], MINHASH) for text in texts]
    assert (together == np.concatenate(apart)).all()
    assert has_signature(together).tolist() == [text != "" for text in texts]
    assert signatures([], MINHASH).shape == (0, MINHASH.num_perm)


def test_bands_depend_on_their_values_and_place() -> None:
    signature = np.arange(24, dtype=np.uint32).reshape(2, 12)
    signature[1, :4] = signature[0, :4]
    hashes = band_hashes(signature, 3, 4)
    assert hashes[0, 0] == hashes[1, 0]
    assert (hashes[0, 1:] != hashes[1, 1:]).all()
    repeated = band_hashes(np.tile(signature[:, :4], 3), 3, 4)
    assert len(np.unique(repeated[0])) == 3
    with pytest.raises(ConfigError, match="4 x 4"):
        band_hashes(signature, 4, 4)


def test_published_probabilities() -> None:
    assert round(band_threshold(14, 8), 3) == 0.719  # FineWeb


def test_bands_must_fit_the_signature() -> None:
    with pytest.raises(ValidationError, match="14 x 9 = 126"):
        MINHASH.model_validate({**dict(MINHASH), "bands": 14, "rows": 9})


@pytest.mark.skipif(not NEARDUP.is_dir(), reason="the near-duplicate corpus is not at hand")
def test_signatures_estimate_exact_jaccard() -> None:
    """Mean error within three standard errors of the estimator, on pairs of every similarity."""
    lines = (NEARDUP / "pairs.tsv").read_text().splitlines()[1:1500]
    pairs = [(a, b, float(j)) for a, b, j, *_ in (line.split("\t") for line in lines)]
    wanted = {name for pair in pairs for name in pair[:2]}
    with lzma.open(NEARDUP / "docs.jsonl.xz", "rt", encoding="utf-8") as file:
        documents = {d["id"]: d["text"] for d in map(json.loads, file) if d["id"] in wanted}
    settings = MINHASH.model_validate({**dict(MINHASH), "normalization": "words"})
    values = dict(zip(documents, signatures(list(documents.values()), settings), strict=True))
    errors = np.array([(values[a] == values[b]).mean() - exact for a, b, exact in pairs])
    exact = np.array([pair[2] for pair in pairs])
    deviation = np.sqrt((exact * (1 - exact) / settings.num_perm).mean())
    assert abs(errors.mean()) < 0.02
    assert errors.std() < 1.5 * deviation
