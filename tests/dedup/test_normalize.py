import pyarrow as pa
import pytest
import xxhash
from hypothesis import given, settings
from hypothesis import strategies as st

from curation.dedup.dedup_settings import DocumentDedupSettings, defaults, normalizations
from curation.dedup.minhash import shingles
from curation.dedup.normalize import exact_keys
from tests.dedup import reference
from tests.dedup.reference import normalized

MINHASH = defaults(DocumentDedupSettings).minhash
TEXTS = st.lists(
    st.one_of(
        st.text(max_size=60),
        st.text(alphabet="aZé ßΣ1,.٣-_\u0301\u200b\n\t日本ガภาษาไทยก\u0e33한\u3099", max_size=60),
    ),
    max_size=6,
)


@given(TEXTS)
@settings(max_examples=100)
def test_fineweb_rules_equal_the_whole_string_reference(texts: list[str]) -> None:
    assert normalized(texts, normalizations()["fineweb"]) == [reference.fineweb(t) for t in texts]


@given(TEXTS, st.integers(1, 4))
@settings(max_examples=100)
def test_shingles_are_hashes_of_joined_tokens(texts: list[str], n: int) -> None:
    found = shingles(texts, MINHASH.model_copy(update={"ngram": n}))
    for i, text in enumerate(texts):
        words = reference.tokens(reference.fineweb(text))
        expected = [xxhash.xxh64_intdigest(s) for s in reference.shingle_bytes(words, n)]
        assert found.hashes[found.offsets[i] : found.offsets[i + 1]].tolist() == expected


@given(TEXTS)
@settings(max_examples=100)
def test_exact_keys_are_hashes_of_the_normalised_text(texts: list[str]) -> None:
    rules = normalizations()["same_text"]
    keys, lengths = exact_keys(texts, rules)
    plain = normalized(texts, rules)
    assert keys[:, 0].tolist() == [xxhash.xxh64_intdigest(t.encode()) for t in plain]
    assert lengths.tolist() == [len(t.encode()) for t in plain]


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("fineweb", "cafe no 0 0 strasse 0 日本 a b"),
        ("words", "cafe\u0301 no 1 234 5 strasse 42 日本 a_b"),
        ("same_text", "Cafe\u0301, No. 1,234.5! Straße 42 „日本” a_b"),
        ("verbatim", "Café,  No. 1,234.5! Straße\u200b 42 „日本” a_b"),
        ("ccnet", "café,  no. 0,000.0! straße 00 日本 a_b"),
        ("llama3", "cafe\u0301, no. 0,000.0! straße 00 日本 a_b"),
        ("c4", "café,  no. 1,234.5! straße\u200b 42 „日本” a_b"),
    ],
)
def test_named_normalizations(name: str, expected: str) -> None:
    text = " Café,  No. 1,234.5! Straße\u200b 42 „日本” a_b\n"
    assert normalized([text], normalizations()[name]) == [expected]


def test_spellings_that_are_the_same_text() -> None:
    rules = normalizations()["same_text"]
    keys = exact_keys(["é  x", "e\u0301 x\n", "\ufeffé\u00a0x", "e x"], rules).keys
    assert (keys[0] == keys[1]).all() and (keys[0] == keys[2]).all()
    assert (keys[0] != keys[3]).all()


def test_capital_and_final_sigma_fold_alike() -> None:
    for name in ("words", "ccnet", "c4"):
        assert len(set(normalized(["ΟΔΟΣ", "οδος", "οδοσ"], normalizations()[name]))) == 1


def test_slices_and_nulls_are_read_in_place() -> None:
    array = pa.array(["x", "a b c d e f", None, "b c d e f"], pa.large_string()).slice(1)
    found = shingles(array, MINHASH)
    assert found.counts.tolist() == [2, 0, 1]
    assert found.hashes[1] == found.hashes[2]
