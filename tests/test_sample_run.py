"""The whole chain on the samples: fates, accounting, report, `why`, tokens back to their source."""

from __future__ import annotations

import hashlib
import json
import re
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from curation.classify.classify_settings import default_settings
from curation.recipe import load
from curation.stages import meaning
from curation.tokenize import TokenShards, load_tokenizer
from pipelines.cli import main
from tests.conftest import ROOT, curate, curate_well
from tests.fates import check_fates

STAGES = load("sample").stages
DOCUMENT_STAGES = STAGES[:-1]


def manifest(run: Path, stage: str) -> dict:
    return json.loads((run / stage / "manifest.json").read_text())


def table(run: Path, stage: str, kind: str) -> pa.Table:
    files = sorted((run / stage / kind).glob("*.parquet"))
    return pa.concat_tables([pq.read_table(f) for f in files], promote_options="default")


def places(rows: pa.Table) -> list[tuple[str, str, int]]:
    return [
        (i, s["file"], s["offset"])
        for i, s in zip(rows["id"].to_pylist(), rows["source"].to_pylist(), strict=True)
    ]


def test_every_page_meets_its_expected_fate(sample_run: Path) -> None:
    assert check_fates(sample_run, ROOT / "data_samples" / "expected.tsv") == []


def test_every_document_is_kept_or_removed_once(sample_run: Path) -> None:
    before: list[tuple[str, str, int]] | None = None
    for stage in DOCUMENT_STAGES:
        kept = places(table(sample_run, stage, "documents"))
        removed = places(table(sample_run, stage, "removed"))
        both = kept + removed
        assert len(set(both)) == len(both), stage
        if before is not None:
            assert sorted(both) == sorted(before), stage
        before = kept


def test_counts_add_up(sample_run: Path) -> None:
    kept_before = None
    for stage in STAGES:
        counts = manifest(sample_run, stage)["counts"]
        assert counts["documents"] + counts["documents_removed"] == counts["documents_in"]
        assert (
            sum(r["documents"] for r in counts["removed"].values()) == counts["documents_removed"]
        )
        if kept_before is not None:
            assert counts["documents_in"] == kept_before, stage
        kept_before = counts["documents"]
        if stage != "tokenize":
            assert table(sample_run, stage, "documents").num_rows == counts["documents"]
            assert table(sample_run, stage, "removed").num_rows == counts["documents_removed"]
    assert json.loads((sample_run / "report.json").read_text())["problems"] == []


def test_records_add_up(sample_run: Path) -> None:
    counts = manifest(sample_run, "extract")["counts"]
    skipped = sum(v for k, v in counts.items() if k.startswith("skipped."))
    assert counts["records"] == counts["documents_in"] + skipped + counts["set_aside"]
    assert table(sample_run, "extract", "set_aside").num_rows >= counts["set_aside"] > 0


def test_manifests_state_what_is_there(sample_run: Path) -> None:
    recipe = load("sample")
    for stage in STAGES:
        content = manifest(sample_run, stage)
        assert content["recipe"]["sha256"] == recipe.sha256
        assert content["software"]["curation"]
        for name, file in content["files"].items():
            data = (sample_run / stage / name).read_bytes()
            assert (len(data), hashlib.sha256(data).hexdigest()) == (file["bytes"], file["sha256"])
        assert (sample_run / stage / "timings.json").exists()
        assert not (sample_run / stage / ".work").exists()
    assert manifest(sample_run, "identify-language")["models"]
    assert manifest(sample_run, "filter")["lists"]


def test_removed_documents_say_why(sample_run: Path) -> None:
    for stage in DOCUMENT_STAGES:
        rows = table(sample_run, stage, "removed")
        assert set(rows["stage"].to_pylist()) <= {stage}
        assert rows["reason"].null_count == 0
    for stage in ("dedup-urls", "dedup-documents"):
        rows = table(sample_run, stage, "removed")
        kept = set(table(sample_run, stage, "documents")["id"].to_pylist())
        assert rows.num_rows > 0
        assert set(rows["kept_id"].to_pylist()) <= kept


def test_columns_of_the_contract(sample_run: Path) -> None:
    schema = pq.read_schema(next((sample_run / "mix" / "documents").glob("*.parquet")))
    assert schema.field("id").type == pa.string()
    assert schema.field("date").type == pa.timestamp("us", tz="UTC")
    assert schema.field("text").type == pa.large_string()
    assert schema.field("source").type == pa.struct([("file", pa.string()), ("offset", pa.int64())])
    for name in (
        "url",
        "title",
        "language",
        "language_score",
        "signals",
        "quality",
        "domain",
        "topic",
    ):
        assert name in schema.names


def test_why_tells_the_story_of_a_duplicate(sample_run: Path) -> None:
    rows = table(sample_run, "dedup-documents", "removed").slice(0, 1).to_pylist()[0]
    printed = curate_well(["why", rows["id"], "--run", sample_run])
    assert "extract: kept" in printed
    assert f"dedup-documents: removed by {rows['reason']}" in printed
    assert rows["kept_id"] in printed
    story = json.loads(curate_well(["why", rows["url"], "--run", sample_run, "--json"]))
    assert any(s["decisions"][-1].get("reason") == rows["reason"] for s in story)
    missing = curate("why", "https://nowhere.example/", "--run", sample_run)
    assert (missing.returncode, missing.stderr.count("\n")) == (1, 1)


def test_why_shows_the_thresholds_that_a_kept_document_met(sample_run: Path) -> None:
    rows = table(sample_run, "filter", "documents").to_pylist()
    row = next(r for r in rows if r["domain"] == "general" and r["language"] == "en")
    story = json.loads(curate_well(["why", row["id"], "--run", sample_run, "--json"]))[0]
    rules = {d["stage"]: {r["rule"]: r for r in d.get("rules", [])} for d in story["decisions"]}
    assert rules["extract"]["extract.empty"]["min"] == 1
    language = rules["identify-language"]["language.low_score"]
    assert (language["value"], language["min"]) == (row["language_score"], 0.65)
    assert rules["filter"]["gopher.word_count"]["value"] == row["signals"]["gopher_word_count"]
    quality = rules["classify"]["quality.low_score"]
    assert (quality["value"], quality["min"]) == (
        row["quality"],
        default_settings().min_quality["general"],
    )


def test_why_marks_the_rule_that_decided_and_says_what_it_measures(
    sample_run: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    removed = pq.read_table(sample_run / "filter" / "removed").to_pylist()
    row = next(row for row in removed if row["reason"] == "repetition.top_2gram")
    assert main(["why", row["id"], "--run", str(sample_run)]) == 0
    printed = capsys.readouterr().out
    assert "\x1b" not in printed and not re.search(r"\bnan\b", printed)
    lines = printed.splitlines()
    head = next(i for i, line in enumerate(lines) if line.startswith("filter: removed"))
    assert lines[head + 1] == f"    {meaning('', 'repetition_top_2gram')}"
    (marked,) = [line for line in lines if line.startswith("  > ")]
    assert marked.split()[1] == row["reason"] and f"{row['value']:.6g}" in marked
    (unmeasured,) = [line for line in lines if "not measured: " in line]
    assert "code.xml" in unmeasured
    assert sum("language_score" in line for line in lines) == 1  # at the stage that found it
    monkeypatch.setenv("FORCE_COLOR", "1")
    assert main(["why", row["id"], "--run", str(sample_run)]) == 0
    coloured = capsys.readouterr().out
    assert re.search(r"\x1b\[1;31m  > repetition.top_2gram", coloured)
    assert main(["why", row["id"], "--run", str(sample_run), "--json"]) == 0
    told = json.loads(capsys.readouterr().out, parse_constant=pytest.fail)[0]["decisions"][-1]
    assert told["means"] == meaning("", "repetition_top_2gram")
    assert {rule["rule"]: rule["value"] for rule in told["rules"]}["code.xml"] is None


def test_every_reason_of_the_sample_has_a_meaning(sample_run: Path) -> None:
    facts = json.loads((sample_run / "report.json").read_text())
    reasons = {reason for stage in facts["funnel"] for reason in stage["removed"]}
    assert reasons and reasons <= facts["documents"]["meanings"].keys()


def test_why_takes_the_end_of_a_url(sample_run: Path, capsys: pytest.CaptureFixture[str]) -> None:
    rows = table(sample_run, "dedup-urls", "removed").to_pylist()
    row = next(r for r in rows if r["reason"] == "url.older_capture")
    end = row["url"].removeprefix("https://")
    assert main(["why", end, "--run", str(sample_run)]) == 0
    printed = capsys.readouterr().out
    assert row["url"] in printed
    # Dates are told as such, not as seconds since 1970.
    assert re.search(r"url.older_capture, value 20\d\d-\d\d-\d\d .*, threshold 20\d\d-", printed)
    assert main(["why", "html", "--run", str(sample_run)]) == 1
    assert "URLs end with it: " in capsys.readouterr().err


def test_report_is_one_file_without_network(sample_run: Path) -> None:
    page = (sample_run / "report.html").read_text()
    assert "<script" not in page
    assert "src=" not in page
    assert "https://" not in page.split("<h2>Removed")[0]
    facts = json.loads((sample_run / "report.json").read_text())
    assert [e["stage"] for e in facts["funnel"]] == list(STAGES)
    assert len(facts["funnel"][2]["languages"]) >= 15


def test_tokens_lead_back_to_their_documents(sample_run: Path) -> None:
    folder = sample_run / "tokenize"
    shards = TokenShards(folder, batch_size=1, shuffle=False, epochs=1)
    tokenizer = load_tokenizer("curation-128k")
    spans = pa.concat_tables(
        [
            pq.read_table(f).append_column("shard", pa.array([i] * pq.read_metadata(f).num_rows))
            for i, f in enumerate(sorted((folder / "index").glob("*.parquet")))
        ]
    ).to_pylist()
    texts = dict(
        zip(
            *(table(sample_run, "mix", "documents")[c].to_pylist() for c in ("id", "text")),
            strict=True,
        )
    )
    sizes = [
        f["rows"]
        for n, f in sorted(manifest(sample_run, "tokenize")["files"].items())
        if n.endswith(".bin")
    ]
    firsts = np.cumsum([0, *sizes])
    whole = [s for s in spans if s["document_offset"] == 0][:200]
    assert whole
    for span in whole:
        row = shards.take(np.array([firsts[span["shard"]] + span["sequence"]]))[0]
        tokens = row[span["start"] : span["start"] + span["length"]].tolist()
        text = tokenizer.decode([t for t in tokens if t not in (tokenizer.bos, tokenizer.eos)])
        assert texts[span["id"]].startswith(text.rstrip("\ufffd"))


@pytest.mark.usefixtures("forked_processes")
@pytest.mark.parametrize("workers", ["0", "3"])
def test_any_number_of_workers_gives_the_same_bytes(
    sample_run: Path, tmp_path: Path, workers: str
) -> None:
    from tests.folders import differences

    curate_well(["run", "sample", "--output", tmp_path / "out", "--workers", workers, "--quiet"])
    assert differences(sample_run, tmp_path / "out") == []
