"""`--dry-run` says what a command would do, and writes nothing; `curate runs` lists runs."""

from __future__ import annotations

import contextlib
import fcntl
import json
import shutil
from pathlib import Path
from typing import Any

import pytest

from curation.stages import known_stages
from pipelines.cli import COMMANDS, build_parser, main, plug_ins
from tests.test_overwriting import _ENDS, _MINE, rows, run, state

_READ_ONLY = {"trace", "why", "verify", "worker-pool", "recipes", "models", "runs", "completion"}
_READ_ONLY |= {"cancel", "extract-file", "plan", "receipt"}


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A working folder with two tables, a shard each, and a run over them in `out`."""
    place = tmp_path_factory.mktemp("made")
    for name in ("a", "b"):
        rows(place / f"crawl/{name}.jsonl", *(f"{name}{n}" * 40_000 for n in range(9)))
    (place / "mine.yaml").write_text(_MINE.replace("]", ", filter, tokenize]"))
    with contextlib.chdir(place):
        assert run("run", "mine.yaml", "--input", "crawl") == 0
    return place


@pytest.fixture
def home(made: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A copy of it, where the test is."""
    monkeypatch.chdir(tmp_path)
    shutil.copytree(made, tmp_path, dirs_exist_ok=True)
    return tmp_path


def told(capsys: pytest.CaptureFixture[str], *arguments: str) -> str:
    """What a command prints with `--dry-run`; it ends well and writes nothing."""
    before = state(Path.cwd())
    capsys.readouterr()
    with pytest.raises(SystemExit) as ended:
        main([*arguments, "--dry-run"])
    assert ended.value.code == 0
    assert state(Path.cwd()) == before
    return capsys.readouterr().out


def forecast(capsys: pytest.CaptureFixture[str], *more: str) -> dict[str, dict[str, Any]]:
    """The forecast of each stage of the run that is not complete."""
    found = told(capsys, "run", "mine.yaml", "--input", "crawl", *more, *_ENDS, "--json")
    stages = json.loads(found)["stages"]
    assert all(bool(one["shards"]) <= bool(one["why"]) for one in stages)
    return {one["stage"]: one for one in stages if one["why"]}


def test_a_finished_run_has_nothing_to_do(home: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert forecast(capsys) == {}
    words = told(capsys, "run", "mine.yaml", "--input", "crawl", *_ENDS)
    assert "extract: complete\n" in words and words.endswith("nothing was written\n")


def test_a_changed_threshold(home: Path, capsys: pytest.CaptureFixture[str]) -> None:
    changed = "filter.rules.gopher.word_count.min=3"
    found = forecast(capsys, "--set", changed)
    assert list(found) == ["filter", "tokenize"]
    assert found["filter"]["why"].startswith("filter.rules.gopher.word_count.min: 50.0 -> 3.0")
    assert (found["filter"]["shards"], found["filter"]["of"]) == (2, 2)
    assert found["filter"]["documents"] == 18 and found["filter"]["cpu_seconds"] > 0
    assert found["filter"]["bytes"] > 0
    assert found["tokenize"]["why"] == "reads what filter makes"
    assert "filter.rules.c4." in forecast(capsys, "--set", "filter.rules.c4=null")["filter"]["why"]
    before = {s: (home / f"out/{s}/manifest.json").read_bytes() for s in ("extract", "filter")}
    assert run("run", "mine.yaml", "--input", "crawl", "--set", changed) == 0  # as foreseen
    now = {stage: (home / f"out/{stage}/manifest.json").read_bytes() for stage in before}
    assert json.loads(now["extract"])["files"] == json.loads(before["extract"])["files"]
    assert json.loads(now["filter"])["key"] != json.loads(before["filter"])["key"]


def test_a_new_and_a_changed_input_cost_their_own_shards(
    home: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run("run", "mine.yaml", "--input", "crawl", "--fresh") == 0  # of inputs in this place
    rows(home / "crawl/c.jsonl", *(f"c{n}" * 40_000 for n in range(9)))
    found = forecast(capsys)
    assert found["extract"]["why"] == "inputs new: 1"
    assert [(found[s]["shards"], found[s]["of"]) for s in found] == [(1, 3), (3, 3), (3, 3), (3, 3)]
    assert found["extract"]["documents"] == 9 and found["dedup-urls"]["documents"] == 27
    rows(home / "crawl/b.jsonl", *(f"d{n}" * 40_000 for n in range(8)))
    (home / "crawl/c.jsonl").unlink()
    assert forecast(capsys)["extract"]["why"] == "inputs changed: 1"
    (home / "crawl/b.jsonl").unlink()
    assert forecast(capsys)["extract"]["why"] == "inputs gone: 1"


def test_what_is_damaged_is_made_again_alone(
    home: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    damaged = sorted((home / "out/dedup-urls/documents").iterdir())[0]
    damaged.write_bytes(damaged.read_bytes()[:-1])
    (found,) = forecast(capsys).values()
    assert (found["stage"], found["shards"], found["of"]) == ("dedup-urls", 1, 2)
    assert damaged.name in found["why"]


def test_a_new_run_and_one_that_starts_over(home: Path, capsys: pytest.CaptureFixture[str]) -> None:
    found = forecast(capsys, "--output", "new")
    assert {one["why"] for one in found.values()} == {"not run yet"}
    assert found["extract"]["documents"] is None and not (home / "new").exists()
    assert {one["why"] for one in forecast(capsys, "--fresh").values()} == {"--fresh"}
    assert "extract: removed first" in told(
        capsys, "run", "mine.yaml", "--input", "crawl", "--fresh", *_ENDS
    )
    shutil.rmtree(home / "out/filter/documents")
    (home / "out/filter/manifest.json").unlink()
    assert forecast(capsys)["filter"]["why"] == "interrupted"


def test_mixes_of_a_name_are_foreseen_too(
    sample_run: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    command = ["run", "sample", "--output", str(sample_run), "--json", "--set"]
    with pytest.raises(SystemExit):
        main([*command, "mix.mixes={late: {budget: 1000}}", "--dry-run"])
    stages = {one["stage"]: one for one in json.loads(capsys.readouterr().out)["stages"]}
    assert list(stages)[-4:] == ["mix/late", "mix", "tokenize/late", "tokenize"]
    assert stages["mix/late"]["why"] == "not run yet" and stages["filter"]["why"] == ""


#: A command of each kind that writes, without `--dry-run`.
WRITERS = {
    "measure": "measure mine.yaml --input crawl --output new",
    "apply": "apply mine.yaml --policy policy.yaml --input crawl --output new",
    "policy": "policy --run measured",
    "report": "report --run out",
    "sample": "sample --input few.parquet --output new.parquet",
    "export": "export --run out --stage filter --to jsonl.zst",
    "ablate": "ablate out other=out --output new --instant",
    "withdraw": "withdraw --run out --url-prefix http://a",
    "summary": "summary --run out",
    "train": "train quality --input crawl/a.jsonl --output new",
    "new": "new rule shouting",
    "warm-up": "warm-up",
    "view": "view --run out --prepare",
    "mix": "mix --fit results.jsonl --output new",
    "run": "run mine.yaml --input crawl --output new",
    "filter": "filter --run out",
}


def test_every_command_that_writes_is_here() -> None:
    named = {command.split()[0] for command in WRITERS.values()}
    assert {*COMMANDS, *plug_ins()} - {*_READ_ONLY} <= named
    for name in known_stages():
        options = build_parser([name]).parse_args([name, "--dry-run"])
        assert options.dry_run, name


@pytest.mark.parametrize("name", WRITERS)
def test_a_dry_run_writes_nothing(
    home: Path, capsys: pytest.CaptureFixture[str], name: str
) -> None:
    if name in ("policy", "apply"):
        measured = ["--input", "crawl", "--output", "measured"]
        (home / "mine.yaml").write_text(_MINE.replace("]", ", filter]"))
        assert run("measure", "mine.yaml", *measured) == 0
        assert main(["policy", "--run", "measured", "--output", "policy.yaml"]) == 0
    if name == "mix":
        shares = [{"a": n / 8, "b": 1 - n / 8} for n in range(1, 8)]
        lines = [
            {"run": f"{n}", "shares": s, "losses": {"x": 3 - s["a"]}} for n, s in enumerate(shares)
        ]
        (home / "results.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
    assert "nothing was written" in told(capsys, *WRITERS[name].split())


def states(capsys: pytest.CaptureFixture[str], *arguments: str) -> dict[str, dict[str, Any]]:
    """What `curate runs` lists, by run."""
    capsys.readouterr()
    assert main(["runs", *arguments, "--json"]) == 0
    return {one["run"]: one for one in json.loads(capsys.readouterr().out)}


def test_runs_are_listed(home: Path, capsys: pytest.CaptureFixture[str]) -> None:
    short = ("run", "mine.yaml", "--input", "crawl", "--stages", "extract,dedup-urls")
    for name in ("deep/in/a", "b", "work"):
        assert run(*short, "--output", name) == 0
    assert (
        run(*short[:-1], "extract", "--set", "extract.min_characters=9999999", "--output", "b") == 0
    )
    (home / "deep/in/a/dedup-urls/manifest.json").unlink()
    (home / "other/shards").mkdir(parents=True)
    for name in ("manifest", "shards/a"):  # of something else
        (home / f"other/{name}.json").write_text("{}")
    (home / "other/recipe.yaml").write_text("soup: {salt: 1}")
    (home / "loop").symlink_to(home)
    with (home / "work/.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        found = states(capsys)
    assert {name: one["state"] for name, one in found.items()} == {
        "out": "complete", "deep/in/a": "interrupted", "b": "stale", "work": "at work"
    }  # fmt: skip
    assert states(capsys, "work")["work"]["state"] == "complete"
    one = found["out"]
    assert (one["recipe"], one["documents"], one["inputs"]) == ("mine", 18, 2)
    assert one["bytes"] > 0 and len(one["root"]) == 64
    capsys.readouterr()
    assert main(["runs"]) == 0
    table = capsys.readouterr().out
    assert "complete" in table and one["root"][:8] in table
    assert main(["runs", "crawl"]) == 0
    assert "no run in it" in capsys.readouterr().out
    assert main(["runs", "nosuch"]) == 2
    for stage, left in (("extract", "complete"), ("dedup-urls", "interrupted")):
        shutil.rmtree(home / "work" / stage)
        assert states(capsys, "work")["work"]["state"] == left
    listed = (home / "out/SHA256SUMS").read_text()  # with a named mix, whose folder is gone
    (home / "out/SHA256SUMS").write_text(f"{'0' * 64}  tokenize/late/manifest.json\n{listed}")
    (home / "b/SHA256SUMS").write_bytes(b"\xff")
    assert states(capsys, "out")["out"]["state"] == "interrupted"
    assert states(capsys, "b")["b"]["state"] == "stale"


def test_runs_that_were_stopped_or_answered_are_listed(
    home: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (home / "hosts.txt").write_text("a\n")
    for name in ("all.json", "out/one.json"):
        assert main(["receipt", "--run", "out", "--hosts", "hosts.txt", "--output", name]) == 0
    assert not [*home.rglob(".work")]
    for place in (home, home / "out", home / "crawl"):  # as processes leave it that are killed
        (place / ".work").mkdir()
    assert list(states(capsys)) == ["out"] and "out" in states(capsys, "..")
