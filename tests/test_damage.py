"""Inputs that change while they are read, and files that a disk changed below everybody's eyes."""

from __future__ import annotations

import json
import math
import os
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import pipelines.extract
from curation.errors import InputError
from curation.readers.records import Event
from curation.recipe import load
from pipelines.cli import main
from pipelines.extract import reading as extract_reading
from pipelines.plan import plan
from pipelines.reading.checks import _place, _Tracer
from pipelines.run import run_plan
from pipelines.runners.execute import Executor, parse_beam_args
from pipelines.storage.files import Folder
from pipelines.storage.manifest import read_manifest
from tests.folders import differences


def run_of(output: Path, crawl: Path, *settings: str, stages: str = "extract, dedup-urls") -> None:
    """Run some stages here and now."""
    recipe = load("llama3", [f"stages=[{stages}]", *settings])
    with Executor(parse_beam_args([], 0)) as executor:
        run_plan(plan(recipe, str(output), [str(crawl)]), executor)


def write_pages(path: Path, *names: str) -> None:
    """A new file at the path, with a page of each name."""
    pages = [
        {"text": f"A page of {name}. " * 9, "url": f"http://a.example/{name}"} for name in names
    ]
    part = path.with_suffix(".new")
    part.write_text("".join(json.dumps(page) + "\n" for page in pages))
    part.replace(path)


def flip_unseen(folder: Path, name: str) -> None:
    """Flip a bit where it looks as if the file had been as it is when the manifest was written."""
    data = bytearray((folder / name).read_bytes())
    data[len(data) // 2] ^= 1
    (folder / name).write_bytes(data)
    for witness in (folder / "manifest.json", *(folder / "shards").iterdir()):
        witness.write_bytes(witness.read_bytes())


@pytest.mark.parametrize("moment", ["hashed", "opened", "read"])
def test_an_input_that_is_replaced_is_read_as_it_is_now(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture, moment: str
) -> None:
    crawl = tmp_path / "crawl"
    crawl.mkdir()
    write_pages(crawl / "a.jsonl", "one", "two")
    write_pages(crawl / "b.jsonl", "three")
    replaced: list[str] = []
    hashes, read = pipelines.extract.content_fingerprints, extract_reading.read

    def replace(now: str) -> None:
        if now == moment and not replaced:
            write_pages(crawl / "a.jsonl", *"123456789")
            replaced.append(now)

    def hashed(*arguments: Any) -> dict[str, str]:
        found = hashes(*arguments)
        replace("hashed")
        return found

    def reading(*arguments: Any) -> Iterator[Event]:
        replace("opened")
        for event in read(*arguments):
            replace("read")
            yield event

    monkeypatch.setattr(pipelines.extract, "content_fingerprints", hashed)
    monkeypatch.setattr(extract_reading, "read", reading)
    run_of(tmp_path / "out", crawl)
    assert replaced == [moment]
    assert caplog.text.count("changed since it was hashed; reading its present content") == 1
    run_of(tmp_path / "fresh", crawl)
    assert differences(tmp_path / "out", tmp_path / "fresh") == []
    assert read_manifest(Folder(str(tmp_path / "out" / "extract")))["counts"]["documents"] == 10


def test_an_input_that_never_stays_ends_the_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_pages(tmp_path / "a.jsonl", "start")
    hashes = pipelines.extract.content_fingerprints
    names = iter(range(100))

    def hashed(*arguments: Any) -> dict[str, str]:
        found = hashes(*arguments)
        write_pages(tmp_path / "a.jsonl", str(next(names)))
        return found

    monkeypatch.setattr(pipelines.extract, "content_fingerprints", hashed)
    with pytest.raises(InputError, match=r"a\.jsonl: changed since it was hashed"):
        run_of(tmp_path / "out", tmp_path / "a.jsonl")


def test_a_bit_that_a_disk_flipped_costs_one_shard(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """It is found when the next stage reads the file: never does it travel further."""
    monkeypatch.setattr("pipelines.extract.sources._GROUP_BELOW", 0)  # a shard for each input
    crawl, output = tmp_path / "crawl", tmp_path / "out"
    crawl.mkdir()
    for name in ("a", "b", "c"):
        write_pages(crawl / f"{name}.jsonl", f"{name}1", f"{name}2")
    run_of(output, crawl, stages="extract")
    documents = sorted((output / "extract" / "documents").iterdir())
    flip_unseen(output / "extract", f"documents/{documents[1].name}")
    before = {path: os.stat(path).st_mtime_ns for path in documents}
    run_of(output, crawl)
    lines = [r.getMessage() for r in caplog.records if "making it again" in r.getMessage()]
    assert lines == [f"{documents[1]}: not the bytes that were written; making it again"]
    after = {path: os.stat(path).st_mtime_ns for path in documents}
    assert [after[path] != before[path] for path in documents] == [False, True, False]
    run_of(tmp_path / "fresh", crawl)
    assert differences(output, tmp_path / "fresh") == []


def test_tokens_that_are_not_those_of_their_documents_are_named(sample_run: Path) -> None:
    folder = Folder(str(sample_run))
    stages = [*load("sample").stages]
    manifests = {stage: read_manifest(folder / stage) for stage in stages}
    tracer = _Tracer(folder, manifests, {})
    tracer.trace("tokenize", 0.2)
    rows = pq.read_table(sample_run / "tokenize" / "index").num_rows
    assert tracer.spans == math.ceil(rows / 5) > 0 and tracer.problems == []
    # As if another document stood in the first span's place.
    spans = next(tracer._sampled("tokenize", 0.2))
    texts = {_place(span): {"text": "another text"} for span in spans[:1]}
    tracer._check_tokens("tokenize", spans, texts)
    assert tracer.problems[0].endswith(f"not the tokens of {spans[0]['id']}")


def test_a_stage_that_was_deleted_is_named_alone(
    sample_run: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    output = tmp_path / "out"
    shutil.copytree(sample_run, output, ignore=lambda _, names: {"extract"} & {*names})
    assert main(["verify", "--run", str(output), "--sample", "0"]) == 1
    wrong = [line for line in capsys.readouterr().out.splitlines() if line.startswith("wrong")]
    named = "'extract/manifest.json', which is not there or not complete"
    assert wrong == [f"wrong: SHA256SUMS: names {named}"]


def test_pages_of_parquet_have_checksums(sample_run: Path) -> None:
    (path,) = (sample_run / "extract" / "documents").iterdir()
    data = bytearray(path.read_bytes())
    column = pq.ParquetFile(path).metadata.row_group(0).column(3)
    start = column.dictionary_page_offset or column.data_page_offset
    data[start + column.total_compressed_size // 2] ^= 1
    with pytest.raises(OSError, match="CRC checksum"):
        pq.read_table(pa.BufferReader(bytes(data)), page_checksum_verification=True)


def test_manifests_in_the_wrong_folders(sample_run: Path, tmp_path: Path) -> None:
    """A sound manifest of another stage is a damaged one."""
    output = tmp_path / "out"
    shutil.copytree(sample_run, output)
    one, other = (output / stage / "manifest.json" for stage in ("filter", "dedup-lines"))
    held = one.read_bytes()
    one.write_bytes(other.read_bytes())
    other.write_bytes(held)
    shutil.copy(output / "extract" / "manifest.json", output / "mix" / "manifest.json")
    assert main(["verify", "--run", str(output)]) == 1
    assert main(["run", "sample", "--output", str(output), "--workers", "0", "--quiet"]) == 0
    assert differences(sample_run, output) == []


def test_a_damaged_manifest_is_named_and_its_stage_made_again(
    sample_run: Path,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    caplog: pytest.LogCaptureFixture,
) -> None:
    """What stands behind it stays, and a file of the user's own among its files is refused."""
    output = tmp_path / "out"
    shutil.copytree(sample_run, output)
    for stage, damaged in {"dedup-lines": bytes(200), "classify": b"[]"}.items():
        (output / stage / "manifest.json").write_bytes(damaged)
    held = read_manifest(Folder(str(output / "filter")))
    assert main(["verify", "--run", str(output), "--sample", "0"]) == 1
    wrong = [line for line in capsys.readouterr().out.splitlines() if "damaged" in line]
    assert wrong == [
        f"wrong: {stage}/manifest.json: damaged; run the stage again"
        for stage in ("classify", "dedup-lines")
    ]
    assert main(["report", "--run", str(output)]) == 0
    assert f"{output}/classify/manifest.json: damaged; the same run makes it again" in caplog.text
    report = json.loads((output / "report.json").read_text())
    assert (report["stale"], report["problems"]) == (["classify", "dedup-lines"], [])
    assert main(["new", "rule", "mine", "--output", str(output / "classify")]) == 2
    assert "belongs to a run" in capsys.readouterr().err
    again = ["run", "sample", "--output", str(output), "--workers", "0", "--quiet"]
    (output / "dedup-lines" / "index" / "mine.txt").write_text("notes")
    assert main(again) == 2
    assert "dedup-lines/index/mine.txt: not written by curate" in capsys.readouterr().err
    (output / "dedup-lines" / "index" / "mine.txt").unlink()
    assert main(again) == 0
    assert read_manifest(Folder(str(output / "filter"))) == held
    assert differences(sample_run, output) == []
