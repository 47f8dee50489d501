"""Plain tables into any stage: texts and columns as they are."""

from __future__ import annotations

import csv
import gzip
import io
import json
import math
import tempfile
from datetime import UTC, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import zstandard
from hypothesis import given, settings
from hypothesis import strategies as st

from curation.extract.safe import extract_page, text_of
from curation.readers.documents import document_row, documents_batch, joined, others_of
from curation.readers.read import read
from curation.readers.records import Page
from curation.recipe import load
from pipelines.cli import main
from pipelines.reading.explorer import Explorer
from pipelines.run_folder import load_run
from tests.folders import differences

ROWS: list[dict[str, Any]] = [
    {"text": " A text\r\nwith two lines \n", "n": 1, "tags": ["a"], "language": "en"},
    {"text": "e\u0301 is not é, cafÃ© stays", "n": None, "tags": [], "language": "fr"},
    {"text": "", "n": 3, "tags": None, "language": "en"},
]


def run(*arguments: str) -> int:
    return main([*arguments, "--workers", "0", "--quiet"])


def kept(place: str) -> list[dict[str, Any]]:
    return [r for f in sorted(Path(place).glob("*.parquet")) for r in pq.read_table(f).to_pylist()]


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "rows.jsonl").write_text("".join(json.dumps(r) + "\n" for r in ROWS))
    return tmp_path


def test_a_table_goes_into_a_single_stage(home: Path) -> None:
    arguments = ["identify-language", "--input", "rows.jsonl", "--output", "out"]
    assert run(*arguments, "--set", "identify-language.thresholds={default: 0}") == 0
    rows = kept("out/read-tables/documents")
    assert [r["text"] for r in rows] == [r["text"] for r in ROWS[:2]]
    assert [(r["n"], r["tags"]) for r in rows] == [(1, ["a"]), (None, [])]
    assert [r["source"] for r in rows] == [
        {"file": "rows.jsonl", "offset": 0},
        {"file": "rows.jsonl", "offset": len(json.dumps(ROWS[0])) + 1},
    ]
    assert len({r["id"] for r in rows}) == 2 and rows[0]["date"] is None
    (removed,) = kept("out/read-tables/removed")
    assert removed["reason"] == "table.empty_text"
    after = kept("out/identify-language/documents") + kept("out/identify-language/removed")
    assert {r["n"] for r in after} == {1, None}
    assert run("filter", "--input", "out/identify-language", "--output", "out") == 0


def test_the_types_of_parquet_stay(home: Path) -> None:
    day = datetime(2024, 5, 6, tzinfo=UTC)
    table = pa.table(
        {
            "content": pa.array(["one", "two"], pa.string()),
            "id": pa.array(["x", "y"]),
            "source": pa.array(["wiki", "books"]),
            "small": pa.array([1, 2], pa.int16()),
            "when": pa.array([day, None], pa.timestamp("ms", "UTC")),
            "language": pa.array([7, 8]),
        }
    )
    pq.write_table(table, "t.parquet")
    assert run("read-tables", "--input", "t.parquet", "--output", "out") == 0
    read = pq.read_table("out/read-tables/documents")
    assert read["text"].to_pylist() == ["one", "two"] and read["id"].to_pylist() == ["x", "y"]
    for name in ("small", "when"):
        assert read[name].combine_chunks().equals(table[name].combine_chunks())
    assert read["own_source"].to_pylist() == ["wiki", "books"]
    assert read["own_language"].to_pylist() == [7, 8]
    one = ["read-tables", "--input", "t.parquet", "--output", "one", "--set"]
    assert run(*one, "read-tables.columns=[small]") == 0
    assert "when" not in pq.read_table("one/read-tables/documents").column_names


def test_values_of_several_kinds_are_json(home: Path) -> None:
    values = [1, "one", {"y": [1, float("nan")]}, float("-inf")]
    rows = [{"text": "a", "x": x, "quality": float("nan")} for x in values]
    (home / "mixed.jsonl").write_text("".join(json.dumps(r) + "\n" for r in rows))
    assert run("read-tables", "--input", "mixed.jsonl", "--output", "out") == 0
    read = kept("out/read-tables/documents")
    assert [r["x"] for r in read] == ["1", "one", '{"y": [1, NaN]}', "-Infinity"]
    assert all(math.isnan(r["quality"]) for r in read)


def test_what_is_no_row_is_set_aside(home: Path) -> None:
    (home / "bad.jsonl").write_text('{"text": "a"}\n{"text": \n{"html": "<p>b"}\n')
    assert run("read-tables", "--input", "bad.jsonl", "--output", "out") == 0
    reasons = [r["reason"] for r in kept("out/read-tables/set_aside")]
    assert reasons == ["jsonl.bad_json", "table.page"]


@pytest.mark.usefixtures("forked_processes")
def test_the_same_bytes_for_any_number_of_workers(home: Path) -> None:
    (home / "in").mkdir()
    for i in range(9):
        rows = [{"text": f"Text {i} {j}", "n": j if i % 2 else None} for j in range(700)]
        (home / "in" / f"{i}.jsonl").write_text("".join(json.dumps(r) + "\n" for r in rows))
    arguments = ["run", "llama3", "--stages", "dedup-urls,identify-language", "--input", "in"]
    assert main([*arguments, "--output", "a", "--workers", "0", "--quiet"]) == 0
    assert main([*arguments, "--output", "b", "--workers", "2", "--quiet"]) == 0
    assert differences(home / "a", home / "b") == []
    assert len(kept("a/read-tables/documents")) == 6300
    assert main(["why", kept("a/read-tables/documents")[5]["id"], "--run", "a"]) == 0


def test_csv_and_tables_without_text(home: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (home / "t.csv").write_text("text,label\none,1\n")
    assert run("read-tables", "--input", "t.csv", "--output", "out") == 0
    assert kept("out/read-tables/documents")[0]["label"] == "1"
    pq.write_table(pa.table({"body": ["x"]}), "b.parquet")
    assert run("read-tables", "--input", "b.parquet", "--output", "b") == 1
    assert "none of the columns text" in capsys.readouterr().err
    body = ["--set", "readers.text_columns=[body]"]
    assert run("read-tables", "--input", "b.parquet", "--output", "c", *body) == 0


def test_a_broken_table_costs_itself(home: Path) -> None:
    (home / "in").mkdir()
    pq.write_table(pa.table({"text": ["one"]}), "in/good.parquet")
    data = (home / "in" / "good.parquet").read_bytes()
    (home / "in" / "bad.parquet").write_bytes(data[:-20] + bytes(20))
    assert run("read-tables", "--input", "in", "--output", "out") == 0
    assert [r["text"] for r in kept("out/read-tables/documents")] == ["one"]
    (aside,) = kept("out/read-tables/set_aside")
    assert (aside["reason"], aside["source"]["file"]) == ("parquet.corrupt", "bad.parquet")


_RECIPE = load("llama3")
_TEXTS = st.text(
    st.characters(exclude_categories=["Cs"])
    | st.sampled_from("\ufeff\r\n\0 \x85e\u0301Ã©â€™\u2028"),
    min_size=1,
)


def _write(path: Path, texts: list[str]) -> None:
    """A table in the format that the suffixes name."""
    name, table = path.name, pa.table({"text": texts, "n": range(len(texts))})
    if ".parquet" in name:
        pq.write_table(table, path)
    elif ".arrow" in name:
        with pa.ipc.new_stream(path, table.schema) as stream:
            stream.write_table(table)
    else:
        with io.StringIO(newline="") as file:
            if ".json" in name:
                file.writelines(json.dumps(row) + "\n" for row in table.to_pylist())
            else:
                rows = csv.writer(file, delimiter="\t" if ".tsv" in name else ",")
                rows.writerows([["text", "n"], *zip(texts, range(len(texts)), strict=True)])
            data = file.getvalue().encode()
        packed = {".gz": gzip.compress, ".zst": zstandard.compress}.get(path.suffix, bytes)
        path.write_bytes(packed(data))


@pytest.mark.parametrize(
    "name", ["t.parquet", "t.arrow", "t.jsonl", "t.jsonl.gz", "t.jsonl.zst", "t.csv", "t.tsv.gz"]
)
@settings(max_examples=30)
@given(texts=st.lists(_TEXTS, min_size=1, max_size=5))
def test_texts_stay_byte_for_byte(name: str, texts: list[str]) -> None:
    """As both stages that read tables write them."""
    readers = _RECIPE.readers
    with tempfile.TemporaryDirectory() as folder:
        _write(path := Path(folder, name), texts)
        others = joined([others_of(str(path), name, readers)])
        pages = [event for event in read(str(path), readers, name) if isinstance(event, Page)]
    rows = [document_row(name, page, text_of(page)) for page in pages]
    batch = documents_batch([row for row, _ in rows], [own for _, own in rows], others)
    assert batch.column("text").to_pylist() == texts
    assert [str(n) for n in batch.column("n").to_pylist()] == [str(n) for n in range(len(texts))]
    assert [extract_page(_RECIPE.extract, page).text for page in pages] == texts


@pytest.mark.parametrize(
    ("how", "text"),
    [
        ("none", "I donâ€™t e\u0301 \r\n"),
        ("nfc", "I donâ€™t é \r\n"),
        ("repair", "I don’t é"),
    ],
)
def test_normalization_on_request(home: Path, how: str, text: str) -> None:
    (home / "t.jsonl").write_text(json.dumps({"text": "I donâ€™t e\u0301 \r\n"}) + "\n")
    for stage in ("extract", "read-tables"):
        options = ["--set", f"readers.normalize_text={how}"]
        assert run(stage, "--input", "t.jsonl", "--output", "out", *options) == 0
        assert [r["text"] for r in kept(f"out/{stage}/documents")] == [text]


def test_a_saved_dataset_goes_into_any_stage(home: Path) -> None:
    """The layout of `datasets.DatasetDict.save_to_disk`."""
    for split, rows in {"train": ROWS[:2], "test": ROWS[2:]}.items():
        (folder := home / "saved" / split).mkdir(parents=True)
        table = pa.Table.from_pylist(rows)
        with pa.ipc.new_stream(folder / "data-00000-of-00001.arrow", table.schema) as stream:
            stream.write_table(table)
        (folder / "cache-1.arrow").write_bytes(b"")
        for name in ("state.json", "dataset_info.json"):
            (folder / name).write_text("{}")
    (home / "saved" / "dataset_dict.json").write_text('{"splits": ["train", "test"]}')
    assert run("dedup-urls", "--input", "saved", "--output", "out") == 0
    rows = kept("out/read-tables/documents")
    assert [r["text"] for r in rows] == [r["text"] for r in ROWS[:2]]
    assert {r["source"]["file"] for r in rows} == {"train/data-00000-of-00001.arrow"}


def test_columns_of_tables_go_to_the_token_index(
    home: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    day = datetime(2024, 5, 6, 7, 8, 9, 12, tzinfo=UTC)
    table = pa.table(
        {
            "text": ["A text on bees. ", "Another on wasps."],
            "stars": pa.array([5, None], pa.int16()),
            "seen": pa.array([day, None], pa.timestamp("ns", "UTC")),
            "repeats": ["often", "never"],
            "marks": [{"a": [1.5, float("nan")]}, None],
        }
    )
    pq.write_table(table, "t.parquet")
    stages = ["run", "llama3", "--input", "t.parquet", "--stages"]
    assert run(*stages, "extract,dedup-urls,tokenize", "--output", "out") == 0
    documents = pq.read_table("out/dedup-urls/documents")
    for name in ("stars", "seen"):
        assert documents[name].combine_chunks().equals(table[name].combine_chunks())
    rows = [json.loads(row["own"]) for row in kept("out/tokenize/index")]
    assert sorted(rows, key=lambda row: row["own_repeats"], reverse=True) == [
        {
            "stars": 5,
            "seen": "2024-05-06 07:08:09.000012000Z",
            "own_repeats": "often",
            "marks": {"a": [1.5, None]},
        },
        {"stars": None, "seen": None, "own_repeats": "never", "marks": None},
    ]
    some = ["--set", "tokenize.index_columns=[stars,nope]"]
    assert run(*stages, "dedup-urls,tokenize", "--output", "some", *some) == 2
    assert "tokenize.index_columns: no column 'nope'; there are " in capsys.readouterr().err
    some[1] = "tokenize.index_columns=[stars]"
    assert run(*stages, "dedup-urls,tokenize", "--output", "some", *some) == 0
    assert {row["own"] for row in kept("some/tokenize/index")} == {
        '{"stars": 5}',
        '{"stars": null}',
    }


def test_the_index_has_columns_that_stages_make_where_they_are_named(home: Path) -> None:
    rows = [{"text": "Some words.", "title": "T", "quality": 0.5, "n": 1, "rights": "mine"}]
    Path("t.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    some = ["--set", "tokenize.index_columns=[quality,title,text,id,url,own_rights]"]
    for output, limits in (("all", []), ("some", some)):
        assert run("tokenize", "--input", "t.jsonl", "--output", output, *limits) == 0
    owns = [
        json.loads(row["own"]) for out in ("all", "some") for row in kept(f"{out}/tokenize/index")
    ]
    assert owns == [
        {"n": 1, "own_rights": "mine"},
        {"title": "T", "quality": 0.5, "own_rights": "mine"},
    ]


def test_names_that_the_product_uses_are_renamed(home: Path) -> None:
    (home / "t.csv").write_text("text,value,reason,language\n,1,why,en\nwords,2,,de\n")
    assert run("extract", "--input", "t.csv", "--output", "out") == 0
    (removed,) = kept("out/extract/removed")
    assert (removed["own_value"], removed["own_reason"]) == ("1", "why")
    assert (removed["reason"], removed["language"]) == ("extract.empty", "en")


def test_files_that_number_their_rows(home: Path, capsys: pytest.CaptureFixture[str]) -> None:
    passage = " ".join(f"word{i}" for i in range(20))
    for name, text in ("a", "One row."), ("b", passage):
        (home / f"{name}.csv").write_text(f"id,text\n1,{text}\n")
    arguments = ["--stages", "tokenize", "--input", "a.csv", "b.csv", "--output", "out"]
    assert main(["run", "llama3", *arguments, "--workers", "0", "--quiet"]) == 0
    assert main(["verify", "--run", "out", "--sample", "1"]) == 0
    assert "2 token spans trace back" in capsys.readouterr().out
    assert main(["why", "1", "--run", "out", "--json"]) == 0
    told = json.loads(capsys.readouterr().out)
    spans = [document["decisions"][-1]["spans"] for document in told]
    assert [[span["source"]["file"] for span in some] for some in spans] == [["a.csv"], ["b.csv"]]
    assert main(["trace", passage, "--run", "out", "--json"]) == 0
    (document,) = json.loads(capsys.readouterr().out)["found"]
    assert [one["start"] for one in document["sequences"]] == [spans[1][0]["start"]]
    (home / "ids").write_text("1\n")
    assert main(["withdraw", "--run", "out", "--ids", "ids", "--workers", "0"]) == 0
    told = capsys.readouterr().out
    assert "2 documents withdrawn, 0 removed before (1 ids)" in told
    assert "tokens of 2 documents in 1 sequences" in told


@pytest.mark.parametrize(
    ("other", "shown"), [(11, "12"), (11.5, "12.0"), (Decimal("11.50"), '"12.00"')]
)
def test_numbers_that_are_ids_of_a_table_find_its_documents(
    home: Path, capsys: pytest.CaptureFixture[str], other: Any, shown: str
) -> None:
    rows = [{"id": number, "text": f"The text of {number}."} for number in (other, type(other)(12))]
    pq.write_table(pa.Table.from_pylist(rows), "t.parquet")
    arguments = ["--stages", "dedup-urls,tokenize", "--input", "t.parquet", "--output", "out"]
    assert run("run", "llama3", *arguments) == 0
    assert main(["why", "12", "--run", "out", "--json"]) == 0
    (told,) = json.loads(capsys.readouterr().out)
    assert told["source"]["offset"] > 0 and len(told["id"]) == 32
    (found,) = Explorer("out").documents({"q": "12"})["rows"]
    assert Explorer("out").document({"row": str(found["row"])})["own"] == {"own_id": shown}
    (home / "ids").write_text("\ufeff12\n99\n")  # as Windows writes it
    assert main(["withdraw", "--run", "out", "--ids", "ids", "--workers", "0"]) == 0
    told = capsys.readouterr().out
    assert "1 documents withdrawn, 0 removed before (1 ids)\n1 ids are of no document" in told
    (gone,) = pq.read_table("out/withdrawn/withdrawn.parquet").to_pylist()
    assert "of 1 documents" in told and gone["id"] != "12"


def test_languages_have_the_names_of_thresholds_and_lists(home: Path) -> None:
    codes = ["deu", "deu_Latn", "de-AT", "German", "de", "xho_Latn", None]
    rows = [{"text": f"Text {i}.", "language": code} for i, code in enumerate(codes)]
    Path("t.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    assert run("read-tables", "--input", "t.jsonl", "--output", "out") == 0
    found = [row["language"] for row in kept("out/read-tables/documents")]
    assert found == ["de"] * 5 + ["xho_Latn", None]


def test_a_column_that_a_stage_makes_anew_stays_beside_it(home: Path) -> None:
    rows = [{"text": "Der Hund schläft auf dem Sofa.", "language": "eng", "quality": 5, "n": 1}]
    Path("t.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    chosen = ["run", "llama3", "--stages", "identify-language,classify", "--input", "t.jsonl"]
    assert run(*chosen, "--output", "out", "--set", "classify.min_quality.multilingual=0") == 0
    (row,) = kept("out/classify/documents")
    assert (row["language"], row["own_language"]) == ("de", "eng")
    assert (row["quality"] < 1, row["own_quality"], row["n"]) == (True, 5, 1)
    assert run("tokenize", "--input", "t.jsonl", "--output", "all") == 0
    (row,) = kept("all/tokenize/index")
    assert json.loads(row["own"]) == {"n": 1, "own_quality": 5}


def test_quality_on_another_scale_is_not_taken_for_the_models(
    home: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    pq.write_table(pa.table({"text": ["a", "b"], "quality": [0.5, 4.5]}), "t.parquet")
    assert run("read-tables", "--input", "t.parquet", "--output", "out") == 1
    assert "column 'quality' has 4.5" in capsys.readouterr().err
    beside = ["--set", "read-tables.kept_beside=[quality]"]
    assert run("read-tables", "--input", "t.parquet", "--output", "out", *beside) == 0
    assert [row["own_quality"] for row in kept("out/read-tables/documents")] == [0.5, 4.5]


def test_a_table_without_text_costs_itself_alone(home: Path) -> None:
    pq.write_table(pa.table({"body": ["x"]}), "b.parquet")
    pq.write_table(pa.table({"text": ["y"]}), "t.parquet")
    assert run("read-tables", "--input", "b.parquet", "t.parquet", "--output", "out") == 0
    (row,) = kept("out/read-tables/set_aside")
    assert row["reason"] == "parquet.no_text" and "none of the columns text" in row["detail"]
    assert [row["text"] for row in kept("out/read-tables/documents")] == ["y"]


def test_named_inputs_and_inputs_of_a_recipe_may_be_tables(home: Path) -> None:
    Path("mine.yaml").write_text(
        "extends: llama3\ninputs: {web: [rows.jsonl]}\nstages: [identify-language, dedup-urls]\n"
    )
    given = {"own": (), "named": ("--input", "web=rows.jsonl"), "plain": ("--input", "rows.jsonl")}
    for output, inputs in given.items():
        for _ in range(2):  # the second time all is done
            assert run("run", "mine.yaml", "--output", output, *inputs) == 0
        assert len(kept(f"{output}/read-tables/documents")) == 2
    assert kept("own/read-tables/documents") == kept("named/read-tables/documents")
    assert kept("own/read-tables/documents")[0]["source"]["file"] == "web/rows.jsonl"


def test_a_damaged_column_costs_itself_alone(home: Path) -> None:
    texts = [f"Text {i}. " * 9 for i in range(900)]
    table = pa.table(
        {
            "text": texts,
            "n": [str(i) * 9 for i in range(900)],
            "url": [f"https://site.example/{i}" for i in range(900)],
            "stars": pa.array(range(900)),
            "tags": [[str(i), None] for i in range(900)],
        }
    )
    pq.write_table(table, "t.parquet", row_group_size=300, use_dictionary=False)
    column = pq.ParquetFile("t.parquet").metadata.row_group(1).column(1)
    start = column.data_page_offset
    data = bytearray(Path("t.parquet").read_bytes())
    data[start : start + 200] = bytes(200)
    Path("t.parquet").write_bytes(bytes(data))
    assert run("read-tables", "--input", "t.parquet", "--output", "out") == 0
    rows = kept("out/read-tables/documents")
    assert [row["text"] for row in rows] == texts
    assert [row["n"] for row in rows if row["n"]] == [
        str(i) * 9 for i in range(900) if i // 300 != 1
    ]
    for name in ("url", "stars", "tags"):  # every other column stays
        assert [row[name] for row in rows] == table[name].to_pylist(), name


GERMAN = "Die Fähre verließ den Hafen um sechs, und die Möwen flogen bis zur zweiten Boje mit."
JAPANESE = "フェリーは六時に港を出て、かもめは二つ目のブイまでついて行きました。"


@pytest.mark.parametrize("stage", ["filter", "classify", "dedup-documents", "dedup-lines"])
def test_a_stage_that_goes_by_language_takes_a_table_without_one(home: Path, stage: str) -> None:
    rows = [{"text": GERMAN}, {"text": JAPANESE, "language": None}, {"text": "x", "language": "fr"}]
    (home / "t.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    assert run(stage, "--input", "t.jsonl", "--output", "out") == 0
    found = kept("out/read-tables/documents")
    assert [row["language"] for row in found] == ["de", "ja", "fr"]
    manifest = json.loads(Path("out/read-tables/manifest.json").read_text())
    assert "identify-language.model" in manifest["models"]


def test_languages_are_added_only_where_a_stage_needs_them(home: Path) -> None:
    (home / "t.jsonl").write_text(json.dumps({"text": GERMAN}) + "\n")
    stages = ["--stages", "identify-language,filter"]
    assert run("run", "llama3", *stages, "--input", "t.jsonl", "--output", "a") == 0
    assert run("tokenize", "--input", "t.jsonl", "--output", "b") == 0
    no = ["--set", "read-tables.add_language=false"]
    assert run("filter", "--input", "t.jsonl", "--output", "c", *no) == 0
    for output in ("a", "b", "c"):
        assert "language" not in kept(f"{output}/read-tables/documents")[0]


@pytest.mark.parametrize(
    ("content", "text"),
    [
        ("nr;text\n1;a, b\n", "a, b"),
        ("nr\ttext\n1\ta; b\n", "a; b"),
        ('nr,text\n1,"a; b"\n', "a; b"),
        ("text\na\n", "a"),
    ],
)
def test_the_first_line_of_a_csv_says_how_it_is_divided(
    home: Path, content: str, text: str
) -> None:
    for name, data in {
        "t.csv": content.encode(),
        "u.csv": content.encode("utf-16"),
        "v.csv.gz": gzip.compress(content.encode("utf-8-sig")),
    }.items():
        (home / name).write_bytes(data)
        assert run("read-tables", "--input", name, "--output", f"out-{name}") == 0
        assert [row["text"] for row in kept(f"out-{name}/read-tables/documents")] == [text]


@pytest.mark.parametrize("kind", [pa.uuid(), pa.binary(16)])
def test_uuids_are_ids(home: Path, kind: pa.DataType) -> None:
    column = pa.array([bytes(16), None], kind)
    table = pa.table({"id": column, "text": ["one", "two"], "title": column})
    pq.write_table(table, "t.parquet")
    assert run("read-tables", "--input", "t.parquet", "--output", "out") == 0
    first, second = kept("out/read-tables/documents")
    assert first["id"] == "00000000-0000-0000-0000-000000000000"
    assert len(second["id"]) == 32 and "own_id" not in first
    assert first["title"] == first["id"]


def test_bytes_of_a_csv_that_are_not_utf8_are_told(home: Path) -> None:
    sound = "Brot \ufffd,2\n".encode()
    (home / "t.csv").write_bytes("text,n\nKäse,1\n".encode("latin-1") + sound)
    assert run("read-tables", "--input", "t.csv", "--output", "out") == 0
    assert [r["text"] for r in kept("out/read-tables/documents")] == ["Käse", "Brot \ufffd"]
    (row,) = kept("out/read-tables/mended")
    assert (row["reason"], row["detail"]) == ("csv.bad_utf8", "read as windows-1252")
    counts = json.loads(Path("out/read-tables/manifest.json").read_text())["counts"]
    assert counts["mended.csv.bad_utf8"] == 1


def test_a_sample_of_the_rows(home: Path, capsys: pytest.CaptureFixture[str]) -> None:
    rows = [{"text": f"row {n}", "id": str(n), "url": f"https://a.example/{n}"} for n in range(400)]
    Path("many.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    arguments = ["identify-language", "--input", "many.jsonl", "--output", "out"]
    arguments += ["--set", "identify-language.thresholds={default: 0}"]
    assert run(*arguments, "--set", "readers.sample=0.25") == 0
    shown = {row["id"] for row in kept("out/read-tables/documents")}
    assert 60 < len(shown) < 140
    counts = json.loads(Path("out/read-tables/manifest.json").read_text())["counts"]
    assert counts["skipped.not_drawn"] == 400 - len(shown)
    assert run(*arguments, "--set", "readers.sample=0.5") == 0
    assert shown < {row["id"] for row in kept("out/read-tables/documents")}
    capsys.readouterr()
    assert run(*arguments[:4], "none", "--set", "readers.sample=1e-9") == 1
    assert "no document in it (400 not drawn by readers.sample)" in capsys.readouterr().err
    assert run(*arguments[:4], "none", "--set", "readers.sample=0") == 2
    assert "readers.sample" in capsys.readouterr().err


@pytest.mark.parametrize("suffix", ["csv", "jsonl", "parquet", "arrow"])
def test_a_blank_is_no_language_date_or_address(home: Path, suffix: str) -> None:
    """As CSV and pandas write what is missing; and nothing is told of it."""
    rows = [
        {"text": GERMAN, "language": "", "date": "", "url": "", "source_url": "http://a.example/1"},
        {"text": JAPANESE, "language": "  ", "date": " ", "url": " ", "source_url": ""},
        {"text": GERMAN + "!", "language": "de", "date": "2024-05-01", "url": "http://b.example/"},
    ]
    rows[2]["source_url"] = "http://a.example/2"
    path = home / f"t.{suffix}"
    if suffix == "csv":
        with path.open("w", newline="") as file:
            table = csv.DictWriter(file, rows[0].keys())
            table.writeheader()
            table.writerows(rows)
    elif suffix == "jsonl":
        path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    elif suffix == "parquet":
        pq.write_table(pa.Table.from_pylist(rows), path)
    else:
        batch = pa.RecordBatch.from_pylist(rows)
        with pa.ipc.new_file(path, batch.schema) as ipc:
            ipc.write_batch(batch)
    arguments = ["run", "llama3", "--stages", "filter", "--set", "filter.rules={}"]
    assert run(*arguments, "--input", str(path), "--output", "out") == 0
    found = {r["text"]: r for r in kept("out/read-tables/documents")}
    assert [found[row["text"]]["language"] for row in rows] == ["de", "ja", "de"]
    assert [found[row["text"]]["date"] for row in rows] == [
        *(None, None, datetime(2024, 5, 1, tzinfo=UTC)),
    ]
    addresses = [found[row["text"]]["url"] for row in rows]
    assert addresses == ["http://a.example/1", "", "http://b.example/"]
    manifest = json.loads((home / "out/read-tables/manifest.json").read_text())
    assert "mended" not in str(manifest["counts"])
    filtered = json.loads((home / "out/filter/manifest.json").read_text())
    assert "unlabelled" not in str(filtered["counts"])


READ_DATES = {
    **dict.fromkeys(
        [
            *("Wed, 01 May 2024 10:00:00 GMT", "Wed, 1 May 2024 12:00:00 +0200"),
            *("Wednesday, 01-May-24 10:00:00 GMT", "Wed May  1 10:00:00 2024"),
            *("1 May 2024 10:00", "May 1, 2024 10:00 AM", "Wednesday, May 1, 2024 10:00:00"),
            *("Wed, 01 May 2024 05:00:00 EST", "Wed May 01 12:00:00 +0200 2024"),
            *("Wed May 01 2024 12:00:00 GMT+0200 (CEST)", "the 1st of May 2024 at 10 a.m."),
            *("2024-05-01T12:00:00+02:00", "20240501100000", 20240501100000, "1714557600"),
            *(1714557600, 1714557600000, "1714557600000", " 1714557600.0 "),
        ],
        datetime(2024, 5, 1, 10, tzinfo=UTC),
    ),
    **dict.fromkeys(
        [
            *(
                "May 1, 2024",
                "1 May 2024",
                "May 1st 2024",
                "1 May, 2024",
                "01-May-2024",
                "May 2024",
            ),
            *("MAY 1, 2024", "2024-05-01", "2024-05", 20240501, "Wednesday, May 1, 2024"),
            *("2024/05/01", "2024.05.01", "2024/5/1", "2024. 5. 1.", "2024-5-1", 202405),
            *("2024年5月1日", "2024年05月01日 00:00", "2024년 5월 1일", "２０２４年５月１日"),
            20240501.0,
        ],
        datetime(2024, 5, 1, tzinfo=UTC),
    ),
    "Sept. 30, 2024, 10:30 p.m.": datetime(2024, 9, 30, 22, 30, tzinfo=UTC),
    "12 March 1999 12 am": datetime(1999, 3, 12, tzinfo=UTC),
    "2024/5/1 10:30:05": datetime(2024, 5, 1, 10, 30, 5, tzinfo=UTC),
    "2024/5/1 10:30 pm": datetime(2024, 5, 1, 22, 30, tzinfo=UTC),
    2024: datetime(2024, 1, 1, tzinfo=UTC),  # not 34 minutes after 1970
    1999.0: datetime(1999, 1, 1, tzinfo=UTC),
    202405011000: datetime(2024, 5, 1, 10, tzinfo=UTC),
}
UNREAD_DATES = [
    *("05/01/2024", "1. Mai 2024", "yesterday", "Tue, 31 Feb 2024 10:00:00 GMT", "2024-13-01"),
    *("n/a", "10:00", "Monday", "May 32, 2024", "1 May 2024 25:00", True, 1e300),
    *("01/02/2024", "13/02/2024", "01.02.2024", "1/2/24", "2024/31/01", "2024/02/31", "2024.1.2.3"),
    *("2024年13月1日", 0, 12, 1.5),
    *(["2024-05-01"], {"year": 2024}),
]


def test_dates_of_tables_are_read_or_told(home: Path) -> None:
    """As mail, HTTP and written English have them; others are counted, and named by `why`."""
    values = [*READ_DATES, *UNREAD_DATES]
    lines = [json.dumps({"text": f"Text {i}.", "date": v}) for i, v in enumerate(values)]
    (home / "dates.jsonl").write_text("\n".join(lines))
    assert run("read-tables", "--input", "dates.jsonl", "--output", "out") == 0
    rows = sorted(kept("out/read-tables/documents"), key=lambda r: int(r["text"][5:-1]))
    assert [r["date"] for r in rows] == [*READ_DATES.values(), *([None] * len(UNREAD_DATES))]
    manifest = json.loads((home / "out/read-tables/manifest.json").read_text())
    assert manifest["counts"]["mended.jsonl.bad_date"] == len(UNREAD_DATES)
    mended = {r["id"]: r["detail"] for r in kept("out/read-tables/mended")}
    assert mended[rows[len(READ_DATES)]["id"]] == "date: '05/01/2024' is no date"


def test_columns_of_one_name_or_none_are_kept_and_told(home: Path) -> None:
    (home / "t.csv").write_text(",text,n,n,\n0,one,1,2,x\n1,two,3,4,y\n")
    names = ["", "text", "n", "n", ""]
    columns = [pa.array(column) for column in (["0", "1"], ["one", "two"], ["1", "3"], ["2", "4"])]
    batch = pa.RecordBatch.from_arrays([*columns, pa.array(["x", "y"])], names)
    pq.write_table(pa.Table.from_batches([batch]), "t.parquet")
    with pa.ipc.new_file("t.arrow", batch.schema) as file:
        file.write_batch(batch)
    told = "'' read as 'unnamed', 'n' read as 'n_2', '' read as 'unnamed_2'"
    row = '{"": "%s", "text": "%s", "n": "%s", "n": "%s", "": "%s"}'
    lines = [row % ("0", "one", "1", "2", "x"), row % ("1", "two", "3", "4", "y")]
    (home / "t.jsonl").write_text("\n".join(lines))
    (home / "t.json").write_text(f"[{', '.join(lines)}]")
    for suffix in ("csv", "parquet", "arrow", "jsonl", "json"):
        assert run("read-tables", "--input", f"t.{suffix}", "--output", suffix) == 0
        rows = kept(f"{suffix}/read-tables/documents")
        assert [(r["unnamed"], r["n"], r["n_2"], r["unnamed_2"]) for r in rows] == [
            *(("0", "1", "2", "x"), ("1", "3", "4", "y")),
        ]
        notes = kept(f"{suffix}/read-tables/mended")  # each object of JSON has names of its own
        assert len(notes) == (2 if suffix.startswith("json") else 1)
        assert {(n["reason"], n["detail"]) for n in notes} == {("table.renamed_column", told)}
        assert not kept(f"{suffix}/read-tables/set_aside")


@pytest.mark.parametrize("name", ["id", "title", "url", "date"])
def test_two_columns_of_a_name_that_documents_have(home: Path, name: str) -> None:
    table = pa.Table.from_arrays([["one"], ["2024-05-06"], ["x"]], ["text", name, name])
    pq.write_table(table, "two.parquet")
    assert run("read-tables", "--input", "two.parquet", "--output", "out") == 0
    (row,) = kept("out/read-tables/documents")
    assert (str(row[name])[:10], row[f"{name}_2"]) == ("2024-05-06", "x")


def test_addresses_that_are_no_strings_stay_in_a_column(home: Path) -> None:
    urls = [["http://a.example/"], None, []]
    pq.write_table(pa.table({"text": ["one", "two", "three"], "url": urls}), "lists.parquet")
    values = [{"href": "x"}, 5, "http://b.example/", None]
    lines = [json.dumps({"text": f"Text {i}.", "url": v}) for i, v in enumerate(values)]
    (home / "mixed.jsonl").write_text("\n".join(lines))
    assert run("read-tables", "--input", "lists.parquet", "--output", "lists") == 0
    assert [r["own_url"] for r in kept("lists/read-tables/documents")] == urls
    assert run("read-tables", "--input", "mixed.jsonl", "--output", "mixed") == 0
    rows = kept("mixed/read-tables/documents")
    assert [r["own_url"] for r in rows] == ['{"href": "x"}', "5", None, None]
    assert [r["url"] for r in rows] == ["", "", "http://b.example/", ""]


def test_a_stage_done_again_leaves_those_behind_it(home: Path) -> None:
    """What `read-tables` makes depends on all stages in the folder, not on those done now."""
    given = ("run", "llama3", "--input", "rows.jsonl", "--output", "out", "--stages")
    assert run(*given, "dedup-urls,identify-language,classify") == 0
    place = Path("out/read-tables/manifest.json")
    before = place.read_bytes()
    assert run(*given, "dedup-urls,identify-language") == 0 and place.read_bytes() == before
    assert load_run("out")[1] == ["read-tables", "dedup-urls", "identify-language", "classify"]


def test_no_value_below_a_column_is_lost_for_its_name(home: Path) -> None:
    """Nor is one told that is right, or what is told of one line of the next."""
    lines = ['{"text": "a", "m": {"x": 1, "x": 2}}', '{"text": "b", "m": {"x": 3, "y": ["x"]}}']
    (home / "t.jsonl").write_text("\n".join(lines))
    assert run("read-tables", "--input", "t.jsonl", "--output", "out") == 0
    first, second = sorted(kept("out/read-tables/documents"), key=lambda r: str(r["text"]))
    assert first["m"] == {"x": 1, "x_2": 2, "y": None} and second["m"]["x"] == 3
    (note,) = kept("out/read-tables/mended")
    assert (note["id"], note["detail"]) == (first["id"], "'x' read as 'x_2'")


def test_a_column_that_can_not_be_read_is_told(home: Path) -> None:
    test_a_damaged_column_costs_itself_alone(home)
    mended = kept("out/read-tables/mended")
    assert len(mended) == 300 and {r["reason"] for r in mended} == {"parquet.bad_column"}
    assert all(r["detail"].startswith("n: ") for r in mended)
