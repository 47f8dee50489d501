"""Input files become shards, and their content is recognised again."""

from __future__ import annotations

import os
from pathlib import Path

from hypothesis import given
from hypothesis import strategies as st

from curation.readers import InputFile
from pipelines.engine.files import Folder
from pipelines.engine.sources import content_fingerprints, source_shards

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
