"""Sum documents that a run leaves to be tokenised, in one pass."""

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from curation.summary.figures import COMMON_CRAWL, COMMON_CRAWL_NAME, HOST, UNNAMED

#: Columns by which documents are counted, and those that are needed besides.
LABELS = ("language", "domain", "topic", "format")
COLUMNS = (*LABELS, "url", "date", "source", "text", "rights")


def _host(batch: pa.RecordBatch) -> pa.Array:
    found = pc.struct_field(pc.extract_regex(batch["url"], HOST), "host")
    return pc.utf8_lower(pc.fill_null(found, ""))


def _collection(batch: pa.RecordBatch) -> pa.Array:
    file = pc.struct_field(batch["source"], "file")
    folder = pc.list_element(pc.split_pattern(file, "/"), 0)
    named = pc.if_else(pc.match_substring(file, "/"), folder, UNNAMED)
    crawl = pc.match_substring_regex(file, COMMON_CRAWL)
    return pc.if_else(crawl, COMMON_CRAWL_NAME, named)


def _label(name: str) -> Callable[[pa.RecordBatch], pa.Array]:
    return lambda batch: pc.fill_null(batch[name].cast(pa.string()), "")


def _licence(batch: pa.RecordBatch) -> pa.Array:
    return pc.fill_null(pc.struct_field(batch["rights"], "licence"), "")


_KEYS: dict[str, tuple[str, Callable[[pa.RecordBatch], pa.Array]]] = {
    **{name: (name, _label(name)) for name in LABELS},
    "host": ("url", _host),
    "collection": ("source", _collection),
    "licence": ("rights", _licence),
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
