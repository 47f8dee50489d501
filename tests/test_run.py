"""What `plan` refuses before a run, and the lock of a run folder."""

from __future__ import annotations

import errno
import fcntl
import json
import os
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest

import pipelines.run_folder
from curation.errors import ConfigError
from curation.recipe import load
from pipelines.cli import main
from pipelines.plan import plan
from pipelines.process import owner
from pipelines.reading.funnel import _problems
from pipelines.report.collect import collect
from pipelines.report.render import render
from pipelines.run import run_plan
from pipelines.run_folder import at_work, load_run, locked
from pipelines.runners.execute import Executor, parse_beam_args
from pipelines.storage.files import Folder


@pytest.mark.parametrize(
    ("stage", "assignment", "message"),
    [
        (
            "identify-language",
            "identify-language.languages=[eng]",
            r"identify-language.languages: .*'eng'; did you mean 'en.*it has: .*zh",
        ),
        ("identify-language", "identify-language.thresholds={deu: 0.5}", "thresholds: .*'deu'"),
        ("mix", "mix.topics={nosuchtopic: 0.5}", "mix.topics: .*'nosuchtopic'.*it has: .*science"),
        ("mix", "mix.mixes={late: {topics: {x: 1}}}", "mix.mixes.late.topics: .*'x'"),
        ("classify", "classify.drop_topics=[sport]", "classify.drop_topics: .*'sport'"),
    ],
)
def test_labels_that_no_model_gives(
    tmp_path: Path, stage: str, assignment: str, message: str
) -> None:
    (tmp_path / "a.txt").write_text("text")
    stages = ["extract", "classify", "mix"] if stage == "mix" else ["extract", stage]
    with pytest.raises(ConfigError, match=message):
        plan(load("llama3", [assignment]), str(tmp_path / "out"), [str(tmp_path / "a.txt")], stages)


def test_one_run_at_a_time(tmp_path: Path) -> None:
    folder = Folder(str(tmp_path))
    with locked(folder), pytest.raises(ConfigError, match=f"process {os.getpid()}"), locked(folder):
        pass
    assert not list(tmp_path.iterdir())


def test_a_lock_that_ends_while_another_waits(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = Folder(str(tmp_path))
    first = locked(folder)
    first.__enter__()
    flock, ended = fcntl.flock, []

    def late(*arguments: object) -> None:
        """The first run ends after the second opened the file, and before it locks it."""
        if not ended:
            ended.append(first.__exit__(None, None, None))
        flock(*arguments)  # type: ignore[arg-type]

    monkeypatch.setattr(pipelines.run_folder.fcntl, "flock", late)
    with locked(folder), pytest.raises(ConfigError, match="another run"), locked(folder):
        pass


@pytest.mark.parametrize("number", [errno.EOPNOTSUPP, errno.ENOLCK, errno.ENOSYS, errno.EINVAL])
def test_without_locks_a_file_names_the_run(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
    number: int,
) -> None:
    """As on Lustre mounted without `flock`, and some NFS."""

    def refuse(*arguments: object) -> None:
        raise OSError(number, os.strerror(number))

    monkeypatch.setattr(pipelines.run_folder.fcntl, "flock", refuse)
    folder, ended = Folder(str(tmp_path)), subprocess.Popen(["true"])
    ended.wait()
    with locked(folder):
        assert at_work(folder).startswith(f"process {os.getpid()} on ")
        with pytest.raises(ConfigError, match=r"process \d+ on .*; if .* remove .*\.owner"):
            locked(folder).__enter__()
    assert "no locks in this file system" in caplog.text
    assert not list(tmp_path.iterdir()) and not at_work(folder)
    text = owner().replace(str(os.getpid()), str(ended.pid))
    (tmp_path / ".owner").write_text(text)
    with locked(folder):  # the process that it names has ended
        pass
    (tmp_path / ".owner").write_text(text.replace(" on ", " on another-"))
    with pytest.raises(ConfigError, match=r"on another-.* remove"), locked(folder):
        pass


@pytest.mark.parametrize(("output", "given"), [("", "a.txt"), ("out", ""), (" ", "a.txt")])
def test_empty_paths_are_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, output: str, given: str
) -> None:
    (tmp_path / "a.txt").write_text("text")
    monkeypatch.chdir(tmp_path)
    for stage in ("extract", "filter"):
        with pytest.raises(ConfigError, match=r"--(in|out)put: an empty path"):
            plan(load("llama3"), output, [given], [stage])
    with pytest.raises(ConfigError, match="empty path"):
        pipelines.run.load_run("")


def test_a_run_inside_its_input_does_not_read_itself(tmp_path: Path) -> None:
    for place in (tmp_path, tmp_path / "out"):
        (tmp_path / "a.txt").write_text("text")
        (place / "extract/documents").mkdir(parents=True)
        (place / "extract/documents/a.parquet").touch()
        (place / "report.html").touch()
        work = plan(load("llama3"), str(place), [str(tmp_path)], ["extract"])
        assert [file.name for file in work.files] == ["a.txt"]
        shutil.rmtree(place)
        tmp_path.mkdir(exist_ok=True)


def run_of(output: Path, crawl: Path, *settings: str, fresh: bool = False) -> dict[str, Any]:
    """Run two stages of a recipe here and now; the facts of its report."""
    recipe = load("llama3", ["stages=[extract, dedup-urls]", *settings])
    with Executor(parse_beam_args([], 0)) as executor:
        run_plan(plan(recipe, str(output), [str(crawl)], fresh=fresh), executor)
    return collect(str(output))


def crawl_in(folder: Path) -> Path:
    crawl = folder / "crawl.jsonl"
    crawl.write_text('{"text": "A page of some words.", "url": "http://a.example/"}\n')
    return crawl


def stages(facts: dict[str, Any]) -> list[str]:
    return [entry["stage"] for entry in facts["funnel"]]


def test_the_report_shows_the_stages_of_the_last_recipe(tmp_path: Path) -> None:
    crawl, output = crawl_in(tmp_path), tmp_path / "out"
    assert stages(run_of(output, crawl)) == ["extract", "dedup-urls"]
    old = (output / "dedup-urls" / "manifest.json").read_text()
    for mix in ("mix/late", "tokenize/late"):  # a named mix of then
        (output / mix / "shards").mkdir(parents=True)
        (output / mix / "manifest.json").write_text(old)
    facts = run_of(output, crawl, "stages=[extract]")
    assert stages(facts) == ["extract"]
    assert facts["stale"] == ["dedup-urls", "mix/late", "tokenize/late"]
    assert "dedup-urls" in render(facts)
    assert (output / "dedup-urls" / "manifest.json").read_text() == old
    assert load_run(str(output))[1] == ["extract"]
    # Taken up again, it is complete and counts.
    assert run_of(output, crawl)["stale"] == ["mix/late", "tokenize/late"]


def test_fresh_removes_stages_of_an_earlier_recipe(tmp_path: Path) -> None:
    crawl, output = crawl_in(tmp_path), tmp_path / "out"
    run_of(output, crawl)
    mine = output / "mix" / "notes.txt"
    mine.parent.mkdir()
    mine.write_text("mine")
    facts = run_of(output, crawl, "stages=[extract]", fresh=True)
    assert (stages(facts), facts["stale"]) == (["extract"], [])
    assert not (output / "dedup-urls").exists()
    assert mine.exists()


def test_a_recipe_that_lost_its_end_is_written_again(tmp_path: Path) -> None:
    """A power failure right after the start of a run, when its folder holds nothing else."""
    arguments = ["run", "sample", "--stages", "extract", "--output", str(tmp_path)]
    arguments += ["--workers", "0", "--quiet"]
    assert main(arguments) == 0
    whole = (tmp_path / "recipe.yaml").read_bytes()
    shutil.rmtree(tmp_path / "extract")
    for left in (len(whole) // 2, 60):
        (tmp_path / "recipe.yaml").write_bytes(whole[:left])
        (tmp_path / "report.json").unlink(missing_ok=True)
        assert main(arguments) == 0
        assert (tmp_path / "recipe.yaml").read_bytes() == whole
        shutil.rmtree(tmp_path / "extract")


@pytest.mark.parametrize("name", ["extract/notes.txt", "recipe.yaml", "report.html", "report.json"])
@pytest.mark.parametrize("fresh", [False, True])
def test_files_of_others_are_named_before_anything_is_done(
    tmp_path: Path, name: str, fresh: bool
) -> None:
    crawl, output = crawl_in(tmp_path), tmp_path / "out"
    (output / "extract").mkdir(parents=True)
    (output / name).write_text("identify-language: {languages: [de]}\n")
    with pytest.raises(ConfigError, match=f"{name}: not written by (a run|curate)"):
        run_of(output, crawl, fresh=fresh)
    assert sorted(str(p.relative_to(output)) for p in output.rglob("*") if p.is_file()) == [name]


def test_a_damaged_recipe_of_a_run(tmp_path: Path) -> None:
    crawl, output = crawl_in(tmp_path), tmp_path / "out"
    run_of(output, crawl)
    (output / "recipe.yaml").write_bytes(b"")
    with pytest.raises(ConfigError, match=r"recipe.yaml: damaged"):
        collect(str(output))
    assert stages(run_of(output, crawl)) == ["extract", "dedup-urls"]


def test_the_report_tells_of_every_record_and_escapes_what_pages_hold(tmp_path: Path) -> None:
    crawl = tmp_path / "crawl.jsonl"
    page = {"text": "<script>alert(1)</script>", "title": "<script>", "url": "http://a/<script>"}
    crawl.write_text(f"{json.dumps(page)}\n{json.dumps(page | {'text': 'Words. ' * 9})}\nbroken\n")
    facts = run_of(tmp_path / "out", crawl, "extract.min_characters=40")
    assert facts["problems"] == []
    shown = render(facts)
    assert "3 records read: 0 are not documents, 1 could not be read" in shown
    assert "&lt;script&gt;alert(1)" in shown
    assert "<script" not in shown
    facts["funnel"][0]["counters"]["records"] += 1
    assert _problems(facts["funnel"]) == ["extract: records do not add up to documents"]


def test_stages_one_by_one_in_an_order_of_ones_own(tmp_path: Path) -> None:
    rows = [{"text": f"The ferry left the harbour at {n}, and came back."} for n in range(9)]
    rows.append({"text": "?"})
    source, out = tmp_path / "t.jsonl", str(tmp_path / "out")
    source.write_text("".join(json.dumps(row) + "\n" for row in rows))
    ends = ["--output", out, "--workers", "0", "--quiet"]
    assert main(["identify-language", "--input", str(source), *ends]) == 0
    assert main(["dedup-urls", "--input", f"{out}/identify-language", *ends]) == 0
    assert load_run(out)[1][-2:] == ["identify-language", "dedup-urls"]  # not the recipe's order
    assert main(["verify", "--run", out]) == 0
