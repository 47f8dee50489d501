"""The last touches on text, held against plain statements of the same."""

from __future__ import annotations

import time

import pytest
import regex
from hypothesis import given
from hypothesis import strategies as st

from curation.extract.clean import clean


def _stated(text: str) -> str:
    """Each touch as one substitution, which is slow for long runs of blanks."""
    text = regex.sub(r"\r\n?|\u2028|\x85", "\n", text)
    text = regex.sub(r"[\x00-\x08\x1f\xad\u200b]", "", text)
    text = regex.sub(r"[^\S\n]+(?=\n|\Z)", "", text)
    return regex.sub(r"\n{3,}", "\n\n", text).strip("\n")


@given(st.text(alphabet=" \t\n\r\x00\x1f\x85\xa0\xad\u2003\u2028\u200b\u3000ab", max_size=40))
def test_blanks_go_from_the_ends_of_lines_only(text: str) -> None:
    assert clean(text) == _stated(text)


def test_many_blanks_take_time_by_their_number() -> None:
    text = "a" + "\t" * 100_000 + "b"
    before = time.process_time()
    assert clean(text) == text
    assert time.process_time() - before < 10  # it was minutes


@pytest.mark.parametrize(
    "text, made",
    [
        ("one\x0ctwo", "one\ntwo"),
        ("one\x0c\x0b two", "one\n two"),
        ("one\n\x0ctwo", "one\ntwo"),
        ("one\x0c\r\ntwo", "one\ntwo"),
    ],
)
def test_form_feeds_separate(text: str, made: str) -> None:
    assert clean(text) == made


@pytest.mark.parametrize(
    "text, made",
    [
        ("one\n\u200d\ntwo", "one\n\ntwo"),  # as editors fill empty paragraphs
        ("\u200d\u200cone \u200b\u200dtwo", "one two"),
        ("one\n\u200e \u200f\n \u3164\n\u2800\ntwo", "one\n\ntwo"),
        ("sin\u2061(x)", "sin(x)"),
        ("\u0d28\u0d4d\u200d \u0645\u06cc\u200c\u062e", None),  # Malayalam, Persian
        ("\U0001f469\u200d\U0001f4bb \u200fone", None),
    ],
)
def test_what_cannot_be_seen_goes_unless_it_joins(text: str, made: str | None) -> None:
    assert clean(text) == (text if made is None else made)
