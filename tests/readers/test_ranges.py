"""Files read by ranges: whatever the bytes and wherever they are cut, the events of one reader."""

from __future__ import annotations

import functools
import gzip
import json
import random
import re
from collections.abc import Sequence
from itertools import pairwise
from pathlib import Path
from unittest.mock import patch

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import zstandard
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from curation.readers import members
from curation.readers import scan as scan_module
from curation.readers.ranges import Checkpoint, RangeReader, Reading, Span, misread, why_whole
from curation.readers.read import read
from curation.readers.records import Event
from curation.readers.settings import ReaderSettings
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

KINDS = ["warc", "arc", "warc.gz", "arc.gz", "warc.zst", "warc.lz4", "warc.bz2", "warc.xz"]


#: Where a record, a member or a frame seems to begin or end, or a header to end.
_EDGE = re.compile(rb"WARC/|\x1f\x8b\x08|\x28\xb5\x2f\xfd|\r\n\r\n|http|\n\{|\0\0\0\0")


def places(data: bytes) -> list[int]:
    """Cuts to try: those beside what may be an edge, and every 13th, since all take minutes."""
    beside = {match.start() + d for match in _EDGE.finditer(data) for d in (-1, 0, 1, 2)}
    return sorted(n for n in beside | {*range(1, len(data), 13)} if 0 < n < len(data))


class Ranges:
    """The ranges of a file, read as a run reads them."""

    def __init__(self, path: Path, cuts: Sequence[int], changed: ReaderSettings) -> None:
        size = path.stat().st_size
        bounds = sorted({0, size, *(cut for cut in cuts if 0 < cut < size)})
        self.path, self.settings = path, changed
        self.parts = [Span(a, b, size) for a, b in pairwise(bounds)]
        self.found = [self.read(k) for k in range(len(self.parts))]
        self.again = 0
        while wrong := misread(self.parts, [reading for _, reading in self.found]):
            assert self.again <= 2 * len(self.parts)
            for number, begin in wrong.items():
                self.found[number] = self.read(number, begin)
            self.again += 1

    def read(self, number: int, begin: Checkpoint | None = None) -> tuple[list[Event], Reading]:
        path = str(self.path)
        reader = RangeReader(path, self.path.name, self.settings, self.parts[number], begin)
        events = list(reader)
        assert reader.lacks_position == (
            reader.reading.counted and reader.reading.begin.position is None  # type: ignore[union-attr]
        )
        return events, reader.reading

    @property
    def events(self) -> list[Event]:
        return [event for events, _ in self.found for event in events]


def check(path: Path, cuts: Sequence[int], **changes: object) -> Ranges:
    """Read a file in ranges that end at these offsets, and compare."""
    changed = default_settings(**changes)
    ranges = Ranges(path, cuts, changed)
    assert ranges.events == _read_whole(path, path.read_bytes(), tuple(changes.items()))
    return ranges


@functools.lru_cache(1)
def _read_whole(path: Path, data: bytes, changes: tuple[tuple[str, object], ...]) -> list[Event]:
    """The events of one reader. Many cuts of the same `data` are compared with them."""
    return list(read(str(path), default_settings(**dict(changes))))


def written(folder: Path, data: bytes, name: str = "x.warc") -> Path:
    path = folder / name
    path.write_bytes(data)
    return path


@pytest.mark.parametrize("kind", [*KINDS, "warc.dict"])
def test_sound_archives_are_read_once(tmp_path: Path, kind: str) -> None:
    made = sample(kind, count=5)
    path = written(tmp_path, made.data, "archive")
    starts = [start for start, _ in made.spans]
    before = starts[0] if kind == "warc.dict" else 0  # a reader never ends before the first event
    for cut in [n for n in places(made.data) if n > before]:
        ranges = check(path, [cut])
        assert ranges.again == 0
        _, (second, reading) = ranges.found
        assert len(second) == sum(start >= cut for start in starts)
        assert reading.begin is None or reading.begin.offset >= cut
    assert check(path, range(before + 50, len(made.data), 50)).again == 0


def jsonl() -> bytes:
    lines = [json.dumps({"text": "x" * size, "url": "http://a.b/"}) for size in (3, 0, 90, 200, 7)]
    mixed = [line.encode() + end for line, end in zip(lines, [b"\r\n", b"\n", b"\n\n"] * 2)]  # noqa: B905
    return b"\xef\xbb\xbf" + b"".join(mixed) + b"\r\n{broken\n" + b"\xff{}\r" + mixed[0][:-2]


def test_lines_at_every_cut(tmp_path: Path) -> None:
    path = written(tmp_path, jsonl(), "x.jsonl")
    for cut in range(1, len(jsonl())):
        assert check(path, [cut, cut + 17]).again == 0
    assert check(path, range(len(jsonl()))).again == 0
    data = b"\n" * 30 + b'{"text":"%s"}\n' % (b"y" * 5000) * 2 + jsonl()
    path = written(tmp_path, data, "y.jsonl")
    for cut in range(1, len(data), 97):
        check(path, [cut, cut + 3000], max_record_bytes=1024)
    check(path, range(0, len(data), 11), max_record_bytes=1024)


def test_lines_in_another_encoding_at_every_cut(tmp_path: Path) -> None:
    """What the beginning of the file tells counts in all ranges."""
    lines = ["Świąteczne łąki są piękne, a źdźbła żółte.", "żółć", "Oświęcim – łódź"] * 3
    data = "\n".join(json.dumps({"text": line}, ensure_ascii=False) for line in lines)
    path = written(tmp_path, data.encode("cp1250"), "x.jsonl")
    for cut in range(1, len(data), 7):
        assert check(path, [cut, cut + 17]).again == 0
    (one, *_, last) = read(str(path), default_settings())
    assert [one.content.decode(), last.content.decode()] == [lines[0], lines[2]]  # type: ignore[union-attr]


def inner(number: int) -> bytes:
    return warc_record(number, http_response(page_body(number, 60)))


def hostile(kind: str) -> bytes:
    """Archives in which places look like what they are not."""
    compress = gzip.compress
    records = [inner(number) for number in range(3)]
    nested = warc_record(7, b"".join(records), "resource", "text/plain")
    stored = gzip.compress(b"".join(records), 0)  # its members lie in the data as they are
    cut = compress(records[1])[:-30]
    if kind == "warcs in a warc":
        return records[0] + nested + records[1] + nested
    if kind == "arcs in a warc":
        block = ARC_HEAD + arc_record(1, b"<p>a") * 3
        return (records[0] + warc_record(7, block, "resource", "text/plain")) * 2
    if kind == "members in a stored block":
        hidden = compress(records[0]) * 2
        outer = warc_record(5, hidden, "resource", "text/plain")
        return compress(records[2]) + compress(outer, 0) + compress(outer, 0)[:-9] + stored
    if kind == "records in one member":
        return compress(records[0] + records[1]) * 2 + compress(records[2]) + stored
    if kind == "members that are no records":
        data = b"".join(records) * 2
        return b"".join(compress(data[at : at + 70]) for at in range(0, len(data), 70))
    if kind == "damage around members":
        junk = bytes(range(256)) + b"\x1f\x8b\x08\0" * 20
        return compress(records[0]) + junk + cut + compress(records[1]) + cut + junk + cut
    if kind == "checksums":
        wrong = bytearray(compress(records[0] + b"\r\n" * 9))
        wrong[-6] ^= 1
        return compress(records[1]) + bytes(wrong) * 3 + compress(b"") + compress(records[1])
    if kind == "plain between members":
        return compress(records[0]) + records[1] + records[2] + compress(records[1]) * 2
    if kind == "padding first":
        return bytes(100) + b"\r\n" * 50 + b"".join(records)
    if kind == "blank members":
        blank = compress(b"\r\n\0")
        return blank * 3 + (compress(b"\r\n" + records[0]) + blank + compress(b"")) * 3
    if kind == "nothing":
        return compress(b"\r\n" * 40) * 5
    if kind == "giants":
        giant = warc_record(6, page_body(6, 600) + records[0] + bytes(300), "resource")
        wrong = warc_record(8, http_response(page_body(8, 700)), length=2500)
        return records[0] + giant + wrong + records[1] + wrong + giant + records[2]
    if kind == "packed giants":
        parts = hostile("giants").split(b"\r\n\r\nWARC")
        return b"".join(compress(b"WARC" * bool(at) + part) for at, part in enumerate(parts))
    if kind == "frames":
        skip = b"\x50\x2a\x4d\x18" + (9).to_bytes(4, "little") + members.ZSTD_MAGIC
        frames = zstd_with_dictionary(records * 2, compress_dictionary=True)
        frames = [frames[0], frames[1], skip + b"12345", *frames[2:4], frames[4][:-9], *frames[5:]]
        return b"".join(frames)
    raise ValueError(kind)


HOSTILE = [
    "warcs in a warc",
    "arcs in a warc",
    "members in a stored block",
    "records in one member",
    "members that are no records",
    "damage around members",
    "checksums",
    "plain between members",
    "padding first",
    "blank members",
    "nothing",
    "giants",
    "packed giants",
    "frames",
]


@pytest.mark.parametrize("kind", HOSTILE)
def test_hostile_archives_at_every_cut(tmp_path: Path, kind: str) -> None:
    data = hostile(kind)
    path = written(tmp_path, data)
    small = {"max_record_bytes": 1024} if "giants" in kind else {}
    for cut in places(data):
        check(path, [cut], **small)
    for step in (7, 40, 333):
        check(path, range(0, len(data), step), **small)


@settings(max_examples=300, suppress_health_check=list(HealthCheck))
@given(
    st.sampled_from([*KINDS, "warc.dict", *HOSTILE]),
    st.integers(0, 1 << 32),
    st.lists(st.integers(1, 20_000), max_size=6),
    st.integers(0, 6),
)
def test_damaged_archives(
    tmp_path_factory: pytest.TempPathFactory, kind: str, seed: int, cuts: list[int], hits: int
) -> None:
    rng = random.Random(seed)
    data = bytearray(hostile(kind) if kind in HOSTILE else sample(kind, count=6).data)
    for _ in range(hits):
        at = rng.randrange(len(data))
        way = rng.randrange(4)
        if way == 0:
            data[at] ^= 1 << rng.randrange(8)
        elif way == 1:
            del data[at : at + rng.randrange(1, 200)]
        elif way == 2:
            data[at:at] = rng.randbytes(rng.randrange(1, 200))
        else:
            begin = rng.randrange(len(data))
            data[at:at] = data[begin : begin + rng.randrange(1, 2000)]
        if not data:
            return
    path = written(tmp_path_factory.mktemp("x"), bytes(data), "x.warc")
    near = [max(1, cut % len(data) + rng.randrange(-3, 4)) for cut in cuts]
    small = rng.choice([{}, {"max_record_bytes": 1024}])
    longest = rng.choice([256, 1 << 16])
    if not why_whole(str(path), path.name, default_settings(**small)):
        with patch("curation.readers.scan._HEADER", longest):
            check(path, near, **small)


@pytest.fixture
def scarce(monkeypatch: pytest.MonkeyPatch) -> None:
    """Small windows and little effort, so that small files reach the limits of large ones."""
    monkeypatch.setattr(members, "_AGAIN", 1)
    monkeypatch.setattr(members, "_AGAIN_AT_FIRST", 3000)
    monkeypatch.setattr(members, "_ATTEMPT", 100)
    monkeypatch.setattr(members, "CHUNK", 64)
    monkeypatch.setattr(members, "_FIRST_CHUNK", 16)
    monkeypatch.setattr(members, "PLAIN_CHUNK", 128)
    monkeypatch.setattr(scan_module, "_STEP", 512)
    monkeypatch.setattr(scan_module, "_OVERLAP", 256)


@pytest.mark.parametrize("kind", HOSTILE)
def test_where_effort_is_scarce(tmp_path: Path, scarce: None, kind: str) -> None:
    data = hostile(kind) * 2
    path = written(tmp_path, data)
    small = {"max_record_bytes": 1024} if "giants" in kind else {}
    for cut in range(1, len(data), len(data) // 80):
        check(path, [cut, cut + 400], **small)


def test_what_one_reader_reads(tmp_path: Path) -> None:
    record = warc_record(1, http_response(page_body(1, 3000)))
    table = pa.table({"text": ["a", "b", "c"]})
    pq.write_table(table, tmp_path / "one.parquet")
    pq.write_table(table, tmp_path / "many.parquet", row_group_size=1)
    made = {
        "stream.warc.gz": gzip.compress(record * 9),
        "stream.warc.zst": zstandard.compress(record * 9),
        "long.warc.gz": gzip.compress(random.Random(1).randbytes(3000)) + gzip.compress(record),
        "lines.jsonl.gz": gzip.compress(jsonl()) * 2,
        "page.html": b"<html><p>x",
        "x.bin": b"\x89PNG",
        "records.warc.gz": gzip.compress(record) * 2,
        "frames.warc.zst": sample("warc.dict").data,
        "lines.jsonl": jsonl(),
        "plain.warc": record,
    }
    stream = made["stream.warc.zst"]
    made["damaged.warc.zst"] = stream[:-9] + bytes(b ^ 255 for b in stream[-9:-7]) + stream[-7:]
    for name, data in made.items():
        (tmp_path / name).write_bytes(data)
    changed = default_settings(split_bytes=2048)
    assert {
        path.name: reason
        for path in sorted(tmp_path.iterdir())
        if (reason := why_whole(str(path), path.name, changed))
    } == {
        "damaged.warc.zst": "one zstd stream",
        "lines.jsonl.gz": "lines compressed with gzip",
        "long.warc.gz": "one gzip stream",
        "one.parquet": "one row group",
        "page.html": "one page",
        "stream.warc.gz": "one gzip stream",
        "stream.warc.zst": "one zstd stream",
        "x.bin": "no known format",
    }


def test_row_groups_at_every_cut(tmp_path: Path) -> None:
    table = pa.table({"text": [f"row {n}" * (n % 40) for n in range(200)]})
    path = tmp_path / "x.parquet"
    pq.write_table(table, path, row_group_size=17)
    size = path.stat().st_size
    for cut in range(1, size, 43):
        assert check(path, [cut, cut + 900]).again == 0
    data = bytearray(path.read_bytes())
    for seed in range(40):
        broken, rng = bytearray(data), random.Random(seed)
        for _ in range(seed % 5):
            broken[rng.randrange(size)] ^= 1 << rng.randrange(8)
        path.write_bytes(broken)
        check(path, [rng.randrange(size) for _ in range(4)])
    path.write_bytes(data[:-3])
    check(path, range(0, size, 100))
