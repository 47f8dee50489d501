"""The comparison of a run with its table finds what is wrong."""

from __future__ import annotations

import datetime as dt
import json
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from tests.fates import check_fates, matches

COLUMNS = (
    "url", "date", "file", "kind", "language", "fate", "must_contain", "must_contain_source",
    "must_not_contain", "note",
)  # fmt: skip
DAY = dt.datetime(2024, 2, 1, 8, 0, 0, tzinfo=dt.UTC)


def _table(path: Path, rows: list[dict[str, Any]]) -> None:
    fields = [
        ("url", pa.string()),
        ("date", pa.timestamp("us", tz="UTC")),
        ("text", pa.large_string()),
        ("reason", pa.string()),
        ("value", pa.float64()),
        ("source", pa.struct([("file", pa.string()), ("offset", pa.int64())])),
    ]
    path.parent.mkdir(parents=True, exist_ok=True)
    pq.write_table(pa.Table.from_pylist(rows, pa.schema(fields)), path)


@pytest.fixture
def run(tmp_path: Path) -> Path:
    kept = {"url": "https://a.example/", "date": DAY, "text": "One  two\nthree.\n    x = 1"}
    gone = {"url": "https://b.example/", "date": DAY, "text": "b", "reason": "http.status"}
    left_out = {"url": "https://c.example/", "date": DAY, "text": "C.", "reason": "mix.over_budget"}
    broken = {"reason": "gzip.corrupt", "source": {"file": "d.warc.gz", "offset": 7}}
    _table(tmp_path / "extract/removed/p.parquet", [gone])
    _table(tmp_path / "extract/documents/p.parquet", [kept, left_out])
    _table(tmp_path / "extract/set_aside/p.parquet", [broken])
    _table(tmp_path / "mix/removed/p.parquet", [left_out])
    _table(tmp_path / "mix/documents/p.parquet", [kept])
    manifest = {"counts": {"mended.http.bad_gzip": 1}}
    (tmp_path / "extract/manifest.json").write_text(json.dumps(manifest))
    return tmp_path


def _expected(path: Path, **changes: dict[str, str]) -> Path:
    rows = {
        "a": {"fate": "keep", "must_contain": "One two three", "must_contain_source": "    x = 1",
              "note": "mended: http.bad_gzip"},
        "b": {"fate": "filter:*|extract:http.status"},
        "c": {"fate": "keep", "must_contain": "C."},
        "d": {"fate": "set_aside:gzip.corrupt", "file": "d.warc.gz"},
    }  # fmt: skip
    lines = ["\t".join(COLUMNS)]
    for name, row in rows.items():
        cells = {"url": f"https://{name}.example/", "date": "2024-02-01T08:00:00Z"}
        cells |= row | changes.get(name, {})
        lines.append("\t".join(cells.get(column, "") for column in COLUMNS))
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return path


def test_a_run_as_expected_has_no_deviation(run: Path) -> None:
    assert check_fates(run, _expected(run / "expected.tsv")) == []


@pytest.mark.parametrize(
    ("page", "change", "said"),
    [
        ("a", {"fate": "filter:*"}, "is keep, expected filter:*"),
        ("a", {"must_contain": "four"}, "lacks 'four'"),
        ("a", {"must_contain_source": "  x = 2"}, "lacks '  x = 2'"),
        ("a", {"must_not_contain": "two three"}, "still contains 'two three'"),
        ("a", {"note": "mended: gzip.corrupt"}, "mended.gzip.corrupt: 0 records, expected 1"),
        ("b", {"fate": "keep"}, "is extract:http.status, expected keep"),
        ("c", {"must_not_contain": "C."}, "still contains 'C.'"),
        ("c", {"date": "2024-02-02T08:00:00Z"}, "found nowhere"),
        ("c", {"date": "2024-02-02T08:00:00Z", "fate": "skipped"}, "not in the table"),
        ("d", {"fate": "set_aside:warc.truncated"}, "set aside for gzip.corrupt, not in"),
    ],
)
def test_every_deviation_is_named(run: Path, page: str, change: dict[str, str], said: str) -> None:
    found = check_fates(run, _expected(run / "expected.tsv", **{page: change}))
    assert any(said in line for line in found), found


def test_a_document_with_two_ends_is_named(run: Path) -> None:
    again = {"url": "https://b.example/", "date": DAY, "text": "b"}
    _table(run / "mix/documents/q.parquet", [again])
    found = check_fates(run, _expected(run / "expected.tsv"))
    assert len(found) == 1 and "found 2 times" in found[0]


def test_alternatives() -> None:
    assert matches("filter:gopher.word_count", "keep|filter:gopher.*")
    assert not matches("filter:gopher", "keep|filter:gopher.*")
