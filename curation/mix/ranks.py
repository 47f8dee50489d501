"""Rank of a document's quality among documents of its group and language.

Scores of languages with few training pages are low throughout; within a language they still tell
the better document from the worse. The report ranks its multilingual documents so (Llama 3, section
3.1.1). Ranks are of the documents that are mixed, so that they need no other corpus. With several
views of quality the best of a document's ranks counts, as in Nemotron-CC (arXiv 2412.02595), and is
ranked in its turn.
"""

from collections.abc import Iterator, Mapping, Sequence
from typing import TypeAlias

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from curation.mix.mix_settings import MISSING_QUALITY

F64 = npt.NDArray[np.float64]
Batch: TypeAlias = pa.RecordBatch | pa.Table
#: Ascending values: all of them, or so many evenly spaced ones.
Points = Sequence[float]

#: By domain, group and language: qualities, scores of each further view, and with such the best of
#: each document's ranks.
Ranks = Mapping[str, Mapping[str, Mapping[str, Sequence[Points]]]]

_POINTS = 1001
_UNKNOWN = "und"


def groups(batch: Batch, domain: str, within: str) -> Iterator[tuple[str, npt.NDArray[np.bool_]]]:
    """Yield the groups of a domain by name, with the rows that are in each.

    Documents without a topic or format are a group of the empty name, as is the domain as a whole
    with `within` domain.
    """
    ours = pc.equal(batch.column("domain"), domain).to_numpy(zero_copy_only=False)
    if within == "domain":
        yield "", ours
        return
    labels = pc.fill_null(batch.column(within), "").to_numpy(zero_copy_only=False)
    for label in sorted(set(labels[ours])):
        yield str(label), ours & (labels == label)


def learn(tables: Sequence[Batch], ranked: Mapping[str, str]) -> Ranks:
    """Qualities of the documents of some domains; `tables` have columns of `NARROW`.

    `ranked`: by domain, the column within which its documents are ranked.
    """
    values: dict[tuple[str, str, str], list[F64]] = {}
    for table in tables:
        for domain, within in ranked.items():
            for label, rows in groups(table, domain, within):
                languages, scores = _columns(table.filter(pa.array(rows)))
                for name in np.unique(languages):
                    ours = scores[:, languages == name]
                    values.setdefault((domain, label, str(name)), []).append(ours)
    found: dict[str, dict[str, dict[str, list[Points]]]] = {domain: {} for domain in ranked}
    for (domain, label, name), parts in sorted(values.items()):
        scores = np.concatenate(parts, axis=1)
        points: list[Points] = [_points(view) for view in scores]
        if len(points) > 1:
            points.append(_points(_best(scores, points)))
        found[domain].setdefault(label, {})[name] = points
    return found


def rank(batch: Batch, ranks: Mapping[str, Sequence[Points]]) -> F64:
    """Rank of every document of a group, 0 to 1: the share of its language below it.

    Of its equals half count as below. Between two of the evenly spaced values of a large group
    ranks follow a straight line.
    """
    languages, scores = _columns(batch)
    out = np.full(batch.num_rows, 0.5)
    for language in np.unique(languages):
        rows, points = languages == language, ranks[language]
        best = _best(scores[:, rows], points)
        out[rows] = _ranked(best, points[-1]) if len(scores) > 1 else best
    return out


def _best(scores: F64, points: Sequence[Points]) -> F64:
    """Return the best of each document's ranks by scores: [views, documents] -> [documents]."""
    return np.max([_ranked(*view) for view in zip(scores, points, strict=False)], axis=0)


def _ranked(values: F64, among: Points) -> F64:
    points = np.array(among)
    below = np.searchsorted(points, values, "left")
    upto = np.searchsorted(points, values, "right")
    middle = (below + upto) / 2
    between = np.flatnonzero((below == upto) & (below > 0) & (below < len(points)))
    low, high = points[below[between] - 1], points[below[between]]
    middle[between] = below[between] - 0.5 + (values[between] - low) / (high - low)
    found: F64 = middle / len(points)
    return found


def _points(values: F64) -> list[float]:
    """The values in order, or as many evenly spaced ones as are enough to rank by."""
    ordered = np.sort(values)
    if len(ordered) > _POINTS:
        # The middles of as many equal parts, so that the k-th of them has the rank (k + 1/2) / n.
        middles = (np.arange(_POINTS) + 0.5) / _POINTS
        ordered = ordered[(middles * len(ordered)).astype(np.int64)]
    return [float(v) for v in ordered]


def _columns(table: Batch) -> tuple[npt.NDArray[np.str_], F64]:
    """Return languages [documents], and qualities with the scores of views: [views, documents]."""
    languages = pc.fill_null(table.column("language"), _UNKNOWN)
    views = [pc.list_flatten(table.column("views")), table.column("quality").cast(pa.float64())]
    more, qualities = (
        np.nan_to_num(v.to_numpy(zero_copy_only=False), nan=MISSING_QUALITY) for v in views
    )
    scores = more.reshape(table.num_rows, -1 if len(more) else 0).T
    return languages.to_numpy(zero_copy_only=False).astype(str), np.vstack([qualities, scores])
