"""Columns of every type of Arrow and Parquet, with nulls in all places: none ends a run."""

from __future__ import annotations

import datetime as dt
import io
import json
from collections.abc import Iterator
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from curation.arrow import as_json, plain, storable
from curation.extract.safe import text_of
from curation.readers.documents import document_row, documents_batch, joined, others_of
from curation.readers.raw import RawFile
from curation.readers.read import read
from curation.readers.records import Page
from curation.readers.tables import parquet_row
from pipelines.cli import main
from tests.readers.archives import default_settings

SETTINGS = default_settings()
STRING = pa.string()
#: Types with two values each.
SCALARS: dict[str, tuple[pa.DataType, list[Any]]] = {
    "string": (STRING, ["a", "ß"]),
    "large_string": (pa.large_string(), ["a", ""]),
    "string_view": (pa.string_view(), ["a", "a string of more than twelve bytes"]),
    "binary": (pa.binary(), [b"a", b"\xff\x00"]),
    "large_binary": (pa.large_binary(), [b"a", b""]),
    "binary_view": (pa.binary_view(), [b"a", b"a value of more than twelve bytes"]),
    "fixed_binary": (pa.binary(2), [b"ab", b"\xff\xfe"]),
    "bool": (pa.bool_(), [True, False]),
    "int8": (pa.int8(), [-128, 127]),
    "uint64": (pa.uint64(), [0, 2**64 - 1]),
    "half": (pa.float16(), [1.5, -0.25]),
    "float": (pa.float32(), [1.5, float("inf")]),
    "double": (pa.float64(), [1e300, -0.0]),
    "decimal32": (pa.decimal32(5, 2), [Decimal("1.23"), Decimal("-999.99")]),
    "decimal128": (pa.decimal128(38, 4), [Decimal("1.2300"), Decimal("0.0000")]),
    "decimal256": (pa.decimal256(60, 2), [Decimal("1.23"), Decimal("1" * 50 + ".00")]),
    "date32": (pa.date32(), [dt.date(2024, 5, 1), dt.date(1, 1, 1)]),
    "date64": (pa.date64(), [dt.date(2024, 5, 1), dt.date(1970, 1, 1)]),
    "time32": (pa.time32("ms"), [dt.time(1, 2, 3), dt.time(0)]),
    "time64": (pa.time64("us"), [dt.time(1, 2, 3, 4), dt.time(23, 59)]),
    "timestamp": (pa.timestamp("us"), [dt.datetime(2024, 5, 1), dt.datetime(1969, 1, 1)]),
    "timestamp_ns": (pa.timestamp("ns"), [1714557600_000000001, -1]),
    "timestamp_zone": (pa.timestamp("ms", "Europe/Berlin"), [1714557600_000, 0]),
    "duration": (pa.duration("ns"), [1, -(10**15)]),
    "null": (pa.null(), [None, None]),
    "interval": (pa.month_day_nano_interval(), [(1, 2, 3), (0, 0, 0)]),
    "empty_struct": (pa.struct([]), [{}, {}]),
}
#: Ways to put a type into another: the type, and how a value becomes one of it.
NESTINGS: dict[str, tuple[Any, Any]] = {
    "plain": (lambda k: k, lambda a, b: a),
    "list": (pa.list_, lambda a, b: [a, b]),
    "large_list": (pa.large_list, lambda a, b: [b, a, a]),
    "fixed_list": (lambda k: pa.list_(k, 2), lambda a, b: [a, b]),
    "list_view": (pa.list_view, lambda a, b: [a]),
    "large_list_view": (pa.large_list_view, lambda a, b: [a, b]),
    "struct": (lambda k: pa.struct([("x", k), ("y", k)]), lambda a, b: {"x": a, "y": b}),
    "map": (lambda k: pa.map_(STRING, k), lambda a, b: [("k", a), ("j", b)]),
    "list_of_struct": (
        lambda k: pa.list_(pa.struct([("x", pa.list_(k))])),
        lambda a, b: [{"x": [a, b]}, {"x": []}],
    ),
    "list_of_fixed_list": (lambda k: pa.list_(pa.list_(k, 2)), lambda a, b: [[a, b], [b, b]]),
    "map_of_list_view": (
        lambda k: pa.map_(pa.string_view(), pa.list_view(k)),
        lambda a, b: [("k", [a])],
    ),
    "deep": (lambda k: _deep(k, 12), lambda a, b: _deeply(a, 12)),
    "too_deep": (lambda k: _deep(k, 50), lambda a, b: _deeply(a, 50)),
}


def _deep(kind: pa.DataType, levels: int) -> pa.DataType:
    return pa.list_(_deep(kind, levels - 1)) if levels else kind


def _deeply(value: Any, levels: int) -> Any:
    return [_deeply(value, levels - 1)] if levels else value


def columns(kind: pa.DataType, values: list[Any]) -> Iterator[tuple[str, pa.Array]]:
    """Columns of three rows of all types made of this one, without and with nulls."""
    a, b = values
    for nesting, (make, of) in NESTINGS.items():
        whole, within = of(a, b), of(None, b)
        for nulls, rows in {
            "none": [whole, of(b, a), whole],
            "first": [None, whole, None],
            "inside": [within, whole, within],
            "everywhere": [None, within, whole],
            "all": [None, None, None],
        }.items():
            try:
                yield f"{nesting}-{nulls}", pa.array(rows, make(kind))
            except (pa.ArrowNotImplementedError, pa.ArrowInvalid):
                assert nesting == "map_of_list_view" or kind in (pa.null(), pa.struct([]))
    if not pa.types.is_nested(kind) and kind not in (pa.null(), pa.month_day_nano_interval()):
        some = pa.array([a, None], kind)
        yield "dictionary", pa.DictionaryArray.from_arrays(pa.array([0, 1, None]), some)
        of_lists = pa.ListArray.from_arrays(pa.array([0, 1, None, 3]), pa.array([a, b, None], kind))
        yield (
            "dictionary_of_lists",
            pa.DictionaryArray.from_arrays(pa.array([0, None, 1]), of_lists),
        )
        yield "runs", pa.RunEndEncodedArray.from_arrays(pa.array([1, 3], pa.int32()), some)


def write(path: Path, table: pa.Table) -> None:
    if path.suffix == ".parquet":
        try:
            pq.write_table(table, path, row_group_size=2)
        except pa.ArrowNotImplementedError:  # it divides no views
            pq.write_table(table, path)
    else:
        with pa.ipc.new_file(path, table.schema) as file:
            file.write_table(table, max_chunksize=2)


def through(path: Path) -> pa.Table:
    """A table as its documents are read back."""
    others = joined([others_of(str(path), path.name, SETTINGS)])
    events = list(read(str(path), SETTINGS))
    assert all(isinstance(event, Page) and not event.mended for event in events), events
    pages = [event for event in events if isinstance(event, Page)]
    rows = [document_row(path.name, page, text_of(page)) for page in pages]
    batch = documents_batch([row for row, _ in rows], [own for _, own in rows], others)
    assert batch.take(pa.array([0])).filter(pa.array([True])).num_rows == 1
    file = io.BytesIO()
    pq.write_table(pa.Table.from_batches([batch]), file)
    return pq.read_table(file)


def expected(column: pa.Array) -> list[Any]:
    """Its values; of types that only JSON can hold, their JSON."""
    if storable(column.type) is not None:
        return column.to_pylist()  # type: ignore[no-any-return]
    values = [plain(value, finite=False) for value in column]
    return [v if v is None or isinstance(v, str) else as_json(v) for v in values]


@pytest.mark.parametrize("suffix", ["parquet", "arrow"])
@pytest.mark.parametrize("name", SCALARS)
def test_every_type_null_and_nesting(tmp_path: Path, name: str, suffix: str) -> None:
    texts = ["one", "two", "three"]
    tables: dict[str, dict[str, pa.Array]] = {}
    for where, column in columns(*SCALARS[name]):
        if suffix == "arrow" or _fits_parquet(column):
            tables.setdefault(where.partition("-")[0], {})[where] = column
    for nesting, table in tables.items():
        path = tmp_path / f"{nesting}.{suffix}"
        write(path, pa.table({"text": texts, **table}))
        found = through(path)
        assert found["text"].to_pylist() == texts
        for where, column in table.items():
            assert found[where].to_pylist() == expected(column), where
            if pa.types.is_null(column.type):
                continue
            kind = storable(column.type) or STRING
            names = str(found[where].type).replace("element: ", "item: ")  # of Parquet
            names = names.replace(f" ('{where}')", "")
            assert names == str(kind).replace("date64[ms]", "date32[day]"), where
    written = sum(map(len, tables.values()))
    assert written >= (55 if name not in ("interval", "empty_struct", "null") else 0)


def test_other_types(tmp_path: Path) -> None:
    """Unions, extension types, and structs with names that nobody expects."""
    ints, texts = pa.array([1, 2, None]), pa.array(["a", None, "c"])
    tags = pa.array([0, 1, 0], pa.int8())
    uuid = pa.ExtensionArray.from_storage(
        pa.uuid(), pa.array([b"0123456789abcdef", None, None], pa.binary(16))
    )
    tensor = pa.fixed_shape_tensor(pa.int32(), [2])
    cases = {
        "sparse": (pa.UnionArray.from_sparse(tags, [ints, texts]), ["1", None, None]),
        "dense": (
            pa.UnionArray.from_dense(tags, pa.array([0, 0, 1], pa.int32()), [ints, texts]),
            ["1", "a", "2"],
        ),
        "uuid": (uuid, uuid.to_pylist()),
        "uuids": (pa.ListArray.from_arrays([0, 1, 2, 2], uuid), [[uuid[0].as_py()], [None], []]),
        "json": (pa.ExtensionArray.from_storage(pa.json_(), texts), ["a", None, "c"]),
        "bool8": (
            pa.ExtensionArray.from_storage(pa.bool8(), pa.array([1, None, 0], pa.int8())),
            [True, None, False],
        ),
        "opaque": (
            pa.ExtensionArray.from_storage(
                pa.opaque(pa.string_view(), "t", "v"), texts.cast(pa.string_view())
            ),
            ["a", None, "c"],
        ),
        "tensor": (
            pa.ExtensionArray.from_storage(
                tensor, pa.array([[1, 2], None, [3, None]], pa.list_(pa.int32(), 2))
            ),
            [[1, 2], None, [3, None]],
        ),
        "one_name": (pa.StructArray.from_arrays([ints, texts], ["a", "a"]), None),
        "no_name": (pa.StructArray.from_arrays([ints], [""]), [{"": 1}, {"": 2}, {"": None}]),
        "dots": (pa.StructArray.from_arrays([texts], ["a.b c"]), [{"a.b c": v} for v in "a c"]),
        "struct_keys": (
            pa.array(
                [[({"a": 1}, "v")], None, []], pa.map_(pa.struct([("a", pa.int64())]), STRING)
            ),
            [[({"a": 1}, "v")], None, []],
        ),
        "same_keys": (
            pa.array([[("k", 1), ("k", 2)], None, []], pa.map_(STRING, pa.int64())),
            [[("k", 1), ("k", 2)], None, []],
        ),
        "list_of_runs": (
            pa.ListArray.from_arrays(
                [0, 1, 2, 2], pa.RunEndEncodedArray.from_arrays([1, 2], texts.slice(0, 2))
            ),
            [["a"], [None], []],
        ),
        "list_of_dictionary": (
            pa.ListArray.from_arrays([0, 1, 2, 3], texts.dictionary_encode()),
            [["a"], [None], ["c"]],
        ),
    }
    for name, (column, values) in cases.items():
        for suffix in ("parquet", "arrow"):
            path = tmp_path / f"{name}.{suffix}"
            try:
                write(path, pa.table({"text": ["one", "two", "three"], "x": column}))
            except pa.ArrowNotImplementedError:
                assert suffix == "parquet" and name in ("sparse", "dense", "list_of_runs")
                continue
            found = through(path)["x"].to_pylist()
            if name == "dots":
                values = [{"a.b c": "a"}, {"a.b c": None}, {"a.b c": "c"}]
            if name == "one_name":
                assert found == [
                    *("[('a', 1), ('a', 'a')]", "[('a', 2), ('a', None)]"),
                    "[('a', None), ('a', 'c')]",
                ]
            else:
                assert found == values, (name, suffix)


#: Values that JSON may have in a column, of which the first rows may say nothing.
JSON_VALUES: dict[str, list[Any]] = {
    "nulls": [None, None, None],
    "list": [["a"], None, [None, "b"]],
    "list_of_nothing": [[], None, [None]],
    "object": [{"a": [1, None]}, None, {"b": {"c": None}}],
    "objects": [[{"a": 1}, None, {"b": "x"}], [], None],
    "empty_object": [{}, None, {}],
    "empty_then_full": [{}, {"a": 1}, None],
    "mixed": [1, "one", [1]],
    "mixed_inside": [[1], ["one"], [[1]]],
    "mixed_keys": [{"a": 1}, {"a": "one"}, {"a": None}],
    "numbers": [1, 2.5, None],
    "large": [10**30, -(10**30), None],
    "beyond_64_bits": [2**63, 2**64, 1],
    "booleans": [True, None, 1],
    "no_numbers": [float("nan"), float("inf"), 1.0],
    "dates": ["2024-05-01", "2024-05-01T10:00:00Z", None],
    "deep": [_deeply("x", 20), None, _deeply(None, 20)],
    "too_deep": [_deeply("x", 100), None, _deeply(1, 99)],
    "deepest": [_deeply("x", 400), None, {"a": _deeply(None, 380)}],
    "keys": [{"": 1, " ": 2, "a.b": 3, "ß\n": 4}, None, {"": None}],
}


def plainly(value: Any) -> Any:
    """A value of JSON without the fields that Arrow adds to objects of one column."""
    if isinstance(value, dict):
        return {k: plainly(v) for k, v in value.items() if v is not None}
    return [plainly(v) for v in value] if isinstance(value, list) else value


@pytest.mark.parametrize("suffix", ["jsonl", "json"])
def test_values_of_json(tmp_path: Path, suffix: str) -> None:
    for name, values in JSON_VALUES.items():
        rows = [json.dumps({"text": f"t{i}", "x": v}) for i, v in enumerate(values)]
        path = tmp_path / f"{name}.{suffix}"
        path.write_text("\n".join(rows) if suffix == "jsonl" else f"[{','.join(rows)}]")
        found = through(path)
        assert found["text"].to_pylist() == ["t0", "t1", "t2"], name
        column = found["x"].to_pylist()
        if found["x"].type == STRING and name not in ("nulls", "dates"):
            column = [v and (v if v == "one" else json.loads(v)) for v in column]
        if name == "no_numbers":
            assert str(column) == "[nan, inf, 1.0]"
        else:
            assert [plainly(v) for v in column] == [plainly(v) for v in values], name


LONE = "\ud800"


@pytest.mark.parametrize(
    ("row", "there"),
    [
        ({"x": [LONE]}, {"x": ["\ufffd"]}),
        ({"x": ["a", ["b" + LONE, None]]}, None),
        ({"x": {"a": LONE}}, {"x": {"a": "\ufffd"}}),
        ({"x": {LONE: "a"}}, {"x": {"\ufffd": "a"}}),
        ({"x": [{"a": "\udfffb"}]}, {"x": [{"a": "\ufffdb"}]}),
        ({"x": [{LONE: [LONE]}]}, {"x": [{"\ufffd": ["\ufffd"]}]}),
        ({LONE: "a"}, {"\ufffd": "a"}),
        ({"a" + LONE: {LONE: LONE}}, {"a\ufffd": {"\ufffd": "\ufffd"}}),
        ({"x": LONE}, {"x": "\ufffd"}),
        ({"x": "\ud83d\ude00" + LONE}, {"x": "😀\ufffd"}),
        ({"x": {"a": {"b": {"c": [LONE]}}}}, {"x": {"a": {"b": {"c": ["\ufffd"]}}}}),
        ({"text": "t" + LONE}, {}),
        ({"url": "http://a.example/" + LONE, "title": LONE, "id": LONE, "date": LONE}, {}),
        ({"x": 1, "meta": [1, LONE, {"a": None}]}, None),
    ],
)
@pytest.mark.parametrize("suffix", ["jsonl", "json"])
def test_lone_surrogates_anywhere(tmp_path: Path, row: Any, there: Any, suffix: str) -> None:
    path = tmp_path / f"x.{suffix}"
    text = json.dumps({"text": "t"} | row)
    assert "\\ud" in text
    path.write_text(text if suffix == "jsonl" else f"[{text}]")
    (event,) = read(str(path), SETTINGS)
    assert isinstance(event, Page) and event.mended == f"{suffix}.lone_surrogate"
    others = joined([others_of(str(path), path.name, SETTINGS)])
    document, own = document_row(path.name, event, text_of(event))
    (found,) = documents_batch([document], [own], others).to_pylist()
    assert "\\ud8" not in ascii(found)
    if there is not None:
        assert {name: found[name] for name in there} == there


def test_a_table_of_all_types_goes_through_a_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """And what it kept can be shown and exported."""
    monkeypatch.chdir(tmp_path)
    texts = [f"A page about {what}, with some words of its own." for what in ("bees", "ice", "sea")]
    table: dict[str, Any] = {"text": texts, "url": [f"http://a.example/{i}" for i in range(3)]}
    for name, given in SCALARS.items():
        for where, column in columns(*given):
            if where.endswith("inside") or where in ("dictionary", "runs"):
                table[f"{name}-{where}"] = column
    Path("in").mkdir()
    write(Path("in/all.arrow"), pa.table(table))
    whole = {n: c for n, c in table.items() if isinstance(c, list) or _fits_parquet(c)}
    write(Path("in/all.parquet"), pa.table(whole))
    arguments = ["run", "llama3", "--input", "in", "--output", "out", "--workers", "0", "--quiet"]
    stages = ["--stages", "read-tables,identify-language,filter"]
    assert main([*arguments, *stages, "--set", "filter.rules={}"]) == 0
    manifest = json.loads(Path("out/read-tables/manifest.json").read_text())
    assert manifest["counts"]["documents"] == 6
    assert "set_aside" not in str(manifest["counts"]) and "mended" not in str(manifest["counts"])
    read_back = pq.read_table("out/filter/documents").to_pylist()
    assert len(read_back) + len(pq.read_table("out/filter/removed").to_pylist()) >= 6
    capsys.readouterr()
    name = pq.read_table("out/read-tables/documents")["id"][0].as_py()
    assert main(["why", name, "--run", "out"]) == 0
    export = ["export", "--run", "out", "--stage", "read-tables", "--output", "jsonl"]
    assert main([*export, "--to", "jsonl"]) == 0


def _fits_parquet(column: pa.Array) -> bool:
    try:
        pq.write_table(pa.table({"x": column}), io.BytesIO())
    except (pa.ArrowNotImplementedError, pa.ArrowInvalid):
        return False
    return True


def test_tables_of_duckdb(tmp_path: Path) -> None:
    duckdb = pytest.importorskip("duckdb", reason="writes Parquet in its own way")
    values = {
        "tags": "['a', NULL], NULL, []",
        "maps": "MAP {'k': [1, NULL]}, NULL, MAP {}",
        "structs": "{'a': 1, 'b': [NULL, 'x']}, NULL, {'a': NULL, 'b': NULL}",
        "fixed": "array_value(1, 2), array_value(NULL, 4), array_value(3, 4)",
        "enums": "'x'::ENUM('x', 'y'), NULL, 'y'",
        "decimals": "1.23::DECIMAL(30, 2), NULL, 0",
        "huge": "170141183460469231731687303715884105727::HUGEINT, NULL, 0",
        "uuids": "'00000000-0000-0000-0000-000000000001'::UUID, NULL, NULL",
        "days": "DATE '2024-05-01', NULL, DATE '0001-01-01'",
        "hours": "TIME '10:00:00', NULL, TIME '23:59:59'",
        "stamps": "TIMESTAMPTZ '2024-05-01 10:00:00+02', NULL, NULL",
        "nanos": "TIMESTAMP_NS '2024-05-01 10:00:00.000000001', NULL, NULL",
        "spans": "INTERVAL 3 MONTH, NULL, INTERVAL 1 SECOND",
        "blobs": r"'\xFF'::BLOB, NULL, ''::BLOB",
        "bits": "'101'::BIT, NULL, '0'::BIT",
        "tinies": "(-128)::TINYINT, NULL, 127",
        "unsigned": "18446744073709551615::UBIGINT, NULL, 0",
        "deep": "[[[['a'], NULL], NULL], NULL], NULL, []",
        "json": """'{"a": 1}'::JSON, NULL, '[]'""",
    }
    for name, three in values.items():
        path = tmp_path / f"{name}.parquet"
        rows = f"SELECT unnest(['a', 'b', 'c']) AS text, unnest([{three}]) AS x"
        duckdb.sql(f"COPY ({rows}) TO '{path}' (FORMAT parquet)")
        found = through(path)
        assert found["text"].to_pylist() == ["a", "b", "c"], name
        first, second, _ = found["x"].to_pylist()
        assert first is not None and second == ([None, 4] if name == "fixed" else None), name
        there = duckdb.from_arrow(found).project("x").fetchall()  # and duckdb reads it again
        assert len(there) == 3, name


def test_a_list_of_duckdb_that_pyarrow_can_not_read_costs_itself_alone(tmp_path: Path) -> None:
    """A null among fixed-size lists, one row or its page alone."""
    duckdb = pytest.importorskip("duckdb", reason="writes Parquet in its own way")
    path = tmp_path / "x.parquet"
    rows = (
        "('a', array_value(1, 2), ['t'], 1), ('b', NULL, NULL, 2), ('c', array_value(3, 4), [], 3)"
    )
    rows = f"SELECT * FROM (VALUES {rows}) AS v(text, fixed, tags, n)"
    duckdb.sql(f"COPY ({rows}) TO '{path}' (FORMAT parquet)")
    pages = [event for event in read(str(path), SETTINGS) if isinstance(event, Page)]
    assert [{n: v.as_py() for n, v in (page.fields or {}).items()} for page in pages] == [
        *({"tags": ["t"], "n": 1}, {"tags": None, "n": 2}, {"tags": [], "n": 3}),
    ]
    assert {(p.mended, p.detail.partition(":")[0]) for p in pages} == {
        ("parquet.bad_column", "fixed")
    }
    with RawFile.open(str(path)) as raw:
        assert parquet_row(raw, 1, SETTINGS) == pages[1]


def test_an_arrow_file_without_a_stream_in_it(tmp_path: Path) -> None:
    """Polars writes such: only the end says where schema and batches are."""
    path = tmp_path / "x.arrow"
    write(path, pa.table({"text": ["a", "b", "c"], "tags": [["x"], None, []]}))
    content = bytearray(path.read_bytes())
    content[8:12] = b"\x04\0\0\0"
    path.write_bytes(content)
    assert through(path)["tags"].to_pylist() == [["x"], None, []]


@pytest.mark.parametrize("suffix", ["jsonl", "json"])
@pytest.mark.parametrize("kind", ["[]", '{"a":}'])
def test_a_value_that_is_nested_too_deep_costs_itself_alone(
    tmp_path: Path, kind: str, suffix: str
) -> None:
    path = tmp_path / f"x.{suffix}"
    nested = kind[:-1] * 900 + "0" + kind[-1] * 900
    rows = [f'{{"text": "a", "n": 1, "x": {nested}}}', '{"text": "b", "n": 2, "x": [[1]]}']
    path.write_text("\n".join(rows) if suffix == "jsonl" else f"[{','.join(rows)}]")
    pages = [event for event in read(str(path), SETTINGS) if isinstance(event, Page)]
    assert [page.mended for page in pages] == ["table.bad_column", ""]
    assert [page.fields for page in pages] == [{"n": 1, "x": None}, {"n": 2, "x": [[1]]}]


def test_tables_of_polars(tmp_path: Path) -> None:
    polars = pytest.importorskip("polars", reason="writes Parquet and Arrow in its own way")
    frame = polars.DataFrame(
        {
            "text": ["a", "b", "c"],
            "strings": ["a string of more than twelve bytes", None, "ß"],
            "tags": [["a", None], None, []],
            "structs": [{"a": 1, "b": [None]}, None, {"a": None, "b": None}],
            "spans": [dt.timedelta(1), None, dt.timedelta(0)],
            "hours": [dt.time(1), None, dt.time(2)],
            "bytes": [b"\xff", None, b""],
        }
    ).with_columns(
        polars.Series("kinds", ["x", None, "y"], polars.Categorical),
        polars.Series("enums", ["x", None, "y"], polars.Enum(["x", "y"])),
        polars.Series("fixed", [[1, 2], None, [3, None]], polars.Array(polars.Int32, 2)),
        polars.Series("nothing", [None, None, None]),
    )
    for suffix in ("parquet", "arrow"):
        path = tmp_path / f"x.{suffix}"
        frame.write_parquet(path) if suffix == "parquet" else frame.write_ipc(path)
        found = through(path)
        for name in frame.columns:
            assert found[name].to_pylist() == frame[name].to_list(), (name, suffix)
