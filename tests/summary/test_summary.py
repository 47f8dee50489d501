"""`curate summary`: every number is what its SQL gives, and validators accept what is written."""

from __future__ import annotations

import csv
import json
import shutil
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import yaml

from curation.errors import ConfigError
from curation.resources import root
from curation.summary.document import check_answers, template, to_add
from curation.summary.figures import grouped_sql, top_count, top_sql
from curation.summary.statements import statements
from pipelines.cli import main
from pipelines.reading.summary import RunFacts
from tests.folders import digests

duckdb = pytest.importorskip("duckdb", reason="recomputes the numbers")
WARC = root().parent / "shared/data/warc"


@pytest.fixture(scope="module")
def run(sample_run: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A copy of the sample run with its summary."""
    copy = tmp_path_factory.mktemp("summary") / "out"
    shutil.copytree(sample_run, copy)
    assert main(["summary", "--run", str(copy)]) == 0
    return copy


def _query(run: Path, sql: str) -> tuple[list[str], list[list[Any]]]:
    connection = duckdb.connect()
    connection.execute(f"SET file_search_path='{run}'")
    done = connection.execute(sql)
    return [column[0] for column in done.description], [list(row) for row in done.fetchall()]


def _figures(document: dict[str, Any]) -> dict[str, dict[str, Any]]:
    fields = [field for section in document["sections"] for field in section["fields"]]
    return {name: figure for field in fields for name, figure in field.get("figures", {}).items()}


def _check(run: Path, folder: Path) -> dict[str, dict[str, Any]]:
    """Compare all numbers of the documents in a folder with what their SQL gives."""
    figures: dict[str, dict[str, Any]] = {}
    for name in ("eu-summary", "datasheet"):
        figures |= _figures(json.loads((folder / f"{name}.json").read_text()))
    for name, figure in figures.items():
        columns, rows = _query(run, figure["sql"])
        assert columns == figure["columns"] and rows == figure["rows"], name
    return figures


def test_the_sql_of_every_number_gives_it(run: Path) -> None:
    figures = _check(run, run / "summary")
    names = {"size", "tokens", "by_language", "top_hosts", "collections", "stages", "removed"}
    assert names | {"top_hosts_sme", "cuts", "personal_data", "removed_unsafe"} <= figures.keys()
    assert figures["size"]["rows"][0][0] > 100 and len(figures["removed"]["rows"]) > 10


def test_a_number_that_the_run_no_longer_gives_is_noticed(run: Path, tmp_path: Path) -> None:
    """The statements read the run: with a shard fewer their answers are others."""
    copy = tmp_path / "out"
    shutil.copytree(run, copy)
    path = next((copy / "mix/documents").glob("*.parquet"))
    pq.write_table(pq.read_table(path).slice(1), path)
    with pytest.raises(AssertionError, match="size"):
        _check(copy, copy / "summary")


@pytest.mark.usefixtures("forked_processes")
@pytest.mark.skipif(not WARC.is_dir(), reason="needs the archives of the shared data")
def test_the_sql_of_every_number_on_real_pages(tmp_path: Path) -> None:
    given = ["--input", str(WARC), "--output", str(tmp_path / "out"), "--workers", "1", "--quiet"]
    assert main(["run", "sample", *given]) == 0
    assert main(["summary", "--run", str(tmp_path / "out")]) == 0
    figures = _check(tmp_path / "out", tmp_path / "out/summary")
    assert figures["stages"]["rows"][0][2] > 400


def test_markdown_has_every_table_and_its_sql(run: Path) -> None:
    text = (run / "summary/eu-summary.md").read_text()
    document = json.loads((run / "summary/eu-summary.json").read_text())
    for figure in _figures(document).values():
        assert f"```sql\n{figure['sql']}\n```" in text
        for row in figure["rows"][:25]:
            assert all((f"{v:,}" if isinstance(v, int) else str(v)) in text for v in row if v)
    for field in to_add(document):
        assert f"**TO ADD** (`{field}`)" in text


def test_statements_have_no_numbers_of_their_own(run: Path) -> None:
    """Every number is in a table; years of the month and the range of the template are words."""
    document = json.loads((run / "summary/eu-summary.json").read_text())
    fields = {f["id"]: f.get("text", "") for s in document["sections"] for f in s["fields"]}
    assert fields.pop("latest_date") == "02/2024."
    assert fields.pop("text_size").startswith("Text: less than 1 billion tokens. ")
    assert not any(char.isdigit() for text in fields.values() for char in text)


def test_long_tables_are_files(run: Path) -> None:
    with open(run / "summary/top_hosts.csv", newline="") as file:
        rows = list(csv.reader(file))
    figure = _figures(json.loads((run / "summary/eu-summary.json").read_text()))["top_hosts"]
    assert rows == [figure["columns"], *([str(v) for v in row] for row in figure["rows"])]


def test_answers_take_the_place_of_what_is_to_add(run: Path, tmp_path: Path) -> None:
    answers = tmp_path / "answers.yaml"
    answers.write_text(
        "provider: Example Ltd, 1 Road\nillegal_content: A hotline takes reports.\n"
        "crawl_comments: Sites were asked first.\n"
    )
    arguments = ["--answers", str(answers), "--output", str(tmp_path / "s")]
    assert main(["summary", "--run", str(run), *arguments]) == 0
    document = json.loads((tmp_path / "s/eu-summary.json").read_text())
    left = to_add(document)
    assert not {"provider", "illegal_content"} & left.keys() and "model_names" in left
    text = (tmp_path / "s/eu-summary.md").read_text()
    assert "Example Ltd, 1 Road" in text and "flagged words" in text and "A hotline" in text
    fields = {field["id"] for section in document["sections"] for field in section["fields"]}
    assert "Sites were asked first." in text  # of the optional fields, those with an answer
    assert "crawl_comments" in fields and "public_comments" not in fields


@pytest.mark.parametrize(
    ("answers", "message"),
    [
        ({"provder": "x"}, "provder: no such field; did"),
        ({"provider": 3}, "expected a text"),
    ],
)
def test_wrong_answers(answers: dict[str, Any], message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        check_answers(answers, [template("eu"), template("datasheet")])


@pytest.mark.parametrize("name", ["eu", "datasheet"])
def test_templates_name_what_there_is(name: str, run: Path) -> None:
    known = {*RunFacts.of(str(run)).figures(), "rights_signals", "by_licence", "removed_rights"}
    fields = [field for section in template(name)["sections"] for field in section["fields"]]
    assert len({field["id"] for field in fields}) == len(fields)
    for field in fields:
        assert field.keys() <= {"id", "label", "text", "says", "figures", "person", "optional"}
        assert field.keys() & {"text", "says", "person", "optional"}
        assert {*field.get("figures", ())} <= known


def test_croissant_is_valid_and_leads_to_the_documents(run: Path, tmp_path: Path) -> None:
    croissant = pytest.importorskip("mlcroissant", reason="validates Croissant")
    shutil.copytree(run / "mix", tmp_path / "mix")
    shutil.copy(run / "summary/croissant.json", tmp_path)
    data = croissant.Dataset(str(tmp_path / "croissant.json"))
    issues = data.metadata.ctx.issues
    assert not issues.errors and not issues.warnings
    assert data.metadata.data_collection and data.metadata.data_limitations
    rows = list(data.records("texts"))
    figure = _figures(json.loads((run / "summary/eu-summary.json").read_text()))["size"]
    assert len(rows) == figure["rows"][0][0]
    expected = pq.read_table(run / "mix/documents", columns=["text"])["text"].to_pylist()
    assert sorted(row["texts/text"].decode() for row in rows) == sorted(expected)


def test_the_card_has_metadata_that_the_hub_takes(run: Path) -> None:
    text = (run / "summary/README.md").read_text()
    _, front, body = text.split("---\n", 2)
    head = yaml.safe_load(front)
    assert head["size_categories"] == ["n<1K"] and {"en", "ja", "ru"} <= {*head["language"]}
    pattern = head["configs"][0]["data_files"][0]["path"]
    assert list(run.glob(pattern))
    assert "# Datasheet" in body
    hub = pytest.importorskip("huggingface_hub", reason="reads cards")
    read = hub.DatasetCard(text).data
    assert read.language == head["language"] and read.size_categories == ["n<1K"]
    assert read.configs == head["configs"] and read.license == "unknown"


def _write_run(folder: Path, rows: list[dict[str, Any]], schema: pa.Schema) -> None:
    from pipelines.storage.files import Folder
    from pipelines.storage.manifest import write_manifest
    from pipelines.storage.shards import TableWriter

    place = Folder(str(folder / "filter"))
    with TableWriter(place, "documents/a.parquet", schema) as writer:
        writer.write(pa.RecordBatch.from_pylist(rows, schema))
    counts = {"documents": len(rows), "characters": sum(len(row["text"]) for row in rows)}
    manifest = {"stage": "filter", "settings": {}, "counts": counts, "recipe": {"name": "x"}}
    manifest |= {"files": {"documents/a.parquet": writer.record._asdict()}}
    write_manifest(place, manifest)


def test_rights_and_odd_rows_are_counted_as_their_sql_does(tmp_path: Path) -> None:
    signal = pa.struct([(name, pa.string()) for name in ("kind", "place", "agent", "value")])
    schema = pa.schema(
        [
            ("id", pa.string()),
            ("url", pa.string()),
            ("date", pa.timestamp("us", tz="UTC")),
            ("text", pa.large_string()),
            ("source", pa.struct([("file", pa.string()), ("offset", pa.int64())])),
            ("rights", pa.struct([("licence", pa.string()), ("signals", pa.list_(signal))])),
        ]
    )
    noai = {"kind": "directive", "place": "head", "agent": None, "value": "noai"}
    robots = {"kind": "robots", "place": None, "agent": "GPTBot", "value": "disallow"}
    urls = ["https://www.a.example/x", "http://u:p@A.example:80/y", "file:///z", None, "no url"]
    urls += ["https://bücher.example/", "https://[::1]/", "https://b'.example/?q", "a://www.b/c"]
    given = [
        {
            "id": str(n),
            "url": url,
            "date": None if n % 2 else datetime(2024, 2, 29, 23, 59, 59, tzinfo=UTC),
            "text": "水" * n + "e\u0301🙂",
            "source": {"file": ["CC-MAIN-2024-1.warc.gz", "books/CC-NEWS-1", "b's/x", "y"][n % 4]}
            | {"offset": n},
            "rights": None
            if n == 3
            else {"licence": [None, "CC-BY-4.0"][n % 2], "signals": [noai] * n + [robots]},
        }
        for n, url in enumerate(urls)
    ]
    _write_run(tmp_path, given, schema)
    figures = RunFacts.of(str(tmp_path)).figures()
    for name, figure in figures.items():
        columns, found = _query(tmp_path, figure.sql)
        assert (tuple(columns), [*map(tuple, found)]) == (figure.columns, [*figure.rows]), name
    by_host = {row[0]: row[1] for row in _query(tmp_path, _every_host())[1]}
    assert by_host["a.example"] == 2 and "b" in by_host
    assert {row[0] for row in figures["collections"].rows} == {"Common Crawl", "b's", "unnamed"}
    signals = {row[:2]: row[2] for row in figures["rights_signals"].rows}
    assert signals == {("directive", "head"): sum(n for n in range(9) if n != 3), ("robots", ""): 8}


def _every_host() -> str:
    return grouped_sql("host", "read_parquet('filter/documents/*.parquet')")


@pytest.mark.parametrize(
    ("hosts", "percent", "most", "listed"),
    [(1, 10, None, 1), (30, 10, None, 3), (31, 10, None, 4), (50_000, 5, 1000, 1000), (0, 5, 9, 0)],
)
def test_the_share_of_domains(hosts: int, percent: int, most: int | None, listed: int) -> None:
    assert top_count(hosts, percent, most) == listed
    table = f"(SELECT 'https://h' || range || '.example/' AS url, 'x' AS text FROM range({hosts}))"
    assert len(duckdb.sql(top_sql(table, percent, most)).fetchall()) == listed


def test_the_same_run_gives_the_same_bytes(
    run: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Also in the place of an earlier summary, and beside a file that is none of it."""
    command = ["summary", "--run", str(run), "--output", str(tmp_path / "again")]
    assert main(command) == 0
    assert digests(tmp_path / "again") == digests(run / "summary")
    (tmp_path / "again/mine.txt").write_text("mine")
    (tmp_path / "again/datasheet.md").write_text("changed")
    capsys.readouterr()
    assert main([*command, "--json"]) == 0
    (tmp_path / "again/mine.txt").unlink()
    assert digests(tmp_path / "again") == digests(run / "summary")
    stated = json.loads(capsys.readouterr().out)["files"]
    assert stated == sorted(path.name for path in (run / "summary").iterdir())


def test_a_mix_that_is_not_there(run: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["summary", "--run", str(run), "--mix", "late"]) == 2
    assert "--mix late" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("recipe", "stages", "columns", "said"),
    [
        ({}, ["extract"], ["rights"], "were read and kept with each document; this run removed"),
        ({}, ["extract"], [], "were not read"),
        (
            {"rights": {"honour": ["tdm", "noai"], "agents": ["GPTBot"], "retroactive": True}},
            ["extract", "rights"],
            ["rights"],
            "Reservations honoured: tdm, noai; evaluated for the agents: GPTBot; what a site has",
        ),
        (
            {"rights": {"honour": ["train"]}},
            ["rights"],
            ["rights"],
            "none; a use is denied if any of these denies it: Content Signals, Content-Usage",
        ),
        (
            {"rights": {"licences": {"require": ["CC-BY-4.0"]}}},
            ["rights"],
            ["rights"],
            "only documents under these licences are kept: CC-BY-4.0.",
        ),
        (
            {"rights": {"follow": {"near": 0.8}, "contradictions": "strictest"}},
            ["dedup-documents", "rights"],
            ["rights"],
            "copies that are at least 80% similar are removed, too; of contradicting reservations",
        ),
    ],
)
def test_what_is_said_of_opt_outs(
    run: Path, recipe: dict[str, Any], stages: list[str], columns: list[str], said: str
) -> None:
    figures = RunFacts.of(str(run)).figures()
    texts = statements(figures, recipe, stages, {}, columns, "0" * 64)
    assert said in texts["opt_outs"]


def test_what_is_said_of_unlawful_content(run: Path) -> None:
    facts = RunFacts.of(str(run))
    figures, settings = facts.figures(), facts.recipe["filter"]
    whole = statements(figures, facts.recipe, facts.stages, {}, [], "")["illegal_content"]
    assert "flagged words" in whole and "(email, ip, " in whole and "block lists" not in whole
    lists = {"filter": settings | {"rules": {}, "blocklists": {"lists": {"adult": "x"}}, "pii": {}}}
    listed = statements(figures, lists, facts.stages, {}, [], "")["illegal_content"]
    assert listed == "Hosts and addresses of block lists are removed (adult)."
    none = {"filter": {"rules": {"llama3": {"dirty_word_ratio": None}}}}
    off = statements(figures, none, facts.stages, {}, [], "")["illegal_content"]
    assert off == "None is switched on."
