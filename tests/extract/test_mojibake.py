"""Text that was encoded twice."""

from __future__ import annotations

import random

import pytest

from curation.extract import extract
from curation.extract.extractor import default_settings
from curation.extract.safe import extract_page
from curation.readers.charset import decode_html
from curation.readers.records import Page
from curation.text.mojibake import mended, repaired
from curation.text.noise import noise
from tests.damage_of_texts import LANGUAGES, written

SOUND = "“It’s café,” he said — voilà! Škoda, Řím, Š…"
_WINDOWS = "".join(bytes([b]).decode("cp1252", "ignore") or chr(b) for b in range(256))


def twice(text: str, signs: str) -> str:
    """UTF-8 read as an encoding of one byte per character that has these signs."""
    return "".join(signs[byte] for byte in text.encode())


def page(text: str) -> str:
    rest = "The rest of the paragraph is as it should be, and there is enough of it. " * 3
    return f"<html><title>{text}</title><body><article><p>{text} {rest}</p></article>"


@pytest.mark.parametrize("signs", [_WINDOWS, "".join(map(chr, range(256)))])
def test_signs_that_text_does_not_keep_are_mended_first(signs: str) -> None:
    html = page(twice(SOUND, signs))
    found = extract(html.encode())
    assert found.text.startswith(SOUND) and found.title == SOUND
    assert extract(html).text == found.text


def test_what_is_declared_as_windows_1252_too() -> None:
    html = page(f"Caf\xe9 {SOUND}").encode("utf-8").replace("Café".encode(), b"Caf\xe9")
    assert decode_html(html, "windows-1252")[0].count("â€\x9d")
    declared = b"<meta charset=windows-1252>" + html
    assert extract(declared).text.startswith(f"Café {SOUND}")


def test_controls_alone_are_signs_of_windows() -> None:
    assert repaired("won\x92t \x93CAFÉ\x94 \x93NÉ\x94 \x93É\x94 \x93a\x94") == (
        "won’t “CAFÉ” “NÉ” “É” “a”"
    )
    text = extract(page("It won\x92t do").encode()).text
    assert text.startswith("It won’t do")


@pytest.mark.parametrize(
    "text",
    [
        "la liberté\xa0» et à\xa0la mer",
        "AMANHÃ\xa0DE MANHÃ\xa0CEDO",
        "irmã\xa0» e manhã\xa0»",
        "ÄÖÜ\xa0",
    ],
)
def test_no_break_spaces_behind_letters_stay(text: str) -> None:
    assert mended(text.encode()) == text.encode()


def test_words_stay() -> None:
    for words in ("eškkuž tuõttääššlaž", "DÉŒ ŽÄŽE ÅŒ", "«LIBERTÉ» et 25\xa0€"):
        assert repaired(words) == words


def test_plain_text_is_mended() -> None:
    content = twice(SOUND, _WINDOWS).encode()
    plain = Page("", None, "", 0, content, "text", None, "text/plain", None, None)
    assert extract_page(default_settings(), plain).text == SOUND  # type: ignore[union-attr]


def short(language: str) -> list[str]:
    """Ten texts of a title's length and of one to three sentences."""
    lines = [line for text in written(language) for line in text.split("\n") if len(line) > 80]
    draw = random.Random(language)
    sizes = [24, 40, 60, 80, 100, 120, 140, 160, 200, 240]
    cut = [draw.choice(lines)[:size].rsplit(" ", 1)[0] for size in sizes]
    return [text for text in cut if sum(not c.isascii() for c in text) > 1]


_SHORT = {language: short(language) for language in LANGUAGES}
_BY_ONE = ("latin-1", "windows-1252", "cp1251", "cp1250", "mac-roman", "koi8-r", "cp866", "cp437")


def filled(text: str, wrong: str) -> str:
    """UTF-8 read in an encoding; what that lacks is the C1 control of its byte, as in browsers."""
    return "".join(bytes([b]).decode(wrong, "ignore") or chr(b) for b in text.encode())


def test_short_texts_as_they_were_written_stay() -> None:
    texts = [text for language in LANGUAGES for text in _SHORT[language]]
    assert len(_SHORT) > 12 and len(texts) > 120
    assert list(map(repaired, texts)) == texts and not noise(texts).any()


@pytest.mark.parametrize("language", LANGUAGES)
@pytest.mark.parametrize("wrong", _BY_ONE)
def test_short_texts_that_were_misread_are_read_again(wrong: str, language: str) -> None:
    texts = _SHORT[language]
    made = [repaired(filled(text, wrong)) for text in texts]
    left = [new for new, text in zip(made, texts, strict=True) if new != text]
    assert 10 * len(left) <= len(texts)
    assert noise(left).any(1).all()


@pytest.mark.parametrize("language", LANGUAGES)
def test_short_texts_that_were_misread_twice(language: str) -> None:
    for text in _SHORT[language]:
        made = repaired(filled(filled(text, "windows-1252"), "windows-1252"))
        assert made == text or noise([made]).any()


@pytest.mark.parametrize("language", LANGUAGES)
@pytest.mark.parametrize("wrong", ["gb18030", "cp932", "cp949", "big5", "euc-jp"])
def test_of_pairs_bytes_are_lost_and_the_text_is_noise(wrong: str, language: str) -> None:
    for text in _SHORT[language]:
        made = repaired(text.encode().decode(wrong, "replace"))
        assert made == text or noise([made]).any()


@pytest.mark.parametrize("wrong", _BY_ONE)
def test_pages_that_were_misread(wrong: str) -> None:
    html = page("Обычный рассказ о реке и людях, которые живут у неё.")
    assert extract(filled(html, wrong)).text == extract(html).text


@pytest.mark.parametrize(
    "text",
    [
        "Le Duncan n’était plus qu’à quelques encablures.", "Sauter l’île! s’écria Pencroff.",
        "« Liberté » ou «\xa0liberté\xa0»", "ในค.", "เช่นกัน", "เพชรบูรณ์", "스토리 탄탄.",
        "js 的新文件。", "VIVE LA LIBERTÉ»", "100\xa0°C à l’ombre",
        "Ёлки, «ЁЖ»", "АО «АИФ»—«Ї»", "ääšš", "–É–", "木i", "的a Park",
    ],
)  # fmt: skip
def test_short_texts_that_look_like_others_stay(text: str) -> None:
    assert repaired(text) == text and mended(text.encode()) == text.encode()


def test_halves_of_a_character_in_a_string() -> None:
    assert extract("<p>one \ud800 and \ud83d\ude00 two</p>").text == "one \ufffd and \U0001f600 two"


def test_a_sign_alone_may_stand_for_two_bytes() -> None:
    sound = "Un café, une clé, un thé"
    for encoding in ("gb18030", "cp949", "big5", "euc_jp"):
        assert repaired(sound.encode().decode(encoding)) == sound
