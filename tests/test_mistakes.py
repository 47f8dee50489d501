"""What newcomers get wrong: each mistake costs one line that names it, and the right exit code."""

from __future__ import annotations

import asyncio
import contextlib
import gzip
import importlib.metadata
import json
import os
import re
import shlex
import shutil
import socket
import sys
import time
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import fsspec
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from curation.errors import EXTRAS, ConfigError, missing
from curation.recipe import STAGES
from curation.stores import persist
from curation.tokenize.reader import TokenShards, register
from models.training.extract.pages import align
from pipelines import cli
from pipelines import named_files as facts
from tests.conftest import ROOT

#: Nothing was started; the run failed.
USAGE, FAILED = 2, 1


class Mistake(NamedTuple):
    """A command as it is typed, its exit code, and words of its one line in their order."""

    command: str
    code: int
    says: tuple[str, ...]


def _m(command: str, code: int, *says: str) -> Mistake:
    return Mistake(command, code, says)


_OUT = "--output new"
_QUIET = ("--workers", "0", "--quiet")
COMMANDS = [
    _m("rnu sample", USAGE, "rnu: unknown command; did you mean 'run'?", "curate --help"),
    _m("runn", USAGE, "did you mean 'run'?"),
    _m("help runn", USAGE, "did you mean 'run'?"),
    _m("run llama3 --outputs new", USAGE, "--outputs: unknown option; did you mean '--output'?"),
    _m("run llama3 --log-format plian", USAGE, "plian", "'plain'? (auto, bar, plain)"),
    _m("recipes llama3 fineweb", USAGE, "fineweb: unknown argument"),
    _m("completion bsh", USAGE, "bsh", "'bash'? (bash, zsh, fish)"),
    _m("run", USAGE, "RECIPE"),
    _m("run llama3 --inptu a.jsonl", USAGE, "--inptu"),
    _m("run llama3 --workers many", USAGE, "--workers", "many"),
    _m("run llama3 --workers -3", USAGE, "--workers", "-3"),
    _m("run llama3 --log-format pretty", USAGE, "--log-format", "pretty"),
    _m("run llama3 --output", USAGE, "--output"),
    _m("run llama3 --input rows.jsonl --output ''", USAGE, "--output", "empty"),
    _m("run llama3 --input '' --output new", USAGE, "--input", "empty"),
    _m("run llama3 --input rows.jsonl --stages ''", USAGE, "--stages", "no stage"),
    _m("run llama3 --input rows.jsonl --stages all", USAGE, "unknown stage 'all'"),
    _m("run llama3 --input rows.jsonl --stages filter classify", USAGE, "classify"),
    _m("run llama3 --input rows.jsonl --stages filter,extract", USAGE, "extract", "before filter"),
    _m("run llama3 --input rows.jsonl --stages filter,filter", USAGE, "filter appears twice"),
    _m("run llama3 --input rows.jsonl -- --runner=NoRunner", USAGE, "NoRunner"),
    _m("why", USAGE, "ID_OR_URL"),
    _m("why x", USAGE, "--run"),
    _m("why '' --run done", USAGE, "ID_OR_URL", "empty"),
    _m("why x --run nowhere", USAGE, "nowhere"),
    _m("why x --run done", FAILED, "x: no document of done"),
    _m("why x --run rows.jsonl", USAGE, "rows.jsonl"),
    _m("report --run nowhere", USAGE, "nowhere"),
    _m("report --run empty", USAGE, "empty"),
    _m("verify --run nowhere", USAGE, "nowhere"),
    _m("verify --run done --sample 2", USAGE, "--sample"),
    _m("export --run done --stage extract --to docx", USAGE, "--to", "docx"),
    _m("export --run done --stage fitler --to jsonl", USAGE, "fitler"),
    _m("export --run done --stage filter --to jsonl", USAGE, "filter"),
    _m("export --run done --stage extract --to jsonl --columns txet", USAGE, "txet"),
    _m("export --run done --stage extract --to jsonl --split a=0.7,b=0.9", USAGE, "--split"),
    _m("export --run done --stage extract --to jsonl --shards 0", USAGE, "--shards"),
    _m("export --run done --stage extract --to jsonl --columns ''", USAGE, "--columns"),
    _m("export --run done --stage extract --to jsonl --output rows.jsonl", USAGE, "rows.jsonl"),
    _m("export --run done --stage extract --to csv", USAGE, "--to", "csv"),
    _m("export --run done --stage extract --to jsonl --split a/b=0.5,c=0.5", USAGE, "a/b"),
    _m("trace --run done words", USAGE, "at least 20 words"),
    _m("withdraw --run done --url-prefix ''", USAGE, "--url-prefix", "every document"),
    _m("withdraw --run done", USAGE, "--url-prefix"),
    _m("withdraw --run nowhere --url-prefix https://a.example/", USAGE, "nowhere"),
    _m("train qualty --input rows.jsonl", USAGE, "qualty"),
    _m("train quality --input nowhere.jsonl --output new", USAGE, "nowhere.jsonl"),
    _m("train quality --input rows.jsonl --output new", FAILED, "rows.jsonl"),
    _m("new rule 'two words'", USAGE, "two words"),
    _m("new thing x", USAGE, "thing"),
    _m("recipes lama3", USAGE, "lama3", "llama3"),
    _m("rights --what-if", USAGE, "--run"),
    _m("worker-pool --port 99999999", USAGE, "--port"),
]
RECIPES = [
    _m("run lama3 --input rows.jsonl", USAGE, "lama3", "llama3"),
    _m("run nowhere.yaml", USAGE, "nowhere.yaml"),
    _m("run rows.jsonl", USAGE, "rows.jsonl"),
    _m("run broken.yaml", USAGE, "broken.yaml:3:4"),
    _m("run list.yaml", USAGE, "list.yaml"),
    _m("run latin.yaml", USAGE, "latin.yaml"),
    _m("run empty.yaml", USAGE, "empty.yaml"),
    _m("run circle.yaml", USAGE, "circle.yaml", "extends"),
    _m("run no-parent.yaml", USAGE, "no-parent.yaml: extends: lama3", "did you mean 'llama3'"),
    _m("run wrong-stage.yaml", USAGE, "wrong-stage.yaml: stages[1]", "'filtr'", "'filter'"),
    _m(
        "run llama3 --set filter.code.mean_line_length.max=9",
        *(USAGE, "did you mean 'filter.rules.code.mean_line_length'?"),
    ),
    _m("run llama3 --set filter.code.x=9", USAGE, "did you mean 'filter.rules.code.x' or"),
    _m("run llama3 --set filter.dirty_words=9", USAGE, "mean 'filter.signals.dirty_words'?"),
    _m("run llama3 --set mix.code.share=9", USAGE, "did you mean 'mix.domains.code.share'?"),
    _m("run '' --input rows.jsonl --output new", USAGE, "RECIPE", "empty"),
    _m("run tab.yaml --input rows.jsonl", USAGE, "tab.yaml:2:1", "'\\t'"),
    _m("run stage-map.yaml --input rows.jsonl", USAGE, "stage-map.yaml", "stages", "filtr"),
    _m("run stages-text.yaml --input rows.jsonl", USAGE, "stages-text.yaml", "stages", "list"),
    _m("run nested.yaml --input rows.jsonl", USAGE, "mix.domains.code.shar", "share"),
    _m("run nan.yaml --input rows.jsonl", USAGE, "word_count.min", "finite"),
    _m("run short.yaml --input rows.jsonl", USAGE, "mix.on_shortage", "'relax'", "explode"),
    _m("run english.yaml --input rows.jsonl", USAGE, "identify-language.languages", "english"),
    _m("run typo.yaml", USAGE, "filtr", "filter"),
    _m("run type.yaml", USAGE, "word_count.min", "number"),
    _m("run code.yaml --input rows.jsonl", USAGE, "mine.py"),
    _m("run llama3 --set filter.rules.gopher.word_cuont.min=3", USAGE, "word_cuont", "word_count"),
    _m("run llama3 --set readers.normalize_text=nfd", USAGE, "readers.normalize_text", "nfc"),
    _m("run llama3 --set mix.budget=lots", USAGE, "--set: mix.budget", "lots"),
    _m("run llama3 --set filter=7", USAGE, "--set: filter", "mapping"),
    _m("run llama3 --set extends=fineweb", USAGE, "--set: extends", "unknown key"),
    _m("run type.yaml --set mix.budget=9", USAGE, "type.yaml: filter", "word_count.min"),
    _m("run llama3 --set filter", USAGE, "--set", "filter"),
    _m("run llama3 --set 'filter.rules={'", USAGE, "filter.rules"),
    _m("run llama3 --set dedup-documents.verify.threshold=7", USAGE, "threshold"),
    _m("run llama3 --stages exctract --input rows.jsonl", USAGE, "exctract", "extract"),
    _m("run llama3 --stages mix,classify --input done/extract", USAGE, "classify", "before mix"),
    _m("run llama3 --stages extract,extract --input rows.jsonl", USAGE, "extract", "twice"),
    _m("run llama3 --stages dedup-lines --input done/extract", USAGE, "language"),
    _m("run llama3 --stages mix --input done/extract", USAGE, "mix", "domain"),
    _m("run llama3 --stages ,", USAGE, "--stages"),
    _m(f"filter {_OUT}", USAGE, "--input", "curate filter --help"),
    _m("run llama3 --input rows.jsonl --set classify.model.path=my.onnx", USAGE, "classify"),
    _m("run llama3 --input rows.jsonl --set tokenize.tokenizer=gpt9", USAGE, "gpt9"),
    _m("run llama3 --input rows.jsonl --set tokenize.formats=[mds]", USAGE, "tokenize.formats"),
    _m("run llama3 --input rows.jsonl --set extract.engine=justxt", USAGE, "extract.engine"),
    _m("run llama3 --input rows.jsonl --set identify-language.languages=[english]", USAGE,
       "english"),
]  # fmt: skip
INPUTS = [
    _m(f"run llama3 {_OUT}", USAGE, "--input"),
    _m(f"extract --input nowhere.warc.gz {_OUT}", USAGE, "nowhere.warc.gz"),
    _m(f"extract --input 'crawl/*.warc.gz' {_OUT}", USAGE, "crawl/*.warc.gz"),
    _m(f"extract --input empty {_OUT}", USAGE, "empty", "no input file"),
    _m(f"extract --input odd {_OUT}", USAGE, "odd", "unknown suffix", "notes.rtf"),
    _m(f"extract --input nothing.jsonl {_OUT}", FAILED, "no document"),
    _m(f"extract --input picture.png {_OUT}", FAILED, "no document"),
    _m(f"extract --input cut.warc.gz {_OUT}", FAILED, "no document"),
    _m(f"extract --input broken.parquet {_OUT}", FAILED, "no document"),
    _m(f"extract --input broken.jsonl {_OUT}", FAILED, "no document"),
    _m(f"extract --input body.csv {_OUT}", FAILED, "no document"),
    _m(f"extract --input body.parquet {_OUT}", FAILED, "body.parquet", "text", "body"),
    _m(f"filter --input body.parquet {_OUT}", FAILED, "body.parquet", "text", "body"),
    _m(f"filter --input broken.parquet {_OUT}", USAGE, "broken.parquet"),
    _m(f"filter --input nowhere {_OUT}", USAGE, "nowhere"),
    _m(f"filter --input half {_OUT}", USAGE, "half", "manifest.json"),
    _m(f"filter --input empty {_OUT}", USAGE, "empty"),
    _m(f"extract --input s3x://bucket/x {_OUT}", USAGE, "s3x"),
    _m(f"extract --input http:// {_OUT}", USAGE, "http://", "incomplete"),
    _m(f"extract --input s3:// {_OUT}", USAGE, "s3://", "incomplete"),
    _m(f"extract --input hf://datasets/NAME {_OUT}", USAGE, "hf://datasets/NAME", "OWNER/NAME"),
    _m(f"filter --input odd {_OUT}", USAGE, "odd", "unknown suffix", "notes.rtf"),
    _m(f"filter --input nulls.parquet {_OUT}", FAILED, "nulls.parquet", "text is null"),
    _m(f"filter --input no-columns.parquet {_OUT}", FAILED, "no-columns.parquet", "no column"),
    _m(f"filter --input no-rows.parquet {_OUT}", FAILED, "no-rows.parquet", "no document"),
    _m(f"filter --input capital.csv {_OUT}", FAILED, "capital.csv", "Text", "text_columns"),
    _m(f"filter --input header.csv {_OUT}", FAILED, "header.csv", "no document"),
    _m(f"filter --input no-header.csv {_OUT}", FAILED, "no-header.csv", "but Bees and wasps"),
    _m(f"filter --input utf16.jsonl {_OUT}", FAILED, "utf16.jsonl", "UTF-16; save it as UTF-8"),
    _m(f"filter --input blank.jsonl {_OUT}", FAILED, "blank.jsonl", "blank lines"),
    _m(f"filter --input paper.pdf {_OUT}", FAILED, "paper.pdf", "unknown_format"),
    _m(f"filter --input sheet.xlsx {_OUT}", FAILED, "sheet.xlsx", "zip"),
    _m(f"filter --input rows.parquet {_OUT}", USAGE, "rows.parquet", "not a parquet file"),
    _m(f"filter --input ran {_OUT}", USAGE, "ran", "of another run"),
    _m(f"filter --input sp ace/r\u00f6ws.jsonl {_OUT}", USAGE, "sp: no input file"),
    _m(f"run llama3 --set inputs=[no.jsonl] {_OUT}", USAGE, "error: inputs: no.jsonl: no input"),
    _m(f"filter --input numbers.jsonl {_OUT}", FAILED, "numbers.jsonl", "text is int", "NAME"),
    _m(f"filter --input lists.parquet {_OUT}", FAILED, "lists.parquet", "text is a list"),
    _m(f"filter --input body.csv {_OUT}", FAILED, "body.csv", "body, n", "readers.text_columns"),
    _m(f"filter --input array.json {_OUT}", FAILED, "array.json", "'words' is not an object"),
    _m(f"filter --input notgz.warc.gz {_OUT}", FAILED, "notgz.warc.gz", "at 0"),
    _m(f"filter --input notzst.jsonl.zst {_OUT}", FAILED, "notzst.jsonl.zst", "at 0"),
    _m(f"mix --input rows.jsonl {_OUT}", FAILED, "rows.jsonl", "mix needs", "domain", "classify"),
    _m(f"rights --input rows.jsonl {_OUT}", FAILED, "rows.jsonl", "rights", "extract"),
    _m(f"run olmo3 --input rows.jsonl {_OUT}", USAGE, "rows.jsonl", "named inputs", "web="),
    _m(f"run llama3 --input rows.jsonl,more.jsonl {_OUT}", USAGE, "rows.jsonl,more.jsonl"),
    _m(f"run llama3 rows.jsonl {_OUT}", USAGE, "rows.jsonl"),
    _m("new rule class", USAGE, "class", "taken"),
    _m("new stage filter", USAGE, "filter", "taken"),
    _m("extract-file https://a.example/x.html", USAGE, "https://a.example/x.html", "a URL"),
    _m("extract-file nothing.jsonl", USAGE, "nothing.jsonl", "empty"),
    _m("extract --input rows.jsonl --output rows.jsonl", USAGE, "rows.jsonl"),
    _m("extract --input rows.jsonl --output rows.jsonl/out", USAGE, "rows.jsonl"),
    _m("extract --input rows.jsonl --output mine", USAGE, "mine"),
    _m("extract --input rows.jsonl --output /dev/null/out", USAGE, "/dev/null"),
    _m("extract-file nowhere.html", USAGE, "nowhere.html"),
    _m("extract-file picture.png", USAGE, "picture.png"),
    _m("extract-file odd", USAGE, "odd"),
    _m("extract-file rows.jsonl@7", FAILED, "rows.jsonl", "7"),
    _m("extract-file page.html --engine justxt", USAGE, "justxt"),
]
ROWS = [{"text": f"Text {n} on bees, wasps and other insects. " * 3, "n": n} for n in range(3)]
FILES: dict[str, bytes] = {
    "rows.jsonl": b"".join(json.dumps(row).encode() + b"\n" for row in ROWS),
    "nothing.jsonl": b"",
    "utf16.jsonl": '{"text": "words"}\n'.encode("utf-16") * 2,
    "broken.jsonl": b'{"text": \n[1, 2\n',
    "body.csv": b"body,n\nwords,1\n",
    "picture.png": b"\x89PNG\r\n\x1a\n" + bytes(range(256)) * 9,
    "cut.warc.gz": gzip.compress(b"WARC/1.0\r\nWARC-Type: response\r\n" * 9)[:30],
    "page.html": b"<title>T</title><p>A page with a sentence or two.</p>",
    "odd/notes.rtf": b"PK",
    "numbers.jsonl": b'{"text": 5}\n{"text": null}\n',
    "array.json": b'["words"]',
    "notgz.warc.gz": b"WARC/1.0\r\n" * 3,
    "notzst.jsonl.zst": b"words " * 9,
    "mine/extract/documents/notes.parquet": b"mine",
    "half/documents/a.parquet": b"PAR1 and nothing else",
    "broken.yaml": b"name: x\nfilter: [1, 2\nmix: 3\n",
    "list.yaml": b"- extract\n- filter\n",
    "latin.yaml": "name: Käse\n".encode("latin-1"),
    "empty.yaml": b"",
    "circle.yaml": b"extends: circle.yaml\nname: round\n",
    "wrong-stage.yaml": b"extends: llama3\nstages: [extract, filtr]\n",
    "no-parent.yaml": b"extends: lama3\nname: x\n",
    "typo.yaml": b"extends: llama3\nname: x\nfiltr: {}\n",
    "tab.yaml": b"filter:\n\trules: {}\n",
    "stage-map.yaml": b"extends: llama3\nname: x\nstages: [extract, {filtr: {}}]\n",
    "stages-text.yaml": b"extends: llama3\nname: x\nstages: extract, filter\n",
    "nested.yaml": b"extends: llama3\nname: x\nmix: {domains: {code: {shar: 0.1}}}\n",
    "nan.yaml": b"extends: llama3\nfilter: {rules: {gopher: {word_count: {min: .nan}}}}\n",
    "short.yaml": b"extends: llama3\nname: x\nmix: {on_shortage: explode}\n",
    "english.yaml": b"extends: llama3\nidentify-language: {languages: [english]}\n",
    "capital.csv": b"Text,n\nwords,1\n",
    "header.csv": b"text,n\n",
    "no-header.csv": b"Bees and wasps,1\nFlies,2\n",
    "blank.jsonl": b"\n\n",
    "paper.pdf": b"%PDF-1.7\n%\xe2\xe3\xcf\xd3\n",
    "tokenizer.json": b"{}",
    "sheet.xlsx": b"PK\x03\x04" + bytes(99),
    "rows.parquet": b"".join(json.dumps(row).encode() + b"\n" for row in ROWS),
    "type.yaml": b"extends: llama3\nfilter: {rules: {gopher: {word_count: {min: many}}}}\n",
    "code.yaml": b"extends: llama3\nfilter: {rules: {a: {b: {min: 1, python: 'mine.py:f'}}}}\n",
}


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """A working directory with what newcomers have in theirs, and a finished stage in `done`."""
    folder, before = tmp_path_factory.mktemp("home"), Path.cwd()
    for name, data in FILES.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_bytes(data)
    (folder / "empty").mkdir()
    pq.write_table(pa.table({"body": ["words"]}), folder / "body.parquet")
    pq.write_table(pa.table({"text": [["a", "b"], ["c"]]}), folder / "lists.parquet")
    pq.write_table(pa.table({"text": pa.nulls(2)}), folder / "nulls.parquet")
    pq.write_table(pa.table({}), folder / "no-columns.parquet")
    pq.write_table(pa.table({"text": pa.array([], pa.string())}), folder / "no-rows.parquet")
    sound = (folder / "body.parquet").read_bytes()
    (folder / "broken.parquet").write_bytes(sound[: len(sound) // 2])
    os.chdir(folder)
    assert cli.main("extract --input rows.jsonl --output done --workers 0 --quiet".split()) == 0
    shutil.copytree("done", "ran/done")
    yield folder
    os.chdir(before)


def _line(arguments: list[str], capsys: pytest.CaptureFixture[str]) -> tuple[int, str]:
    """Exit code of a command, and the one line that it prints of what is wrong."""
    capsys.readouterr()
    code = cli.main(arguments)
    (line,) = capsys.readouterr().err.splitlines()
    assert line.startswith("curate: error: ") and "this is a bug" not in line
    return code, line


def _complete(command: str) -> list[str]:
    """A command as typed, in this process if it runs stages."""
    arguments = shlex.split(command)
    own = cli.COMMANDS.keys() - {"run"}  # `withdraw` is a stage's name, too
    if arguments[0] in {"run", *STAGES} - own and "--" not in arguments:
        arguments += ["--workers", "0", "--quiet"]
        if "--output" not in arguments and "--what-if" not in arguments:
            arguments += ["--output", "new"]
    return arguments


@pytest.mark.parametrize("mistake", [*COMMANDS, *RECIPES, *INPUTS], ids=lambda m: m.command[:60])
def test_a_mistake(mistake: Mistake, home: Path, capsys: pytest.CaptureFixture[str]) -> None:
    code, line = _line(_complete(mistake.command), capsys)
    shutil.rmtree("new", ignore_errors=True)
    assert code == mistake.code, line
    assert re.search(".*".join(map(re.escape, mistake.says)), line), line


_RECIPE = b"extends: llama3\nname: x\nstages: [dedup-urls]\n"


@pytest.mark.parametrize(
    ("name", "recipe"),
    {
        "windows.yaml": _RECIPE.replace(b"\n", b"\r\n"),
        "mark.yaml": b"\xef\xbb\xbf" + _RECIPE,
        "json.yaml": b'{"extends": "llama3", "name": "x", "stages": ["dedup-urls"]}',
        "recipe.txt": _RECIPE,
    }.items(),
)
@pytest.mark.parametrize(
    "table",
    ["rows.jsonl", "not.jsonl.gz", "is.jsonl", "sp ace/b\u00e4r/\u65e5\u672c.jsonl", "text.csv"],
)
def test_what_is_no_mistake(name: str, recipe: bytes, table: str, home: Path) -> None:
    """Line ends and marks of other systems, names of other languages, a wrong `.gz`."""
    rows = FILES["rows.jsonl"]
    data = {
        "is.jsonl": gzip.compress(rows),
        "text.csv": b"\xef\xbb\xbftext;n\r\n" + b"words;1\r\n" * 3,
    }
    Path(table).parent.mkdir(parents=True, exist_ok=True)
    Path(table).write_bytes(data.get(table, rows))
    Path(name).write_bytes(recipe)
    out = Path("ne w", "\u00fc")
    assert cli.main(["run", name, "--input", table, "--output", f"{out}", *_QUIET]) == 0
    (documents,) = (out / "dedup-urls" / "documents").iterdir()
    assert pq.read_table(documents)["n"].to_pylist() in ([0, 1, 2], [1, 1, 1], ["1", "1", "1"])
    shutil.rmtree("ne w")


def test_what_is_too_long_names_the_setting(home: Path, capsys: pytest.CaptureFixture[str]) -> None:
    Path("long.jsonl").write_bytes(json.dumps({"text": "x" * 3000}).encode() + b"\n")
    limit = "--set readers.max_record_bytes=2000"
    code, line = _line(_complete(f"extract --input long.jsonl {limit}"), capsys)
    assert code == FAILED and "a line of over 2000 bytes (readers.max_record_bytes)" in line
    shutil.rmtree("new")


def test_outputs_of_other_runs_are_not_input(home: Path) -> None:
    """A run within the folder of its input, and a second one of that folder elsewhere."""
    Path("crawl").mkdir()
    Path("crawl", "a.jsonl").write_bytes(FILES["rows.jsonl"])
    for output in ("crawl/out", "crawl/other", "elsewhere", "crawl"):
        assert cli.main(["extract", "--input", "crawl", "--output", output, *_QUIET]) == 0
        manifest = json.loads(Path(output, "extract", "manifest.json").read_text())
        assert manifest["counts"]["documents"] == 3
    # What a stage left is input if it is named.
    assert cli.main(["extract", "--input", "crawl/out/extract", "--output", "new", *_QUIET]) == 0
    shutil.rmtree("new")


def test_there_are_enough() -> None:
    commands = [mistake.command for mistake in (*COMMANDS, *RECIPES, *INPUTS)]
    assert len(set(commands)) == len(commands) >= 140


@pytest.mark.skipif(sys.platform == "darwin", reason="macOS only has names in UTF-8")
def test_names_that_are_not_utf8(home: Path, capsys: pytest.CaptureFixture[str]) -> None:
    name = os.fsdecode(b"caf\xe9.jsonl")
    Path("latin").mkdir()
    Path("latin", name).write_bytes(FILES["rows.jsonl"])
    for arguments in (["--input", "latin"], ["--input", name], ["--output", name]):
        code, line = _line(["run", "llama3", *arguments], capsys)
        assert code == USAGE and "caf\\udce9.jsonl" in line and "not UTF-8" in line


@pytest.mark.skipif(sys.platform == "darwin", reason="macOS only has names in UTF-8")
def test_a_locale_that_cannot_read_names_is_named(
    home: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Both where a name is given and where a folder has it, as with LC_ALL=C PYTHONUTF8=0."""
    name = os.fsdecode(b"caf\xe9.jsonl")
    Path("locale").mkdir()
    monkeypatch.setattr(sys, "getfilesystemencoding", lambda: "ascii")
    Path("locale", name).write_bytes(FILES["rows.jsonl"])
    for given in (name, "locale"):
        code, line = _line(["run", "llama3", "--input", given], capsys)
        assert code == USAGE and "caf\\udce9.jsonl: this locale has only ascii; set LC_ALL" in line


def test_names_that_are_too_long(home: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for command in ("run llama3 --input rows.jsonl", "read-tables --input rows.jsonl"):
        for name in ("x" * 300, f"{'x' * 300}/new"):
            code, line = _line(_complete(f"{command} --output {name}"), capsys)
            assert code == USAGE and ": a name of over 255 bytes" in line


def test_folders_that_are_closed(home: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for name, mode in {"unreadable": 0o000, "readonly": 0o555}.items():
        Path(name).mkdir()
        Path(name).chmod(mode)
    with contextlib.suppress(PermissionError):
        os.listdir("unreadable")
        pytest.skip("this user may read everything")
    code, line = _line(_complete("extract --input unreadable --output new"), capsys)
    assert code == USAGE and "unreadable" in line
    code, line = _line(_complete("extract --input rows.jsonl --output readonly"), capsys)
    assert code == USAGE and "readonly: can't be written as a run folder: Permission" in line


@pytest.mark.parametrize("scheme", ["https", "http", "s3", "hf", "gs"])
def test_places_that_cannot_be_reached(
    scheme: str, home: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Without a network, or without the package for it: never `no input file matches`."""
    monkeypatch.setattr(persist, "TRIES", 1)

    async def at_once(*_: object) -> None:
        """Libraries for stores have pauses of their own, of a minute in all."""

    monkeypatch.setattr(asyncio, "sleep", at_once)
    monkeypatch.setattr(time, "sleep", lambda _: None)

    def nobody(*_: object, **__: object) -> None:
        raise socket.gaierror(socket.EAI_NONAME, "Name or service not known")

    monkeypatch.setattr(socket, "getaddrinfo", nobody)
    url = f"{scheme}://nowhere.invalid/datasets/x.parquet"
    code, line = _line(_complete(f"extract --input {url}"), capsys)
    assert code in (USAGE, FAILED) and url in line and "no input file matches" not in line
    assert re.search(r"pip install 'curation\[|no such host|credentials|anonymous", line), line


@pytest.mark.parametrize("url", ["s3://a/b", "gs://a/b", "hf://datasets/a/b", "https://a.example/"])
def test_packages_that_are_missing(
    url: str, home: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def absent(*_: object, **__: object) -> None:
        raise ImportError("No module named 'x'")

    monkeypatch.setattr(fsspec.core, "url_to_fs", absent)
    code, line = _line(_complete(f"extract --input {url}"), capsys)
    package = {"s3": "s3fs", "gs": "gcsfs", "hf": "huggingface_hub", "https": "aiohttp"}[
        url.partition("://")[0]
    ]
    wanted = f"{url}: needs {package}: pip install 'curation[{EXTRAS[package]}]'"
    assert code == USAGE and wanted in line


@pytest.mark.parametrize(
    ("package", "command"),
    [
        ("resiliparse", "extract-file page.html --engine resiliparse"),
        ("pypdfium2", "run pdf --input page.html"),
        ("resiliparse", "run llama3 --input page.html --set extract.engine=resiliparse"),
        ("tokenizers", "run llama3 --input page.html --set tokenize.tokenizer=tokenizer.json"),
        ("torch", "ablate rows.jsonl body.parquet --output new"),
    ],
)
def test_packages_of_extras_that_are_missing(
    package: str,
    command: str,
    home: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The extra is named before anything is written."""
    found = importlib.metadata.version

    def version(name: str) -> str:
        if name.lower() == package:
            raise importlib.metadata.PackageNotFoundError(name)
        return found(name)

    monkeypatch.setattr(importlib.metadata, "version", version)
    monkeypatch.setattr(facts, "_version", facts._version.__wrapped__)  # not what it remembers
    monkeypatch.setitem(sys.modules, package, None)
    code, line = _line(_complete(command), capsys)
    wanted = f"needs {package}: pip install 'curation[{EXTRAS[package]}]'"
    assert code == USAGE and wanted in line.lower()
    assert not Path("new").exists()


def test_an_engine_that_cannot_be_imported_starts_no_run(
    home: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Though its distribution is there."""
    monkeypatch.setitem(sys.modules, "resiliparse", None)
    command = "run llama3 --input page.html --set extract.engine=resiliparse"
    code, line = _line(_complete(command), capsys)
    assert code == USAGE and "extract.engine: needs resiliparse" in line
    assert not Path("new").exists()


def test_packages_of_extras_that_functions_need(monkeypatch: pytest.MonkeyPatch) -> None:
    uses = {
        "rapidfuzz": lambda: align(["a"], "a"),
        "torch": lambda: register(TokenShards),
    }
    for package, use in uses.items():
        name = f"{package}.utils.data" if package == "torch" else package
        monkeypatch.setitem(sys.modules, package, None)
        monkeypatch.setitem(sys.modules, name, None)
        with pytest.raises(ConfigError, match=rf"pip install 'curation\[{EXTRAS[package]}\]'"):
            use()


def test_an_extra_that_does_not_load_says_why() -> None:
    error = ImportError("libcudart.so.12: cannot open shared object file", name="torch")
    assert f"{missing('torch', 'curate ablate', error)}".endswith(
        "needs torch: pip install 'curation[torch]' "
        "(libcudart.so.12: cannot open shared object file)"
    )


def test_extras_are_those_of_the_project() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    extras = {
        extra: " ".join(requirements).lower().replace("-", "_")
        for extra, requirements in project["optional-dependencies"].items()
        if extra not in ("test", "docs", "ablate")  # that one is also `torch`
    }
    for package, extra in EXTRAS.items():
        assert package in extras[extra]
    assert set(EXTRAS.values()) == extras.keys()
