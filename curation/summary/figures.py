"""Numbers, each with the statement of SQL that recomputes it from a run's files.

Statements are in DuckDB's dialect; paths count from the run folder (`SET file_search_path='out'`).
"""

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import pyarrow as pa
import pyarrow.compute as pc

from curation.dedup.urls import HOST, hosts

#: File names of Common Crawl.
COMMON_CRAWL = r"(^|/)CC-(MAIN|NEWS)-"
#: Collections of documents whose source names none.
COMMON_CRAWL_NAME, UNNAMED = "Common Crawl", "unnamed"


class Figure(NamedTuple):
    """A table of numbers; a single one is a table of one row."""

    name: str
    sql: str
    columns: tuple[str, ...]
    rows: tuple[tuple[Any, ...], ...]

    def value(self, column: str) -> Any:
        """Return what the only row has in a column."""
        return self.rows[0][self.columns.index(column)]

    def as_dict(self) -> dict[str, Any]:
        """Return it as JSON has it."""
        rows = [list(row) for row in self.rows]
        return {"sql": self.sql, "columns": list(self.columns), "rows": rows}


def quoted(text: str) -> str:
    """Return a string literal of SQL."""
    return "'" + text.replace("'", "''") + "'"


def files(folders: Sequence[str]) -> str:
    """Return the expression for the rows of all Parquet files of some folders."""
    globs = ", ".join(quoted(f"{folder}/*.parquet") for folder in folders)
    return f"read_parquet([{globs}], union_by_name = true)"


#: Expressions over documents, by the column that they make.
KEYS = {
    "language": "coalesce(language, '')",
    "domain": "coalesce(domain, '')",
    "topic": "coalesce(topic, '')",
    "format": "coalesce(format, '')",
    "licence": "coalesce(rights.licence, '')",
    "host": f"lower(coalesce(regexp_extract(url, {quoted(HOST.replace('?P<host>', ''))}, 1), ''))",
    "collection": (
        f"CASE WHEN regexp_matches(source.file, {quoted(COMMON_CRAWL)}) "
        f"THEN {quoted(COMMON_CRAWL_NAME)} "
        "WHEN contains(source.file, '/') THEN split_part(source.file, '/', 1) "
        f"ELSE {quoted(UNNAMED)} END"
    ),
}
#: The first and the last day of documents.
DAYS = (
    "strftime(min(date) AT TIME ZONE 'UTC', '%Y-%m-%d') AS first_day, "
    "strftime(max(date) AT TIME ZONE 'UTC', '%Y-%m-%d') AS last_day"
)
_SIZES = "count(*) AS documents, CAST(sum(strlen(text)) AS BIGINT) AS bytes"


def grouped_sql(key: str, table: str, days: bool = False) -> str:
    """Return the statement for documents and bytes by a key, the most bytes first."""
    more = f", {DAYS}" if days else ""
    return (
        f"SELECT {KEYS[key]} AS {key}, {_SIZES}{more} FROM {table} "
        f"GROUP BY 1 ORDER BY bytes DESC, {key}"
    )


def top_sql(table: str, percent: int, most: int | None) -> str:
    """Return the statement for the hosts with the most bytes: a share of all, `most` at most."""
    step = 100 // percent
    share = f"(count(*) + {step - 1}) // {step}"
    limit = share if most is None else f"least({most}, {share})"
    return (
        f"WITH hosts AS (SELECT {KEYS['host']} AS host, {_SIZES} FROM {table} GROUP BY 1 "
        "HAVING host <> '') SELECT * FROM hosts ORDER BY bytes DESC, host "
        f"LIMIT (SELECT {limit} FROM hosts)"
    )


def top_count(hosts: int, percent: int, most: int | None) -> int:
    """Return how many hosts `top_sql` lists."""
    step = 100 // percent
    share = (hosts + step - 1) // step
    return share if most is None else min(most, share)


def total_sql(table: str) -> str:
    """Return the statement for the size of all documents."""
    characters = "CAST(coalesce(sum(length(text)), 0) AS BIGINT) AS characters"
    bytes_ = "CAST(coalesce(sum(strlen(text)), 0) AS BIGINT) AS bytes"
    return f"SELECT count(*) AS documents, {characters}, {bytes_} FROM {table}"


def removed_sql(table: str, prefixes: Sequence[str] = ()) -> str:
    """Return the statement for removed documents by stage and reason, of some families or all."""
    where = " OR ".join(f"starts_with(reason, {quoted(prefix)})" for prefix in prefixes)
    return (
        "SELECT stage, reason, count(*) AS documents, "
        "CAST(sum(length(text)) AS BIGINT) AS characters "
        f"FROM {table}{f' WHERE {where}' if where else ''} GROUP BY 1, 2 ORDER BY 1, 2"
    )


def signals_sql(table: str) -> str:
    """Return the statement for rights signals by kind and place."""
    return (
        "SELECT signal.kind AS kind, coalesce(signal.place, '') AS place, count(*) AS signals FROM "
        f"(SELECT unnest(rights.signals) AS signal FROM {table}) GROUP BY 1, 2 ORDER BY 1, 2"
    )


#: Columns by which documents are counted, and those that are needed besides.
LABELS = ("language", "domain", "topic", "format")
COLUMNS = (*LABELS, "url", "date", "source", "text", "rights")


def _collection(batch: pa.RecordBatch) -> pa.Array:
    file = pc.struct_field(batch["source"], "file")
    folder = pc.list_element(pc.split_pattern(file, "/"), 0)
    named = pc.if_else(pc.match_substring(file, "/"), folder, UNNAMED)
    crawl = pc.match_substring_regex(file, COMMON_CRAWL)
    return pc.if_else(crawl, COMMON_CRAWL_NAME, named)


def _label(name: str) -> Callable[[pa.RecordBatch], pa.Array]:
    return lambda batch: pc.fill_null(batch[name].cast(pa.string()), "")


_KEYS: dict[str, tuple[str, Callable[[pa.RecordBatch], pa.Array]]] = {
    **{name: (name, _label(name)) for name in LABELS},
    "host": ("url", lambda batch: hosts(batch["url"])),
    "collection": ("source", _collection),
    "licence": ("rights", lambda b: pc.fill_null(pc.struct_field(b["rights"], "licence"), "")),
}


@dataclass
class Size:
    """Documents, their bytes, and the days of the first and the last capture."""

    documents: int = 0
    bytes: int = 0
    first_day: str | None = None
    last_day: str | None = None

    def add(self, documents: int, size: int, first: Any, last: Any) -> None:
        """Add a group of a batch; days are dates or None."""
        self.documents += documents
        self.bytes += size
        if first is not None:
            self.first_day = min(self.first_day or "9999", first.strftime("%Y-%m-%d"))
            self.last_day = max(self.last_day or "", last.strftime("%Y-%m-%d"))


@dataclass
class Tally:
    """Sums of the documents so far."""

    documents: int = 0
    characters: int = 0
    bytes: int = 0
    groups: dict[str, dict[str, Size]] = field(default_factory=dict)
    signals: Counter[tuple[str, str]] = field(default_factory=Counter)

    def add(self, batch: pa.RecordBatch) -> None:
        """Count a batch of documents, which has those of COLUMNS that the run has."""
        self.documents += batch.num_rows
        self.characters += pc.sum(pc.utf8_length(batch["text"])).as_py() or 0
        sizes = pc.binary_length(batch["text"]).cast(pa.int64())
        self.bytes += pc.sum(sizes).as_py() or 0
        for name, (column, key) in _KEYS.items():
            if column in batch.schema.names:
                self._group(self.groups.setdefault(name, {}), key(batch), sizes, batch["date"])
        if "rights" in batch.schema.names:
            found = pc.list_flatten(pc.struct_field(batch["rights"], "signals"))
            kinds, places = (pc.struct_field(found, name) for name in ("kind", "place"))
            pairs = zip(kinds.to_pylist(), pc.fill_null(places, "").to_pylist(), strict=True)
            self.signals.update(pairs)

    def _group(self, groups: dict[str, Size], key: Any, sizes: Any, dates: Any) -> None:
        table = pa.table({"key": key, "bytes": sizes, "date": dates})
        measures = [("bytes", "count"), ("bytes", "sum"), ("date", "min"), ("date", "max")]
        names = ("key", "bytes_count", "bytes_sum", "date_min", "date_max")
        for row in table.group_by("key").aggregate(measures).to_pylist():
            value, *numbers = (row[name] for name in names)
            groups.setdefault(value, Size()).add(*numbers)

    def ranked(self, name: str) -> list[tuple[str, Size]]:
        """Return the groups of a key, the most bytes first."""
        groups = self.groups.get(name, {})
        return sorted(groups.items(), key=lambda item: (-item[1].bytes, item[0]))
