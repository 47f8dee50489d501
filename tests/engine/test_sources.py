"""Input files become shards, and their content is recognised again."""

from __future__ import annotations

import os
from itertools import pairwise
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from curation.readers.discover import InputFile
from curation.readers.ranges import spans
from pipelines.extract import sources
from pipelines.extract.sources import (
    Part,
    as_planned,
    content_fingerprints,
    part_hashes,
    source_shards,
)
from pipelines.storage.damage import DamagedError
from pipelines.storage.files import Folder

names = st.lists(st.text("abcdefgh/.", min_size=1, max_size=8), unique=True, max_size=60)


@given(names, st.integers(0, 3_000_000))
def test_every_file_is_in_one_shard(found: list[str], size: int) -> None:
    shards = source_shards([InputFile(n, n, size) for n in found], (), 1 << 30)
    assert sorted(name for s in shards for _, name in s.files) == sorted(found)
    assert len({s.name for s in shards}) == len(shards)


def test_large_files_stand_alone() -> None:
    files = [InputFile(n, n, 5_000_000) for n in ("a.warc.gz", "b/a.warc.gz")]
    shards = source_shards(files, (), 1 << 30)
    assert [len(s.files) for s in shards] == [1, 1]


def test_a_new_file_changes_its_own_group_only() -> None:
    files = [InputFile(f"page-{i:05d}.html", f"page-{i:05d}.html", 1000) for i in range(3000)]
    before = {s.name: s.files for s in source_shards(files, (), 1 << 30)}
    added = [*files, InputFile("page-01500a.html", "page-01500a.html", 1000)]
    after = {s.name: s.files for s in source_shards(added, (), 1 << 30)}
    assert len(before) > 5
    assert sum(before.get(name) != content for name, content in after.items()) == 1


def test_fingerprints_follow_content_not_time(tmp_path: Path) -> None:
    path = tmp_path / "in.bin"
    folder = Folder(str(tmp_path / "stage"))

    def fingerprint() -> str:
        files = [InputFile(str(path), "in.bin", path.stat().st_size)]
        return content_fingerprints(files, folder, 1 << 30)["in.bin"]

    path.write_bytes(b"one")
    first = fingerprint()
    os.utime(path, ns=(1, 1))
    assert fingerprint() == first
    path.write_bytes(b"two")
    os.utime(path, ns=(1, 1))
    assert fingerprint() != first


@given(st.integers(2, 1 << 40), st.integers(1024, 1 << 30))
def test_ranges_cover_a_file(size: int, most: int) -> None:
    most = max(most, size // 300)
    bounds = spans(size, most)
    assert (bounds[0].start, bounds[-1].end) == (0, size)
    assert all(one.end == other.start for one, other in pairwise(bounds))
    sizes = [span.end - span.start for span in bounds]
    assert min(sizes) > 0 and max(sizes) <= most and max(sizes) - min(sizes) <= 1


def test_ranges_of_a_file_are_shards_in_its_place() -> None:
    files = [InputFile(n, n, 5_000_000) for n in ("a.warc.gz", "b.warc.gz", "c.warc.gz")]
    whole = source_shards(files, (), 1 << 30)
    split = source_shards(files, {"b.warc.gz"}, 2_000_000)
    assert [split[0], split[-1]] == [whole[0], whole[-1]]
    assert [s.name for s in split[1:-1]] == [f"{whole[1].name}-{k:05d}" for k in range(3)]
    assert {s.files for s in split[1:-1]} == {whole[1].files}
    assert [s.part.span for s in split if s.part] == spans(5_000_000, 2_000_000)


def test_ranges_are_hashed_with_their_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path, folder = tmp_path / "in.bin", Folder(str(tmp_path / "stage"))
    path.write_bytes(bytes(range(256)) * 20)
    files = [InputFile(str(path), "in.bin", 5120)]
    whole = content_fingerprints(files, Folder(str(tmp_path / "other")), 1 << 30)
    assert content_fingerprints(files, folder, 2048) == whole
    hashes = part_hashes(folder, 2048)["in.bin"]
    read = []
    monkeypatch.setattr(sources, "_chunks", lambda *_: read.append(1) or [])
    assert content_fingerprints(files, folder, 2048) == whole
    assert not read
    content_fingerprints(files, folder, 1024)
    assert read
    monkeypatch.undo()
    parts = [Part(k, span, hashes[k]) for k, span in enumerate(spans(5120, 2048))]
    for part in parts:
        with as_planned(str(path), whole["in.bin"], part):
            pass
    data = bytearray(path.read_bytes())
    data[3000] ^= 1
    path.write_bytes(data)
    changed = []
    for part in parts:
        try:
            with as_planned(str(path), whole["in.bin"], part):
                pass
        except DamagedError:
            changed.append(part.number)
    assert changed == [1]
    path.write_bytes(data + b"more")
    with pytest.raises(DamagedError), as_planned(str(path), whole["in.bin"], parts[0]):
        pass
