import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from curation.dedup.facts import choose_survivors
from curation.dedup.keys import half_keys, string_keys, within
from curation.errors import ConfigError

RECORD = st.tuples(st.integers(0, 4), st.integers(-2, 2), st.integers(0, 2), st.integers(0, 3))


@given(st.lists(RECORD, max_size=30), st.randoms())
@settings(max_examples=150)
def test_the_best_document_of_each_key_stays(records, random) -> None:  # type: ignore[no-untyped-def]
    order = list(range(len(records)))
    random.shuffle(order)
    table = np.array([(*records[i], i) for i in order], np.int64).reshape(-1, 5)
    removed, kept = choose_survivors(
        np.stack([table[:, 0], table[:, 0] // 2], axis=1).astype(np.uint64),
        table[:, 4].astype(np.uint64),
        {"date": table[:, 1], "length": table[:, 2], "id": table[:, 3].astype(np.uint64)},
        ["newest", "longest", "id"],
    )
    expected = {}
    for i, (key, *_) in enumerate(records):
        best = min(
            (-date, -length, tie, j)
            for j, (other, date, length, tie) in enumerate(records)
            if other == key
        )
        if best[-1] != i:
            expected[i] = best[-1]
    assert dict(zip(removed.tolist(), kept.tolist(), strict=True)) == expected
    assert removed.tolist() == sorted(removed.tolist())


def test_documents_without_a_date_or_quality_lose() -> None:
    keys, doc64 = np.zeros(3, np.uint64), np.arange(3, dtype=np.uint64)
    dates = np.array(["NaT", "1969-01-01", "NaT"], "datetime64[us]")
    for policy in ("newest", "oldest"):
        assert choose_survivors(keys, doc64, {"date": dates}, [policy]).kept.tolist() == [1, 1]
    quality = np.array([np.nan, -3.0, np.nan])
    found = choose_survivors(keys, doc64, {"quality": quality}, ["highest_quality"])
    assert found.removed.tolist() == [0, 2]


def test_policy_needs_its_columns() -> None:
    none = np.zeros(0, np.uint64)
    with pytest.raises(ConfigError, match="'longest' needs the column 'length'"):
        choose_survivors(none, none, {}, ["longest"])


def test_string_keys() -> None:
    keys = string_keys(["a", "b", "a", None])
    assert (keys[0] == keys[2]).all() and (keys[0] != keys[1]).all()
    assert keys.shape == (4, 2)
    assert keys[0, 0] != keys[0, 1]


def test_scopes_keep_languages_apart() -> None:
    keys = string_keys(["same", "same", "same"])
    scopes = half_keys(["en", "de", "en"])
    apart = within(keys, scopes)
    assert (apart[0] == apart[2]).all() and (apart[0] != apart[1]).all()
    assert within(keys[:, 0], scopes)[0] == apart[0, 0]
