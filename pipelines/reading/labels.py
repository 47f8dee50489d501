"""Sample documents for judging, store readers' labels, and score rules with their intervals."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any, Literal, NamedTuple, get_args

import numpy as np
import numpy.typing as npt

from curation.errors import ConfigError, InputError
from curation.filters.margins import Bits
from pipelines.reading.ledger import Ledger, key_of
from pipelines.reading.search import KEPT

_Z = 1.959963984540054  # two-sided 95 %


class Share(NamedTuple):
    """An estimated share and the ends of its 95 % interval; NaN where nothing was counted."""

    value: float
    low: float
    high: float


def wilson(hits: int, of: int) -> Share:
    """Return a share with Wilson's score interval (JASA 22, 1927), sound for small counts."""
    if of == 0:
        return Share(math.nan, 0.0, 1.0)
    share, z2 = hits / of, _Z * _Z
    middle = (share + z2 / (2 * of)) / (1 + z2 / of)
    half = _Z * math.sqrt(share * (1 - share) / of + z2 / (4 * of * of)) / (1 + z2 / of)
    return Share(share, max(0.0, middle - half), min(1.0, middle + half))


Label = Literal["keep", "drop", "unsure"]
LABELS: tuple[str, ...] = get_args(Label)


def draw(
    ledger: Ledger, rule: str, most: int, seed: int, mask: Bits | None = None
) -> npt.NDArray[np.int64]:
    """Rows of documents drawn from those that a rule removed, or from the kept ones (`kept`).

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


class Labels:
    """A file of labels, one JSON object a line; the last one of a document and rule counts."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.rows: dict[tuple[str, str], dict[str, Any]] = {}
        if path.exists():
            for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1):
                self._add(self._parsed(line, number))

    def _parsed(self, line: str, number: int) -> dict[str, Any]:
        try:
            row = json.loads(line)
            if row["label"] not in (*LABELS, None):
                raise ValueError(f"label {row['label']!r}")
            return {"id": str(row["id"]), "rule": str(row["rule"])} | row
        except (ValueError, KeyError, TypeError) as error:
            raise InputError(f"{self.path}, line {number}: not a label: {error}") from None

    def _add(self, row: dict[str, Any]) -> None:
        if row["label"] is None:
            self.rows.pop((row["id"], row["rule"]), None)
        else:
            self.rows[row["id"], row["rule"]] = row

    def add(self, document: dict[str, Any], rule: str, label: str | None) -> None:
        """Write a label; None takes it back. Raises ConfigError for an unknown one."""
        if label is not None and label not in LABELS:
            raise ConfigError(f"no label {label!r} (there are: {', '.join(LABELS)})")
        row = {"id": document["id"], "url": document["url"], "rule": rule, "label": label}
        if label is not None:
            row["text"] = document["text"]
        with self.path.open("a", encoding="utf-8") as file:
            file.write(json.dumps(row, ensure_ascii=False) + "\n")
        self._add(row)

    def of_rule(self, rule: str) -> dict[str, str]:
        """Labels by the ids of documents."""
        return {name: row["label"] for (name, r), row in self.rows.items() if r == rule}


def scores(ledger: Ledger, labels: Labels) -> list[dict[str, Any]]:
    """Precision and recall of every rule with labels, with 95 % intervals.

    Precision: the share of the rule's removals that readers would drop, too. Recall: of the bad
    documents that the rule removed or that were kept, the share that it removed; it takes labels of
    kept documents, and is None without. `unsure` counts in neither.
    """
    counts = np.bincount(ledger.numbers["fate"], minlength=len(ledger.fates))
    removed: dict[str, int] = {}
    for fate, number in zip(ledger.fates, counts.tolist(), strict=True):
        removed[fate.reason or KEPT] = removed.get(fate.reason or KEPT, 0) + number
    missed = _tally(labels, KEPT)
    found = []
    for rule in sorted({rule for _, rule in labels.rows}):
        tally = _tally(labels, rule)
        drops, of = tally["drop"], tally["drop"] + tally["keep"]
        share = wilson(drops, of)
        entry: dict[str, Any] = {"rule": rule, "documents": removed.get(rule, 0), **tally}
        if rule == KEPT:
            entry["missed"] = share if of else None
        else:
            entry["precision"] = share if of else None
            entry["recall"] = _recall(
                removed.get(rule, 0), (drops, of), removed.get(KEPT, 0), missed
            )
        found.append(entry)
    return found


def _tally(labels: Labels, rule: str) -> dict[str, int]:
    held = list(labels.of_rule(rule).values())
    return {label: held.count(label) for label in LABELS}


def _recall(
    removed: int, precision: tuple[int, int], kept: int, missed: dict[str, int]
) -> tuple[float, float, float] | None:
    of = missed["drop"] + missed["keep"]
    if not precision[1] or not of:
        return None
    caught, left = wilson(*precision), wilson(missed["drop"], of)

    def share(hit: float, miss: float) -> float:
        total = removed * hit + kept * miss
        return removed * hit / total if total else 0.0

    return share(caught[0], left[0]), share(caught[1], left[2]), share(caught[2], left[1])
