"""Sound archives of every kind, and the odd forms that real ones take."""

from __future__ import annotations

import gzip
import io
import zipfile
from datetime import UTC, datetime
from pathlib import Path

import fsspec
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from curation.errors import InputError
from curation.readers.headers import parse_date
from curation.readers.read import read, read_at
from curation.readers.records import Damage, Event, Page, Skipped
from tests.readers.archives import (
    ARC_HEAD,
    arc_record,
    default_settings,
    http_response,
    page_body,
    sample,
    warc_record,
    zstd_with_dictionary,
)


def events_of(folder: Path, data: bytes, name: str = "x.warc", **changes: object) -> list[Event]:
    path = folder / name
    path.write_bytes(data)
    return list(read(str(path), default_settings(**changes)))


def contents(events: list[Event]) -> list[bytes]:
    return [event.content for event in events if isinstance(event, Page)]


def check_places(path: Path, events: list[Event]) -> None:
    """Every place is unique, and every page is found again at its own."""
    offsets = [event.offset for event in events if isinstance(event, Page | Damage)]
    assert len(set(offsets)) == len(offsets)
    for event in events:
        if isinstance(event, Page):
            assert read_at(str(path), event.offset, default_settings()) == event


@pytest.mark.parametrize(
    "kind",
    [
        "warc",
        "arc",
        "warc.gz",
        "arc.gz",
        "warc.zst",
        "warc.lz4",
        "warc.bz2",
        "warc.xz",
        "warc.dict",
    ],
)
@pytest.mark.parametrize("size", [300, 150_000])
def test_every_compression(tmp_path: Path, kind: str, size: int) -> None:
    made = sample(kind, count=5, size=size)
    events = events_of(tmp_path, made.data, "archive")  # found by content, not by name
    assert contents(events) == made.bodies
    pages = [event for event in events if isinstance(event, Page)]
    assert [page.offset for page in pages] == [start for start, _ in made.spans]
    assert [page.url for page in pages] == [f"http://site.example/{i}" for i in range(5)]
    assert not any(page.mended for page in pages)
    check_places(tmp_path / "archive", events)


def test_fields_of_a_page(tmp_path: Path) -> None:
    block = http_response(b"<p>x", b"content-type: Text/HTML; Charset='koi8-r'")
    extra = b"WARC-Protocol: h2\r\nWARC-Protocol: tls/1.3\r\n"
    (page,) = events_of(tmp_path, warc_record(7, block, extra=extra))
    assert page == Page(
        url="http://site.example/7",
        date=datetime(2024, 5, 6, 7, 8, 7, tzinfo=UTC),
        record_id="<urn:uuid:00000000-0000-0000-0000-000000000007>",
        offset=0,
        content=b"<p>x",
        kind="html",
        charset="koi8-r",
        mime="text/html",
        status=200,
        fields=None,
        headers=(("content-type", "Text/HTML; Charset='koi8-r'"),),
    )


def test_a_date_that_is_none_is_told(tmp_path: Path) -> None:
    record = warc_record(7, http_response(b"<p>x")).replace(b"2024-05-06T", b"yesterday ")
    (page,) = events_of(tmp_path, record)
    assert isinstance(page, Page) and (page.date, page.mended) == (None, "warc.bad_date")
    assert page.detail == "WARC-Date: 'yesterday 07:08:07Z' is no date"


@pytest.mark.parametrize("compress_dictionary", [False, True])
def test_zstd_dictionary(tmp_path: Path, compress_dictionary: bool) -> None:
    records = [warc_record(i, http_response(page_body(i))) for i in range(12)]
    frames = zstd_with_dictionary(records, compress_dictionary)
    events = events_of(tmp_path, b"".join(frames))
    assert contents(events) == [page_body(i) for i in range(12)]
    check_places(tmp_path / "x.warc", events)


@pytest.mark.parametrize("block", [700, 1 << 20])
def test_gzip_members_that_are_no_records(tmp_path: Path, block: int) -> None:
    made = sample("warc")
    parts = [made.data[at : at + block] for at in range(0, len(made.data), block)]
    events = events_of(tmp_path, b"".join(gzip.compress(part, mtime=0) for part in parts))
    assert contents(events) == made.bodies
    places = [event.offset for event in events if isinstance(event, Page)]
    assert places == [0, *(-start for start, _ in made.spans[1:])]
    check_places(tmp_path / "x.warc", events)


def test_gzip_header_with_extra_field(tmp_path: Path) -> None:
    record = warc_record(1, http_response(b"<p>1"))
    plain = gzip.compress(record, mtime=0)
    extra = plain[:3] + b"\x04" + plain[4:10] + b"\x0c\x00sl\x08\x00" + bytes(8) + plain[10:]
    assert contents(events_of(tmp_path, extra + plain)) == [b"<p>1", b"<p>1"]


def test_files_of_different_kinds_behind_each_other(tmp_path: Path) -> None:
    data = sample("warc.gz", 2).data + sample("warc", 2).data + sample("arc.gz", 2).data
    events = events_of(tmp_path, data)
    bodies = [page_body(0, 300), page_body(1, 337)]
    assert contents(events) == bodies * 3
    assert not any(isinstance(event, Damage) for event in events)
    check_places(tmp_path / "x.warc", events)


def test_line_feeds_only_and_no_blank_lines(tmp_path: Path) -> None:
    records = [warc_record(i, b"\nbody %d" % i, "resource", "text/plain") for i in range(3)]
    unix = b"".join(record.replace(b"\r\n", b"\n") for record in records)
    bare = b"".join(record.removesuffix(b"\r\n\r\n") for record in records)
    odd = b"".join(record.replace(b"\r\n", b"\r\r\n") for record in records)
    for data in (unix, bare, odd):
        events = events_of(tmp_path, data)
        assert contents(events) == [b"\nbody %d" % i for i in range(3)]


def test_text_records(tmp_path: Path) -> None:
    text = "Grüße, 世界\n".encode()
    data = warc_record(0, b"a: b\r\n", "warcinfo", "application/warc-fields")
    data += warc_record(1, text, "conversion", "text/plain")
    data += warc_record(2, b"{}", "metadata", "application/json")
    info, page, metadata = events_of(tmp_path, data, "x.wet")
    assert isinstance(page, Page)
    assert (page.kind, page.content, page.status) == ("text", text, None)
    assert [info, metadata] == [Skipped("type:warcinfo"), Skipped("type:metadata")]


def test_what_is_no_document(tmp_path: Path) -> None:
    image = http_response(b"\x89PNG", b"Content-Type: image/png")
    nothing = http_response(b"\x00\x01", b"X: y")
    data = warc_record(1, image) + warc_record(2, nothing)
    data += warc_record(3, b"log", "resource", "text/plain").replace(b"http://site", b"urn:site")
    data += warc_record(4, b"x", "revisit")
    expected = ["mime:image/png", "mime:unknown", "scheme:urn", "type:revisit"]
    assert events_of(tmp_path, data) == [Skipped(reason) for reason in expected]


@pytest.mark.parametrize("field", [b"X: y", b"Content-Type: */*", b"Content-Type: unknown/unknown"])
def test_missing_type_is_sniffed(tmp_path: Path, field: bytes) -> None:
    block = http_response(b"<!-- x --> <!DOCTYPE html><p>", field)
    (page,) = events_of(tmp_path, warc_record(1, block))
    assert isinstance(page, Page)
    assert page.mime == "text/html"


def test_arc_versions_and_odd_headers(tmp_path: Path) -> None:
    body = http_response(b"<p>two")
    data = ARC_HEAD + arc_record(1, http_response(b"<p>one"))
    data += (
        b"http://site.example/2 192.0.2.1 20240506070809 text/html 200 ABC - 133 x.arc.gz "
        b"%d\n%s\n" % (len(body), body)
    )
    data += b"http://site.example/a b 192.0.2.1 20240506070809  %d\n%s\n" % (len(body), body)
    data += b"dns:site.example 192.0.2.1 20240506070809 text/dns 3\nx y\n"
    events = events_of(tmp_path, data, "x.arc")
    assert contents(events) == [b"<p>one", b"<p>two", b"<p>two"]
    pages = [event for event in events if isinstance(event, Page)]
    assert pages[2].url == "http://site.example/a%20b"
    assert pages[0].date == datetime(2024, 5, 6, 7, 8, 9, tzinfo=UTC)
    assert events[-1] == Skipped("scheme:dns")
    check_places(tmp_path / "x.arc", events)


@pytest.mark.parametrize("method", [zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED])
def test_wacz(tmp_path: Path, method: int) -> None:
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", method) as package:
        package.writestr("datapackage.json", "{}")
        package.writestr("archive/a.warc.gz", sample("warc.gz", 3).data)
        package.writestr("archive/b.warc", sample("warc", 3).data)
        package.writestr("archive/c.warc.gz", gzip.compress(sample("warc", 3).data))
    events = events_of(tmp_path, buffer.getvalue(), "x.wacz")
    assert contents(events) == sample("warc", 3).bodies * 3
    check_places(tmp_path / "x.wacz", events)
    broken = buffer.getvalue()[:-60]
    assert [e.reason for e in events_of(tmp_path, broken) if isinstance(e, Damage)] == [
        "wacz.corrupt"
    ]


def test_remote_file() -> None:
    made = sample("warc.gz", 3)
    with fsspec.open("memory://bucket/x.warc.gz", "wb") as file:
        file.write(made.data)
    events = list(read("memory://bucket/x.warc.gz", default_settings()))
    assert contents(events) == made.bodies


def test_places_without_a_page(tmp_path: Path) -> None:
    path = tmp_path / "x.warc"
    path.write_bytes(warc_record(1, b"x", "request") + sample("warc", 1).data)
    with pytest.raises(InputError, match="no page at 0: type:request"):
        read_at(str(path), 0, default_settings())
    for offset in (10**6, -(10**6), 5):
        with pytest.raises(InputError, match=f"no page at {offset}"):
            read_at(str(path), offset, default_settings())
    with pytest.raises(InputError, match=r"absent\.warc"):
        list(read(str(tmp_path / "absent.warc"), default_settings()))


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        ("2024-05-06T07:08:09Z", datetime(2024, 5, 6, 7, 8, 9, tzinfo=UTC)),
        ("2024-05-06T07:08:09.123456789Z", datetime(2024, 5, 6, 7, 8, 9, 123456, tzinfo=UTC)),
        ("2024-05-06T07:08:09+02:00", datetime(2024, 5, 6, 5, 8, 9, tzinfo=UTC)),
        ("2024-05", datetime(2024, 5, 1, tzinfo=UTC)),
        ("2024", datetime(2024, 1, 1, tzinfo=UTC)),
        ("20240506070809", datetime(2024, 5, 6, 7, 8, 9, tzinfo=UTC)),
        ("201404010000000000", datetime(2014, 4, 1, tzinfo=UTC)),
        ("20240506070809123", datetime(2024, 5, 6, 7, 8, 9, 123000, tzinfo=UTC)),
        ("2024-05-06 07:08:09 UTC", datetime(2024, 5, 6, 7, 8, 9, tzinfo=UTC)),
        ("2024-05-06T07:08:09+02", datetime(2024, 5, 6, 5, 8, 9, tzinfo=UTC)),
        ("2024-05-06T07:08:09.1234567891Z", datetime(2024, 5, 6, 7, 8, 9, 123456, tzinfo=UTC)),
        ("1512121212", None),
        ("2020 was a good year", None),
        ("2024-13-06T07:08:09Z", None),
        ("0001-01-01T00:00:00+14:00", None),
        ("null", None),
        ("", None),
    ],
)
def test_dates(value: str, expected: datetime | None) -> None:
    assert parse_date(value) == expected


@pytest.mark.parametrize("head", [b"HTTP/1.1 100 Continue\r\n\r\n", b"\r\n", b""])
@pytest.mark.parametrize(
    ("declared", "identified", "kind"),
    [
        ("text/plain", "text/html", "html"),
        ("text/plain", "Application/XHTML+XML", "html"),
        ("application/octet-stream", "text/html", "html"),
        ("", "text/html; charset=utf-8", "html"),
        ("image/png", "text/html", "html"),
        ("text/html", "text/plain", "text"),
        ("text/html", "application/pdf", "mime:application/pdf"),
        ("text/html", "image/png", "mime:image/png"),
        ("text/plain", "application/gzip", "mime:application/gzip"),
        ("text/html", "no type", "html"),
        ("text/html", "", "html"),
        ("text/html", "application/octet-stream", "html"),
        ("text/plain", "application/octet-stream", "text"),
        ("application/pdf", "application/octet-stream", "mime:application/pdf"),
        ("application/octet-stream", "application/octet-stream", "html"),
    ],
)
def test_the_type_that_the_crawler_identified_decides(
    tmp_path: Path, head: bytes, declared: str, identified: str, kind: str
) -> None:
    """As in Common Crawl; what nobody could identify is what the server says, or looks like."""
    block = head + http_response(page_body(1), b"Content-Type: " + declared.encode())
    extra = f"WARC-Identified-Payload-Type: {identified}\r\n".encode() if identified else b""
    path = tmp_path / "x.warc"
    path.write_bytes(warc_record(1, block, extra=extra))
    (event,) = read(str(path), default_settings())
    if isinstance(event, Page):
        assert (event.kind, event.content, event.status) == (kind, page_body(1), 200)
    else:
        assert isinstance(event, Skipped) and event.reason == kind


@pytest.mark.parametrize("coding", ["", "gzip", "chunked"])
def test_a_packed_body_without_a_type_is_looked_into(tmp_path: Path, coding: str) -> None:
    body, head = gzip.compress(page_body(1)), b"HTTP/1.1 200 OK\r\n"
    if coding == "chunked":
        body = b"%x\r\n%b\r\n0\r\n\r\n" % (len(page_body(1)), page_body(1))
        head += b"Transfer-Encoding: chunked\r\n"
    elif coding:
        head += b"Content-Encoding: gzip\r\n"
    path = tmp_path / "x.warc"
    path.write_bytes(warc_record(1, head + b"\r\n" + body))
    (event,) = read(str(path), default_settings())
    assert isinstance(event, Page) and (event.kind, event.content) == ("html", page_body(1))


def _noise(size: int) -> bytes:
    return np.random.default_rng(size).integers(0, 256, size, np.uint8).tobytes()


_BODIES = {
    "pdf": b"%PDF-1.4\n1 0 obj << /Type /Catalog /Pages 2 0 R >> endobj\n",
    "png": b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR\0\0\0\1",
    "jpeg": b"\xff\xd8\xff\xe0\0\x10JFIF\0\1\1",
    "gif": b"GIF89a\x01\0\x01\0\x80\0\0",
    "webp": b"RIFF\x24\0\0\0WEBPVP8 ",
    "zip": b"PK\x03\x04\x14\0\0\0\x08\0",
    "woff": b"wOFF\0\x01\0\0",
    "elf": b"\x7fELF\x02\x01\x01\0",
    "mp4": b"\0\0\0\x18ftypmp42\0\0\0\0",
    "sqlite": b"SQLite format 3\0\x10\0\1\1",
    "none": b"",
}


@pytest.mark.parametrize("kind", _BODIES)
@pytest.mark.parametrize(
    "declared", ["text/html", "text/plain; charset=utf-8", "application/xhtml+xml"]
)
def test_bodies_that_are_no_text_are_set_aside(tmp_path: Path, kind: str, declared: str) -> None:
    bodies = [_BODIES[kind] + _noise(size) for size in (60, 700, 5000, 90_000)]
    head = b"Content-Type: " + declared.encode()
    records = [warc_record(i, http_response(body, head)) for i, body in enumerate(bodies)]
    found = events_of(tmp_path, b"".join([*records, warc_record(9, http_response(page_body(9)))]))
    *aside, page = found
    assert [e.reason for e in aside if isinstance(e, Damage)] == ["http.binary"] * 4
    assert [e.url for e in aside if isinstance(e, Damage)] == [
        f"http://site.example/{i}" for i in range(4)
    ]
    assert isinstance(page, Page) and page.content == page_body(9)


def test_gzip_that_no_field_names(tmp_path: Path) -> None:
    packed = gzip.compress(page_body(1))
    for body, head in (
        (packed, b"Content-Type: text/html"),
        (gzip.compress(packed), b"Content-Type: text/html\r\nContent-Encoding: gzip"),
        (packed, b"Content-Type: text/plain\r\nContent-Encoding: identity"),
    ):
        found = events_of(tmp_path, warc_record(1, http_response(body, head)))
        assert contents(found) == [page_body(1)]
    for inner in (_BODIES["png"] + _noise(900), gzip.compress(packed)):
        found = events_of(tmp_path, warc_record(1, http_response(gzip.compress(inner))))
        assert [e.reason for e in found if isinstance(e, Damage)] == ["http.binary"]
    (cut,) = events_of(tmp_path, warc_record(1, http_response(packed[:-20])))
    assert isinstance(cut, Page) and cut.mended == "http.bad_gzip"


def test_files_and_cells_that_are_no_text(tmp_path: Path) -> None:
    for name in ("page.html", "notes.txt"):
        (found,) = events_of(tmp_path, _BODIES["pdf"] + _noise(500), name)
        assert isinstance(found, Damage) and found.reason == "http.binary"
    table = pa.table(
        {"html": [page_body(1), _BODIES["jpeg"] + _noise(500), "Größe".encode("latin-1")]}
    )
    pq.write_table(table, tmp_path / "pages.parquet")
    found = list(read(str(tmp_path / "pages.parquet"), default_settings()))
    assert [type(e) for e in found] == [Page, Damage, Page]
    assert isinstance(found[1], Damage) and found[1].reason == "http.binary"
