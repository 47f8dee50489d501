"""The stage in whole runs, and `why`."""

from __future__ import annotations

import json
from pathlib import Path

import apache_beam as beam
import pyarrow.parquet as pq
import pytest

from curation.recipe import load
from curation.stages import find as find_stage
from pipelines.transforms import Decontaminate, ReadDocuments
from tests.conftest import curate, curate_well
from tests.decontaminate.test_judge import BEES, FILLER, PASSAGE, TRAIN
from tests.transforms.test_stages import check_same, write_all

TEXTS = [
    FILLER,
    FILLER + TRAIN,
    PASSAGE + FILLER,
    f"{FILLER} {BEES} Tea. {FILLER}",
    FILLER + "End.",
] * 9


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with three tables of documents, two evaluation sets and a recipe."""
    folder = tmp_path_factory.mktemp("stage")
    for k in range(3):
        rows = [
            {"id": f"{k}-{i}", "text": text} for i, text in enumerate(TEXTS[k * 15 : k * 15 + 15])
        ]
        (folder / f"in{k}.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    (folder / "sums.jsonl").write_text(json.dumps({"question": TRAIN, "answer": "312"}) + "\n")
    bees = {"id": "7", "question": BEES, "context": PASSAGE, "answers": {"text": ["Jaan Tammsaar"]}}
    (folder / "bees.json").write_text(json.dumps([bees]))
    (folder / "recipe.yaml").write_text(
        f"""
extends: llama3
name: clean
stages: [read-tables, decontaminate]
decontaminate:
  evals:
    sums: {{files: ["{folder}/sums.jsonl"], mapping: gsm8k}}
    bees: {{files: ["{folder}/bees.json"], mapping: squad, action: cut}}
"""
    )
    return folder


def run(place: Path, output: str, *arguments: str) -> Path:
    inputs = sorted(place.glob("in*.jsonl"))
    command = ["run", place / "recipe.yaml", "--input", *inputs, "--output", place / output]
    curate_well([*command, "--workers", "0", *arguments])
    return place / output


@pytest.fixture(scope="module")
def done(place: Path) -> Path:
    return run(place, "out", "--workers", "1")


@pytest.mark.usefixtures("forked_processes")
@pytest.mark.parametrize("workers", ["0", "2", "4"])
def test_the_same_bytes_with_any_number_of_workers(place: Path, done: Path, workers: str) -> None:
    other = run(place, f"out{workers}", "--workers", workers)
    assert (other / "SHA256SUMS").read_text() == (done / "SHA256SUMS").read_text()


def test_every_document_is_accounted_for(done: Path) -> None:
    kept = pq.read_table(done / "decontaminate/documents").to_pylist()
    removed = pq.read_table(done / "decontaminate/removed").to_pylist()
    assert len(kept) + len(removed) == len(TEXTS)
    assert {row["reason"] for row in removed} == {"contamination.sums"}
    assert len(removed) == 9 and all(row["value"] == 1 for row in removed)
    edits = pq.read_table(done / "decontaminate/edits").to_pylist()
    assert {(e["reason"], e["text"]) for e in edits} == {("contamination.bees", BEES)}
    marked = [row["contamination"] for row in kept if row["contamination"]]
    assert {mark["part"] for marks in marked for mark in marks} == {"question", "passage"}


def test_the_manifest_names_the_sets_and_has_the_shares(place: Path, done: Path) -> None:
    manifest = json.loads((done / "decontaminate/manifest.json").read_text())
    assert f"{place}/sums.jsonl" in manifest["lists"]
    shares = {(row["stage"], row["set"]): row for row in manifest["notes"]["contamination"]}
    assert shares["before", "sums"]["dirty"] == 1 and shares["after", "sums"]["dirty"] == 0
    assert shares["after", "bees"]["touched"] == 1
    _, section = (done / "report.html").read_text().split("<div id=contamination>")
    section = section.partition("</details>")[0]
    assert "100.00%" in section and "data-label='undetectable after'" in section


def test_why_shows_item_and_span(done: Path) -> None:
    told = curate_well(["why", "0-1", "--run", done])
    assert "removed by contamination.sums, value 1, threshold 0.78" in told
    assert f"item     {TRAIN}" in told and f"document {TRAIN.rstrip('?')}" in told


def test_why_shows_the_same_words_once() -> None:
    row = {"action": "mark", "set": "quiz", "part": "passage", "score": 1.0, "start": 3, "end": 9}
    row |= {"threshold": 0.78, "exact": 1.0, "item_text": "A passage.", "text": "A passage."}
    rows = [row | {"item": f"q{i}"} for i in range(3)] + [row | {"item": "other", "start": 20}]
    first, item, _, second, *_ = find_stage("decontaminate").tell(rows)
    assert first.startswith("mark: passage of quiz q0 and 2 more with these words: 1 (")
    assert "A passage." in item and second.startswith("mark: passage of quiz other: 1")


def test_the_transform_writes_what_the_stage_writes(
    place: Path, done: Path, tmp_path: Path
) -> None:
    settings = load(str(place / "recipe.yaml")).settings("decontaminate")
    with beam.Pipeline(runner="FnApiRunner") as pipeline:
        documents = pipeline | ReadDocuments(str(done / "read-tables"))
        write_all(documents | Decontaminate(settings), tmp_path / "made")
    check_same(tmp_path / "made", done / "decontaminate")


def test_another_evaluation_set_does_the_stage_again(place: Path) -> None:
    output = run(place, "again", "--workers", "0")
    before = (output / "decontaminate/manifest.json").read_bytes()
    other = place / "sums.jsonl"
    content = other.read_text()
    try:
        other.write_text(json.dumps({"question": BEES + " " + TRAIN}) + "\n")
        run(place, "again", "--workers", "0")
        assert (output / "decontaminate/manifest.json").read_bytes() != before
    finally:
        other.write_text(content)


@pytest.mark.parametrize(
    ("setting", "says"),
    [
        ("evals={}", "decontaminate.evals: names no evaluation set"),
        ("evals.sums.mapping=gsm8", "decontaminate.evals.sums.mapping: no mapping 'gsm8'"),
        (
            "evals.sums.files=[none.jsonl]",
            "decontaminate.evals.sums.files[0]: none.jsonl: no such file",
        ),
        ("evals.sums.fields={question: [q]}", "name a mapping or fields, not both"),
        (
            "evals.sums.mapping=humaneval",
            "in any of: prompt, question; rows have: other",
        ),
    ],
)
def test_one_line_for_what_is_wrong(place: Path, setting: str, says: str) -> None:
    if setting == "evals={}":
        (place / "bare.yaml").write_text(
            "extends: llama3\nname: b\nstages: [read-tables, decontaminate]\n"
        )
    recipe = place / ("bare.yaml" if setting == "evals={}" else "recipe.yaml")
    change = [] if setting == "evals={}" else ["--set", f"decontaminate.{setting}"]
    command = ["run", recipe, "--input", place / "in0.jsonl", "--output", place / "bad", *change]
    if "humaneval" in setting:  # its mapping takes `question`, too
        (place / "odd.jsonl").write_text('{"other": 1}\n')
        command += ["--set", f"decontaminate.evals.sums.files=[{place}/odd.jsonl]"]
    done = curate(*command, "--workers", "0")
    assert done.returncode == 2 and not (place / "bad").exists()  # before anything is read
    (line,) = done.stderr.strip().splitlines()[-1:]
    assert says in line
