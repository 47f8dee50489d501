"""Documents in JSON lines and Parquet files."""

from __future__ import annotations

import gzip
import json
import subprocess
import sys
from datetime import UTC, datetime
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import zstandard

from curation.errors import InputError
from curation.readers.charset import decode_text
from curation.readers.documents import document_row, joined, others_of, own_columns
from curation.readers.read import read, read_at
from curation.readers.records import Damage, Page
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
        b'{"text": "\\ud800x", "created": 1714979289, "title": "\\ud83d\\ude00"}',
        b'{"text": "' + b"y" * 300_000 + b'"}',
        good, b'{"text": "raw\ttab\x1band escape"}',
    ]  # fmt: skip
    events = events_of(tmp_path, b"\r\n".join(lines), "x.jsonl", max_record_bytes=200_000)
    reasons = [event.reason if isinstance(event, Damage) else "" for event in events]
    assert reasons == [
        "", "jsonl.bad_json", "jsonl.bad_json", "jsonl.no_text", "", "", "", "jsonl.bad_json", "",
        "record.too_large", "", "",
    ]  # fmt: skip
    pages = [event for event in events if isinstance(event, Page)]
    assert [page.content for page in pages] == [
        b"ok", "ÿ".encode(), b"ok", b"<p>x", "\ufffdx".encode(), b"ok",
        b"raw\ttab\x1band escape",
    ]  # fmt: skip
    assert [page.mended for page in pages] == [
        "", "jsonl.bad_utf8", "", "", "jsonl.lone_surrogate", "", "",
    ]  # fmt: skip
    assert pages[4].fields == {"title": "\U0001f600"}
    assert pages[3].kind == "html"
    assert pages[3].date == pages[4].date == datetime(2024, 5, 6, 7, 8, 9, tzinfo=UTC)


def test_lines_that_are_not_utf8_are_in_the_encoding_that_they_look_like(tmp_path: Path) -> None:
    texts = ["Das Café in der großen Straße schließt.", "Сегодня в городе хорошая погода."]
    lines = [json.dumps({"text": t, "title": t}, ensure_ascii=False) for t in texts]
    half = b'\n{"text": "\xff half \\ud83d"}'
    data = b"\n".join([lines[0].encode("cp1252"), lines[1].encode("cp1251"), lines[1].encode()])
    pages = [e for e in events_of(tmp_path, data + half, "x.jsonl") if isinstance(e, Page)]
    wanted = [*texts, texts[1], "ÿ half \ufffd"]
    assert [page.content.decode() for page in pages] == wanted
    assert [page.fields["title"] for page in pages[:3] if page.fields] == wanted[:3]
    reasons = ["jsonl.bad_utf8", "jsonl.bad_utf8", "", "jsonl.bad_utf8"]
    assert [page.mended for page in pages] == reasons
    assert [page.detail for page in pages[:2]] == ["read as windows-1252", "read as windows-1251"]


@pytest.mark.parametrize("suffix", ["jsonl", "jsonl.gz", "json"])
def test_a_file_in_one_encoding_is_asked_once_for_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, suffix: str
) -> None:
    """Its short lines tell nothing, and in Shift-JIS bytes of letters look like backslashes."""
    asked = []
    monkeypatch.setattr(
        "curation.readers.tables.decode_text", lambda *a: asked.append(a) or decode_text(*a)
    )
    texts = ["表示する情報がありません。図表と構成を見る。" * 9, "表", *["竹", "十分な能力"] * 200]
    rows = [json.dumps({"text": text}, ensure_ascii=False) for text in texts]
    data = "[\n" + ",\n".join(rows) + "\n]" if suffix == "json" else "\n".join(rows)
    packed = gzip.compress if suffix.endswith("gz") else bytes
    pages = events_of(tmp_path, packed(data.encode("cp932")), f"x.{suffix}")
    assert contents(pages) == [text.encode() for text in texts]
    reason = suffix[:5].partition(".")[0] + ".bad_utf8"
    assert {(p.mended, p.detail) for p in pages if isinstance(p, Page)} == {
        (reason, "read as cp932")
    }
    assert len(asked) < 20
    check_places(tmp_path / f"x.{suffix}", pages[-2:])


def test_zeros_and_marks_between_lines_cost_no_line(tmp_path: Path) -> None:
    """A power failure leaves zeros where a line was; RFC 7464 has a mark before each."""
    data = b"".join(b"\x1e" + line + b"\n" for line in LINES[:3]) + bytes(5000) + LINES[3]
    assert contents(events_of(tmp_path, data, "x.jsonl")) == TEXTS[:4]


@pytest.mark.parametrize("indent", [None, 2])
def test_objects_over_several_lines_are_read_whatever_the_suffix(
    tmp_path: Path, indent: int | None
) -> None:
    events = events_of(tmp_path, json.dumps(ROWS, indent=indent).encode(), "x.jsonl")
    assert contents(events) == TEXTS
    several = "\n".join(json.dumps(row, indent=2) for row in ROWS)
    assert contents(events_of(tmp_path, several.encode(), "y.ndjson")) == TEXTS
    damaged = b"{\n" + LINES[0]  # not an object over several lines
    assert contents(events_of(tmp_path, damaged, "z.jsonl")[1:]) == TEXTS[:1]


def test_types_that_pyarrow_lacks_cost_no_text(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Polars writes integers of 128 bits, which only its own schema in the file calls so."""

    def lacking(file: Any) -> Any:
        if b"ARROW:schema" in file.read():
            raise pa.ArrowNotImplementedError("Integers with more than 64 bits")
        return pq.ParquetFile(file)

    path = tmp_path / "x.parquet"
    table = pa.table({"text": ["one"], "n": pa.array([bytes(16)], pa.binary(16))})
    pq.write_table(table, path)
    monkeypatch.setattr("curation.readers.tables.pq", SimpleNamespace(ParquetFile=lacking))
    (page,) = read(str(path), default_settings())
    assert isinstance(page, Page) and page.content == b"one"
    assert others_of(str(path), path.name, default_settings()) == {"n": pa.binary(16)}


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
    assert page.fields == {"language": pa.scalar("de")}
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


def test_flipped_bits_of_a_footer(tmp_path: Path) -> None:
    """Every fifth, in a process of its own: some end it when metadata of columns is read."""
    path = tmp_path / "x.parquet"
    rows = {"text": [f"text {i}" for i in range(3)], "url": [f"http://a/{i}" for i in range(3)]}
    pq.write_table(pa.table(rows), path, row_group_size=1)
    reading = subprocess.run(
        [sys.executable, "-c", _FLIPS, str(path)], capture_output=True, text=True, check=False
    )
    assert reading.returncode == 0, f"{reading.stderr[-2000:]}\n{(tmp_path / 'x.at').read_text()}"
    flips, damaged, refused = map(int, reading.stdout.split())
    footer = int.from_bytes(path.read_bytes()[-8:-4], "little")
    assert flips == len(range(0, 8 * (footer + 8), 5))
    assert damaged > flips // 20  # what remains is in statistics and in names of other software
    assert 0 < refused < damaged  # the column of texts has another name


_FLIPS = """
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from curation.errors import InputError
from curation.readers.read import read
from curation.readers.records import Damage
from tests.readers.archives import default_settings

path = Path(sys.argv[1])
sound = path.read_bytes()
flips = damaged = refused = 0
begin = len(sound) - 8 - int.from_bytes(sound[-8:-4], "little")
for bit in range(8 * begin, 8 * len(sound), 5):
    data = bytearray(sound)
    data[bit // 8] ^= 1 << bit % 8
    path.with_suffix(".at").write_text(f"bit {bit}")
    (flipped := path.with_name("y.parquet")).write_bytes(data)
    flips += 1
    try:
        events = read(str(flipped), default_settings())
        reasons = {event.reason for event in events if isinstance(event, Damage)}
        damaged += bool(reasons)
        refused += "parquet.no_text" in reasons
    except InputError:
        refused += 1
print(flips, damaged, refused)
"""


def test_parquet_without_text(tmp_path: Path) -> None:
    path = tmp_path / "x.parquet"
    pq.write_table(pa.table({"words": ["a"]}), path)
    (event,) = read(str(path), default_settings())
    assert isinstance(event, Damage) and event.reason == "parquet.no_text"
    assert event.detail == "none of the columns text, content, html, but words"
    assert contents(list(read(str(path), default_settings(text_columns=("words",))))) == [b"a"]


def test_dates_that_no_calendar_has(tmp_path: Path) -> None:
    dates = ["1" + "0" * 400, "-1e300", "1e400", "NaN", "true", '"1512121212"', "1714979289"]
    lines = [f'{{"text": "t", "date": {value}}}'.encode() for value in dates]
    pages = events_of(tmp_path, b"\n".join(lines), "x.jsonl")
    expected = [None] * 5 + [datetime(2017, 12, 1, 9, 40, 12, tzinfo=UTC), SECOND]
    assert [p.date for p in pages if isinstance(p, Page)] == expected


def test_lone_surrogates(tmp_path: Path) -> None:
    line = b'{"text": "t", "url": "http://x/\\ud83d", "title": "\\uD83D!", "id": "a\\udc00"}'
    (page,) = events_of(tmp_path, line, "x.jsonl")
    assert isinstance(page, Page)
    assert (page.url, page.mended) == ("http://x/\ufffd", "jsonl.lone_surrogate")
    assert page.fields == {"title": "\ufffd!", "id": "a\ufffd"}


SECOND = datetime(2024, 5, 6, 7, 8, 9, tzinfo=UTC)


@pytest.mark.parametrize(
    ("kind", "values", "dates"),
    [
        (pa.timestamp("ns"), [1714979289_000000001, None], [SECOND, None]),
        (pa.timestamp("us"), [2**62, 1714979289_000000], [None, SECOND]),
        (pa.timestamp("s"), [-(2**50), 1714979289], [None, SECOND]),
        (pa.timestamp("ms", "Asia/Tokyo"), [1714979289_000, 2**60], [SECOND, None]),
        (pa.timestamp("us", "Asia/Tokyo"), [-62135596800_000000], [datetime(1, 1, 1, tzinfo=UTC)]),
        (pa.date32(), [19849, 2**30], [datetime(2024, 5, 6, tzinfo=UTC), None]),
        (pa.date64(), [19849 * 86400_000], [datetime(2024, 5, 6, tzinfo=UTC)]),
    ],
)
def test_parquet_dates(
    tmp_path: Path, kind: pa.DataType, values: list[int | None], dates: list[datetime | None]
) -> None:
    path = tmp_path / "x.parquet"
    column = pa.array(values, pa.int32() if kind == pa.date32() else pa.int64()).view(kind)
    # What no reader needs must not be the reason that a row is lost, either.
    pq.write_table(pa.table({"text": ["t"] * len(values), "date": column, "seen": column}), path)
    events = list(read(str(path), default_settings()))
    assert [e.date for e in events if isinstance(e, Page)] == dates
    check_places(path, events)


@pytest.mark.parametrize(
    "kind", [pa.string(), pa.large_string(), pa.dictionary(pa.int32(), pa.string())], ids=str
)
def test_strings_that_are_no_utf8(tmp_path: Path, kind: pa.DataType) -> None:
    """Each costs at most its own row, and its bytes are decoded as those of any page."""
    texts = [f"text {i} ä".encode() for i in range(1000)]
    texts[256] = "Grüße aus Köln und die schönsten Straßen der Städte".encode("latin-1")
    urls = [*([b"http://site.example/"] * 999), b"http://site.example/\xff"]
    wide = kind == pa.large_string()
    held = pa.array(texts, pa.large_binary() if wide else pa.binary())
    plain = pa.large_string() if wide else pa.string()
    text = pa.Array.from_buffers(plain, len(held), held.buffers())
    if pa.types.is_dictionary(kind):
        text = pa.DictionaryArray.from_arrays(pa.array(range(1000), pa.int32()), text)
    held = pa.array(urls)
    url = pa.Array.from_buffers(pa.string(), len(held), held.buffers())
    path = tmp_path / "x.parquet"
    pq.write_table(pa.table({"text": text, "url": url}), path)
    events = list(read(str(path), default_settings()))
    assert contents(events) == texts
    pages = [event for event in events if isinstance(event, Page)]
    mended = [page for page in pages if page.mended]
    assert [page.offset for page in mended] == [256, 999]
    assert {page.mended for page in mended} == {"parquet.bad_utf8"}
    assert decode_text(mended[0].content, mended[0].charset)[0].startswith("Grüße aus Köln")
    assert mended[1].url == "http://site.example/\ufffd"
    check_places(path, [pages[0], *mended])


def test_offsets_that_lead_out_of_an_arrow_file(tmp_path: Path) -> None:
    """Arrow would read the memory behind them; the batches around them are sound."""
    path = tmp_path / "x.arrow"
    table = pa.table({"text": [f"words of row {i:02}" for i in range(12)], "n": range(12)})
    with pa.OSFile(str(path), "wb") as file, pa.ipc.new_stream(file, table.schema) as stream:
        stream.write_table(table, 4)
    sound = path.read_bytes()
    offsets = np.arange(5, dtype=np.int32) * len("words of row 00")
    second = sound.index(offsets.tobytes(), sound.index(offsets.tobytes()) + 1)
    for wrong in (-5, 5000, 1 << 30):
        data = bytearray(sound)
        data[second + 8 : second + 12] = int(wrong).to_bytes(4, "little", signed=True)
        path.write_bytes(data)
        events = list(read(str(path), default_settings()))
        (damage,) = (e for e in events if isinstance(e, Damage))
        assert (damage.reason, damage.offset) == ("arrow.corrupt", 4)
        assert "rows 4 to 7" in damage.detail
        pages = [e for e in events if isinstance(e, Page)]
        assert [p.offset for p in pages] == [0, 1, 2, 3, 8, 9, 10, 11]
        assert pages[4].content == b"words of row 08"


def test_an_arrow_file_that_is_cut_off(tmp_path: Path) -> None:
    path, table = tmp_path / "x.arrow", pa.table({"text": ["a text"] * 9})
    with pa.ipc.new_file(path, table.schema) as file:
        file.write_table(table)
    path.write_bytes(path.read_bytes()[:100])
    (damage,) = read(str(path), default_settings())
    assert isinstance(damage, Damage) and "cut off: 100 bytes" in damage.detail


def test_columns_after_the_first_thousand_share_one(tmp_path: Path) -> None:
    path = tmp_path / "x.jsonl"
    rows = [{"text": "a", "common": i, f"own{i:04}": i} for i in range(1100)]
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    others = joined([others_of(str(path), path.name, default_settings())], taken=["title"])
    assert len(others) == 1001
    own = [document_row(path.name, e)[1] for e in read(str(path), default_settings())]
    table = pa.Table.from_batches([pa.RecordBatch.from_struct_array(own_columns(own, others))])
    assert table["common"].to_pylist() == list(range(1100))
    assert table["own0998"].to_pylist()[998:] == [998] + [None] * 101
    further = table["further_columns"].to_pylist()
    assert further[:999] == [None] * 999  # `common` is one of the thousand
    assert further[999:] == [json.dumps({f"own{i:04}": i}) for i in range(999, 1100)]


@pytest.mark.parametrize("suffix", ["parquet", "arrow"])
def test_columns_of_one_name(tmp_path: Path, suffix: str) -> None:
    names = ["text", "n", "n", "n_2", "text"]
    batch = pa.RecordBatch.from_arrays([pa.array([f"{k}a", f"{k}b"]) for k in range(5)], names)
    path = tmp_path / f"x.{suffix}"
    if suffix == "parquet":
        pq.write_table(pa.Table.from_batches([batch]), path)
    else:
        with pa.ipc.new_stream(path, batch.schema) as file:
            file.write_batch(batch)
    pages = [event for event in read(str(path), default_settings()) if isinstance(event, Page)]
    assert [page.content for page in pages] == [b"0a", b"0b"]
    others = {name: str(value) for name, value in pages[0].fields.items()}
    assert others == {"n": "1a", "n_3": "2a", "n_2": "3a", "text_2": "4a"}


def test_lengths_that_an_arrow_file_does_not_have(tmp_path: Path) -> None:
    """A length of a body or a message of exabytes is damage, not memory."""
    batch = pa.RecordBatch.from_arrays([pa.array(["some text"])], ["text"])
    path = tmp_path / "x.arrow"
    with pa.ipc.new_stream(path, batch.schema) as file:
        file.write_batch(batch)
    sound = path.read_bytes()
    for at in range(0, len(sound) - 7, 4):
        path.write_bytes(sound[:at] + (1 << 62).to_bytes(8, "little") + sound[at + 8 :])
        try:
            events = list(read(str(path), default_settings()))
        except InputError as error:
            events = []
            assert "x.arrow" in str(error)
        assert all(isinstance(event, Page | Damage) for event in events)


@pytest.mark.parametrize("name", ["x.jsonl", "x.jsonl.gz"])
@pytest.mark.parametrize("between", [b"", b" ", b", ", b",\t,", b"\xef\xbb\xbf"])
def test_several_objects_on_a_line_are_read(tmp_path: Path, name: str, between: bytes) -> None:
    # as where a file without a last line end was put in front of another
    rows = [b'{"text": "%d \xc3\xa4 {\\"a\\": 1}"}' % i for i in range(5)]
    line = rows[0] + between + rows[1] + between + rows[2]
    data = b"\n".join(
        [b"\xef\xbb\xbf  " + line + b",", rows[3] + between + b'{"text": "cut', rows[4]]
    )
    events = events_of(tmp_path, gzip.compress(data) if name.endswith("gz") else data, name)
    pages = [event for event in events if isinstance(event, Page)]
    assert contents(pages) == [f'{i} ä {{"a": 1}}'.encode() for i in range(5)]
    (damage,) = (event for event in events if isinstance(event, Damage))
    assert (damage.reason, damage.raw) == ("jsonl.bad_json", b'{"text": "cut')
    assert len({event.offset for event in events}) == 6
    check_places(tmp_path / name, pages)


def test_a_line_that_is_not_utf8_has_one_object(tmp_path: Path) -> None:
    one, other = b'{"text": "gr\xf6\xdfer"}', b'{"text": "\xff' + "日本語の文".encode() + b'"}'
    data = b"\n".join([one, other, one + one, other + other, one])
    events = events_of(tmp_path, data, "x.jsonl")
    found = [e.content.decode() if isinstance(e, Page) else e.reason for e in events[:5]]
    assert found == ["größer", "\ufffd日本語の文", *["jsonl.bad_json"] * 2, "größer"]
    assert isinstance(events[2], Damage) and "Extra data" in events[2].detail


def test_zeros_in_front_of_a_broken_line_are_no_utf16(tmp_path: Path) -> None:
    (damage,) = events_of(tmp_path, b'{"text": "a"}\n\0\0\0{"text": "cut', "x.jsonl")[1:]
    assert isinstance(damage, Damage) and "Unterminated string" in damage.detail


def test_a_cut_line_of_several_objects(tmp_path: Path) -> None:
    data = gzip.compress(b'{"text": "a"}{"b": 1}{"text": "' + bytes(range(256)).hex().encode() * 99)
    page, untold, damage = events_of(tmp_path, data[:-30], "x.jsonl.gz")
    assert contents([page]) == [b"a"]
    assert (untold.reason, damage.reason) == ("jsonl.no_text", "gzip.truncated")


@pytest.mark.parametrize(
    ("name", "part", "found"),
    [("x.jsonl", b"{}", 200_000), ("x.jsonl", b",", 1), ("x.csv", b" ", 0)],
)
def test_lines_of_one_thing(tmp_path: Path, name: str, part: bytes, found: int) -> None:
    """Takes minutes if it isn't linear."""
    assert len(events_of(tmp_path, part * 200_000, name)) == found


@pytest.mark.parametrize("blank", ["", " ", None])
def test_a_blank_address_or_date_is_no_column(tmp_path: Path, blank: str | None) -> None:
    rows = [
        {"text": "a", "url": blank, "date": blank},
        {"text": "b", "url": 5, "source_url": blank},
    ]
    pages = events_of(tmp_path, "\n".join(map(json.dumps, rows)).encode(), "x.jsonl")
    first, second = (page for page in pages if isinstance(page, Page))
    assert (first.url, first.date, first.fields, first.mended) == ("", None, {}, "")
    assert (second.url, second.fields) == ("", {"url": 5, "source_url": blank})


def test_a_parquet_file_without_row_groups(tmp_path: Path) -> None:
    pq.ParquetWriter(tmp_path / "x.parquet", pa.schema({"text": pa.string()})).close()
    assert pq.ParquetFile(tmp_path / "x.parquet").num_row_groups == 0
    assert [*read(str(tmp_path / "x.parquet"), default_settings())] == []
