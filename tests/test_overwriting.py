"""A finished run is not overwritten by another; a command that is refused changes no file."""

from __future__ import annotations

import contextlib
import json
import os
import shutil
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest

from curation.errors import ConfigError
from curation.recipe import load
from pipelines.cli import main
from pipelines.plan import plan
from pipelines.reading.funnel import counts

_ENDS = ("--workers", "0", "--quiet")
_STAGES = ("--stages", "extract,dedup-urls")
_MINE = "extends: llama3\nname: mine\nstages: [extract, dedup-urls]\n"


def state(folder: Path) -> dict[str, tuple[int, bytes]]:
    """When each file and folder was changed, and the bytes of the files."""
    paths = [folder, *folder.rglob("*")]
    return {str(p): (p.stat().st_mtime_ns, p.read_bytes() if p.is_file() else b"") for p in paths}


def rows(path: Path, *names: str) -> Path:
    """Write a table with a page of each name."""
    path.parent.mkdir(parents=True, exist_ok=True)
    found = [
        {"text": f"A page of {name}, and of words.", "url": f"http://{name}/"} for name in names
    ]
    path.write_text("".join(json.dumps(row) + "\n" for row in found))
    return path


def run(*arguments: str | Path) -> int:
    """What a command ends with."""
    return main([*map(str, arguments), *_ENDS])


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A working folder with two tables, and a run of `mine` over them in `out`."""
    place = tmp_path_factory.mktemp("made")
    rows(place / "crawl/a.jsonl", "a", "b")
    rows(place / "crawl/b.jsonl", "c")
    (place / "mine.yaml").write_text(_MINE)
    with contextlib.chdir(place):
        assert run("run", "mine.yaml", "--input", "crawl") == 0
    return place


@pytest.fixture
def home(made: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A copy of it, where the test is."""
    monkeypatch.chdir(tmp_path)
    shutil.copytree(made, tmp_path, dirs_exist_ok=True)
    return tmp_path


def refused(folder: Path, capsys: pytest.CaptureFixture[str], *arguments: str | Path) -> str:
    """The one line of a command that ends with exit code 2 and leaves a folder as it was."""
    before = state(folder)
    capsys.readouterr()
    assert run(*arguments) == 2, arguments
    assert state(folder) == before, arguments
    told = capsys.readouterr().err
    assert told.count("\n") == 1, told
    return told


def found(folder: str = "out") -> dict[str, Any]:
    """The facts of the manifests in a run folder."""
    return counts(folder)


def test_the_sample_does_not_replace_a_crawl(
    home: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """The README's first command has no --output, and its default is a common name."""
    told = refused(home / "out", capsys, "run", "sample")
    assert "out: has a run of mine over a.jsonl (inputs: 2, documents: 3, tokens: 0)" in told
    assert "another recipe, sample" in told
    assert "--output" in told and "--fresh" in told


@pytest.mark.parametrize(
    "arguments",
    [
        ("run", "fineweb", "--input", "crawl"),
        ("run", "llama3", "--input", "crawl", *_STAGES),
        ("run", "mine.yaml", "--input", "other/n.jsonl"),
        ("run", "mine.yaml", "--input", "other"),
        ("run", "mine.yaml", "--input", "crawl/b.jsonl"),  # a part of what there is
        ("run", "mine.yaml", "--input", "crawl/b.jsonl", "other"),
        ("run", "mine.yaml", "--input", "elsewhere"),  # the same names
        ("run", "mine.yaml", "--input", "other/n.jsonl", "--stages", "dedup-urls"),
        ("measure", "fineweb", "--input", "crawl"),
        ("extract", "--input", "crawl", "--output", "out"),  # by llama3
        ("dedup-urls", "--recipe", "mine.yaml", "--input", "other/n.jsonl", "--output", "out"),
        (
            "identify-language",
            "--recipe",
            "mine.yaml",
            "--input",
            "there/extract",
            "--output",
            "out",
        ),
    ],
    ids=" ".join,
)
def test_another_recipe_or_other_inputs(
    home: Path, capsys: pytest.CaptureFixture[str], arguments: Sequence[str]
) -> None:
    rows(home / "other/n.jsonl", "n")
    rows(home / "elsewhere/a.jsonl", "x", "y")
    rows(home / "elsewhere/b.jsonl", "z")
    assert run("run", "mine.yaml", "--input", "other", "--output", "there") == 0
    assert "has a run of mine over a.jsonl" in refused(home, capsys, *arguments)
    assert run(*arguments, "--fresh") == 0


def test_the_same_recipe_goes_on(home: Path) -> None:
    (home / "mine.yaml").write_text(f"{_MINE}extract: {{min_characters: 2}}\n")
    assert run("run", "mine.yaml", "--input", "crawl") == 0
    (home / "mine.yaml").write_text(_MINE.replace("]", ", identify-language]"))
    assert run("run", "mine.yaml", "--input", "crawl") == 0
    assert [entry["stage"] for entry in found()["funnel"]][-1] == "identify-language"
    (home / "ours.yaml").write_text(
        _MINE.replace("]", ", identify-language]").replace("mine", "us")
    )
    assert run("run", "ours.yaml", "--input", "crawl") == 0  # only its name is another
    assert found()["recipe"]["name"] == "us"
    (home / "later.yaml").write_text(
        "extends: ours.yaml\nname: later\nextract: {min_characters: 3}\n"
    )
    assert run("run", "later.yaml", "--input", "crawl") == 0
    assert found()["recipe"]["name"] == "later"


def test_inputs_may_grow_and_go_and_move(home: Path, capsys: pytest.CaptureFixture[str]) -> None:
    rows(home / "crawl/c.jsonl", "d")
    assert run("run", "mine.yaml", "--input", "crawl") == 0
    rows(home / "crawl/a.jsonl", "a", "changed")
    assert run("run", "mine.yaml", "--input", "crawl") == 0
    (home / "crawl/b.jsonl").unlink()
    assert run("run", "mine.yaml", "--input", "crawl") == 0
    assert found()["funnel"][0]["documents_in"] == 3
    shutil.copytree(home / "crawl", home / "moved")
    shutil.rmtree(home / "crawl")
    assert run("run", "mine.yaml", "--input", "moved") == 0
    for timings in (home / "out").glob("*/timings.json"):
        timings.unlink()
    assert run("run", "mine.yaml", "--input", "moved") == 0
    shutil.rmtree(home / "moved")  # none of them is left
    refused(home / "out", capsys, "run", "mine.yaml", "--input", rows(home / "n.jsonl", "n"))


def test_a_first_stage_that_was_deleted_is_made_again(
    home: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    shutil.rmtree(home / "out/extract")
    refused(home / "out", capsys, "run", "mine.yaml", "--input", rows(home / "n.jsonl", "n"))
    assert run("run", "mine.yaml", "--input", "crawl") == 0
    assert [entry["stage"] for entry in found()["funnel"]] == ["extract", "dedup-urls"]


def test_documents_of_another_run_are_followed_as_they_change(
    home: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    stage = ("dedup-urls", "--input", "out/extract", "--output", "next")
    assert run(*stage) == 0
    rows(home / "crawl/c.jsonl", "d")
    assert run("run", "mine.yaml", "--input", "crawl") == 0
    assert run(*stage) == 0
    assert found("next")["funnel"][0]["documents_in"] == 4
    assert run("run", "mine.yaml", "--input", rows(home / "n.jsonl", "n"), "--output", "far") == 0
    refused(home / "next", capsys, "dedup-urls", "--input", "far/extract", "--output", "next")


def test_one_stage_of_a_run_takes_its_documents(home: Path) -> None:
    """With --run, with the run's own input, and with none: nothing else is made again."""
    assert run("run", "mine.yaml", "--input", "crawl") == 0
    before = {p: v for p, v in state(home / "out").items() if "report" not in p}
    for command in (
        ("dedup-urls", "--run", "out"),
        ("dedup-urls", "--input", "out/extract", "--output", "out"),
        ("run", "mine.yaml", "--stages", "dedup-urls"),
        ("run", "mine.yaml", "--stages", "dedup-urls", "--input", "crawl"),
    ):
        assert run(*command) == 0, command
        now = state(home / "out")
        assert {p: now[p][1] for p in before} == {p: v for p, (_, v) in before.items()}, command
        assert main(["verify", "--run", "out"]) == 0
    assert run("identify-language", "--run", "out") == 0
    assert [entry["stage"] for entry in found()["funnel"]][-1] == "identify-language"
    assert found()["recipe"]["name"] == "mine"


def test_a_stage_of_a_run_does_not_read_another_than_it_read(
    home: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Nor its own documents in a circle, nor a part of them."""
    assert run("identify-language", "--run", "out") == 0
    part = str(next((home / "out/dedup-urls/documents").iterdir()))
    for command, what in {
        "identify-language --input out/extract --output out": "extract, not dedup-urls",
        f"identify-language --input {part} --output out": f"{part}, not dedup-urls",
        "dedup-urls --input out/identify-language --output out": "identify-language, not extract",
        "run out/recipe.yaml --input crawl --stages extract,identify-language": "over extract, not",
    }.items():
        told = refused(home, capsys, *command.split())
        assert "has a run of mine over a.jsonl" in told and what in told
    assert run("identify-language", "--input", "out/dedup-urls", "--output", "out") == 0
    assert run("identify-language", "--input", "out/extract", "--output", "new") == 0
    given = ("dedup-urls", "--recipe", "mine.yaml", "--input", "new/identify-language")
    assert run(*given, "--output", "new") == 0
    refused(home, capsys, "dedup-urls", "--input", "out/extract", "--output", "new")
    (home / "mine.yaml").write_text(_MINE.replace("dedup-urls", "identify-language"))
    assert run("run", "mine.yaml", "--input", "crawl") == 0  # a recipe without that stage


def test_a_stage_does_not_pass_over_one_that_is_not_complete(
    home: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    next((home / "out/dedup-urls/documents").iterdir()).unlink()
    for command in ("identify-language --run out", "run llama3 --stages filter"):
        given = command.replace("llama3", "mine.yaml").split()
        assert "out/dedup-urls: not complete" in refused(home, capsys, *given)


@pytest.mark.parametrize("given", ["crawl/pages.jsonl", "crawl/one.warc", "crawl"])
def test_pages_are_no_texts_for_a_stage(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], given: str
) -> None:
    monkeypatch.chdir(tmp_path)
    html = "<p>A page that has no text yet.</p>"
    (tmp_path / "crawl").mkdir()
    if given != "crawl/pages.jsonl":
        head = f"WARC/1.0\r\nWARC-Type: resource\r\nContent-Length: {len(html)}\r\n"
        head += "WARC-Target-URI: http://a/\r\nContent-Type: text/html\r\n\r\n"
        (tmp_path / "crawl/one.warc").write_text(f"{head}{html}\r\n\r\n")
    else:
        (tmp_path / given).write_text(json.dumps({"html": html}) + "\n")
    for command in (["filter"], ["run", "llama3", "--stages", "filter,mix"]):
        told = refused(tmp_path, capsys, *command, "--input", given, "--output", "new")
        assert "has pages, not texts" in told and "`extract`" in told
        assert "text_columns" not in told


def test_a_stage_that_refuses_its_settings_leaves_the_run_alone(
    home: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Also where only the stage itself finds out, and those before it are complete."""
    (home / "mine.yaml").write_text(_MINE.replace("]", ", filter]"))
    assert run("run", "mine.yaml", "--input", "crawl") == 0
    (home / "out/filter/mine.txt").write_text("mine")
    before = {p: v for p, v in state(home / "out").items() if v[1]}
    (home / "mine.yaml").write_text(_MINE.replace("]", ", filter]") + "filter: {rules: {c4: null}}")
    assert run("run", "mine.yaml", "--input", "crawl") == 2
    assert {p: v for p, v in state(home / "out").items() if v[1]} == before


#: Commands that are refused in the folder of a finished run, each for a reason of its own.
REFUSED = [
    "run nosuch --input crawl",
    "run mine.yaml",
    "run mine.yaml --input nosuch",
    "run mine.yaml --input crawl --stages nosuch",
    "run mine.yaml --input crawl --stages dedup-urls,extract",
    "run mine.yaml --input crawl --set extract.nosuch=1",
    "run mine.yaml --input crawl --set extract.min_characters=many",
    "run mine.yaml --input crawl --set extract.engine=nosuch",
    "run mine.yaml --input crawl --stages extract,mix --set identify-language.model=nosuch.bin",
    "run mine.yaml --input crawl --set dedup-urls.index.against=[nosuch]",
    "run mine.yaml --input crawl --index nosuch",
    "run mine.yaml --input crawl --fresh --stages tokenize,mix",
    "run mine.yaml --input crawl -- --runner=nosuch --option",
    "run mine.yaml --input crawl -- --nosuch=1",
    "run mine.yaml --input crawl --set extract.min_characters=3 -- --runner=DataflowRunner",
    "run mine.yaml --input crawl --fresh -- --runner=DataflowRunner --temp_location=gs://b/t",
    "run mine.yaml --stages classify,dedup-lines,mix --input crawl/nosuch.jsonl",
    "run sample --fresh --input nosuch",
    "run fineweb --input crawl --dry-run",
    "measure mine.yaml --input crawl --stages dedup-urls",
    "apply mine.yaml --policy nosuch.yaml --input crawl",
    "extract --run out",
    "extract --run nosuch --input crawl",
    "dedup-urls --run out --output out",
    "dedup-urls --run crawl",
    "dedup-urls --output out",
    "filter --input crawl --output mine.yaml",
    "rights --run out --site-files robots.txt",
    "rights --what-if --run nosuch",
    "mix --design 4 --run nosuch",
    "export --run out --stage nosuch --to parquet",
    "export --run out --stage extract --to parquet --columns nosuch",
    "export --run out --stage extract --to parquet --output out/extract",
    "withdraw --run out --ids nosuch.txt",
    "withdraw --run out --url-prefix=",
    "withdraw --run out --rights nosuch",
    "withdraw --run out --url-prefix http://a/ --output out",
    "withdraw --run out --url-prefix http://a/ --output out/extract",
    "run sample --output out/extract",
    "run mine.yaml --input crawl --output out/extract/documents",
    "receipt --run out --hosts hosts.txt --output out/recipe.yaml",
    "receipt --run out --hosts hosts.txt --output out/report.html --dry-run",
    "receipt --run out --hosts hosts.txt --output out/extract/manifest.json",
    "receipt --run out --hosts hosts.txt --output out/extract/documents/new.json",
    "export --run out --stage extract --to jsonl --output out/dedup-urls/mine",
    "new rule mine --output out/extract",
    "train reference --language de --input crawl/a.jsonl --output out/extract/model",
    "summary --run out --output out/dedup-urls",
    "summary --run out --answers nosuch.yaml",
    "summary --run out --output .",
    "receipt --run out --hosts empty.txt --output new.json",
    "receipt --run out --hosts notes.txt --output new.json",
    "withdraw --run out --hosts notes.txt",
    "trace --run out",
    "report --run crawl",
    "policy --run out --output out/recipe.yaml",
    "ablate out --size nosuch --output out",
    "train quality --input nosuch.jsonl --output out",
    "new rule recipe --output out",
    "verify --run out --sample 2",
    "view --run out --compare nosuch --no-browser",
    "view --run out --prepare --prepared out/extract",
    "view --run out --prepare --prepared out",
    "view --run out --prepare --compare nosuch",
    "sample --input crawl --output out/recipe.yaml",
    "sample --input crawl/a.jsonl --output crawl/a.jsonl",
    "receipt --run out --hosts hosts.txt --output hosts.txt",
    "receipt --run out --hosts hosts.txt --output link/new.json",
    "new rule mine --output link",
    "summary --run out --output link",
    "summary --run out --output own",
    "train tokenizer --corpus crawl/a.jsonl --output out",
    "train tokenizer --corpus crawl/a.jsonl --output own",
]


@pytest.mark.parametrize("command", REFUSED)
def test_what_is_refused_changes_no_file(
    home: Path, capsys: pytest.CaptureFixture[str], command: str
) -> None:
    (home / "out/recipe.py").write_text("")
    (home / "hosts.txt").write_text("a\n")
    (home / "empty.txt").write_text("\n")
    (home / "notes.txt").write_text("a\nhttp://a/page\n")
    (home / "README.md").write_text("mine")
    (home / "link").symlink_to("out/extract/documents")
    for name in ("datasheet.md", "card.yaml"):
        (home / "own").mkdir(exist_ok=True)
        (home / "own" / name).write_text("mine")
    before = state(home)
    try:
        code = main([part for part in command.split(" ") if part])
    except SystemExit as ended:
        code = int(ended.code or 0)
    assert code == 2, capsys.readouterr().err
    assert state(home) == before
    assert capsys.readouterr().err.count("\n") == 1


@pytest.mark.parametrize("line", ["https://A/", "a.", "a:443", " a \n"])
def test_a_host_may_be_written_as_an_address(home: Path, line: str) -> None:
    (home / "hosts.txt").write_text(line)
    assert main("receipt --run out --hosts hosts.txt --output new.json".split()) == 0
    assert [d["url"] for d in json.loads((home / "new.json").read_text())["documents"]] == [
        "http://a/"
    ]


def test_a_run_is_not_measured_in_its_place(home: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Nor does one that removes documents replace what was measured; stages before may stay."""
    for path in ("mine.yaml", "other.yaml"):
        (home / path).write_text(_MINE.replace("]", ", identify-language]"))
    assert run("measure", "mine.yaml", "--input", "crawl") == 0
    assert "one that removes" in refused(home, capsys, "run", "mine.yaml", "--input", "crawl")
    assert run("run", "mine.yaml", "--input", "crawl", "--fresh") == 0
    assert "one that measures" in refused(home, capsys, "measure", "mine.yaml", "--input", "crawl")


def test_a_selection_of_nothing_keeps_what_was_withdrawn(home: Path) -> None:
    assert main(["withdraw", "--run", "out", "--url-prefix", "http://a/"]) == 0
    before = state(home / "out/withdrawn")
    assert main(["withdraw", "--run", "out", "--url-prefix", "http://nosuch/"]) == 1
    assert state(home / "out/withdrawn") == before


def test_another_withdrawal_does_not_replace_one(
    home: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """The second one would bring back what the first took out."""
    first, second = (
        ["withdraw", "--run", "out", "./out", "--url-prefix", f"http://{host}/"] for host in "ab"
    )
    assert main(first) == 0
    before = state(home / "out/withdrawn")
    assert main(second) == 2
    assert "out/withdrawn has the withdrawal of 1 other documents" in capsys.readouterr().err
    assert state(home / "out/withdrawn") == before
    assert main(first) == 0
    assert main([*second, "--output", "second"]) == 0


def test_a_withdrawal_grows_and_loses_nothing(
    home: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """What a file of ids says now counts, not its name; ids of nothing are told and not counted."""
    url = {r["url"]: r["id"] for r in pq.read_table("out/extract/documents").to_pylist()}
    command = "withdraw --run out --ids ids.txt".split()
    (home / "ids.txt").write_text("nosuch")
    assert main(command) == 1 and not (home / "out/withdrawn").exists()
    (home / "ids.txt").write_text(f"{url['http://a/']}\nnosuch\n")
    assert main(command) == 0
    told = capsys.readouterr().out
    assert "1 documents withdrawn" in told and "1 ids are of no document" in told
    (home / "ids.txt").write_text(url["http://b/"])
    before = state(home)
    assert main(command) == 2 and state(home) == before
    assert "has the withdrawal of 1 other" in capsys.readouterr().err
    (home / "ids.txt").write_text("\n".join(url.values()))
    assert main(command) == 0
    assert pq.read_table("out/withdrawn/withdrawn.parquet").num_rows == 3


def test_from_python_too(home: Path) -> None:
    other = str(rows(home / "n.jsonl", "n"))
    with pytest.raises(ConfigError, match=r"has a run of mine over a\.jsonl"):
        plan(load("fineweb"), "out", ["crawl"])
    with pytest.raises(ConfigError, match="other inputs"):
        plan(load("mine.yaml"), os.path.abspath("out"), [other])
    assert plan(load("fineweb"), "out", [other], fresh=True).fresh
