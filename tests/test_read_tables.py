"""Plain tables into any stage: texts and columns as they are."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from pipelines.cli import main
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
    rows = [{"text": "a", "x": 1}, {"text": "b", "x": "one"}, {"text": "c", "x": {"y": [1]}}]
    (home / "mixed.jsonl").write_text("".join(json.dumps(r) + "\n" for r in rows))
    assert run("read-tables", "--input", "mixed.jsonl", "--output", "out") == 0
    assert [r["x"] for r in kept("out/read-tables/documents")] == ["1", "one", '{"y": [1]}']


def test_what_is_no_row_is_set_aside(home: Path) -> None:
    (home / "bad.jsonl").write_text('{"text": "a"}\n{"text": \n{"html": "<p>b"}\n')
    assert run("read-tables", "--input", "bad.jsonl", "--output", "out") == 0
    reasons = [r["reason"] for r in kept("out/read-tables/set_aside")]
    assert reasons == ["jsonl.bad_json", "table.no_text"]


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
    assert "has none of the columns text" in capsys.readouterr().err
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
