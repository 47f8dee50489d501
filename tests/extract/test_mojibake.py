"""Text that was encoded twice."""

from __future__ import annotations

import itertools

import pytest
import regex
from hypothesis import given, settings
from hypothesis import strategies as st

from curation.extract import extract
from curation.extract.extractor import default_settings
from curation.extract.safe import extract_page
from curation.readers.charset import decode_html
from curation.readers.records import Page
from curation.text.mojibake import mended, repaired

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


def plain(text: str) -> str:
    """`repaired`, by substitution of what a regular expression finds."""
    windows = {b: bytes([b]).decode("cp1252", "ignore") for b in range(0x80, 0x100)}
    byte = {chr(b): b for b in range(0x80, 0xA0)} | {s: b for b, s in windows.items() if s}
    leads = "".join(c for c, b in byte.items() if 0xC2 <= b <= 0xF4)
    tails = "".join(c for c, b in byte.items() if 0x80 <= b < 0xC0 and c != "\xa0")
    unit = f"[{regex.escape(leads)}][{regex.escape(tails)}]{{1,3}}|[ÂÃÅÎÐ]\xa0"
    pattern = regex.compile(f"(?:{unit})+")

    def decoded(run: str) -> str:
        try:
            return bytes(map(byte.__getitem__, run)).decode("utf-8")
        except UnicodeDecodeError:
            return run

    def mended_runs() -> str:
        runs = [found.group() for found in itertools.islice(pattern.finditer(text), 100)]
        told = [run for run in runs if "\xa0" not in run and not run.isalpha()]
        if len(told) < 2 and max(map(len, told), default=0) < 3:
            return text
        if len(runs) == 100 and sum(decoded(r) != r for r in told) < 0.8 * len(told):
            return text
        return pattern.sub(lambda found: decoded(found.group()), text)

    controls = len(regex.findall(r"[\x80-\x9f]", text))
    if not controls and not any(c in text for c in ("â€", *"ÃÂÐÑÅÄåæãÎÏØÙ×")):
        return text
    fixed = mended_runs()
    if controls and 2 * len(regex.findall(r"[\x80-\x9f]", fixed)) > controls:
        fixed = text
    signs = {b: s for b, s in windows.items() if s and b < 0xA0 and b != 0x85}
    return fixed.translate(signs)


@settings(max_examples=500)
@given(
    st.text("ÃâÂÐÑÅ€™œ\x80\x99\x9d\xa0é©è äšž’数ab \n\x85\x81Ž😀·×", max_size=16),
    st.sampled_from([1, 1, 2, 40]),
)
def test_of_texts_that_are_misread_in_part_the_plain_reading_mends_the_same(
    text: str, times: int
) -> None:
    whole = "é è à ê ç " * 1000 + text * times
    assert repaired(whole) == plain(whole)
