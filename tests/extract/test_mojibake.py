"""Text that was encoded twice."""

from __future__ import annotations

import pytest

from curation.extract import default_settings, extract
from curation.extract.attempt import extract_page
from curation.extract.mojibake import mended, repaired
from curation.readers import Page, decode_html

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
