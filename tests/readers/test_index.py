"""Tables that name records of archives: only these are read, and as from whole archives."""

from __future__ import annotations

import gzip
import json
import random
import re
import threading
from collections.abc import Iterator, Sequence
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet as pq
import pytest

from curation import stores
from curation.errors import ConfigError, InputError, StoreError
from curation.readers import members
from curation.readers.discover import InputFile
from curation.readers.index import parse_where, read_records, with_archives
from curation.readers.raw import RawFile
from curation.readers.read import read
from curation.readers.records import Damage, Page, Skipped
from curation.readers.settings import ReaderSettings
from curation.recipe import load
from curation.rights.sites import read_site_files
from curation.stores import persist
from pipelines.cli import main
from pipelines.plan import plan
from pipelines.run import run_plan
from pipelines.runners.execute import Executor, parse_beam_args
from tests.conftest import ROOT
from tests.faulty_store import KINDS, environment, faulty_store
from tests.readers.archives import (
    default_settings,
    http_response,
    sample,
    warc_record,
)

Rows = list[dict[str, Any]]


def rows_of(path: Path, name: str, settings: Any = None) -> Rows:
    """Return a row for each page of an archive of compressed members."""
    with RawFile.open(str(path)) as raw:
        codec = members.GZIP if name.endswith("gz") else members.LZ4
        pieces = members.member_pieces(raw, codec, members.Effort())
        starts = [piece.offset for piece in pieces if isinstance(piece, members.Start)]
        ends = dict(zip(starts, [*starts[1:], raw.size], strict=True))
    return [
        row(name, event.offset, ends[event.offset] - event.offset, event.url)
        for event in read(str(path), settings or default_settings())
        if isinstance(event, Page) and event.offset in ends
    ]


def row(name: str, offset: int | None, length: int | None, url: str) -> dict[str, Any]:
    return {
        "url": url,
        "warc_filename": name,
        "warc_record_offset": offset,
        "warc_record_length": length,
        "fetch_status": 200,
    }


def write(rows: Rows, path: Path) -> str:
    table = pa.Table.from_pylist(rows)
    if path.name.endswith(".csv"):
        pyarrow.csv.write_csv(table, path)
    else:
        pq.write_table(table, path, row_group_size=5)
    return str(path)


def indexed(base: str, where: str = "", **settings: Any) -> ReaderSettings:
    places = {"base": base, "where": where}
    return default_settings(**settings).model_copy(update={"index": places})


def events_of(index: str, base: str, **settings: Any) -> list[tuple[str, Any]]:
    readers = indexed(base, settings.pop("where", ""), **settings)
    files = with_archives([InputFile(index, Path(index).name, 0)], readers)
    return [
        (file.name, event)
        for file in files
        for event in read_records(file.path, file.name, readers, file.records)
    ]


@pytest.mark.parametrize(
    "kind", ["warc", "warc.gz", "warc.zst", "warc.dict", "warc.lz4", "warc.bz2", "arc", "arc.gz"]
)
@pytest.mark.parametrize("suffix", ["parquet", "csv"])
def test_the_events_of_whole_archives(tmp_path: Path, kind: str, suffix: str) -> None:
    name = "a/b." + kind.replace("dict", "zst")
    made = sample(kind)
    (tmp_path / "a").mkdir()
    (tmp_path / name).write_bytes(made.data)
    whole = [e for e in read(str(tmp_path / name), default_settings()) if isinstance(e, Page)]
    rows = [
        row(name, start, end - start, page.url)
        for (start, end), page in zip(made.spans, whole, strict=True)
    ]
    random.Random(kind).shuffle(rows)
    index = write([*rows, *rows[:3]], tmp_path / f"index.{suffix}")
    assert events_of(index, str(tmp_path)) == [(name, page) for page in whole]
    assert [e.offset for _, e in events_of(index, str(tmp_path) + "/", where="url LIKE '%/3'")] == [
        made.spans[3][0]
    ]


def test_rows_that_name_no_record_are_set_aside(tmp_path: Path) -> None:
    made = sample("warc.gz")
    (tmp_path / "a.warc.gz").write_bytes(made.data)
    (tmp_path / "secret.warc.gz").write_bytes(made.data)
    (start, end), size = made.spans[2], len(made.data)
    url = "http://site.example/2"
    rows = [
        row("a.warc.gz", start, end - start, url),
        row("a.warc.gz", start + 7, end - start - 7, url),
        row("a.warc.gz", made.spans[4][0], end - start, "http://other.example/"),
        row("a.warc.gz", size - 10, 100, url),
        row("a.warc.gz", size + 10, 100, url),
        row("a.warc.gz", 1 << 50, 1 << 50, url),
        row("a.warc.gz", None, 100, url),
        row("b.warc.gz", 0, 100, url),
        row("sub/../secret.warc.gz", start, end - start, url),
        row("/etc/passwd", 0, 100, url),
        {**row("x", 0, 100, url), "warc_filename": None},
    ]
    found = events_of(write(rows, tmp_path / "i.parquet"), str(tmp_path))
    told = {
        (name, event.offset): event.reason if isinstance(event, Damage) else event.url
        for name, event in found
    }
    assert told == {
        ("a.warc.gz", start): url,
        ("a.warc.gz", start + 7): "gzip.garbage",
        ("a.warc.gz", made.spans[4][0]): "index.other_url",
        ("a.warc.gz", size - 10): "index.beyond_end",
        ("a.warc.gz", size + 10): "index.beyond_end",
        ("a.warc.gz", 1 << 50): "record.too_large",
        ("a.warc.gz", -1): "index.bad_row",
        ("b.warc.gz", 0): "index.no_file",
        ("sub/../secret.warc.gz", start): "index.bad_row",
        ("/etc/passwd", 0): "index.bad_row",
        ("rows without warc_filename", 0): "index.bad_row",
    }


def test_records_that_are_no_pages_and_those_not_drawn(tmp_path: Path) -> None:
    image = http_response(b"\x89PNG\r\n\x1a\n", b"Content-Type: image/png")
    record = gzip.compress(warc_record(1, image), mtime=0)
    (tmp_path / "a.warc.gz").write_bytes(record)
    rows = [row("a.warc.gz", 0, len(record), "http://site.example/1")]
    index = write(rows, tmp_path / "i.parquet")
    assert events_of(index, str(tmp_path)) == [("a.warc.gz", Skipped("mime:image/png"))]
    (tmp_path / "a.warc.gz").unlink()  # what isn't drawn isn't read
    drawn = events_of(index, str(tmp_path), sample=1e-9)
    assert drawn == [("a.warc.gz", Skipped("not_drawn"))]


class Server(ThreadingHTTPServer):
    """Serves a folder by ranges; fails every `fails`-th request. Counts requests and bytes."""

    def __init__(self, folder: Path) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.folder, self.ranges, self.sent, self.fails = folder, list[str](), 0, 0
        self.whole = False

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_address[1]}"


class _Handler(BaseHTTPRequestHandler):
    server: Server

    def do_GET(self) -> None:
        wanted = self.headers.get("Range", "")
        self.server.ranges.append(f"{self.path} {wanted}")
        path = self.server.folder / self.path.lstrip("/")
        place = re.fullmatch(r"bytes=(\d+)-(\d+)", wanted)
        if self.server.fails and len(self.server.ranges) % self.server.fails == 0:
            self._answer(503, b"slow down")
        elif not path.exists():
            self._answer(404, b"")
        elif place is None or self.server.whole:
            self._answer(200, path.read_bytes())
        elif int(place[1]) >= path.stat().st_size:
            self._answer(416, b"")
        else:
            data = path.read_bytes()[int(place[1]) : int(place[2]) + 1]
            self.server.sent += len(data)
            self._answer(206, data)

    def do_HEAD(self) -> None:
        path = self.server.folder / self.path.lstrip("/")
        self.send_response(200 if path.exists() else 404)
        self.send_header("Content-Length", str(path.stat().st_size if path.exists() else 0))
        self.end_headers()

    def _answer(self, status: int, body: bytes) -> None:
        self.send_response(status)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: Any) -> None:
        """Say nothing."""


@pytest.fixture
def server(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Server]:
    pytest.importorskip("aiohttp", reason="aiohttp is not installed")
    monkeypatch.setattr(persist, "FIRST_PAUSE", 0.01)
    (tmp_path / "www").mkdir()
    with Server(tmp_path / "www") as made:
        thread = threading.Thread(target=made.serve_forever, daemon=True)
        thread.start()
        yield made
        made.shutdown()
        thread.join()


def test_one_request_for_neighbours_and_few_other_bytes(server: Server, tmp_path: Path) -> None:
    made = sample("warc.gz", count=40, size=3000)
    (server.folder / "a.warc.gz").write_bytes(made.data)
    numbers = [0, 1, 2, 5, 9, 10, 11, 12, 20, 21, 30, 39]
    runs = [(0, 2), (5, 5), (9, 12), (20, 21), (30, 30), (39, 39)]
    rows = [
        row("a.warc.gz", made.spans[n][0], -made.spans[n][0] + made.spans[n][1], "")
        for n in numbers
    ]
    index = write(rows, tmp_path / "i.parquet")
    events = [event for _, event in events_of(index, server.url)]
    assert [event.content for event in events] == [made.bodies[n] for n in numbers]
    ranges = [(made.spans[a][0], made.spans[b][1] - 1) for a, b in runs]
    assert sorted(server.ranges) == sorted(f"/a.warc.gz bytes={a}-{b}" for a, b in ranges)
    assert server.sent == sum(r["warc_record_length"] for r in rows)
    server.ranges.clear()
    server.fails = 3
    assert [event for _, event in events_of(index, server.url)] == events
    assert len(server.ranges) > len(runs)


def test_little_between_records_is_read_with_them(server: Server, tmp_path: Path) -> None:
    pages = sample("warc.gz", count=10, size=20000)
    parts = [pages.data[a:b] for a, b in pages.spans]
    small = gzip.compress(warc_record(1, b"x" * 50, "request"), mtime=0)
    (server.folder / "a.warc.gz").write_bytes(b"".join(part + small for part in parts))
    offsets = [sum(len(p) + len(small) for p in parts[:n]) for n in range(10)]
    rows = [row("a.warc.gz", at, len(p), "") for at, p in zip(offsets, parts, strict=True)]
    found = events_of(write(rows, tmp_path / "i.parquet"), server.url)
    assert [event.content for _, event in found] == pages.bodies
    assert len(server.ranges) == 1
    assert server.sent <= 1.1 * sum(map(len, parts))


def test_what_servers_say_of_wrong_places(server: Server, tmp_path: Path) -> None:
    made = sample("warc.gz")
    (server.folder / "a.warc.gz").write_bytes(made.data)
    rows = [
        row("a.warc.gz", len(made.data) + 5, 10, ""),
        row("a.warc.gz", len(made.data) - 5, 10, ""),
        row("b.warc.gz", 0, 10, ""),
    ]
    index = write(rows, tmp_path / "i.parquet")
    reasons = [event.reason for _, event in events_of(index, server.url)]
    assert reasons == ["index.beyond_end", "index.beyond_end", "index.no_file"]
    server.whole = True
    with pytest.raises(StoreError, match="whole file"):
        events_of(index, server.url)


def test_records_from_a_failing_object_store(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("moto", reason="the S3 server of the tests (moto) is not installed")
    pytest.importorskip("s3fs", reason="s3fs is not installed")
    from botocore import retryhandler

    monkeypatch.setattr(persist, "FIRST_PAUSE", 0.01)
    monkeypatch.setattr(retryhandler, "delay_exponential", lambda *_, **__: 0.01)
    made = sample("warc.gz", count=30, size=3000)
    (tmp_path / "a.warc.gz").write_bytes(made.data)
    spans = made.spans[:10] + made.spans[20:24]
    rows = [row("a.warc.gz", start, end - start, "") for start, end in spans]
    index = write([*rows, row("b.warc.gz", 0, 10, "")], tmp_path / "i.parquet")
    with faulty_store({}) as proxy:
        for name, value in environment(proxy).items():
            monkeypatch.setenv(name, value)
        system, _ = stores.file_system("s3://crawl")
        system.mkdirs("crawl", exist_ok=True)
        system.pipe_file("crawl/a.warc.gz", made.data)
        proxy.requests.clear()
        found = events_of(index, "s3://crawl/")
        assert proxy.requests["GET"] == 3
        local = events_of(index, str(tmp_path))
        assert found[:-1] == local[:-1] and found[-1][1].reason == "index.no_file"
        proxy.rates = dict.fromkeys(KINDS, 0.08)
        for _ in range(5):
            assert events_of(index, "s3://crawl/") == found
        assert proxy.faults


def documents(folder: Path, stage: str = "extract") -> list[dict[str, Any]]:
    files = sorted((folder / stage / "documents").glob("*.parquet"))
    return sorted(pa.concat_tables(map(pq.read_table, files)).to_pylist(), key=lambda d: d["id"])


def run(output: Path, given: Sequence[str], *assignments: str) -> None:
    work = plan(load("llama3", assignments), str(output), given, ["extract"])
    with Executor(parse_beam_args([], 0)) as executor:
        run_plan(work, executor)


def test_the_documents_of_a_run_over_whole_archives(server: Server, tmp_path: Path) -> None:
    names = ("english-00000.warc.gz", "world-00001.warc.gz", "old-00005.arc.gz")
    rows = Rows()
    (server.folder / "crawl").mkdir()
    for name in names:
        (server.folder / "crawl" / name).write_bytes((ROOT / "data_samples" / name).read_bytes())
        rows += rows_of(server.folder / "crawl" / name, f"crawl/{name}")
    run(tmp_path / "whole", [str(server.folder)])
    random.Random(1).shuffle(rows)
    index = write(rows[: len(rows) // 2], tmp_path / "index-0.parquet")
    write([*rows[len(rows) // 2 :], rows[3]], tmp_path / "index-1.csv")
    everything = str(tmp_path / "index-*")
    run(tmp_path / "all", [everything], f"readers.index.base={server.folder}")
    run(tmp_path / "web", [everything], f"readers.index.base={server.url}")
    whole = documents(tmp_path / "whole")
    assert len(whole) > 200
    assert documents(tmp_path / "all") == documents(tmp_path / "web") == whole
    lengths = sum(r["warc_record_length"] for r in rows)
    assert server.sent <= 1.1 * lengths
    half = "readers.index.where=url LIKE 'http://%' AND fetch_status BETWEEN 200 AND 299"
    run(tmp_path / "half", [index], f"readers.index.base={server.folder}", half)
    urls = {r["url"] for r in rows[: len(rows) // 2] if r["url"].startswith("http://")}
    kept = [d for d in whole if (d["url"], d["source"]["offset"]) in places(rows[: len(rows) // 2])]
    assert documents(tmp_path / "half") == [d for d in kept if d["url"] in urls]


def places(rows: Rows) -> set[tuple[str, int]]:
    return {(r["url"], r["warc_record_offset"]) for r in rows}


def test_order_of_rows_and_workers_change_nothing(tmp_path: Path) -> None:
    base, name = ROOT / "data_samples", "english-00000.warc.gz"
    rows = rows_of(base / name, name)
    beside = tmp_path / "beside.jsonl"  # small files of any kind share a shard
    beside.write_text(json.dumps({"id": "a", "text": "A text beside the index."}))
    shards = []
    for number, order in enumerate((rows, rows[::-1])):
        index = write(order, tmp_path / "i.parquet")
        run(tmp_path / str(number), [index, str(beside)], f"readers.index.base={base}")
        files = sorted((tmp_path / str(number) / "extract").rglob("*.parquet"))
        shards.append([(f.name, f.read_bytes()) for f in files])
    assert shards[0] == shards[1]
    assert {d["source"]["file"] for d in documents(tmp_path / "0")} == {name, "beside.jsonl"}


def test_a_sample_reads_its_records_alone(
    server: Server, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    base, name = ROOT / "data_samples", "english-00000.warc.gz"
    (server.folder / name).write_bytes((base / name).read_bytes())
    rows = rows_of(base / name, name)
    rows += [row("gone.warc.gz", 5, 50, "http://gone.example/")]

    def sampled(order: Rows, *options: str, seed: str = "1") -> Any:
        index = write(order, tmp_path / "i.parquet")
        places = [f"readers.index.base={server.url}", "readers.index.where=url LIKE 'http%'"]
        given = [word for place in places for word in ("--set", place)]
        assert main(["sample", "--input", index, "--seed", seed, *given, *options]) == 0
        return capsys.readouterr()

    few = json.loads(sampled(rows, "-n", "5", "--json").out)
    lengths = {r["warc_record_offset"]: r["warc_record_length"] for r in rows}
    assert server.sent == sum(lengths[d["source"]["offset"]] for d in few)
    assert json.loads(sampled(rows[::-1], "-n", "5", "--json").out) == few
    assert json.loads(sampled(rows, "-n", "5", "--json", seed="2").out) != few
    more = json.loads(sampled(rows, "-n", "900", "--json").out)
    assert len(more) == len(rows) and all(d in more for d in few)
    (gone,) = (d for d in more if d["source"]["file"] == "gone.warc.gz")
    assert (gone["url"], gone["reason"]) == ("http://gone.example/", "index.no_file")
    run(tmp_path / "whole", [str(server.folder)])
    texts = {d["id"]: d["text"] for d in documents(tmp_path / "whole")}
    assert [d["text"] for d in few if not d["reason"]] == [
        texts[d["id"]] for d in few if not d["reason"]
    ]
    shown = sampled(rows, "-n", "5").out
    assert [line.split()[0] for line in shown.splitlines()[::2]] == [d["id"] for d in few]
    drawn = tmp_path / "few.parquet"
    assert f"index of the sample: {drawn}" in sampled(rows, "-n", "5", "--output", str(drawn)).err
    run(tmp_path / "few", [str(drawn)], f"readers.index.base={server.url}")
    kept = [d["id"] for d in few if not d["reason"]]
    assert sorted(kept) == [d["id"] for d in documents(tmp_path / "few")]


def test_samples_that_are_none(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    table = tmp_path / "t.csv"
    table.write_text("text\na\n")
    index = write([row("a", 0, 9, "")], tmp_path / "i.parquet")
    for options, told in (
        (["--input", str(table)], "t.csv: no index: it lacks one of warc_filename"),
        (["--input", str(tmp_path / "none")], "--input: "),
        (["--input", index, "--rule", "kept"], "--rule is for --run"),
        (["--run", "out", "--output", "x"], "--output are for --input"),
        (["--run", "out", "--input", index], "not allowed with"),
        ([], "one of the arguments --run --input is required"),
    ):
        try:
            assert main(["sample", *options]) == 2
        except SystemExit as ended:
            assert ended.code == 2
        assert told in capsys.readouterr().err


def test_site_files_of_an_index(tmp_path: Path) -> None:
    robots = b"User-agent: *\nDisallow: /\n"
    url = "https://a.example/robots.txt"
    record = warc_record(1, http_response(robots, b"Content-Type: text/plain"), url=url)
    member = gzip.compress(record, mtime=0)
    (tmp_path / "r.warc.gz").write_bytes(b"\0" * 500 + member)
    index = write([row("r.warc.gz", 500, len(member), url)], tmp_path / "robots.parquet")
    readers = indexed(str(tmp_path), "content_languages = 'deu'")
    (found,) = read_site_files([index], readers)
    assert (found.url, found.content) == (url, robots)


def test_an_archive_given_twice_and_a_condition_nothing_fits(tmp_path: Path) -> None:
    made = sample("warc.gz")
    (tmp_path / "a.warc.gz").write_bytes(made.data)
    index = write([row("a.warc.gz", 0, 100, "")], tmp_path / "i.parquet")
    files = [
        InputFile(str(tmp_path / "a.warc.gz"), "a.warc.gz", 1),
        InputFile(index, "i.parquet", 1),
    ]
    with pytest.raises(InputError, match="given both as a file and by an index"):
        with_archives(files, default_settings())
    for where, told in (("fetch_status = 404", "no record"), ("no_such = 1", "no_such")):
        with pytest.raises(InputError, match=told):
            with_archives(files[1:], indexed("", where))


_TABLE = pa.table(
    {
        "n": pa.array([1, 2, None, 4], pa.int16()),
        "s": ["deu", "deu,eng", None, "it's"],
        "d": ["de", "at", "de", "fr"],
    }
)


@pytest.mark.parametrize(
    ("condition", "kept"),
    [
        ("n = 1", [1]),
        ("n <> 1", [2, 4]),
        ("n > 1.5 and n != 4", [2]),
        ("n IN (1, 4)", [1, 4]),
        ("NOT n IN (1, 4)", [2]),
        ("n NOT IN (1, 4)", [2]),
        ("s LIKE 'deu%' AND d = 'de'", [1]),
        ("s NOT LIKE 'deu%'", [4]),
        ("s = 'it''s'", [4]),
        ("s IS NULL OR \"d\" = 'fr'", [None, 4]),
        ("s is not null and (n = 1 or n = 2)", [1, 2]),
        ("n BETWEEN 2 AND 4", [2, 4]),
        ("n NOT BETWEEN 2 AND 3", [1, 4]),
    ],
)
def test_conditions(condition: str, kept: list[int | None]) -> None:
    assert _TABLE.filter(parse_where(condition))["n"].to_pylist() == kept


@pytest.mark.parametrize(
    "condition",
    ["n =", "n = 1 d", "s LIKE 5", "(n = 1", "; DROP", "s = 'x", "", "n IN ()", "(" * 60, "= 1"],
)
def test_conditions_that_are_none(condition: str) -> None:
    with pytest.raises(ConfigError, match=r"readers\.index\.where: at character \d+"):
        parse_where(condition)


def test_records_as_json_name_what_is_behind_one() -> None:
    from curation.readers.index import records_behind

    records = json.dumps([[5, 1, "a"], [9, 1, "ü"], [12, 1, "c"]])
    offset, behind = records_behind(records, 1)
    assert (offset, json.loads(behind)) == (9, [[12, 1, "c"]])
