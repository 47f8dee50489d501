"""Broken archives: nothing raises, and no record is lost that damage didn't touch."""

from __future__ import annotations

import gzip
import io
import itertools
import random
import tempfile
from pathlib import Path
from typing import Any

import pytest
import zstandard
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from curation.readers.members import GZIP, Effort, member_pieces
from curation.readers.raw import RawFile
from curation.readers.read import read, read_at
from curation.readers.records import Damage, Page, Skipped
from curation.readers.settings import KEEP_RAW_BYTES
from tests.readers.archives import (
    arc_record,
    default_settings,
    http_response,
    page_body,
    sample,
    warc_record,
    zstd_with_dictionary,
)
from tests.readers.test_archives import check_places, contents, events_of

KINDS = ["warc", "warc.gz", "warc.zst", "warc.lz4", "arc", "arc.gz"]


def damaged(data: bytes, way: str, at: int, count: int, seed: int) -> tuple[bytes, int, int]:
    """The data with damage, and the span of the original that it touches."""
    if way == "flip":
        return data[:at] + bytes([data[at] ^ 1 << seed % 8]) + data[at + 1 :], at, at + 1
    if way == "truncate":
        return data[:at], at, len(data)
    if way == "insert":
        return data[:at] + random.Random(seed).randbytes(count) + data[at:], at, at
    count = min(count, len(data) - at)
    middle = bytes(count) if way == "zero" else b""
    return data[:at] + middle + data[at + count :], at, at + count


@settings(max_examples=200)
@given(
    texts=st.lists(st.binary(max_size=3000), min_size=1, max_size=4),
    level=st.sampled_from([0, 1, 6, 9]),
    way=st.sampled_from(["flip", "truncate", "insert", "delete", "zero"]),
    place=st.floats(0, 1, exclude_max=True),
    seed=st.integers(0, 2**32),
)
def test_both_decoders_of_gzip_find_the_same_damage(
    texts: list[bytes], level: int, way: str, place: float, seed: int
) -> None:
    """What ISA-L doesn't accept is left to zlib, and nothing of it was given before."""
    data = b"".join(gzip.compress(text * 3, level, mtime=0) for text in texts)
    for content in (data, damaged(data, way, int(place * len(data)), seed % 40 + 1, seed)[0]):
        found = list[list[Any]]()
        for codec in (GZIP, GZIP._replace(at_once=lambda raw, start: None)):
            raw = RawFile(io.BytesIO(content), "x.gz")
            pieces = [p for p in member_pieces(raw, codec, Effort()) if p]
            grouped = itertools.groupby(pieces, lambda piece: isinstance(piece, bytes))
            found.append([b"".join(part) if plain else [*part] for plain, part in grouped])
        assert found[0] == found[1]


@settings(max_examples=40, suppress_health_check=[HealthCheck.too_slow])
@pytest.mark.parametrize("kind", KINDS)
@given(
    way=st.sampled_from(["flip", "truncate", "insert", "delete", "zero"]),
    place=st.floats(0, 1, exclude_max=True),
    count=st.integers(1, 80),
    seed=st.integers(0, 2**32),
)
def test_untouched_records_are_read(
    kind: str, way: str, place: float, count: int, seed: int
) -> None:
    made = sample(kind)
    data, begin, end = damaged(made.data, way, int(place * len(made.data)), count, seed)
    with tempfile.TemporaryDirectory() as folder:
        events = events_of(Path(folder), data, f"x.{kind}")
        check_places(Path(folder) / f"x.{kind}", events)
    found = contents(events)
    for (start, stop), body in zip(made.spans, made.bodies, strict=True):
        if stop <= begin or start >= end:
            assert body in found


@settings(max_examples=40)
@given(data=st.binary(max_size=400), head=st.sampled_from([b"", b"WARC/1.0\r\n", b"\x1f\x8b\x08"]))
@pytest.mark.parametrize("name", ["x.warc", "x.warc.gz", "x.arc", "x.jsonl.zst", "x.bin"])
def test_any_bytes(name: str, data: bytes, head: bytes) -> None:
    with tempfile.TemporaryDirectory() as folder:
        events_of(Path(folder), head + data, name)


def test_member_cut_in_the_middle_of_the_file(tmp_path: Path) -> None:
    bodies = [page_body(i, 3000) for i in range(3)]
    members = [gzip.compress(warc_record(i, http_response(body))) for i, body in enumerate(bodies)]
    members[1] = members[1][: len(members[1]) // 2]
    first, cut, last = events_of(tmp_path, b"".join(members))
    assert [first.content, last.content] == [bodies[0], bodies[2]]  # type: ignore[union-attr]
    assert isinstance(cut, Page)
    assert cut.mended == "gzip.corrupt"
    assert bodies[1].startswith(cut.content[:500])
    events = events_of(tmp_path, b"".join(members), keep_truncated=False)
    assert [type(event) for event in events] == [Page, Damage, Page]
    damage = events[1]
    assert isinstance(damage, Damage)
    assert (damage.offset, damage.url) == (len(members[0]), "http://site.example/1")
    assert damage.raw.startswith(b"WARC/1.0")


def test_wrong_checksum_keeps_the_page(tmp_path: Path) -> None:
    member = bytearray(gzip.compress(warc_record(1, http_response(b"<p>x"))))
    member[-5] ^= 1
    (page,) = events_of(tmp_path, bytes(member), keep_truncated=False)
    assert isinstance(page, Page)
    assert (page.content, page.mended) == (b"<p>x", "gzip.corrupt")


@pytest.mark.parametrize("wrong", [-40, -1, 40, 5000, 10**12, None])
@pytest.mark.parametrize("kind", ["warc", "arc"])
def test_wrong_length(tmp_path: Path, wrong: int | None, kind: str) -> None:
    blocks = [http_response(page_body(i)) for i in range(3)]
    if kind == "warc":
        records = [warc_record(i, block) for i, block in enumerate(blocks)]
    else:
        records = [arc_record(i, block) for i, block in enumerate(blocks)]
    length = len(blocks[1])
    new = b"none" if wrong is None else b"%d" % (length + wrong)
    old = b"Content-Length: %d" % length if kind == "warc" else b"text/html %d" % length
    records[1] = records[1].replace(old, old.rsplit(b" ", 1)[0] + b" " + new)
    events = events_of(tmp_path, b"".join(records), f"x.{kind}")
    pages = [event for event in events if isinstance(event, Page)]
    assert [page.content for page in pages] == [page_body(i) for i in range(3)]
    assert [page.mended for page in pages] == ["", f"{kind}.bad_length", ""]
    check_places(tmp_path / f"x.{kind}", events)


@pytest.mark.parametrize("packing", ["plain", "records", "one member", "blocks"])
def test_length_above_the_limit_and_wrong(tmp_path: Path, packing: str) -> None:
    records = [warc_record(i, http_response(page_body(i))) for i in range(4)]
    image = http_response(bytes(3000), b"Content-Type: image/png")
    wrong = warc_record(9, http_response(b"<p>wrong"), length=10**9)
    large = warc_record(8, http_response(page_body(8, 9000)), length=10**9)
    parts = [*records[:2], wrong, *([warc_record(7, image)] * 400), large, *records[2:]]
    data = b"".join(parts)
    if packing == "records":
        data = b"".join(gzip.compress(part, mtime=0) for part in parts)
    elif packing != "plain":
        size = len(data) if packing == "one member" else 5000
        pieces = (data[at : at + size] for at in range(0, len(data), size))
        data = b"".join(gzip.compress(piece, mtime=0) for piece in pieces)
    small = {"max_record_bytes": 2500}
    events = events_of(tmp_path, data, **small)
    damages = [event for event in events if isinstance(event, Damage)]
    assert [damage.reason for damage in damages] == ["warc.bad_length"]
    assert damages[0].url == "http://site.example/8"
    bodies = [page_body(i) for i in range(4)]
    assert contents(events) == [*bodies[:2], b"<p>wrong", *bodies[2:]]
    for event in events:
        if isinstance(event, Page):
            path = str(tmp_path / "x.warc")
            assert read_at(path, event.offset, default_settings(**small)) == event


def test_garbage_between_records(tmp_path: Path) -> None:
    junk = b"\x01\x02 something else\r\n" * 90_000
    data = sample("warc", 1).data + junk + sample("warc", 1).data
    first, damage, last = events_of(tmp_path, data)
    assert isinstance(first, Page) and isinstance(last, Page)
    assert first.content == last.content
    assert isinstance(damage, Damage)
    assert damage.reason == "warc.garbage"
    assert damage.offset == len(sample("warc", 1).data)
    assert len(damage.raw) == KEEP_RAW_BYTES


def test_too_large_record(tmp_path: Path) -> None:
    big = warc_record(1, http_response(page_body(1, 200_000)))
    image = warc_record(2, http_response(bytes(200_000), b"Content-Type: image/png"))
    bomb = warc_record(
        3,
        http_response(
            gzip.compress(bytes(10**6)), b"Content-Type: text/html\r\nContent-Encoding: gzip"
        ),
    )
    data = sample("warc", 1).data + big + image + bomb + sample("warc", 1).data
    events = events_of(tmp_path, data, max_record_bytes=10_000)
    assert isinstance(events[0], Page) and isinstance(events[4], Page)
    assert events[2] == Skipped("mime:image/png")
    assert [e.reason for e in (events[1], events[3]) if isinstance(e, Damage)] == [
        "record.too_large",
        "record.too_large",
    ]


def test_truncated_by_the_crawler(tmp_path: Path) -> None:
    record = warc_record(1, http_response(b"<p>x"), extra=b"WARC-Truncated: length\r\n")
    (page,) = events_of(tmp_path, record)
    assert isinstance(page, Page) and page.mended == "warc.truncated"
    (damage,) = events_of(tmp_path, record, keep_truncated=False)
    assert isinstance(damage, Damage) and damage.reason == "warc.truncated"


def test_complete_body_in_a_cut_record(tmp_path: Path) -> None:
    block = http_response(b"<p>all", b"Content-Type: text/html\r\nContent-Length: 6")
    record = warc_record(1, block).removesuffix(b"\r\n\r\n")
    record = record.replace(b"Content-Length: %d\r\n" % len(block), b"Content-Length: 999\r\n", 1)
    (page,) = events_of(tmp_path, record, keep_truncated=False)
    assert isinstance(page, Page)
    assert (page.content, page.mended) == (b"<p>all", "warc.truncated")


def test_unknown_and_empty_files(tmp_path: Path) -> None:
    for data, reason in (
        (b"\x89PNG\r\n\x1a\n" + bytes(50), "file.unknown_format"),
        (b"", "file.empty"),
    ):
        (damage,) = events_of(tmp_path, data, "x.bin")
        assert isinstance(damage, Damage)
        assert damage.reason == reason


def test_record_inside_a_page_is_content(tmp_path: Path) -> None:
    inner = warc_record(9, http_response(b"<p>inner"))
    data = warc_record(1, http_response(b"<pre>" + inner)) + sample("warc", 1).data
    events = events_of(tmp_path, data)
    assert contents(events) == [b"<pre>" + inner, page_body(0)]
    big = warc_record(1, http_response(b"<pre>" + inner + bytes(50_000)))
    events = events_of(tmp_path, big + sample("warc", 1).data, max_record_bytes=10_000)
    assert contents(events) == [page_body(0)]


def test_read_is_lazy(tmp_path: Path) -> None:
    path = tmp_path / "x.warc.gz"
    path.write_bytes(sample("warc.gz").data)
    events = read(str(path), default_settings())
    page = next(events)
    assert isinstance(page, Page) and read_at(str(path), page.offset, default_settings()) == page


@pytest.mark.parametrize("wrong", [10**6, 2**32 - 1, 5])
@pytest.mark.parametrize("place", [0, 2, 3])
def test_skippable_frame_of_wrong_length(tmp_path: Path, place: int, wrong: int) -> None:
    """Nothing ends unseen, and no frame behind it is lost."""
    compress = zstandard.ZstdCompressor().compress
    frames = [compress(warc_record(i, http_response(page_body(i)))) for i in range(3)]
    frames.insert(place, b"\x50\x2a\x4d\x18" + wrong.to_bytes(4, "little") + b"metadata")
    data = b"".join(frames)
    for padding in (b"", b"\0\0\r\n"):
        events = events_of(tmp_path, data + padding, "x.warc.zst")
        assert contents(events) == [page_body(i) for i in range(3)]
        (damage,) = (event for event in events if isinstance(event, Damage))
        assert (damage.offset, damage.reason) == (len(b"".join(frames[:place])), "zstd.corrupt")
        check_places(tmp_path / "x.warc.zst", events)
        right = data.replace(wrong.to_bytes(4, "little") + b"meta", b"\x08\0\0\0meta")
        assert len(events_of(tmp_path, right + padding, "x.warc.zst")) == 3
    kept = data.replace(b"\x50\x2a", b"\x5d\x2a")  # a dictionary that is none
    assert contents(events_of(tmp_path, kept, "x.warc.zst")) == [page_body(i) for i in range(3)]


@pytest.mark.parametrize("wrong", [10**6, 5])
def test_dictionary_frame_of_wrong_length(tmp_path: Path, wrong: int) -> None:
    records = [warc_record(i, http_response(page_body(i, 3000))) for i in range(4)]
    frames = zstd_with_dictionary(records, compress_dictionary=True)
    frames[0] = frames[0][:4] + wrong.to_bytes(4, "little") + frames[0][8:]
    events = events_of(tmp_path, b"".join(frames), "x.warc.zst")
    reasons = [event.reason for event in events if isinstance(event, Damage)]
    assert reasons[0] == "zstd.corrupt"
    if wrong > 5:
        assert contents(events) == [page_body(i, 3000) for i in range(4)]
