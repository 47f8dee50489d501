"""`curate trace` finds passages in what a run tokenised, removed and cut."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import fsspec
import numpy as np
import pyarrow.parquet as pq
import pytest

from curation.tokenize.tokenizer import load_tokenizer
from pipelines.cli import main
from pipelines.reading.trace import TraceIndex, build
from pipelines.run_folder import load_run
from tests.conftest import curate
from tests.folders import digests


@pytest.fixture(scope="module")
def run(sample_run: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A copy of the sample run with an index."""
    copy = tmp_path_factory.mktemp("trace") / "out"
    shutil.copytree(sample_run, copy)
    assert main(["trace", "--run", str(copy), "--build"]) == 0
    return copy


def _rows(run: Path, kind: str, *columns: str) -> list[dict[str, Any]]:
    return pq.read_table(run / kind, columns=list(columns)).to_pylist()


def _index(run: Path) -> TraceIndex:
    return TraceIndex(*load_run(str(run)))


def _middle(text: str) -> str | None:
    """30 words from the middle of a text, or its equivalent of letters; None of short texts."""
    words = text.split()
    if len(words) >= 40:
        return " ".join(words[len(words) // 2 - 15 : len(words) // 2 + 15])
    return text[len(text) // 4 : len(text) // 4 + 150] if len(text) > 400 else None


@pytest.mark.parametrize(
    ("kind", "decision"),
    [("mix/documents", "documents"), ("filter/removed", "removed"), ("mix/removed", "removed")],
)
def test_a_passage_of_every_document_is_found(run: Path, kind: str, decision: str) -> None:
    index = _index(run)
    asked = 0
    for row in _rows(run, kind, "id", "text"):
        passage = _middle(row["text"])
        if passage is None:
            continue
        found = index.ask(passage, 1000).found
        own = [f for f in found if f.row["id"] == row["id"] and f.part.kind == decision]
        assert own, f"{row['id']}: {passage}"
        asked += 1
        for one in own:
            for span in one.spans:
                assert 0 <= span.start < span.end <= len(one.row["text"].encode())
    assert asked >= 5


def test_lines_that_were_cut_are_found(run: Path) -> None:
    rows = _rows(run, "filter/edits", "id", "text")
    cut = max(rows, key=lambda row: len(row["text"]))
    found = _index(run).ask(cut["text"], 1000).found
    own = [f for f in found if f.part.kind == "edits" and f.row["id"] == cut["id"]]
    assert own and own[0].part.stage == "filter" and not own[0].sequences


def test_the_sequences_hold_the_tokens_of_the_passage(run: Path) -> None:
    row = _rows(run, "mix/documents", "id", "text")[3]
    passage = _middle(row["text"])
    assert passage is not None
    found = _index(run).ask(passage, 1000).found
    (one,) = [f for f in found if f.row["id"] == row["id"] and f.part.kind == "documents"]
    index = [r for r in _rows(run, "tokenize/index", "id", "sequence") if r["id"] == row["id"]]
    assert sorted(s["sequence"] for s in one.sequences) == sorted(r["sequence"] for r in index)
    settings = json.loads((run / "tokenize/manifest.json").read_text())["settings"]
    tokenizer = load_tokenizer(settings["tokenizer"])
    for place in one.sequences:
        tokens = np.fromfile(run / f"tokenize/{place['shard']}.bin", "<u4")
        first = place["sequence"] * settings["context_length"] + place["start"]
        text = tokenizer.decode(tokens[first : first + place["length"]].tolist())
        assert passage.split()[0] in text and " ".join(passage.split()) in " ".join(text.split())


def test_what_the_run_does_not_have_is_not_found(run: Path) -> None:
    passage = " ".join(f"w{i}ord" for i in range(40))
    answer = _index(run).ask(passage, 20)
    assert not answer.found and answer.candidates == 0


def test_the_command_prints_document_host_reason_and_sequence(
    run: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    row = next(r for r in _rows(run, "filter/removed", "id", "text") if _middle(r["text"]))
    passage = str(_middle(row["text"]))
    assert main(["trace", "--run", str(run), passage, "--json"]) == 0
    facts = json.loads(capsys.readouterr().out)
    (own,) = [f for f in facts["found"] if f["id"] == row["id"]]
    assert own["decision"] == "removed" and own["stage"] == "filter" and own["reason"]
    assert own["host"] and own["source"]["file"] and own["spans"][0]["verbatim"]
    assert main(["trace", "--run", str(run), passage]) == 0
    printed = capsys.readouterr().out
    assert f"removed {row['id']}" in printed and f"by filter: {own['reason']}" in printed


def test_the_index_is_the_same_every_time_and_stale_with_other_files(
    run: Path, tmp_path: Path
) -> None:
    before = digests(run / "trace")
    copy = tmp_path / "out"
    shutil.copytree(run, copy, ignore=shutil.ignore_patterns("trace"))
    told: list[str] = []
    build(*load_run(str(copy)), told.append)
    assert digests(copy / "trace") == before and told
    told.clear()
    build(*load_run(str(copy)), told.append)
    assert not told  # nothing to do
    facts = json.loads((copy / "trace/index.json").read_text())
    assert facts["bytes"] < 0.3 * facts["text_bytes"]
    (copy / "trace/index.json").unlink()
    done = curate("trace", "--run", copy, "--build")
    assert done.returncode == 0 and "of the text of" in done.stderr
    assert digests(copy / "trace") == before


def test_a_run_goes_on_beside_the_index(run: Path) -> None:
    _, stages = load_run(str(run))
    assert "trace" not in stages
    assert main(["verify", "--run", str(run), "--sample", "0"]) == 0


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["too short a passage"], "at least 20 words"),
        ([], "give a passage"),
        (["text", "--build"], "give a passage"),
        (["--file", "no-such-file"], "no-such-file: can't be read"),
    ],
)
def test_mistakes(
    run: Path, arguments: list[str], message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["trace", "--run", str(run), *arguments]) == 2
    assert message in capsys.readouterr().err


def test_a_run_in_a_store_has_the_same_index_and_answers(run: Path) -> None:
    system = fsspec.filesystem("memory")
    system.put(str(run), "/traced", recursive=True)
    system.rm("/traced/trace", recursive=True)
    folder, stages = load_run("memory://traced")
    build(folder, stages, lambda _: None)
    stored = {
        str(path.relative_to(run / "trace")): path.read_bytes()
        for path in (run / "trace").rglob("*")
        if path.is_file()
    }
    assert {name: system.cat(f"/traced/trace/{name}") for name in stored} == stored
    row = _rows(run, "filter/removed", "id", "text")[0]
    passage = _middle(row["text"])
    assert passage is not None
    here, there = _index(run).ask(passage, 20), TraceIndex(folder, stages).ask(passage, 20)
    assert here == there and here.found
    system.rm("/traced", recursive=True)


def test_of_a_document_in_two_sequences_the_one_with_the_passage_is_named(tmp_path: Path) -> None:
    words = [f"word{i}" for i in range(3000)]
    table = tmp_path / "texts.jsonl"
    texts = [" ".join(words), " ".join(reversed(words))]
    table.write_text("".join(json.dumps({"text": text}) + "\n" for text in texts))
    out = tmp_path / "out"
    recipe = tmp_path / "recipe.yaml"
    head = "extends: sample\nname: two\nstages: [extract, tokenize]\n"
    recipe.write_text(f"{head}tokenize: {{context_length: 1024}}\n")
    given = ["--input", str(table), "--output", str(out), "--workers", "0", "--quiet"]
    assert main(["run", str(recipe), *given]) == 0
    assert main(["trace", "--run", str(out), "--build"]) == 0
    places = _rows(out, "tokenize/index", "id", "sequence", "document_offset", "length")
    tokenizer = load_tokenizer("curation-128k")
    for first in (0, 600, 1500, 2950):
        passage = " ".join(words[first : first + 30])
        (found,) = _index(out).ask(passage, 5).found
        start = len(tokenizer.encode(" ".join(words[:first])))
        end = start + len(tokenizer.encode(f" {passage}"))
        own = {
            (place["sequence"], place["document_offset"])
            for place in places
            if place["id"] == found.row["id"]
            and place["document_offset"] < end + 1
            and start + 1 < place["document_offset"] + place["length"]
        }
        named = {(s["sequence"], s["document_offset"]) for s in found.sequences}
        assert named <= own and 1 <= len(named) <= 2
    assert len({place["document_offset"] for place in places}) > 5
