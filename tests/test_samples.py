"""The committed sample archives: reproducible, various, and described by expected.tsv."""

from __future__ import annotations

import csv
import gzip
import hashlib
import json
import subprocess
import sys
from collections import Counter
from pathlib import Path

import pytest

from tests.fates import expectations, matches

ROOT = Path(__file__).resolve().parent.parent
SAMPLES = ROOT / "data_samples"
ROWS = expectations(SAMPLES / "expected.tsv")

#: Codecs that the issue names; several stand for a label that servers use.
ENCODINGS = {"utf-8", "cp1251", "shift_jis", "gb18030", "euc-kr", "iso8859-7", "koi8-r", "cp1256"}


def _rebuild(folder: Path) -> dict[str, str]:
    command = [sys.executable, str(SAMPLES / "build.py"), "--out", str(folder)]
    subprocess.run(command, check=True, capture_output=True)
    manifest = json.loads((folder / "manifest.json").read_text(encoding="utf-8"))
    return dict(manifest["libraries"])


def test_rebuild_gives_the_committed_bytes(tmp_path: Path) -> None:
    committed = json.loads((SAMPLES / "manifest.json").read_text(encoding="utf-8"))
    here = _rebuild(tmp_path)
    table = (SAMPLES / "expected.tsv").read_bytes()
    assert (tmp_path / "expected.tsv").read_bytes() == table
    if here != committed["libraries"]:
        pytest.skip(f"built with {committed['libraries']}, here are {here}")
    for name in committed["sha256"]:
        assert (tmp_path / name).read_bytes() == (SAMPLES / name).read_bytes(), name


def test_manifest_has_the_checksums_of_the_files() -> None:
    sums = json.loads((SAMPLES / "manifest.json").read_text(encoding="utf-8"))["sha256"]
    archives = {p.name for p in SAMPLES.glob("*.*z*")}
    assert archives | {"expected.tsv"} == set(sums)
    for name, digest in sums.items():
        assert hashlib.sha256((SAMPLES / name).read_bytes()).hexdigest() == digest, name


def test_archives_are_small() -> None:
    assert sum(p.stat().st_size for p in SAMPLES.glob("*.*z*")) < 3_000_000


def test_there_are_enough_pages_of_every_sort() -> None:
    kept = [row for row in ROWS if row["fate"] == "keep"]
    kinds = Counter(row["kind"] for row in ROWS)
    languages = Counter(row["language"] for row in kept)
    assert len(ROWS) >= 400
    assert len([r for r in ROWS if ".warc." in r["file"] and ".wet." not in r["file"]]) >= 300
    assert len(languages) >= 16 and min(languages.values()) >= 7
    assert len({row["script"] for row in kept}) >= 8
    assert {row["encoding"] for row in kept} >= ENCODINGS
    assert kinds["maths"] >= 35 and kinds["code"] >= 35
    assert set(kinds) >= {
        "article", "forum", "answers", "product", "listing", "personal-data", "spam", "log",
        "adult", "gibberish", "error",
    }  # fmt: skip


@pytest.mark.parametrize(
    "fate",
    [
        "extract:http.status",
        "dedup-urls:url.older_capture",
        "dedup-documents:document.exact",
        "dedup-documents:document.near",
        "identify-language:language.low_score",
        "filter:llama3.line_ngram_coverage",
        "filter:dirty.words",
        "classify:quality.low_score",
        "set_aside:gzip.corrupt",
        "set_aside:jsonl.bad_json",
    ],
)
def test_every_sort_of_removal_is_expected_somewhere(fate: str) -> None:
    assert any(matches(fate, row["fate"]) for row in ROWS)


def test_repeated_lines_stand_on_more_than_six_pages_of_a_language() -> None:
    pages = Counter(
        (row["language"], phrase)
        for row in ROWS
        if row["fate"] == "keep"
        for phrase in row["must_not_contain"].split(" ¶ ")
        if phrase
    )
    languages = {language for (language, _), count in pages.items() if count > 6}
    assert len(languages) >= 16


def test_kept_pages_say_what_must_be_left() -> None:
    for row in ROWS:
        if row["fate"] == "keep":
            assert row["must_contain"], row["url"]
            assert not set(row["must_contain"].split(" ¶ ")) & set(
                row["must_not_contain"].split(" ¶ ")
            )


def test_copies_share_a_group_with_one_kept_page() -> None:
    groups: dict[str, list[dict[str, str]]] = {}
    for row in ROWS:
        if row["group"]:
            groups.setdefault(row["group"], []).append(row)
    assert len(groups) >= 40
    for name, rows in groups.items():
        newest = max(rows, key=lambda row: row["date"])
        assert [row for row in rows if row["fate"] == "keep"] == [newest], name


def test_no_page_stands_twice_in_the_table() -> None:
    keys = Counter((row["url"], row["date"]) for row in ROWS)
    assert max(keys.values()) == 1


@pytest.mark.parametrize(
    "name", ["english-00000.warc.gz", "world-00001.warc.gz", "world-00002.warc.zst",
             "noise-00003.warc.gz", "board-00004.warc.lz4"],
)  # fmt: skip
def test_another_reader_finds_the_pages_of_the_table(name: str) -> None:
    fastwarc = pytest.importorskip("fastwarc")
    with (SAMPLES / name).open("rb") as raw:
        records = fastwarc.ArchiveIterator(raw, record_types=fastwarc.WarcRecordType.response)
        heads = [(r.headers["WARC-Target-URI"], r.headers["WARC-Date"]) for r in records]
    found = Counter(head for head in heads if "/dot-" not in head[0])  # images
    assert found == Counter((r["url"], r["date"]) for r in ROWS if r["file"] == name)


def test_text_records_hold_their_pages() -> None:
    with gzip.open(SAMPLES / "records-00007.jsonl.gz", "rt", encoding="utf-8") as lines:
        urls = [json.loads(line)["url"] for line in lines if line.rstrip().endswith("}")]
    rows = [r for r in ROWS if r["file"] == "records-00007.jsonl.gz" and r["fate"] == "keep"]
    assert sorted(urls) == sorted(row["url"] for row in rows)


def test_table_has_no_quoting() -> None:
    lines = (SAMPLES / "expected.tsv").read_text(encoding="utf-8").splitlines()
    width = lines[0].count("\t")
    assert all(line.count("\t") == width for line in lines)
    assert next(csv.reader([lines[0]], delimiter="\t"))[0] == "url"
