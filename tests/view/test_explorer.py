"""Answers about a run agree with its files, its report, `why`, its rules and a changed run."""

from __future__ import annotations

import json
import shutil
import statistics
from pathlib import Path
from typing import Any

import fsspec
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

from curation.errors import ConfigError
from curation.filters.margins import redecide
from curation.filters.rules import RuleBook
from pipelines.cli import main
from pipelines.reading import ledger
from pipelines.reading.compare import _matched
from pipelines.reading.decisions import changed_words
from pipelines.reading.explorer import Explorer, prepare
from pipelines.reading.search import draw
from pipelines.reading.thresholds import changed_settings
from pipelines.report.collect import collect
from pipelines.run_folder import load_run
from tests.conftest import curate_well
from tests.folders import digests
from tests.view.conftest import KEY, THRESHOLD


@pytest.fixture(scope="module")
def explorer(viewed_run: Path, changed_run: Path) -> Explorer:
    return Explorer(str(viewed_run), str(changed_run))


def ids(run: Path, stage: str, kind: str = "documents") -> set[str]:
    names = (run / stage / kind).glob("*.parquet")
    return {name for path in names for name in pq.read_table(path)["id"].to_pylist()}


def limit_of(explorer: Explorer, key: str) -> dict[str, Any]:
    found = explorer.limits({})["limits"]
    return next(limit for limit in found if limit["key"] == key)


def test_the_funnel_is_the_reports(explorer: Explorer, viewed_run: Path) -> None:
    entries = {e["stage"]: e for e in collect(str(viewed_run))["funnel"]}
    funnel = explorer.funnel({})
    assert [s["stage"] for s in funnel] == [s for s in entries if s != "tokenize"]
    for stage in funnel:
        entry = entries[stage["stage"]]
        assert stage["documents_in"] == entry["documents_in"]
        assert stage["documents_removed"] == entry["documents_removed"]
        told = {r["reason"]: (r["documents"], r["characters"]) for r in stage["removed"]}
        counted = {k: (v["documents"], v["characters"]) for k, v in entry["removed"].items()}
        assert told == counted


def test_two_ends_of_a_rule_share_what_it_removed(tmp_path: Path) -> None:
    words = "bees fly from one flower to the next and it is for honey that they do".split()
    rows = [
        {"id": str(n), "text": "\n".join(f"The {w} {n} of {' '.join(words)}." for w in words[:n])}
        for n in (1, 2, 5, 6, 7, 14)
    ]
    (tmp_path / "in.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    rule = "word_count: {signal: gopher_word_count, min: 50, max: 200}"
    rules = f"{{repetition: null, c4: null, fineweb: null, llama3: null, gopher: {{{rule}}}}}"
    recipe = f"extends: llama3\nname: mine\nfilter: {{edits: {{llama3: false}}, rules: {rules}}}\n"
    (tmp_path / "mine.yaml").write_text(recipe)
    stages = ["--stages", "identify-language,filter", "--input", tmp_path / "in.jsonl"]
    curate_well(["run", tmp_path / "mine.yaml", *stages, "--output", tmp_path / "run"])
    told = {"min": 0, "max": 0}
    for limit in Explorer(str(tmp_path / "run")).limits({})["limits"]:
        if limit["reason"] == "gopher.word_count":
            told[limit["side"]] += limit["removed"]
    assert told == {"min": 2, "max": 1}


def test_filters_divide_the_documents(explorer: Explorer) -> None:
    whole = explorer.funnel({})[0]["documents_in"]
    for dimension in ("language", "input", "year"):
        values = explorer.values({"dimension": dimension, "most": "500"})[dimension]["values"]
        parts = [explorer.funnel({dimension: v["value"]})[0]["documents_in"] for v in values]
        assert parts == [v["documents"] for v in values]
        assert sum(parts) == whole


def test_a_threshold_changes_what_a_run_with_it_changes(
    explorer: Explorer, viewed_run: Path, changed_run: Path
) -> None:
    limit = limit_of(explorer, KEY)
    margin = explorer.signals.margin(limit["limit"], None)
    rows = margin.flipped(THRESHOLD).tolist()
    read = explorer.ledger.read(explorer.folder, rows, ["id"])
    kept = ids(viewed_run, "filter"), ids(changed_run, "filter")
    assert rows
    assert {row["id"] for row in read} == kept[0] ^ kept[1]
    found = explorer.change({"limit": str(limit["limit"]), "threshold": str(THRESHOLD)})
    assert (found["lost"], found["gained"]) == (len(kept[0] - kept[1]), len(kept[1] - kept[0]))


def test_every_limit_agrees_with_the_rules(explorer: Explorer, viewed_run: Path) -> None:
    tree = json.loads((viewed_run / "filter" / "manifest.json").read_text())["settings"]
    names = ["signals", "language", "reason"]
    kinds = ("documents", "removed")
    tables = [pq.read_table(viewed_run / "filter" / kind) for kind in kinds]
    rows = pa.concat_tables([t.select([n for n in names if n in t.column_names]) for t in tables],
                            promote_options="default").combine_chunks()  # fmt: skip
    signals, languages, recorded = (rows[name].combine_chunks() for name in names)
    was = pc.is_null(recorded)
    for limit in explorer.limits({})["limits"][::9]:
        threshold = limit["threshold"] * 0.5
        settings = changed_settings(tree, [f"{limit['key']}={threshold}"])
        now = pc.is_null(redecide(RuleBook(settings), signals, languages, recorded))
        found = explorer.change({"limit": str(limit["limit"]), "threshold": str(threshold)})
        assert found["gained"] == pc.sum(pc.and_not(now, was)).as_py()
        assert found["lost"] == pc.sum(pc.and_not(was, now)).as_py()


def test_the_nearest_documents_lie_on_their_sides(explorer: Explorer) -> None:
    limit = limit_of(explorer, KEY)
    found = explorer.nearest({"limit": str(limit["limit"]), "threshold": "100", "most": "5"})
    assert found["below"]
    assert all(row["signal"] < 100 for row in found["below"])
    assert all(row["signal"] >= 100 for row in found["above"])


def test_documents_are_found_by_url_id_and_text(explorer: Explorer) -> None:
    by_url = explorer.documents({"q": "EVIL.example", "most": "10"})
    assert by_url["all"] >= 2
    one = explorer.document({"row": str(by_url["rows"][0]["row"])})
    assert explorer.documents({"q": one["id"]})["rows"][0]["row"] == one["row"]
    by_text = explorer.text({"q": "lighthouse KEEPER counted", "most": "50"})
    assert "lighthouse keeper counted" in by_text["rows"][0]["passage"]
    nothing = explorer.text({"q": "lighthouse keeper counted", "language": "ja"})
    assert nothing["rows"] == []


def test_kept_documents_come_first(explorer: Explorer) -> None:
    rows = [explorer.documents({"first": str(n), "most": "100"})["rows"] for n in (0, 100, 200)]
    reasons = [row["reason"] for page in rows for row in page]
    kept = explorer.run({})["kept"]
    assert reasons[: min(kept, 300)] == [None] * min(kept, 300)
    words = explorer.text({"q": "the", "most": "500"})["rows"]
    ended = [row["reason"] is None for row in words]
    assert any(ended) and not all(ended) and ended == sorted(ended, reverse=True)
    stages = [explorer.ledger.stages.index(row["stage"]) for row in words if row["stage"]]
    assert stages == sorted(stages, reverse=True)  # then those that came furthest


def test_tokens_are_told_from_epochs(explorer: Explorer, viewed_run: Path) -> None:
    found = explorer.run({})
    drawn = pq.read_table(viewed_run / "mix" / "documents", columns=["tokens", "repeats"])
    pairs = [(row["tokens"], row["repeats"]) for row in drawn.to_pylist()]
    assert found["distinct_tokens"] == sum(tokens for tokens, _ in pairs)
    assert found["tokens"] == sum(tokens * times for tokens, times in pairs)
    assert found["epochs"] == round(found["tokens"] / found["distinct_tokens"], 4)
    facts = {e["stage"]: e for e in collect(str(viewed_run))["funnel"]}
    assert facts["mix"]["distinct_tokens"] == found["distinct_tokens"]


def test_a_limit_of_one_language_is_shown_over_its_documents(explorer: Explorer) -> None:
    languages = explorer.signals.of(explorer.ledger.codes["language"])
    names = explorer.ledger.values["language"]
    group = [x for x in explorer.limits({})["limits"] if x["reason"] == "llama3.kl_divergence"]
    own = [limit["language"] for limit in group if limit["language"]]
    assert own and any(limit["language"] is None for limit in group)
    total = 0
    for limit in group:
        found = explorer.signal({"limit": str(limit["limit"])})
        one = [name == limit["language"] for name in names]
        rest = [name not in own for name in names]
        shown = np.array(one if limit["language"] else rest)[languages]
        assert found["documents"] == shown.sum()
        assert sum(found["counts"]["removed"]) == limit["removed"]
        total += found["documents"]
    assert total == len(languages)


def test_rules_and_reasons_say_what_they_measure(explorer: Explorer) -> None:
    meanings = explorer.run({})["meanings"]
    for limit in explorer.limits({})["limits"]:
        assert meanings[limit["reason"]] == meanings[limit["signal"]]
    for stage in explorer.funnel({}):
        assert {r["reason"] for r in stage["removed"]} <= meanings.keys()


def test_documents_of_a_table_have_their_ids_and_columns(table_run: Path) -> None:
    explorer = Explorer(str(table_run))
    found = explorer.documents({"q": "doc-5"})["rows"]
    assert [row["title"] for row in found] == ["Title 5"]
    own = explorer.document({"row": str(found[0]["row"])})["own"]
    act = "<img src=x onerror=window.pwned=1>"
    assert own == {act: act, "turned\u202e": "\u202eabc", "stars": "5"}
    for row in explorer.documents({})["rows"]:
        assert len(row["url"]) <= 2001 and len(row["title"]) <= 2001


def test_lines_that_are_alike_differ_in_words(explorer: Explorer) -> None:
    assert changed_words(["a", " ", "b"], ["a", " ", "c"]) == (
        [("a ", False), ("b", True)],
        [("a ", False), ("c", True)],
    )
    assert changed_words(["a"], ["b"]) is None
    clusters = explorer.clusters({})["clusters"]
    rows = [explorer.document({"row": str(c["first"])}) for c in clusters]
    pairs = [(d["row"], d["cluster"]["kept"][0]["row"]) for d in rows if d["cluster"]["kept"]]
    parted = 0
    for row, kept in pairs:
        for line in explorer.difference({"row": str(row), "with": str(kept)})["lines"]:
            if len(line) == 3:
                parted += 1
                assert "".join(text for text, _ in line[2]) == line[1]
    assert parted


@pytest.mark.parametrize("sort", ["characters", "tokens", "date", "value", "host", "fate"])
def test_pages_of_a_table_are_its_order_cut(explorer: Explorer, sort: str) -> None:
    for down in ("", "1"):
        query = {"sort": sort, "down": down}
        whole = [r["row"] for r in explorer.documents(query | {"most": "500"})["rows"]]
        pages = [
            r["row"]
            for first in range(0, len(whole), 70)
            for r in explorer.documents(query | {"first": str(first), "most": "70"})["rows"]
        ]
        assert pages[: len(whole)] == whole
        assert len({*whole}) == len(whole)


def test_a_document_has_the_decisions_of_why(
    explorer: Explorer, viewed_run: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    rows = [r["row"] for r in explorer.documents({"most": "500"})["rows"]]
    for row in rows[:: len(rows) // 12]:
        found = explorer.document({"row": str(row)})
        assert main(["why", found["id"], "--run", str(viewed_run), "--json"]) == 0
        stories = json.loads(capsys.readouterr().out)
        told = next(s for s in stories if s["source"] == found["source"])["decisions"]
        told = [d for d in told if d["stage"] != "tokenize"]
        for ours, theirs in zip(found["decisions"], told, strict=True):
            wanted = ("stage", "decision", "reason", "value", "threshold", "cut", "mended")
            assert {k: ours[k] for k in wanted if k in ours} == {
                k: theirs[k] for k in wanted if k in theirs
            }
        whole = "".join(t for t, kind, *_ in found["segments"] if kind != "cut")
        read = explorer.ledger.read(explorer.folder, [row], ["text"])[0]
        if found["reason"] is None:
            assert whole == read["text"]


def test_pages_of_clusters_are_their_order_cut(explorer: Explorer) -> None:
    whole = explorer.clusters({"most": "500"})
    sizes = [cluster["removed"] for cluster in whole["clusters"]]
    assert len(sizes) == whole["all"] > 10 and sizes == sorted(sizes, reverse=True)
    firsts = range(0, len(sizes), 10)
    pages = [explorer.clusters({"first": str(n), "most": "10"}) for n in firsts]
    assert [c for page in pages for c in page["clusters"]] == whole["clusters"]
    assert all(page["sizes"] == whole["sizes"] for page in pages)


def test_clusters_have_their_members(explorer: Explorer) -> None:
    found = explorer.clusters({})
    largest = found["clusters"][0]
    cluster = explorer.document({"row": str(largest["kept_row"])})["cluster"]
    assert cluster["all"] == largest["removed"] == len(cluster["removed"])
    assert cluster["kept"][0]["row"] == largest["kept_row"]
    other = cluster["removed"][0]["row"]
    lines = explorer.difference({"row": str(other), "with": str(largest["kept_row"])})["lines"]
    assert {sign for sign, _ in lines} <= {" ", "-", "+"}


def test_two_runs_flip_as_their_files_say(
    explorer: Explorer, viewed_run: Path, changed_run: Path
) -> None:
    found = explorer.compare({})
    lost = sum(f["documents"] for f in found["flips"] if f["now"].startswith("filter: gopher.word"))
    assert lost == len(ids(viewed_run, "filter") - ids(changed_run, "filter"))
    assert found["only"] == [0, 0]
    flip = found["flips"][0]
    rows = explorer.flipped({"was": flip["was"], "now": flip["now"]})["rows"]
    assert len(rows) == min(flip["documents"], 100)


def test_two_runs_differ_in_settings_signals_and_mix(
    explorer: Explorer, viewed_run: Path, changed_run: Path
) -> None:
    found = explorer.compare({})
    assert found["settings"] == [[KEY, "50.0", f"{THRESHOLD}.0"]]
    assert [[m["stage"] for m in side] for side in found["mixes"]] == [["mix"], ["mix"]]
    assert found["mixes"][0][0]["notes"]["mix"] != found["mixes"][1][0]["notes"]["mix"]
    assert "gopher_word_count" in found["signals"]
    held = explorer.compared({"signal": "gopher_word_count"})
    for side, run in (("kept", viewed_run), ("removed", changed_run)):
        files = sorted((run / "filter" / "documents").glob("*.parquet"))
        signals = [s for f in files for s in pq.read_table(f)["signals"].to_pylist()]
        assert sum(held["counts"][side]) == len(signals)
        middle = statistics.median(s["gopher_word_count"] for s in signals)
        assert held["medians"][side == "removed"] == middle


def test_a_run_that_was_stopped_says_what_is_missing(viewed_run: Path, tmp_path: Path) -> None:
    stopped = tmp_path / "run"
    shutil.copytree(viewed_run, stopped)
    for stage in ("mix", "tokenize"):
        shutil.rmtree(stopped / stage)
    explorer = Explorer(str(stopped))
    assert explorer.run({})["unfinished"] == ["mix", "tokenize"]
    assert explorer.run({})["stages"][-1] == "filter"
    assert explorer.questions["mix"]({}) == []


def test_the_draw_depends_on_the_seed(
    explorer: Explorer, viewed_run: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    rule = explorer.funnel({})[1]["removed"][0]["reason"]
    arguments = ["sample", "--run", str(viewed_run), "--rule", rule, "-n", "7", "--seed", "3"]
    assert main([*arguments, "--json"]) == 0
    told = [row["id"] for row in json.loads(capsys.readouterr().out)]
    drawn = draw(explorer.ledger, rule, 7, seed=3).tolist()
    assert told == [r["id"] for r in explorer.ledger.read(explorer.folder, drawn, ["id"])]
    assert len(told) == len({*told}) == 7
    assert draw(explorer.ledger, rule, 7, seed=4).tolist() != drawn
    assert main(["sample", "--run", str(viewed_run), "--rule", "no.rule"]) == 2
    assert "no document was removed by 'no.rule'" in capsys.readouterr().err


def test_what_was_prepared_gives_the_same_answers(
    explorer: Explorer, viewed_run: Path, tmp_path: Path
) -> None:
    prepare(str(viewed_run), tmp_path / "view")
    other = Explorer(str(viewed_run), prepared=tmp_path / "view")
    assert other.ledger.prepared is not None
    limit = limit_of(explorer, KEY)["limit"]
    for name, query in [
        ("funnel", {"language": "en"}),
        ("values", {}),
        ("limits", {}),
        ("signal", {"limit": str(limit)}),
        ("change", {"limit": str(limit), "threshold": "99"}),
        ("documents", {"q": "example", "sort": "characters"}),
        ("clusters", {}),
    ]:
        assert other.questions[name](query) == explorer.questions[name](query), name


def test_prepared_runs_are_compared_and_searched_alike(
    explorer: Explorer,
    viewed_run: Path,
    changed_run: Path,
    tmp_path: Path,
) -> None:
    for name, run in (("ours", viewed_run), ("theirs", changed_run)):
        prepare(str(run), tmp_path / name)
    held = Explorer(
        str(viewed_run),
        str(changed_run),
        prepared=tmp_path / "ours",
        other_prepared=tmp_path / "theirs",
    )
    for question in ("compare", "sides"):
        assert held.questions[question]({}) == explorer.questions[question]({})
    found = Explorer(str(viewed_run), prepared=tmp_path / "ours").ledger
    for row in range(0, len(found), 17):
        name = found.read(held.folder, [row], ["id"])[0]["id"]
        same = found.by_key.of_key(ledger.key_of(name)).tolist()
        assert same == explorer.ledger.by_key.of_key(ledger.key_of(name)).tolist()
        assert row in same
    assert not len(found.by_key.of_key(0)) and not len(found.by_key.of_key((1 << 64) - 1))


KEYS = st.lists(st.integers(1, 60), max_size=40)


@given(KEYS, KEYS, st.booleans())
def test_keys_are_matched_as_by_a_dictionary(
    ours: list[int], theirs: list[int], is_known: bool
) -> None:
    sides = [
        ledger.Groups.of(np.array(keys, np.uint64), np.arange(len(keys)))
        for keys in (ours, ours if is_known else theirs)
    ]
    firsts = [{int(k): i for i, k in reversed([*enumerate(g.keys)])} for g in sides]
    places = np.arange(max(len(ours), len(theirs), 1))
    matched = {
        pair
        for a, b in _matched(sides[0], sides[1])
        for pair in zip(places[a].tolist(), places[b].tolist(), strict=True)
    }
    assert matched == {(firsts[0][k], firsts[1][k]) for k in firsts[0] if k in firsts[1]}


def test_what_was_prepared_of_another_run_is_not_used(
    changed_run: Path, viewed_run: Path, tmp_path: Path
) -> None:
    prepare(str(viewed_run), tmp_path / "view")
    other = Explorer(str(changed_run), prepared=tmp_path / "view")
    assert other.ledger.prepared is None
    assert other.funnel({}) == Explorer(str(changed_run)).funnel({})


def test_nothing_in_the_run_changes(viewed_run: Path, changed_run: Path, tmp_path: Path) -> None:
    before = digests(viewed_run)
    explorer = Explorer(str(viewed_run), str(changed_run))
    needed = {"q": "example", "row": "3", "with": "4", "limit": "0", "threshold": "1"}
    needed |= {"signal": "quality", "was": "kept", "now": "kept"}
    for name, ask in explorer.questions.items():
        if name not in ("blocks", "policy"):  # these are of other runs
            ask(needed)
    assert digests(viewed_run) == before


@pytest.mark.parametrize(
    ("name", "query", "told"),
    [
        ("documents", {"sort": "text"}, "can't be sorted by 'text'"),
        ("documents", {"first": "x"}, "first: expected a number"),
        ("document", {"row": "99999999"}, "no document '99999999'"),
        ("change", {"limit": "9999", "threshold": "1"}, "no limit '9999'"),
        ("change", {"limit": "0", "threshold": "much"}, "threshold: expected a number"),
        ("signal", {"signal": "nothing"}, "no signal 'nothing'"),
        ("hosts", {"order": "text"}, "can't be ordered"),
    ],
)
def test_wrong_questions_get_one_line(
    explorer: Explorer, name: str, query: dict[str, str], told: str
) -> None:
    with pytest.raises(ConfigError, match=told):
        explorer.questions[name](query)


def test_a_run_without_a_stage_that_measures(viewed_run: Path) -> None:
    folder, stages = load_run(str(viewed_run))
    assert "filter" in stages
    explorer = Explorer(str(viewed_run))
    explorer.ledger.stages = ["extract"]
    assert explorer.run({})["has_signals"] is False
    with pytest.raises(ConfigError, match="no stage that computes"):
        explorer.limits({})
    assert folder.exists()


def test_a_run_in_an_object_store_is_the_same(explorer: Explorer, viewed_run: Path) -> None:
    store = fsspec.filesystem("memory")
    store.put(str(viewed_run), "/viewed", recursive=True)
    try:
        remote = Explorer("memory://viewed")
        assert remote.funnel({}) == explorer.funnel({})
        assert remote.limits({}) == explorer.limits({})
        assert remote.hosts({}) == explorer.hosts({})
        row = {"row": "0"}
        assert remote.document(row) == explorer.document(row)
        words = {"q": "lighthouse keeper counted", "most": "5"}
        assert remote.text(words) == explorer.text(words)
    finally:
        store.rm("/viewed", recursive=True)


def test_a_stage_that_read_what_no_filter_had_measured(sample_run: Path, tmp_path: Path) -> None:
    """Commands of single stages into one folder, each with an input of its own."""
    output = tmp_path / "out"
    for stage, before in (
        ("classify", sample_run / "identify-language"),
        ("filter", sample_run / "identify-language"),
        ("mix", output / "classify"),
    ):
        curate_well([stage, "--input", before, "--output", output, "--workers", "0"])
    explorer = Explorer(str(output))
    lost = pq.read_table(output / "filter" / "removed").num_rows
    assert len(explorer.signals.rows) == lost > 0
    limit = next(n for n, limit in enumerate(explorer.signals.judges.limits) if limit.signal)
    assert explorer.signal({"limit": str(limit)})["documents"] == lost
