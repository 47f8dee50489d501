"""What made reading hang or swell: by count here, by growth of time in tests/test_growth.py."""

from __future__ import annotations

import gzip
import io
import os
import tracemalloc
import zipfile
from pathlib import Path

import pytest

from curation.readers import wacz
from curation.readers.discover import discover
from curation.readers.http import looks_like_html
from curation.readers.read import read
from curation.readers.records import Damage, Page
from tests.readers.archives import default_settings, http_response, page_body, sample, warc_record
from tests.readers.test_archives import contents, events_of
from tests.shapes import FILES


def test_endless_comments_are_no_html() -> None:
    assert not looks_like_html(b"<!---->" * 60 + b"x")
    assert looks_like_html(b"<!---->" * 60 + b"<p>x")


def test_a_dictionary_is_bounded(tmp_path: Path) -> None:
    tracemalloc.start()
    events_of(tmp_path, FILES["zstd: dictionary"].make(1 << 15), "x.warc.zst")
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 100 << 20


def test_each_folder_is_read_once(tmp_path: Path) -> None:
    for name in "abcdefghij":
        (tmp_path / name).mkdir()
        (tmp_path / name / "x.html").write_text("<p>x")
        for other in "abcdefghij":
            (tmp_path / name / f"to_{other}").symlink_to(f"../{other}")
    names = [file.name for file in discover([str(tmp_path)])]
    assert names == [f"{name}/x.html" for name in "abcdefghij"]


def test_a_link_gives_way_to_the_folder(tmp_path: Path) -> None:
    (tmp_path / "z").mkdir()
    (tmp_path / "z/x.html").write_text("<p>x")
    os.symlink("z", tmp_path / "a")
    assert [file.name for file in discover([str(tmp_path)])] == ["z/x.html"]


def package(*archives: bytes) -> bytes:
    held = io.BytesIO()
    with zipfile.ZipFile(held, "w", zipfile.ZIP_DEFLATED) as file:
        for number, archive in enumerate(archives):
            file.writestr(f"{number}.warc.gz", archive)
    return held.getvalue()


def test_more_archives_than_offsets_tell_apart(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert wacz.pack(wacz.MOST_ARCHIVES - 1, (1 << 48) - 1) < 1 << 63
    monkeypatch.setattr(wacz, "MOST_ARCHIVES", 2)
    *read_ones, left = events_of(tmp_path, package(*[sample("warc.gz", 1).data] * 4), "x.wacz")
    assert len(contents(read_ones)) == 2
    assert isinstance(left, Damage)
    assert (left.reason, left.detail) == (
        "wacz.too_many_archives",
        "2 archives behind the first 2",
    )


def test_archives_that_overlap_are_read_once(tmp_path: Path) -> None:
    held = io.BytesIO()
    with zipfile.ZipFile(held, "w") as file:
        file.writestr("x.warc.gz", sample("warc.gz", 1).data)
        file.filelist *= 3
    events = events_of(tmp_path, held.getvalue(), "x.wacz")
    assert [type(event) for event in events] == [Page, Damage, Damage]


@pytest.mark.parametrize("change", [bytes.lower, bytes.upper, bytes.swapcase])
def test_names_of_fields_in_any_case(tmp_path: Path, change) -> None:  # type: ignore[no-untyped-def]
    records = []
    for number in range(3):
        head, _, block = warc_record(number, http_response(page_body(number))).partition(
            b"\r\n\r\n"
        )
        fields = [line.partition(b":") for line in head.split(b"\r\n")]
        fields = [(change(name), colon, value) for name, colon, value in fields]
        records.append(b"\r\n".join(map(b"".join, fields)) + b"\r\n\r\n" + block)
    bodies = [page_body(number) for number in range(3)]
    assert contents(events_of(tmp_path, b"".join(records), "x.warc")) == bodies
    assert contents(events_of(tmp_path, b"".join(map(gzip.compress, records)))) == bodies
    events = events_of(tmp_path, records[0][:-40] + records[1] + records[2], "x.warc")
    assert contents(events)[1:] == bodies[1:]  # the next one is found behind a cut one, too


@pytest.mark.parametrize("name", ["x.jsonl", "x.warc", "x.jsonl.gz", "x"])
def test_blank_lines_are_counted(tmp_path: Path, name: str) -> None:
    data = b"\n\r\n\n"
    path = tmp_path / name
    path.write_bytes(gzip.compress(data) if name.endswith(".gz") else data)
    (event,) = read(str(path), default_settings())
    assert isinstance(event, Damage)
    assert event.reason == ("file.unknown_format" if name == "x" else "file.empty")
