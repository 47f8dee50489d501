"""Audit of line deduplication: every frequent line, where it occurs, and its verdict."""

from collections.abc import Iterable
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from curation.arrow import Texts, summed, text_buffers
from curation.dedup.dedup_settings import GOOD_SHARE, VERDICTS
from curation.dedup.lines import LineRemoval, LineTotals
from curation.dedup.patterns import CUTS

#: One row per frequent line and verdict in a batch. The columns up to `bytes` are of the
#: line in all its bucket: `edge_share` of its documents have it near an edge, it is on `host_share`
#: of the pages of its hosts. The last two columns are of this batch.
AUDIT = pa.schema(
    [
        ("key", pa.uint64()),
        ("line", pa.large_string()),
        ("documents", pa.int64()),
        ("hosts", pa.int64()),
        ("edge_share", pa.float64()),
        ("host_share", pa.float64()),
        ("bytes", pa.int64()),
        ("verdict", pa.string()),
        ("occurrences", pa.int64()),
        ("characters", pa.int64()),
    ]
)

_SHOWN_LINES = 50
_SHOWN_CHARACTERS = 200


def audit_lines(texts: Texts, removal: LineRemoval, frequent: LineTotals) -> pa.RecordBatch:
    """Return the frequent lines of a batch with their verdicts: AUDIT.

    Args:
        texts: the texts before lines were cut.
        removal: what `remove_lines` made of them with `frequent`.
    """
    lines = np.flatnonzero(removal.places >= 0)
    pairs = removal.places[lines] * len(VERDICTS) + removal.verdicts[lines]
    unique, first, inverse, counts = np.unique(
        pairs, return_index=True, return_inverse=True, return_counts=True
    )
    rows = unique // len(VERDICTS)
    offsets, data = text_buffers(texts)
    documents = np.repeat(np.arange(len(offsets) - 1), np.diff(removal.lines.doc_offsets))
    starts = offsets[documents[lines]] + removal.lines.spans[lines, 0]
    ends = offsets[documents[lines]] + removal.lines.spans[lines, 1]
    raw = data.tobytes() if len(lines) else b""
    sizes = np.array([len(raw[a:b].decode()) for a, b in zip(starts, ends, strict=True)], np.int64)
    shown = [raw[starts[i] : ends[i]].decode().strip()[:_SHOWN_CHARACTERS] for i in first]
    edges = frequent.edges[rows] / np.maximum(frequent.counts[rows], 1)
    return pa.RecordBatch.from_arrays(
        [
            pa.array(frequent.hashes[rows], pa.uint64()),
            pa.array(shown, pa.large_string()),
            pa.array(frequent.counts[rows], pa.int64()),
            pa.array(frequent.hosts[rows], pa.int64()),
            pa.array(edges, pa.float64()),
            pa.array(frequent.counts[rows] / np.maximum(frequent.pages[rows], 1), pa.float64()),
            pa.array(frequent.bytes[rows], pa.int64()),
            pa.array([VERDICTS[v] for v in unique % len(VERDICTS)], pa.string()),
            pa.array(counts, pa.int64()),
            pa.array(np.bincount(inverse, sizes, len(unique)).astype(np.int64), pa.int64()),
        ],
        schema=AUDIT,
    )


def summary(batches: Iterable[pa.RecordBatch]) -> dict[str, Any]:
    """Return what the manifest notes: lines, verdicts, and how much good text was probably lost."""
    of_line = ("line", "documents", "hosts", "edge_share", "host_share", "bytes")
    sums = ("occurrences", "characters")
    held = summed(batches, AUDIT, ("key", "verdict"), sums, least=of_line)
    cut = pc.starts_with(held["verdict"], "cut")
    verdicts = [
        {
            "verdict": name,
            "lines": part.num_rows,
            "occurrences": pc.sum(part["occurrences"]).as_py(),
            "characters": pc.sum(part["characters"]).as_py(),
        }
        for name in VERDICTS
        if (part := held.filter(pc.equal(held["verdict"], name))).num_rows
    ]
    good = sum(GOOD_SHARE[v["verdict"]] * v["characters"] for v in verdicts if v["verdict"] in _CUT)
    lost = sum(v["characters"] for v in verdicts if v["verdict"] in _CUT)
    return {
        "frequent lines by verdict": verdicts,
        "estimate of good text among what was cut": {
            "characters_cut": lost,
            "good_characters": round(good),
        },
        "most frequent lines cut": _top(held.filter(cut)),
        "most frequent lines kept": _top(held.filter(pc.invert(cut))),
    }


_CUT = {name for name, cut in zip(VERDICTS, CUTS, strict=True) if cut}


def _top(table: pa.Table) -> list[dict[str, Any]]:
    order = [("documents", "descending"), ("key", "ascending"), ("verdict", "ascending")]
    shown = table.sort_by(order).slice(0, _SHOWN_LINES).drop_columns(["key"]).to_pylist()
    return [
        {k: round(v, 2) if k.endswith("_share") else v for k, v in row.items()} for row in shown
    ]
