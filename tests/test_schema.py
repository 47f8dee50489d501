"""Documents as other tools write them."""

from __future__ import annotations

from datetime import UTC, date, datetime

import pyarrow as pa
import pytest

from curation.errors import InputError
from curation.schema import DOCUMENTS, conformed, fits


def test_columns_get_the_types_of_documents() -> None:
    columns = {
        "id": pa.array([1, 2]),
        "url": pa.array(["a", None]).dictionary_encode(),
        "date": pa.array([date(2020, 1, 1), None]),
        "text": pa.array(["x", "y"], pa.string_view()),
        "title": pa.nulls(2),
        "source": pa.array([{"offset": 1, "file": b"f", "more": 2}, None]),
        "language": pa.array(["de", None]).dictionary_encode(),
        "mine": pa.array([1, 2], pa.int8()),
    }
    assert all(fits(name, column.type) for name, column in columns.items())
    held = conformed(pa.RecordBatch.from_pydict(columns))
    fields = [*DOCUMENTS, pa.field("language", pa.string()), pa.field("mine", pa.int8())]
    assert held.schema == pa.schema(fields)
    assert held.to_pylist()[0] == {
        "id": "1",
        "url": "a",
        "date": datetime(2020, 1, 1, tzinfo=UTC),
        "text": "x",
        "title": None,
        "source": {"file": "f", "offset": 1},
        "language": "de",
        "mine": 1,
    }
    assert held.column("source").to_pylist()[1] is None


@pytest.mark.parametrize("unit", ["s", "ms", "us", "ns"])
@pytest.mark.parametrize("zone", [None, "UTC", "Asia/Tokyo"])
def test_dates_of_every_unit_are_the_same(unit: str, zone: str | None) -> None:
    ticks = 1_700_000_000_987_654_321 // {"s": 10**9, "ms": 10**6, "us": 10**3, "ns": 1}[unit]
    column = pa.array([ticks], pa.timestamp(unit, zone))
    found = conformed(pa.RecordBatch.from_pydict({"date": column})).column("date")
    assert found.type == pa.timestamp("us", "UTC")
    assert found[0].as_py().replace(microsecond=0) == datetime(2023, 11, 14, 22, 13, 20, tzinfo=UTC)


def test_a_date_beyond_microseconds_names_its_column() -> None:
    batch = pa.RecordBatch.from_pydict({"date": pa.array([2**62], pa.timestamp("s"))})
    with pytest.raises(InputError, match=r"'date', timestamp\[s\]"):
        conformed(batch)


@pytest.mark.parametrize(
    ("name", "kind"),
    [
        ("date", pa.string()),
        ("date", pa.int64()),
        ("source", pa.string()),
        ("source", pa.struct([("file", pa.string())])),
        ("text", pa.int64()),
        ("id", pa.float64()),
        ("language", pa.list_(pa.string())),
        ("quality", pa.string()),
    ],
)
def test_columns_of_other_meaning_do_not_fit(name: str, kind: pa.DataType) -> None:
    assert not fits(name, kind)
