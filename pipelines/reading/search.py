"""Find documents: by id, URL, host or text, filtered and sorted, or drawn at random."""

import functools
import os
import re
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from curation.errors import ConfigError
from curation.filters.margins import Bits
from curation.schema import VALUE_TEXT
from pipelines.reading.ledger import DIMENSIONS, NO_TOKENS, Ledger, key_of
from pipelines.storage.files import Folder
from pipelines.storage.shards import open_parquet, own_ids

#: Value of filter `stage` for documents that no stage removed.
KEPT = "kept"
FATE = ("stage", "rule")
#: Masks that stay in memory.
_MASKS = 8
#: Columns by which a table can be sorted, besides `url`.
SORTS = ("characters", "tokens", "date", "value", "language", "domain", "topic", "host", "fate")
#: Bytes of text that one search reads before it answers with what it has.
_TEXT_BYTES = 128 << 20
_AROUND = 60
#: Characters shown of a title or URL.
_LINE = 2000


class Masks:
    """Masks over a ledger by filters: `{"stage": "filter", "language": "de"}`."""

    def __init__(self, ledger: Ledger) -> None:
        self._ledger = ledger
        self._of = functools.lru_cache(_MASKS)(lambda items: self._made(dict(items)))

    def of(self, filters: Mapping[str, str]) -> Bits | None:
        """Return documents that pass all filters -> [documents]; None: no filter, so all of them.

        Raises ConfigError for a filter that there is not.
        """
        return self._of(tuple(sorted(filters.items()))) if filters else None

    def _made(self, filters: Mapping[str, str]) -> Bits:
        mask = np.ones(len(self._ledger), bool)
        if any(name in FATE for name in filters):
            wanted = [self._fits(fate, filters) for fate in self._ledger.fates]
            mask &= np.array(wanted, bool)[self._ledger.numbers["fate"]]
        for name, value in filters.items():
            if name in DIMENSIONS:
                names = self._ledger.values[name]
                code = names.index(value) if value in names else -1
                mask &= self._ledger.codes[name] == code
            elif name not in FATE:
                raise ConfigError(f"no filter {name!r}")
        return mask

    def _fits(self, fate: tuple[str, str | None], filters: Mapping[str, str]) -> bool:
        stage, reason = fate
        stage = KEPT if reason is None else stage
        return filters.get("stage", stage) == stage and filters.get("rule", reason) == reason


def find_urls(run: Folder, ledger: Ledger, mask: Bits | None, query: str) -> npt.NDArray[np.int64]:
    """Return rows whose id is `query`, or whose URL contains it, in the order of the ledger."""
    if not query:
        return np.arange(len(ledger)) if mask is None else np.flatnonzero(mask)

    def match(part: int) -> pa.Array:
        return pc.match_substring(ledger.urls.get_batch(part)["url"], query, ignore_case=True)

    with ThreadPoolExecutor(os.cpu_count()) as pool:  # Arrow would use one core for a column
        parts = [*pool.map(match, range(ledger.urls.num_record_batches))]
    hits = pc.fill_null(pa.chunked_array(parts, pa.bool_()), False).to_numpy().copy()
    for name in (query, *own_ids(run / ledger.stages[0], [query])):
        hits[ledger.by_key.of_key(key_of(name))] = True
    return np.flatnonzero(hits if mask is None else hits & mask)


def find_text(
    folder: Folder, ledger: Ledger, mask: Bits | None, query: str, start: int, most: int
) -> dict[str, Any]:
    """Return rows whose text contains `query`, from the file with number `start` on.

    Returns up to about `most` rows with the passage, and `next`, the file to go on with (None: all
    were read).
    """
    found: list[tuple[int, str]] = []
    read = 0
    number = start
    while number < len(ledger.sources) and len(found) < most and read < _TEXT_BYTES:
        source = ledger.sources[number]
        wanted = None if mask is None else mask[source.first : source.first + source.rows]
        number += 1
        if wanted is not None and not wanted.any():
            continue
        with open_parquet(folder / source.stage, source.name) as parquet:
            first = 0
            for group in range(parquet.num_row_groups):  # one alone has bounded texts
                texts = parquet.read_row_group(group, columns=["text"])["text"]
                read += texts.nbytes
                hits = pc.match_substring(texts, query, ignore_case=True)
                held = pc.fill_null(hits, False).to_numpy(zero_copy_only=False)
                if wanted is not None:
                    held = held & wanted[first : first + len(texts)]
                for row in np.flatnonzero(held):
                    text = texts[int(row)].as_py()
                    found.append((source.first + first + int(row), _passage(text, query)))
                first += len(texts)
    done = number >= len(ledger.sources)
    return {"found": found, "next": None if done else number, "files": len(ledger.sources)}


def _passage(text: str, query: str) -> str:
    hit = re.search(re.escape(query), text, re.IGNORECASE)
    at, end = hit.span() if hit else (0, 0)
    return " ".join(text[max(0, at - _AROUND) : end + _AROUND].split())


def ordered(
    ledger: Ledger, rows: npt.NDArray[np.int64], sort: str, down: bool, first: int, most: int
) -> npt.NDArray[np.int64]:
    """Return a page of these rows in the order of a column. Raises ConfigError where it can't be
    one."""
    if not sort:
        return rows[first : first + most]
    keys = _sort_keys(ledger, rows, sort)
    keys = -keys if down else keys
    end = min(first + most, len(rows))
    if end < len(rows):  # the first ones suffice; ties at the cut go by the ledger's order
        limit = np.partition(keys, end)[end]
        few = np.flatnonzero(keys <= limit)
    else:
        few = np.arange(len(rows))
    return rows[few[np.lexsort((rows[few], keys[few]))][first:end]]


def _sort_keys(ledger: Ledger, rows: npt.NDArray[np.int64], sort: str) -> npt.NDArray[Any]:
    if sort not in SORTS:
        raise ConfigError(f"documents can't be sorted by {sort!r}")
    if sort in ("characters", "tokens", "date", "value"):
        keys = ledger.numbers[sort][rows].astype(np.float64)
        return np.where(np.isnan(keys), -np.inf, keys)
    names = (
        [f"{ledger.stage_of_fate[i]:04d} {fate.reason}" for i, fate in enumerate(ledger.fates)]
        if sort == "fate"
        else ledger.values[sort]
    )
    ranks = np.empty(len(names), np.int64)
    ranks[sorted(range(len(names)), key=names.__getitem__)] = np.arange(len(names))
    codes = ledger.numbers["fate"] if sort == "fate" else ledger.codes[sort]
    return ranks[codes[rows]].astype(np.float64)


def described(
    folder: Folder, ledger: Ledger, rows: Sequence[int], also: Sequence[str] = ()
) -> list[dict[str, Any]]:
    """Return what tables show of documents, and further columns of theirs."""
    read = ledger.read(folder, rows, ["url", "title", "date", "value", VALUE_TEXT, *also])
    for held in read:
        held |= {name: _cut(held[name]) for name in ("url", "title", VALUE_TEXT)}
        held["date"] = None if held["date"] is None else held["date"].isoformat()
    return [held | _described(ledger, int(row)) for held, row in zip(read, rows, strict=True)]


def _cut(text: str | None) -> str | None:
    """Return a title or URL at a length that a browser can lay out."""
    return text if text is None or len(text) <= _LINE else f"{text[:_LINE]}…"


def _described(ledger: Ledger, row: int) -> dict[str, Any]:
    fate = ledger.fates[ledger.numbers["fate"][row]]
    tokens = int(ledger.numbers["tokens"][row])
    return {
        "row": row,
        "stage": fate.stage if fate.reason is not None else None,
        "reason": fate.reason,
        "characters": int(ledger.numbers["characters"][row]),
        "tokens": None if tokens == NO_TOKENS else tokens,
        **{name: ledger.values[name][ledger.codes[name][row]] for name in DIMENSIONS},
    }


def draw(
    ledger: Ledger, rule: str, most: int, seed: int, mask: Bits | None = None
) -> npt.NDArray[np.int64]:
    """Return rows of documents drawn from those that a rule removed, or from the kept ones
    (`kept`).

    The draw depends on the ids and the seed alone: documents that come or go elsewhere don't
    change it. Raises ConfigError where no document has this fate.
    """
    wanted = np.array([(fate.reason or KEPT) == rule for fate in ledger.fates], bool)
    if not wanted.any():
        known = ", ".join(sorted({fate.reason or KEPT for fate in ledger.fates})) or "no document"
        what = "was kept" if rule == KEPT else f"was removed by {rule!r}"
        raise ConfigError(f"no document {what} (there are: {known})")
    held = wanted[ledger.numbers["fate"]]
    held = held if mask is None else held & mask
    places = np.flatnonzero(held[ledger.by_key.rows])
    rows, ranks = ledger.by_key.rows[places], _ranks(ledger.by_key.keys[places], seed)
    if 0 < most < len(rows):  # of millions, only those that can be drawn are sorted
        few = np.flatnonzero(ranks <= np.partition(ranks, most - 1)[most - 1])
        rows, ranks = rows[few], ranks[few]
    return rows[np.lexsort((rows, ranks))[:most]]


def _ranks(keys: npt.NDArray[np.uint64], seed: int) -> npt.NDArray[np.uint64]:
    salt = np.uint64(key_of(f"sample {seed}"))
    h = (keys ^ salt) * np.uint64(0x9E3779B97F4A7C15)
    h = (h ^ (h >> np.uint64(32))) * np.uint64(0xD6E8FEB86659FD93)
    return h ^ (h >> np.uint64(32))
