"""Every rule says in a sentence what it measures."""

from __future__ import annotations

import pytest

from curation.filters.names import NAMES
from curation.stages import meaning


def test_every_signal_has_a_sentence() -> None:
    silent = [name for name in NAMES if not meaning(name)]
    assert not silent, f"say what {silent} measure in configs/measures.yaml"
    assert meaning("mine.words") == ""  # of the user's own
    assert meaning("mine.words", "gopher_word_count") == meaning("", "gopher_word_count") != ""


@pytest.mark.parametrize(
    ("reason", "begins"),
    [
        ("pii.email", "Counts the items"),
        ("blocklist.adult", "The URL is on a block list"),
        ("contamination.mmlu", "Measures the share of an item"),
    ],
)
def test_reasons_with_names_of_recipes(reason: str, begins: str) -> None:
    assert meaning(reason).startswith(begins)
