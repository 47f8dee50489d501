"""A second run removes the hosts that had much personal data in the first."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from curation.errors import ConfigError
from curation.filters.filter_settings import PersonalHostSettings
from curation.filters.personal_hosts import FOLDER, REASON, PersonalHosts, count_hosts
from pipelines.cli import main
from tests.conftest import ROOT, curate


def finished(run: Path, pages: dict[str, list[int]], stage: str = "filter") -> Path:
    """A finished run in which the pages of each host held so many items, in two files."""
    folder = run / stage
    (folder / FOLDER).mkdir(parents=True)
    urls = [f"https://{host}/{i}" for host, items in pages.items() for i in range(len(items))]
    items = np.array([n for held in pages.values() for n in held], np.int64)
    names = []
    for part in (0, 1):
        names.append(f"{FOLDER}/part-{part}.parquet")
        batch = count_hosts(pa.array(urls[part::2], pa.string()), items[part::2])
        pq.write_table(pa.table(batch), folder / names[-1])
    manifest = {"stage": stage, "files": {n: {} for n in [*names, "documents/a"]}}
    (folder / "manifest.json").write_text(json.dumps(manifest))
    return run


PAGES = {
    "leak.example": [30, 12],
    "large.example": [40] + [0] * 99,  # one page of addresses among a hundred
    "footer.example": [1] * 60,
    "small.example": [19],
    "": [50],
}


def settings(*runs: Path, **changes: float) -> PersonalHostSettings:
    return PersonalHostSettings.model_validate({"runs": list(map(str, runs)), **changes})


def test_items_and_items_per_document_decide(tmp_path: Path) -> None:
    run = finished(tmp_path / "out", PAGES)
    assert PersonalHosts(settings(run)).rates == {"leak.example": 21.0}
    assert PersonalHosts(settings(run / "filter")).rates == {"leak.example": 21.0}
    assert set(PersonalHosts(settings(run, min_items=19)).rates) == {
        "leak.example",
        "small.example",
    }
    assert set(PersonalHosts(settings(run, min_items_per_document=0.4)).rates) == {
        "leak.example",
        "large.example",
        "footer.example",
    }
    other = finished(tmp_path / "other", {"small.example": [21], "leak.example": [0] * 10})
    assert PersonalHosts(settings(run, other)).rates == {"small.example": 20.0}


def test_only_the_host_itself_is_removed(tmp_path: Path) -> None:
    run = finished(tmp_path / "out", PAGES)
    (tmp_path / "allow").write_text("stays.leak.example\n")
    urls = [
        "http://LEAK.example:80/x",
        "https://a.leak.example/",
        "https://large.example/",
        None,
        "",
    ]
    found = PersonalHosts(settings(run)).check(pa.array(urls))
    assert found.reason.to_pylist() == [REASON, None, None, None, None]
    assert (found.value[0].as_py(), found.threshold[0].as_py()) == (21.0, 5.0)
    (tmp_path / "allow").write_text("leak.example\n")
    excused = PersonalHosts(settings(run), (str(tmp_path / "allow"),)).check(pa.array(urls))
    assert excused.reason.null_count == len(urls)


def test_runs_that_cannot_serve_are_named(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="nowhere: no finished filter stage"):
        PersonalHosts(settings(tmp_path / "nowhere"))
    old = finished(tmp_path / "old", {"a.example": [9]})
    file = old / "filter" / FOLDER / "part-0.parquet"
    pq.write_table(pq.read_table(file).drop_columns(["pages"]), file)
    with pytest.raises(ConfigError, match="has no column pages: an older version"):
        PersonalHosts(settings(old))
    (old / "filter" / "manifest.json").write_text("{}")
    with pytest.raises(ConfigError, match="not a manifest"):
        PersonalHosts(settings(old))


def test_two_runs(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    first, second = tmp_path / "first", tmp_path / "second"
    page = f"{ROOT}/data_samples/english-00000.warc.gz"
    chain = "extract,identify-language,filter"
    run = ["run", "sample", "--input", page, "--stages", chain, "--workers", "0", "--output"]
    assert curate(*run, first).returncode == 0
    hosts = pa.concat_tables(
        [pq.read_table(f) for f in sorted((first / "filter" / FOLDER).glob("*.parquet"))]
    )
    totals = hosts.group_by("host").aggregate([("pages", "sum"), ("items", "sum")]).to_pylist()
    worst = max(totals, key=lambda row: (row["items_sum"] / row["pages_sum"], row["host"]))
    rate = worst["items_sum"] / worst["pages_sum"]
    assert rate > 0
    named = f"{{runs: [{first}], min_items: 1, min_items_per_document: {rate}}}"
    again = [*run, second, "--set", f"filter.personal_hosts={named}"]
    done = curate(*again)
    assert done.returncode == 0, done.stderr
    manifest = json.loads((second / "filter" / "manifest.json").read_text())
    assert manifest["counts"]["removed"][REASON]["documents"] >= 1
    assert any(name.endswith("filter/manifest.json") for name in manifest["lists"])
    removed = pa.concat_tables(
        [pq.read_table(f) for f in sorted((second / "filter" / "removed").glob("*.parquet"))]
    ).to_pylist()
    row = next(r for r in removed if r["reason"] == REASON)
    assert row["value"] == pytest.approx(rate)
    capsys.readouterr()
    assert main(["why", row["id"], "--run", str(second)]) == 0
    assert REASON in capsys.readouterr().out
    # The same first run is not judged again, another is noticed.
    before = (second / "filter" / "manifest.json").stat().st_mtime_ns
    assert curate(*again).returncode == 0
    assert (second / "filter" / "manifest.json").stat().st_mtime_ns == before
    with (first / "filter" / "manifest.json").open("a") as file:
        file.write("\n")
    assert curate(*again).returncode == 0
    assert (second / "filter" / "manifest.json").stat().st_mtime_ns > before
    own = curate(*run, second, "--set", f"filter.personal_hosts={{runs: [{second}]}}")
    assert own.returncode == 2
    assert "is the folder of this run" in own.stderr
    absent = curate(*run, second, "--set", "filter.personal_hosts={runs: [no/run]}")
    assert absent.returncode == 2
    assert "filter.personal_hosts.runs[0]: no/run: no finished" in absent.stderr
