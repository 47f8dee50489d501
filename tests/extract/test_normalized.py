"""Text that is spared a second look is text that a second look would leave alone."""

from __future__ import annotations

import itertools
import unicodedata

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from curation.extract.clean import normal
from curation.extract.layout import is_normalized
from curation.text.mojibake import misread, repaired


def normalized(text: str) -> bool:
    return bool(is_normalized(np.frombuffer(text.encode(), np.uint8)))


_SIGNS = st.characters(exclude_categories=("Cs",))
_LIKELY = st.sampled_from(
    "aé\u0301\u0300\u0338\u1100\u1161\u11a8가か\u3099\u0bbe\u0b92ÃâÂ©€\x80\u2000\u212b"
)


@given(st.lists(_SIGNS | _LIKELY, max_size=30).map("".join))
@example("Ã©")
@example("e\u0301")
def test_settled_text_comes_back_as_it_is(text: str) -> None:
    if (
        normalized(text) and not misread(text.encode(), 0.9).encoding
    ):  # which is seen on the page before
        assert normal(repaired(text)) == text


def test_each_settled_character_stays_beside_any_other() -> None:
    """Of normal forms only what composes with a neighbour matters, so pairs tell."""
    points = itertools.chain(range(0x80, 0xD800), range(0xE000, 0x30000))
    alone = [sign for sign in map(chr, points) if normalized(sign)]
    assert len(alone) > 45_000
    for first in "aAeかᄀ가":
        text = first + first.join(alone)
        assert unicodedata.is_normalized("NFC", text)


@pytest.mark.parametrize(
    "text", ["It’s “so”", "Привет", "日本語、東京。", "한국어", "Straße – 5 €", "¿Qué tal?", ""]
)
def test_ordinary_text_is_settled(text: str) -> None:
    assert normalized(text)
