"""Stage folders: completion, strays, inputs."""

from __future__ import annotations

import errno
import hashlib
import os
import shutil
from dataclasses import replace
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pydantic import BaseModel

from curation.errors import ConfigError, InputError, StoreError
from curation.schema import DOCUMENTS
from pipelines.engine.stage import Shard, StageRun, stage_inputs
from pipelines.extract.sources import content_fingerprints
from pipelines.plan import check_current
from pipelines.runners.execute import Executor, parse_beam_args
from pipelines.runners.tasks import Task
from pipelines.storage.damage import DamagedError
from pipelines.storage.files import Folder, HashingSink, LocalFolder
from pipelines.storage.manifest import complete_manifest, documents_of, read_manifest
from pipelines.storage.own import remove_stage
from pipelines.storage.shards import TableWriter, read_batches
from tests.engine.toys import ReadShard, WriteName


class Settings(BaseModel):
    value: int = 1


INPUTS = [("a", "1"), ("b", "2")]
TASKS = [Task(n, ((n, f),)) for n, f in INPUTS]


def stage(folder: Path, executor: Executor, recipe: str = "r") -> StageRun:
    return StageRun("toy", Folder(str(folder)), Settings(), "k", executor, {"name": recipe})


def finished(folder: Path, executor: Executor) -> StageRun:
    run = stage(folder, executor)
    run.begin()
    run.run(WriteName(), TASKS)
    run.finish(TASKS, INPUTS)
    return run


def test_a_finished_stage_is_complete_for_its_inputs_only(tmp_path: Path) -> None:
    with Executor(parse_beam_args([], 0)) as executor:
        run = finished(tmp_path, executor)
        assert run.complete(INPUTS)
        assert not run.complete([("a", "1"), ("b", "changed")])
        (tmp_path / "documents" / "a.txt").write_text("cut")
        assert not run.complete(INPUTS)


def test_a_change_elsewhere_in_the_recipe_only_renames(tmp_path: Path) -> None:
    with Executor(parse_beam_args([], 0)) as executor:
        finished(tmp_path, executor)
        manifest = stage(tmp_path, executor, recipe="other").complete(INPUTS)
        assert manifest is not None
        assert manifest["recipe"] == {"name": "other"}
        assert read_manifest(Folder(str(tmp_path)))["recipe"] == {"name": "r"}  # until one begins
        executor.settle()
        assert read_manifest(Folder(str(tmp_path)))["recipe"] == {"name": "other"}


def documents_of_toys(folder: Folder) -> tuple[Shard, ...]:
    """The documents of a finished toy stage as input of another."""
    found = documents_of(read_manifest(folder))
    return tuple(Shard(name, folder, f"documents/{name}", sha, 1, 1) for name, sha in found)


def chain(run_folder: Path, executor: Executor, words: str) -> None:
    """Stage `first`, which writes these words, `second` made of it, and `third` of that."""
    before = ""
    for name in ("first", "second", "third"):
        run = replace(stage(run_folder / name, executor), stage=name, follows=before)
        inputs = INPUTS
        if before:
            run.inputs = documents_of_toys(Folder(str(run_folder / before)))
            inputs = [(s.name, s.fingerprint) for s in run.inputs]
        if not run.complete([*inputs, ("words", words)] if not before else inputs):
            run.begin()
            tasks = [
                Task(n, (*t.inputs, ("words", words))) for n, t in zip("ab", TASKS, strict=True)
            ]
            run.run(WriteName(words=words), tasks)
            run.finish(tasks, [*inputs, ("words", words)] if not before else inputs)
        before = name


def test_a_stage_is_complete_while_its_input_is_what_the_stage_before_names(tmp_path: Path) -> None:
    folders = [Folder(str(tmp_path / name)) for name in ("first", "second", "third")]
    with Executor(parse_beam_args([], 0)) as executor:
        chain(tmp_path, executor, "one")
        assert all(complete_manifest(f) for f in folders)
        kept = [shutil.copytree(f.path(), f"{f.path()}-kept") for f in folders]
        chain(tmp_path / "other", executor, "two")
        # The first stage makes other documents: what was made of the old ones is stale.
        shutil.rmtree(folders[0].path())
        shutil.copytree(tmp_path / "other" / "first", folders[0].path())
        assert [bool(complete_manifest(f)) for f in folders] == [True, False, False]
        with pytest.raises(InputError, match=r"second: not complete: .*have changed"):
            check_current([folders[1].url])
        # It is being done again, was killed, and then makes the old documents.
        (tmp_path / "first" / "manifest.json").unlink()
        assert not any(complete_manifest(f) for f in folders)
        shutil.rmtree(folders[0].path())
        shutil.copytree(kept[0], folders[0].path())
        assert all(complete_manifest(f) for f in folders)
        # A file is missing in the middle; or the stages before were taken away.
        (tmp_path / "second" / "documents" / "a.txt").unlink()
        assert [bool(complete_manifest(f)) for f in folders] == [True, False, False]
        shutil.rmtree(folders[1].path())
        assert complete_manifest(folders[2])


def test_strays_of_an_interrupted_run_go(tmp_path: Path) -> None:
    with Executor(parse_beam_args([], 0)) as executor:
        run = stage(tmp_path, executor)
        run.begin()
        run.run(WriteName(), [*TASKS, Task("c.1", ()), Task("d", ())])
        (tmp_path / "shards" / "c.1.json").unlink()  # killed before it was written
        (tmp_path / "shards" / "d.json").write_bytes(b"")  # or before it was on the disk
        finished(tmp_path, executor)
        assert sorted(p.name for p in (tmp_path / "documents").iterdir()) == ["a.txt", "b.txt"]
        assert sorted(p.name for p in (tmp_path / "shards").iterdir()) == ["a.json", "b.json"]
        assert not (tmp_path / ".work").exists()
        # Files of a complete stage, of which only the manifest tells.
        (tmp_path / "shards" / "b.json").unlink()
        run.begin()
        run.run(WriteName(), TASKS[:1])
        run.finish(TASKS[:1], INPUTS[:1])
    assert [p.name for p in (tmp_path / "documents").iterdir()] == ["a.txt"]


@pytest.mark.parametrize(
    "name",
    [
        "documents/a.txt",
        "notes.txt",
        "manifest.json",
        "shards/x.json",
        "range-00000-of-00001/notes.txt",
        "a/b/notes.txt",
    ],
)
def test_files_that_no_run_wrote_are_named_and_left(tmp_path: Path, name: str) -> None:
    path = tmp_path / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text('{"name": "of something else"}')
    with Executor(parse_beam_args([], 0)) as executor:
        with pytest.raises(ConfigError, match=rf"{name}: not written by curate"):
            finished(tmp_path, executor)
        with pytest.raises(ConfigError, match=rf"{name}: not written by curate"):
            remove_stage(Folder(str(tmp_path)))
    assert path.exists()


def test_a_stage_is_done_anew_around_what_file_managers_left(tmp_path: Path) -> None:
    with Executor(parse_beam_args([], 0)) as executor:
        finished(tmp_path, executor)
        for name in (".DS_Store", "Thumbs.db", "documents/desktop.ini", "documents/._a.txt"):
            (tmp_path / name).write_bytes(b"")
        finished(tmp_path, executor)
    assert (tmp_path / "documents" / "desktop.ini").exists()


@pytest.mark.parametrize("copy", ["documents-old", "documents2", "old/documents"])
def test_a_copy_of_documents_inside_a_stage_is_the_users(tmp_path: Path, copy: str) -> None:
    with Executor(parse_beam_args([], 0)) as executor:
        finished(tmp_path, executor)
        shutil.copytree(tmp_path / "documents", tmp_path / copy)
        (tmp_path / "manifest.json").unlink()
        with pytest.raises(ConfigError, match=f"{copy}/.*: not written by curate"):
            finished(tmp_path, executor)
    assert [*(tmp_path / copy).iterdir()]


def test_files_that_come_while_a_stage_runs_stay(tmp_path: Path) -> None:
    with Executor(parse_beam_args([], 0)) as executor:
        run = stage(tmp_path, executor)
        run.begin()
        run.run(WriteName(), TASKS)
        (tmp_path / "documents" / "notes.txt").write_text("mine")
        run.finish(TASKS, INPUTS)
        assert (tmp_path / "documents" / "notes.txt").exists()
        with pytest.raises(ConfigError, match=r"notes\.txt: not written by curate"):
            run.begin()
        assert run.complete(INPUTS)


def test_a_stage_whose_scratch_was_removed_goes_on(tmp_path: Path) -> None:
    with Executor(parse_beam_args([], 0)) as executor:
        run = stage(tmp_path, executor)
        run.begin()
        run.run(WriteName(), TASKS)
        shutil.rmtree(tmp_path / ".work")
        run.begin()
        assert run.run(WriteName(), TASKS) == 0


def test_removing_a_stage_takes_those_inside(tmp_path: Path) -> None:
    with Executor(parse_beam_args([], 0)) as executor:
        for name in ("mix", "mix/late", "mix"):
            finished(tmp_path / name, executor)  # the mix again, beside what lies inside it
        assert (tmp_path / "mix" / "late" / "documents" / "a.txt").exists()
        for log in tmp_path.rglob(".log.txt"):
            log.unlink()
        remove_stage(Folder(str(tmp_path / "mix")))
    assert not (tmp_path / "mix").exists()


def test_an_incomplete_stage_does_not_exist(tmp_path: Path) -> None:
    (tmp_path / "filter" / "documents").mkdir(parents=True)
    with pytest.raises(InputError, match="not complete"):
        stage_inputs([str(tmp_path / "filter")])
    with pytest.raises(InputError, match="no such file or stage folder"):
        stage_inputs([str(tmp_path / "nothing")])


def test_loose_parquet_files_are_documents(tmp_path: Path) -> None:
    rows = pa.Table.from_pylist([{"id": "1", "text": "t"}], schema=DOCUMENTS)
    pq.write_table(rows, tmp_path / "good.parquet")
    assert [s.rows for s in stage_inputs([str(tmp_path / "*.parquet")])] == [1]
    pq.write_table(rows.drop_columns(["id"]), tmp_path / "bad.parquet")
    with pytest.raises(InputError, match=r"bad.parquet: no column 'id'"):
        stage_inputs([str(tmp_path)])


def test_loose_files_behind_odd_names_and_links(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("x[1].parquet", "d[1]/a.parquet", "real/b.parquet", "real/.hidden.parquet"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        pq.write_table(pa.Table.from_pylist([], DOCUMENTS), tmp_path / name)
    (tmp_path / "d[1]/link").symlink_to("../real")
    (tmp_path / "real/round").symlink_to("../real")
    (single,) = stage_inputs([str(tmp_path / "x[1].parquet")])
    assert single.name == "x[1]"
    assert [s.name for s in stage_inputs([str(tmp_path / "d[1]")])] == ["a", "b"]

    def refused(path: str) -> list[str]:
        raise PermissionError(errno.EACCES, "Permission denied", path)

    monkeypatch.setattr(os, "listdir", refused)
    with pytest.raises(InputError, match=r"can't be listed: .*Permission denied"):
        stage_inputs([str(tmp_path / "d[1]")])


def test_loose_files_have_columns_of_some_use(tmp_path: Path) -> None:
    table = DOCUMENTS.empty_table()
    text = table.set_column(2, "date", pa.array([], pa.string()))
    pq.write_table(text, tmp_path / "a.parquet")
    with pytest.raises(InputError, match=r"a\.parquet: column 'date' is string, not timestamp"):
        stage_inputs([str(tmp_path / "a.parquet")])
    pq.write_table(
        table.append_column("quality", pa.array([], pa.string())), tmp_path / "b.parquet"
    )
    with pytest.raises(InputError, match=r"b\.parquet: column 'quality' is string, not a number"):
        stage_inputs([str(tmp_path / "b.parquet")])


@pytest.mark.parametrize("name", ["id", "text"])
def test_documents_without_id_or_text_are_named(tmp_path: Path, name: str) -> None:
    rows = [{"id": str(i), "text": "t"} for i in range(700)]
    rows[600].pop(name)
    pq.write_table(pa.Table.from_pylist(rows, schema=DOCUMENTS), tmp_path / "a.parquet")
    with pytest.raises(InputError, match=rf"a\.parquet: row 600: no '{name}'"):
        list(read_batches(Folder(str(tmp_path)), "a.parquet"))


BROKEN = [".work/seconds/shards~a.json", ".work/inputs.json", "shards/a.json", ".work/own.json"]
CONTENTS = [b"", b"\0\0", b"[]", b"{", b'{"files": {}}']


@pytest.mark.parametrize("content", CONTENTS)
@pytest.mark.parametrize("name", BROKEN)
def test_damaged_notes_of_a_killed_run_are_made_again(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, name: str, content: bytes
) -> None:
    with Executor(parse_beam_args([], 0)) as executor:
        run = stage(tmp_path, executor)
        run.begin()
        run.run(WriteName(), TASKS)
        (tmp_path / name).write_bytes(content)
        content_fingerprints([], run.folder, 1 << 30)
        assert not run.complete(INPUTS)
        run.begin()
        assert run.run(WriteName(), TASKS) == (name == "shards/a.json")
        run.finish(TASKS, INPUTS)
        assert run.complete(INPUTS)
    assert name in caplog.text


def flipped(data: bytes) -> bytes:
    """One bit, in the middle."""
    middle = len(data) // 2
    return data[:middle] + bytes([data[middle] ^ 1]) + data[middle + 1 :]


@pytest.mark.parametrize("damage", ["absent", "blank", "flipped", "cut"])
@pytest.mark.parametrize(
    ("name", "tasks"),
    [("manifest.json", 0), ("shards/a.json", 1), ("documents/a.txt", 1)],
)
def test_any_file_of_a_finished_stage_is_made_again_at_its_own_cost(
    tmp_path: Path, name: str, tasks: int, damage: str
) -> None:
    """`tasks` is how many it takes."""
    path = tmp_path / name
    with Executor(parse_beam_args([], 0)) as executor:
        run = finished(tmp_path, executor)
        whole = path.read_bytes()
        if damage == "absent":
            path.unlink()
        else:
            kinds = {"blank": bytes(len(whole)), "flipped": flipped(whole), "cut": whole[:-1]}
            path.write_bytes(kinds[damage])
        again = stage(tmp_path, executor)
        assert not again.complete(INPUTS)
        again.begin()
        assert again.run(WriteName(), TASKS) == tasks
        again.finish(TASKS, INPUTS)
        assert path.read_bytes() == whole
        assert run.complete(INPUTS)


def test_files_that_a_run_cannot_read_are_noted_and_the_step_says_which(tmp_path: Path) -> None:
    folder = Folder(str(tmp_path / "stage"))
    source = Folder(str(tmp_path / "source"))
    sha256 = source.write_bytes("documents/a", b"as it was written").sha256
    source.write_bytes("documents/a", b"as it is")
    tasks = [
        Task("a", (("a", sha256),), 0, Shard("a", source, "documents/a", sha256, 1, 1)),
        *TASKS,
    ]
    with Executor(parse_beam_args([], 0)) as executor:
        run = stage(tmp_path / "stage", executor)
        run.begin()
        with pytest.raises(DamagedError, match="documents/a: not the bytes") as caught:
            run.run(ReadShard(), tasks[:1])
        assert list(caught.value.files) == [source.url_of("documents/a")]
        assert not folder.exists("shards/a.json")
        source.write_bytes("documents/a", b"as it was written")
        assert run.run(ReadShard(), tasks[:1]) == 1


def test_hidden_files_and_those_that_are_no_records_are_left_alone(tmp_path: Path) -> None:
    strays = [".DS_Store", "._a.json", "desktop.ini", "gone.json"]
    with Executor(parse_beam_args([], 0)) as executor:
        run = stage(tmp_path, executor)
        run.begin()
        run.run(WriteName(), TASKS)
        for stray in strays:
            (tmp_path / "shards" / stray).write_bytes(b"\0\0\0\1Bud1")
        assert run.run(WriteName(), TASKS) == 0
        assert all((tmp_path / "shards" / stray).exists() for stray in strays)


def test_a_loose_file_is_hashed_once_as_long_as_it_stays(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "a[1].parquet"  # no pattern, since there is such a file
    pq.write_table(DOCUMENTS.empty_table(), file)
    opened: list[str] = []
    read = LocalFolder.open
    monkeypatch.setattr(
        LocalFolder, "open", lambda self, name: opened.append(name) or read(self, name)
    )
    first, again = stage_inputs([str(file)]), stage_inputs([str(file)])
    assert first == again and len(opened) == 1  # Arrow opens it by itself to look at its columns
    rows = pa.Table.from_pylist([{"id": "1", "text": "t"}], schema=DOCUMENTS)
    pq.write_table(rows, file)
    assert stage_inputs([str(file)])[0].fingerprint != first[0].fingerprint


def test_a_file_is_not_hashed_again_by_the_process_that_wrote_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = Folder(str(tmp_path))
    with folder.create("ids") as sink:
        sink.write(b"written")
    with monkeypatch.context() as patch:
        patch.setattr(type(folder), "open", lambda *_: pytest.fail("read"))
        assert folder.digest("ids") == hashlib.sha256(b"written").hexdigest()
    (tmp_path / "ids").write_bytes(b"changed since")
    assert folder.digest("ids") == hashlib.sha256(b"changed since").hexdigest()


@pytest.mark.parametrize("rows", [1, 5000])
def test_a_full_disk_is_told_and_leaves_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, rows: int
) -> None:
    folder = Folder(str(tmp_path))
    batch = pa.RecordBatch.from_pylist([{"n": n} for n in range(rows)])

    def full(self: HashingSink, data: object) -> int:
        raise OSError(errno.ENOSPC, "No space left on device")

    with (
        pytest.raises(StoreError, match=r"documents/a\.parquet: No space left.*free some space"),
        TableWriter(folder, "documents/a.parquet", batch.schema) as writer,
    ):
        monkeypatch.setattr(HashingSink, "write", full)
        writer.write(batch)
    assert folder.tree() == {}


def test_what_killed_processes_had_begun_to_write_goes_first(tmp_path: Path) -> None:
    part = tmp_path / ".work" / "1.part"
    part.parent.mkdir()
    part.write_bytes(b"half")
    with Executor(parse_beam_args([], 0)) as executor:
        stage(tmp_path, executor).begin()
    assert not part.exists()
