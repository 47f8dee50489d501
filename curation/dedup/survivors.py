"""Choose which document of each group of duplicates to keep."""

from __future__ import annotations

import fnmatch
import logging
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from curation.dedup.dedup_settings import OrderRule, Preference, SurvivorSettings
from curation.dedup.keys import run_lengths, run_starts
from curation.dedup.urls import hosts
from curation.errors import ConfigError
from curation.judging import as_numbers, attempt, opened

#: Column that each rule reads, and whether its greatest value wins.
RULES: dict[OrderRule, tuple[str, bool]] = {
    "newest": ("date", True),
    "oldest": ("date", False),
    "longest": ("length", True),
    "shortest": ("length", False),
    "highest_quality": ("quality", True),
    "preferred_source": ("source_rank", False),
    "preferred": ("source_rank", False),
    "id": ("id", False),
}


_LOG = logging.getLogger(__name__)
_LAST = np.iinfo(np.int64).max


class Removals(NamedTuple):
    """Documents to remove, sorted, and the document kept instead of each."""

    removed: npt.NDArray[np.uint64]  # [removed documents]
    kept: npt.NDArray[np.uint64]  # [removed documents]


def choose_survivors(
    keys: npt.NDArray[np.uint64],
    doc64: npt.NDArray[np.uint64],
    columns: Mapping[str, npt.NDArray[Any]],
    policy: Sequence[OrderRule],
) -> Removals:
    """Keep one document per key; the result does not depend on the order of the records.

    Args:
        keys: [n] or [n, 2]; records of equal keys are one group.
        doc64: [n] identifiers, each at most once per key.
        columns: what the policy reads, each [n]: `date` (datetime64 or int64), `length` (int64),
            `quality` (float), `source_rank` (int64, of `source_ranks`), `id` (uint64 hash of the
            document's id), and `priority` (int64), which outweighs all rules: the least wins. NaN
            and NaT lose.
        policy: rules in order of weight. Between equals the smaller `id` stays where that column
            is given, then the smaller doc64.

    Raises ConfigError when the policy reads a column that is not given.
    """
    order: list[npt.NDArray[Any]] = []
    if "priority" in columns:
        order.append(_rank(columns["priority"], greatest=False))
    for rule in policy:
        name, greatest = RULES[rule]
        if name not in columns:
            raise ConfigError(f"survivor policy {rule!r} needs the column {name!r}")
        order.append(_rank(columns[name], greatest))
    if "id" in columns and "id" not in policy:
        order.append(_rank(columns["id"], greatest=False))
    parts = [keys] if keys.ndim == 1 else list(keys.T)
    rows = np.lexsort([doc64, *reversed(order), *parts])  # the last key of lexsort weighs most
    starts = run_starts(*(part[rows] for part in parts))
    documents = doc64[rows].astype(np.uint64)
    survivors = np.repeat(documents[starts], run_lengths(starts, len(rows)))
    lost = np.ones(len(rows), bool)
    lost[starts] = False
    removed, kept = documents[lost], survivors[lost]
    ascending = np.lexsort([kept, removed])
    return Removals(removed[ascending], kept[ascending])


def ranks_of(batch: pa.RecordBatch, settings: SurvivorSettings) -> npt.NDArray[np.int64]:
    """`source_rank` of documents: by the user's preference or by preferred sources; else zeros."""
    if settings.preference is not None:
        return _preference(batch, settings.preference)
    if not settings.preferred_sources:
        return np.zeros(batch.num_rows, np.int64)
    files = pc.struct_field(batch.column("source"), "file").cast(pa.large_string())
    return source_ranks(hosts(batch.column("url")), files, settings.preferred_sources)


def _preference(batch: pa.RecordBatch, preference: Preference) -> npt.NDArray[np.int64]:
    """Integers in the opposite order of the numbers that code gives; the last where it fails."""
    function = opened(preference.python, preference.settings)
    ranks, failed = np.full(batch.num_rows, _LAST), list[str]()
    for part, row, answer in attempt(lambda given: as_numbers(function(given), given), batch):
        if isinstance(answer, BaseException):
            failed.append(f"{part.column('id')[0]}: {answer}")
            continue
        bits = (-answer).view(np.int64)  # ordered as the numbers are, but for the negative ones
        ordered = np.where(bits < 0, bits ^ np.int64(_LAST), bits)
        ranks[row : row + part.num_rows] = np.where(np.isnan(answer), _LAST, ordered)
    if failed:
        more = f", nor have {len(failed) - 1} more" if len(failed) > 1 else ""
        _LOG.warning("%s: %s: has no preference%s", preference.python, failed[0], more)
    return ranks


def source_ranks(
    hosts: pa.Array, files: pa.Array, patterns: Sequence[str]
) -> npt.NDArray[np.int64]:
    """Place of the first pattern that each document's host or source file matches.

    -> int64 [documents], the number of patterns where none matches. Shell patterns: `*` stands for
    anything, slashes too; case matters.
    """
    ranks = np.full(len(hosts), len(patterns), np.int64)
    for place in range(len(patterns) - 1, -1, -1):
        for names in (hosts, files):
            distinct = pc.unique(names)
            matching = [
                n for n in distinct.to_pylist() if n and fnmatch.fnmatchcase(n, patterns[place])
            ]
            found = pc.is_in(names, pa.array(matching, names.type))
            ranks[found.to_numpy(zero_copy_only=False)] = place
    return ranks


def _rank(values: npt.NDArray[Any], greatest: bool) -> npt.NDArray[Any]:
    """Keys that sort the preferred value first and an absent one last."""
    if values.dtype.kind == "M":
        absent = np.isnat(values)
        values = values.astype(np.int64)
    elif values.dtype.kind == "f":
        absent = np.isnan(values)
    else:
        absent = np.zeros(len(values), bool)
    if values.dtype.kind == "f":
        ranked = -values if greatest else values.copy()
        ranked[absent] = np.inf
        return ranked
    # The complement turns the order of integers round without overflow.
    ranked = ~values if greatest else values.copy()
    ranked[absent] = np.iinfo(values.dtype).max
    return ranked
