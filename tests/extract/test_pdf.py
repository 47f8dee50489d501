"""PDF to text: reading order, paragraphs, what recurs, what has no text; in files and archives."""

from __future__ import annotations

import random
from dataclasses import replace
from pathlib import Path

import pyarrow.parquet as pq
import pytest

from curation.extract import pdf
from curation.extract.extraction import Extraction
from curation.extract.extractor import default_settings
from curation.extract.safe import Failed, Refused, extract_page
from curation.readers.read import read
from curation.readers.records import Damage, Page, Skipped
from curation.readers.settings import PDF, ReaderSettings
from pipelines.cli import main
from pipelines.extract import guarded
from tests.extract.small_pdf import Line, paragraph, write_pdf
from tests.readers import archives

_RHINE = [
    "The Rhine is a long river in the west of Europe that flows to the North Sea, and its man-",
    "agement is shared by six countries. The well-known cities on its banks are old, and a well-",
    "known song is about one of them.",
]
_DANUBE = [
    "The Danube flows to the east, through ten countries, before it reaches the Black Sea in a",
    "wide delta. The management of its floods is old.",
]


def _page(content: bytes, kind: str = "pdf") -> Page:
    return Page("", None, "", 0, content, kind, None, PDF, None, None)


def _extracted(content: bytes) -> Extraction:
    found = extract_page(default_settings(), _page(content))
    assert isinstance(found, Extraction), found
    return found


def _refused(content: bytes) -> str:
    found = extract_page(default_settings(), _page(content))
    assert isinstance(found, Refused), found
    assert found.value > found.threshold
    return found.reason


def test_paragraphs_are_rejoined_and_words_that_were_cut() -> None:
    lines = [(70.0, 740.0, 16.0, "1 Rivers"), *paragraph(_RHINE), *paragraph(_DANUBE, y=650)]
    lines += paragraph(["\x95 of the west", "\x95 of the east"], y=600)
    assert _extracted(write_pdf([lines])).text.split("\n") == [
        "1 Rivers",
        "The Rhine is a long river in the west of Europe that flows to the North Sea, and its "
        "management is shared by six countries. The well-known cities on its banks are old, and a "
        "well-known song is about one of them.",
        "The Danube flows to the east, through ten countries, before it reaches the Black Sea in "
        "a wide delta. The management of its floods is old.",
        "\u2022 of the west",
        "\u2022 of the east",
    ]


def test_what_recurs_on_pages_is_left_out_and_pages_have_places() -> None:
    pages: list[list[Line]] = []
    for number in range(6):
        body = paragraph([f"Body {'abcdef'[number]} has words.", "It has \xe9 in it."])
        header = (70.0, 770.0, 8.0, f"Rivers of Europe, {'spring' if number < 3 else 'autumn'}")
        pages.append([header, *body, (300.0, 30.0, 8.0, f"{number + 1} / 6")])
    pages.insert(2, [])
    found = _extracted(write_pdf(pages))
    assert "Europe" not in found.text and "/ 6" not in found.text
    text, starts = found.text.encode(), found.page_starts
    assert starts is not None and len(starts) == 7 and starts[2] == starts[3]
    begins = [text[start:].decode()[:6] for start in starts]
    assert begins == ["Body a", "Body b", "Body c", "Body c", "Body d", "Body e", "Body f"]


def test_a_paragraph_goes_on_over_the_end_of_a_page() -> None:
    found = _extracted(write_pdf([paragraph(_RHINE[:1]), paragraph(_RHINE[1:])]))
    assert "its management is shared" in found.text and found.text.count("\n") == 0
    assert found.page_starts is not None
    assert found.text.encode()[found.page_starts[1] :].startswith(b"agement")


def test_columns_that_are_drawn_across_are_read_one_after_the_other() -> None:
    left = [f"left {n} words that fill the column up to its end" for n in range(20)]
    right = [f"right {n} words that fill the column up to its end" for n in range(20)]
    lines: list[Line] = [(70, 750, 16, "A title across both of the columns, which is long enough")]
    for n in range(20):
        lines += [(70, 700 - 12 * n, 10, left[n]), (320, 700 - 12 * n, 10, right[n])]
    text = _extracted(write_pdf([lines])).text
    assert text.index("left 19") < text.index("right 0") and text.startswith("A title")


def test_a_page_drawn_in_no_order_is_read_from_above() -> None:
    lines = paragraph([f"Sentence {n} ends here." for n in range(30)])
    random.Random(1).shuffle(lines)
    text = _extracted(write_pdf([lines])).text.replace("\n", " ")
    assert text == " ".join(f"Sentence {n} ends here." for n in range(30))


def test_rows_of_tables_are_lines_also_where_cells_have_several() -> None:
    lines: list[Line] = []
    for n, row in enumerate([("River", "Length"), ("Rhine", "1233 km"), ("Elbe", "1094 km")]):
        lines += [(70, 700 - 14 * n, 10, row[0]), (250, 700 - 14 * n, 10, row[1])]
    lines += [*paragraph(["Danube or", "Donau"], y=600), *paragraph(["2850 km", "long"], 250, 600)]
    assert _extracted(write_pdf([lines])).text.split("\n") == [
        "River | Length",
        "Rhine | 1233 km",
        "Elbe | 1094 km",
        "Danube or Donau | 2850 km long",
    ]


def test_lists_of_contents_are_left_out() -> None:
    lines = paragraph([f"{n} Chapter {n} {'. ' * 30}{n + 3}" for n in range(1, 9)])
    assert _extracted(write_pdf([[*lines, *paragraph(_DANUBE, y=500)]])).text.startswith("The Dan")


def test_pages_shown_turned_are_read_as_shown() -> None:
    turned = _extracted(write_pdf([paragraph(_DANUBE)], rotate=90))
    assert turned.text == _extracted(write_pdf([paragraph(_DANUBE)])).text


def test_scans_are_set_apart() -> None:
    image = (
        b"<< /Type /XObject /Subtype /Image /Width 1 /Height 1 /ColorSpace /DeviceGray"
        b" /BitsPerComponent 8 /Length 1 >>\nstream\n\x80\nendstream"
    )
    drawn = "q 600 0 0 800 0 0 cm /I Do Q\n"
    stamp = [(300.0, 30.0, 8.0, "scanned")]
    assert _refused(write_pdf([stamp, stamp], further=[image], drawn=drawn)) == "pdf.no_text"
    assert _refused(write_pdf([[]])) == "pdf.no_text"
    ocr = write_pdf([paragraph(_DANUBE)], further=[image], drawn=drawn)
    assert _extracted(ocr).text.startswith("The Danube")


_WIDTHS = " ".join(["500"] * 26)
_FONT = "/Type /Font /Subtype /TrueType /BaseFont /X /FirstChar 97 /LastChar 122"


def test_characters_without_a_meaning_and_from_right_to_left_are_set_apart() -> None:
    ranges = {"hebrew": "<61> <7a> <05D0>", "private": "<61> <7a> <E000>"}
    maps = {
        name: b"<< /Length %d >>\nstream\n%s\nendstream" % (len(cmap), cmap)
        for name, one in ranges.items()
        for cmap in [
            b"/CIDInit /ProcSet findresource begin 12 dict begin begincmap\n"
            b"1 begincodespacerange <00> <FF> endcodespacerange\n1 beginbfrange "
            + one.encode()
            + b" endbfrange endcmap end end"
        ]
    }
    font = f"{_FONT} /Widths [{_WIDTHS}] /ToUnicode 4 0 R"
    lines = paragraph(["abcdefghij" * 6] * 3)
    assert _refused(write_pdf([lines], font=font, further=[maps["private"]])) == "pdf.unmapped"
    assert _refused(write_pdf([lines], font=font, further=[maps["hebrew"]])) == "pdf.right_to_left"


def test_limits_count_pages_and_characters(monkeypatch: pytest.MonkeyPatch) -> None:
    content = write_pdf([paragraph(_DANUBE)] * 3)
    settings = default_settings().model_copy(update={"max_characters": 200})
    found = extract_page(settings, _page(content))
    assert isinstance(found, Refused) and found.reason == "extract.too_long"
    monkeypatch.setattr(pdf, "_MOST_PAGES", 2)
    assert _refused(content) == "pdf.too_many_pages"


@pytest.mark.parametrize("content", [b"%PDF-1.4 no more", b"", b"%PDF-1.7\n1 0 obj\n<< >>\nendobj"])
def test_what_cannot_be_opened_is_a_failure(content: bytes) -> None:
    found = extract_page(default_settings(), _page(content))
    assert isinstance(found, Failed) and "PDFium can't open it" in found.detail


def test_damaged_files_end_in_an_answer() -> None:
    sound = bytearray(write_pdf([paragraph(_RHINE), paragraph(_DANUBE)]))
    chance = random.Random(7)
    pages = []
    for _ in range(60):
        content = bytearray(sound)
        for _ in range(chance.randint(1, 12)):
            content[chance.randrange(len(content))] = chance.randrange(256)
        pages.append(_page(bytes(content[: chance.randint(len(content) // 2, len(content))])))
    answers = guarded(default_settings()).map(pages)
    assert len(answers) == len(pages)
    kept = [answer for answer in answers if isinstance(answer, Extraction)]
    assert kept and all(isinstance(one, Extraction | Refused | Failed) for one in answers)


def _records(tmp_path: Path, settings: ReaderSettings, *records: bytes) -> list[object]:
    path = tmp_path / "crawl.warc"
    path.write_bytes(b"".join(records))
    return list(read(str(path), settings))


def test_records_of_archives(tmp_path: Path) -> None:
    content = write_pdf([paragraph(_DANUBE)])
    named = archives.default_settings(pdf=True)
    types = (b"application/pdf", b"application/octet-stream", b"text/html")
    responses = [archives.http_response(content, b"Content-Type: " + kind) for kind in types]
    records = [archives.warc_record(n, block) for n, block in enumerate(responses)]
    identified = b"WARC-Identified-Payload-Type: application/pdf\r\n"
    other = archives.http_response(content, b"Content-Type: x/y")
    records.append(archives.warc_record(3, other, extra=identified))
    events = _records(tmp_path, named, *records)
    assert [event.kind for event in events if isinstance(event, Page)] == ["pdf"] * 4
    assert all(event.content == content for event in events if isinstance(event, Page))
    without = _records(tmp_path, archives.default_settings(), *records)
    assert without[:2] == [Skipped(f"mime:{kind.decode()}") for kind in types[:2]]
    assert isinstance(without[2], Damage) and without[2].reason == "http.binary"


def test_a_truncated_record_says_so(tmp_path: Path) -> None:
    content = write_pdf([paragraph([f"Page {word} {_DANUBE[0]}"]) for word in "abcdefghij"])
    head = b"Content-Type: application/pdf\r\nContent-Length: %d" % len(content)
    block = archives.http_response(content[: len(content) * 2 // 3], head)
    record = archives.warc_record(1, block).replace(
        b"WARC-Type: response", b"WARC-Type: response\r\nWARC-Truncated: length"
    )
    named = archives.default_settings(pdf=True)
    (page,) = _records(tmp_path, named, record)
    assert isinstance(page, Page) and page.mended == "warc.truncated"
    found = extract_page(default_settings(), replace(page, status=200))
    assert isinstance(found, Extraction) and found.text.startswith("Page a The Danube")
    assert found.content_score is not None and 0.4 < found.content_score < 0.9


def test_a_run_over_files(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    inputs = tmp_path / "in"
    inputs.mkdir()
    (inputs / "a.pdf").write_bytes(write_pdf([paragraph(_RHINE), paragraph(_DANUBE)]))
    (inputs / "b.pdf").write_bytes(b"no PDF at all")
    (inputs / "c.html").write_text(f"<main><p>{_DANUBE[0]} {_DANUBE[1]}</p></main>")
    reading = ["--set", "readers.pdf=true"]
    assert (
        main(["extract", "--input", str(inputs), "--output", str(tmp_path / "out"), *reading]) == 0
    )
    extract = tmp_path / "out" / "extract"
    (documents,) = (pq.read_table(p) for p in (extract / "documents").glob("*.parquet"))
    by_url = {row["url"]: row for row in documents.to_pylist()}
    found = by_url["file:a.pdf"]
    assert found["page_starts"][0] == 0 and len(found["page_starts"]) == 2
    assert found["content_score"] == 1 and found["text"].startswith("The Rhine")
    assert by_url["file:c.html"]["page_starts"] is None
    (aside,) = (pq.read_table(p).to_pylist() for p in (extract / "set_aside").glob("*.parquet"))
    assert [(row["url"], row["reason"]) for row in aside] == [("file:b.pdf", "pdf.error")]
    assert aside[0]["raw"] == b"no PDF at all" and "PDFium" in aside[0]["detail"]
    capsys.readouterr()
    assert main(["extract-file", str(inputs / "a.pdf")]) == 0
    assert capsys.readouterr().out.startswith("The Rhine is a long river")
