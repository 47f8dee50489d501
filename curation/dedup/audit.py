"""Audit of deduplication of lines and passages: what was frequent, where, and what became of it."""

from collections.abc import Iterable, Mapping
from operator import itemgetter
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from curation.arrow import Texts, summed, text_buffers
from curation.dedup.dedup_settings import GOOD_SHARE, VERDICTS, AlarmSettings
from curation.dedup.lines import LineRemoval, LineTotals
from curation.dedup.substrings import Cutting
from curation.dedup.urls import hosts

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
#: Characters of a line, or bytes of a passage, that are shown.
SHOWN = 200
#: Hosts and source files with fewer documents raise no alarm: all of a few may well be copies.
FEWEST_DOCUMENTS = 100


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
    shown = [raw[starts[i] : ends[i]].decode().strip()[:SHOWN] for i in first]
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
    lost = sum(v["characters"] for v in verdicts if v["verdict"].startswith("cut"))
    return {
        "frequent lines by verdict": verdicts,
        "estimate of good text among what was cut": {
            "characters_cut": lost,
            "good_characters": round(GOOD_SHARE * lost),
        },
        "most frequent lines cut": _top(held.filter(cut)),
        "most frequent lines kept": _top(held.filter(pc.invert(cut))),
    }


def _top(table: pa.Table) -> list[dict[str, Any]]:
    order = [("documents", "descending"), ("key", "ascending"), ("verdict", "ascending")]
    shown = table.sort_by(order).slice(0, _SHOWN_LINES).drop_columns(["key"]).to_pylist()
    return [
        {k: round(v, 2) if k.endswith("_share") else v for k, v in row.items()} for row in shown
    ]


#: What documents had, and lost with their passages or as too short: a row for each language and
#: host in a batch.
SOURCES = pa.schema(
    [
        ("language", pa.string()),
        ("host", pa.string()),
        ("documents", pa.int64()),
        ("bytes", pa.int64()),
        ("removed", pa.int64()),
    ]
)


def losses_by_source(batch: pa.RecordBatch, done: Cutting) -> pa.RecordBatch:
    """Return what the documents of a batch lost, by language and host: SOURCES."""
    names, empty = batch.schema.names, pa.array([""] * batch.num_rows, pa.string())
    sizes = np.diff(text_buffers(batch.column("text")).offsets)
    lost = np.bincount(done.rows, done.sizes, batch.num_rows).astype(np.int64)
    gone = pc.is_valid(done.verdicts.reason).to_numpy(zero_copy_only=False)
    columns = [
        batch.column("language").fill_null("") if "language" in names else empty,
        hosts(batch.column("url")).cast(pa.string()) if "url" in names else empty,
        np.ones(batch.num_rows, np.int64),
        sizes,
        np.where(gone, sizes, lost),
    ]
    rows = pa.RecordBatch.from_arrays([pa.array(c) for c in columns], schema=SOURCES)
    table = summed([rows], SOURCES, SOURCES.names[:2], SOURCES.names[2:])
    return table.combine_chunks().to_batches()[0] if len(table) else rows


def losses_noted(batches: Iterable[pa.RecordBatch], limits: AlarmSettings) -> dict[str, Any]:
    """Return what the manifest notes: bytes cut by language and host, and alarms."""
    counts = SOURCES.names[2:]
    held = summed(batches, SOURCES, SOURCES.names[:2], counts)
    notes: dict[str, Any] = {}
    for name in ("language", "host"):
        table = held.group_by([name], use_threads=False).aggregate([(n, "sum") for n in counts])
        table = table.rename_columns([name, *counts]).filter(pc.not_equal(table[name], ""))
        ranked = table.sort_by([("removed", "descending"), (name, "ascending")])
        notes[f"bytes cut by {name}"] = ranked.slice(0, _SHOWN_LINES).to_pylist()
    least = pc.multiply(pc.cast(ranked["bytes"], pa.float64()), limits.lost_share)
    losing = pc.greater(pc.cast(ranked["removed"], pa.float64()), least)
    many = pc.greater_equal(ranked["documents"], FEWEST_DOCUMENTS)
    found = ranked.filter(pc.and_(losing, many)).slice(0, _SHOWN_LINES).to_pylist()
    alarms = [losing_alarm(row, "bytes", limits.lost_share) for row in found]
    return notes | ({"alarms": alarms} if alarms else {})


def losing_alarm(found: Mapping[str, Any], what: str, share: float) -> dict[str, Any]:
    """Return the alarm about a host or source file that lost most of `what` it had."""
    kind = "host" if "host" in found else "file"
    lost = f"{found['removed']:,} of {found[what]:,} {what}, above {share:.0%}"
    return {"alarm": f"{kind} {found[kind]} loses {lost}", **found}


def most_frequent(passages: Iterable[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return the passages with most copies, of equal ones the longest first."""
    ordered = sorted(passages, key=itemgetter("passage", "kept_id"))
    return sorted(ordered, key=lambda p: (-p["copies"], -p["bytes"]))[:_SHOWN_LINES]
