"""Repetition in each tool's meaning, against plain Python written from the definitions."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from itertools import pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from curation.filters.filter_settings import default_settings
from curation.text import characters as ch
from tests.filters import measure
from tests.text.strings import word_list

PROPERTIES = ch.properties()
LISTS = {"stop_words": None, "dirty_words": None, "allowed_words": None, "reference": None}


def measured(text: str) -> dict[str, float]:
    row = measure([text], None, default_settings(signals=LISTS).signals).to_pylist()[0]
    return {k.removeprefix("repetition_"): v for k, v in row.items() if k.startswith("repet")}


def grams(words: Sequence[str], n: int) -> list[tuple[str, ...]]:
    return [tuple(words[i : i + n]) for i in range(len(words) - n + 1)]


def later_copies(pieces: list[str]) -> tuple[int, int]:
    copies = [piece for i, piece in enumerate(pieces) if piece in pieces[:i]]
    return len(copies), sum(map(len, copies))


def joined(words: Sequence[str]) -> str:
    """Words with spaces between them, but not between two letters of an unspaced script."""
    single = [bool(PROPERTIES[ord(word[0])] & ch.SINGLE) for word in words]
    return words[0] + "".join(
        word if both == (True, True) else f" {word}"
        for word, both in zip(words[1:], pairwise(single), strict=True)
    )


def datatrove(text: str) -> dict[str, float]:
    words = word_list(text, symbols=True)
    size = max(len(text), 1)
    lines = re.split(r"\n+", text)
    paragraphs = re.split(r"\n{2,}", text.strip())
    out: dict[str, float] = {}
    for name, pieces in (("line", lines), ("para", paragraphs)):
        copies, chars = later_copies(pieces)
        out[f"dup_{name}"] = copies / len(pieces)
        out[f"dup_{name}_chars"] = chars / size
    for n in (2, 3, 4):
        found = Counter(grams(words, n)).most_common(1)
        out[f"top_{n}gram"] = len(joined(found[0][0])) * found[0][1] / size if found else 0.0
    for n in range(5, 11):
        seen = set()
        chars = i = 0
        while i + n <= len(words):
            gram = tuple(words[i : i + n])
            if gram in seen:
                chars += len("".join(gram))
                i += n
            else:
                seen.add(gram)
                i += 1
        out[f"dup_{n}gram"] = chars / size
    return out


TEXT = st.lists(
    st.sampled_from(
        ["a", "b", "aa", "é", "中文", "กข", "x1", ".", "!", "the", "\n", "\n\n", " \n"]
    ),
    max_size=70,
).map(" ".join) | st.text(st.sampled_from("ab中.\n "), max_size=80)


@given(text=TEXT)
@settings(max_examples=250)
def test_kernels_are_the_plain_definitions(text: str) -> None:
    assert measured(text) == pytest.approx(datatrove(text), abs=1e-12)


def test_a_published_case_by_hand() -> None:
    """Two equal lines of 11 characters and one of 5, 29 characters in all."""
    found = measured("hello there\nhello there\nworld")
    assert found["dup_line"] == pytest.approx(1 / 3)
    assert found["dup_line_chars"] == pytest.approx(11 / 29)
    assert found["top_2gram"] == pytest.approx(2 * 11 / 29)


def test_letters_of_unspaced_scripts_are_joined_by_nothing() -> None:
    """人工智能 stands three times in 17 characters."""
    text = "人工智能好。人工智能快。人工智能难"
    assert measured(text)["top_4gram"] == pytest.approx(12 / 17)
