"""The report: alarms, and what it reads of large runs."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from curation.stages import counted_columns
from pipelines.cli import main
from pipelines.reading import ledger
from pipelines.reading.funnel import plural
from pipelines.reading.ledger import Source
from pipelines.report.collect import Alarms, alarms, collect
from pipelines.report.render import _cut, compact

_NOISE = {"binary": 0.005, "repaired": 0.05, "undecodable": 0.02, "und": 0.2}
_LIMITS = Alarms(0.01, 0.9, 0.25, 0.9, 100, _NOISE)


def entry(stage: str, into: int, removed: dict[str, int], **more: Any) -> dict[str, Any]:
    gone = sum(removed.values())
    columns = {plural(column): {} for column in counted_columns()}
    return {
        "stage": stage,
        "documents_in": into,
        "documents": into - gone,
        "documents_removed": gone,
        "removed": {name: {"documents": n, "characters": n} for name, n in removed.items()},
        "counters": {},
        "notes": {},
        **columns,
        **more,
    }


def told(*funnel: dict[str, Any], **more: Any) -> list[str]:
    return alarms({"funnel": funnel, "problems": [], "stale": [], **more}, _LIMITS)


def test_no_alarm() -> None:
    aside = {"records": 1000, "set_aside": 9, "skipped.dns": 1}
    first = entry("extract", 990, {"http.status": 200}, counters=aside)
    assert told(first, entry("filter", 790, {"a.b": 190})) == []
    assert told(first, entry("mix", 790, {"mix.over_budget": 780})) == []


@pytest.mark.parametrize(
    ("stage", "removed", "counters", "alarm"),
    [
        ("extract", {}, {"set_aside.http.binary": 11, "set_aside": 11, "records": 1011}, "bodies"),
        ("extract", {}, {"repaired.encoding": 40, "repaired.mojibake": 11}, "51 of 1,000 pages"),
        ("filter", {"text.escapes": 12, "text.mojibake": 9}, {}, "21 of 1,000 documents are not"),
        ("identify-language", {"language.low_score": 201}, {}, "201 of 1,000 documents"),
    ],
)
def test_an_alarm_for_each_kind_of_what_is_no_text(
    stage: str, removed: dict[str, int], counters: dict[str, int], alarm: str
) -> None:
    usual = {name: n // 4 for name, n in counters.items()}
    few = {name: n // 4 for name, n in removed.items()}
    assert told(entry(stage, 1000, few, counters=usual)) == []
    assert any(alarm in line for line in told(entry(stage, 1000, removed, counters=counters)))


def test_alarms_name_stage_rule_and_numbers() -> None:
    aside = {"records": 110, "set_aside": 2, "skipped.dns": 10, "set_aside.crash.extract": 2}
    found = told(
        entry("extract", 98, {}, counters=aside),
        entry("filter", 98, {"a.b": 90, "c.d": 3}),
        entry("mix", 5, {}, notes={"advice": ["code sets the budget"]}),
        problems=["filter: no"],
        stale=["classify"],
    )
    assert found == [
        "Counts do not add up: filter: no.",
        "Not shown, as recipe, documents or manifest changed since: classify.",
        "extract: 2 documents were set aside for crash.extract.",
        "2 of 100 records (2.0%) could not be read.",
        "filter removed 93 of 98 documents (94.9%).",
        "filter: the rule a.b alone removed 90 of 98 documents (91.8%).",
        "mix: code sets the budget.",
    ]


def test_a_mix_that_lacks_something_is_one_alarm() -> None:
    notes = {"advice": ["code is short of 5", "general is short of 6"], "lacking": "no code"}
    assert told(entry("mix", 5, {}, notes=notes)) == ["mix: no code."]


def test_distinct_tokens_epochs_and_written_ones_are_apart(
    sample_run: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    funnel = {e["stage"]: e for e in collect(str(sample_run))["funnel"]}
    for stage in ("mix", "tokenize"):
        found = funnel[stage]
        assert found["epochs"] == round(found["tokens"] / found["distinct_tokens"], 4) > 2
        assert 3 < found["characters"] / found["distinct_tokens"] < 5
    assert funnel["filter"]["distinct_tokens"] is None is funnel["filter"]["epochs"]
    assert main(["report", "--run", str(sample_run)]) == 0
    said = " ".join(capsys.readouterr().out.split())
    assert (
        f"tokenize: {found['distinct_tokens']:,} distinct tokens x {found['epochs']:.2f} epochs = "
        f"{found['tokens']:,} tokens"
    ) in said


def test_a_language_that_is_lost() -> None:
    def languages(**counts: int) -> dict[str, Any]:
        return {name: {"documents": n, "characters": n} for name, n in counts.items()}

    first = entry("identify-language", 500, {}, languages=languages(th=200, en=200, km=99))
    last = entry("filter", 500, {}, languages=languages(th=19, en=21))
    assert told(first, last) == [
        "Language th: of 200 documents after identify-language, 19 are left after filter."
    ]
    given = entry("read-tables", 500, {}, languages=languages(tha=200, en=200))
    assert told(given, first, last) == told(first, last)


def test_large_runs_are_read_in_part() -> None:
    sources = [Source("filter", f"removed/{i}", 10 * i, 10) for i in range(50)]
    sources += [Source("classify", f"documents/{i}", 500 + 10 * i, 10) for i in range(50)]
    assert ledger._drawn(sources, None) == sources == ledger._drawn(sources, 1000)
    drawn = ledger._drawn(sources, 200)
    assert [s.first for s in drawn] == list(range(0, 200, 10))
    assert [s.name for s in drawn[:3]] == ["removed/0", "removed/5", "removed/10"]
    assert {s.stage for s in drawn[10:]} == {"classify"}
    few = ledger._drawn(sources, 1)  # of every stage and kind at least one file
    assert [(s.stage, s.first) for s in few] == [("filter", 0), ("classify", 10)]


@pytest.mark.parametrize(
    ("number", "shown"),
    [(0, "0"), (9999, "9,999"), (12345, "12.3K"), (4_560_000, "4.56M"), (2e9, "2B")],
)
def test_compact(number: float, shown: str) -> None:
    assert compact(number) == shown


def test_the_report_of_a_run(sample_run: Path, capsys: pytest.CaptureFixture[str]) -> None:
    facts = json.loads((sample_run / "report.json").read_text())
    first = facts["funnel"][0]
    assert facts["documents"]["read"] == first["documents_in"]
    assert facts["command"].startswith("curate run sample") and len(facts["inputs"]) == 9
    samples = facts["documents"]["samples"]
    for stage in facts["funnel"]:
        if stage["removed"] and stage["stage"] != "tokenize":
            assert set(samples[stage["stage"]]) == set(stage["removed"])
            for reason, rows in samples[stage["stage"]].items():
                assert len(rows) == min(3, stage["removed"][reason]["documents"])
    assert len(samples["kept"]["kept"]) == 8
    for rule in facts["documents"]["signals"]:
        reason = stage_of(facts, "filter")["removed"].get(rule["reason"], {"documents": 0})
        assert rule["limits"] and rule["removed"] <= reason["documents"]
    page = (sample_run / "report.html").read_text()
    assert len(page) < 1_000_000
    for title in ("Alarms", "Funnel", "Rules", "Kept", "Hosts", "Duplicates", "Seconds"):
        assert f"<h2>{title}</h2>" in page
    # Written again, it still knows the command.
    assert main(["report", "--run", str(sample_run)]) == 0
    capsys.readouterr()
    again = json.loads((sample_run / "report.json").read_text())
    same = {"written": "", "run": str(sample_run)}
    assert {**again, **same} == {**facts, **same}


def stage_of(facts: dict[str, Any], name: str) -> dict[str, Any]:
    return next(entry for entry in facts["funnel"] if entry["stage"] == name)


def test_a_command_with_thousands_of_files_is_cut() -> None:
    command = "curate run llama3 --input " + " ".join(f"{i}.html" for i in range(3000)) + " --fresh"
    shown = _cut(command) or ""
    assert shown.startswith("curate run llama3 --input 0.html") and shown.endswith(" --fresh")
    assert "2,981 more words" in shown and len(shown) < 1000
    assert _cut("curate run sample") == "curate run sample" and _cut(None) is None
