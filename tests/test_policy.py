"""Measure, approve, apply."""

from __future__ import annotations

import json
import shutil
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import yaml

from curation.classify.classify_settings import default_settings
from curation.policy import ALL, Approval, Corpus, Counts, Policy, drift
from curation.schema import Verdicts, recorded
from pipelines.cli import main
from pipelines.reading.explorer import Explorer
from pipelines.run_folder import load_run
from pipelines.view.server import Server
from tests.conftest import curate_well
from tests.folders import digests
from tests.test_overwriting import state
from tests.view.conftest import serving

SAMPLES = "builtin:data_samples/*.*z*"


def policy(**changes: Any) -> Policy:
    removes = {"filter": {"a.b": {ALL: 0.10, "de": 0.20, "en": 0.05}}}
    return Policy(
        recipe="llama3",
        corpus=Corpus(documents=1000, root="0"),
        approved=Approval(by=None, date=None, notes=None),
        **{
            "margin": 0.02,
            "margins": {},
            "least_documents": 100,
            "settings": {"filter": {"rules": {}}},
            "removes": removes,
            **changes,
        },
    )


def counted(documents: dict[str, int], **removed: dict[str, int]) -> Counts:
    return Counts(documents, {"filter": {k.replace("_", "."): v for k, v in removed.items()}})


def test_shares_within_their_margins() -> None:
    counts = counted({ALL: 2000, "de": 1000, "en": 1000}, a_b={ALL: 240, "de": 219, "en": 21})
    found = [(d.language, d.approved, d.found) for d in drift(policy(), counts)]
    assert found == [("en", 0.05, 0.021)]
    assert drift(policy(margin=0.03), counts) == []
    assert drift(policy(margins={"a.b": 0.03}), counts) == []


def test_rules_and_languages_that_come_or_go() -> None:
    counts = counted({ALL: 1000, "de": 90, "fr": 100}, c_d={ALL: 30, "fr": 3, "de": 27})
    found = {(d.reason, d.language): (d.approved, d.found) for d in drift(policy(), counts)}
    # German has too few documents now, English none.
    assert found == {
        ("a.b", ALL): (0.10, 0.0),
        ("c.d", ALL): (0.0, 0.03),
        ("c.d", "fr"): (0.0, 0.03),
    }


def test_verdicts_are_recorded_in_order() -> None:
    batch = pa.record_batch({"id": ["1", "2", "3"]})
    first = Verdicts.where(np.array([True, False, True]), "x.y", np.array([1.0, 2.0, 3.0]), 0.5)
    batch, left = recorded(batch, first, "one")
    assert left.kept.to_pylist() == [True] * 3
    failed = pa.array(["error.mine", None, "z"], pa.string())
    batch, left = recorded(batch, Verdicts(failed), "two")
    assert left.reason.to_pylist() == ["error.mine", None, None]
    one = {"stage": "one", "reason": "x.y", "value": 3.0, "threshold": 0.5}
    two = {"stage": "two", "reason": "z", "value": None, "threshold": None}
    assert batch.column("verdicts").to_pylist() == [[{**one, "value": 1.0}], [], [one, two]]


@pytest.fixture(scope="module")
def measured(tmp_path_factory: pytest.TempPathFactory) -> Path:
    output = tmp_path_factory.mktemp("policy") / "measured"
    curate_well(["measure", "sample", "--input", SAMPLES, "--output", output, "--workers", "0"])
    return output


@pytest.fixture(scope="module")
def written(measured: Path) -> Path:
    place = measured.parent / "policy.yaml"
    curate_well(["policy", "--run", measured, "--output", place, "--by", "A. Name"])
    return place


def test_a_measured_run_keeps_what_thresholds_would_remove(
    measured: Path, sample_run: Path
) -> None:
    stages = load_run(str(measured))[1]
    assert stages[-1] == "filter" and "mix" not in stages
    kept = pq.read_table(measured / "filter" / "documents")
    reasons: dict[str, str] = {}
    for row in kept.select(["id", "verdicts"]).to_pylist():
        if row["verdicts"]:
            reasons[row["id"]] = row["verdicts"][0]["reason"]
    # What an ordinary run removes by these rules is what this one recorded, duplicates aside.
    removed: dict[str, str] = {}
    for stage in ("identify-language", "classify", "filter"):
        for row in pq.read_table(sample_run / stage / "removed").to_pylist():
            removed[row["id"]] = row["reason"]
    assert removed and {k: v for k, v in reasons.items() if k in removed} == {
        k: v for k, v in removed.items() if k in reasons
    }
    assert len(set(removed) - set(reasons)) < 0.1 * len(removed)


def test_a_policy_replaces_no_file_of_a_run(
    measured: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Nor one of the user's; but an earlier policy."""
    place = measured / "SHA256SUMS"
    before = place.read_bytes()
    assert main(["policy", "--run", str(measured), "--output", str(place)]) == 2
    assert f"{place}: belongs to a run" in capsys.readouterr().err and place.read_bytes() == before
    mine = tmp_path / "mine.yaml"
    command = ["policy", "--run", str(measured), "--output", str(mine)]
    mine.write_text("extends: llama3\n")
    assert main(command) == 2 and mine.read_text() == "extends: llama3\n"
    assert "mine.yaml: already exists" in capsys.readouterr().err
    mine.unlink()
    assert main(command) == main(command) == 0


def test_a_policy_says_what_rules_remove(written: Path, measured: Path) -> None:
    content = yaml.safe_load(written.read_text())
    assert content["approved"]["by"] == "A. Name"
    least = default_settings().min_quality["general"]
    assert content["settings"]["classify"]["min_quality"]["general"] == least
    share = content["removes"]["classify"]["quality.low_score"][ALL]
    documents = content["corpus"]["documents"]
    kept = pq.read_table(measured / "filter" / "documents").column("verdicts").to_pylist()
    firsts = [v[0]["reason"] for v in kept if v]
    assert round(share * documents) == firsts.count("quality.low_score")


def test_a_policy_with_another_threshold_is_that_of_a_run_measured_with_it(
    measured: Path, written: Path, tmp_path: Path
) -> None:
    changes = ["--set", "filter.rules.gopher.word_count.min=130"]
    again = tmp_path / "measured"
    shutil.copytree(measured, again)
    measure = ["measure", "sample", "--input", SAMPLES, "--output", again, "--workers", "0"]
    curate_well([*measure, *changes])
    decided, remeasured = tmp_path / "decided.yaml", tmp_path / "remeasured.yaml"
    curate_well(["policy", "--run", measured, "--output", decided, *changes])
    curate_well(["policy", "--run", again, "--output", remeasured])
    ours, theirs = (yaml.safe_load(place.read_text()) for place in (decided, remeasured))
    assert ours["settings"] == theirs["settings"]
    assert ours["removes"] == theirs["removes"]
    before = yaml.safe_load(written.read_text())
    assert ours["removes"] != before["removes"]


def test_a_measured_run_shows_what_its_thresholds_would_remove(measured: Path) -> None:
    explorer = Explorer(str(measured))
    assert explorer.run({})["unfinished"] == []
    verdicts = pq.read_table(measured / "filter" / "documents").column("verdicts").to_pylist()
    firsts = Counter(verdict["reason"] for row in verdicts for verdict in row or [])
    failing: Counter[str] = Counter()
    for limit in explorer.questions["limits"]({})["limits"]:
        failing[limit["reason"]] += limit["removed"]
        counts = explorer.questions["signal"]({"limit": str(limit["limit"])})["counts"]
        assert sum(map(sum, counts.values())) <= len(verdicts)
        assert sum(counts["removed"]) >= limit["removed"]
    # A document counts for its first reason there, and for each that it fails here.
    assert failing.total() and all(failing[reason] >= firsts[reason] for reason in failing)


def test_thresholds_moved_in_the_explorer_are_exported(measured: Path, tmp_path: Path) -> None:
    changes = ("filter.rules.gopher.word_count.min=130", "filter.rules.gopher.stop_words.min=3")
    target = tmp_path / "policy.yaml"
    sets = [part for change in changes for part in ("--set", change)]
    curate_well(["policy", "--run", measured, "--output", target, *sets])
    found = Explorer(str(measured)).policy({"set": "\n".join(changes)})["policy"]
    assert yaml.safe_load(found) == yaml.safe_load(target.read_text())


def test_a_policy_is_saved_in_the_browser(measured: Path, tmp_path: Path) -> None:
    from tests.view import test_browser as browsers

    if browsers.pytestmark.args[0]:
        pytest.skip("no Chromium with its driver here")
    key = "filter.rules.gopher.word_count.min"
    server = Server(Explorer(str(measured)))
    with serving(server), browsers.started() as held:
        held.execute_cdp_cmd(
            "Browser.setDownloadBehavior", {"behavior": "allow", "downloadPath": str(tmp_path)}
        )
        reader = browsers.Reader(browsers.resized(held), server.url)
        found = server.explorer.limits({})["limits"]
        number = next(limit["limit"] for limit in found if limit["key"] == key)
        reader.open(f"signals?limit={number}&threshold=130")
        reader.click(reader.find("button.export"))
        saved = tmp_path / "policy.yaml"
        reader.wait(lambda: saved.exists() and saved.stat().st_size)
    policy = yaml.safe_load(saved.read_text())
    assert policy["settings"]["filter"]["rules"]["gopher"]["word_count"]["min"] == 130


def test_only_thresholds_are_changed_in_a_policy(
    measured: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    wrong = ["--set", "filter.rules.gopher.word_cuont.min=130"]
    target = tmp_path / "policy.yaml"
    assert main(["policy", "--run", str(measured), "--output", str(target), *wrong]) == 2
    assert "word_count" in capsys.readouterr().err and not target.exists()


def test_applied_to_the_same_corpus_it_is_an_ordinary_run(
    written: Path, sample_run: Path, tmp_path: Path
) -> None:
    output = tmp_path / "out"
    arguments = ["apply", "sample", "--policy", written, "--input", SAMPLES, "--output", output]
    printed = curate_well([*arguments, "--workers", "0"])
    assert "every share is within its margin" in printed
    ours, theirs = digests(output / "tokenize"), digests(sample_run / "tokenize")
    shards = {name: digest for name, digest in theirs.items() if name.startswith("shards/")}
    assert shards and {name: ours[name] for name in shards} == shards
    noted = json.loads((output / "tokenize" / "manifest.json").read_text())["recipe"]["policy"]
    assert noted["approved"]["by"] == "A. Name" and "force" not in noted


def test_a_corpus_that_drifted_is_refused(
    written: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    crawl = tmp_path / "crawl.jsonl"
    junk = [
        {"text": f"Buy cheap pills now now now {i} " * 9, "url": f"http://a/{i}"} for i in range(40)
    ]
    crawl.write_text("".join(json.dumps(row) + "\n" for row in junk))
    output = str(tmp_path / "out")
    arguments = ["apply", "sample", "--policy", str(written), "--input", str(crawl)]
    arguments += ["--output", output, "--workers", "0", "--quiet"]
    assert main(arguments) == 1
    told = capsys.readouterr()
    assert "left the policy's margins" in told.err and "approved" in told.out
    assert not (tmp_path / "out" / "tokenize").exists()
    assert main([*arguments, "--force", " "]) == 2
    assert "--force: give a reason" in capsys.readouterr().err
    assert main([*arguments, "--force", "a crawl of junk, on purpose"]) == 0
    before = state(tmp_path / "out")
    assert main(arguments) == 1  # a finished run stays as it is
    assert state(tmp_path / "out") == before
    manifest = json.loads((tmp_path / "out" / "tokenize" / "manifest.json").read_text())
    assert manifest["recipe"]["policy"]["force"] == "a crawl of junk, on purpose"


def test_stages_of_ones_own_measured_and_applied(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """A table needs no recipe file, and what was measured is what is removed."""
    rows = [{"text": f"A fine day at sea, number {n}. " * 4} for n in range(40)]
    rows += [{"text": "word " * 60} for _ in range(20)]
    (tmp_path / "rows.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    common = ["llama3", "--stages", "identify-language,filter", "--workers", "0", "--quiet"]
    common += ["--input", str(tmp_path / "rows.jsonl")]
    before, after = str(tmp_path / "measured"), str(tmp_path / "out")
    target = str(tmp_path / "policy.yaml")
    assert main(["measure", *common, "--output", before]) == 0
    assert main(["policy", "--run", before, "--output", target]) == 0
    assert main(["apply", *common, "--policy", target, "--output", after]) == 0
    assert "every share is within its margin" in capsys.readouterr().out
    assert (
        load_run(after)[1] == load_run(before)[1] == ["read-tables", "identify-language", "filter"]
    )
    measured = pq.read_table(Path(before) / "filter" / "documents").to_pylist()
    removed = pq.read_table(Path(after) / "filter" / "removed")["id"].to_pylist()
    fired = {v["id"] for v in measured if any(w["stage"] == "filter" for w in v["verdicts"])}
    assert removed and set(removed) == fired
    for stages, told in (
        ("mix", "no stage removes"),
        ("fliter", "fliter"),
        (" ", "names no stage"),
    ):
        common[2] = stages
        assert main(["measure", *common, "--output", str(tmp_path / "none")]) == 2
        assert told in capsys.readouterr().err


@pytest.mark.parametrize(
    ("change", "told"),
    [
        ("margin: 2", "margin"),
        ("settings: {filtre: {rules: {}}}", "filtre"),
        ("margn: 1", "margn"),
    ],
)
def test_a_policy_with_a_mistake(
    written: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], change: str, told: str
) -> None:
    place = tmp_path / "policy.yaml"
    tree = yaml.safe_load(written.read_text()) | yaml.safe_load(change)
    place.write_text(yaml.safe_dump(tree))
    arguments = ["apply", "sample", "--policy", str(place), "--input", SAMPLES]
    assert main([*arguments, "--output", str(tmp_path / "out")]) == 2
    assert told in capsys.readouterr().err


def test_only_a_measured_run_gives_a_policy(
    sample_run: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    place = str(tmp_path / "policy.yaml")
    assert main(["policy", "--run", str(sample_run), "--output", place]) == 2
    assert "not a measured run" in capsys.readouterr().err
    assert main(["apply", "sample", "--policy", place]) == 2
    assert "no such file" in capsys.readouterr().err
