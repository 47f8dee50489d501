"""Where a document's quality stands among the documents of its language.

Scores of languages with few training pages are low throughout; within a language they still tell
the better document from the worse. The report ranks its multilingual documents so (Llama 3, section
3.1.1). Ranks are of the documents that are mixed, so that they need no other corpus.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

F64 = npt.NDArray[np.float64]

#: By domain and language, ascending qualities: all of them, or so many evenly spaced ones.
Ranks = Mapping[str, Mapping[str, Sequence[float]]]

_POINTS = 1001
_UNKNOWN = "und"


def learn(
    tables: Sequence[pa.RecordBatch | pa.Table], domains: Sequence[str], missing: float
) -> Ranks:
    """Qualities by language of the documents of some domains; `tables` have columns of `NARROW`."""
    found = {}
    for domain in domains:
        values: dict[str, list[F64]] = {}
        for table in tables:
            ours = pc.equal(table.column("domain"), domain)
            for language, qualities in _by_language(table.filter(ours), missing):
                values.setdefault(language, []).append(qualities)
        found[domain] = {n: _points(np.concatenate(values[n])) for n in sorted(values)}
    return found


def rank(
    batch: pa.RecordBatch | pa.Table, ranks: Mapping[str, Sequence[float]], missing: float
) -> F64:
    """Rank of every document, 0 to 1: the share of its language below, and half of its equals."""
    languages, qualities = _columns(batch, missing)
    out = np.full(len(qualities), 0.5)
    for language in np.unique(languages):
        rows = languages == language
        points = np.array(ranks[language])
        below = np.searchsorted(points, qualities[rows], "left")
        upto = np.searchsorted(points, qualities[rows], "right")
        out[rows] = (below + upto) / (2 * len(points))
    return out


def _points(values: F64) -> list[float]:
    """The values in order, or as many evenly spaced ones as are enough to rank by."""
    ordered = np.sort(values)
    if len(ordered) > _POINTS:
        ordered = ordered[np.linspace(0, len(ordered) - 1, _POINTS).astype(np.int64)]
    return [float(v) for v in ordered]


def _by_language(table: pa.RecordBatch | pa.Table, missing: float) -> list[tuple[str, F64]]:
    languages, qualities = _columns(table, missing)
    return [(str(n), qualities[languages == n]) for n in np.unique(languages)]


def _columns(table: pa.RecordBatch | pa.Table, missing: float) -> tuple[npt.NDArray[np.str_], F64]:
    languages = pc.fill_null(table.column("language"), _UNKNOWN)
    qualities = pc.fill_null(table.column("quality").cast(pa.float64()), missing)
    return (
        languages.to_numpy(zero_copy_only=False).astype(str),
        qualities.to_numpy(zero_copy_only=False),
    )
