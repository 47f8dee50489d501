"""Noise: what no spelling and no program has, whatever the language."""

from __future__ import annotations

import codecs
import pathlib
import sysconfig

import numpy as np
import pytest

from curation.columns import PROSE_PATH, document_paths
from curation.filters.names import TEXT
from curation.text.noise import noise
from curation.text.structure import structure
from tests.damage_of_texts import (
    CZECH,
    ESCAPED,
    LANGUAGES,
    LATVIAN,
    LOST,
    SLOVENE,
    Damage,
    read_as,
    written,
)

_LIMITS = np.array([0.005, 0.004, 0.003, 0.003])  # of configs/defaults/filter.yaml
_ACCENTED = ("de", "es", "fr", "pl", "pt", "tr", "vi")
_UNDECODED, _QUESTIONS, _ESCAPES, _MOJIBAKE = range(4)


def found(texts: list[str]) -> list[set[str]]:
    """The kinds of noise of which each text has too much."""
    return [{TEXT[k] for k in np.flatnonzero(row)} for row in noise(texts) > _LIMITS]


def test_texts_as_they_were_written_have_none() -> None:
    texts = [text for language in LANGUAGES for text in written(language)]
    assert len(texts) > 140
    asked = "这是什么?你是谁?我是学生", "どうして?なぜ?わからない", "예술영화?예술영화이지만"
    assert not noise([*texts, *asked, CZECH, SLOVENE, LATVIAN, ""]).any()


@pytest.mark.parametrize("language", _ACCENTED)
@pytest.mark.parametrize("damage", LOST)
def test_letters_that_were_lost(damage: str, language: str) -> None:
    kind = TEXT[_QUESTIONS if "?" in damage else _UNDECODED]
    texts = [LOST[damage](text) for text in written(language)]
    assert sum(kind in kinds for kinds in found(texts)) >= 0.85 * len(texts)


@pytest.mark.parametrize("language", ["ar", "el", "he", "hi", "ja", "ka", "ko", "ru", "th", "zh"])
def test_question_marks_for_letters_of_other_scripts(language: str) -> None:
    texts = [LOST["every tenth ?"](text) for text in written(language)]
    assert sum(TEXT[_QUESTIONS] in kinds for kinds in found(texts)) >= 0.85 * len(texts)


@pytest.mark.parametrize("language", [*_ACCENTED, "ru", "el"])
@pytest.mark.parametrize("damage", ESCAPED)
def test_letters_that_are_escapes(damage: str, language: str) -> None:
    texts = [ESCAPED[damage](text) for text in written(language)]
    assert sum(TEXT[_ESCAPES] in kinds for kinds in found(texts)) >= 0.85 * len(texts)


def test_escapes_of_a_script_without_their_backslashes() -> None:
    assert found(["".join(f"u{ord(c):04X}" for c in "한국어")]) == [{TEXT[_ESCAPES]}]


@pytest.mark.parametrize("text", ["%uc548%ub155", "M" + 60 * "0"])
def test_escapes_without_any_other_sign(text: str) -> None:
    assert found([text]) == [{TEXT[_ESCAPES]}]


@pytest.mark.parametrize(
    "wrong", ["windows-1252", "latin-1", "cp1251", "cp1250", "mac-roman", "cp437"]
)
@pytest.mark.parametrize("language", _ACCENTED)
def test_utf8_that_was_read_as_another_encoding(language: str, wrong: str) -> None:
    texts = [read_as("utf-8", wrong)(text) for text in written(language)]
    assert sum(bool(kinds) for kinds in found(texts)) >= 0.85 * len(texts)


@pytest.mark.parametrize(
    ("language", "encoding"),
    [
        ("ru", "cp1251"), ("ru", "koi8-r"), ("ru", "cp866"), ("ru", "iso8859-5"), ("uk", "cp1251"),
        ("el", "cp1253"), ("he", "cp1255"), ("ar", "cp1256"), ("th", "cp874"), ("zh", "gb18030"),
        ("zh", "big5"), ("ja", "cp932"), ("ja", "euc-jp"), ("ko", "cp949"),
    ],
)  # fmt: skip
def test_other_scripts_read_as_latin_letters(language: str, encoding: str) -> None:
    texts = [read_as(encoding, "windows-1252")(text) for text in written(language)]
    assert all(found(texts))


@pytest.mark.parametrize(
    ("language", "encoding", "wrong"),
    [("fr", "cp437", "windows-1252"), ("ru", "mac-cyrillic", "cp1251")],
)
def test_signs_and_capitals_within_words(language: str, encoding: str, wrong: str) -> None:
    texts = [read_as(encoding, wrong)(text) for text in written(language)]
    assert sum(TEXT[_MOJIBAKE] in kinds for kinds in found(texts)) >= 0.85 * len(texts)


@pytest.mark.parametrize(
    "text",
    [
        "What?Then they left. Is it so?Yes. Who knows?",
        "See https://example.org/watch?v=abc&list=xyz#t and index.php?id=3 or page?lang=en here.",
        "colour = red ? 'a' : b?.c ?? d; SELECT ?name WHERE { ?s foaf:name ?name . }",
        "10 °C, 5 × 3, ½ l, H₂O, m²K, x² ± y², A ∪ B ≤ C, Windows® and Word™, £5, €20, §7, n° 5",
        "« café » – „Spaß“, “naïve”… l’été, l'été, l´été, col·lecció, 3′ 5″, A→B, I ♥ NY",
        "iPhone和iPad都很好用，Python编程语言，这个APP不错。是吗?我不知道。",
        "你呢?我也不去。", "뭐? 그래서 왜?", "מה? לא.",
        "https://fr.wikipedia.org/wiki/%C3%89t%C3%A9 and /wiki/%D0%9C%D0%B8%D1%80",
        "AT&amp;T, a&nbsp;b, &copy; 2024, &quot;x&quot;, R&D; &lt;b&gt; &hellip; &#8217; &#160;",
        r"C:\users\xavier\unit, \usepackage{x}, \xi \upsilon \frac12, \303, '\n\t\0'",
        "x=FF0000; bgcolor=CCDDEE; key=AB; a=BADC0DE; q=C3PO",
        "報導╱林明佳、張佩玉 攝影╱施偉平", "日本語★星の話☆そして♪音楽", "ÅÄÖ ÄÄRETÖN ÉÉN MÊME",
        "name│value, a•b, price|count, one·two", "menu0105 cpu0100, gpu0117: qu0104",
    ],
)  # fmt: skip
def test_what_texts_and_programs_have(text: str) -> None:
    assert not noise([text]).any()


def test_sources_of_programs_have_none() -> None:
    library = pathlib.Path(sysconfig.get_path("stdlib"))
    files = sorted(library.glob("*.py"))[:150]
    kinds = found([file.read_text("utf-8", "replace") for file in files])
    # a table of escaped letters, and one letter in a file of 227 characters
    noisy = {file.name for file, what in zip(files, kinds, strict=True) if what}
    assert noisy <= {"stringprep.py", "__hello__.py"}


@pytest.mark.parametrize("language", ["de", "ru", "ja"])
def test_bytes_written_as_letters(language: str) -> None:
    texts = [codecs.encode(text.encode(), "uu").decode() for text in written(language)]
    assert all(TEXT[_ESCAPES] in kinds for kinds in found(texts))


def test_noise_is_neither_code_nor_mathematics() -> None:
    damages: list[Damage] = [*ESCAPED.values(), read_as("cp1251", "windows-1252")]
    damages += [read_as("utf-8", wrong) for wrong in ("windows-1252", "mac-roman", "koi8-r")]
    for language in ("pl", "ru", "fr"):
        texts = [damage(text) for text in written(language)[:4] for damage in damages]
        assert set(document_paths(structure(texts))) == {PROSE_PATH}
