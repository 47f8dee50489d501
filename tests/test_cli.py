"""The command line: exit codes, one-line errors, help with examples."""

from __future__ import annotations

import gzip
import json
import os
import re
import shutil
import subprocess
import sys
from itertools import pairwise
from pathlib import Path

import pyarrow.parquet as pq
import pytest

from curation import recipe
from curation.errors import InputError
from curation.recipe import STAGES, load
from curation.tokenize import TokenShards
from pipelines.cli import main
from pipelines.storage.files import Folder
from tests.conftest import ROOT, curate, curate_well
from tests.readers.archives import http_response, warc_record

COMMANDS = [
    *("run", *STAGES, "extract-file", "why", "report", "verify", "withdraw"),
    *("train", "recipes", "models"),
]


@pytest.mark.parametrize("command", COMMANDS)
def test_every_command_has_help_with_an_example(
    command: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as stopped:
        main([command, "--help"])
    assert stopped.value.code == 0
    assert f"example: curate {command}" in capsys.readouterr().out


@pytest.mark.parametrize(("before", "stage"), list(pairwise(load("llama3").stages)))
def test_a_stage_is_shown_with_the_documents_of_the_one_before(
    before: str, stage: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit):
        main([stage, "--help"])
    assert f"--input out/{before} --output out" in capsys.readouterr().out


def test_examples_of_documents_are_of_the_sample(
    sample_run: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for command in ("why", "withdraw"):
        with pytest.raises(SystemExit):
            main([command, "--help"])
        example = capsys.readouterr().out.partition("example: curate ")[2].split()
        places = {"out": str(sample_run), "back": str(tmp_path / "back")}
        assert main([places.get(word, word) for word in example]) == 0
        capsys.readouterr()


@pytest.mark.parametrize(
    ("arguments", "code", "message"),
    [
        (["run", "nothing", "--output", "o"], 2, "nothing: neither a built-in recipe nor a file"),
        (["run", "llama3", "--output", "o"], 2, "no input"),
        (["run", "llama3", "--input", "no/such/*.gz", "--output", "o"], 2, "no/such/*.gz"),
        (["run", "llama3", "--stages", "filtr", "--output", "o"], 2, "did you mean 'filter'"),
        (["run", "llama3", "--set", "a.b=1", "--output", "o"], 2, "a: unknown key"),
        (["run", "llama3", "--workers", "many"], 2, "expected a number of processes, 0 or more"),
        (["filter", "--input", "nowhere", "--output", "o"], 2, "nowhere: no input file matches"),
        (["filter", "--input", "", "--output", "o"], 2, "--input: an empty path"),
        (["run", "sample", "--output", ""], 2, "--output: an empty path"),
        (["train", "quality", "--input", "a", "--output", ""], 2, "--output: an empty path"),
        (["report", "--run", ""], 2, "an empty path: no such run folder"),
        (["why", "id", "--run", "nowhere"], 2, "nowhere: no such run folder"),
        (["report", "--run", "nowhere"], 2, "nowhere: no such run folder"),
        (["extract-file", "no.html"], 2, "no.html: no such file"),
        (["extract-file", "no.warc.gz@12"], 2, "no.warc.gz: no such file"),
        (["extract-file", ".", "--engine", "trafilatora"], 2, "extract.engine: "),
        (["extract-file", "."], 2, ".: Is a directory"),
        (["extract-file", ".", "--engine", "resiliparse", "--explain"], 2, "--explain needs"),
        (
            ["run", "sample", "--output", "file"],
            2,
            "file: can't be written as a run folder: a file",
        ),
        (["run", "sample", "--output", "file/o"], 2, "run folder: Not a directory"),
        (["run", "sample", "--output", "/proc/o"], 2, "/proc/o: can't be written as a run folder"),
        (["run", "sample", "--output", "nosuch://o"], 2, "Protocol not known: nosuch"),
        (["run", "sample", "--output", "s3://"], 2, "s3://: not the name of a folder"),
        (["run", "sample", "--output", "o", "--index", "nosuch://i"], 2, "Protocol not known"),
        (["filter", "--input", "nosuch://a/b", "--output", "o"], 2, "Protocol not known: nosuch"),
        (["why", "id", "--run", "nosuch://o"], 2, "nosuch://o: Protocol not known: nosuch"),
        (["report", "--run", "nosuch://o"], 2, "nosuch://o: Protocol not known: nosuch"),
        (["run", ".", "--output", "o"], 2, ".: neither a built-in recipe nor a file"),
        (["run", "sample", "--set", "tokenize.tokenizer=file"], 2, "tokenize.tokenizer: file: "),
        (["run", "sample", "--", "--runner=NoRunner"], 2, "--runner=NoRunner: Unexpected pipeline"),
        (["run", "sample", "--", "--runner"], 2, "--runner: expected `--runner=NAME`"),
        (["run", "llama3", "--stages", "mix, nosuch"], 2, "stages[1]: unknown stage 'nosuch'"),
        (["train", "quality", "--input", "no.gz", "--output", "o"], 2, "no.gz: no such file"),
        (
            ["train", "quality", "--version", "2", "--input", "no", "--output", "o"],
            2,
            "no: no such",
        ),
        (
            ["train", "tokenizer", "--base", "no.tiktoken", "--corpus", "file", "--output", "o"],
            *(2, "--base: no.tiktoken: cannot read the vocabulary"),
        ),
        (["train", "language", "--input", "file", "--output", "file"], 2, "file: already exists"),
        (["run", "sample", "--", "--runner=FlinkRunner", "--flink_master"], 2, "expected one arg"),
        *(
            (
                ["run", "sample", "--set", f"{key}.path=file", "--set", f"{key}.sha256=null"],
                2,
                "file: ",
            )
            for key in (
                "extract.model",
                *(f"classify.{name}" for name in ("quality", "domain", "topic", "format")),
            )
        ),
        (
            ["run", "sample", "--set", "filter.signals.reference=."],
            2,
            ".: no <language>.npz",
        ),
        (["worker-pool", "--port", "99999"], 2, "expected a port number"),
        (["frobnicate"], 2, "frobnicate"),
        (["run", "llama3", "--input", ".", "--", "--flink_master=h:1"], 2, ""),
    ],
)
def test_errors_are_one_line(
    arguments: list[str],
    code: int,
    message: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("file").write_text("no folder")
    assert main(arguments) == code
    error = capsys.readouterr().err
    assert error.startswith("curate: error: ")
    assert message in error
    assert error.count("\n") == 1


def refused(assignment: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> str:
    """What a run says to a value that stops it before anything is written."""
    page, out = tmp_path / "page.html", tmp_path / "out"
    page.write_text("<p>text")
    arguments = ["run", "llama3", "--input", str(page), "--output", str(out)]
    assert main([*arguments, "--set", assignment]) == 2
    assert not out.exists()
    return capsys.readouterr().err


def test_a_missing_model_stops_before_anything_runs(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    error = refused("identify-language.model.path=nowhere/lid.bin", tmp_path, capsys)
    assert "nowhere/lid.bin: no such model file" in error


@pytest.mark.parametrize(
    "assignment",
    [
        "filter.signals.reference=no/references",
        "filter.signals.dirty_words=no/words",
        "filter.signals.stop_words=builtin:no/words",
        "filter.blocklists.lists.adult=no/adult",
        "filter.blocklists.allow=[no/allowed]",
        "filter.blocklists.soft_words=no/soft.txt",
        "dedup-urls.canonical.tracking_parameters=no/names.txt",
        "dedup-urls.index.against=[no/run]",
        "dedup-documents.index.against=[no/run]",
        "dedup-lines.index.against=[no/run]",
    ],
)
def test_a_missing_list_stops_before_anything_runs(
    assignment: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    error = refused(assignment, tmp_path, capsys)
    key, _, path = assignment.partition("=")
    assert key in error
    assert path.strip("[]") in error
    assert error.count("\n") == 1


@pytest.mark.parametrize(
    "assignment",
    [
        "identify-language.languages=[xx]",
        "filter.by_language.xx.gopher.word_count.min=3",
        "filter.default_languages=[xx]",
        "classify.multilingual_excludes=[xx]",
    ],
)
def test_a_language_that_no_document_can_have_stops_the_run(
    assignment: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    error = refused(assignment, tmp_path, capsys)
    key = assignment.partition("=")[0].removesuffix(".xx.gopher.word_count.min")
    assert f"{key}: the model has no language 'xx'" in error


def test_a_domain_that_no_document_can_have_stops_the_run(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    arguments = ["run", "sample", "--output", str(tmp_path / "out"), "--set"]
    assert main([*arguments, "mix.domains={coed: {share: 0, max_epochs: 1}}"]) == 2
    error = capsys.readouterr().err
    assert "mix.domains: no document is of the domain 'coed'; did you mean 'code'?" in error


def test_a_run_that_keeps_nothing_ends_with_a_report(tmp_path: Path) -> None:
    text = tmp_path / "short.jsonl"
    text.write_text(json.dumps({"text": "Too few words for the filter.", "url": "http://x/a"}))
    out = tmp_path / "out"
    done = curate("run", "llama3", "--input", text, "--output", out, "--workers", "0")
    assert done.returncode == 0, done.stderr
    assert "Traceback" not in done.stderr
    assert "mix: nothing to draw" in done.stdout
    assert (out / "report.html").exists()
    with pytest.raises(InputError, match="no shards"):
        TokenShards(out / "tokenize", batch_size=1)


def test_a_run_without_any_document_fails(tmp_path: Path) -> None:
    text = tmp_path / "text.jsonl"
    text.write_text(json.dumps({"body": "Some words.", "url": "http://x/a"}))
    arguments = ["run", "llama3", "--stages", "extract", "--input", text, "--workers", "0"]
    done = curate(*arguments, "--output", tmp_path / "out", "--quiet")
    assert done.returncode == 1
    assert "text.jsonl: no document in it (1 jsonl.no_text)" in done.stderr
    assert "--set readers.text_columns=[NAME]" in done.stderr


def test_a_run_that_fails_reports_what_is_complete(tmp_path: Path) -> None:
    text = tmp_path / "text.jsonl"
    text.write_text(json.dumps({"text": "Some words.", "url": "http://x/a"}))
    out = tmp_path / "out"
    arguments = ["run", "llama3", "--input", text, "--output", out, "--workers", "0", "--quiet"]
    curate_well([*arguments, "--stages", "extract"])
    (out / "report.html").write_text("<title>Curation report: of another run</title>")
    (written,) = (out / "extract" / "documents").iterdir()
    (out / "dedup-urls" / "documents" / written.name).mkdir(parents=True)  # no file can be there
    done = curate(*arguments, "--stages", "extract,dedup-urls")
    assert done.returncode == 1
    assert done.stderr.count("\n") == 1
    assert "extract" in (out / "report.html").read_text()


@pytest.mark.usefixtures("forked_processes")
def test_a_traceback_is_shown_with_debug_only(tmp_path: Path) -> None:
    text = tmp_path / "text.jsonl"
    text.write_text(json.dumps({"text": "Some words.", "url": "http://x/a"}))
    out = tmp_path / "out"
    curate_well(["extract", "--input", text, "--output", out, "--workers", "1", "--quiet"])
    (written,) = (out / "extract" / "documents").iterdir()
    written.write_bytes(b"x" * written.stat().st_size)
    arguments = ["dedup-urls", "--input", out / "extract", "--output", out, "--quiet", "--workers"]
    for runner in (["1"], ["0"], ["1", "--", "--runner=BundleBasedDirectRunner"]):
        failed = curate(*arguments, *runner)
        assert failed.returncode == 1
        assert failed.stderr.count("\n") == 1
        assert "text.jsonl" in failed.stderr
    assert "Traceback" in curate(*arguments, "0", "--debug").stderr


def test_recipes_lists_and_prints(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["recipes", "--json"]) == 0
    assert {r["name"] for r in json.loads(capsys.readouterr().out)} == set(recipe.built_in())
    assert main(["recipes", "fineweb"]) == 0
    assert "name: fineweb" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("command", "whole"),
    [("recipes", "purpose"), ("models", "\n    educational value of a page\n")],
)
def test_listings_fit_a_narrow_terminal(
    command: str, whole: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    assert main([command]) == 0
    printed = capsys.readouterr().out
    assert max(map(len, printed.splitlines())) <= 80 and "…" not in printed
    assert whole in printed and ("MB" in printed or command == "recipes")


def test_models_have_licence_and_checksum(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["models", "--json"]) == 0
    cards = json.loads(capsys.readouterr().out)
    assert {"lid.176", "curation-128k"} <= {c["name"] for c in cards} | {"lid.176"}
    assert all(c["licence"] and c["sha256"] for c in cards)


def test_broken_records_are_told_and_only_whole_pages_are_tried_again(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    body = b"<title>Cut</title>" + b"".join(
        b"<p>Paragraph %d of a page." % (i * i) for i in range(900)
    )
    members = [gzip.compress(warc_record(i, http_response(body))) for i in range(2)]
    folder = tmp_path / "in"
    folder.mkdir()
    (folder / "a.warc.gz").write_bytes(b"".join(members)[:-500])
    lines = ['{"text": "cut', '{"body": "no text", "url": "http://x/no-text"}', '{"text": "sound"}']
    (folder / "b.jsonl").write_text("\n".join(lines))
    (folder / "c.warc").write_bytes(warc_record(3, http_response(b"<p>x")) + b"WARC/1.0\r\nWARC-Ty")

    def extracted(inputs: str, output: str, count: int, code: int = 0) -> list[dict[str, object]]:
        arguments = ["extract", "--input", inputs, "--output", str(tmp_path / output)]
        assert main([*arguments, "--workers", "0"]) == code
        files = sorted((tmp_path / output / "extract/documents").glob("*.parquet"))
        assert sum(pq.read_metadata(file).num_rows for file in files) == count
        (aside,) = (tmp_path / output / "extract/set_aside").glob("*.parquet")
        return pq.read_table(aside).to_pylist()  # type: ignore[no-any-return]

    aside = extracted(str(folder), "out", 4)
    assert "1 are broken and were read as far as they go (gzip.truncated 1)" in " ".join(
        capsys.readouterr().out.split()
    )
    (mended,) = (tmp_path / "out/extract/mended").glob("*.parquet")
    (row,) = pq.read_table(mended).to_pylist()
    assert row["source"] == {"file": "a.warc.gz", "offset": len(members[0])}
    length = len(http_response(body))
    assert row["reason"] == "gzip.truncated"
    assert re.search(rf"ends inside a member; \d+ of {length} bytes", row["detail"])
    assert main(["why", row["url"], "--run", str(tmp_path / "out")]) == 0
    assert f"gzip.truncated: {row['detail']}" in capsys.readouterr().out
    assert main(["why", "no-text", "--run", str(tmp_path / "out")]) == 0
    told = capsys.readouterr().out
    assert "b.jsonl at offset 14" in told and "set aside by jsonl.no_text\n    none of" in told

    again = extracted(str(tmp_path / "out/extract/set_aside"), "again", 0, code=1)
    assert [(r["reason"], r["raw"]) for r in again] == [(r["reason"], r["raw"]) for r in aside]
    assert len(aside) == 3


def test_ids_may_look_like_options_and_texts_lack_characters(tmp_path: Path) -> None:
    rows = [
        {"id": "--run", "text": "Ein schöner Tag am See. 你好 " * 20},
        {"id": "-x", "text": "b"},
    ]
    table, run = tmp_path / "t.jsonl", tmp_path / "out"
    table.write_text("".join(json.dumps(row) + "\n" for row in rows))
    curate_well(["dedup-documents", "--input", table, "--output", run, "--workers", "0"])
    for row in rows:
        assert f"document {row['id']}\n" in curate_well(["why", "--run", run, "--", row["id"]])
    done = curate("runs", run, "--", "--runner=DirectRunner")
    assert (done.returncode, done.stdout) == (2, "")
    command = [sys.executable, "-m", "pipelines.cli"]
    environment = os.environ | {"PYTHONIOENCODING": "ascii", "PYTHONPATH": str(ROOT)}
    shown = subprocess.run(
        [*command, "sample", "--run", run], env=environment, capture_output=True, check=True
    )
    assert rb"sch\xf6ner" in shown.stdout
    passage = b"caf\xe9 " + b" ".join(b"word%d" % n for n in range(30))
    found = subprocess.run(
        [*command, "trace", "-", "--run", run], input=passage, capture_output=True, check=True
    )
    assert found.stdout.startswith(b"no span")


def test_a_home_that_the_shell_left_to_us_is_found(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    (tmp_path / "home").mkdir()
    (tmp_path / "home" / "t.jsonl").write_text('{"id": "a", "text": "A lake."}\n')
    for _ in range(2):  # bash expands no `~` behind `=`
        options = ["--input=~/t.jsonl", "--output=~/out", "--workers=0"]
        done = curate("dedup-documents", *options, place=tmp_path)
        assert done.returncode == 0, done.stderr
    assert "document a" in curate("why", "a", "--run=~/out", place=tmp_path).stdout
    assert [p.name for p in tmp_path.iterdir()] == ["home"]


def test_without_arguments_the_commands_are_listed() -> None:
    printed = curate_well([])
    assert all(stage in printed for stage in STAGES)


def test_help_of_a_command_by_its_name() -> None:
    assert curate("help", "why").stdout == curate("why", "--help").stdout
    assert curate("help").stdout == curate("--help").stdout != ""


@pytest.fixture(scope="module")
def completions(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the completion script of each shell, and a file to complete."""
    folder = tmp_path_factory.mktemp("completions")
    for shell in ("bash", "zsh", "fish"):
        (folder / shell).write_text(curate_well(["completion", shell]), encoding="utf-8")
    (folder / "crawl.warc").touch()
    return folder


@pytest.mark.parametrize(
    ("typed", "choices"),
    [
        ("curate ru", ["run", "runs"]),
        ("curate dedup-", ["dedup-documents", "dedup-lines", "dedup-substrings", "dedup-urls"]),
        ("curate run sample --log", ["--log-format"]),
        ("curate run sample --log-format p", ["plain"]),
        ("curate run sample --input cra", ["crawl.warc"]),
        ("curate train qua", ["quality"]),
    ],
)
@pytest.mark.parametrize("shell", ["bash", "fish"])
def test_a_shell_completes(shell: str, typed: str, choices: list[str], completions: Path) -> None:
    if shutil.which(shell) is None:
        pytest.skip(f"no {shell}")
    ask = {
        "bash": "source ./bash; COMP_WORDS=($0); COMP_CWORD=$((${#COMP_WORDS[@]} - 1)); "
        "_shtab_curate; printf '%s\\n' \"${COMPREPLY[@]}\"",
        "fish": "source fish; complete -C $argv[1] | string replace -r '\\t.*' ''; true",
    }
    done = subprocess.run(
        [shell, "-c", ask[shell], typed],
        cwd=completions,
        capture_output=True,
        text=True,
        check=True,
    )
    assert sorted(line.strip() for line in done.stdout.splitlines()) == choices


@pytest.mark.skipif(shutil.which("zsh") is None, reason="no zsh")
def test_the_script_for_zsh_is_sound(completions: Path) -> None:
    subprocess.run(["zsh", "-n", "zsh"], cwd=completions, check=True)


def test_messages_show_whole_paths_of_what_lies_outside(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """`../../x` would be shorter at times, and is harder to find and to copy."""
    (tmp_path / "a").mkdir()
    monkeypatch.chdir(tmp_path / "a")
    given = {"out": "out", f"{tmp_path}/a/b": "b", "../b": f"{tmp_path}/b", "/": "/", ".": "."}
    given["..b"] = "..b"
    assert {place: Folder(place).shown for place in given} == given
