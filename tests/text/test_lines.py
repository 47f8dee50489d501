"""Lines, paragraphs and sentences against Python's own string methods."""

from __future__ import annotations

import re

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from curation.arrow import text_buffers
from curation.text.characters import properties
from curation.text.lines import (
    all_lines,
    feed_lines,
    next_sentence,
    paragraphs,
    strip_left,
    strip_right,
)

TEXT = st.text(st.sampled_from("ab .。\n\n\r\v\x1c\x85\u2028\u00a0é"), max_size=30)


def pieces(kernel, text: str, *tables) -> list[str]:  # type: ignore[no-untyped-def]
    """What a kernel that writes the starts and ends of pieces finds in a text."""
    data = text_buffers([text])[1]
    starts, ends = np.empty((2, len(data) + 1), np.int64)
    n = kernel(data, 0, len(data), *tables, starts, ends)
    raw = data.tobytes()
    return [raw[a:b].decode() for a, b in zip(starts[:n], ends[:n], strict=True)]


def sentences(text: str) -> list[str]:
    data, table = text_buffers([text])[1], properties()
    end = len(data)
    found = []
    i = strip_left(data, 0, end, table)
    while i < end:
        stop = next_sentence(data, i, end, table)
        found.append(data[i : strip_right(data, i, stop, table)].tobytes().decode())
        i = strip_left(data, stop, end, table)
    return found


@given(TEXT)
@settings(max_examples=200)
def test_lines_are_those_of_python(text: str) -> None:
    assert pieces(feed_lines, text) == text.split("\n")
    assert pieces(all_lines, text, properties()) == text.splitlines()
    assert pieces(paragraphs, text, properties()) == re.split(r"\n{2,}", text.strip())


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("One. Two? Three!", ["One.", "Two?", "Three!"]),
        ('He said "Stop!" Then left.', ['He said "Stop!"', "Then left."]),
        ("J. Smith paid 3.5 dollars. Yes", ["J. Smith paid 3.5 dollars.", "Yes"]),
        ("Well... no", ["Well...", "no"]),
        ("これは本です。それはペンです。", ["これは本です。", "それはペンです。"]),
        ("यह घर है। वह गया।", ["यह घर है।", "वह गया।"]),
        ("هل هذا صحيح؟ نعم", ["هل هذا صحيح؟", "نعم"]),
        ("Մեկ: Երկու»: 10:30 Երեք:", ["Մեկ:", "Երկու»:", "10:30 Երեք:"]),
        ("አንድ:: ሁለት፡፡ሦስት ፡ አራት", ["አንድ::", "ሁለት፡፡", "ሦስት ፡ አራት"]),
        ("One: two:: three፡፡ four", ["One: two:: three፡፡ four"]),
        ("  ", []),
    ],
)
def test_sentences(text: str, expected: list[str]) -> None:
    assert sentences(text) == expected
