"""A run that reads large files by ranges: the rows of a run that doesn't, in the same order."""

from __future__ import annotations

import gzip
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import fsspec
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import zstandard

import pipelines.extract
from curation.readers.documents import document_id
from curation.readers.ranges import RangeReader, misread, spans
from curation.readers.read import read_at
from curation.recipe import load
from curation.stores import transfers
from pipelines.extract import sources
from pipelines.plan import plan
from pipelines.run import run_plan
from pipelines.runners.execute import Executor, parse_beam_args
from pipelines.runners.tasks import Step, Task
from pipelines.storage.files import Folder
from pipelines.storage.manifest import read_manifest
from tests.conftest import ROOT
from tests.folders import differences
from tests.readers.archives import default_settings, http_response, page_body, sample, warc_record
from tests.readers.test_ranges import hostile, jsonl

_SPLIT = 4096
_WHOLE = 1 << 40
_KINDS = ("documents", "removed", "set_aside", "mended")


@pytest.fixture(scope="module")
def crawl(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """One large file of each kind, of a few dozen KB."""
    folder = tmp_path_factory.mktemp("crawl")
    real = (ROOT / "data_samples" / "old-00005.arc.gz").read_bytes()
    text = gzip.decompress((ROOT / "data_samples" / "text-00006.warc.wet.gz").read_bytes())
    stream = sample("warc", 30, 600).data
    rows = pa.table({"text": [f"row {n} " * 40 for n in range(600)]})
    files = {
        "archive.arc.gz": real,
        "broken.warc.gz": hostile("damage around members") * 9,
        "frames.warc.zst": sample("warc.dict", 60, 900).data,
        "giants.warc": hostile("warcs in a warc") * 9,
        "lines.jsonl": jsonl() * 30,
        "packed.warc.gz": hostile("records in one member") * 20,
        "stream.warc.gz": gzip.compress(stream + bytes(range(256)) * 90),
        "text.wet": text * 3,
        "tiny.warc": warc_record(1, http_response(page_body(1))),
    }
    for name, data in files.items():
        (folder / name).write_bytes(data)
    pq.write_table(rows, folder / "rows.parquet", row_group_size=40, compression="none")
    return folder


class _StoppedError(Exception):
    pass


class _Stopping(Executor):
    """Stops like a killed driver: after a third of the tasks, or before the second round."""

    rounds = 0

    def run(
        self, stage: str, step: Step, folder: Folder, tasks: Sequence[Task], documents: int = 0
    ) -> int:
        self.rounds += 1
        if self.rounds == 2:
            raise _StoppedError
        return super().run(stage, step, folder, tasks, documents)


class _StoppingEarly(_Stopping):
    def run(
        self, stage: str, step: Step, folder: Folder, tasks: Sequence[Task], documents: int = 0
    ) -> int:
        super().run(stage, step, folder, tasks[::3], documents)
        raise _StoppedError


def extract(
    output: Path,
    given: str,
    split: int,
    workers: int = 0,
    executor: type[Executor] = Executor,
    share: str = "null",
) -> dict[str, Any]:
    """Run the stage; return its manifest."""
    recipe = load("sample", [f"readers.split_bytes={split}", f"readers.sample={share}"])
    work = plan(recipe, str(output), [given], ["extract"], sync=False)
    with executor(parse_beam_args([], workers)) as at_work:
        run_plan(work, at_work)
    return read_manifest(Folder(str(output / "extract")))


def rows_of(output: Path, kind: str) -> list[dict[str, Any]]:
    """Rows of all shards, in the order of their names."""
    files = sorted((output / "extract" / kind).glob("*.parquet"))
    return [row for file in files for row in pq.read_table(file).to_pylist()]


@pytest.fixture(scope="module", autouse=True)
def a_shard_for_each_file() -> Iterator[None]:
    """Small files aren't grouped, so that shards come in the order of the files."""
    with pytest.MonkeyPatch.context() as monkeypatch:
        monkeypatch.setattr(sources, "_GROUP_BELOW", 0)
        yield


@pytest.fixture(scope="module")
def by_ranges(crawl: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Output of a run that read `crawl` by ranges."""
    output = tmp_path_factory.mktemp("ranges") / "out"
    extract(output, str(crawl), _SPLIT)
    return output


def test_the_rows_of_whole_files(crawl: Path, by_ranges: Path, tmp_path: Path) -> None:
    whole = extract(tmp_path / "whole", str(crawl), _WHOLE)
    for kind in _KINDS:
        assert rows_of(by_ranges, kind) == rows_of(tmp_path / "whole", kind)
    manifest = read_manifest(Folder(str(by_ranges / "extract")))
    assert manifest["counts"] == whole["counts"]
    assert manifest["inputs"] == whole["inputs"]
    shards = {name.rsplit("/")[-1] for name in manifest["files"] if name.startswith("documents")}
    number = {
        file.name: sum(shard.startswith(f"{file.name}-") for shard in shards)
        for file in crawl.iterdir()
    }
    for name in ("stream.warc.gz", "tiny.warc"):
        assert number.pop(name) == 1
    assert number == {name: len(spans((crawl / name).stat().st_size, _SPLIT)) for name in number}
    assert min(number.values()) > 2


def test_a_sample_is_the_same_by_ranges_and_part_of_a_larger_one(
    crawl: Path, by_ranges: Path, tmp_path: Path
) -> None:
    """Copies of an address are drawn together; every record is counted."""
    drawn: dict[str, dict[str, dict[str, Any]]] = {}
    for share in ("0.1", "0.5"):
        manifests = [
            extract(tmp_path / f"{share}-{split}", str(crawl), split, share=share)
            for split in (_SPLIT, _WHOLE)
        ]
        assert manifests[0]["counts"] == manifests[1]["counts"]
        counts = manifests[0]["counts"]
        skipped = sum(n for name, n in counts.items() if name.startswith("skipped."))
        assert skipped > counts["skipped.not_drawn"] > 0
        assert counts["records"] == skipped + counts["set_aside"] + counts["documents_in"]
        places = [tmp_path / f"{share}-{split}" for split in (_SPLIT, _WHOLE)]
        for kind in _KINDS:
            assert rows_of(places[0], kind) == rows_of(places[1], kind)
        drawn[share] = _documents(places[0])
    every = _documents(by_ranges)
    assert drawn["0.1"].items() <= drawn["0.5"].items() <= every.items()
    addresses = {row["url"] for row in drawn["0.5"].values() if row["url"]}
    found = {name for name, row in every.items() if row["url"] in addresses}
    assert found <= drawn["0.5"].keys()
    assert 0.35 < len(drawn["0.5"]) / len(every) < 0.65


def _documents(output: Path) -> dict[str, dict[str, Any]]:
    rows = [row for kind in _KINDS[:2] for row in rows_of(output, kind)]
    return {str(row["source"]): row for row in rows}


def test_a_document_is_found_again_where_it_is_from(crawl: Path, by_ranges: Path) -> None:
    rows = [row for kind in _KINDS[:2] for row in rows_of(by_ranges, kind)]
    for row in rows[::7]:
        file, offset = row["source"]["file"], row["source"]["offset"]
        page = read_at(str(crawl / file), offset, default_settings())
        assert document_id(file, page) == row["id"]
    assert any(row["source"]["offset"] < 0 for row in rows)


@pytest.mark.usefixtures("forked_processes")
@pytest.mark.parametrize("executor", [_Stopping, _StoppingEarly])
def test_an_interrupted_run_comes_to_the_same_bytes(
    crawl: Path, by_ranges: Path, tmp_path: Path, executor: type[Executor]
) -> None:
    with pytest.raises(_StoppedError):
        extract(tmp_path / "out", str(crawl), _SPLIT, 0, executor)
    extract(tmp_path / "out", str(crawl), _SPLIT, 2)
    assert differences(tmp_path / "out", by_ranges) == []


def test_a_damaged_shard_of_a_range_is_made_again(
    crawl: Path, by_ranges: Path, tmp_path: Path
) -> None:
    extract(tmp_path / "out", str(crawl), _SPLIT)
    for name in ("giants.warc", "packed.warc.gz"):
        shard = sorted((tmp_path / "out" / "extract" / "documents").glob(f"{name}-*"))[1]
        shard.write_bytes(shard.read_bytes()[:-1])
    extract(tmp_path / "out", str(crawl), _SPLIT)
    assert differences(tmp_path / "out", by_ranges) == []


def test_a_range_that_changes_is_noticed(
    crawl: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    path = tmp_path / "text.wet"
    path.write_bytes((crawl / "text.wet").read_bytes())
    data = path.read_bytes()
    hashes = pipelines.extract.content_fingerprints

    def hashed(*arguments: Any) -> dict[str, str]:
        found = hashes(*arguments)
        path.write_bytes(data + sample("warc", 1).data)
        return found

    monkeypatch.setattr(pipelines.extract, "content_fingerprints", hashed)
    extract(tmp_path / "out", str(path), _SPLIT)
    assert "text.wet: changed since it was hashed; reading its present content" in caplog.text
    monkeypatch.undo()
    extract(tmp_path / "fresh", str(path), _SPLIT)
    assert differences(tmp_path / "out", tmp_path / "fresh") == []


def test_what_one_worker_reads_is_said(
    crawl: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    extract(tmp_path / "out", str(crawl), _SPLIT)
    said = capsys.readouterr().err
    assert "stream.warc.gz: one gzip stream: 0.0 GB are read by one worker" in said
    assert said.count("one worker") == 1


@pytest.mark.parametrize("kind", ["warc.gz", "warc.zst", "warc", "jsonl", "parquet"])
def test_a_range_in_a_store_reads_its_own_bytes(monkeypatch: pytest.MonkeyPatch, kind: str) -> None:
    """And the head of the file, for its format and encoding, the rest of its last record, and a few
    blocks read ahead."""
    ahead = 16 << 10
    monkeypatch.setattr(transfers, "LEAST_AHEAD", ahead)
    monkeypatch.setattr(transfers, "MOST_AHEAD", ahead)
    monkeypatch.setattr("curation.readers.members.PLAIN_CHUNK", ahead)
    monkeypatch.setattr("curation.readers.members.CHUNK", ahead)
    monkeypatch.setattr("curation.readers.tables.SAMPLE", ahead)
    if kind == "jsonl":
        data = jsonl() * 2500
    elif kind == "parquet":
        rows = pa.table({"text": [f"row {n} " * 40 for n in range(4000)]})
        sink = pa.BufferOutputStream()
        pq.write_table(rows, sink, row_group_size=100, compression="none", use_dictionary=False)
        data = sink.getvalue().to_pybytes()
    else:
        pack = {"warc.gz": gzip.compress, "warc.zst": zstandard.compress}.get(kind, bytes)
        records = [warc_record(n, http_response(page_body(n, 1200))) for n in range(1800)]
        data = b"".join(map(pack, records))
    url = f"memory://ranges/x.{kind}"
    fsspec.filesystem("memory").pipe_file(f"/ranges/x.{kind}", data)
    parts = spans(len(data), 200 << 10)
    assert len(parts) > 3
    read_part, asked = transfers.read_part, []

    def counted(system: Any, path: str, name: str, start: int, end: int) -> bytes:
        asked.append(end - start)
        return read_part(system, path, name, start, end)

    monkeypatch.setattr(transfers, "read_part", counted)
    found = []
    for part in parts:
        asked.clear()
        reader = RangeReader(url, f"x.{kind}", default_settings(), part)
        assert list(reader)
        found.append(reader.reading)
        assert sum(asked) <= part.end - part.start + 8 * ahead
    assert misread(parts, found) == {}


def test_a_run_on_a_store(crawl: Path, by_ranges: Path, tmp_path: Path) -> None:
    memory = fsspec.filesystem("memory")
    for path in crawl.iterdir():
        memory.pipe_file(f"/crawl/{path.name}", path.read_bytes())
    extract(tmp_path / "out", "memory://crawl/*", _SPLIT)
    for kind in _KINDS:
        assert rows_of(tmp_path / "out", kind) == rows_of(by_ranges, kind)
