"""Texts given as Python strings or Arrow arrays."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest

from curation.arrow import Texts, large_strings
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
    found = minhash_signatures(given[:3])  # type: ignore[arg-type]
    assert np.array_equal(found, minhash_signatures(whole[:3]))  # type: ignore[arg-type]
