"""Repetition in each tool's meaning, against plain Python written from the definitions."""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Sequence
from itertools import pairwise
from typing import Literal

import pytest
import regex
from hypothesis import given, settings
from hypothesis import strategies as st

from curation.filters.filter_settings import SignalSettings, default_settings
from curation.filters.signals import measure
from curation.text import characters as ch
from curation.text.words import words
from tests.text.strings import word_list

PROPERTIES = ch.properties()
Dialect = Literal["datatrove", "dolma", "dclm", "nemo"]
LISTS = {"stop_words": None, "dirty_words": None, "allowed_words": None, "reference": None}


def of(dialect: Dialect) -> SignalSettings:
    return default_settings(signals={"repetition": {"dialect": dialect}, **LISTS}).signals


def measured(text: str, dialect: Dialect) -> dict[str, float]:
    row = measure([text], None, of(dialect)).to_pylist()[0]
    return {k.removeprefix("repetition_"): v for k, v in row.items() if k.startswith("repet")}


def grams(words: Sequence[str], n: int) -> list[tuple[str, ...]]:
    return [tuple(words[i : i + n]) for i in range(len(words) - n + 1)]


def later_copies(pieces: list[str]) -> tuple[int, int]:
    copies = [piece for i, piece in enumerate(pieces) if piece in pieces[:i]]
    return len(copies), sum(map(len, copies))


def all_copies(pieces: list[str]) -> tuple[int, int]:
    copies = [piece for piece in pieces if pieces.count(piece) > 1]
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


def dolma(text: str) -> dict[str, float]:
    words = text.split()
    size = sum(map(len, words))
    copies, chars = all_copies(text.split("\n"))
    out = {"dup_line": copies / len(text.split("\n")), "dup_line_chars": chars / max(size, 1)}
    for n in (2, 3, 4):
        found = Counter(grams(words, n)).most_common(1)
        out[f"top_{n}gram"] = len("".join(found[0][0])) * found[0][1] / size if found else 0.0
    for n in range(5, 11):
        count = Counter(grams(words, n))
        lengths = {gram: len("".join(gram)) for gram in count}
        whole = sum(lengths[gram] * times for gram, times in count.items())
        repeated = sum(lengths[gram] * times for gram, times in count.items() if times > 1)
        out[f"dup_{n}gram"] = repeated / whole if whole else 0.0
    return out


def dclm(text: str) -> dict[str, float]:
    words = [w for w in word_list(text) if regex.match(r"[\p{L}\p{N}]", w)]
    size = sum(map(len, words))
    out: dict[str, float] = {}
    for name, mark in (("line", "\n"), ("para", "\n\n")):
        pieces = [piece for part in text.split(mark) if (piece := part.strip())]
        copies, chars = all_copies(pieces)
        out[f"dup_{name}"] = copies / max(len(pieces), 1)
        out[f"dup_{name}_chars"] = chars / max(sum(map(len, pieces)), 1)
    for n in (2, 3, 4):
        count = Counter(grams(words, n))
        best = max(count.values(), default=1)
        longest = max((len("".join(g)) for g, c in count.items() if c == best), default=0)
        out[f"top_{n}gram"] = best * longest / size if best > 1 else 0.0
    for n in range(5, 11):
        count = Counter(grams(words, n))
        covered = {i + k for i, g in enumerate(grams(words, n)) if count[g] > 1 for k in range(n)}
        out[f"dup_{n}gram"] = sum(len(words[i]) for i in covered) / size if size else 0.0
    return out


def nemo(text: str) -> dict[str, float]:
    words = text.split()
    out: dict[str, float] = {}
    lines = [line for line in text.split("\n") if line.strip()]
    for name, pieces in (("line", lines), ("para", text.split("\n\n"))):
        copies, chars = later_copies(pieces)
        size = sum(map(len, pieces))
        out[f"dup_{name}"] = copies / len(pieces) if pieces else math.nan
        out[f"dup_{name}_chars"] = chars / size if size else math.nan
    for n in range(2, 11):
        found = grams(words, n)
        if not found:
            out[f"top_{n}gram" if n < 5 else f"dup_{n}gram"] = 1.0
        elif n < 5:
            top = " ".join(Counter(found).most_common(1)[0][0])
            out[f"top_{n}gram"] = (len(text) - len(text.replace(top, ""))) / len(text)
        else:
            covered: set[int] = set()
            spaces = 0
            for i, gram in enumerate(found):
                if gram in found[:i]:
                    fresh = set(range(i, i + n)) - covered
                    spaces += min(len(fresh), n - 1)
                    covered |= fresh
            out[f"dup_{n}gram"] = (sum(len(words[i]) for i in covered) + spaces) / len(text)
    return out


PLAIN = {"datatrove": datatrove, "dolma": dolma, "dclm": dclm, "nemo": nemo}
TEXT = st.lists(
    st.sampled_from(
        ["a", "b", "aa", "é", "中文", "กข", "x1", ".", "!", "the", "\n", "\n\n", " \n"]
    ),
    max_size=70,
).map(" ".join) | st.text(st.sampled_from("ab中.\n "), max_size=80)


@pytest.mark.parametrize("dialect", list(PLAIN))
@given(text=TEXT)
@settings(max_examples=250)
def test_kernels_are_the_plain_definitions(dialect: Dialect, text: str) -> None:
    found = measured(text, dialect)
    expected = PLAIN[dialect](text)
    assert {k: found[k] for k in expected} == pytest.approx(expected, abs=1e-12, nan_ok=True)


def test_a_published_case_by_hand() -> None:
    """Two equal lines of 11 characters and one of 5, 29 characters in all."""
    found = measured("hello there\nhello there\nworld", "datatrove")
    assert found["dup_line"] == pytest.approx(1 / 3)
    assert found["dup_line_chars"] == pytest.approx(11 / 29)
    assert found["top_2gram"] == pytest.approx(2 * 11 / 29)
    assert measured("hello there\nhello there\nworld", "dolma")["dup_line"] == pytest.approx(2 / 3)


def test_letters_of_unspaced_scripts_are_joined_by_nothing() -> None:
    """人工智能 stands three times in 17 characters; words of another tool keep their spaces."""
    text = "人工智能好。人工智能快。人工智能难"
    assert measured(text, "datatrove")["top_4gram"] == pytest.approx(12 / 17)
    found = measure([text], None, of("datatrove"), words([text], symbols=True))
    assert found[0]["repetition_top_4gram"].as_py() == pytest.approx(21 / 17)


def test_dclm_strips_pieces() -> None:
    found = measured("one line\n one line\t\n\nanother", "dclm")
    assert found["dup_line"] == pytest.approx(2 / 3)
    assert found["dup_line_chars"] == pytest.approx(16 / 23)
    assert measured("a b\n\n a b ", "dclm")["dup_para"] == 1


def test_dolma_measures_no_paragraphs() -> None:
    found = measured("a\n\na", "dolma")
    assert found["dup_para"] != found["dup_para"]  # NaN
