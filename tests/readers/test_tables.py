"""Documents in JSON lines and Parquet files."""

from __future__ import annotations

import gzip
import json
from datetime import UTC, datetime
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import zstandard

from curation.errors import InputError
from curation.readers import Damage, Page, read, read_at
from tests.readers.archives import default_settings
from tests.readers.test_archives import check_places, contents, events_of

ROWS = [
    {"id": i, "text": f"Zeile {i} 世界 " * (i % 7 + 1), "url": f"http://site.example/{i}"}
    for i in range(3000)
]
LINES = [json.dumps(row, ensure_ascii=i % 2 == 0).encode() for i, row in enumerate(ROWS)]
TEXTS = [str(row["text"]).encode() for row in ROWS]
PACK = {
    "jsonl": bytes,
    "jsonl.gz": gzip.compress,
    "jsonl.zst": zstandard.ZstdCompressor().compress,
    "json": lambda data: gzip.compress(data[:50_001]) + gzip.compress(data[50_001:]),
}


@pytest.mark.parametrize("suffix", PACK)
def test_jsonl(tmp_path: Path, suffix: str) -> None:
    events = events_of(tmp_path, PACK[suffix](b"\n".join(LINES)), f"x.{suffix}")
    assert contents(events) == TEXTS
    few = [events[i] for i in (0, 1, 1500, 2999)]
    check_places(tmp_path / f"x.{suffix}", few)
    page = few[1]
    assert isinstance(page, Page)
    assert (page.url, page.fields, page.kind) == ("http://site.example/1", {"id": 1}, "text")
    assert (page.mime, page.charset, page.status) == ("text/plain", "utf-8", None)


def test_bad_lines(tmp_path: Path) -> None:
    good = b'{"text": "ok"}'
    lines = [
        good, b'{"text": "cut', b"", b"[1]", b'{"text": 5}', b'{"text": "\xff"}',
        b"\xef\xbb\xbf" + good,
        b'{"html": "<p>x", "timestamp": "2024-05-06T07:08:09Z"}', b"[" * 100_000,
        b'{"text": "\\ud800x", "created": 1714979289}', b'{"text": "' + b"y" * 300_000 + b'"}',
        good,
    ]  # fmt: skip
    events = events_of(tmp_path, b"\r\n".join(lines), "x.jsonl", max_record_bytes=200_000)
    reasons = [event.reason if isinstance(event, Damage) else "" for event in events]
    assert reasons == [
        "", "jsonl.bad_json", "jsonl.bad_json", "jsonl.no_text", "", "", "", "jsonl.bad_json", "",
        "record.too_large", "",
    ]  # fmt: skip
    pages = [event for event in events if isinstance(event, Page)]
    assert [page.content for page in pages] == [
        b"ok", "\ufffd".encode(), b"ok", b"<p>x", b"?x", b"ok",
    ]  # fmt: skip
    assert [page.mended for page in pages] == ["", "jsonl.bad_utf8", "", "", "", ""]
    assert pages[3].kind == "html"
    assert pages[3].date == pages[4].date == datetime(2024, 5, 6, 7, 8, 9, tzinfo=UTC)


def test_cut_file(tmp_path: Path) -> None:
    data = gzip.compress(b"\n".join(LINES))
    events = events_of(tmp_path, data[: len(data) // 2], "x.jsonl.gz")
    *pages, damage = events
    assert contents(pages) == TEXTS[: len(pages)]
    assert len(pages) > 500
    assert isinstance(damage, Damage)
    assert damage.reason == "gzip.truncated"


def test_parquet(tmp_path: Path) -> None:
    table = pa.table(
        {
            "text": pa.array([*(row["text"] for row in ROWS), None], pa.large_string()),
            "source_url": [*(row["url"] for row in ROWS), None],
            "date": pa.array([datetime(2024, 5, 6)] * 3001, pa.timestamp("ms")),
            "language": ["de"] * 3001,
        }
    )
    path = tmp_path / "x.parquet"
    pq.write_table(table, path, row_group_size=700)
    events = list(read(str(path), default_settings()))
    assert contents(events) == TEXTS
    page = events[2999]
    assert isinstance(page, Page)
    assert (page.offset, page.url) == (2999, "http://site.example/2999")
    assert page.date == datetime(2024, 5, 6, tzinfo=UTC)
    assert page.fields == {"language": "de"}
    assert isinstance(events[3000], Damage) and events[3000].reason == "parquet.no_text"
    check_places(path, [events[0], events[1400], page])
    with pytest.raises(InputError, match="no page at 3001"):
        read_at(str(path), 3001, default_settings())


def test_damaged_parquet(tmp_path: Path) -> None:
    path = tmp_path / "x.parquet"
    texts = [str(i * i) * 50 for i in range(4000)]
    pq.write_table(pa.table({"text": texts}), path, row_group_size=1000, use_dictionary=False)
    data = bytearray(path.read_bytes())
    column = pq.ParquetFile(path).metadata.row_group(1).column(0)
    data[column.data_page_offset : column.data_page_offset + 500] = bytes(500)
    events = events_of(tmp_path, bytes(data), "y.parquet")
    damages = [event for event in events if isinstance(event, Damage)]
    assert [(d.offset, d.reason) for d in damages] == [(1000, "parquet.corrupt")]
    assert contents(events) == [t.encode() for t in texts[:1000] + texts[2000:]]
    (damage,) = events_of(tmp_path, bytes(data[:-20]), "y.parquet")
    assert isinstance(damage, Damage) and damage.reason == "parquet.corrupt"


def test_parquet_without_text(tmp_path: Path) -> None:
    path = tmp_path / "x.parquet"
    pq.write_table(pa.table({"words": ["a"]}), path)
    with pytest.raises(InputError, match=r"x\.parquet.*text_columns.*words"):
        list(read(str(path), default_settings()))
    assert contents(list(read(str(path), default_settings(text_columns=("words",))))) == [b"a"]
