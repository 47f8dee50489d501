"""Lines, paragraphs and sentences against Python's own string methods."""

from __future__ import annotations

import re

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from curation.text.lines import break_spans, line_spans, paragraph_spans, sentence_spans
from curation.text.words import Spans

TEXT = st.text(st.sampled_from("ab .。\n\n\r\v\x1c\x85\u2028\u00a0é"), max_size=30)


def pieces(text: str, spans: Spans) -> list[str]:
    raw = text.encode()
    return [raw[a:b].decode() for a, b in zip(spans.starts, spans.ends, strict=True)]


@given(TEXT)
@settings(max_examples=200, deadline=None)
def test_lines_are_those_of_python(text: str) -> None:
    assert pieces(text, line_spans([text])) == text.split("\n")
    assert pieces(text, break_spans([text])) == text.splitlines()
    assert pieces(text, paragraph_spans([text])) == re.split(r"\n{2,}", text.strip())


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
    assert pieces(text, sentence_spans([text])) == expected
