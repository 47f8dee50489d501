"""`curate trace` finds passages in what a run tokenised, removed and cut."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import fsspec
import numpy as np
import pyarrow.parquet as pq
import pytest

from curation.tokenize.tokenizer import load_tokenizer
from pipelines.cli import main
from pipelines.reading.trace import Answer, trace
from pipelines.run_folder import load_run


def _rows(run: Path, kind: str, *columns: str) -> list[dict[str, Any]]:
    return pq.read_table(run / kind, columns=list(columns)).to_pylist()


def _ask(run: Path | str, *passages: str) -> list[Answer]:
    return trace(*load_run(str(run)), passages, 1000)


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
def test_a_passage_of_every_document_is_found(sample_run: Path, kind: str, decision: str) -> None:
    rows = [row for row in _rows(sample_run, kind, "id", "text") if _middle(row["text"])]
    assert len(rows) >= 5
    answers = _ask(sample_run, *(str(_middle(row["text"])) for row in rows))
    for row, answer in zip(rows, answers, strict=True):
        found = answer.found
        own = [f for f in found if f.row["id"] == row["id"] and f.part.kind == decision]
        assert own, row["id"]
        for one in own:
            for span in one.spans:
                assert 0 <= span.start < span.end <= len(one.row["text"].encode())


def test_lines_that_were_cut_are_found(sample_run: Path) -> None:
    rows = _rows(sample_run, "filter/edits", "id", "text")
    cut = max(rows, key=lambda row: len(row["text"]))
    (answer,) = _ask(sample_run, cut["text"])
    own = [f for f in answer.found if f.part.kind == "edits" and f.row["id"] == cut["id"]]
    assert own and own[0].part.stage == "filter" and not own[0].sequences


def test_the_sequences_hold_the_tokens_of_the_passage(sample_run: Path) -> None:
    row = _rows(sample_run, "mix/documents", "id", "text")[3]
    passage = _middle(row["text"])
    assert passage is not None
    found = _ask(sample_run, passage)[0].found
    (one,) = [f for f in found if f.row["id"] == row["id"] and f.part.kind == "documents"]
    index = [
        r for r in _rows(sample_run, "tokenize/index", "id", "sequence") if r["id"] == row["id"]
    ]
    assert sorted(s["sequence"] for s in one.sequences) == sorted(r["sequence"] for r in index)
    settings = json.loads((sample_run / "tokenize/manifest.json").read_text())["settings"]
    tokenizer = load_tokenizer(settings["tokenizer"])
    for place in one.sequences:
        tokens = np.fromfile(sample_run / f"tokenize/{place['shard']}.bin", "<u4")
        first = place["sequence"] * settings["context_length"] + place["start"]
        text = tokenizer.decode(tokens[first : first + place["length"]].tolist())
        assert passage.split()[0] in text and " ".join(passage.split()) in " ".join(text.split())


def test_what_the_run_does_not_have_is_not_found(sample_run: Path) -> None:
    passage = " ".join(f"w{i}ord" for i in range(40))
    assert _ask(sample_run, passage) == [([], 0)]


def test_the_command_prints_document_host_reason_and_sequence(
    sample_run: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    row = next(r for r in _rows(sample_run, "filter/removed", "id", "text") if _middle(r["text"]))
    passage = str(_middle(row["text"]))
    assert main(["trace", "--run", str(sample_run), passage, "--json"]) == 0
    facts = json.loads(capsys.readouterr().out)
    (own,) = [f for f in facts["found"] if f["id"] == row["id"]]
    assert own["decision"] == "removed" and own["stage"] == "filter" and own["reason"]
    assert own["host"] and own["source"]["file"] and own["spans"][0]["verbatim"]
    assert main(["trace", "--run", str(sample_run), passage]) == 0
    printed = capsys.readouterr().out
    assert f"removed {row['id']}" in printed and f"by filter: {own['reason']}" in printed


def test_more_documents_than_the_limit_are_counted(
    sample_run: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    row = next(
        r for r in _rows(sample_run, "dedup-documents/removed", "text") if _middle(r["text"])
    )
    few = trace(*load_run(str(sample_run)), [row["text"]], 1)[0]
    assert few.found == _ask(sample_run, row["text"])[0].found[:1] and few.matches > 1
    assert main(["trace", "--run", str(sample_run), row["text"], "--limit", "1"]) == 0
    assert f"{few.matches - 1} more texts" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["too short a passage"], "at least 20 words"),
        ([], "required: TEXT"),
    ],
)
def test_mistakes(
    sample_run: Path, arguments: list[str], message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["trace", "--run", str(sample_run), *arguments]) == 2
    assert message in capsys.readouterr().err


def test_a_run_in_a_store_has_the_same_answers(sample_run: Path) -> None:
    system = fsspec.filesystem("memory")
    system.put(str(sample_run), "/traced", recursive=True)
    passage = str(_middle(_rows(sample_run, "filter/removed", "text")[0]["text"]))
    here, there = _ask(sample_run, passage), _ask("memory://traced", passage)
    assert here == there and here[0].found
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
    places = _rows(out, "tokenize/index", "id", "sequence", "document_offset", "length")
    tokenizer = load_tokenizer("curation-128k")
    for first in (0, 600, 1500, 2950):
        passage = " ".join(words[first : first + 30])
        (found,) = _ask(out, passage)[0].found
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
