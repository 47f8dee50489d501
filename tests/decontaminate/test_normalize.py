"""Tokens that survive wrapping."""

from __future__ import annotations

import inspect

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from curation.decontaminate.normalize import SIZE, folding, ngrams, tokenize


def hashes(text: str) -> list[int]:
    return tokenize([text]).hashes.tolist()


def pieces(text: str) -> list[str]:
    tokens, raw = tokenize([text]), text.encode()
    return [raw[a:b].decode() for a, b in zip(tokens.starts, tokens.ends, strict=True)]


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("Don’t STOP", "don't stop"),
        ("café ﬁne Straße", "cafe\u0301 fine STRASSE"),
        ("１２ ٣ ४", "12 3 4"),
        ("1,000 people", "1000 people"),
        ("한국어 が", "\u1112\u1161\u11ab국어 か\u3099"),
        (r"\frac{1}{2} + \alpha_i", "1 2 alpha i"),
        (r"\begin{aligned} x &= \text{speed} \end{aligned}", "x speed"),
        (r"one\nTwo", "one two"),
        (r"\nu \theta", "nu theta"),
        ("## **Which** of\n\n> these_are\t`true`?", "which of these are true"),
        ("中 国\n人", "中国人"),
        ("soft\u00adhyphen zero\u200bwidth", "softhyphen zerowidth"),
        ("مُحَمَّد", "محمد"),
        ("مـحـمد", "محمد"),
        ("İstanbul'da ışık", "ISTANBUL’DA IŞIK"),
        ("กำลัง ສຳ", "ก\u0e4dาลัง ส\u0ecdາ".replace("ส", "ສ")),
        ('<p class="a">One <b>two</b><br/>three</p>', "one two three"),
        ("don&#39;t say &quot;caf&eacute;&quot; &#x4E2D;", "don't say café 中"),
        ("&#12a; &#x; &#1114112; &nosuch;", "& #12a; & #x; & #1114112; & nosuch;"),
    ],
)
def test_forms_of_one_text(one: str, other: str) -> None:
    assert hashes(one) == hashes(other)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("1, 200", "1200"),
        ("1,20", "120"),
        ("हिन्दी", "हनद"),
        ("5 dollars", "6 dollars"),
        ("ab", "a b"),
        ("List<Text> x", "List x"),
        ("R&D; x", "R x"),
        ("<b" + " b" * 200 + ">", ""),
    ],
)
def test_texts_that_differ(one: str, other: str) -> None:
    assert hashes(one) != hashes(other)


def test_tokens_and_sizes() -> None:
    assert pieces("It’s 3x, 我是 น้ำ") == ["It’s", "3", "x", "我", "是", "น้", "ำ"]
    tokens = tokenize(["It’s 3x, 我是 น้ำ", "", "b"])
    assert tokens.sizes.tolist() == [4, 4, 4, 2, 2, 1, 1, 4]
    assert tokens.numbers.tolist() == [False, True] + [False] * 6
    assert tokens.offsets.tolist() == [0, 7, 7, 8]


@given(st.text())
def test_spans_are_in_order_and_on_characters(text: str) -> None:
    text = text.encode("utf-8", "replace").decode()
    tokens, raw = tokenize([text]), text.encode()
    at = 0
    for start, end in zip(tokens.starts.tolist(), tokens.ends.tolist(), strict=True):
        assert at <= start < end <= len(raw)
        raw[start:end].decode()
        at = end


@given(st.lists(st.sampled_from(["ab", "c9", "Éa", "我", "ก", "12", "x-y"]), max_size=30))
def test_white_space_case_and_marks_do_not_matter(words: list[str]) -> None:
    plain = " ".join(words)
    assert hashes(plain) == hashes("\n*".join(words).upper()) == hashes(f"  {plain}. ")


@given(st.lists(st.sampled_from(["ab", "cd", "我", "ก", "12"]), max_size=40))
def test_ngrams_hold_as_much_text_in_every_script(words: list[str]) -> None:
    tokens = tokenize([" ".join(words)])
    grams, ends = ngrams(tokens)
    sizes = tokens.sizes.astype(int).tolist()
    for i, end in enumerate(ends.tolist()):
        if end < 0:
            assert sum(sizes[i:]) < SIZE
        else:
            assert sum(sizes[i:end]) >= SIZE > sum(sizes[i : end - 1])
    equal = {}
    for i, end in enumerate(ends.tolist()):
        if end >= 0:
            key = tuple(tokens.hashes[i:end].tolist())
            assert equal.setdefault(key, grams[i]) == grams[i]
    assert len(set(equal.values())) == len(equal)


def test_kept_tables_are_those_that_are_built() -> None:
    folding.cache_clear()
    folding()  # keeps them where they are not kept yet
    folding.cache_clear()
    for kept, built in zip(folding(), inspect.unwrap(folding)(), strict=True):
        assert np.array_equal(kept, built) and kept.flags.writeable == built.flags.writeable
