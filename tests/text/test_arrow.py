"""Texts given as Python strings or Arrow arrays."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from curation.arrow import Texts, cut_out, large_strings, stable_order, text_buffers
from curation.dedup import minhash_signatures
from curation.language import identify

TEXT = "The harbour wall was rebuilt after the flood of that year, and it has stood since."


@pytest.mark.parametrize("text", [TEXT, TEXT.encode()])
def test_a_single_text_is_refused(text: Texts) -> None:
    for function in (identify, minhash_signatures, large_strings):
        with pytest.raises(TypeError, match=f"not {type(text).__name__} "):
            function(text)  # type: ignore[operator]


def test_half_a_character_is_read_as_a_broken_one() -> None:
    given = [f"{TEXT} \ud83d", "\ud83d\ude00", "plain", None]
    whole = [f"{TEXT} \ufffd", "\U0001f600", "plain", None]
    assert large_strings(given) == pa.array(whole, pa.large_string())  # type: ignore[arg-type]
    assert identify(given[:1])[0] == ["en"]  # type: ignore[arg-type]
    assert identify(text for text in given[:1])[0] == ["en"]  # type: ignore[arg-type]
    found = minhash_signatures(given[:3])  # type: ignore[arg-type]
    assert np.array_equal(found, minhash_signatures(whole[:3]))  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("row", "span"),
    [(1, (6, 10)), (2, (9, 99)), (0, (-1, 2)), (1, (5, 7)), (0, (3, 1)), (1, (2**62, 2**62 + 1))],
)
def test_spans_that_are_not_in_their_text_are_refused(row: int, span: tuple[int, int]) -> None:
    texts = text_buffers(["abcdef", "ghi", "jkl"])
    rows, spans = np.array([0, 0, row]), np.array([(0, 1), (1, 1), span])
    with pytest.raises(ValueError, match=f"text {row}: "):
        cut_out(texts, rows, spans)
    left, cut = cut_out(texts, np.array([0, 0, 1]), np.array([(0, 1), (1, 1), (6, 9)]))
    assert (left.to_pylist(), cut.to_pylist()) == (["bcdef", "", "jkl"], ["a", "", "ghi"])


_NEAR = st.integers(0, 9).flatmap(lambda n: st.sampled_from([n, n << 60, (5 << 32) | n, 1 << 63]))


@pytest.mark.parametrize("kind", [np.uint64, np.int64])
@given(st.lists(_NEAR, max_size=40))
def test_equal_keys_keep_their_order(kind: type, keys: list[int]) -> None:
    column = np.array(keys, np.uint64).view(kind)
    assert stable_order(column).tolist() == np.argsort(column, kind="stable").tolist()
