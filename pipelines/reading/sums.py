"""Counts over a run: its funnel, its values by dimension, hosts, mix, lines, records set aside.

Histograms of signals whose values may span many orders of magnitude.
"""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Literal, NamedTuple

import numpy as np
import numpy.typing as npt

from curation.dedup.dedup_settings import GOOD_SHARE
from curation.filters.margins import Bits
from curation.readers.records import NOT_DRAWN_COUNT
from curation.stages import find
from pipelines.reading.ledger import NO_TOKENS, Ledger
from pipelines.storage.files import Folder
from pipelines.storage.manifest import read_manifest
from pipelines.storage.shards import read_kinds

_ASIDE = "set_aside"
_SHOWN_ASIDE, _LINES, _HOST_REASONS = 500, 500, 3


def tokens_per_character(ledger: Ledger) -> float | None:
    """As the run's tokenizer counted them; None where it hasn't."""
    counted = ledger.numbers["tokens"] != NO_TOKENS
    characters = ledger.numbers["characters"][counted].sum()
    return float(ledger.numbers["tokens"][counted].sum() / characters) if characters else None


def funnel(ledger: Ledger, mask: Bits | None) -> list[dict[str, Any]]:
    """Stages in order: documents and characters in, kept, removed, and those removed by reason.

    Characters are of the texts as the documents ended.
    """
    fates = len(ledger.fates)
    documents = counted(ledger.numbers["fate"], fates, mask)
    characters = counted(ledger.numbers["fate"], fates, mask, ledger.numbers["characters"])
    found = []
    for number, stage in enumerate(ledger.stages):
        into = ledger.stage_of_fate >= number
        gone = ledger.stage_of_fate == number
        removed: list[dict[str, Any]] = [
            {
                "reason": ledger.fates[i].reason,
                "documents": int(documents[i]),
                "characters": int(characters[i]),
            }
            for i in np.flatnonzero(gone)
            if documents[i]
        ]
        found.append(
            {
                "stage": stage,
                "documents_in": int(documents[into].sum()),
                "documents_removed": int(documents[gone].sum()),
                "characters_in": int(characters[into].sum()),
                "characters_removed": int(characters[gone].sum()),
                "removed": sorted(removed, key=lambda r: (-r["documents"], r["reason"])),
            }
        )
    return found


def values(
    ledger: Ledger,
    mask: Bits | None,
    dimension: str,
    most: int,
    order: str = "documents",
    weighed: bool = True,
) -> dict[str, Any]:
    """Return documents, and kept ones, of the values of a dimension, the most first.

    `weighed` adds characters, and tokens of the kept ones.
    """
    names, codes = ledger.values[dimension], ledger.codes[dimension]
    size = len(names)
    removed, left = pairs(codes, ledger.kept, (size, 2), mask).T
    documents = removed + left
    columns = {"documents": documents, "kept": left, "removed": removed}
    if weighed:
        columns["characters"] = counted(codes, size, mask, ledger.numbers["characters"])
        tokens = np.maximum(ledger.numbers["tokens"], 0) * ledger.kept  # 0 of those not counted
        columns["tokens"] = counted(codes, size, mask, tokens)
    present = np.flatnonzero(documents)
    ranked = present[np.lexsort((present, -columns[order][present]))]
    rows = [
        {"value": names[i], **{n: int(c[i]) for n, c in columns.items()}} for i in ranked[:most]
    ]
    return {"values": rows, "all": len(present)}


def spans(size: int, most: int = 1 << 20) -> Iterator[slice]:
    """Parts of a long array, so that what is made of it on the way stays small."""
    for first in range(0, size, most):
        yield slice(first, min(first + most, size))


def counted(
    codes: npt.NDArray[Any], size: int, mask: Bits | None, weights: npt.NDArray[Any] | None = None
) -> npt.NDArray[np.int64]:
    """Return documents, or their sums of whole weights, by code -> [size]."""
    found = np.zeros(size, np.int64)
    for part in spans(len(codes)):
        among = None if mask is None else mask[part]
        weight = None if weights is None else _of(weights[part], among)
        found += np.bincount(_of(codes[part], among), weight, size).astype(np.int64)
    return found


def pairs(
    first: npt.NDArray[Any], second: npt.NDArray[Any], sizes: tuple[int, int], mask: Bits | None
) -> npt.NDArray[np.int64]:
    """Return documents by the codes of two columns -> [sizes]."""
    found = np.zeros(sizes, np.int64)
    for part in spans(len(first)):
        both = first[part].astype(np.int64) * sizes[1] + second[part]
        among = _of(both, None if mask is None else mask[part])
        found += np.bincount(among, minlength=found.size).reshape(sizes)
    return found


def host_reasons(ledger: Ledger, mask: Bits | None, hosts: list[str]) -> dict[str, list[list[Any]]]:
    """For each host the commonest reasons for which its documents went, with their numbers."""
    number = {name: i for i, name in enumerate(ledger.values["host"])}
    wanted = np.full(len(number), -1)
    for i, host in enumerate(hosts):
        wanted[number[host]] = i
    place = wanted[_of(ledger.codes["host"], mask)]
    mine = place >= 0
    fates = _of(ledger.numbers["fate"], mask)[mine]
    counts = pairs(place[mine], fates, (len(hosts), len(ledger.fates)), None)
    found: dict[str, list[list[Any]]] = {}
    for i, host in enumerate(hosts):
        ranked = sorted(
            (-int(counts[i, f]), fate.reason)
            for f, fate in enumerate(ledger.fates)
            if fate.reason is not None and counts[i, f]
        )
        found[host] = [[reason, -count] for count, reason in ranked[:_HOST_REASONS]]
    return found


def removed_by_language(
    ledger: Ledger, mask: Bits | None, stage: str
) -> dict[tuple[str, str], int]:
    """Return documents that a stage removed, by reason and language."""
    languages, sizes = (
        ledger.values["language"],
        (len(ledger.fates), len(ledger.values["language"])),
    )
    counts = pairs(ledger.numbers["fate"], ledger.codes["language"], sizes, mask)
    found: dict[tuple[str, str], int] = {}
    for number, language in np.argwhere(counts).tolist():
        fate = ledger.fates[number]
        if fate.stage == stage and fate.reason is not None:
            found[fate.reason, languages[language]] = int(counts[number, language])
    return found


def personal_data(folder: Folder, stages: list[str]) -> dict[str, int]:
    """Items of personal data by host, of those that the run reports."""
    found: dict[str, int] = {}
    for _, notes in _notes(folder, stages):
        found |= {row["host"]: row["items"] for row in notes.get("hosts with personal data", [])}
    return found


def _notes(folder: Folder, stages: Sequence[str]) -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield each stage with the notes in its manifest."""
    for stage in stages:
        yield stage, read_manifest(folder / stage).get("notes", {})


def clusters(
    folder: Folder, ledger: Ledger, mask: Bits | None, first: int, most: int
) -> dict[str, Any]:
    """Return a page of the clusters of duplicates, the largest first: the kept document, its
    copies."""
    copies = ledger.copies.keys if mask is None else ledger.copies.keys[mask[ledger.copies.rows]]
    keys, counts = np.unique(copies, return_counts=True)
    chosen = [int(i) for i in np.lexsort((keys, -counts))[first : first + most]]
    kept = [ledger.by_key.of_key(int(keys[i]))[:1].tolist() for i in chosen]
    shown = iter(ledger.read(folder, [row for rows in kept for row in rows], ["title", "url"]))
    found = []
    for i, rows in zip(chosen, kept, strict=True):
        members = ledger.copies.of_key(int(keys[i]))
        named = next(shown) if rows else {"title": None, "url": None}
        found.append(
            {
                "key": str(keys[i]),
                "removed": int(counts[i]),
                "kept_row": rows[0] if rows else None,
                **named,
                "first": int(members[0]),
                "reasons": reasons_of(ledger, members),
            }
        )
    sizes = np.bincount(counts) if len(counts) else np.zeros(0, np.int64)
    return {
        "clusters": found,
        "all": len(keys),
        "sizes": [[i, int(n)] for i, n in enumerate(sizes) if n],
    }


def reasons_of(ledger: Ledger, rows: npt.NDArray[np.int64]) -> list[list[Any]]:
    """Reasons of these documents with their numbers, the commonest first."""
    counts = np.bincount(ledger.numbers["fate"][rows], minlength=len(ledger.fates))
    ranked = sorted((-int(counts[i]), ledger.fates[i].reason or "") for i in np.flatnonzero(counts))
    return [[reason, -count] for count, reason in ranked]


def lines(folder: Folder, stages: list[str]) -> list[dict[str, Any]]:
    """Return what stages that cut lines say of the commonest ones."""
    found = []
    for stage, notes in _notes(folder, stages):
        tables = {k: v for k, v in notes.items() if "line" in k or "cut" in k}
        if tables:
            found.append({"stage": stage, "notes": tables, "removed": _cut_lines(folder / stage)})
    return found


def _cut_lines(place: Folder) -> list[dict[str, Any]]:
    """Frequent lines with what was decided on them, the commonest first."""
    from curation.dedup.audit import CUT  # compiled kernels

    totals: dict[tuple[str, str], dict[str, Any]] = {}
    for batch in read_kinds(place, ["audit"]):
        for row in batch.to_pylist() if "line" in batch.schema.names else ():
            nothing = row | {"occurrences": 0, "characters": 0}
            known = totals.setdefault((row["line"], row["verdict"]), nothing)
            for count in ("occurrences", "characters"):
                known[count] += row[count]
    for row in totals.values():
        row["good_share"] = GOOD_SHARE if row["verdict"] in CUT else None
    wanted = [
        *("line", "verdict", "documents", "hosts", "edge_share", "host_share"),
        *("occurrences", "characters", "good_share"),
    ]
    ranked = sorted(totals.values(), key=lambda r: (-r["documents"], r["line"]))
    return [{name: row.get(name) for name in wanted} for row in ranked[:_LINES]]


def mixes(folder: Folder, stages: list[str]) -> list[dict[str, Any]]:
    """Return what the mix says of domains and inputs: wanted, available, got, epochs."""
    drawn = [stage for stage in stages if find(stage).per_mix and not find(stage).is_sink]
    return [{"stage": stage, "notes": notes} for stage, notes in _notes(folder, drawn)]


def set_aside(folder: Folder, stages: list[str]) -> dict[str, Any]:
    """Records that are no documents, by reason, and some of those that could not be read."""
    source = stages[0]
    counts: Mapping[str, Any] = read_manifest(folder / source)["counts"]
    kinds = {"skipped.": "not a document", "set_aside.": "set aside", "mended.": "repaired"}
    reasons = [
        {
            "what": "left out" if name == NOT_DRAWN_COUNT else what,
            "reason": name.removeprefix(prefix),
            "records": number,
        }
        for prefix, what in kinds.items()
        for name, number in sorted(counts.items())
        if name.startswith(prefix)
    ]
    return {
        "records": counts.get("records"),
        "documents": counts["documents_in"],
        "reasons": reasons,
        "rows": [*_rows_of(folder / source, _ASIDE), *_rows_of(folder / source, "mended")],
        "errors": [row | {"stage": s} for s in stages for row in _rows_of(folder / s, "errors")],
        "most": _SHOWN_ASIDE,
    }


def _rows_of(place: Folder, kind: str) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = []
    for batch in read_kinds(place, [kind], ["url", "reason", "detail", "source"]):
        found += [row | {"kind": kind} for row in batch.to_pylist()]
        if len(found) >= _SHOWN_ASIDE:
            break
    return found[:_SHOWN_ASIDE]


def _of(column: npt.NDArray[Any], mask: Bits | None) -> npt.NDArray[Any]:
    return column if mask is None else column[mask]


Scale = Literal["linear", "log"]
#: Quantiles at which the open first and last bin begin.
_TAILS = (0.001, 0.999)
#: Ratio of maximum to median above which bins are logarithmic.
_SPREAD = 20
_SAMPLED = 1 << 18
#: Values that are counted at once.
_PART = 1 << 16


class Bins(NamedTuple):
    """Edges [bins + 1], ascending; the first and the last bin are open-ended."""

    edges: npt.NDArray[np.float64]
    scale: Scale


def bins_for(values: npt.NDArray[np.float64], count: int, also: tuple[float, ...] = ()) -> Bins:
    """Return bins that show the distribution of the values; they cover the values `also`.

    NaN and infinite values are ignored. For many values, an evenly spaced sample is used.
    """
    step = max(1, len(values) // _SAMPLED)
    held = values[::step]
    held = held[np.isfinite(held)]
    if not len(held):
        return Bins(np.linspace(0, 1, count + 1), "linear")
    low, middle, high = np.quantile(held, (_TAILS[0], 0.5, _TAILS[1]))
    low, high = min(low, *also, high), max(high, *also, low)
    if high <= low:
        high = low + (abs(low) or 1)
    if low >= 0 and high > _SPREAD * max(middle, 1):
        edges = np.expm1(np.linspace(np.log1p(low), np.log1p(high), count + 1))
        return Bins(edges, "log")
    return Bins(np.linspace(low, high, count + 1), "linear")


def histogram(
    values: npt.NDArray[np.float64], groups: npt.NDArray[np.integer], kinds: int, bins: Bins
) -> npt.NDArray[np.int64]:
    """Count values by group and bin -> int64 [kinds, bins]. NaN is not counted.

    Args:
        values: [n].
        groups: [n], from 0 to before `kinds`.
    """
    count = len(bins.edges) - 1
    found = np.zeros(kinds * count, np.int64)
    for first in range(0, len(values), _PART):  # what is made on the way stays in the cache
        part, group = values[first : first + _PART], groups[first : first + _PART]
        known = ~np.isnan(part)
        if not known.all():
            part, group = part[known], group[known]
        places = group.astype(np.int64) * count + _place(part, bins, count)
        found += np.bincount(places, minlength=kinds * count)
    return found.reshape(kinds, count)


def _place(values: npt.NDArray[np.float64], bins: Bins, count: int) -> npt.NDArray[np.int32]:
    edges = bins.edges
    if bins.scale == "log":
        values = np.log1p(np.maximum(values, 0))
        edges = np.log1p(edges)
    with np.errstate(invalid="ignore", over="ignore"):
        found = (values - edges[0]) * (count / (edges[-1] - edges[0]))
    return np.clip(found, 0, count - 1).astype(np.int32)
