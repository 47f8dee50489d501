"""A document that ends the process which works on it costs itself alone, in every stage."""

from __future__ import annotations

import functools
import gzip
import json
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import pipelines.extract
from curation.errors import StoreError, WorkerError
from curation.schema import DOCUMENTS
from pipelines.cli import main
from pipelines.engine import documents
from pipelines.engine.stage import Shard, stage_inputs
from pipelines.engine.transform import TransformShards, shard_tasks
from pipelines.extract import reading
from pipelines.runners import local
from pipelines.runners.guard import Guard, guarding
from pipelines.runners.tasks import perform
from pipelines.storage.files import Folder
from tests import shapes
from tests.engine import poison
from tests.folders import differences

STAGES = (
    *("dedup-urls", "identify-language", "dedup-documents", "dedup-lines"),
    *("dedup-substrings", "filter", "classify", "mix", "tokenize"),
)
WORDS = "of the river and a stone that was in it for her with him under their house by day".split()


def text(seed: int) -> str:
    chosen = np.random.default_rng(seed).choice(WORDS, 60)
    return " ".join(chosen) + "."


def write(path: Path, texts: list[str]) -> str:
    """A shard of documents with these texts, and all columns that stages want."""
    rows = [
        {
            "id": f"{path.stem}-{i}",
            "url": f"https://{path.stem}.example/{i}" + ("?" + t if " in dedup-urls" in t else ""),
            "date": None,
            "text": t,
            "title": "",
            "source": {"file": path.name, "offset": i},
            "language": "en",
            "domain": "general",
            "topic": "art",
            "format": "news",
            "quality": 3.0,
        }
        for i, t in enumerate(texts)
    ]
    names = ("language", "domain", "topic", "format")
    more = [*(pa.field(n, pa.string()) for n in names), pa.field("quality", pa.float64())]
    schema = pa.schema([*DOCUMENTS, *more])
    path.parent.mkdir(exist_ok=True)
    pq.write_table(pa.Table.from_pylist(rows, schema), path)
    return str(path.parent / "*.parquet")


def read(place: Path, kind: str) -> dict[str, dict[str, Any]]:
    files = sorted((place / kind).glob("*.parquet"))
    return {row["id"]: row for f in files for row in pq.read_table(f).to_pylist()}


def counts(place: Path) -> dict[str, Any]:
    return json.loads((place / "manifest.json").read_text())["counts"]  # type: ignore[no-any-return]


@pytest.fixture
def deadly(monkeypatch: pytest.MonkeyPatch) -> None:
    """Marked documents are deadly, here and in workers of the local pool."""
    monkeypatch.setattr(documents, "_Parts", functools.partial(poison.deadly_parts, True))
    monkeypatch.setattr(
        pipelines.extract, "extract_page", functools.partial(poison.deadly_page, True)
    )
    monkeypatch.setattr(local, "_start_worker", poison.start_deadly_worker)
    pipelines.extract.guarded.cache_clear()


@pytest.mark.usefixtures("deadly", "forked_processes")
@pytest.mark.parametrize("stage", STAGES)
def test_in_every_stage(stage: str, tmp_path: Path) -> None:
    texts = [text(i) for i in range(6)]
    lost = f"abort in {stage} {text(9)}"
    inputs = write(tmp_path / "in/a.parquet", [*texts[:3], lost, *texts[3:]])
    whole = write(tmp_path / "sound/a.parquet", texts)
    arguments = [stage, "--quiet", "--workers", "0", "--input"]
    assert main([*arguments, inputs, "--output", str(tmp_path / "out")]) == 0
    assert main([*arguments, whole, "--output", str(tmp_path / "plain")]) == 0
    place = tmp_path / "out" / stage
    removed = read(place, "removed")
    assert removed["a-3"]["reason"] == f"crash.{stage}"
    assert (removed["a-3"]["text"], removed["a-3"]["source"]["offset"]) == (lost, 3)
    found, plain = counts(place), counts(tmp_path / "plain" / stage)
    assert found["documents_in"] == found["documents"] + found["documents_removed"] == 7
    assert found["removed"].pop(f"crash.{stage}")["documents"] == 1
    assert (found["documents"], found["removed"]) == (plain["documents"], plain["removed"])
    kept, expected = (
        {r["text"] for r in read(p, "documents").values()}
        for p in (place, tmp_path / "plain" / stage)
    )
    assert kept == expected


@pytest.mark.usefixtures("deadly", "forked_processes")
def test_workers_that_die_are_replaced(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    """Real deaths in the local pool, of each kind, in two shards of three."""
    stage = "identify-language"
    marks = {f"{kind} in {stage}": why for kind, why in poison.KINDS.items()}
    some = [f"{mark} {text(i)}" for i, mark in enumerate(marks)]
    for name, texts in (("a", [text(20), *some[:2]]), ("b", [text(21)]), ("c", some[2:])):
        inputs = write(tmp_path / f"in/{name}.parquet", texts)
    arguments = [stage, "--input", inputs, "--log-format", "plain", "--output"]
    assert main([*arguments, str(tmp_path / "two"), "--workers", "2"]) == 0
    assert capfd.readouterr().err.count("a worker process died") == 1
    assert main([*arguments, str(tmp_path / "none"), "--workers", "0"]) == 0
    assert differences(tmp_path / "two", tmp_path / "none") == []
    reasons = [r["reason"] for r in read(tmp_path / "two" / stage, "removed").values()]
    expected = [f"{why}.{stage}" for why in marks.values()]
    assert [r for r in reasons if r.endswith(f".{stage}")] == expected


@pytest.mark.usefixtures("deadly", "forked_processes")
@pytest.mark.parametrize("stage", ["dedup-urls", "dedup-lines"])
def test_in_a_comparison_that_is_one_pipeline(
    stage: str, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    """A worker dies over the chain; once more it is guarded, and all is compared again."""
    inputs = write(tmp_path / "in/a.parquet", [text(1), f"abort in {stage} {text(9)}", text(2)])
    write(tmp_path / "in/b.parquet", [text(2), text(1), text(3)])
    arguments = [stage, "--input", inputs, "--log-format", "plain", "--output"]
    one = ["--", "--runner=DirectRunner"]
    assert main([*arguments, str(tmp_path / "pipeline"), *one]) == 0
    assert capfd.readouterr().err.count("a worker process died") == 1
    assert main([*arguments, str(tmp_path / "files"), "--workers", "0"]) == 0
    assert differences(tmp_path / "pipeline", tmp_path / "files") == []
    removed = read(tmp_path / "pipeline" / stage, "removed")
    assert removed["a-1"]["reason"] == f"crash.{stage}"


@pytest.mark.usefixtures("deadly", "forked_processes")
def test_pages_and_the_document_is_explained(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "in").mkdir()
    for name, mark in (("a", "sound"), ("b", "abort in extract"), ("c", "starve in extract")):
        (tmp_path / "in" / f"{name}.html").write_text(f"<p>The page {name} is {mark}, it says.")
    out = str(tmp_path / "out")
    inputs = str(tmp_path / "in")
    assert main(["extract", "--input", inputs, "--output", out, "--workers", "0", "--quiet"]) == 0
    place = tmp_path / "out/extract"
    removed = sorted((r["url"][-6:], r["reason"]) for r in read(place, "removed").values())
    assert removed == [("b.html", "crash.extract"), ("c.html", "memory.extract")]
    assert len(read(place, "set_aside")) == 2 and len(read(place, "documents")) == 1
    capsys.readouterr()
    assert main(["why", "b.html", "--run", out]) == 0
    assert "extract: removed by crash.extract" in capsys.readouterr().out


def _archive(pages: list[str]) -> list[bytes]:
    """Records of an archive: a request in front of each page."""
    http = "HTTP/1.1 200 OK\r\nContent-Type: text/html\r\n\r\n"
    request = b"GET / HTTP/1.1\r\n\r\n"
    of_request = shapes.warc(request).replace(b"response", b"request", 1)
    return [r for p in pages for r in (of_request, shapes.warc((http + p).encode()))]


def _set_aside(place: Path) -> list[dict[str, Any]]:
    files = sorted((place / "set_aside").glob("*.parquet"))
    return [row for f in files for row in pq.read_table(f).to_pylist()]


def _write_file(path: Path, pages: list[str]) -> None:
    if path.suffix == ".parquet":
        table = pa.table({"html": pages, "votes": list(range(len(pages)))})
        pq.write_table(table, path, row_group_size=1)
    elif path.suffix == ".jsonl":
        path.write_text("".join(json.dumps({"html": p, "votes": 1}) + "\n" for p in pages))
    else:
        records = _archive(pages)
        packed = path.suffix == ".gz"
        path.write_bytes(b"".join(map(gzip.compress, records) if packed else records))


@pytest.mark.usefixtures("forked_processes")
@pytest.mark.parametrize("name", ["a.warc", "a.warc.gz", "a.parquet", "a.jsonl"])
@pytest.mark.parametrize("split", [1 << 28, 2500])
def test_a_record_that_ends_its_reader(
    name: str, split: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Two records are deadly to read; all others are those of an undisturbed run."""
    monkeypatch.setattr(reading, "read", poison.deadly_read)
    monkeypatch.setattr(reading, "RangeReader", poison.DeadlyRange)
    monkeypatch.setattr(reading, "_guard", Guard(poison.deadly_answer))
    pages = [f"<p>{text(i)} {text(i + 50)}</p>" for i in range(24)]
    found = {}
    for kind, marked in (("sound", ()), ("deadly", (7, 8))):
        (tmp_path / kind).mkdir()
        deadly = "<p>abort in reading"
        marks = ["<p>sound in reading" if i not in marked else deadly for i in range(24)]
        inputs = tmp_path / kind / name
        _write_file(inputs, [mark + page for mark, page in zip(marks, pages, strict=True)])
        out = str(tmp_path / kind / "out")
        arguments = ["extract", "--input", str(inputs), "--output", out, "--quiet"]
        sizes = ["--workers", "0", "--set", f"readers.split_bytes={split}"]
        assert main([*arguments, *sizes]) == 0
        place = tmp_path / kind / "out/extract"
        found[kind] = {r["source"]["offset"]: r for r in read(place, "documents").values()}
        aside = _set_aside(place)
        assert [r["reason"] for r in aside] == ["crash.extract"] * len(marked)
    order = sorted(found["sound"])
    lost = [order[7], order[8]]
    if name != "a.warc.gz":  # members with other letters have other lengths
        assert sorted(r["source"]["offset"] for r in aside) == lost
        assert found["deadly"] == {k: r for k, r in found["sound"].items() if k not in lost}
    texts = [[r["text"] for _, r in sorted(of.items())] for of in found.values()]
    assert texts[1] == texts[0][:7] + texts[0][9:]


@pytest.mark.usefixtures("forked_processes")
def test_what_is_behind_it_is_lost_where_nobody_can_begin(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(reading, "read", poison.deadly_read)
    monkeypatch.setattr(reading, "_guard", Guard(poison.deadly_answer))
    pages = [f"<p>{text(i)} {'abort in reading' if i == 2 else ''}</p>" for i in range(4)]
    (tmp_path / "in").mkdir()
    (tmp_path / "in/a.warc.gz").write_bytes(gzip.compress(b"".join(_archive(pages))))
    (tmp_path / "in/b.warc").write_bytes(b"".join(_archive(pages[:2])))
    out = str(tmp_path / "out")
    inputs = ["--input", str(tmp_path / "in"), "--workers", "0", "--quiet"]
    assert main(["extract", *inputs, "--output", out]) == 0
    place = tmp_path / "out/extract"
    assert len(read(place, "documents")) == 4
    (aside,) = _set_aside(place)
    assert aside["reason"] == "crash.extract" and "what is behind it" in aside["detail"]


@pytest.mark.usefixtures("forked_processes")
def test_a_record_of_an_index_that_ends_its_reader(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(reading, "read_records", poison.deadly_records)
    monkeypatch.setattr(reading, "_guard", Guard(poison.deadly_answer))
    pages = [f"<p>{text(i)} {'abort in reading' if i in (2, 3) else ''}</p>" for i in range(6)]
    parts = [gzip.compress(record) for record in _archive(pages)]
    offsets = [sum(map(len, parts[:i])) for i in range(len(parts))]
    (tmp_path / "a.warc.gz").write_bytes(b"".join(parts))
    columns = {
        "warc_filename": ["a.warc.gz"] * len(parts),
        "warc_record_offset": offsets,
        "warc_record_length": [*map(len, parts)],
    }
    pq.write_table(pa.table(columns), tmp_path / "index.parquet")
    inputs = ["--input", str(tmp_path / "index.parquet"), "--workers", "0", "--quiet"]
    base = ["--set", f"readers.index.base={tmp_path}"]
    assert main(["extract", *inputs, *base, "--output", str(tmp_path / "out")]) == 0
    place = tmp_path / "out/extract"
    aside = _set_aside(place)
    lost = sorted(row["source"]["offset"] for row in aside)
    assert {row["reason"] for row in aside} == {"crash.extract"} and len(lost) == 2
    kept = {row["source"]["offset"] for row in read(place, "documents").values()}
    assert len(kept) == 4 and kept | {*lost} <= {*offsets} and not kept & {*lost}


def toy(tmp_path: Path, texts: dict[str, list[str]]) -> tuple[TransformShards, list[Shard]]:
    for name, some in texts.items():
        inputs = write(tmp_path / f"in/{name}.parquet", some)
    return TransformShards("toy", "1", poison.Delicate()), stage_inputs([inputs])


def test_the_rest_of_a_batch_is_done_as_if_it_were_not_there(tmp_path: Path) -> None:
    """First, last and neighbouring rows; shards of several batches; nothing else changes."""
    texts = [f"word {i}" for i in range(1300)]
    for row in (0, 511, 512, 513, 1299):
        texts[row] = "starve in toy"
    step, shards = toy(tmp_path, {"a": texts, "b": ["starve in toy"]})
    folder = Folder(str(tmp_path / "out"))
    for task in shard_tasks(shards):
        perform(step, task, folder)
    kept = read(tmp_path / "out", "documents")
    assert [r["text"] for r in kept.values()] == [t for t in texts if t[0] == "w"]
    assert all(r["letters"] == len(r["text"]) for r in kept.values())
    lost = read(tmp_path / "out", "removed")
    assert list(lost) == ["a-0", "a-511", "a-512", "a-513", "a-1299", "b-0"]
    assert {r["reason"] for r in lost.values()} == {"memory.toy"}


def test_guarded_or_not_the_bytes_are_the_same(tmp_path: Path) -> None:
    step, shards = toy(tmp_path, {"a": [f"word {i}" for i in range(1300)]})
    for name, guarded in (("one", False), ("two", True)):
        (task,) = shard_tasks(shards)
        perform(step, task, Folder(str(tmp_path / name)), guarded)
    one, two = tmp_path / "one/documents", tmp_path / "two/documents"
    assert differences(one, two) == []


class _Full:
    def __init__(self, error: Exception) -> None:
        self.error = error

    def __call__(self, batch: pa.RecordBatch, row: int) -> None:
        raise self.error


@pytest.mark.parametrize(
    ("error", "raised"),
    [
        (StoreError("a: No space left on device"), StoreError("a: No space left on device")),
        (ValueError("odd"), WorkerError("ValueError: odd")),
    ],
)
def test_what_a_function_raises_is_not_poison(
    tmp_path: Path, error: Exception, raised: Exception
) -> None:
    _, (shard,) = toy(tmp_path, {"a": ["one"]})
    with guarding(True), pytest.raises(type(raised), match=str(raised)):
        list(documents.over_documents("toy", shard, _Full(error)))
