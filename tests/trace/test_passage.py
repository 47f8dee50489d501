"""Texts that share words in a row are compared, and spans are what they share."""

from __future__ import annotations

import random

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from curation.decontaminate.normalize import tokenize
from curation.decontaminate.passages import LEAST_WORDS, Passage, grams_of
from curation.errors import ConfigError

_LETTERS = "abcdefghijklmnopqrstuvwxyz"
_RNG = random.Random(3)
_VOCABULARY = ["".join(_RNG.choices(_LETTERS, k=_RNG.randint(2, 9))) for _ in range(900)]
_HAN = [chr(c) for c in range(0x4E00, 0x4E00 + 600)]
_THAI = [chr(c) for c in range(0xE01, 0xE2F)]
#: Units, what is between them, and how many make a word.
_SCRIPTS = {"latin": (_VOCABULARY, " ", 1), "han": (_HAN, "", 2), "thai": (_THAI, "", 4)}


def _text(script: str, words: int, seed: int) -> str:
    units, between, per_word = _SCRIPTS[script]
    return between.join(random.Random(seed).choices(units, k=words * per_word))


@pytest.mark.parametrize("script", _SCRIPTS)
@given(
    seed=st.integers(0, 10**6),
    around=st.tuples(*[st.integers(0, 60)] * 4),
)
def test_a_shared_run_of_20_words_is_hit_and_found(
    script: str, seed: int, around: tuple[int, int, int, int]
) -> None:
    shared = _text(script, LEAST_WORDS, seed)
    before, after, text_before, text_after = (
        _text(script, words, seed + k) for k, words in enumerate(around, 1)
    )
    between = _SCRIPTS[script][1]
    passage = between.join([before, shared, after])
    text = f"{text_before}\n{shared.upper()}\n{text_after}"
    assert Passage(passage).candidates(grams_of([text_before, text])).tolist()[-1:] == [1]
    data = text.encode()
    spans = [s for s in Passage(passage).spans(text) if s.verbatim]
    assert any(shared.upper() in data[s.start : s.end].decode() for s in spans)
    for span in spans:
        assert span.words >= LEAST_WORDS
        both = (
            passage.encode()[span.passage_start : span.passage_end],
            data[span.start : span.end],
        )
        own, other = (tokenize([part.decode()]).hashes for part in both)
        assert np.array_equal(own, other)


def test_an_edited_copy_is_one_span() -> None:
    passage = _text("latin", 60, 1)
    words = passage.split()
    words[20] = "changed"
    del words[33]
    words[45:45] = ["two", "more"]
    edited = " ".join(words)
    (span,) = Passage(passage).spans(f"{_text('latin', 50, 2)}. {edited} {_text('latin', 50, 3)}")
    assert span.words == 60 and not span.verbatim and 0.9 < span.similarity < 1


def test_markup_case_and_line_breaks_make_no_difference() -> None:
    passage = _text("latin", 30, 4)
    wrapped = "> " + passage.upper().replace(" ", "\n> *", 12).replace(" ", ", ")
    (span,) = Passage(passage).spans(f"# Title\n\n{wrapped}!")
    assert span.verbatim and span.words == 30


def test_19_words_are_no_span_and_no_passage() -> None:
    shared = _text("latin", 19, 5)
    passage, text = (
        f"{_text('latin', 40, s)} {shared} {_text('latin', 40, s + 1)}" for s in (6, 8)
    )
    assert Passage(passage).spans(text) == []
    with pytest.raises(ConfigError, match="at least 20 words"):
        Passage(shared)


def test_half_of_the_words_are_no_near_verbatim_copy() -> None:
    words = _text("latin", 80, 9).split()
    other = _text("latin", 80, 10).split()
    blocks = [(words if i % 10 < 5 else other)[i] for i in range(80)]
    assert Passage(" ".join(words)).spans(" ".join(blocks)) == []


def test_a_passage_that_occurs_twice_is_two_spans() -> None:
    passage = _text("latin", 25, 11)
    spans = Passage(passage).spans(f"{passage}. {_text('latin', 30, 12)} {passage}")
    assert [span.words for span in spans] == [25, 25] and spans[0].end < spans[1].start


def test_repetitive_texts_take_bounded_work() -> None:
    passage = "round and " * 200
    assert Passage(passage).spans("round and " * 3000)
