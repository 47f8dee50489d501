"""Count personal data by host, and find documents on hosts that published much in earlier runs."""

import functools
from collections.abc import Iterable, Iterator
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from curation import stores
from curation.arrow import summed
from curation.errors import ConfigError
from curation.filters.blocklists import UrlBlocker
from curation.filters.filter_settings import (
    MANIFEST,
    BlockListSettings,
    PersonalHostSettings,
    filter_manifest,
)
from curation.hosts import host_of
from curation.resources import NamedPath, resolve
from curation.schema import Verdicts

#: One row per host of a batch: its documents, those that hold personal data, and how many items.
HOSTS = pa.schema(
    [
        ("host", pa.string()),
        ("pages", pa.int64()),
        ("documents", pa.int64()),
        ("items", pa.int64()),
    ]
)
#: Folder of these tables in that of the stage.
FOLDER = "personal_hosts"


def count_hosts(urls: pa.Array, items: npt.NDArray[np.int64]) -> pa.RecordBatch:
    """Hosts of the documents, with their personal data; `items` are counts per document.

    URLs without a host count as the host of no name.
    """
    found = pa.table(
        {
            "host": pa.array(_hosts(urls), pa.string()),
            "pages": np.ones(len(urls), np.int64),
            "documents": (items > 0).astype(np.int64),
            "items": items,
        },
        HOSTS,
    )
    summed_up = total(found.to_batches()).combine_chunks().to_batches()
    return summed_up[0] if len(urls) else pa.RecordBatch.from_pylist([], schema=HOSTS)


def most_personal(
    batches: Iterable[pa.RecordBatch], min_items: int = 20, most: int = 100
) -> list[dict[str, object]]:
    """Return the hosts with `min_items` or more, those with the most first: host, documents,
    items."""
    held = total(batch.filter(pc.greater(batch["items"], 0)) for batch in batches)
    held = held.filter(pc.greater_equal(held["items"], min_items)).drop_columns(["pages"])
    order = [("items", "descending"), ("documents", "descending"), ("host", "ascending")]
    return held.sort_by(order).slice(0, most).to_pylist()


def total(batches: Iterable[pa.RecordBatch]) -> pa.Table:
    """Sums over batches of HOSTS, one row per host."""
    return summed(batches, HOSTS, ("host",), ("pages", "documents", "items"))


def _hosts(urls: pa.Array) -> list[str]:
    return [host_of(url or "") for url in urls.to_pylist()]


REASON = "blocklist.personal_data"


class PersonalHosts:
    """Hosts to remove, with their items of personal data per document.

    A host stands for itself alone: one page of a hosting service says nothing about the others.
    Raises ConfigError when a run that the settings name is absent or unfinished.
    """

    def __init__(self, settings: PersonalHostSettings, allow: tuple[NamedPath, ...] = ()) -> None:
        self._least = settings.min_items_per_document
        self.rates = _rates(settings)
        names = {str(i): path for i, path in enumerate(allow)}
        self._allowed = UrlBlocker(
            BlockListSettings(
                lists=names, allow=(), hard_words=None, soft_words=None, min_soft_words=1
            )
        )

    def check(self, urls: pa.Array) -> Verdicts:
        """Remove the documents on these hosts: value is the items per document of the host."""
        rates = np.array([self.rates.get(host, 0.0) for host in _hosts(urls)])
        removed = rates > 0
        if removed.any() and len(self._allowed):
            removed &= self._allowed.check(urls).is_null().to_numpy(zero_copy_only=False)
        return Verdicts.where(removed, REASON, rates, self._least)


def _rates(settings: PersonalHostSettings) -> dict[str, float]:
    """Items of personal data per document, of the hosts that have enough of both."""
    files = [file for run in settings.runs for file in _files(run)]
    # Most hosts have no personal data: first those that do, then all documents of these.
    found = total(batch.filter(pc.greater(batch["items"], 0)) for batch in _batches(files))
    names = found.filter(pc.greater_equal(found["items"], settings.min_items))["host"]
    names = names.combine_chunks()
    held = total(b.filter(pc.is_in(b["host"], value_set=names)) for b in _batches(files))
    rates = pc.divide(pc.cast(held["items"], pa.float64()), held["pages"])
    pairs = zip(held["host"].to_pylist(), rates.to_pylist(), strict=True)
    return {h: rate for h, rate in pairs if h and rate >= settings.min_items_per_document}


def _files(run: str) -> list[str]:
    url, manifest = filter_manifest(resolve(run))
    names = [name for name in manifest["files"] if name.startswith(f"{FOLDER}/")]
    return [f"{url.removesuffix(MANIFEST)}{name}" for name in sorted(names)]


def _batches(files: list[str]) -> Iterator[pa.RecordBatch]:
    for file in files:
        try:
            with _open(file) as source, pq.ParquetFile(source) as parquet:
                if missing := set(HOSTS.names) - set(parquet.schema_arrow.names):
                    names = ", ".join(sorted(missing))
                    raise ConfigError(
                        f"{file}: has no column {names}: an older version wrote it; "
                        "run that filter stage again"
                    )
                yield from parquet.iter_batches(columns=HOSTS.names, use_threads=False)
        except (OSError, pa.ArrowInvalid) as error:
            raise ConfigError(f"{file}: can't be read: {error}") from error


def _open(url: str) -> Any:
    return stores.open_url(url) if stores.is_url(url) else open(url, "rb")


@functools.lru_cache(maxsize=4)
def _load(settings: str, allow: tuple[NamedPath, ...]) -> PersonalHosts:
    return PersonalHosts(PersonalHostSettings.model_validate_json(settings), allow)


def load(settings: PersonalHostSettings, allow: tuple[NamedPath, ...]) -> PersonalHosts:
    """Return the hosts of the runs that the settings name, read once per process.

    `allow` are files of hosts that stay. Raises ConfigError when a run is absent or unfinished.
    """
    return _load(settings.model_dump_json(round_trip=True), allow)
